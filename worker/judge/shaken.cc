#include "worker/judge/shaken.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "worker/judge/compare.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/distributions.h"
#include "worker/judge/exactness.h"
#include "worker/judge/observed.h"
#include "worker/judge/operations.h"
#include "worker/judge/set.h"
#include "worker/judge/tensor_type.h"
#include "worker/judge/words.h"

namespace grove::judge {
namespace {

constexpr double kSpacing = 0x1p-23;
constexpr double kCoarse = 256;
// What a program gives on its way is held while it runs; of those that give more, nothing is said.
constexpr std::size_t kMostKept = std::size_t{512} << 20;
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // of the output
// Where more are made, a loop may be waiting for what does not come to rest while it is shaken: nothing is said.
constexpr int kMostOperations = 1 << 17;

// Element by element, without constants of their own: exact where float32 holds operands and result.
constexpr char kElementwise[] =
    "abs add addcdiv addcmul div divide fmod lerp mul multiply neg pow reciprocal remainder rsub sqrt square "
    "sub subtract true_divide ";
// Sums of products: how far these are off goes with the sum of the terms' sizes.
constexpr char kSums[] =
    "_convolution addbmm addmm addmv adaptive_avg_pool1d adaptive_avg_pool2d avg_pool1d avg_pool2d avg_pool3d baddbmm "
    "bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution cumsum dot einsum inner "
    "linear matmul mean mm mv outer sum tensordot ";
// Over a sum of exponentials along a dimension: what the sum is off by is in all of them alike, as a part of them or of
// what their logarithm is taken of.
constexpr char kShares[] = "_softmax softmax ";
constexpr char kLogarithms[] = "_log_softmax log_softmax logsumexp special_log_softmax special_logsumexp ";
// Make or hand on values, and do no arithmetic.
constexpr char kGives[] =
    "_to_copy arange clone contiguous copy detach double empty empty_like empty_strided eye float floor_divide item "
    "lift_fresh "
    "new_empty new_tensor ones rand resolve_conj resolve_neg scalar_tensor tensor to type_as zeros ";

enum class Arithmetic { kNone, kElementwise, kSum, kShares, kLogarithms, kOther };

Arithmetic ArithmeticOf(std::string name, bool* in_place) {
  static const auto* elementwise = new std::set<std::string>(Words(kElementwise));
  static const auto* sums = new std::set<std::string>(Words(kSums));
  static const auto* shares = new std::set<std::string>(Words(kShares));
  static const auto* logarithms = new std::set<std::string>(Words(kLogarithms));
  static const auto* gives = new std::set<std::string>(Words(kGives));
  constexpr char kTorch[] = "aten::";
  if (name.rfind(kTorch, 0) != 0) return Arithmetic::kNone;
  *in_place = InPlace(name);
  name = name.substr(sizeof kTorch - 1);
  if (*in_place && name.size() > 1) name.pop_back();
  if (gives->count(name) != 0 || Selects(name)) return Arithmetic::kNone;
  if (elementwise->count(name) != 0) return Arithmetic::kElementwise;
  if (shares->count(name) != 0) return Arithmetic::kShares;
  if (logarithms->count(name) != 0) return Arithmetic::kLogarithms;
  return sums->count(name) != 0 ? Arithmetic::kSum : Arithmetic::kOther;
}

bool Doubles(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().scalar_type() == at::kDouble;
}

// What float32 does not hold exactly.
at::Tensor Inexact(const at::Tensor& values) { return values.to(at::kFloat).to(at::kDouble).ne(values); }

struct Shaking {
  at::Generator generator;
  double sign = 1;
  double spacings = 2;      // of float32, that an operation may be off by
  double accumulator = 0;   // relative, that a sum may be off by besides
  double exponentials = 0;  // the same of sums of exponentials
  int operations = 0;
  int depth = 0;                 // operations that the present one is a part of
  bool busy = false;             // what is run is no part of the program
  std::set<const void*> own;     // memory that operations of this run gave
  std::vector<at::Tensor> kept;  // so that nothing else comes to be there
  std::size_t bytes = 0;         // of these
  bool too_much = false;         // more operations, or memory, than may be: what comes out is not looked at
};

thread_local Shaking* shaking = nullptr;

struct Watched : at::ObserverContext {
  Arithmetic arithmetic = Arithmetic::kNone;
  bool in_place = false, divides = false;
  bool counted = false, deeper = false;
  std::vector<c10::IValue> inputs;
  // (torch's own optional or the standard library's, as its version has it.)
  decltype(std::declval<const at::RecordFunction&>().operator_name()) name;
  std::set<const void*> storages;
  bool coarse = true;             // what is summed has few bits behind the point: float32 holds all partial sums
  bool inexact = false;           // a number, or what is summed, is not held by float32
  std::vector<at::Tensor> masks;  // elements of operands that are not
};

const void* StorageOf(const at::Tensor& tensor) { return tensor.has_storage() ? tensor.storage().data() : nullptr; }

void Look(const c10::IValue& input, Watched* watched) {
  if (input.isTensorList()) {
    for (const at::Tensor& one : input.toTensorVector()) Look(one, watched);
  } else if (input.isString() && watched->divides) {
    watched->arithmetic = Arithmetic::kNone;  // with a rounding mode: what it gives is whole
  } else if (input.isDouble()) {
    const double number = input.toDouble();
    watched->inexact = watched->inexact || static_cast<double>(static_cast<float>(number)) != number;
  } else if (input.isTensor() && input.toTensor().defined()) {
    watched->storages.insert(StorageOf(input.toTensor()));
    if (!Doubles(input)) return;
    const at::Tensor mask = Inexact(input.toTensor());
    if (watched->arithmetic == Arithmetic::kElementwise)
      watched->masks.push_back(mask);
    else {
      watched->inexact = watched->inexact || mask.any().item<bool>();
      const at::Tensor fine = input.toTensor() * kCoarse;
      watched->coarse = watched->coarse && fine.eq(fine.round()).all().item<bool>();
    }
  }
}

std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& function) {
  if (shaking == nullptr || shaking->busy || shaking->too_much) return nullptr;
  shaking->too_much = ++shaking->operations > kMostOperations;
  if (shaking->too_much) return nullptr;
  auto watched = std::make_unique<Watched>();
  watched->arithmetic = ArithmeticOf(function.name(), &watched->in_place);
  watched->divides = std::strncmp(function.name(), "aten::div", 9) == 0;
  watched->deeper = shaking->depth > 0;
  if (watched->arithmetic == Arithmetic::kNone) {
    // (No depth: a part of what hands on may compute.)
    watched->inputs.assign(function.inputs().begin(), function.inputs().end());
    for (const c10::IValue& input : watched->inputs) {
      if (input.isTensor() && input.toTensor().defined()) watched->storages.insert(StorageOf(input.toTensor()));
    }
    return watched;
  }
  ++shaking->depth;
  watched->counted = true;
  if (watched->deeper) return watched;
  shaking->busy = true;
  try {
    watched->inputs.assign(function.inputs().begin(), function.inputs().end());
    watched->name = function.operator_name();
    for (const c10::IValue& input : watched->inputs) Look(input, watched.get());
  } catch (const std::exception&) {  // no memory: as if nothing were exact
    watched->inexact = true;
  }
  shaking->busy = false;
  return watched;
}

// The sum of the terms' sizes, of which `result` is the sum; `result` itself where that is not to be had.
at::Tensor Sizes(const Watched& watched, const at::Tensor& result) {
  try {
    if (!watched.name) return result.abs();
    const auto schema = c10::Dispatcher::singleton().findSchema(*watched.name);
    if (!schema || watched.inputs.size() != schema->schema().arguments().size()) return result.abs();
    torch::jit::Stack stack;
    for (const c10::IValue& input : watched.inputs) {
      if (Doubles(input)) {
        stack.emplace_back(input.toTensor().abs());
      } else if (input.isTensorList()) {
        std::vector<at::Tensor> sizes;
        for (const at::Tensor& one : input.toTensorVector()) sizes.push_back(one.abs());
        stack.emplace_back(std::move(sizes));
      } else {
        stack.push_back(input);
      }
    }
    schema->callBoxed(&stack);
    if (stack.empty() || !Doubles(stack[0]) || stack[0].toTensor().sizes() != result.sizes()) return result.abs();
    return stack[0].toTensor().abs();
  } catch (const std::exception&) {
    return result.abs();
  }
}

// What each row's sum of exponentials is off by, relative, in the shape of the result or one that it is repeated from.
at::Tensor OfRows(const Watched& watched, const at::Tensor& result) {
  std::vector<std::int64_t> sizes = result.sizes().vec();
  if (watched.inputs.size() > 1 && watched.inputs[0].isTensor() && watched.inputs[1].isInt() &&
      watched.inputs[0].toTensor().sizes() == result.sizes() && !sizes.empty()) {
    sizes[static_cast<std::size_t>(at::maybe_wrap_dim(watched.inputs[1].toInt(), result.dim()))] = 1;
  }
  return (at::rand(sizes, shaking->generator, result.options()) * 2 - 1) * shaking->exponentials;
}

void Shake(const Watched& watched, const at::Tensor& result) {
  at::Tensor moves;
  const bool sum = watched.arithmetic == Arithmetic::kSum;
  if (watched.arithmetic != Arithmetic::kOther && !watched.inexact && (!sum || watched.coarse)) {
    moves = Inexact(result);
    for (const at::Tensor& mask : watched.masks) {
      if (at::infer_size(mask.sizes(), moves.sizes()) == moves.sizes().vec()) moves = moves.logical_or(mask);
    }
  }
  const double off = shaking->spacings * kSpacing;
  at::Tensor size = result.abs() * off;
  if (sum && !watched.in_place) {
    size = Sizes(watched, result) * off + result.abs() * shaking->accumulator;
  }
  if (moves.defined()) size = size.masked_fill(moves.logical_not(), 0);
  at::Tensor moves_by = (at::rand(result.sizes(), shaking->generator, result.options()) * 2 - 1) * size;
  if (watched.arithmetic == Arithmetic::kLogarithms) moves_by = moves_by + OfRows(watched, result);
  if (watched.arithmetic == Arithmetic::kShares) moves_by = moves_by + OfRows(watched, result) * result;
  const at::Tensor moved = result + moves_by * shaking->sign;
  result.copy_(at::where(at::isfinite(moved), moved, result));
}

void End(const at::RecordFunction& function, at::ObserverContext* context) {
  auto* watched = dynamic_cast<Watched*>(context);
  if (watched == nullptr || shaking == nullptr) return;
  if (watched->counted) --shaking->depth;
  if (watched->deeper || shaking->busy) return;
  shaking->busy = true;
  try {
    for (const c10::IValue& output : function.outputs()) {
      if (!Doubles(output) || output.toTensor().numel() == 0) continue;
      const at::Tensor& result = output.toTensor();
      const void* storage = StorageOf(result);
      if (storage == nullptr) continue;
      const bool given = watched->storages.count(storage) != 0;
      // What an operation was given is the judge's, or a parameter, where no operation of this run made it.
      if (given ? watched->in_place && shaking->own.count(storage) != 0 : true) {
        if (watched->arithmetic != Arithmetic::kNone) Shake(*watched, result);
      }
      if (!given && shaking->own.insert(storage).second) {
        shaking->kept.push_back(result);
        shaking->bytes += result.nbytes();
      }
      shaking->too_much = shaking->too_much || shaking->bytes > kMostKept;
      if (shaking->too_much) shaking->kept.clear();
    }
  } catch (const std::exception&) {  // no memory: as it is
  }
  shaking->busy = false;
}

struct Watching {
  explicit Watching(Shaking* how) : set(&shaking, how) {}
  Set<Shaking*> set;
  Observed<Begin, End> observed;
};

// The outputs of one evaluation that is shaken so; none where it gave more on its way than may be kept, or made too
// many operations.
std::vector<at::Tensor> Shaken(Reference& reference, const std::vector<Leaf>& leaves, Shaking* how) {
  how->own.clear();
  how->kept.clear();
  how->bytes = 0;
  how->too_much = false;
  how->operations = 0;
  const auto call = reference.Prepare(leaves, Mode::kDouble);
  {
    const Watching watching(how);
    call->Run();
  }
  return how->too_much ? std::vector<at::Tensor>() : call->Outputs();
}

at::Tensor AsItIs(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output) {
  const auto call = reference.Prepare(leaves, Mode::kDouble);
  call->Run();
  const std::vector<at::Tensor> outputs = call->Outputs();
  return output < outputs.size() ? outputs[output] : at::Tensor();
}

}  // namespace

