// Chains of elementwise operations, fused into one kernel.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/generate/catalogue/cuda/families.h"
#include "coordinator/generate/catalogue/cuda/text.h"
#include "coordinator/generate/catalogue/emit.h"

namespace grove::generate::catalogue::cuda {
namespace {

// kPacks packs of kVec elements per thread and step; blocks take neighbouring packs.
constexpr char kChain[] = R"cuda(
__global__ void __launch_bounds__(kThreads) Chain(Operands ops, float* out) {
  const Index step = static_cast<Index>(gridDim.x) * kThreads * kPacks * kVec;
  for (Index base = (static_cast<Index>(blockIdx.x) * kThreads * kPacks + threadIdx.x) * kVec; base < kElements; base += step) {
    $type$ v[kPacks];
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const Index i = base + static_cast<Index>(j) * kThreads * kVec;
      if (i < kElements) v[j] = $value$(ops, i / kColumns, i % kColumns);
    }
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const Index i = base + static_cast<Index>(j) * kThreads * kVec;
      if (i < kElements) $write$(out + i, v[j]);
    }
  }
}
)cuda";

class ElementwiseFamily : public CudaFamily {
 public:
  bool Matches(absl::string_view op) const override { return op == "elementwise"; }

  absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo&) const override {
    if (!Matches(spec.operation)) return absl::FailedPreconditionError("no elementwise chain");
    if (absl::Status status = CheckReadable(spec, spec.epilogue); !status.ok()) return status;
    if (spec.epilogue.Elements() < 1) return absl::FailedPreconditionError("the output has no elements");
    if (CeilDiv(spec.epilogue.Elements(), 128) > INT32_MAX)
      return absl::FailedPreconditionError("more elements than a grid has");
    return CheckOutput(spec);
  }

  std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo&) const override {
    std::vector<Optimisation> list;
    if (Columns(Collapse(spec.epilogue)) % 4 == 0) {
      list.push_back(
          {.id = "vector_loads",
           .title = "Read and write four floats at a time",
           .description = "16-byte accesses need a quarter of the instructions and keep more bytes in flight.",
           .category = "memory",
           .predicted_speedup = 1.2});
    }
    list.push_back({.id = "several",
                    .title = "Give each thread several packs",
                    .description =
                        "All loads of a thread are issued before the first result is needed, so that more of them are "
                        "in flight.",
                    .category = "latency",
                    .predicted_speedup = 1.1,
                    .parameters = {{"packs", {2, 4, 8}, 4, 2, "packs"}}});
    list.push_back(
        {.id = "persistent",
         .title = "Launch as many blocks as fit and let them walk the data",
         .description = "A grid-stride loop pays for launching a block once instead of for every piece of data.",
         .category = "control",
         .predicted_speedup = 1.0,
         .parameters = {{"blocks", {2, 4, 8}, 4, 2, "blocks per multiprocessor"}}});
    list.push_back({.id = "threads",
                    .title = "Choose the number of threads of a block",
                    .description = "Blocks of another size fill the multiprocessors differently.",
                    .category = "parallelism",
                    .predicted_speedup = 1.02,
                    .parameters = {{"count", {128, 256, 512, 1024}, 512, 256, "threads"}}});
    list.push_back({.id = "stream",
                    .title = "Mark the data as streaming",
                    .description = "Evict-first reads and writes: nothing is used twice.",
                    .category = "memory",
                    .predicted_speedup = 1.03});
    return list;
  }

  std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const override {
    std::vector<Start> starts;
    const std::vector<Optimisation> list = Optimisations(spec, device);
    starts.push_back({"One thread per element, the whole chain fused",
                      "One pass over memory instead of one per operation.",
                      1.5,
                      {}});
    Recipe recipe;
    for (const char* id : {"vector_loads", "several"}) {
      if (Find(list, id) != nullptr) SwitchOn(list, id, &recipe);
    }
    starts.push_back({"Fused, vectorised", "Four floats at a time, several packs per thread.", 2.0, recipe});
    return starts;
  }

  absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo& device, const Recipe& recipe) const override {
    const Expr expr = Collapse(spec.epilogue);
    const int64_t elements = spec.epilogue.Elements(), columns = Columns(expr);
    const bool vector = recipe.Has("vector_loads");
    const int64_t vec = vector ? 4 : 1, packs = recipe.Get("several", "packs", 1),
                  threads = recipe.Get("threads", "count", 256);
    int64_t blocks = CeilDiv(elements, threads * packs * vec);
    if (recipe.Has("persistent"))
      blocks = std::min(blocks, recipe.Get("persistent", "blocks", 4) * Multiprocessors(device));
    Operands operands(spec);
    const std::string functions =
        MathPrelude({&expr}) + ExprFunctions(expr, &operands, "Value", elements / columns, columns, false, vector);
    Source source;
    source.text =
        FileHead(absl::StrCat("elementwise chain of ", elements, " elements"), SettingsText(recipe), elements,
                 recipe.Has("stream")) +
        Constants(
            {{"kElements", elements}, {"kColumns", columns}, {"kVec", vec}, {"kPacks", packs}, {"kThreads", threads}}) +
        "\n" + operands.Struct() + "\n" + functions +
        Fill(kChain, {{"type", vector ? "float4" : "float"},
                      {"value", vector ? "Value4" : "Value"},
                      {"write", vector ? "Write4" : "Write"}}) +
        "\nGROVE_KERNEL(args) {\n" + operands.HostFill() +
        absl::StrCat("  Chain<<<dim3(", blocks,
                     "), kThreads, 0, static_cast<cudaStream_t>(args->stream)>>>(ops, "
                     "static_cast<float*>(args->outputs[0].data));\n"
                     "  return cudaGetLastError() == cudaSuccess ? 0 : 1;\n}\n");
    return source;
  }

 private:
  static int64_t Columns(const Expr& expr) { return expr.space.empty() ? 1 : expr.space.back(); }
};

}  // namespace

const KernelFamily* ElementwiseKernels() {
  static const auto* const kFamily = new ElementwiseFamily;
  return kFamily;
}

}  // namespace grove::generate::catalogue::cuda
