// What is said to one candidate and heard from it: frames, time limits, faults, and holding it still between timed
// runs. Everything that comes from a candidate is hostile: each field is checked before it is used, and what does not
// fit ends the evaluation with a Verdict. docs/protocol.md has the frames. Used by the judge's main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "common/wire/channel.h"
#include "worker/judge/hold.h"
#include "worker/judge/verdict.h"

namespace grove::judge {

struct ConversationLimits {
  double call_wall = 10;             // seconds for one call of the kernel
  double run_wall = 120;             // seconds for all that this candidate does
  std::chrono::nanoseconds spin{0};  // so long an answer is waited for without sleep
};

// Device memory of a script's process that results lie in, by its own words.
struct Piece {
  std::uint64_t number = 0;  // its name in that process, for good
  std::size_t bytes = 0;
  wire::UniqueFd fd;
};

struct Reply {
  std::vector<double> claims;  // seconds; the candidate's own words
  nlohmann::json outputs;      // Python candidates: type, shape and device of what forward returned
  nlohmann::json work;         // observed runs: a WorkReport (observation.h); null where nothing was observed
  double wall = 0;             // seconds to its answer on the judge's clock: from the request, or as RunTimed says
};

// Waits until nothing is at work on the device any more, and says when that was.
using Drained = std::function<std::chrono::steady_clock::time_point()>;

class Conversation {
 public:
  // `hold`: empty where this candidate cannot be held.
  Conversation(wire::Channel channel, const ConversationLimits& limits, Hold hold);

  // Where this candidate is: "load", "open", "check", "time". Named in every fault.
  void SetStage(std::string stage) { stage_ = std::move(stage); }
  const std::string& stage() const { return stage_; }

  // From here on nothing of what this candidate says about itself is passed on: it knows shapes that are held out.
  void KeepQuiet() { quiet_ = true; }
  bool quiet() const { return quiet_; }

  void Hello();
  void Send(const nlohmann::json& body, std::span<const int> fds = {});
  // The next frame, which must be of the type `wanted`; within call_wall or, where `whole`, what is left of run_wall.
  nlohmann::json Receive(const char* wanted, bool whole = false);

  // Runs these slots in this order and waits for the answer. `store` as in docs/protocol.md.
  // `observe`: a Python candidate also says what did the work (never asked of a run that is timed).
  Reply Run(const std::vector<std::size_t>& slots, const char* store, bool observe = false);
  // The same, marked by the candidate for a profiler that watches its process.
  void RunProfiled(const std::vector<std::size_t>& slots);
  // The same, timed. The clock runs from when the candidate is let go (where it is not held, from the request) until
  // the moment that `drained` gives, which is called at the answer and waits for the device; then, while the candidate
  // is being stopped, `at_once` is called: whatever still runs there by stealth is to find nothing to work on. A Python
  // candidate keeps what forward returned for Store, and says where it lies where there is room for that
  // (Arena::AddAddresses); the reply has `outputs` where the last slot's are not of the wanted types and shapes.
  // `like`: the request is as long as that of a run of so many calls, whatever it asks for: an empty run that costs
  // what asking for a full one does.
  Reply RunTimed(const std::vector<std::size_t>& slots, std::size_t like, const Drained& drained,
                 const std::function<void()>& at_once);
  // The same with so many calls of a program of the candidate's process own, which it runs only before the candidate's
  // program is loaded. Seconds.
  // `results`: [region, offset, bytes] for each of which a Python process makes a tensor besides.
  double Practise(std::size_t calls, std::size_t like, const Drained& drained,
                  const nlohmann::json& results = nlohmann::json::array());
  // Storing them there, in a request as long as one for so many slots. Seconds.
  double PractiseStoring(std::size_t like);
  // A run in steps (common/wire/steps.h): `give` gives the inputs of call after call, and takes what they give, while
  // it goes on; it ends at the latest when the process has something to say (HasSpoken), which the answer then is; what
  // it throws ends the conversation, too. With `practice` (docs/protocol.md) calls of nothing on these places, before
  // the candidate's program is loaded.
  void RunInSteps(const std::vector<std::size_t>& slots, const std::function<void()>& give);
  void PractiseSteps(const nlohmann::json& practice, const std::function<void()>& give);
  // Whether something has come from the candidate's process that was not received yet, or it is gone.
  bool HasSpoken() const;
  // A native candidate on a GPU runs each of these slots by itself and says how long it took (docs/protocol.md). Its
  // claims: one for each, or one where it does as it does in other runs.
  std::vector<double> RunAlone(const std::vector<std::size_t>& slots);
  // A Python candidate copies what the last timed run returned for these slots to their outputs, and forgets the rest.
  // The reply has `outputs` (of the last slot) and `wall`.
  Reply Store(const std::vector<std::size_t>& slots);
  void Close();

