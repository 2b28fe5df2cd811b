#include "coordinator/generate/catalogue/family.h"

namespace grove::generate::catalogue {

std::vector<const KernelFamily*> CpuFamilies() { return {}; }

}  // namespace grove::generate::catalogue
