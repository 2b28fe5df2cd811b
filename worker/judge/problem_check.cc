#include "worker/judge/problem_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "worker/judge/clock.h"
#include "worker/judge/compare_tensors.h"
#include "worker/judge/distributions.h"
#include "worker/judge/operations.h"
#include "worker/judge/random.h"
#include "worker/judge/tensor_type.h"

namespace grove::judge {
namespace {

using nlohmann::json;

// A call shorter than this is mostly launch (CUDA) or less than ten times what reading a clock costs (CPU).
constexpr double kShortCuda = 10e-6;
constexpr double kShortCpu = 1e-6;
// From here the output is more rounding than signal.
constexpr double kNoisy = 0.1;
// What an evaluation holds, in sizes of the problem: its data once shared, inputs pristine twice, outputs expected,
// copied out and in the candidate's own memory, and what is made on the way; in float64 twice as large, three times
// over.
constexpr double kSizesNeeded = 5;
constexpr double kSizesForDouble = 8;

std::string Text(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Text(const char* format, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

at::Tensor Wide(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor).to(at::kDouble) : tensor.to(at::kDouble);
}
// Large outputs are looked at in blocks: beside several evaluations there is no room for as much again in float64.
// `look` gets, of each block, all tensors' elements as float64, in one order.
template <typename Look>
void InBlocks(const std::vector<at::Tensor>& tensors, const Look& look) {
  constexpr std::int64_t kBlock = std::int64_t{1} << 22;
  std::vector<at::Tensor> flat, block(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  for (std::int64_t begin = 0; begin < flat[0].numel(); begin += kBlock) {
    const std::int64_t count = std::min(kBlock, flat[0].numel() - begin);
    for (std::size_t i = 0; i < flat.size(); ++i) block[i] = Wide(flat[i].narrow(0, begin, count));
    look(block);
  }
}
// What of an output is no number counts as 0.
double Rms(const at::Tensor& tensor) {
  double squares = 0, count = 0;
  InBlocks({tensor}, [&](const std::vector<at::Tensor>& block) {
    squares += block[0].nan_to_num(0, 0, 0).square().sum().item<double>();
    count += static_cast<double>(block[0].numel());
  });
  return count == 0 ? 0 : std::sqrt(squares / count);
}
double RmsApart(const at::Tensor& a, const at::Tensor& b) {
  double squares = 0, count = 0;
  InBlocks({a, b}, [&](const std::vector<at::Tensor>& block) {
    squares += (block[0].nan_to_num(0, 0, 0) - block[1].nan_to_num(0, 0, 0)).square().sum().item<double>();
    count += static_cast<double>(block[0].numel());
  });
  return count == 0 ? 0 : std::sqrt(squares / count);
}
bool Same(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  if (!Fractions(a)) return a.equal(b);
  bool same = true;
  InBlocks({a, b}, [&same](const std::vector<at::Tensor>& block) {
    same = same && block[0].nan_to_num().equal(block[1].nan_to_num());
  });
  return same;
}

struct Run {
  std::vector<Leaf> leaves;
  std::vector<at::Tensor> outputs, high, nudged;
};

// Of which shapes a finding is: empty for those that are timed. Of shapes that are held out no figure is told.
struct Shapes {
  std::string text;
  bool held_out = false;
};

class Checker {
 public:
  Checker(LoadedProblem& problem, DeviceOps& ops, const json& description)
      : problem_(problem),
        reference_(*problem.reference),
        ops_(ops),
        description_(description),
        secret_(SecretSeed()) {}

  json Run() {
    reference_.SelectShapeSet(0);
    const std::uint64_t seed = SecretSeed();
    first_ = Once(reference_.Draw(seed), true);
    const auto started = std::chrono::steady_clock::now();
    second_ = Once(reference_.Draw(SecretSeed()), false);
    Another(second_.outputs);
    // Few elements may be near those of another draw by chance, and as many elements may be selected of two draws.
    constexpr std::int64_t kFew = 64;
    constexpr int kDraws = 4;
    constexpr double kShapesSeconds = 1;
    const auto in_time = [&started] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() < kShapesSeconds;
    };
    for (int draw = 1; draw < kDraws && (HasFewerThan(kFew) || in_time()); ++draw) {
      Another(Once(reference_.Draw(SecretSeed()), false).outputs);
      for (at::Tensor& output : others_.back()) {
        if (output.numel() >= kFew) output = at::Tensor();  // large ones need no more, and memory is short
      }
    }
    Inputs(seed);
    Strides();
    Repeats(first_.leaves, Shapes());
    for (std::size_t i = 0; i < first_.outputs.size(); ++i) moves_ = moves_ || !Unchanged(i);
    for (std::size_t i = 0; i < first_.outputs.size(); ++i) Output(i);
    FurtherShapes();
    EachInput();
    Graph();
    TrivialParameters();
    OwnTables();
    Size();
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const json& a, const json& b) { return a["serious"] == true && b["serious"] == false; });
    return findings_;
  }

