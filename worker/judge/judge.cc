// The judge: one problem for life. Builds the reference, draws inputs, and judges the candidates that the worker
// connects it to. docs/protocol.md says what it speaks. main.cc starts it.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <torch/version.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/wire/places.h"
#include "worker/judge/arguments.h"
#include "worker/judge/continuity.h"
#include "worker/judge/evaluation.h"
#include "worker/judge/factors.h"
#include "worker/judge/fixed_inputs.h"
#include "worker/judge/in_double.h"
#include "worker/judge/indices.h"
#include "worker/judge/memory_watch.h"
#include "worker/judge/problem_check.h"
#include "worker/judge/profile_run.h"
#include "worker/judge/random.h"
#include "worker/judge/rare.h"
#include "worker/judge/rates.h"
#include "worker/judge/reckoned.h"
#include "worker/judge/tensor_type.h"
#include "worker/judge/trace.h"

namespace grove::judge {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Ends the process with one last message when the problem's own code does not come back: nothing else can stop it.
class Watchdog {
 public:
  Watchdog(double seconds, std::function<void()> on_expiry)
      : thread_([this, seconds, on_expiry = std::move(on_expiry)] {
          std::unique_lock lock(mutex_);
          if (!done_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return stopped_; })) on_expiry();
        }) {}
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    done_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool stopped_ = false;
  std::thread thread_;
};

std::string FirstLine(std::string text) {
  if (auto at = text.find('\n'); at != std::string::npos) text.resize(at);
  if (text.size() > 1000) text.resize(1000);
  return text;
}

// Evaluations, and those in float64, of which the shortest counts, and after how long there is none further.
constexpr int kDoubleRuns = 4, kReferenceRuns = 3;
constexpr double kMostDoubleSeconds = 1.5, kMostReferenceSeconds = 0.4;

class Judge {
 public:
  Judge(Arguments arguments, wire::Channel channel) : arguments_(std::move(arguments)), channel_(std::move(channel)) {
    cuda_ = arguments_.device != "cpu";
    index_ = arguments_.device.size() > 5 ? std::atoi(arguments_.device.c_str() + 5) : 0;
  }

