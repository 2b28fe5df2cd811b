// Elementwise chains: any number of operations in one pass over memory.
#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cpu/cpu_source.h"
#include "coordinator/generate/catalogue/cpu/families.h"

namespace grove::generate::catalogue::cpu {
namespace {

class Elementwise final : public KernelFamily {
 public:
  v1::DeviceKind device() const override { return v1::DEVICE_KIND_CPU; }
  bool Matches(absl::string_view operation) const override { return operation == "elementwise"; }
  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override { return AcceptFloat(spec); }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const double bytes = 4.0 * static_cast<double>(spec.epilogue.Elements());
    const bool exp = CallsExp(spec.epilogue);
    std::vector<Optimisation> list = {Simd(device, exp ? 4.0 : 1.3), Threads(1e9, bytes), Unroll(), Stream(bytes),
                                      Prefetch()};
    if (exp) list.push_back(ShortPolynomial());
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    const std::vector<Optimisation> list = Optimisations(spec, device);
    const double ops = static_cast<double>(spec.epilogue.nodes.size());
    return {
        MakeStart(list, {}, "One plain loop over all elements",
                  "The whole chain is computed element by element with the C library's functions, in one pass: nothing "
                  "is written to memory between the operations.",
                  0.7),
        MakeStart(list, {"threads"}, "The fused loop on all threads",
                  "The chain in one pass as before, its elements shared among the threads.", 1.2),
        MakeStart(list, {"simd"}, "The fused loop on vectors",
                  "The chain in one pass, a vector at a time, with polynomials in place of library calls.",
                  1.0 + 0.1 * ops),
        MakeStart(list, {"simd", "threads"}, "The fused loop on vectors and all threads",
                  "The chain in one pass, vectorised, and shared among the threads.", 1.3 + 0.2 * ops)};
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo&, const Recipe& recipe) const override {
    Source source;
    source.text = Prelude("An elementwise chain, fused into one pass.", recipe, VectorBytes(recipe), ExpDegree(recipe));
    absl::StrAppend(&source.text, OpenKernel(spec, UsedArgs(spec)));
    const std::string body = RangeLoop(
        spec.epilogue, "begin", "end", "out", "", [](const std::string&, Lanes) { return std::string("0"); },
        RangeOf(recipe), "      ");
    absl::StrAppend(&source.text, ParallelLoop(Num(spec.epilogue.Elements()), 64, recipe, body), "  return 0;\n}\n");
    return source;
  }
};

}  // namespace

const KernelFamily* ElementwiseFamily() {
  static const Elementwise family;
  return &family;
}

}  // namespace grove::generate::catalogue::cpu