 private:
  void Find(const char* id, bool serious, const std::string& what, const std::string& remedy) {
    findings_.push_back({{"id", id}, {"serious", serious}, {"what", what}, {"remedy", remedy}});
  }

  // Outputs of another draw than the first.
  void Another(std::vector<at::Tensor> outputs) {
    for (std::size_t i = 0; i < first_.outputs.size(); ++i) {
      if (i >= outputs.size() || outputs[i].sizes() != first_.outputs[i].sizes() ||
          outputs[i].scalar_type() != first_.outputs[i].scalar_type()) {
        varies_.insert(i);
      }
    }
    others_.push_back(std::move(outputs));
  }

  std::vector<at::Tensor> Call(const std::vector<Leaf>& leaves, Mode mode) {
    auto call = reference_.Prepare(leaves, mode);
    call->Run();
    return call->Outputs();
  }

  struct Run Once(std::vector<Leaf> leaves, bool high) {
    struct Run run;
    run.leaves = std::move(leaves);
    std::vector<Leaf> own = Copies(run.leaves);
    run.outputs = Call(own, Mode::kEager);
    if (high && problem_.double_seconds >= 0) {
      try {
        run.high = Call(run.leaves, Mode::kDouble);
        run.nudged = Call(Nudge(run.leaves, problem_.NudgeOf(kNudge), &secret_, problem_.Still()), Mode::kDouble);
      } catch (const std::exception&) {
        run.high.clear();
        run.nudged.clear();
      }
    }
    return run;
  }

  static std::vector<Leaf> Copies(std::vector<Leaf> leaves) {
    for (Leaf& leaf : leaves) {
      if (!leaf.scalar) leaf.tensor = leaf.tensor.clone();
    }
    return leaves;
  }

  std::string Name(std::size_t i) const {
    if (first_.outputs.size() == 1) return "the output";
    const auto paths = reference_.OutputPaths();
    return "output " + (i < paths.size() && !paths[i].empty() ? paths[i] : std::to_string(i));
  }

  // What `got` would be judged, were it a candidate's output for the first draw.
  Comparison Judged(std::size_t i, const at::Tensor& got) const {
    ComparedTensors tensors{
        got.to(first_.outputs[i].scalar_type()).contiguous(), first_.outputs[i], {}, {}, problem_.ReductionOf(i), {}};
    if (i < first_.high.size() && first_.high[i].sizes() == first_.outputs[i].sizes()) tensors.high = first_.high[i];
    if (tensors.high.defined() && i < first_.nudged.size() && first_.nudged[i].sizes() == tensors.high.sizes()) {
      tensors.nudged = first_.nudged[i];
    }
    tensors.noise = problem_.Noise();
    return CompareTensors(tensors, reference_.DefaultRule());
  }

  // The rules that `compared` passes and `easier` does not.
  static std::string Passes(const Comparison& compared, const Rule& rule, const Comparison& easier = {}) {
    std::string rules;
    auto add = [&rules](const char* name) { rules += (rules.empty() ? "" : ", ") + std::string(name); };
    if (compared.passes_1e2 && !easier.passes_1e2) add("1e-2");
    if (compared.passes_1e4 && !easier.passes_1e4) add("1e-4");
    if (compared.passes_scaled && !easier.passes_scaled) add("scaled");
    if (rule.mode == RuleMode::kAbsoluteRelative && compared.ok && !easier.ok) add("the problem's own");
    return rules;
  }

