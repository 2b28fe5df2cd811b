// grove-candidate: loads one built kernel, maps the memory it is given, runs it when told. Untrusted once the kernel is
// loaded: nothing that this process says afterwards is believed, and nothing worth stealing ever comes here.
#include <dlfcn.h>
#include <fcntl.h>
#include <getopt.h>
#include <grove/kernel.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/wire/channel.h"
#include "common/wire/dtype.h"
#include "common/wire/places.h"
#include "common/wire/steps.h"
#include "worker/candidate/device.h"

namespace grove::candidate {
namespace {

using nlohmann::json;
using Kernel = int (*)(const grove_args*);

constexpr std::chrono::hours kWait{24};  // the worker ends this process, not a timeout
constexpr std::size_t kMaxRunSlots = 4096;

struct Arguments {
  int fd = 3;
  std::string device = "cpu";
  int threads = 0;
  bool self_test = false;
};

struct Failure {
  std::string stage, kind, message;
};

// Tensors of one slot in the form that the kernel takes. Addresses stay valid: built once, never resized afterwards.
struct Slot {
  std::vector<std::vector<std::int64_t>> shapes, strides;
  std::vector<std::unique_ptr<std::uint64_t[]>> scalars;
  std::vector<DLTensor> inputs, outputs;
  void *first_input = nullptr, *first_output = nullptr;  // that are tensors: the others stand behind them
};

class Program {
 public:
  Program(wire::Channel channel, std::unique_ptr<Device> device, int threads)
      : channel_(std::move(channel)), device_(std::move(device)), threads_(threads) {}

  int Run() {
    try {
      Serve();
      return 0;
    } catch (const Failure& failure) {
      channel_.Send({{"type", "fail"},
                     {"stage", failure.stage},
                     {"kind", failure.kind},
                     {"message", failure.message.substr(0, 8192)}});
      return 1;
    } catch (const std::exception& error) {
      channel_.Send({{"type", "fail"}, {"stage", "open"}, {"kind", "exception"}, {"message", error.what()}});
      return 1;
    }
  }

 private:
  void Serve() {
    Say({{"type", "hello"}, {"pid_ready", true}});
    for (;;) {
      wire::ReceiveResult received = channel_.Receive(kWait);
      if (received.status == wire::ReceiveStatus::kClosed) return;
      if (!received.ok()) throw Failure{"open", "exception", received.error};
      json& body = received.message.body;
      const std::string type = body.at("type").get<std::string>();
      if (type == "program") {
        if (received.message.fds.size() != 1) {
          throw Failure{"load", "load_error", "the program came without its object"};
        }
        entry_ = body.value("entry", "grove_kernel");
        object_ = std::move(received.message.fds[0]);
      } else if (type == "regions") {
        Map(body, received.message.fds);
        Say({{"type", "ok"}});
      } else if (type == "steps") {
        MapSteps(body, received.message.fds);
        Say({{"type", "ok"}});
      } else if (type == "open") {
        Open(body);
        Say({{"type", "opened"}});
      } else if (type == "run") {
        RunSlots(body);
      } else if (type == "close") {
        return;
      } else {
        throw Failure{"open", "exception", "unknown frame \"" + type + "\""};
      }
    }
  }

  void Say(const json& body) {
    if (auto error = channel_.Send(body)) throw std::runtime_error(*error);
  }

  // Not before `open`: until then no code but our own has run here, and the judge can learn from this process what it
  // costs to ask it (docs/timing.md).
  void Load() {
    device_->EndPractice();
    const wire::UniqueFd file = std::move(object_);
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    void* object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) {
      const char* why = ::dlerror();
      std::string message = why != nullptr ? why : "dlopen failed";
      if (auto at = message.find(path); at == 0) message = "the kernel's object" + message.substr(path.size());
      if (message.find("undefined symbol") != std::string::npos) {
        message +=
            " (a native candidate is linked with the compiler's own runtime alone: functions of cuBLAS or of another "
            "library are not there, unless it opens that by dlopen)";
      }
      throw Failure{"load", "load_error", message};
    }
    kernel_ = reinterpret_cast<Kernel>(::dlsym(object, entry_.c_str()));
    if (kernel_ == nullptr) {
      throw Failure{
          "load", "entry_missing",
          "the kernel has no function " + entry_ + "; define it with GROVE_KERNEL(args) from <grove/kernel.h>"};
    }
  }

