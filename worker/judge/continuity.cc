#include "worker/judge/continuity.h"

#include <algorithm>
#include <set>
#include <string>

#include "worker/judge/words.h"

namespace grove::judge {
namespace {

constexpr char kContinuous[] =
    "_convolution abs adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d add addmm amax amin "
    "avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm bmm cat celu chunk clamp clamp_max clamp_min conv1d "
    "conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cos cumsum dropout einsum elu exp "
    "expand flatten gelu group_norm hardsigmoid hardswish hardtanh instance_norm layer_norm leaky_relu linear "
    "log_sigmoid log_softmax logsumexp matmul max_pool1d max_pool2d max_pool3d maximum mean minimum mish mm "
    "mul mv neg permute prelu relu relu6 reshape scaled_dot_product_attention select selu sigmoid silu sin "
    "slice softmax softplus split square squeeze stack sub sum t tanh transpose unbind unsqueeze view ";

constexpr char kChoosing[] =
    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d amax amin aminmax argmax argmin argsort cummax cummin "
    "fmax fmin fractional_max_pool2d kthvalue max max_pool1d max_pool2d max_pool3d max_pool1d_with_indices "
    "max_pool2d_with_indices max_pool3d_with_indices median min mode msort nanmedian nanquantile quantile sort topk ";

const std::set<std::string>& Names() {
  static const auto* names = new std::set<std::string>(Words(kContinuous));
  return *names;
}

// Of torch's own, without its namespace; else empty.
std::string NameOf(const nlohmann::json& operation) {
  constexpr char kTorch[] = "aten::";
  std::string kind = operation.value("kind", "");
  if (kind.rfind(kTorch, 0) != 0) return "";
  return kind.substr(sizeof kTorch - 1);
}

bool Floating(const nlohmann::json& type) {
  const std::string name = type.value("dtype", "");
  return name.rfind("float", 0) == 0 || name.rfind("bfloat", 0) == 0;
}

bool KnownContinuous(const nlohmann::json& operation) {
  std::string kind = NameOf(operation);
  if (kind.size() > 1 && kind.back() == '_') kind.pop_back();  // in place
  const nlohmann::json types = operation.value("output_types", nlohmann::json::array());
  return Names().count(kind) != 0 && std::all_of(types.begin(), types.end(), Floating);
}

}  // namespace

bool Continuous(const nlohmann::json& graph) {
  return !graph.empty() && std::all_of(graph.begin(), graph.end(), KnownContinuous);
}

bool Chooses(const nlohmann::json& graph) {
  static const auto* names = new std::set<std::string>(Words(kChoosing));
  return std::any_of(graph.begin(), graph.end(),
                     [](const nlohmann::json& operation) { return names->count(NameOf(operation)) != 0; });
}

}  // namespace grove::judge
