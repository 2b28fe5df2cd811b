#include "coordinator/generate/catalogue/family.h"

namespace grove::generate::catalogue {

std::vector<const KernelFamily*> CudaFamilies() { return {}; }

}  // namespace grove::generate::catalogue