  // Called with what a script says of the memory that its results lie in, before the answer that names it: pieces that
  // are new, and the numbers of those that it has given back.
  using HearOfMemory = std::function<void(std::vector<Piece>, const std::vector<std::uint64_t>& freed)>;
  void SetHearOfMemory(HearOfMemory hear) { hear_of_memory_ = std::move(hear); }

  // Called after every run that is not timed, once the candidate is held where it can be; may throw a Verdict.
  void SetLook(std::function<void()> look) { look_ = std::move(look); }

  // From now on (until `false`) the candidate stands still whenever it is not asked to run: nothing can be computed
  // ahead of the question, finished after the answer, or be in the reference's way.
  void HoldBetweenRuns(bool on);
  // While it is held: from its next run on it stands on this processor of the host (kAnyProcessor: on any). Whether it
  // does.
  bool StandOn(int processor);
  bool can_hold() const { return static_cast<bool>(hold_); }
  bool held() const { return held_; }
  // How often it was let go so far.
  std::uint64_t turns() const { return turns_; }
  // Seconds that it took to stand still after the last timed run. The kernel finishes what a process has asked of it.
  double stopping() const { return stopping_; }
  // The processor on which the candidate answered last, by its own words; -1 where it has not said.
  int processor() const { return processor_; }

  double Left() const;  // seconds of run_wall

  // What a broken frame is.
  Verdict Protocol(const std::string& said) const;

 private:
  nlohmann::json ReceiveWithin(const char* wanted, double limit, const char* limit_name, double limit_set);
  void TakeMemory(wire::Message message) const;
  void TakeClaims(const nlohmann::json& body, std::size_t calls, Reply* reply) const;
  [[noreturn]] void Fail(const nlohmann::json& body) const;
  std::string Doing() const;
  struct Span {
    std::chrono::steady_clock::time_point begin, end;
  };
  Span Ask(const nlohmann::json& request, std::size_t calls, const Drained& drained, nlohmann::json* body,
           const char* answer = "done", const std::function<void()>& meanwhile = nullptr);
  // Seconds of a span in which the candidate was let go, once it is held again where it is to be.
  double Took(const Span& span, const std::function<void()>& meanwhile = nullptr);
  void HoldStill(const std::function<void()>& meanwhile = nullptr);
  Held MustHold(int processor, const std::function<void()>& meanwhile = nullptr);
  void LetGo();

  wire::Channel channel_;
  ConversationLimits limits_;
  Hold hold_;
  std::function<void()> look_;
  HearOfMemory hear_of_memory_;
  std::chrono::steady_clock::time_point deadline_;
  std::string stage_ = "load";
  bool quiet_ = false;
  bool holding_ = false, held_ = false;  // between runs it is held; it stands now
  std::uint64_t turns_ = 0;
  double stopping_ = 0;
  std::chrono::steady_clock::time_point let_go_;  // the last time, as the worker says
  int processor_ = -1;
};

}  // namespace grove::judge
