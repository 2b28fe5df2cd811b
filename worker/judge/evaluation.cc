#include "worker/judge/evaluation.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <sys/random.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "worker/judge/statistics.h"

namespace grove::judge {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kAlignment = 256;   // of every tensor in a region: as cudaMalloc aligns
constexpr std::size_t kGuardBytes = 256;  // behind every tensor at least: finds a loop that runs over the end
constexpr unsigned char kGuard[4] = {0xC3, 0x5A, 0x96, 0x3C};
constexpr std::size_t kMaxText = 8192;
constexpr std::size_t kMaxSlots = 64;               // CPU; for calls far below a run's length
constexpr std::size_t kSmallSlotBytes = 512 << 10;  // so that many slots stay below 32 MiB
constexpr double kCpuSpan = 2e-3;                   // of a timed run: a request costs about 1 % of it, known to a tenth
constexpr std::chrono::milliseconds kRest{2};
constexpr double kBatchBelow = 20e-6;  // CUDA

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Ends the evaluation with a verdict.
struct Verdict {
  std::string verdict;  // "VERDICT_WRONG"
  std::string reason;
  json fault;
  bool gone = false;
};

std::string Bounded(std::string text, std::size_t limit = kMaxText) {
  if (text.size() > limit) text = text.substr(0, limit) + "...";
  return text;
}

// JSON has no NaN: protocol and proto3 write it as text.
json Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

std::size_t RoundUp(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

struct Place {
  std::size_t offset, bytes;
  wire::DType type;
  std::vector<std::int64_t> shape;
};

// Where tensors stand in one region, with room between them.
struct Layout {
  std::vector<Place> places;
  std::size_t bytes = 0;
  void Add(const at::Tensor& tensor) {
    Place place;
    place.offset = bytes;
    place.bytes = tensor.nbytes();
    place.type = wire::FindDType(ShortType(tensor.scalar_type())).value();
    place.shape = tensor.sizes().vec();
    bytes = RoundUp(place.offset + place.bytes + kGuardBytes, kAlignment);
    places.push_back(std::move(place));
  }
};

struct Slot {
  Layout in, out;
  std::unique_ptr<SharedBlock> inputs, outputs;
  std::size_t shape_set = 0;
  std::vector<Leaf> leaves;  // pristine: what the inputs must still hold after a run
};

struct Reply {
  std::vector<double> claims;  // seconds
  json outputs;                // Python candidates
  double wall = 0;             // seconds from request to answer, on the judge's clock
};

class Evaluator {
 public:
  Evaluator(LoadedProblem& problem, DeviceOps& ops, wire::Channel candidate, const EvaluationSettings& settings,
            const Progress& progress)
      : problem_(problem),
        reference_(*problem.reference),
        ops_(ops),
        channel_(std::move(candidate)),
        settings_(settings),
        progress_(progress),
        rule_(settings.rule.value_or(problem.reference->DefaultRule())),
        random_(SecretSeed()),
        deadline_(Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings.run_wall))) {}

  EvaluationOutcome Run() {
    EvaluationOutcome outcome;
    json& result = outcome.result;
    json stages = json::array();
    auto begin = Clock::now();
    auto stage_done = [&](const char* name) {
      stages.push_back({{"stage", name}, {"seconds", Since(begin)}});
      begin = Clock::now();
    };
    try {
      stage_ = "load";
      Hello();
      stage_ = "open";
      Open();
      stage_done("prepare");
      stage_ = "check";
      Check();
      stage_done("check");
      if (!settings_.skip_timing) {
        stage_ = "time";
        Time();
        stage_done("time");
      }
      result["verdict"] = "VERDICT_CORRECT";
      result["reason"] = CorrectReason();
      result["correctness"] = CorrectnessReport();
      if (!settings_.skip_timing) result["timing"] = timing_;
      channel_.Send({{"type", "close"}}, {}, std::chrono::milliseconds(100));
    } catch (const Verdict& verdict) {
      stage_done(stage_ == "load" || stage_ == "open" ? "prepare" : stage_ == "check" ? "check" : "time");
      result["verdict"] = verdict.verdict;
      result["reason"] = verdict.reason;
      if (!verdict.fault.is_null()) result["fault"] = verdict.fault;
      if (trials_ > 0) result["correctness"] = CorrectnessReport();
      if (verdict.verdict == "VERDICT_CHEATED" && !timing_.is_null()) result["timing"] = timing_;
      outcome.candidate_gone = verdict.gone;
    } catch (const ProblemError&) {
      throw;
    } catch (const std::exception& error) {
      // The problem fitted when it was loaded. When the judge now finds the device full, the candidate has filled it.
      const bool device_full =
          ops_.cuda() && std::strstr(error.what(), "out of memory") != nullptr && stage_ != "load" && stage_ != "open";
      if (!device_full) throw;
      const auto total = ops_.Info()["memory_bytes"].get<double>();
      const auto left = static_cast<double>(ops_.free_bytes());
      result["verdict"] = "VERDICT_LIMIT_EXCEEDED";
      result["reason"] = "the candidate left no device memory for checking its outputs";
      result["fault"] = {{"stage", stage_},
                         {"limit", "device_memory_bytes"},
                         {"limit_set", total},
                         {"limit_reached", total - left},
                         {"message", Bounded(error.what(), 500)}};
    }
    result["stages"] = stages;
    return outcome;
  }

 private:
  // ------------------------------------------------------------------------------------------- talking to a candidate
  double Left() const { return std::chrono::duration<double>(deadline_ - Clock::now()).count(); }

  json Receive(const char* wanted, double limit, const char* limit_name, double limit_set) {
    const auto begin = Clock::now();
    double wait = limit;
    if (Left() < wait) {
      wait = std::max(Left(), 0.0);
      limit_name = "run_wall_seconds";
      limit_set = settings_.run_wall;
    }
    auto received = channel_.Receive(std::chrono::nanoseconds(static_cast<std::int64_t>(wait * 1e9)),
                                     wire::kMaxCandidateFrameBytes);
    switch (received.status) {
      case wire::ReceiveStatus::kOk:
        break;
      case wire::ReceiveStatus::kTimeout: {
        const bool whole = std::strcmp(limit_name, "run_wall_seconds") == 0;
        const double reached = whole ? settings_.run_wall - Left() : Since(begin);
        throw Verdict{"VERDICT_TIMED_OUT",
                      std::string(whole ? "the candidate's whole run" : "one call of the kernel") +
                          " took longer than " + Seconds(limit_set) + " (" + limit_name + ")",
                      {{"stage", stage_}, {"limit", limit_name}, {"limit_set", limit_set}, {"limit_reached", reached}}};
      }
      case wire::ReceiveStatus::kClosed:
        throw Verdict{"VERDICT_CRASHED",
                      "the candidate's process ended while it was asked to " + Doing(),
                      {{"stage", stage_}, {"message", received.error}},
                      true};
      default:
        throw Protocol(received.error);
    }
    json body = std::move(received.message.body);
    const auto type = body.find("type");
    if (type == body.end() || !type->is_string()) throw Protocol("a frame without a type");
    if (*type == "fail") Fail(body);
    if (*type != wanted)
      throw Protocol("\"" + Bounded(type->get<std::string>(), 40) + "\" where \"" + wanted + "\" was due");
    return body;
  }