  void Inputs(std::uint64_t seed) {
    const std::vector<Leaf> third = reference_.Draw(SecretSeed()), again = reference_.Draw(seed);
    bool repeats = true, alike = true, any = false;
    auto compare = [&](const std::vector<Leaf>& other, bool types) {
      if (other.size() != first_.leaves.size()) return false;
      for (std::size_t i = 0; i < other.size(); ++i) {
        const Leaf &a = first_.leaves[i], &b = other[i];
        if (a.scalar != b.scalar) return false;
        if (a.scalar) continue;
        if (types && (a.tensor.sizes() != b.tensor.sizes() || a.tensor.scalar_type() != b.tensor.scalar_type()))
          return false;
        if (!types && !Same(a.tensor, b.tensor)) return false;
      }
      return true;
    };
    for (const std::vector<Leaf>* other : {static_cast<const std::vector<Leaf>*>(&second_.leaves), &third}) {
      if (compare(*other, true)) continue;
      Find("varying-shapes", true, "get_inputs() gives tensors of other shapes or types on each call",
           "make their shapes the same each time; for several shapes write a native problem with [[shapes]]");
      return;
    }
    for (std::size_t i = 0; i < third.size(); ++i) {
      const Leaf &a = first_.leaves[i], &b = second_.leaves[i], &c = third[i];
      const auto differ = [](const Leaf& one, const Leaf& other) {
        return one.integer != other.integer || (one.number != other.number && !std::isnan(one.number));
      };
      if (!a.scalar || (!differ(a, b) && !differ(a, c))) continue;
      Find("varying-numbers", true, "get_inputs() gives another number for input " + a.name + " on each call",
           "candidates are told numbers once: make it the same each time, or a tensor (torch.rand(()))");
    }
    for (const Leaf& leaf : first_.leaves) any = any || !leaf.scalar;
    repeats = compare(again, false);
    alike = compare(second_.leaves, false) && compare(third, false);
    if (any && alike) {
      Find("fixed-inputs", true, "get_inputs() gives the same values on every call, whatever the seed",
           "draw them (torch.rand, torch.randn), so that no kernel can know the result");
    } else if (!repeats) {
      Find("unseeded-inputs", true,
           "get_inputs() gives other values when it is called again with the same seed: they come from a generator of "
           "its own, and whoever has the problem may know them beforehand",
           "draw them with torch's own generator (torch.rand, torch.randn)");
    }
    for (std::size_t i = 0; i < first_.leaves.size(); ++i) {
      const Leaf& leaf = first_.leaves[i];
      if (leaf.scalar || leaf.tensor.numel() < 2) continue;
      const at::Tensor flat = leaf.tensor.reshape({-1});
      const at::Tensor& other = second_.leaves[i].tensor;
      if (!alike && Same(leaf.tensor, other) && Same(leaf.tensor, third[i].tensor)) {
        Find("fixed-input", false, "input " + leaf.name + " is the same on every call",
             "draw it, unless it is a mask or a table; a mask that kernels may know is a buffer of the model; timed "
             "runs multiply the elements of a fixed input of fractions by factors");
      }
      if (leaf.tensor.eq(flat[0]).all().item<bool>()) {
        Find("constant-input", false, "all elements of input " + leaf.name + " are alike",
             "draw them, or leave the input out");
      }
    }
  }

  // Who gets which inputs where they are not row-major.
  void Strides() {
    for (const Leaf& leaf : first_.leaves) {
      if (leaf.made_strides.empty()) continue;
      const std::string made = json(leaf.made_strides).dump(), kept = json(leaf.tensor.strides().vec()).dump();
      Find("strided-input", false,
           "get_inputs() makes input " + leaf.name + " with the strides " + made +
               (made == kept ? ": the reference and Python candidates get it so"
                             : ", with gaps or elements that share memory: the reference and Python candidates get it "
                               "dense, with the strides " +
                                   kept) +
               "; native candidates, and the reference beside them, get it row-major",
           "call .contiguous() on it, unless kernels are to be judged on such strides");
    }
  }

  // As Find, of one of several shapes: what was found of others already, and was no less serious, is not said again.
  void FindOf(const Shapes& shapes, const char* id, bool serious, const std::string& what, const std::string& remedy) {
    const auto told = [&](const json& finding) { return finding["id"] == id && (finding["serious"] || !serious); };
    if (!shapes.text.empty() && std::any_of(findings_.begin(), findings_.end(), told)) return;
    Find(id, serious, what + shapes.text, remedy);
  }

