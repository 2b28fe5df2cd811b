#include "coordinator/generate/catalogue/family.h"

#include "absl/strings/str_cat.h"

namespace grove::generate::catalogue {

absl::StatusOr<const KernelFamily*> FindFamily(const OpSpec& spec, const v1::DeviceInfo& device) {
  const bool cuda = device.kind() == v1::DEVICE_KIND_CUDA;
  std::string reasons;
  for (const KernelFamily* family : cuda ? CudaFamilies() : CpuFamilies()) {
    if (!family->Matches(spec.operation)) continue;
    absl::Status accepts = family->Accepts(spec, device);
    if (accepts.ok()) return family;
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", accepts.message());
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the catalogue recognises ", spec.operation, ", but cannot write it for ", cuda ? "cuda" : "cpu", ": ",
      reasons.empty() ? "no kernel family does that" : reasons,
      ". Use --generator openai or --generator replay:FILE, or judge a kernel of your own with grove eval"));
}

}  // namespace grove::generate::catalogue