  std::string Doing() const {
    if (stage_ == "load") return "load the kernel";
    if (stage_ == "open") return "open its memory";
    return stage_ == "check" ? "run the kernel (check)" : "run the kernel (timing)";
  }

  static std::string Seconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g s", value);
    return text;
  }

  Verdict Protocol(const std::string& what) const {
    return {"VERDICT_CRASHED",
            "the candidate's process broke the protocol: " + what,
            {{"stage", stage_}, {"message", "broke the protocol: " + what}}};
  }

  [[noreturn]] void Fail(const json& body) const {
    auto text = [&body](const char* name) -> std::string {
      auto member = body.find(name);
      return member != body.end() && member->is_string() ? Bounded(member->get<std::string>()) : "";
    };
    const std::string kind = text("kind"), message = text("message");
    const std::string first_line = Bounded(LastLine(message), 500);
    json fault{{"stage", stage_}, {"message", message}};
    if (kind == "entry_missing" || kind == "load_error") {
      throw Verdict{"VERDICT_BUILD_FAILED", first_line, fault};
    }
    if (kind == "cuda_error") {
      fault["cuda_error"] = message;
      throw Verdict{"VERDICT_CRASHED", "CUDA error while the candidate was asked to " + Doing() + ": " + first_line,
                    fault};
    }
    throw Verdict{"VERDICT_CRASHED", "the candidate failed: " + first_line, fault};
  }

  // A traceback says what went wrong in its last line; other texts have one line.
  static std::string LastLine(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (text.find("Traceback") == std::string::npos) return text;
    auto at = text.rfind('\n');
    return at == std::string::npos ? text : text.substr(at + 1);
  }

  void Send(const json& body, std::span<const int> fds = {}) {
    auto error = channel_.Send(body, fds, std::chrono::seconds(10));
    if (!error) return;
    // A candidate that failed has said why before it went.
    Receive("nothing", 1.0, "call_wall_seconds", settings_.call_wall);
  }

  void Hello() { Receive("hello", settings_.run_wall, "run_wall_seconds", settings_.run_wall); }

  // Between timed runs the candidate stands still, all of it: nothing can be computed ahead of the question, finished
  // after the answer, or be in the reference's way.
  void Hold() {
    if (!settings_.hold || held_) return;
    if (!settings_.hold(true)) {
      throw Verdict{"VERDICT_UNMEASURABLE", "the candidate could not be stopped while the reference is timed", {}};
    }
    held_ = true;
  }

  void LetGo() {
    if (held_) settings_.hold(false);
    held_ = false;
  }

  Reply RunSlots(const std::vector<std::size_t>& slots, const char* store) {
    const auto begin = Clock::now();
    // A candidate that is held finds its request when it wakes, so that it has no time of its own before it.
    Send({{"type", "run"}, {"slots", slots}, {"store", store}});
    LetGo();
    const double limit = settings_.call_wall * static_cast<double>(std::max<std::size_t>(slots.size(), 1));
    json body = Receive("done", limit, "call_wall_seconds", settings_.call_wall);
    Reply reply;
    reply.wall = Since(begin);
    if (holding_) Hold();
    auto claims = body.find("claimed_ns");
    if (claims == body.end() || !claims->is_array() || claims->size() != slots.size()) {
      throw Protocol("\"done\" without one claim per call");
    }
    for (const json& claim : *claims) {
      if (!claim.is_number_integer() || claim < 0 || claim > 1000000000000000)
        throw Protocol("a claim that is no time");
      reply.claims.push_back(1e-9 * claim.get<double>());
    }
    if (auto outputs = body.find("outputs"); outputs != body.end()) reply.outputs = std::move(*outputs);
    return reply;
  }

  // ------------------------------------------------------------------------------------------------- memory and slots
  json Tensor(std::size_t region, const Place& place) const {
    return {{"region", region}, {"offset", place.offset}, {"dtype", place.type.name}, {"shape", place.shape}};
  }

  std::size_t AddRegion(SharedBlock* block) {
    regions_.push_back(block);
    return regions_.size() - 1;
  }

  void SendRegions() {
    for (std::size_t first = 0; first < regions_.size(); first += wire::kMaxFds) {
      const std::size_t last = std::min<std::size_t>(first + wire::kMaxFds, regions_.size());
      json list = json::array();
      std::vector<int> fds;
      for (std::size_t i = first; i < last; ++i) {
        list.push_back({{"bytes", regions_[i]->bytes()}});
        fds.push_back(regions_[i]->fd());
      }
      Send({{"type", "regions"}, {"first", first}, {"regions", list}}, fds);
      Receive("ok", settings_.call_wall, "call_wall_seconds", settings_.call_wall);
    }
  }

  std::unique_ptr<Slot> MakeSlot(std::size_t shape_set, std::vector<Leaf> leaves,
                                 const std::vector<at::Tensor>& outputs) {
    auto slot = std::make_unique<Slot>();
    slot->shape_set = shape_set;
    for (const Leaf& leaf : leaves) {
      if (!leaf.scalar) slot->in.Add(leaf.tensor);
    }
    for (const at::Tensor& output : outputs) slot->out.Add(output);
    slot->inputs = ops_.Allocate(std::max(slot->in.bytes, kAlignment));
    slot->outputs = ops_.Allocate(std::max(slot->out.bytes, kAlignment));
    slot->leaves = std::move(leaves);
    return slot;
  }

  json SlotJson(const Slot& slot) {
    const std::size_t in = AddRegion(slot.inputs.get()), out = AddRegion(slot.outputs.get());
    json inputs = json::array(), outputs = json::array();
    std::size_t next = 0;
    for (const Leaf& leaf : slot.leaves) {
      if (!leaf.scalar) {
        inputs.push_back(Tensor(in, slot.in.places[next++]));
      } else if (leaf.dtype == "bool") {
        inputs.push_back({{"scalar", leaf.integer != 0}, {"dtype", "bool"}});
      } else if (leaf.dtype == "int64") {
        inputs.push_back({{"scalar", leaf.integer}, {"dtype", "int64"}});
      } else {
        inputs.push_back({{"scalar", Number(leaf.number)}, {"dtype", "float64"}});
      }
    }
    for (const Place& place : slot.out.places) outputs.push_back(Tensor(out, place));
    return {{"inputs", inputs}, {"outputs", outputs}};
  }

  void Open() {
    // What fits is decided with nothing of the last evaluation in the way.
    if (problem_.bytes > kLargeBytes) ops_.ReleaseCache();
    // Float64 takes twice the bytes, for inputs, outputs and what is in between; the rest of the evaluation holds some
    // four times the problem's bytes (shared, pristine, expected, copied out). Without room for both the reference as
    // written is compared with.
    high_fits_ = ops_.free_bytes() / 8 > problem_.bytes;
    // The first draw of every shape set says how large slots are.
    json names = json::array(), params = json::array();
    const auto& parameters = reference_.Parameters();
    for (const auto& [name, tensor] : parameters) {
      names.push_back(name);
      params_layout_.Add(tensor);
    }
    if (!parameters.empty()) {
      params_ = ops_.Allocate(params_layout_.bytes);
      const std::size_t region = AddRegion(params_.get());
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Place& place = params_layout_.places[i];
        if (place.bytes > 0) ops_.Copy(params_->data() + place.offset, parameters[i].second.data_ptr(), place.bytes);
        params.push_back(Tensor(region, place));
      }
    }
    json slots = json::array();
    for (std::size_t set = 0; set < reference_.ShapeSets(); ++set) {
      reference_.SelectShapeSet(set);
      std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
      auto call = reference_.Prepare(leaves, Mode::kEager);
      call->Run();
      std::vector<at::Tensor> outputs = call->Outputs();
      if (set == 0) {
        std::size_t bytes = 0;
        for (const Leaf& leaf : leaves) bytes += leaf.scalar ? 0 : leaf.tensor.nbytes();
        for (const at::Tensor& output : outputs) bytes += output.nbytes();
        slot_bytes_ = bytes;
        const std::size_t count = settings_.skip_timing ? 1 : SlotCount(bytes);
        for (std::size_t i = 0; i < count; ++i) slots_.push_back(MakeSlot(0, leaves, outputs));
        timed_slots_ = count;
        paths_ = reference_.OutputPaths();
      } else {
        slots_.push_back(MakeSlot(set, leaves, outputs));
      }
    }
    reference_.SelectShapeSet(0);
    for (const auto& slot : slots_) slots.push_back(SlotJson(*slot));
    SendRegions();
    json open{{"type", "open"}, {"slots", slots}, {"params", params}, {"names", names}, {"seed", 42}};
    if (settings_.python_candidate) {
      open["init"] = reference_.InitPickle();
      open["structure"] = reference_.Structure();
    }
    Send(open);
    Receive("opened", settings_.run_wall, "run_wall_seconds", settings_.run_wall);
  }

  // Enough sets that their data exceed twice the last-level cache, at least 2; bounded by a quarter of the free memory
  // (a set is held twice: shared and pristine) and by 16, beyond which tiny problems only cost set-up time. On a CPU
  // every call of a timed run has a set of its own, so short calls get more.
  std::size_t SlotCount(std::size_t bytes) const {
    const bool small = !ops_.cuda() && bytes <= kSmallSlotBytes && problem_.reference_seconds * kMaxSlots < 0.02;
    const std::size_t wanted = bytes == 0 ? kMaxSlots : (2 * ops_.cache_bytes() + bytes - 1) / bytes;
    const std::size_t room = std::max<std::size_t>(ops_.free_bytes() / 4 / std::max<std::size_t>(2 * bytes, 1), 1);
    return std::min(std::clamp<std::size_t>(wanted, 2, small ? kMaxSlots : 16), room);
  }

  void FillInputs(Slot* slot, std::vector<Leaf> leaves) {
    slot->leaves = std::move(leaves);
    ops_.Fill(slot->inputs->data(), kGuard, sizeof kGuard, slot->inputs->bytes());
    std::size_t next = 0;
    for (const Leaf& leaf : slot->leaves) {
      if (leaf.scalar) continue;
      const Place& place = slot->in.places[next++];
      if (leaf.tensor.nbytes() != place.bytes) {
        throw ProblemError(
            "get_inputs() gives tensors of other sizes on each call, so a candidate cannot be given memory "
            "for them; make their shapes the same each time");
      }
      if (place.bytes > 0) ops_.Copy(slot->inputs->data() + place.offset, leaf.tensor.data_ptr(), place.bytes);
    }
  }

  void Poison(Slot* slot) {
    ops_.Fill(slot->outputs->data(), kGuard, sizeof kGuard, slot->outputs->bytes());
    const auto salt = static_cast<std::uint32_t>(random_.Next());
    for (const Place& place : slot->out.places) {
      const auto pattern = PoisonElement(place.type, salt);
      if (place.bytes > 0) ops_.Fill(slot->outputs->data() + place.offset, pattern.data(), pattern.size(), place.bytes);
    }
  }

  // The room behind every tensor must hold what was put there.
  bool GuardsIntact(SharedBlock* block, const Layout& layout) {
    for (std::size_t i = 0; i < layout.places.size(); ++i) {
      const std::size_t begin = layout.places[i].offset + layout.places[i].bytes;
      const std::size_t end = i + 1 < layout.places.size() ? layout.places[i + 1].offset : layout.bytes;
      std::vector<char> bytes(end - begin);
      ops_.ToHost(bytes.data(), block->data() + begin, bytes.size());
      for (std::size_t at = 0; at < bytes.size(); ++at) {
        if (static_cast<unsigned char>(bytes[at]) != kGuard[(begin + at) % sizeof kGuard]) return false;
      }
    }
    return true;
  }

  bool InputsIntact(Slot* slot) {
    std::size_t next = 0;
    for (const Leaf& leaf : slot->leaves) {
      if (leaf.scalar) continue;
      const Place& place = slot->in.places[next++];
      if (place.bytes > 0 && !ops_.Equal(slot->inputs->data() + place.offset, leaf.tensor.data_ptr(), place.bytes)) {
        return false;
      }
    }
    return GuardsIntact(slot->inputs.get(), slot->in);
  }

  bool ParametersIntact() {
    const auto& parameters = reference_.Parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Place& place = params_layout_.places[i];
      if (place.bytes > 0 &&
          !ops_.Equal(params_->data() + place.offset, parameters[i].second.data_ptr(), place.bytes)) {
        return false;
      }
    }
    return true;
  }

  // ------------------------------------------------------------------------------------------------------------ check
  struct Expected {
    std::vector<at::Tensor> plain, high;  // high: empty where there is none
  };

  Expected Compute(const std::vector<Leaf>& leaves, bool high) {
    Expected expected;
    auto call = reference_.Prepare(leaves, Mode::kEager);
    call->Run();
    expected.plain = call->Outputs();
    if (high && high_fits_ && problem_.double_seconds >= 0) {
      try {
        auto exact = reference_.Prepare(leaves, Mode::kDouble);
        exact->Run();
        expected.high = exact->Outputs();
        if (expected.high.size() != expected.plain.size()) expected.high.clear();
        for (std::size_t i = 0; i < expected.high.size(); ++i) {
          if (expected.high[i].sizes() != expected.plain[i].sizes()) expected.high.clear();
        }
      } catch (const std::exception&) {
        expected.high.clear();
        problem_.double_seconds = -1;
      }
    }
    return expected;
  }

  // Compares what a slot holds after a run. Throws the verdict when it is not right.
  void Verify(Slot* slot, const Reply& reply, const Expected& expected, int trial) {
    ++trials_;
    // Out of the candidate's reach first: what is compared can no longer change.
    std::vector<at::Tensor> got;
    const auto copy_begin = Clock::now();
    for (std::size_t i = 0; i < slot->out.places.size(); ++i) {
      at::Tensor copy = at::empty_like(expected.plain[i], at::MemoryFormat::Contiguous);
      const Place& place = slot->out.places[i];
      if (place.bytes > 0) ops_.Copy(copy.data_ptr(), slot->outputs->data() + place.offset, place.bytes);
      got.push_back(copy);
    }
    copies_.push_back(Since(copy_begin));
    if (copies_.size() > 15) copies_.erase(copies_.begin());
    if (!InputsIntact(slot) || !ParametersIntact()) {
      inputs_modified_ = true;
      first_failing_ = trial;
      throw Verdict{"VERDICT_WRONG", "the candidate wrote to its inputs, which must stay as they are", {}};
    }
    std::vector<json> outputs;
    std::string failure;
    if (settings_.python_candidate) CheckTypes(reply, expected, &outputs, &failure);
    if (failure.empty() && !GuardsIntact(slot->outputs.get(), slot->out)) {
      failure = "the candidate wrote outside of its output";
    }
    if (failure.empty()) {
      outputs.clear();
      noise_.resize(got.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const at::Tensor high = i < expected.high.size() ? expected.high[i] : at::Tensor();
        Comparison compared = CompareTensors(got[i], expected.plain[i], high, problem_.reduction, noise_[i], rule_);
        if (compared.noise.known) noise_[i] = compared.noise;
        also_1e4_ = also_1e4_ && compared.passes_1e4;
        also_1e2_ = also_1e2_ && compared.passes_1e2;
        also_scaled_ = also_scaled_ && compared.passes_scaled;
        outputs.push_back(Describe(i, expected.plain[i], compared));
        if (compared.scaled_allowed > worst_allowed_) worst_allowed_ = compared.scaled_allowed;
        if (!compared.ok && failure.empty()) failure = Explain(i, slot, got[i], expected.plain[i], compared, trial);
      }
    }
    if (!failure.empty()) {
      first_failing_ = trial;
      outputs_ = outputs;
      throw Verdict{"VERDICT_WRONG", failure, {}};
    }
    ++trials_passed_;
    KeepWorst(outputs);
  }

  void KeepWorst(const std::vector<json>& outputs) {
    if (outputs_.empty()) {
      outputs_ = outputs;
      return;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      auto error = [](const json& o) { return o["scaled_error"].is_number() ? o["scaled_error"].get<double>() : 0.0; };
      if (error(outputs[i]) > error(outputs_[i])) outputs_[i] = outputs[i];
    }
  }

  void CheckTypes(const Reply& reply, const Expected& expected, std::vector<json>* outputs, std::string* failure) {
    if (!reply.outputs.is_array()) throw Protocol("\"done\" without its outputs");
    const std::string device = ops_.cuda() ? "cuda" : "cpu";
    for (std::size_t i = 0; i < expected.plain.size(); ++i) {
      std::string got = "nothing", where = device;
      if (i < reply.outputs.size()) {
        const json& item = reply.outputs[i];
        auto dtype = item.find("dtype"), shape = item.find("shape"), place = item.find("device");
        if (!item.is_object() || dtype == item.end() || !dtype->is_string() || shape == item.end() ||
            !shape->is_array() || place == item.end() || !place->is_string()) {
          throw Protocol("an output without dtype, shape and device");
        }
        got = Bounded(dtype->get<std::string>(), 40) + Bounded(shape->dump(), 200);
        where = *place;
      }
      const std::string wanted = TypeText(expected.plain[i]);
      json description{
          {"index", i}, {"path", Path(i)}, {"expected_type", wanted}, {"elements", expected.plain[i].numel()}};
      const bool scalar = where == "scalar" && expected.plain[i].dim() == 0;
      if (got != wanted || (where != device && !scalar)) {
        const std::string on = where != device && where != "scalar" ? " on " + where : "";
        description["got_type"] = got + on;
        description["mismatched"] = expected.plain[i].numel();
        if (failure->empty()) {
          *failure = Output(i) + " is " + got + on + ", and the reference's is " + wanted +
                     (on.empty() ? "" : " on " + device);
        }
      }
      outputs->push_back(description);
    }
    if (failure->empty() && reply.outputs.size() > expected.plain.size()) {
      *failure = "the candidate returns " + std::to_string(reply.outputs.size()) + " outputs, and the reference " +
                 std::to_string(expected.plain.size());
    }
  }

  std::string Path(std::size_t i) const { return i < paths_.size() ? paths_[i] : ""; }
  std::string Output(std::size_t i) const {
    return slots_[0]->out.places.size() == 1 ? "the output"
                                             : "output " + (Path(i).empty() ? std::to_string(i) : Path(i));
  }

  json Describe(std::size_t i, const at::Tensor& expected, const Comparison& compared) const {
    json output{{"index", i},
                {"path", Path(i)},
                {"expected_type", TypeText(expected)},
                {"elements", compared.elements},
                {"mismatched", compared.mismatched},
                {"max_abs_error", Number(compared.max_abs_error)},
                {"max_rel_error", Number(compared.max_rel_error)},
                {"scaled_error", Number(compared.scaled_error)}};
    if (compared.worst >= 0) {
      output["worst"] = {{"index", Unravel(compared.worst, expected.sizes().vec())},
                         {"expected", Number(compared.expected)},
                         {"got", Number(compared.got)},
                         {"error", Number(compared.error)},
                         {"allowed", Number(compared.allowed)}};
    }
    return output;
  }

  std::string Explain(std::size_t i, Slot* slot, const at::Tensor& got, const at::Tensor& expected,
                      const Comparison& compared, int trial) const {
    (void)slot;
    std::string text = Output(i) + " (" + TypeText(expected) + ") is wrong in trial " + std::to_string(trial) + ": " +
                       compared.why + "; " + std::to_string(compared.mismatched) + " of " +
                       std::to_string(compared.elements) + " elements";
    if (compared.worst >= 0) {
      char figures[200];
      std::snprintf(figures, sizeof figures, ", worst at %s: expected %.9g, got %.9g",
                    json(Unravel(compared.worst, expected.sizes().vec())).dump().c_str(), compared.expected,
                    compared.got);
      text += figures;
      if (std::isnan(compared.got) && compared.mismatched > 0) text += Unwritten(got);
    }
    return text;
  }

  // NaN may be what was there before: then the kernel did not write it.
  static std::string Unwritten(const at::Tensor& got) {
    if (!got.is_floating_point()) return "";
    const std::int64_t count = at::isnan(got).sum().item<std::int64_t>();
    return " (" + std::to_string(count) +
           " elements are NaN; outputs are filled with NaN before the kernel runs, so these "
           "may never have been written)";
  }

  void Check() {
    const std::size_t sets = reference_.ShapeSets();
    const int trials = std::max<int>(settings_.trials, static_cast<int>(sets));
    for (int trial = 1; trial <= trials; ++trial) {
      progress_("check", "trial " + std::to_string(trial) + " of " + std::to_string(trials));
      const std::size_t set = static_cast<std::size_t>(trial - 1) % sets;
      const std::size_t index = set == 0 ? random_.Below(timed_slots_) : timed_slots_ + set - 1;
      Slot* slot = slots_[index].get();
      reference_.SelectShapeSet(set);
      slot->leaves.clear();  // the last draw's memory serves the next
      std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
      // A float64 evaluation that is slow is done for the first trial alone: its noise figures serve the others.
      const bool high = trial <= static_cast<int>(sets) || problem_.double_seconds < 0.5;
      Expected expected = Compute(leaves, high);
      reference_.SelectShapeSet(0);
      FillInputs(slot, std::move(leaves));
      Poison(slot);
      ops_.Synchronize();
      Reply reply = RunSlots({index}, "all");
      first_claims_.push_back(reply.claims[0]);
      Verify(slot, reply, expected, trial);
    }
  }

  std::string RuleText() const {
    char text[400];
    if (rule_.mode == RuleMode::kAbsoluteRelative) {
      std::snprintf(text, sizeof text, "|got - expected| <= %g + %g * |expected|, integers and bool exact", rule_.atol,
                    rule_.rtol);
    } else {
      std::snprintf(
          text, sizeof text,
          "scaled: rms error at most %.3g of the output's rms, no element beyond %g times that plus its slack, "
          "against %s; integers and bool exact",
          worst_allowed_, kTailFactor,
          high_fits_ && problem_.double_seconds >= 0 ? "the reference in float64" : "the reference as written");
    }
    return text;
  }

  json CorrectnessReport() const {
    json report{{"trials", trials_}, {"trials_passed", trials_passed_}, {"rule", RuleText()}, {"outputs", outputs_}};
    json tolerance{
        {"mode", rule_.mode == RuleMode::kScaled ? "TOLERANCE_MODE_SCALED" : "TOLERANCE_MODE_ABSOLUTE_RELATIVE"}};
    if (rule_.mode == RuleMode::kAbsoluteRelative) {
      tolerance["atol"] = rule_.atol;
      tolerance["rtol"] = rule_.rtol;
    }
    report["tolerance"] = tolerance;
    if (first_failing_ > 0) report["first_failing_trial"] = first_failing_;
    if (inputs_modified_) report["inputs_modified"] = true;
    json also = json::array();
    if (!inputs_modified_ && trials_ > 0 && !outputs_.empty() && !outputs_[0].contains("got_type")) {
      if (also_1e4_) also.push_back("1e-4");
      if (also_1e2_) also.push_back("1e-2");
      if (also_scaled_) also.push_back("scaled");
    }
    report["also_passes"] = also;
    return report;
  }

  std::string CorrectReason() const {
    char text[200];
    if (timing_.is_null() || timing_["baselines"].empty()) {
      std::snprintf(text, sizeof text, "correct on %d draws", trials_);
    } else {
      const json& first = timing_["baselines"][0];
      std::snprintf(text, sizeof text, "%.3gx [%.3g, %.3g] against %s, %d samples", first["speedup"].get<double>(),
                    first["speedup_low"].get<double>(), first["speedup_high"].get<double>(),
                    first["baseline"] == "BASELINE_COMPILE" ? "torch.compile" : "eager", first["samples"].get<int>());
    }
    return text;
  }

  // ------------------------------------------------------------------------------------------------------------- time
  // A fresh draw where drawing is cheap beside what is timed, else an earlier draw with every floating tensor scaled by
  // its own random factor in [31/32, 1): new values, the same distribution to within 3 %, ranges kept.
  std::vector<Leaf> FreshLeaves() {
    // Where drawing is cheap nothing is kept, and where memory is short nothing can be.
    const bool cheap = problem_.draw_seconds <= std::max(2 * problem_.reference_seconds, 0.002);
    if (cheap || ops_.free_bytes() / 16 < problem_.bytes) return reference_.Draw(SecretSeed());
    const double budget = std::max(0.5 * Since(time_begin_), 0.05) - draw_spent_;
    if (pool_.size() < 2 || (budget > problem_.draw_seconds && random_.Below(2) == 0)) {
      const auto begin = Clock::now();
      std::vector<Leaf> leaves = reference_.Draw(SecretSeed());
      draw_spent_ += Since(begin);
      if (pool_.size() < 4) {
        pool_.push_back(leaves);
      } else {
        pool_[random_.Below(pool_.size())] = leaves;
      }
      return leaves;
    }
    std::vector<Leaf> leaves = pool_[random_.Below(pool_.size())];
    for (Leaf& leaf : leaves) {
      if (leaf.scalar || !(leaf.tensor.is_floating_point() || leaf.tensor.is_complex())) continue;
      leaf.tensor = leaf.tensor.mul(1.0 - random_.Uniform() / 32);
    }
    return leaves;
  }

  void Discard(const std::string& reason) { ++discards_[reason]; }

  struct SpanTimes {
    double wall, claimed;
  };

  // K calls back to back over the slots: seconds on the judge's clock, and by the candidate's claims.
  SpanTimes Span(std::size_t k) {
    std::vector<std::size_t> order(k);
    for (std::size_t& slot : order) slot = next_slot_++ % timed_slots_;
    const Reply reply = RunSlots(order, "none");
    double claimed = 0;
    for (double claim : reply.claims) claimed += claim;
    return {reply.wall, claimed};
  }

  struct SlopeResult {
    double seconds = 0, smallest = 0;  // of one call on the judge's clock: median and least over the rounds
    double hidden = 0;                 // of one call: what the claims of these very runs leave out, median
    std::size_t k = 0;
  };

  // (T(2K) - T(K)) / K: what a request costs besides falls out. `span` seconds for K calls: long beside a wake-up, and
  // on a CPU short beside the time for which a busy machine leaves a process alone.
  SlopeResult Slope(double call, int rounds, double span) {
    SlopeResult slope;
    slope.k =
        std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(span / std::max(call, 1e-7))), 1, kMaxBatch / 2);
    std::vector<double> slopes, hidden;
    for (int round = 0; round < rounds; ++round) {
      const SpanTimes one = Span(slope.k), two = Span(2 * slope.k);
      const double k = static_cast<double>(slope.k);
      slopes.push_back((two.wall - one.wall) / k);
      hidden.push_back(((two.wall - two.claimed) - (one.wall - one.claimed)) / k);
      if (slopes.size() >= 3 && 3 * call * k * round > settings_.max_time) break;
    }
    slope.seconds = Median(slopes);
    slope.smallest = *std::min_element(slopes.begin(), slopes.end());
    slope.hidden = Median(hidden);
    return slope;
  }

  struct Series {
    std::string baseline;
    Mode mode;
    std::vector<double> reference, candidate;
    std::string unavailable;
  };

  void Time() {
    time_begin_ = Clock::now();
    std::vector<Series> series;
    for (const std::string& name : settings_.baselines) {
      Series entry{name, name == "BASELINE_COMPILE" ? Mode::kCompile : Mode::kEager, {}, {}, ""};
      if (entry.mode == Mode::kCompile && !reference_.CanCompile()) {
        entry.unavailable = "torch.compile needs a Python problem and a torch from 2.0";
      }
      series.push_back(std::move(entry));
    }
    // Warm-up, both sides: code and data paged in, threads started, clocks up. The compiled reference compiles here.
    for (Series& entry : series) {
      if (!entry.unavailable.empty()) continue;
      try {
        auto call = reference_.Prepare(slots_[0]->leaves.empty() ? FreshLeaves() : slots_[0]->leaves, entry.mode);
        for (int i = 0; i < 3; ++i) ops_.Time([&] { call->Run(); });
      } catch (const ProblemError&) {
        throw;
      } catch (const std::exception& error) {
        if (entry.mode == Mode::kEager) throw;
        entry.unavailable = Bounded(std::string("torch.compile failed: ") + error.what(), 500);
      }
    }
    for (std::size_t i = 0; i < timed_slots_; ++i) {
      slots_[i]->leaves.clear();
      FillInputs(slots_[i].get(), FreshLeaves());
      Poison(slots_[i].get());
    }
    ops_.Synchronize();
    if (ops_.cuda()) {
      std::vector<double> warm = first_claims_;
      for (int i = 0; i < 3; ++i) warm.push_back(RunSlots({next_slot_++ % timed_slots_}, "none").claims[0]);
      const double call = *std::min_element(warm.begin(), warm.end());
      // The judge's own clock says how long a call is before any claim is used.
      const SlopeResult first = Slope(call, 5, 0.002);
      const double longer = std::max({call, first.seconds, 1e-7});
      batch_ =
          longer < kBatchBelow ? std::clamp<std::size_t>(static_cast<std::size_t>(0.005 / longer), 2, kMaxBatch) : 1;
    } else {
      batch_ = CpuBatch();
    }
    const bool repeats = ops_.cuda() && batch_ > 1;
    const std::size_t step = ops_.cuda() ? 1 : batch_;
    block_pairs_ = ops_.cuda() ? timed_slots_ : std::clamp<std::size_t>(timed_slots_ / batch_, 2, 8);
    std::vector<double> claims;
    time_begin_ = Clock::now();
    draw_spent_ = 0;
    holding_ = true;
    Hold();
    MeasureTrip(15);
    const double longest = 4 * settings_.max_time;  // min_samples may stretch the time, within reason
    int pairs = 0;
    for (;;) {
      const double spent = Since(time_begin_);
      const bool enough = pairs >= settings_.min_samples;
      if (pairs >= settings_.max_samples || (enough && spent >= settings_.max_time) || spent >= longest) break;
      if (enough && spent >= settings_.min_time && Settled(series)) break;
      progress_("time", std::to_string(pairs) + " pairs");
      MeasureTrip(3);
      // One block: every slot is used once by both sides.
      if (repeats) Refill(0, timed_slots_);
      for (std::size_t i = 0; i + step <= timed_slots_; i += step) {
        if (Since(time_begin_) >= longest || pairs >= settings_.max_samples) break;
        if (pairs >= settings_.min_samples && Since(time_begin_) >= settings_.max_time) break;
        for (Series& entry : series) {
          if (!entry.unavailable.empty()) continue;
          if (!repeats) Refill(i, step);
          Pair(&entry, i, step, &claims);
        }
        ++pairs;
      }
    }
    holding_ = false;
    LetGo();
    Report(series, claims);
  }

  // New values in `count` slots. While the candidate is held, and no earlier than for the pair that is timed: it must
  // not see what it will be asked.
  void Refill(std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      slots_[i]->leaves.clear();
      FillInputs(slots_[i].get(), FreshLeaves());
      Poison(slots_[i].get());
    }
    ops_.Synchronize();
  }

  // A Python candidate copies its outputs before it answers, by the judge's clock after the call: what that may take.
  // The judge has just made such copies itself; four times as much is given, for a busy machine and a cold cache.
  double CopyAllowance() const {
    if (!settings_.python_candidate || copies_.empty()) return 0;
    return 4 * Median(copies_) + 15e-6 * static_cast<double>(slots_[0]->out.places.size());
  }

  // Calls per timed run, so that what it costs to ask (tens of microseconds, known to a few) is small beside them. The
  // shorter side decides; nothing that the candidate says is used.
  std::size_t CpuBatch() {
    MeasureTrip(9);
    auto seconds = [&](const std::vector<std::size_t>& order) {
      double least = std::numeric_limits<double>::infinity();
      for (int i = 0; i < 3; ++i) least = std::min(least, RunSlots(order, "none").wall - trip_);
      return std::max(least, 1e-7) / static_cast<double>(order.size());
    };
    double call = seconds({0});
    if (call < kCpuSpan) {
      std::vector<std::size_t> all(timed_slots_);
      std::iota(all.begin(), all.end(), 0);
      call = seconds(all);
    }
    if (problem_.reference_seconds > 0) call = std::min(call, problem_.reference_seconds);
    return std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(kCpuSpan / call)), 1, timed_slots_);
  }

  // What an empty request costs, now: the median of the latest ones.
  void MeasureTrip(int count) {
    for (int i = 0; i < count; ++i) {
      trips_.push_back(RunSlots({}, "none").wall);
      if (trips_.size() > 15) trips_.erase(trips_.begin());
    }
    trip_ = Median(trips_);
  }

  // Stops early only when the ranking interval is tight.
  bool Settled(const std::vector<Series>& series) const {
    const Series& first = series[0];
    if (first.reference.size() < 2 * static_cast<std::size_t>(settings_.min_samples)) return false;
    const RatioEstimate ratio = EstimateRatio(first.reference, first.candidate, static_cast<int>(block_pairs_), 1);
    return (ratio.high - ratio.low) <= 0.02 * ratio.speedup;
  }

  // The reference and the candidate on the same values, one after the other, in random order.
  void Pair(Series* entry, std::size_t first, std::size_t count, std::vector<double>* claims) {
    double reference = 0, candidate = 0;
    Reply reply;
    std::vector<std::unique_ptr<Call>> calls;
    for (std::size_t i = 0; i < count; ++i) calls.push_back(reference_.Prepare(slots_[first + i]->leaves, entry->mode));
    const bool repeats = ops_.cuda() && batch_ > 1;
    auto run_reference = [&] {
      ops_.Flush();
      // On a busy machine the scheduler favours who has rested, as the candidate has; let it be a duet of equals.
      if (!ops_.cuda()) std::this_thread::sleep_for(kRest);
      if (repeats) {
        const auto begin = Clock::now();
        for (std::size_t i = 0; i < batch_; ++i) calls[0]->Run();
        ops_.Synchronize();
        reference = Since(begin) / static_cast<double>(batch_);
      } else {
        reference = ops_.Time([&] {
          for (auto& call : calls) call->Run();
        });
        reference /= static_cast<double>(count);
      }
    };
    auto run_candidate = [&] {
      ops_.Flush();
      std::vector<std::size_t> order(repeats ? batch_ : count);
      if (repeats) {
        for (std::size_t& item : order) item = next_slot_++ % timed_slots_;
        order.back() = first;
      } else {
        std::iota(order.begin(), order.end(), first);
      }
      reply = RunSlots(order, repeats ? "last" : "all");
      const double claimed = std::accumulate(reply.claims.begin(), reply.claims.end(), 0.0);
      const double calls_made = static_cast<double>(order.size());
      claims->push_back(claimed / calls_made);
      double spent = reply.wall - trip_;
      if (!ops_.cuda()) {
        // The judge's clock alone. A Python candidate copies its outputs after its calls: its claim is taken, as long
        // as it leaves out no more than such a copy takes, nor three fifths of the time.
        candidate = spent / calls_made;
        if (settings_.python_candidate) {
          const double copy = CopyAllowance();
          candidate = std::max({claimed / calls_made, candidate - copy, 0.4 * candidate});
          spent -= calls_made * copy;
        }
        spans_.push_back(spent / calls_made);
        hidden_.push_back((spent - claimed) / calls_made);
      } else {
        candidate = (repeats ? spent : claimed) / calls_made;
      }
    };
    if (random_.Below(2) == 0) {
      run_reference();
      run_candidate();
    } else {
      run_candidate();
      run_reference();
    }
    // Every output is checked as long as that costs no more than the timing itself, then an unpredictable part of them.
    for (std::size_t i = 0; i < count; ++i) {
      if (verify_spent_ > 0.5 * Since(time_begin_) && random_.Below(8) != 0) continue;
      const auto begin = Clock::now();
      Expected expected;
      if (entry->mode == Mode::kEager) {
        expected.plain = calls[i]->Outputs();
      } else {
        auto eager = reference_.Prepare(slots_[first + i]->leaves, Mode::kEager);
        eager->Run();
        expected.plain = eager->Outputs();
      }
      Verify(slots_[first + i].get(), reply, expected, trials_ + 1);
      ++outputs_verified_;
      verify_spent_ += Since(begin);
    }
    if (!(candidate > 0) || !(reference > 0)) {
      Discard(ops_.cuda() && batch_ == 1 ? "no time passed by the claim" : "shorter than the judge's clock resolves");
      return;
    }
    entry->reference.push_back(reference);
    entry->candidate.push_back(candidate);
  }

  [[noreturn]] void Cheated(const std::string& evidence, double claimed, double seconds, std::size_t k) {
    timing_ = {{"claimed_median_seconds", claimed}, {"slope_seconds", seconds}, {"slope_k", k}};
    throw Verdict{"VERDICT_CHEATED",
                  "the time that the candidate claims contradicts the judge's clock",
                  {{"stage", "time"}, {"evidence", evidence}}};
  }

  // On a CPU no figure rests on a claim (but a Python candidate's, within the time of a copy), so a lie gains nothing;
  // it is named all the same: in the timed runs, or in single calls, which a liar may treat differently.
  void CheckCpuClaims(const std::vector<double>& claims) {
    // Too few to measure by are too few to accuse by: one preempted run would decide.
    if (hidden_.size() < static_cast<std::size_t>(settings_.min_samples)) return;
    // A busy machine may keep a candidate waiting in most of the runs, so that the quietest say whether it lies.
    const double claimed = Median(claims), span = Quantile(spans_, 0.1), hidden = Quantile(hidden_, 0.1);
    const double slack = 2 * trip_ + 200e-6;
    char text[300];
    const double share = settings_.python_candidate ? 0.5 : 0.25;
    if (span > 0 && hidden > share * span + slack / static_cast<double>(batch_)) {
      std::snprintf(text, sizeof text,
                    "in runs of %zu calls the judge's clock grew by %.4g s a call, the claims by %.4g s", batch_, span,
                    claimed);
      Cheated(text, claimed, span, batch_);
    }
    for (int attempt = 0; attempt < 3; ++attempt) {
      MeasureTrip(15);
      std::vector<double> singles, walls;
      for (int i = 0; i < 9 && (i < 3 || i * span < settings_.max_time); ++i) {
        const Reply reply = RunSlots({next_slot_++ % timed_slots_}, "none");
        singles.push_back(reply.claims[0]);
        walls.push_back(reply.wall - trip_);
      }
      const double wall = *std::min_element(walls.begin(), walls.end()), single = Quantile(singles, 0.1);
      if (wall - single <= 0.25 * wall + 2 * trip_ + 200e-6) return;
      std::snprintf(
          text, sizeof text,
          "single calls claim %.4g s and take %.4g s on the judge's clock beyond the %.4g s of an empty request",
          single, wall, trip_);
    }
    Cheated(text, claimed, span, batch_);
  }

  // On a GPU single calls are timed by the candidate's events: is its claim borne out by the judge's own clock? Two
  // ways to lie, each accused only when three series of runs, ever longer, agree. docs/timing.md derives the
  // tolerances.
  void CheckClaims(const std::vector<double>& claims, SlopeResult* slope) {
    const double claimed = Median(claims), quick = Quantile(claims, 0.25);
    const double grain = 10e-6;  // of one call: recording events, reading clocks
    std::string evidence;
    for (int attempt = 0; attempt < 3; ++attempt) {
      *slope = Slope(std::max(claimed, slope->seconds), 5 + 2 * attempt, 0.01 * (1 << attempt));
      char text[400];
      evidence.clear();
      if (slope->hidden > 0.25 * slope->seconds + grain) {
        std::snprintf(text, sizeof text,
                      "in runs of %zu and %zu calls the judge's clock grew by %.4g s a call, the claims by %.4g s less",
                      slope->k, 2 * slope->k, slope->seconds, slope->hidden);
        evidence = text;
      } else if (claimed < 0.8 * slope->smallest - grain && quick < 0.8 * slope->smallest - grain) {
        std::snprintf(
            text, sizeof text,
            "the candidate claims %.4g s for single calls; on the judge's clock a call in a row of %zu takes at "
            "least %.4g s",
            claimed, slope->k, slope->smallest);
        evidence = text;
      }
      if (evidence.empty()) return;
    }
    Cheated(evidence, claimed, slope->seconds, slope->k);
  }

  void Report(const std::vector<Series>& series, const std::vector<double>& claims) {
    const double claimed = Median(claims);
    const double sampling = Since(time_begin_);
    SlopeResult slope;
    if (!ops_.cuda()) {
      CheckCpuClaims(claims);
      slope.seconds = spans_.empty() ? 0 : Median(spans_);
      slope.k = batch_;
    } else if (batch_ == 1 && !claims.empty()) {
      CheckClaims(claims, &slope);
    }
    int discarded = 0;
    json discards = json::array();
    for (const auto& [reason, count] : discards_) {
      discarded += count;
      discards.push_back({{"reason", reason}, {"count", count}});
    }
    json baselines = json::array();
    for (const Series& entry : series) {
      json item{{"baseline", entry.baseline}};
      if (!entry.unavailable.empty()) {
        item["unavailable"] = entry.unavailable;
        baselines.push_back(item);
        continue;
      }
      if (static_cast<int>(entry.reference.size()) < std::min(settings_.min_samples, settings_.max_samples)) {
        if (&entry == &series[0] || entry.reference.empty()) {
          throw Verdict{"VERDICT_UNMEASURABLE",
                        "only " + std::to_string(entry.reference.size()) + " valid pairs of samples, and " +
                            std::to_string(settings_.min_samples) + " are needed (" + std::to_string(discarded) +
                            " discarded" + (discards.empty() ? "" : ": " + discards[0]["reason"].get<std::string>()) +
                            "); allow more time or fewer samples",
                        {}};
        }
      }
      const RatioEstimate ratio =
          EstimateRatio(entry.reference, entry.candidate, static_cast<int>(block_pairs_), kBootstrapSeed);
      item["reference_median_seconds"] = Median(entry.reference);
      item["candidate_median_seconds"] = Median(entry.candidate);
      item["speedup"] = ratio.speedup;
      item["speedup_low"] = ratio.low;
      item["speedup_high"] = ratio.high;
      item["samples"] = entry.reference.size();
      if (settings_.keep_samples) {
        item["reference_seconds"] = entry.reference;
        item["candidate_seconds"] = entry.candidate;
      }
      baselines.push_back(item);
    }
    std::string method = "duet, ";
    if (ops_.cuda()) {
      method += batch_ == 1 ? "cold L2, CUDA events checked by slope"
                            : "batches of " + std::to_string(batch_) + " on the judge's clock";
    } else {
      method += "runs of " + std::to_string(batch_) + " on the judge's clock";
      method += settings_.hold ? ", the candidate held between them" : "";
    }
    timing_ = {{"baselines", baselines},
               {"discarded", discarded},
               {"discards", discards},
               {"method", method},
               {"slope_seconds", slope.seconds},
               {"slope_k", slope.k},
               {"claimed_median_seconds", std::isfinite(claimed) ? claimed : 0.0},
               {"flush_bytes", ops_.flush_bytes()},
               {"buffer_sets", timed_slots_},
               {"sampling_seconds", sampling},
               {"outputs_verified", outputs_verified_}};
  }

  // Below this, giving cached device memory back costs more than it is worth.
  static constexpr std::size_t kLargeBytes = std::size_t{1} << 30;
  static constexpr std::size_t kMaxBatch = 2000;  // claims of so many calls fit in a candidate's frame
  static constexpr std::uint64_t kBootstrapSeed = 20250528;
  Clock::time_point time_begin_;
  double draw_spent_ = 0, verify_spent_ = 0;
  std::vector<std::vector<Leaf>> pool_;
  std::map<std::string, int> discards_;
  std::vector<double> trips_;           // empty requests, the latest
  std::vector<double> spans_, hidden_;  // CPU: of one call, by the judge's clock; and that less the claim
  std::vector<double> copies_;          // of a slot's outputs by the judge, the latest
  double trip_ = 0;
  std::size_t block_pairs_ = 1;
  bool holding_ = false, held_ = false;  // between timed runs it is held; it stands now
  std::size_t next_slot_ = 0, batch_ = 1;
  int outputs_verified_ = 0;

  LoadedProblem& problem_;
  Reference& reference_;
  DeviceOps& ops_;
  wire::Channel channel_;
  const EvaluationSettings& settings_;
  const Progress& progress_;
  Rule rule_;
  Random random_;
  Clock::time_point deadline_;
  std::string stage_ = "load";

  std::vector<SharedBlock*> regions_;
  std::unique_ptr<SharedBlock> params_;
  Layout params_layout_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t timed_slots_ = 0, slot_bytes_ = 0;
  bool high_fits_ = true;
  std::vector<std::string> paths_;

  int trials_ = 0, trials_passed_ = 0, first_failing_ = 0;
  bool inputs_modified_ = false, also_1e4_ = true, also_1e2_ = true, also_scaled_ = true;
  double worst_allowed_ = 0;
  std::vector<json> outputs_;
  std::vector<ReferenceNoise> noise_;
  std::vector<double> first_claims_;
  json timing_;
};

}  // namespace