bool IsWhole(const Leaf& leaf) {
  if (leaf.scalar || leaf.tensor.numel() == 0 || leaf.tensor.is_complex()) return false;
  if (!leaf.tensor.is_floating_point()) return true;
  const at::Tensor values = IsHalf(leaf.tensor.scalar_type()) ? leaf.tensor.to(at::kFloat) : leaf.tensor;
  return values.eq(values.round()).all().item<bool>();
}

bool HasWholeNumbers(const std::vector<Leaf>& leaves) { return std::any_of(leaves.begin(), leaves.end(), IsWhole); }

Reached ReachedByRounding(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                          const at::Tensor& got, const at::Tensor& high, const at::Tensor& allowed, double reduction,
                          bool in_double, Random* random, Turns* turns, double each) {
  constexpr int kMostRuns = 24, kLeastRuns = 6;
  constexpr double kShown = 8;
  const auto agree = [&](const at::Tensor& a, const at::Tensor& b) {
    if (!Fractions(got)) return a.eq(b);
    return Alike(a.to(at::kDouble), b.to(at::kDouble), allowed, got.scalar_type());
  };
  if (got.numel() > kMostElements) return {};
  const at::Tensor still = high.defined() ? high : AsItIs(reference, leaves, output);
  if (!still.defined() || still.sizes() != got.sizes() || still.is_complex()) return {};
  const double most = kMostJumps * static_cast<double>(got.numel());
  at::Tensor reached = agree(got, still), values = still.to(got.scalar_type()), moved = at::zeros_like(reached);
  const double finer = in_double ? kFiner : 1;
  Shaking how;
  how.spacings *= finer;
  std::uint64_t seed = 0;
  for (int run = 0; run < kMostRuns && turns->Take(each); ++run) {
    // Always two with opposite signs: of what lies at a half one falls to either side.
    if (run % 2 == 0) seed = random->Next() >> 1;
    how.generator = MakeGenerator(got.device(), seed);
    how.sign = run % 2 == 0 ? 1 : -1;
    how.accumulator = how.exponentials = finer * kSpacing / 3 * std::sqrt(reduction);
    std::vector<Leaf> nudged = Nudge(leaves, kNudge * finer, random);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (IsWhole(leaves[i])) nudged[i] = leaves[i];
    }
    const std::vector<at::Tensor> outputs = Shaken(reference, nudged, &how);
    if (output >= outputs.size() || outputs[output].sizes() != got.sizes() || outputs[output].is_complex()) return {};
    values = at::where(reached, values, outputs[output].to(got.scalar_type()));
    reached.logical_or_(agree(got, outputs[output]));
    moved.logical_or_(agree(still, outputs[output]).logical_not());
    // One run shows half of what moves, or less.
    const bool few = run + 1 >= kLeastRuns || moved.sum().item<double>() < most / kShown;
    if (few && reached.all().item<bool>()) break;
  }
  return moved.sum().item<double>() <= most ? Reached{reached, values} : Reached();
}