  int Run() {
    try {
      ops_ =
          cuda_ ? MakeCudaOps(index_) : MakeCpuOps(arguments_.threads, arguments_.processors, arguments_.memory_bytes);
      if (cuda_) at::zeros({1}, at::device(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index_))));
      if (arguments_.python_ahead) FromPythonLibrary<StartPythonFunction>(kStartPythonEntry)(arguments_.python);
    } catch (const std::exception& error) {
      Say({{"type", "failed"}, {"id", 0}, {"kind", "infrastructure"}, {"message", FirstLine(error.what())}});
      return 1;
    }
    json features = json::array({"eager"});
    if (TORCH_VERSION_MAJOR >= 2) features.push_back("compile");
    device_ = ops_->Info();
    device_["torch"] = TORCH_VERSION;
    Say({{"type", "hello"}, {"torch", TORCH_VERSION}, {"device", device_}, {"features", features}});
    for (;;) {
      auto received = channel_.Receive(std::chrono::hours(24));
      if (received.status == wire::ReceiveStatus::kTimeout) continue;
      if (!received.ok()) return received.status == wire::ReceiveStatus::kClosed ? 0 : 1;
      const json& body = received.message.body;
      const std::string type = body.value("type", "");
      const json id = body.value("id", json(0));
      if (type == "load") {
        Load(id, body);
      } else if (type == "evaluate") {
        EvaluateOne(id, body, std::move(received.message.fds));
      } else if (type == "profile") {
        Profile(id, body, std::move(received.message.fds));
      } else if (type == "rates") {
        Rates(id, body);
      } else if (type == "quit") {
        return 0;
      } else {
        Failed(id, "infrastructure", "unknown frame \"" + type + "\"", "");
      }
    }
  }

 private:
  void Say(const json& body) {
    std::lock_guard lock(say_);
    if (auto error = channel_.Send(body)) {
      std::fprintf(stderr, "grove-judge: %s\n", error->c_str());
      std::_Exit(1);  // without a worker there is nobody to judge for
    }
  }

  void Failed(const json& id, const char* kind, const std::string& message, const std::string& detail) {
    std::string text = detail.size() > (1 << 16) ? detail.substr(detail.size() - (1 << 16)) : detail;
    Say({{"type", "failed"}, {"id", id}, {"kind", kind}, {"message", message}, {"detail", text}});
  }

  // A function of the library that speaks to the interpreter; a native problem's judge never loads it.
  template <typename Function>
  Function FromPythonLibrary(const char* name) {
    if (::dlsym(RTLD_DEFAULT, "Py_IsInitialized") == nullptr) {
      throw std::runtime_error(arguments_.python.empty() ? "grove-judge runs in no Python; name one with --python"
                                                         : "grove-judge could not start --python " + arguments_.python);
    }
    Dl_info here{};  // it lies beside the library that this is in
    ::dladdr(reinterpret_cast<const void*>(&FirstLine), &here);
    const auto path = std::filesystem::path(here.dli_fname).parent_path() / "libgrove-judge-python.so";
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(std::string("Python problems are not to be had: ") + ::dlerror());
    auto function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr) throw std::runtime_error("libgrove-judge-python.so does not fit this grove-judge");
    return function;
  }

  std::unique_ptr<Reference> MakeReference(const json& problem) {
    ReferenceOptions options;
    options.name = problem.value("name", "problem");
    options.source = problem.value("source", "");
    // Editors on Windows begin a text with it; Python takes it off a file, but not off a string.
    if (options.source.rfind("\xEF\xBB\xBF", 0) == 0) options.source.erase(0, 3);
    options.cuda = cuda_;
    options.device_index = index_;
    options.python = arguments_.python;
    const json format = problem.value("format", json("PROBLEM_FORMAT_KERNELBENCH"));
    if (options.source.find('\0') != std::string::npos) {
      throw ProblemError(options.name + " holds a NUL byte, so it is not a text file; name the problem's source");
    }
    if (format == "PROBLEM_FORMAT_NATIVE" || format == 2) return MakeNativeReference(options);
    if (format != "PROBLEM_FORMAT_KERNELBENCH" && format != 1) {
      throw ProblemError("unknown problem format " + format.dump() +
                         "; .py (KernelBench) and .toml (native) are known");
    }
    return std::unique_ptr<Reference>(FromPythonLibrary<MakePythonReference>(kPythonEntry)(options));
  }

  // Two runs on the same inputs must agree: what a reference draws itself (dropout in training mode) nobody can
  // compute, and what it keeps from call to call would make an honest kernel wrong.
  static bool Repeats(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second) {
    bool same = first.size() == second.size();
    for (std::size_t i = 0; i < first.size() && same; ++i) same = !RunsDiffer(first[i], Heads({second[i]})[0]).refused;
    return same;
  }

  static void CheckRepeats(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second) {
    if (Repeats(first, second)) return;
    throw ProblemError(
        "the reference gives different results when it is run twice on the same inputs, so there is nothing to "
        "compare with: it is random (dropout in training mode?), keeps state between calls, or writes to its inputs. "
        "Take that out of the problem, or call self.eval() at the end of __init__");
  }

  // What candidates are given memory for, and what they are compared in, is the same for every draw.
  static void CheckShapes(const std::vector<Leaf>& one, const std::vector<Leaf>& other) {
    bool same = one.size() == other.size();
    for (std::size_t i = 0; i < one.size() && same; ++i) {
      same = one[i].scalar == other[i].scalar &&
             (one[i].scalar || (one[i].tensor.sizes() == other[i].tensor.sizes() &&
                                one[i].tensor.scalar_type() == other[i].tensor.scalar_type()));
    }
    if (same) return;
    throw ProblemError(
        "get_inputs() gives tensors of other sizes or types on each call, so a candidate cannot be given memory for "
        "them; make their shapes the same each time (for several shapes, write a native problem with [[shapes]])");
  }

  // A candidate is told its numbers once.
  static void CheckNumbers(const std::vector<Leaf>& one, const std::vector<Leaf>& other) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      const Leaf &a = one[i], &b = other[i];
      const bool same = a.dtype == b.dtype && a.integer == b.integer &&
                        (a.number == b.number || (std::isnan(a.number) && std::isnan(b.number)));
      if (!a.scalar || same) continue;
      throw ProblemError("get_inputs() gives another number for its input " + a.name +
                         " on each call, and candidates are told numbers once; make it the same each time, or a tensor "
                         "(torch.rand(()))");
    }
  }

  static void CheckNotEmpty(const std::vector<at::Tensor>& outputs, const std::string& shapes = "") {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].numel() > 0) continue;
      throw ProblemError((outputs.size() == 1 ? "forward returns a tensor"
                                              : "forward returns, as output " + std::to_string(i) + ", a tensor") +
                         " without elements" + shapes +
                         ", so there is nothing to compare; make the problem compute something");
    }
  }

  Watchdog WatchCall(const json& id, const std::string& shapes) {
    const double limit = arguments_.call_seconds;
    return Watchdog(limit, [this, id, limit, shapes] {
      Failed(id, "problem",
             "one call of forward" + shapes + " took longer than " + std::to_string(static_cast<int>(limit)) +
                 " s; make the problem smaller or look for an endless loop in it",
             "");
      std::_Exit(1);
    });
  }

  // What candidates are judged by besides must be computable, too.
  void CheckFurtherShapes(Reference* reference, const json& id) {
    for (std::size_t set = 1; set < reference->ShapeSets(); ++set) {
      const std::string shapes = " for the further shapes number " + std::to_string(set) +
                                 " ([[shapes]], then [[held_out]], as they stand in the file)";
      reference->SelectShapeSet(set);
      try {
        auto call = reference->Prepare(reference->Draw(SecretSeed()), Mode::kEager);
        const Watchdog slow = WatchCall(id, shapes);
        call->Run();
        CheckNotEmpty(call->Outputs(), shapes);
        ops_->Synchronize();
      } catch (const ProblemError& error) {
        const std::string text = error.what();
        if (text.find(shapes) != std::string::npos) throw;
        throw ProblemError(text + ";" + shapes, error.detail);
      }
    }
    reference->SelectShapeSet(0);
  }

  // Torch counts the writes to every tensor.
  static std::vector<std::uint32_t> Versions(const std::vector<Leaf>& leaves) {
    std::vector<std::uint32_t> versions;
    for (const Leaf& leaf : leaves)
      versions.push_back(leaf.scalar ? 0 : static_cast<std::uint32_t>(leaf.tensor._version()));
    return versions;
  }

  // What the reference leaves of its inputs would be what candidates are given.
  static void CheckInputsKept(const std::vector<Leaf>& used, const std::vector<Leaf>& fresh) {
    for (std::size_t i = 0; i < used.size() && i < fresh.size(); ++i) {
      if (used[i].scalar || used[i].tensor.equal(fresh[i].tensor)) continue;
      throw ProblemError("the reference changes its input " + used[i].name +
                         ", so a kernel would be given the changed values; compute out of place (no inplace=True on an "
                         "input, no x += ...)");
    }
  }

  static json Leaves(const std::vector<Leaf>& leaves) {
    json list = json::array();
    for (const Leaf& leaf : leaves) {
      json item{{"dtype", leaf.dtype}, {"shape", json::array()}, {"name", leaf.name}};
      if (leaf.scalar) {
        item["scalar"] = true;
        item["value"] = leaf.dtype == "float64" ? leaf.number : static_cast<double>(leaf.integer);
        if (!std::isfinite(item["value"].get<double>())) item["value"] = "NaN";
      } else {
        item["dtype"] = ShortType(leaf.tensor.scalar_type());
        item["shape"] = leaf.tensor.sizes().vec();
      }
      list.push_back(item);
    }
    return list;
  }

  void Load(const json& id, const json& body) {
    if (problem_.reference != nullptr) {
      Failed(id, "infrastructure", "this judge has its problem already", "");
      return;
    }
    const auto settings_limit = arguments_.load_seconds;
    try {
      Watchdog watchdog(settings_limit, [this, &id, settings_limit] {
        Failed(id, "problem",
               "the problem took longer than " + std::to_string(static_cast<int>(settings_limit)) +
                   " s to load and run once; make it smaller or look for an endless loop in it",
               "");
        std::_Exit(1);
      });
      c10::NoGradGuard no_grad;
      auto tell = [this, &id](const char* what) {
        Say({{"type", "progress"}, {"id", id}, {"stage", "load"}, {"detail", what}});
      };
      // A problem that is itself judged is described whatever is wrong with it, and not kept.
      const bool check = body.value("check", false);
      problem_.large_bytes = body.value("large_bytes", kLargeBytes);
      problem_.reference = MakeReference(body.at("problem"));
      Reference& reference = *problem_.reference;
      auto begin = Clock::now();
      auto since = [&begin] {
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        begin = Clock::now();
        return seconds;
      };
      tell("get_inputs()");
      std::vector<Leaf> leaves = reference.Draw(SecretSeed());
      const json structure = reference.Structure();
      ops_->Synchronize();
      since();
      const std::uint64_t seed = SecretSeed();
      std::vector<Leaf> earlier = std::exchange(leaves, reference.Draw(seed));
      ops_->Synchronize();
      problem_.draw_seconds = since();
      for (int again = 1; again < kReferenceRuns && problem_.draw_seconds < kMostReferenceSeconds; ++again) {
        reference.Draw(SecretSeed());
        ops_->Synchronize();
        problem_.draw_seconds = std::min(problem_.draw_seconds, since());
      }
      if (!check) {
        CheckShapes(earlier, leaves);
        CheckNumbers(earlier, leaves);
        if (structure != reference.Structure()) {
          throw ProblemError(
              "get_inputs() gives other strings, or None in other places, on each call, and candidates "
              "are told them once; make them the same each time");
        }
      }
      const std::vector<std::uint32_t> versions = Versions(leaves);
      json inputs = Leaves(leaves), parameters = json::array(), outputs = json::array();
      std::int64_t bytes = 0;
      problem_.input_shapes.clear();
      for (const Leaf& leaf : leaves) {
        if (leaf.scalar) continue;
        problem_.input_shapes.push_back(leaf.tensor.sizes().vec());
        bytes += static_cast<std::int64_t>(leaf.tensor.nbytes());
      }
      for (const auto& [name, tensor] : reference.Parameters()) {
        parameters.push_back(
            {{"dtype", ShortType(tensor.scalar_type())}, {"shape", tensor.sizes().vec()}, {"name", name}});
        bytes += static_cast<std::int64_t>(tensor.nbytes());
      }
      auto call = reference.Prepare(leaves, Mode::kEager);
      tell("the first call of forward");
      std::vector<at::Tensor> results;
      {
        const Watchdog slow = WatchCall(id, "");
        call->Run();
        results = call->Outputs();
        ops_->Synchronize();
      }
      if (!check) CheckNotEmpty(results);
      for (const at::Tensor& output : results) {
        outputs.push_back({{"dtype", ShortType(output.scalar_type())}, {"shape", output.sizes().vec()}});
        bytes += static_cast<std::int64_t>(output.nbytes());
      }
      ops_->Synchronize();
      // What it returns may be its own memory, which the next run writes to.
      results = Heads(results);
      problem_.reference_seconds = ops_->Time([&] { call->Run(); });
      for (int again = 1; again < kReferenceRuns && problem_.reference_seconds < kMostReferenceSeconds; ++again) {
        problem_.reference_seconds = std::min(problem_.reference_seconds, ops_->Time([&] { call->Run(); }));
      }
      if (!check) {
        CheckRepeats(results, call->Outputs());
        if (RunMore(call.get(), problem_.reference_seconds) > 0) CheckRepeats(results, call->Outputs());
        // Nor may state that other inputs leave: candidates are not run as often, and on as many others, as it is.
        reference.Prepare(earlier, Mode::kEager)->Run();
        call->Run();
        if (!Repeats(results, call->Outputs())) {
          throw ProblemError(
              "the reference gives different results on the same inputs when it was run on others in between: it keeps "
              "state (a cache, a buffer that forward writes to) that its results depend on. Make that an input, and "
              "what becomes of it an output");
        }
        if (Versions(leaves) != versions) CheckInputsKept(leaves, reference.Draw(seed));
        CheckFurtherShapes(&reference, id);
      }
      begin = Clock::now();
      tell("forward in float64");
      try {
        // The least of several: the first one loads what the others use.
        double all = 0, least = 0;
        for (int runs = 0; runs < kDoubleRuns && all < kMostDoubleSeconds; ++runs) {
          auto exact = reference.Prepare(leaves, Mode::kDouble);
          exact->Run();
          ops_->Synchronize();
          const double seconds = since();
          least = runs == 0 ? seconds : std::min(least, seconds);
          all += seconds;
        }
        problem_.double_seconds = least;
      } catch (const std::exception&) {
        problem_.double_seconds = -1;  // fixed types inside, or no memory: compared without it
      }
      json description{{"inputs", inputs},
                       {"parameters", parameters},
                       {"outputs", outputs},
                       {"memory_bytes", bytes},
                       {"reference_seconds", problem_.reference_seconds},
                       {"device", device_}};
      problem_.bytes = static_cast<std::size_t>(bytes);
      TraceResult trace = Trace(reference, leaves);
      problem_.reduction = trace.reduction;
      problem_.reductions = trace.reductions;
      problem_.continuous = Continuous(trace.graph);
      problem_.chooses = Chooses(trace.graph);
      if (!trace.partial) {
        problem_.exactness = ExactnessOf(trace.graph, trace.outputs, description["inputs"], description["parameters"]);
        const auto factors = [&](FactorTypes types) {
          return FactorsOf(trace.graph, trace.outputs, description["inputs"], description["parameters"], types);
        };
        problem_.factors = factors(FactorTypes::kHalf);
        problem_.float_factors = factors(FactorTypes::kFloat32);
        problem_.reckoned = Reckoned(trace.graph, description["inputs"]);
      }
      if (!trace.left) {
        problem_.indices = IndicesOf(trace.graph, description["inputs"], description["parameters"]);
        if (!trace.partial) {
          const DoubleWork work =
              DoubleWorkOf(trace.graph, trace.outputs, description["inputs"], description["parameters"]);
          problem_.in_double = work == DoubleWork::kThroughout;
          problem_.widened = work == DoubleWork::kWidened;
          if (!problem_.in_double) {
            problem_.in_double_first = DoubleInputs(trace.graph, trace.outputs, description["inputs"]);
          }
        }
      }
      problem_.rare = RareValuesOf(trace.graph, description["inputs"]);
      // A number that was taken out of a tensor is no bound.
      if (trace.left) problem_.rare.inputs.clear();
      if (!check) problem_.fixed = FixedInputs(earlier, leaves, trace.partial ? json() : trace.graph);
      description["graph"] = trace.graph;
      description["graph_outputs"] = trace.outputs;
      if (!trace.error.empty()) description["graph_error"] = trace.error;
      if (check) {
        tell("looking for faults");
        earlier.clear();
        leaves.clear();
        call.reset();
        description["findings"] = CheckProblem(problem_, *ops_, description);
        problem_ = {};
      }
      Say({{"type", "loaded"}, {"id", id}, {"description", description}});
    } catch (const ProblemError& error) {
      problem_ = {};
      const std::string others = TellsOfMemory(error) ? MemoryOfOthers(*ops_) : "";
      Failed(id, others.empty() ? "problem" : "infrastructure", others + error.what(), error.detail);
    } catch (const std::exception& error) {
      problem_ = {};
      const std::string text = error.what();
      const bool memory = TellsOfMemory(error);
      const std::string others = memory ? MemoryOfOthers(*ops_) : "";
      Failed(id, memory && others.empty() ? "problem" : "infrastructure",
             others + (memory ? "the problem does not fit in memory: " : "") + FirstLine(text), text);
    }
  }

  void EvaluateOne(const json& id, const json& body, std::vector<wire::UniqueFd> fds) {
    if (problem_.reference == nullptr) return Failed(id, "infrastructure", "no problem was loaded", "");
    const bool rival = body.contains("rival");
    // Of those of them whose memory may be read two descriptors for that, behind both.
    const auto reads = [&body](const char* who) { return body.contains(who) && body.at(who).value("memory", false); };
    const std::size_t wanted = (rival ? 2u : 1u) + (reads("candidate") ? 2 : 0) + (reads("rival") ? 2 : 0);
    if (fds.size() != wanted) return Failed(id, "infrastructure", "an evaluation without its candidate", "");
    try {
      const std::string kind = body.at("candidate").value("kind", "native");
      EvaluationSettings settings = ParseSettings(body.value("options", json::object()), kind == "python");
      const bool can_hold = body.value("can_hold", false);
      if (can_hold) {
        settings.hold = [this, &id](bool held, int on, const std::function<void()>& meanwhile) {
          return HoldStill(id, "candidate", held, on, meanwhile);
        };
      }
      if (body.value("can_watch", false)) settings.watch = [this, &id](bool on) { return Watch(id, on); };
      if (rival) {
        settings.rival = true;
        settings.rival_python = body.at("rival").value("kind", "native") == "python";
        if (can_hold) {
          settings.hold_rival = [this, &id](bool held, int on, const std::function<void()>& meanwhile) {
            return HoldStill(id, "rival", held, on, meanwhile);
          };
        }
        settings.settle_width = kRivalSettleWidth;
      }
      auto progress = [this, &id](const std::string& stage, const std::string& detail) {
        Say({{"type", "progress"}, {"id", id}, {"stage", stage}, {"detail", detail}});
      };
      std::size_t next = rival ? 2 : 1;
      const auto memory = [&fds, &next] {
        next += 2;
        return std::make_shared<CandidateMemory>(std::move(fds[next - 2]), std::move(fds[next - 1]));
      };
      if (reads("candidate")) settings.memory = memory();
      if (reads("rival")) settings.rival_memory = memory();
      std::optional<wire::Channel> other;
      if (rival) other.emplace(std::move(fds[1]));
      EvaluationOutcome outcome =
          Evaluate(problem_, *ops_, wire::Channel(std::move(fds[0])), std::move(other), settings, progress);
      outcome.result["device"] = device_;
      Say({{"type", "result"},
           {"id", id},
           {"result", outcome.result},
           {"ended", outcome.candidate_gone ? "candidate_gone" : ""},
           {"rival_ended", outcome.rival_gone ? "candidate_gone" : ""},
           {"quiet", outcome.candidate_quiet},
           {"rival_quiet", outcome.rival_quiet}});
    } catch (const ProblemError& error) {
      Failed(id, "problem", error.what(), error.detail);
    } catch (const std::exception& error) {
      Failed(id, "infrastructure", FirstLine(error.what()), error.what());
    }
  }

  void Profile(const json& id, const json& body, std::vector<wire::UniqueFd> fds) {
    if (problem_.reference == nullptr) return Failed(id, "infrastructure", "no problem was loaded", "");
    if (fds.size() != 1) return Failed(id, "infrastructure", "a profile without its candidate", "");
    try {
      const bool python = body.at("candidate").value("kind", "native") == "python";
      const std::string failure =
          RunForProfiler(problem_, *ops_, wire::Channel(std::move(fds[0])), python, body.value("max_seconds", 60.0));
      Say({{"type", "profiled"}, {"id", id}, {"failure", failure}});
    } catch (const ProblemError& error) {
      Failed(id, "problem", error.what(), error.detail);
    } catch (const std::exception& error) {
      Failed(id, "infrastructure", FirstLine(error.what()), error.what());
    }
  }

  void Rates(const json& id, const json& body) {
    try {
      c10::NoGradGuard no_grad;
      const json found =
          MeasureRates(ops_.get(), index_, body.value("max_seconds", 20.0), [this, &id](const std::string& what) {
            Say({{"type", "progress"}, {"id", id}, {"stage", "rates"}, {"detail", what}});
          });
      Say({{"type", "rates"}, {"id", id}, {"calibration", found}});
    } catch (const std::exception& error) {
      Failed(id, "infrastructure", FirstLine(error.what()), error.what());
    }
  }

  // The worker holds or lets go one of the candidates of evaluation `id`. Only holding is answered.
  Held HoldStill(const json& id, const char* who, bool held, int processor, const std::function<void()>& meanwhile) {
    json request{{"type", "hold"}, {"id", id}, {"who", who}, {"held", held}};
    if (processor != kSameProcessor) request["processor"] = processor;
    Say(request);
    std::exception_ptr failed;  // the answer comes all the same
    try {
      if (meanwhile) meanwhile();
    } catch (...) {
      failed = std::current_exception();
    }
    std::optional<wire::ReceiveResult> answer;
    if (held) answer = channel_.Receive(std::chrono::seconds(10));
    if (failed) std::rethrow_exception(failed);
    if (!held) return {.ok = true};
    const wire::ReceiveResult& received = *answer;
    if (!received.ok() || received.message.body.value("type", "") != "held") {
      throw std::runtime_error("the worker did not hold the candidate: " + received.error);
    }
    const json& body = received.message.body;
    const auto moment = [&body](const char* name) {
      return Clock::time_point(std::chrono::nanoseconds(body.value(name, std::int64_t{0})));
    };
    return {body.value("ok", false), body.value("placed", true), moment("let_go_ns"), moment("stood_ns")};
  }

  // The worker begins to look at what the candidate of evaluation `id` runs, or ends it; then whether it saw enough.
  bool Watch(const json& id, bool on) {
    Say({{"type", "watch"}, {"id", id}, {"on", on}});
    auto received = channel_.Receive(std::chrono::seconds(30));
    if (!received.ok() || received.message.body.value("type", "") != "watched") {
      throw std::runtime_error("the worker did not watch the candidate: " + received.error);
    }
    return received.message.body.value("enough", false);
  }

  Arguments arguments_;
  wire::Channel channel_;
  std::mutex say_;
  bool cuda_ = false;
  int index_ = 0;
  std::unique_ptr<DeviceOps> ops_;
  json device_;
  LoadedProblem problem_;
};