  void Map(const json& body, const std::vector<wire::UniqueFd>& fds) {
    const std::size_t first = body.at("first").get<std::size_t>();
    const json& list = body.at("regions");
    if (list.size() != fds.size() || first != regions_.size()) {
      throw Failure{"open", "exception", "regions out of order"};
    }
    for (std::size_t i = 0; i < fds.size(); ++i) {
      const std::size_t bytes = list[i].at("bytes").get<std::size_t>();
      std::string error;
      void* at = device_->Map(fds[i].get(), bytes, &error);
      if (at == nullptr) {
        throw Failure{"open", device_->Where().device_type == 2 ? "cuda_error" : "exception",
                      "mapping " + std::to_string(bytes) + " bytes: " + error};
      }
      regions_.push_back({static_cast<char*>(at), bytes});
    }
  }

  // Memory of the host for runs in steps. On a GPU there are no inputs and outputs in it.
  void MapSteps(const json& body, const std::vector<wire::UniqueFd>& fds) {
    const std::size_t bytes = body.at("bytes").get<std::size_t>();
    steps_.inputs = body.at("inputs").get<std::size_t>();
    steps_.outputs = body.at("outputs").get<std::size_t>();
    if (fds.size() != 1 || steps_.inputs > bytes || wire::StepsOutputs(steps_.inputs) > bytes ||
        steps_.outputs > bytes - wire::StepsOutputs(steps_.inputs)) {
      throw Failure{"open", "exception", "memory for steps that is too small"};
    }
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fds[0].get(), 0);
    if (at == MAP_FAILED) throw Failure{"open", "exception", "mapping the memory for steps failed"};
    steps_.at = static_cast<char*>(at);
  }