std::string ShortType(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kShort:
      return "int16";
    case at::kChar:
      return "int8";
    case at::kByte:
      return "uint8";
    case at::kBool:
      return "bool";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    default:
      throw ProblemError(std::string("a tensor of type ") + c10::toString(type) +
                         " cannot be handed to a candidate; use float, int, bool or complex types");
  }
}

std::string TypeText(const at::Tensor& tensor) {
  return ShortType(tensor.scalar_type()) + json(tensor.sizes().vec()).dump();
}

std::uint64_t SecretSeed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) throw std::runtime_error("getrandom failed");
  return seed >> 1;  // torch takes what fits in a signed 64-bit integer
}

EvaluationSettings ParseSettings(const json& options, bool python_candidate) {
  EvaluationSettings settings;
  settings.python_candidate = python_candidate;
  if (!options.is_object()) return settings;
  auto number = [](const json& object, const char* name) -> double {
    auto member = object.find(name);
    if (member == object.end() || member->is_null()) return 0;
    double value = 0;
    if (member->is_number()) {
      value = member->get<double>();
    } else if (member->is_string()) {
      value = std::strtod(member->get<std::string>().c_str(), nullptr);
    }
    if (!std::isfinite(value) || value < 0)
      throw std::runtime_error(std::string("option ") + name + " must be a number from 0");
    return value;
  };
  auto set = [](double value, auto* field) {
    if (value > 0) *field = static_cast<std::remove_pointer_t<decltype(field)>>(value);
  };
  set(std::min(number(options, "trials"), 1000.0), &settings.trials);
  set(number(options, "min_time_seconds"), &settings.min_time);
  set(number(options, "max_time_seconds"), &settings.max_time);
  set(std::min(number(options, "min_samples"), 100000.0), &settings.min_samples);
  set(std::min(number(options, "max_samples"), 100000.0), &settings.max_samples);
  settings.max_time = std::max(settings.max_time, settings.min_time);
  settings.max_samples = std::max(settings.max_samples, settings.min_samples);
  settings.skip_timing = options.value("skip_timing", false);
  settings.keep_samples = options.value("keep_samples", false);
  if (auto baselines = options.find("baselines"); baselines != options.end() && baselines->is_array()) {
    for (const json& item : *baselines) {
      std::string name = item.is_string() ? item.get<std::string>() : item == 2 ? "BASELINE_COMPILE" : "BASELINE_EAGER";
      if (name == "BASELINE_UNSPECIFIED") name = "BASELINE_EAGER";
      if (std::find(settings.baselines.begin(), settings.baselines.end(), name) == settings.baselines.end()) {
        settings.baselines.push_back(name);
      }
    }
  }
  if (settings.baselines.empty()) settings.baselines.push_back("BASELINE_EAGER");
  if (auto tolerance = options.find("tolerance"); tolerance != options.end() && tolerance->is_object()) {
    const json mode = tolerance->value("mode", json("TOLERANCE_MODE_UNSPECIFIED"));
    if (mode == "TOLERANCE_MODE_ABSOLUTE_RELATIVE" || mode == 2) {
      settings.rule = Rule{RuleMode::kAbsoluteRelative, number(*tolerance, "atol"), number(*tolerance, "rtol")};
    } else if (mode == "TOLERANCE_MODE_SCALED" || mode == 1) {
      settings.rule = Rule{};
    }
  }
  if (auto limits = options.find("limits"); limits != options.end() && limits->is_object()) {
    set(number(*limits, "call_wall_seconds"), &settings.call_wall);
    set(number(*limits, "run_wall_seconds"), &settings.run_wall);
  }
  return settings;
}

EvaluationOutcome Evaluate(LoadedProblem& problem, DeviceOps& ops, wire::Channel candidate,
                           const EvaluationSettings& settings, const Progress& progress) {
  c10::NoGradGuard no_grad;
  EvaluationOutcome outcome = Evaluator(problem, ops, std::move(candidate), settings, progress).Run();
  // Another problem's judge may need the memory next.
  if (problem.bytes > (std::size_t{1} << 30)) ops.ReleaseCache();
  return outcome;
}

}  // namespace grove::judge