at::Tensor RoundingInside(Reference& reference, const std::vector<Leaf>& leaves, std::size_t output,
                          const at::Tensor& high, double reduction, bool any_order, Random* random, Turns* turns,
                          double each) {
  constexpr int kRuns = 8;
  if (high.numel() > kMostElements || high.numel() == 0 || high.is_complex()) return {};
  const at::Tensor still = high.to(at::kDouble);
  Shaking how;
  how.spacings = 0.5;  // what one operation rounds by at most
  // As much as WorkError allows, however it is multiplied: of long sums less than what leaving out a part of them
  // makes.
  const double root = std::sqrt(std::max(reduction, 1.0));
  how.accumulator = std::min(kSpacing / 3 * root, kLeftOut / (kNoiseFactor * FewElements(1)) / root);
  // Where most of the terms are equal, one accumulator errs to the same side with each of them.
  how.exponentials = any_order ? kSpacing * std::min(reduction, kMaxStraight) / 8 : how.accumulator;
  std::vector<at::Tensor> errors;
  while (errors.size() < kRuns && turns->Take(each)) {
    how.generator = MakeGenerator(high.device(), random->Next() >> 1);
    const std::vector<at::Tensor> outputs = Shaken(reference, leaves, &how);
    if (output >= outputs.size() || outputs[output].sizes() != high.sizes() || outputs[output].is_complex()) return {};
    errors.push_back((outputs[output].to(at::kDouble) - still).abs());
  }
  if (errors.size() < kLeastRunsInside) return {};
  // What jumps in two of eight says nothing of rounding.
  const at::Tensor sorted = std::get<0>(at::stack(errors).sort(0));
  return sorted.select(0, static_cast<std::int64_t>(errors.size() - 1 - errors.size() / 4));
}

}  // namespace grove::judge