  DLTensor Tensor(const json& spec, Slot* slot) {
    auto type = wire::FindDType(spec.at("dtype").get<std::string>());
    if (!type) throw Failure{"open", "exception", "unknown dtype"};
    DLTensor tensor{};
    tensor.dtype = {type->dlpack_code, type->bits, 1};
    std::vector<std::int64_t> shape;
    if (auto scalar = spec.find("scalar"); scalar != spec.end()) {
      auto value = std::make_unique<std::uint64_t[]>(1);
      if (type->kind == wire::DTypeKind::kBool) {
        std::uint8_t b = scalar->get<bool>() ? 1 : 0;
        std::memcpy(value.get(), &b, sizeof b);
      } else if (type->kind == wire::DTypeKind::kInt) {
        std::int64_t n = scalar->get<std::int64_t>();
        std::memcpy(value.get(), &n, sizeof n);
      } else {
        double d =
            scalar->is_string() ? std::strtod(scalar->get<std::string>().c_str(), nullptr) : scalar->get<double>();
        std::memcpy(value.get(), &d, sizeof d);
      }
      tensor.data = value.get();
      tensor.device = {1, 0};
      slot->scalars.push_back(std::move(value));
    } else {
      shape = spec.at("shape").get<std::vector<std::int64_t>>();
      const std::size_t region = spec.at("region").get<std::size_t>();
      const std::size_t offset = spec.at("offset").get<std::size_t>();
      auto count = wire::CountElements(shape);
      if (!count || region >= regions_.size() || offset > regions_[region].bytes ||
          static_cast<std::uint64_t>(*count) > (regions_[region].bytes - offset) / type->bytes()) {
        throw Failure{"open", "exception", "a tensor outside its region"};
      }
      tensor.data = regions_[region].at + offset;
      tensor.device = device_->Where();
    }
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      strides[i] = step;
      step *= shape[i] > 1 ? shape[i] : 1;
    }
    tensor.ndim = static_cast<std::int32_t>(shape.size());
    slot->shapes.push_back(std::move(shape));
    slot->strides.push_back(std::move(strides));
    tensor.shape = slot->shapes.back().data();
    tensor.strides = slot->strides.back().data();
    return tensor;
  }

  void Open(const json& body) {
    if (object_.valid()) Load();
    if (kernel_ == nullptr) throw Failure{"load", "load_error", "no program came"};
    slots_.clear();
    const json& params = body.at("params");
    for (const json& spec : body.at("slots")) {
      auto slot = std::make_unique<Slot>();
      const json& inputs = spec.at("inputs");
      const json& outputs = spec.at("outputs");
      for (const json& input : inputs) slot->inputs.push_back(Tensor(input, slot.get()));
      for (const json& param : params) slot->inputs.push_back(Tensor(param, slot.get()));
      for (const json& output : outputs) slot->outputs.push_back(Tensor(output, slot.get()));
      for (std::size_t i = inputs.size(); i-- > 0;) {
        if (inputs[i].find("scalar") == inputs[i].end()) slot->first_input = slot->inputs[i].data;
      }
      if (!slot->outputs.empty()) slot->first_output = slot->outputs[0].data;
      slots_.push_back(std::move(slot));
    }
  }

  // As RunSlots, with a program of our own (docs/timing.md).
  void Practise(std::size_t calls) {
    if (kernel_ != nullptr || calls > kMaxRunSlots) throw Failure{"run", "exception", "no time to practise"};
    Require(device_->Prepare(calls));
    for (std::size_t i = 0; i < calls; ++i) {
      Require(device_->Begin(i));
      Require(device_->Practice());
      Require(device_->End(i));
    }
    std::vector<std::int64_t> times;
    Require(device_->Finish(&times));
    Answer(times);
  }

  // Calls that get their inputs one by one, each when the one before has given its outputs.
  void RunInSteps(const std::vector<std::size_t>& order) {
    if (steps_.at == nullptr) throw Failure{"run", "exception", "no memory for steps"};
    Require(device_->Prepare(order.size()));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Slot& slot = *slots_.at(order[i]);
      Step(i, slot.first_input, slot.first_output, [&] { Call(slot, i); });
    }
    std::vector<std::int64_t> times;
    Require(device_->Finish(&times));
    Answer(times);
  }

  // The same with an empty kernel in the place of a call. `slots`: for each step the places of one slot's inputs,
  // [region, offset], and of each output.
  void PractiseSteps(std::size_t calls, const json& slots) {
    if (kernel_ != nullptr || steps_.at == nullptr || calls > kMaxRunSlots || slots.size() != calls) {
      throw Failure{"run", "exception", "no time to practise"};
    }
    const auto place = [&](const json& first, std::size_t bytes) -> char* {
      const Region& region = regions_.at(first.at(0).get<std::size_t>());
      const std::size_t offset = first.at(1).get<std::size_t>();
      if (offset > region.bytes || bytes > region.bytes - offset) {
        throw Failure{"run", "exception", "a tensor outside its region"};
      }
      return region.at + offset;
    };
    std::vector<std::pair<char*, char*>> at;
    for (const json& slot : slots) {
      at.emplace_back(steps_.inputs > 0 ? place(slot.at("inputs"), steps_.inputs) : nullptr,
                      steps_.outputs > 0 ? place(slot.at("outputs").at(0), steps_.outputs) : nullptr);
    }
    for (std::size_t i = 0; i < calls; ++i) {
      Step(i, at[i].first, at[i].second, [&] { Require(device_->Prepare(0)); });
    }
    Answer({0});
  }

  template <typename Work>
  void Step(std::size_t index, void* input, const void* output, const Work& work) {
    const wire::Waiting waiting =
        wire::StepsAt(steps_.at + wire::kStepsSleeping) != 0 ? wire::Waiting::kSleeping : wire::Waiting::kLooking;
    wire::AwaitStep(steps_.at + wire::kStepsGiven, index + 1, waiting, [] { return false; });
    if (steps_.inputs > 0) std::memcpy(input, steps_.at + wire::kStepsInputs, steps_.inputs);
    work();
    Require(device_->Wait());
    if (steps_.outputs > 0) std::memcpy(steps_.at + wire::StepsOutputs(steps_.inputs), output, steps_.outputs);
    wire::SetStep(steps_.at + wire::kStepsDone, index + 1, waiting);
  }

  // Each call by itself, as a profiler has it (docs/timing.md): it is queued behind work of our own before it starts,
  // and what two events with nothing between them are apart is taken off.
  void RunAlone(const std::vector<std::size_t>& order) {
    constexpr std::size_t kNothings = 5;
    std::vector<std::int64_t> nothings, claims, time;
    for (std::size_t i = 0; i < kNothings + order.size(); ++i) {
      const bool nothing = i < kNothings;
      Require(device_->Prepare(1));
      Require(device_->Cover());
      if (nothing) {
        Require(device_->Begin(0));
        Require(device_->End(0));
      } else {
        Call(*slots_.at(order[i - kNothings]), 0);
      }
      Require(device_->Finish(&time));
      (nothing ? nothings : claims).push_back(time.at(0));
    }
    std::sort(nothings.begin(), nothings.end());
    for (std::int64_t& claim : claims) claim = std::max<std::int64_t>(claim - nothings[kNothings / 2], 0);
    Say({{"type", "done"}, {"claimed_ns", claims}, {"processor", ::sched_getcpu()}});
  }

  // One claim for the run: the judge's clock runs until this is read.
  void Answer(const std::vector<std::int64_t>& times) {
    std::int64_t whole = 0;
    for (std::int64_t time : times) whole += time;
    Say({{"type", "done"},
         {"claimed_ns", times.empty() ? json::array() : json::array({whole})},
         {"processor", ::sched_getcpu()}});
  }

  void RunSlots(const json& body) {
    if (const auto practice = body.find("practice"); practice != body.end()) {
      if (const auto steps = body.find("steps"); steps != body.end()) {
        return PractiseSteps(practice->get<std::size_t>(), *steps);
      }
      return Practise(practice->get<std::size_t>());
    }
    const auto order = body.at("slots").get<std::vector<std::size_t>>();
    if (order.size() > kMaxRunSlots) throw Failure{"run", "exception", "too many slots in one run"};
    if (body.value("alone", false)) return RunAlone(order);
    if (body.value("in_steps", false)) return RunInSteps(order);
    Require(device_->Prepare(order.size()));
    const bool profile = body.value("profile", false);
    if (profile) Require(device_->Profile(true));
    for (std::size_t i = 0; i < order.size(); ++i) Call(*slots_.at(order[i]), i);
    std::vector<std::int64_t> times;
    Require(device_->Finish(&times));
    if (profile) Require(device_->Profile(false));
    Answer(times);
  }

  // The call that is number `index` of the device's run.
  void Call(const Slot& slot, std::size_t index) {
    grove_args args{};
    args.abi = GROVE_KERNEL_ABI;
    args.size = sizeof args;
    args.num_inputs = static_cast<std::int32_t>(slot.inputs.size());
    args.num_outputs = static_cast<std::int32_t>(slot.outputs.size());
    args.inputs = slot.inputs.data();
    args.outputs = slot.outputs.data();
    args.stream = device_->Stream();
    args.num_threads = threads_;
    Require(device_->Begin(index));
    int code;
    try {
      code = kernel_(&args);
    } catch (const std::exception& error) {
      throw Failure{"run", "exception", std::string("the kernel threw an exception: ") + error.what()};
    } catch (...) {
      throw Failure{"run", "exception", "the kernel threw an exception"};
    }
    const std::string error = device_->End(index);
    // A launch error says more than the number that came of it.
    if (code != 0 && error.empty()) {
      throw Failure{"run", "returned_nonzero", "the kernel returned " + std::to_string(code)};
    }
    Require(error);
  }

  // That the device did what it was asked to.
  void Require(const std::string& error) const {
    if (error.empty()) return;
    throw Failure{"run", device_->Where().device_type == 2 ? "cuda_error" : "exception", error};
  }

  struct Region {
    char* at;
    std::size_t bytes;
  };

  wire::Channel channel_;
  std::unique_ptr<Device> device_;
  int threads_;
  std::string entry_;
  wire::UniqueFd object_;  // received, not loaded yet
  Kernel kernel_ = nullptr;
  std::vector<Region> regions_;
  struct {
    char* at = nullptr;
    std::size_t inputs = 0, outputs = 0;  // bytes
  } steps_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

