#include "coordinator/generate/catalogue/cuda/families.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/text.h"

namespace grove::generate::catalogue {
namespace cuda {

std::string CudaFamily::SettingsText(const Recipe& recipe) {
  std::string out;
  for (const auto& [key, value] : recipe.settings) {
    const bool parameter = absl::StrContains(key, '.');
    absl::StrAppend(&out, out.empty() ? "" : ", ", key, parameter ? absl::StrCat("=", value) : "");
  }
  return out;
}

absl::Status CudaFamily::CheckRows(const OpSpec& spec, const v1::DeviceInfo&) {
  if (!spec.rows) return absl::FailedPreconditionError("the operation has no rows");
  for (const Expr* expr : {&spec.prologue, &spec.epilogue}) {
    if (absl::Status status = CheckReadable(spec, *expr); !status.ok()) return status;
  }
  if (absl::Status status = CheckOutput(spec); !status.ok()) return status;
  const RowsSpec& rows = *spec.rows;
  if (rows.n < 1 || rows.outer < 1 || rows.inner < 1) return absl::FailedPreconditionError("a dimension is empty");
  // A grid's x dimension ends at 2^31 - 1; 16 leaves room for blocks of a cluster.
  if (rows.outer * rows.inner > (int64_t{1} << 31) / 16)
    return absl::FailedPreconditionError("more rows than a grid has");
  return absl::OkStatus();
}

int CudaFamily::MaxCluster(const v1::DeviceInfo& device) {
  const int arch = ArchNumber(device);
  return arch == 90 || (arch >= 100 && arch < 120) ? 8 : 1;
}

}  // namespace cuda

std::vector<const KernelFamily*> CudaFamilies() {
  return {cuda::SoftmaxKernels(), cuda::NormKernels(),        cuda::MatmulKernels(), cuda::ConvKernels(),
          cuda::ReduceKernels(),  cuda::ElementwiseKernels(), cuda::PoolKernels()};
}

}  // namespace grove::generate::catalogue