  // Runs twice on the same inputs, and those of the timed shapes more often and on others in between; the last outputs.
  std::vector<at::Tensor> Repeats(const std::vector<Leaf>& pristine, const Shapes& shapes) {
    std::vector<Leaf> leaves = Copies(pristine);
    const std::vector<at::Tensor> once = Call(leaves, Mode::kEager), kept = Heads(once);
    if (shapes.text.empty()) Call(reference_.Draw(SecretSeed()), Mode::kEager);
    const auto again = reference_.Prepare(leaves, Mode::kEager);
    again->Run();
    if (shapes.text.empty()) RunMore(again.get(), problem_.reference_seconds);
    const std::vector<at::Tensor> twice = again->Outputs();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].scalar || Same(leaves[i].tensor, pristine[i].tensor)) continue;
      FindOf(shapes, "writes-inputs", true, "the reference changes its input " + leaves[i].name,
             "compute out of place (no inplace=True on an input, no x += ...)");
    }
    for (std::size_t i = 0; i < once.size() && i < twice.size(); ++i) {
      if (Same(kept[i], Heads({twice[i]})[0])) continue;
      const auto [relative, serious] = RunsDiffer(kept[i], Heads({twice[i]})[0]);
      if (serious && shapes.text.empty()) random_.insert(i);
      FindOf(shapes, "non-deterministic", serious,
             Name(i) + " differs" + (shapes.held_out ? "" : Text(" by %.2g of its rms", relative)) +
                 " when the reference is run again on the same inputs",
             serious ? "take the randomness out (dropout: call self.eval() at the end of __init__; no torch.rand in "
                       "forward; no state from call to call)"
                     : "this is a matter of the order of summation (atomics); a kernel is given that much more room");
    }
    return twice;
  }

  // The share of elements that are not.
  double Finite(std::size_t i, const at::Tensor& output, const Shapes& shapes) {
    if (!Fractions(output)) return 0;
    double finite = 0, count = 0;
    InBlocks({output}, [&](const std::vector<at::Tensor>& block) {
      finite += at::isfinite(block[0]).sum().item<double>();
      count += static_cast<double>(block[0].numel());
    });
    const double share = count > 0 ? 1 - finite / count : 0;
    if (share > 0) {
      FindOf(shapes, "non-finite", share > 0.5,
             (shapes.held_out ? "elements" : Text("%.3g %%", 100 * share)) + " of " + Name(i) + " are NaN or infinite",
             "change the inputs' values or the formula so that it stays finite");
    }
    return share;
  }

  bool HasFewerThan(std::int64_t elements) const {
    return std::any_of(first_.outputs.begin(), first_.outputs.end(),
                       [elements](const at::Tensor& output) { return output.numel() < elements; });
  }

  bool Unchanged(std::size_t i) const {
    return i < second_.outputs.size() && Same(first_.outputs[i], second_.outputs[i]);
  }

  void FurtherShapes() {
    most_bytes_ = static_cast<double>(problem_.bytes);
    for (std::size_t set = 1; set < reference_.ShapeSets(); ++set) {
      const bool held_out = reference_.HeldOut(set);
      const Shapes shapes{
          " for the further shapes number " + std::to_string(set) + (held_out ? ", which are held out" : ""), held_out};
      reference_.SelectShapeSet(set);
      try {
        OfShapes(shapes);
      } catch (const std::exception& error) {
        // What torch says of it has sizes in it.
        if (!held_out) throw ProblemError(std::string(error.what()) + ";" + shapes.text);
        throw ProblemError("the reference fails" + shapes.text);
      }
    }
    reference_.SelectShapeSet(0);
  }

  void OfShapes(const Shapes& shapes) {
    const std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
    const std::vector<at::Tensor> outputs = Repeats(leaves, shapes);
    double bytes = 0;
    for (const Leaf& leaf : leaves) bytes += leaf.scalar ? 0 : static_cast<double>(leaf.tensor.nbytes());
    for (const auto& [name, tensor] : reference_.Parameters()) bytes += static_cast<double>(tensor.nbytes());
    for (const at::Tensor& output : outputs) bytes += static_cast<double>(output.nbytes());
    if (bytes > most_bytes_) {
      most_bytes_ = bytes;
      most_held_out_ = shapes.held_out;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].numel() > 0) {
        Finite(i, outputs[i], shapes);
        continue;
      }
      Find("empty-output", true, Name(i) + " has no elements" + shapes.text,
           "give sizes of at least 1 in [[shapes]] and [[held_out]]");
    }
  }

  void Output(std::size_t i) {
    const at::Tensor& output = first_.outputs[i];
    const std::string name = Name(i);
    if (varies_.count(i) != 0) {
      Find("varying-output-shapes", true, "the shape or type of " + name + " depends on the inputs' values",
           "give an output of one shape (a mask or a count instead of the elements that it selects)");
      return;
    }
    if (output.numel() == 0) {
      Find("empty-output", true, name + " has no elements", "make the problem compute something");
      return;
    }
    if (Finite(i, output, Shapes()) == 1) return;
    const bool unchanged = Unchanged(i);
    double low = INFINITY, high = -INFINITY, sum = 0, count = 0;
    InBlocks({output}, [&](const std::vector<at::Tensor>& block) {
      const at::Tensor numbers = block[0].nan_to_num(0, 0, 0);
      low = std::min(low, numbers.min().item<double>());
      high = std::max(high, numbers.max().item<double>());
      sum += numbers.sum().item<double>();
      count += static_cast<double>(numbers.numel());
    });
    const double rms = Rms(output);
    if (unchanged) {
      const bool constant = low == high;
      // Beside outputs that the inputs decide it asks nothing of a kernel, and lets none off.
      Find(constant ? "constant-output" : "input-independent", !moves_,
           constant ? Text("%s is %.6g everywhere, for every draw", name.c_str(), low)
                    : name + " is the same for two draws of the inputs, so it does not depend on them",
           moves_ ? "a kernel may return what it once saw for this one: leave it out, or let the inputs decide it"
                  : "a kernel that returns what it once saw passes: change the formula so that the inputs decide the "
                    "result");
      return;
    }
    const Comparison own = Judged(i, output);
    const Rule rule = reference_.DefaultRule();
    if (random_.count(i) != 0) return;  // nothing else can be said of it
    // Where float64 gives nothing but zeros there is no rms to be a part of: all of it is rounding.
    const bool nothing = Fractions(output) && own.noise.known && own.rms == 0 && rms > 0;
    if (nothing || (own.noise.known && own.noise.rms > kNoisy)) {
      Find("rounding-noise", true,
           nothing ? Text("%s is nothing but rounding error (rms %.2g): float64 gives zeros", name.c_str(), rms)
                   : Text("%s is mostly rounding error: the reference is off by %.2g of the output's rms (%.2g) "
                          "against float64",
                          name.c_str(), own.noise.rms, rms),
           "nothing can be told from such an output: its exact value is near zero (a mean after a normalisation?); "
           "leave that step out or compute it in float64");
      return;
    }
    if (!Fractions(output)) return;
    // Three things that cost nothing to compute: zeros, one number, and what another draw gave.
    const Comparison zeros = Judged(i, at::zeros_like(output));
    if (const std::string rules = Passes(zeros, rule); !rules.empty()) {
      Find("below-tolerance", zeros.ok,
           Text("zeros pass for %s under %s: its largest element is %.3g", name.c_str(), rules.c_str(),
                std::max(std::fabs(low), std::fabs(high))),
           zeros.ok ? "use the scaled rule" : "judge by the scaled rule (the default), under which they do not");
    }
    // Under the rules that zeros pass, nothing is said by what else does.
    const double mean = sum / count;
    const Comparison constant = Judged(i, at::full_like(output, mean));
    // Of the other draws the one that is furthest away.
    const at::Tensor* furthest = nullptr;
    double apart = 0;
    for (const std::vector<at::Tensor>& outputs : others_) {
      if (i >= outputs.size() || !outputs[i].defined() || outputs[i].sizes() != output.sizes()) continue;
      const double moved = rms > 0 ? RmsApart(output, outputs[i]) / rms : 0;
      if (furthest != nullptr && moved <= apart) continue;
      furthest = &outputs[i];
      apart = moved;
    }
    const Comparison other = furthest != nullptr ? Judged(i, *furthest) : constant;
    const std::string by_constant = output.numel() > 1 ? Passes(constant, rule, zeros) : "",
                      by_other = Passes(other, rule, zeros);
    const bool constant_decides = !by_constant.empty() && constant.ok && !zeros.ok,
               other_decides = !by_other.empty() && other.ok && !zeros.ok;
    // Two draws are farther apart than either is from what both are near to.
    if (!by_other.empty() && (other_decides || !constant_decides)) {
      Find("low-variance", other_decides,
           Text("%s moves by %.2g of its rms from draw to draw: the result of another draw passes under %s",
                name.c_str(), apart, by_other.c_str()),
           "an average over many random values is known beforehand: return what is averaged, or draw values of larger "
           "spread (heavy tails)");
    } else if (!by_constant.empty()) {
      Find("low-variance", constant_decides,
           Text("the constant %.6g passes for %s under %s", mean, name.c_str(), by_constant.c_str()),
           "the elements hardly differ: change the formula or the inputs so that they do");
    }
  }

  // Inputs that the result does not depend on.
  void EachInput() {
    int tensors = 0;
    for (const Leaf& leaf : first_.leaves) tensors += leaf.scalar ? 0 : 1;
    if (tensors < 2 || tensors > 16) return;
    for (std::size_t i = 0; i < first_.leaves.size(); ++i) {
      if (first_.leaves[i].scalar) continue;
      std::vector<Leaf> mixed = Copies(first_.leaves);
      mixed[i] = second_.leaves[i];
      if (Same(mixed[i].tensor, first_.leaves[i].tensor)) continue;
      mixed[i].tensor = mixed[i].tensor.clone();
      std::vector<at::Tensor> outputs;
      try {
        outputs = Call(mixed, Mode::kEager);
      } catch (const std::exception&) {
        continue;  // inputs that only fit together as they were drawn
      }
      bool same = outputs.size() == first_.outputs.size();
      for (std::size_t o = 0; o < outputs.size() && same; ++o) same = Same(outputs[o], first_.outputs[o]);
      if (same) {
        Find("unused-input", false, "the result does not depend on input " + first_.leaves[i].name,
             "leave it out, or use it");
      }
    }
  }

  // Work that the result does not need, as far as the graph shows it.
  void Graph() {
    const json& graph = description_.value("graph", json::array());
    if (graph.empty()) return;
    std::map<std::string, std::vector<std::int64_t>> shapes;
    std::map<std::string, std::string> kinds, seen;
    std::set<std::string> used;
    const json inputs = description_.value("inputs", json::array());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      shapes["in" + std::to_string(i)] = inputs[i].value("shape", std::vector<std::int64_t>());
    }
    const std::set<std::string> reductions{"softmax", "log_softmax", "sum", "mean",      "amax",
                                           "amin",    "max",         "min", "logsumexp", "prod"};
    // Other views of the same memory, and numbers.
    const std::set<std::string> nothing_done{
        "ListConstruct", "TupleConstruct", "Int",      "NumToTensor", "ScalarImplicit", "__getitem__", "alias",
        "chunk",         "detach",         "diagonal", "dim",         "expand",         "expand_as",   "flatten",
        "movedim",       "narrow",         "permute",  "reshape",     "select",         "size",        "slice",
        "split",         "squeeze",        "t",        "to",          "transpose",      "unbind",      "unflatten",
        "unsqueeze",     "view",           "view_as"};
    std::map<std::string, std::string> same;  // of these, those that were made before
    std::map<std::string, int> repeated;      // other kinds of operations, and how often
    const std::set<std::string> idempotent{"relu", "relu_", "abs", "sign", "floor", "round", "contiguous"};
    for (const json& op : graph) {
      const std::string kind = op.value("kind", "");
      std::vector<std::string> arguments = op.value("inputs", std::vector<std::string>());
      for (std::string& argument : arguments) {
        if (const auto found = same.find(argument); found != same.end()) argument = found->second;
      }
      const std::vector<std::string> outputs = op.value("outputs", std::vector<std::string>());
      for (const std::string& argument : arguments) used.insert(argument);
      const std::string short_name = OperationName(kind);
      std::string key = kind;
      for (const std::string& argument : arguments) key += "," + argument;
      const bool random =
          short_name.rfind("dropout", 0) == 0
              ? arguments.size() > 2 && arguments[2] == "true" && arguments[1] != "0" && arguments[1] != "0.0"
              : short_name.rfind("rand", 0) == 0 || short_name.rfind("bernoulli", 0) == 0;
      if (random) {
        Find("random", true, "forward draws random numbers (" + kind + ")",
             "take it out: no kernel can compute what is drawn (dropout: call self.eval() at the end of __init__)");
      }
      if (!arguments.empty() && arguments[0][0] != '[') {
        auto shape = shapes.find(arguments[0]);
        if (reductions.count(short_name) != 0 && arguments.size() > 1 && shape != shapes.end()) {
          // "[1]" or "1": the dimensions; all of size one means that nothing is reduced.
          const json dims = Constant(arguments[1]);
          std::vector<std::int64_t> list;
          if (dims.is_number_integer()) list.push_back(dims.get<std::int64_t>());
          if (dims.is_array() && !dims.empty() && dims[0].is_number_integer())
            list = dims.get<std::vector<std::int64_t>>();
          const auto rank = static_cast<std::int64_t>(shape->second.size());
          bool single = !list.empty();
          for (std::int64_t dim : list) {
            if (dim < 0) dim += rank;
            single = single && dim >= 0 && dim < rank && shape->second[static_cast<std::size_t>(dim)] == 1;
          }
          if (single) {
            Find("redundant", false,
                 kind + " is over a dimension of size 1, so it " +
                     (short_name == "softmax"       ? "gives ones"
                      : short_name == "log_softmax" ? "gives zeros"
                                                    : "changes nothing"),
                 "reduce over another dimension, or leave it out");
          }
        }
        if (idempotent.count(short_name) != 0 && kinds.count(arguments[0]) != 0 && kinds[arguments[0]] == kind) {
          Find("redundant", false, kind + " is applied to its own result, which changes nothing", "leave one out");
        }
      }
      if (auto [earlier, fresh] = seen.emplace(key, outputs.empty() ? "" : outputs[0]);
          !fresh && !arguments.empty() && !random) {
        bool data = false;
        for (const std::string& argument : arguments) data = data || shapes.count(argument) != 0;
        if (nothing_done.count(short_name) != 0) {
          if (outputs.size() == 1) same[outputs[0]] = earlier->second;
        } else if (data) {
          ++repeated[kind];
        }
      }
      const json types = op.value("output_types", json::array());
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        kinds[outputs[i]] = kind;
        if (i < types.size() && types[i].contains("shape")) {
          shapes[outputs[i]] = types[i]["shape"].get<std::vector<std::int64_t>>();
        }
      }
    }
    for (const auto& [kind, times] : repeated) {
      Find("redundant", false,
           kind + " is computed twice on the same values" + (times > 1 ? Text(", in %d places", times) : ""),
           times > 1 ? "compute each once" : "compute it once");
    }
    for (const json& output : description_.value("graph_outputs", json::array()))
      used.insert(output.get<std::string>());
    const auto parameters = reference_.Parameters();
    // One tensor under two names (tied weights) is used when either is.
    std::set<const void*> used_data;
    const std::vector<at::Tensor> live = reference_.LiveParameters();
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (used.count("p" + std::to_string(i)) != 0) used_data.insert(live[i].data_ptr());
    }
    std::string unused;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string& label = parameters[i].first;
      if (used.count("p" + std::to_string(i)) != 0 || (i < live.size() && used_data.count(live[i].data_ptr()) != 0) ||
          label.find("num_batches_tracked") != std::string::npos || label.find("running_") != std::string::npos) {
        continue;
      }
      unused += (unused.empty() ? "" : ", ") + label;
      unused_.insert(label);
    }
    if (!unused.empty()) {
      Find("redundant", false, "parameters that forward does not use: " + unused.substr(0, 300), "leave them out");
    }
  }

  // Parameters whose values say nothing: as they are built, y = x * weight + bias is y = x.
  void TrivialParameters() {
    constexpr std::size_t kNamed = 8;
    std::string names;
    std::size_t count = 0;
    for (const auto& [name, tensor] : reference_.Parameters()) {
      if (!tensor.is_floating_point() || tensor.numel() == 0 || unused_.count(name) != 0) continue;
      // In training mode a normalisation has them and does not read them.
      if (name.find("running_") != std::string::npos && !ReadsBuffers()) continue;
      const at::Tensor flat = tensor.reshape({-1}).to(at::kDouble);
      const double value = flat[0].item<double>();
      const bool alike = flat.eq(value).all().item<bool>();
      if (!alike || (tensor.numel() == 1 && value != 0 && value != 1)) continue;
      if (++count <= kNamed) names += (names.empty() ? "" : ", ") + name + Text(" (%.6g)", value);
    }
    if (count == 0) return;
    if (count > kNamed) names += Text(" and %zu more", count - kNamed);
    Find("trivial-parameters", false,
         (count == 1 ? "all elements of a parameter are alike as built: "
                     : "all elements of each of these parameters are alike as built: ") +
             names +
             "; a ModelNew that ignores them passes, and would be wrong for a trained module (native kernels get other "
             "values)",
         "draw them in __init__ (torch.nn.init.normal_, a running variance by uniform_(0.5, 2))");
  }

  // Tables that are taken as they are in float64, too: the rounding in them is no part of any tolerance.
  void OwnTables() {
    constexpr std::size_t kNamed = 8;
    const std::vector<std::string> tables = reference_.OwnTables();
    if (tables.empty()) return;
    std::string names;
    for (std::size_t i = 0; i < std::min(tables.size(), kNamed); ++i) names += (i == 0 ? "" : ", ") + tables[i];
    if (tables.size() > kNamed) names += Text(" and %zu more", tables.size() - kNamed);
    Find("own-tables", false,
         "candidates are not given what the model holds beside its parameters and buffers: " + names +
             "; they must make it, and one that makes it otherwise, be it more precisely, may be WRONG",
         "hand it to candidates (register_buffer without persistent=False), or make it in forward, where its rounding "
         "is known");
  }

  // Whether normalisations of the graph take their running statistics. Where the graph does not tell, it is assumed.
  bool ReadsBuffers() const {
    const json graph = description_.value("graph", json::array());
    for (const json& op : graph) {
      const std::string kind = op.value("kind", "");
      if (kind.find("batch_norm") == std::string::npos && kind.find("instance_norm") == std::string::npos) continue;
      const std::vector<std::string> arguments = op.value("inputs", std::vector<std::string>());
      return arguments.size() > 5 && arguments[5] == "false";  // training, or use_input_stats
    }
    return graph.empty();
  }

  void Size() {
    const double limit = ops_.cuda() ? kShortCuda : kShortCpu;
    if (problem_.reference_seconds < limit) {
      Find("too-short", false,
           Text("one call of the reference takes %.3g us; below %.3g us a time is mostly what it costs to ask for it",
                1e6 * problem_.reference_seconds, 1e6 * limit),
           "make the shapes larger, so that a call takes 20 us at least");
    }
    const auto free = static_cast<double>(ops_.free_bytes());
    const double mib = 1024.0 * 1024.0;
    // (How much there is of shapes that are held out is not told.)
    const std::string all = "inputs, parameters and outputs ",
                      has = most_held_out_ ? all + "of the largest shapes, which are held out, need"
                                           : all + Text("have %.0f MiB", most_bytes_ / mib);
    if (kSizesNeeded * most_bytes_ > free) {
      Find("memory", true,
           has + (most_held_out_
                      ? Text(" more than a part in %.0f of the %.0f MiB that are free, and an evaluation needs "
                             "as many times that",
                             kSizesNeeded, free / mib)
                      : Text("; an evaluation needs %.0f times that, and %.0f MiB are free", kSizesNeeded, free / mib)),
           "make the shapes smaller, or use a device with more memory");
    } else if (kSizesForDouble * most_bytes_ > free) {
      Find("memory", false,
           has +
               (most_held_out_
                    ? Text(" more than a part in %.0f of the %.0f MiB that are free", kSizesForDouble, free / mib)
                    : Text(" and %.0f MiB are free", free / mib)) +
               ": too little for a float64 evaluation, so outputs are compared with the reference as written, less "
               "strictly",
           "make the shapes smaller, or use a device with more memory");
    }
  }

  LoadedProblem& problem_;
  Reference& reference_;
  DeviceOps& ops_;
  const json& description_;
  Random secret_;
  struct Run first_, second_;
  std::set<std::size_t> varies_;                 // the outputs whose shape or type another draw has changed
  std::vector<std::vector<at::Tensor>> others_;  // of second_; those with few elements of more draws
  std::set<std::size_t> random_;                 // outputs that differ from run to run
  bool moves_ = false;                           // whether any output changes from draw to draw
  std::set<std::string> unused_;                 // parameters that the graph does not use
  double most_bytes_ = 0;                        // inputs, parameters and outputs of the largest shapes
  bool most_held_out_ = false;                   // whether these are held out
  json findings_ = json::array();
};

}  // namespace