int Main(int argc, char** argv) {
  Arguments arguments = ParseArguments(argc, argv);
  ::prctl(PR_SET_NAME, "grove-judge");  // for who looks at what a machine does; it would be "python3"
  // What Python has made of signals: the judge ends by them, as any program does.
  struct sigaction interrupt {};
  if (::sigaction(SIGINT, nullptr, &interrupt) == 0 && interrupt.sa_handler != SIG_IGN) ::signal(SIGINT, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  const std::vector<int> processors = wire::ProcessorsOf(std::getenv(wire::kJudgePlaces));
  if (arguments.device == "cpu" && !wire::JudgePlaces(arguments.threads, processors).empty()) {
    arguments.processors = processors;
    wire::FreeThreads(processors);
  }
  // Memory that the reference gives back is kept: otherwise each of its outputs is paged in anew while it is timed, and
  // the candidate, whose outputs are given to it, would look better than it is.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
  at::set_num_threads(arguments.threads);
  ::fcntl(arguments.fd, F_SETFD, FD_CLOEXEC);
  return Judge(arguments, wire::Channel(wire::UniqueFd(arguments.fd))).Run();
}

}  // namespace
}  // namespace grove::judge

extern "C" __attribute__((visibility("default"))) void grove_judge_main(int argc, char** argv) {
  const int code = grove::judge::Main(argc, argv);
  // Not through the destructors of an interpreter and of CUDA, whose order is nobody's.
  std::fflush(nullptr);
  std::_Exit(code);
}
