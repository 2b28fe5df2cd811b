#include "worker/judge/conversation.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "worker/judge/clock.h"
#include "worker/judge/observation.h"

namespace grove::judge {
namespace {

using nlohmann::json;
constexpr char kUntold[] = "[its own words are not told: it had run shapes that are held out]";

// Makes a request as long to read as one with so many slots more.
std::vector<std::size_t> Filling(std::size_t count) {
  std::vector<std::size_t> filling(count);
  std::iota(filling.begin(), filling.end(), 0);
  return filling;
}

std::string Seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", value);
  return text;
}

// A traceback says what went wrong in the line behind its last frame (torch adds advice behind that), or announces it
// there and says it in the last one; other texts have one line.
std::string LastLine(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto last = text.rfind('\n');
  if (last == std::string::npos || text.find("Traceback") == std::string::npos) return text;
  auto at = text.rfind("\n  File \"");
  if (at == std::string::npos) return text.substr(last + 1);
  // The frame's own lines are indented: its place, its source, marks below it.
  do {
    at = text.find('\n', at + 1);
  } while (at != std::string::npos && at + 1 < text.size() && text[at + 1] == ' ');
  if (at == std::string::npos || at == last) return text.substr(last + 1);
  std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.empty() || line.back() == ':') line += (line.empty() ? "" : " ") + text.substr(last + 1);
  return line;
}

}  // namespace

Conversation::Conversation(wire::Channel channel, const ConversationLimits& limits, judge::Hold hold)
    : channel_(std::move(channel)),
      limits_(limits),
      hold_(std::move(hold)),
      deadline_(Clock::now() +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.run_wall))) {
  channel_.SpinFor(limits.spin);
}

double Conversation::Left() const { return std::chrono::duration<double>(deadline_ - Clock::now()).count(); }

void Conversation::Hello() { Receive("hello", true); }

json Conversation::Receive(const char* wanted, bool whole) {
  if (whole) return ReceiveWithin(wanted, limits_.run_wall, "run_wall_seconds", limits_.run_wall);
  return ReceiveWithin(wanted, limits_.call_wall, "call_wall_seconds", limits_.call_wall);
}