std::vector<at::Tensor> Heads(const std::vector<at::Tensor>& outputs) {
  constexpr std::int64_t kLooked = 1 << 20;
  std::vector<at::Tensor> heads;
  for (const at::Tensor& output : outputs) {
    heads.push_back(output.numel() <= kLooked ? output.clone() : output.reshape({-1}).narrow(0, 0, kLooked).clone());
  }
  return heads;
}

int RunMore(Call* call, double each) {
  constexpr int kMost = 16;
  constexpr double kSeconds = 0.05;
  const auto begin = Clock::now();
  int runs = 0;
  while (runs < kMost && each < kSeconds / 2 && Since(begin) < kSeconds) {
    call->Run();
    ++runs;
  }
  return runs;
}

RunsApart RunsDiffer(const at::Tensor& first, const at::Tensor& second) {
  constexpr double kFractions = 1e-3, kEpsilons = 4, kIntegers = 0.05;
  if (first.sizes() != second.sizes() || first.scalar_type() != second.scalar_type()) return {1, true};
  if (first.numel() == 0 || first.equal(second)) return {};
  if (!Fractions(first)) {
    const double share = first.ne(second).to(at::kDouble).mean().item<double>();
    return {share, share > kIntegers};
  }
  const double scale = Rms(first), off = RmsApart(first, second), apart = scale > 0 ? off / scale : off;
  double epsilon = 0;  // the larger types' is far below
  if (first.scalar_type() == at::kHalf) epsilon = 0x1p-10;
  if (first.scalar_type() == at::kBFloat16) epsilon = 0x1p-7;
  return {apart, apart > std::max(kFractions, kEpsilons * epsilon)};
}

json CheckProblem(LoadedProblem& problem, DeviceOps& ops, const json& description) {
  return Checker(problem, ops, description).Run();
}

}  // namespace grove::judge