[[noreturn]] void Usage(const std::string& what) {
  std::fprintf(
      stderr,
      "grove-candidate: %s\nusage: grove-candidate [--fd N] [--device cpu|cuda:N] [--threads N] [--self-test]\n"
      "Started by grove-worker; docs/protocol.md says what it speaks.\n",
      what.c_str());
  std::exit(2);
}

Arguments Parse(int argc, char** argv) {
  constexpr option kOptions[] = {{"fd", required_argument, nullptr, 'f'},
                                 {"device", required_argument, nullptr, 'd'},
                                 {"threads", required_argument, nullptr, 't'},
                                 {"self-test", no_argument, nullptr, 's'},
                                 {}};
  Arguments arguments;
  ::opterr = 0;
  for (int option; (option = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (option) {
      case 'f':
        arguments.fd = std::atoi(::optarg);
        break;
      case 'd':
        arguments.device = ::optarg;
        break;
      case 't':
        arguments.threads = std::atoi(::optarg);
        break;
      case 's':
        arguments.self_test = true;
        break;
      default:
        Usage("unknown option or missing value: " + std::string(argv[::optind - 1]));
    }
  }
  if (::optind < argc) Usage("what is " + std::string(argv[::optind]) + "? It takes options alone");
  return arguments;
}

// Each OpenMP thread on a processor of its own, as in the judge, where this process has them all (docs/timing.md).
// libgomp then binds the first thread too; threads that a kernel makes otherwise keep the choice of all processors.
void SpreadThreads(int threads) {
  const std::vector<int> processors = wire::Processors();
  if (processors.empty() || threads < static_cast<int>(processors.size()) || !wire::FreeThreads(processors)) return;
  ::setenv("OMP_PLACES", wire::PlacesOf(processors).c_str(), 1);
  ::setenv("OMP_PROC_BIND", "close", 1);
}

int Main(int argc, char** argv) {
  Arguments arguments = Parse(argc, argv);
  if (arguments.threads <= 0) arguments.threads = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  // Read by libgomp when the kernel's object brings it in. Passive waiting, as in the judge: threads that spin between
  // calls would take the processors from the side that is being timed (docs/timing.md).
  ::setenv("OMP_NUM_THREADS", std::to_string(arguments.threads).c_str(), 1);
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  if (arguments.device == "cpu") SpreadThreads(arguments.threads);

  // As in the judge: memory that a kernel gives back is kept, so that a call's work space is not paged in each time.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);

  std::string error;
  std::unique_ptr<Device> device;
  if (arguments.device == "cpu") {
    device = MakeCpuDevice();
  } else if (arguments.device == "cuda" || arguments.device.rfind("cuda:", 0) == 0) {
    int ordinal = arguments.device.size() > 5 ? std::atoi(arguments.device.c_str() + 5) : 0;
    device = MakeCudaDevice(ordinal, &error);
  } else {
    Usage("unknown device " + arguments.device + "; cpu or cuda:N");
  }
  if (arguments.self_test) {
    double seconds = 0;
    if (device != nullptr) error = device->SelfTest(&seconds);
    json line{{"ok", error.empty()},
              {"device", arguments.device},
              {"name", device ? device->Name() : ""},
              {"seconds", seconds}};
    if (!error.empty()) line["error"] = error;
    std::printf("%s\n", line.dump().c_str());
    return error.empty() ? 0 : 1;
  }
  ::fcntl(arguments.fd, F_SETFD, FD_CLOEXEC);
  wire::Channel channel{wire::UniqueFd(arguments.fd)};
  if (device == nullptr) {
    channel.Send({{"type", "fail"}, {"stage", "load"}, {"kind", "cuda_error"}, {"message", error}});
    return 1;
  }
  return Program(std::move(channel), std::move(device), arguments.threads).Run();
}

}  // namespace
}  // namespace grove::candidate

int main(int argc, char** argv) { return grove::candidate::Main(argc, argv); }