json Conversation::ReceiveWithin(const char* wanted, double limit, const char* limit_name, double limit_set) {
  const auto begin = Clock::now();
  double wait = limit;
  if (Left() < wait) {
    wait = std::max(Left(), 0.0);
    limit_name = "run_wall_seconds";
    limit_set = limits_.run_wall;
  }
  const auto due = begin + std::chrono::nanoseconds(static_cast<std::int64_t>(wait * 1e9));
  wire::ReceiveResult received;
  for (;;) {
    received = channel_.Receive(std::max<std::chrono::nanoseconds>(due - Clock::now(), std::chrono::nanoseconds(0)),
                                wire::kMaxCandidateFrameBytes);
    if (!received.ok() || !hear_of_memory_ || received.message.body.value("type", json()) != "memory") break;
    TakeMemory(std::move(received.message));
    if (Clock::now() >= due) {
      received.status = wire::ReceiveStatus::kTimeout;
      break;
    }
  }
  switch (received.status) {
    case wire::ReceiveStatus::kOk:
      break;
    case wire::ReceiveStatus::kTimeout: {
      const bool whole = std::strcmp(limit_name, "run_wall_seconds") == 0;
      const double reached = whole ? limits_.run_wall - Left() : Since(begin);
      throw Verdict{"VERDICT_TIMED_OUT",
                    std::string(whole ? "the candidate's whole run" : "one call of the kernel") + " took longer than " +
                        Seconds(limit_set) + " (" + limit_name + ")",
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
  if (*type == "fail") {
    // Who has taken all memory fails for want of it.
    if (look_) look_();
    Fail(body);
  }
  if (const auto at = body.find("processor");
      at != body.end() && at->is_number_integer() && *at >= 0 && *at < CPU_SETSIZE) {
    processor_ = at->get<int>();
  }
  if (*type != wanted)
    throw Protocol("\"" + Bounded(type->get<std::string>(), 40) + "\" where \"" + wanted + "\" was due");
  return body;
}

void Conversation::TakeMemory(wire::Message message) const {
  const auto pieces = message.body.find("pieces"), freed = message.body.find("freed");
  std::vector<Piece> taken;
  if (pieces != message.body.end()) {
    if (!pieces->is_array() || pieces->size() != message.fds.size()) throw Protocol("\"memory\" without its pieces");
    for (std::size_t i = 0; i < pieces->size(); ++i) {
      const json& piece = (*pieces)[i];
      if (!piece.is_array() || piece.size() != 2 || !piece[0].is_number_unsigned() || !piece[1].is_number_unsigned()) {
        throw Protocol("a piece of memory that is none");
      }
      taken.push_back({piece[0], piece[1], std::move(message.fds[i])});
    }
  }
  std::vector<std::uint64_t> gone;
  if (freed != message.body.end()) {
    if (!freed->is_array()) throw Protocol("\"memory\" that is freed without its numbers");
    for (const json& number : *freed) {
      if (!number.is_number_unsigned()) throw Protocol("a piece of memory without a number");
      gone.push_back(number);
    }
  }
  hear_of_memory_(std::move(taken), gone);
}

std::string Conversation::Doing() const {
  if (stage_ == "load") return "load the kernel";
  if (stage_ == "open") return "open its memory";
  return stage_ == "check" ? "run the kernel (check)" : "run the kernel (timing)";
}

Verdict Conversation::Protocol(const std::string& said) const {
  const std::string what = quiet_ ? kUntold : said;
  return {"VERDICT_CRASHED",
          "the candidate's process broke the protocol: " + what,
          {{"stage", stage_}, {"message", "broke the protocol: " + what}}};
}

void Conversation::Fail(const json& body) const {
  auto text = [&body](const char* name) -> std::string {
    auto member = body.find(name);
    return member != body.end() && member->is_string() ? Bounded(member->get<std::string>()) : "";
  };
  const std::string kind = text("kind"), message = quiet_ ? kUntold : text("message");
  const std::string first_line = Bounded(LastLine(message), 500);
  const bool memory = text("message").find("out of memory") != std::string::npos;
  json fault{{"stage", stage_}, {"message", message}};
  if (kind == "entry_missing" || kind == "load_error") {
    throw Verdict{"VERDICT_BUILD_FAILED", first_line, fault};
  }
  if (kind == "cuda_error") {
    fault["cuda_error"] = message;
    throw Verdict{"VERDICT_CRASHED", "CUDA error while the candidate was asked to " + Doing() + ": " + first_line,
                  fault, false, memory};
  }
  throw Verdict{"VERDICT_CRASHED", "the candidate failed: " + first_line, fault, false, memory};
}

void Conversation::Send(const json& body, std::span<const int> fds) {
  auto error = channel_.Send(body, fds, std::chrono::seconds(10));
  if (!error) return;
  // (All processes of a user together may have so many descriptors on their way.)
  if (channel_.send_refused()) throw std::runtime_error("the candidate could not be asked: " + *error);
  // A candidate that failed has said why before it went.
  ReceiveWithin("nothing", 1.0, "call_wall_seconds", limits_.call_wall);
}

void Conversation::HoldStill(const std::function<void()>& meanwhile) {
  if (!hold_ || held_) {
    if (meanwhile) meanwhile();
    return;
  }
  const auto begin = Clock::now();
  const Held held = MustHold(kSameProcessor, meanwhile);
  held_ = true;
  let_go_ = held.let_go;
  stopping_ = std::max(std::chrono::duration<double>(held.stood - begin).count(), 0.0);
}

Held Conversation::MustHold(int processor, const std::function<void()>& meanwhile) {
  const Held held = hold_(true, processor, meanwhile);
  if (held.ok) return held;
  throw Verdict{"VERDICT_UNMEASURABLE", "the candidate could not be stopped while the reference is timed", {}};
}

void Conversation::LetGo() {
  if (held_) {
    hold_(false, kSameProcessor, nullptr);
    ++turns_;
  }
  held_ = false;
}

bool Conversation::StandOn(int processor) {
  if (!held_) return false;
  const bool placed = MustHold(processor).placed;
  if (placed && processor >= 0) processor_ = processor;
  return placed;
}

void Conversation::HoldBetweenRuns(bool on) {
  holding_ = on;
  if (on) {
    HoldStill();
  } else {
    LetGo();
  }
}

void Conversation::Close() { channel_.Send({{"type", "close"}}, {}, std::chrono::milliseconds(100)); }

void Conversation::TakeClaims(const json& body, std::size_t calls, Reply* reply) const {
  auto claims = body.find("claimed_ns");
  if (claims == body.end() || !claims->is_array() || (claims->size() != calls && claims->size() != 1)) {
    throw Protocol("\"done\" without its claims");
  }
  for (const json& claim : *claims) {
    if (!claim.is_number_integer() || claim < 0 || claim > 1000000000000000) throw Protocol("a claim that is no time");
    reply->claims.push_back(1e-9 * claim.get<double>());
  }
}

Reply Conversation::Run(const std::vector<std::size_t>& slots, const char* store, bool observe) {
  const auto begin = Clock::now();
  // A candidate that is held finds its request when it wakes, so that it has no time of its own before it.
  json request{{"type", "run"}, {"slots", slots}, {"store", store}};
  if (observe) request["observe"] = true;
  Send(request);
  LetGo();
  const double limit = limits_.call_wall * static_cast<double>(std::max<std::size_t>(slots.size(), 1));
  json body = ReceiveWithin("done", limit, "call_wall_seconds", limits_.call_wall);
  Reply reply;
  reply.wall = Since(begin);
  if (holding_) HoldStill();
  if (look_) look_();
  TakeClaims(body, slots.size(), &reply);
  if (auto outputs = body.find("outputs"); outputs != body.end()) reply.outputs = std::move(*outputs);
  if (auto work = body.find("work"); observe && work != body.end()) {
    std::string error;
    auto parsed = ParseObservation(*work, &error);
    if (!parsed) throw Protocol(error);
    reply.work = std::move(*parsed);
  }
  return reply;
}

void Conversation::RunProfiled(const std::vector<std::size_t>& slots) {
  Send({{"type", "run"}, {"slots", slots}, {"store", "all"}, {"profile", true}});
  LetGo();
  Receive("done", /*whole=*/true);
}

// From the request until the answer has come and `drained` has returned.
Conversation::Span Conversation::Ask(const json& request, std::size_t calls, const Drained& drained, json* body,
                                     const char* answer, const std::function<void()>& meanwhile) {
  Span span;
  span.begin = Clock::now();
  Send(request);
  LetGo();
  if (meanwhile) meanwhile();
  const double limit = limits_.call_wall * static_cast<double>(std::max<std::size_t>(calls, 1));
  *body = ReceiveWithin(answer, limit, "call_wall_seconds", limits_.call_wall);
  span.end = drained ? drained() : Clock::now();
  return span;
}

double Conversation::Took(const Span& span, const std::function<void()>& meanwhile) {
  stopping_ = 0;
  if (holding_) {
    HoldStill(meanwhile);
  } else if (meanwhile) {
    meanwhile();
  }
  const auto begin = held_ && let_go_ >= span.begin && let_go_ <= span.end ? let_go_ : span.begin;
  return std::chrono::duration<double>(span.end - begin).count();
}

double Conversation::Practise(std::size_t calls, std::size_t like, const Drained& drained, const json& results) {
  json request{{"type", "run"}, {"slots", json::array()}, {"store", "later"}, {"practice", calls}}, body;
  if (!results.empty()) request["results"] = results;
  if (like > 0) request["filling"] = Filling(like);
  return Took(Ask(request, calls, drained, &body));
}

double Conversation::PractiseStoring(std::size_t like) {
  json body;
  return Took(Ask({{"type", "store"}, {"slots", Filling(like)}, {"practice", true}}, 1, nullptr, &body, "stored"));
}

Reply Conversation::RunTimed(const std::vector<std::size_t>& slots, std::size_t like, const Drained& drained,
                             const std::function<void()>& at_once) {
  json request{{"type", "run"}, {"slots", slots}, {"store", "later"}}, body;
  if (like > slots.size()) request["filling"] = Filling(like - slots.size());
  Reply reply;
  const Span span = Ask(request, slots.size(), drained, &body);
  reply.wall = Took(span, at_once);
  TakeClaims(body, slots.size(), &reply);
  if (auto outputs = body.find("outputs"); outputs != body.end()) reply.outputs = std::move(*outputs);
  return reply;
}

void Conversation::RunInSteps(const std::vector<std::size_t>& slots, const std::function<void()>& give) {
  json body;
  Took(Ask({{"type", "run"}, {"slots", slots}, {"store", "later"}, {"in_steps", true}}, slots.size(), nullptr, &body,
           "done", give));
}

void Conversation::PractiseSteps(const json& practice, const std::function<void()>& give) {
  json body;
  Took(Ask({{"type", "run"}, {"slots", json::array()}, {"practice", practice.size()}, {"steps", practice}},
           practice.size(), nullptr, &body, "done", give));
}

bool Conversation::HasSpoken() const {
  pollfd entry{channel_.fd(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

std::vector<double> Conversation::RunAlone(const std::vector<std::size_t>& slots) {
  json body;
  Took(Ask({{"type", "run"}, {"slots", slots}, {"store", "later"}, {"alone", true}}, slots.size(), nullptr, &body));
  Reply reply;
  TakeClaims(body, slots.size(), &reply);
  return reply.claims;
}

Reply Conversation::Store(const std::vector<std::size_t>& slots) {
  const json request{{"type", "store"}, {"slots", slots}};
  json body;
  Reply reply;
  reply.wall = Took(Ask(request, slots.size(), nullptr, &body, "stored"));
  if (auto outputs = body.find("outputs"); outputs != body.end()) reply.outputs = std::move(*outputs);
  return reply;
}

}  // namespace grove::judge
