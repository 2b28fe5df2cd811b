// An engine on a real store in a temporary folder, with a clock that stands still, and calls that wait for their
// answer.
#pragma once

#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "coordinator/engine/engine_impl.h"
#include "coordinator/store/sqlite_store.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_worker_link.h"
#include "tests/support/faulty_store.h"
#include "tests/support/temp_dir.h"

namespace grove::testing {

template <typename T, typename F>
absl::StatusOr<T> Wait(F&& call) {
  auto promise = std::make_shared<std::promise<absl::StatusOr<T>>>();
  std::future<absl::StatusOr<T>> answer = promise->get_future();
  call([promise](absl::StatusOr<T> value) { promise->set_value(std::move(value)); });
  if (answer.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
    return absl::DeadlineExceededError("the engine gave no answer for a minute");
  }
  return answer.get();
}

// A small policy of its own: `ideas` ideas from the reference, one kernel each, the best is parent of the next round.
// Repairs nothing. Pure, as the contract asks.
class SmallPolicy : public search::Policy {
 public:
  explicit SmallPolicy(const v1::SearchPolicy& spec) : rounds_(spec.rounds()), ideas_(spec.ideas()) { Open(0, ""); }

  std::vector<search::Action> Ask(int max) override {
    std::vector<search::Action> actions;
    // What can be measured comes before what must be thought of first.
    for (const bool generate : {false, true}) {
      for (auto& [key, item] : items_) {
        if (static_cast<int>(actions.size()) >= max) return actions;
        const bool needs_generator = std::holds_alternative<search::ProposeIdeas>(item.action) ||
                                     std::holds_alternative<search::WriteKernel>(item.action);
        if (item.asked || item.told || needs_generator != generate) continue;
        item.asked = true;
        actions.push_back(item.action);
      }
    }
    return actions;
  }
  void TellIdeas(const std::string& request, const std::vector<v1::IdeaNode>& ideas) override {
    if (!Told(request)) return;
    for (const v1::IdeaNode& idea : ideas) {
      search::WriteKernel write;
      write.request = absl::StrCat(idea.id(), "/v0");
      write.idea = idea.id();
      round_of_[idea.id()] = idea.round();
      Add(write.request, write);
    }
    MaybeNext();
  }
  void TellIdeasFailed(const std::string& request) override {
    if (Told(request)) MaybeNext();
  }
  void TellKernel(const std::string& request, const v1::KernelNode& kernel) override {
    if (!Told(request)) return;
    Add(absl::StrCat("eval ", kernel.id()), search::EvaluateKernel{kernel.id()});
  }
  void TellKernelFailed(const std::string& request) override {
    if (Told(request)) MaybeNext();
  }
  void TellEvaluated(const std::string& kernel, const v1::EvaluationResult& result) override {
    if (!Told(absl::StrCat("eval ", kernel))) return;
    if (result.verdict() == v1::VERDICT_CORRECT) {
      const double speedup = result.timing().baselines_size() > 0 ? result.timing().baselines(0).speedup() : 0;
      if (speedup > best_speedup_) {
        best_speedup_ = speedup;
        best_ = kernel;
      }
    }
    MaybeNext();
  }
  void TellSelected(const std::string& kernel, int round, bool) override {
    if (Told(absl::StrCat("select ", round))) Open(round + 1, kernel);
  }
  void Extend(int extra_rounds, int) override {
    rounds_ += extra_rounds;
    MaybeNext();
  }
  bool Finished() const override {
    for (const auto& [key, item] : items_) {
      if (!item.told) return false;
    }
    return true;
  }
  v1::NodeState IdeaState(const std::string&) const override { return v1::NODE_STATE_OPEN; }
  double IdeaCredit(const std::string&) const override { return 0; }

 private:
  struct Item {
    search::Action action;
    bool asked = false;
    bool told = false;
  };
  void Add(const std::string& key, search::Action action) { items_.emplace_back(key, Item{std::move(action)}); }
  bool Told(const std::string& key) {
    for (auto& [name, item] : items_) {
      if (name != key || item.told) continue;
      item.told = true;
      return true;
    }
    return false;
  }
  void Open(int round, const std::string& parent) {
    round_ = round;
    search::ProposeIdeas propose;
    propose.request = absl::StrCat("r", round, "/ideas");
    propose.parent = parent;
    propose.round = round;
    propose.count = ideas_;
    Add(propose.request, propose);
  }
  void MaybeNext() {
    if (!Finished() || round_ + 1 >= rounds_ || best_.empty()) return;
    Add(absl::StrCat("select ", round_), search::SelectKernel{best_, round_, false});
  }

  int rounds_;
  const int ideas_;
  int round_ = 0;
  std::string best_;
  double best_speedup_ = 0;
  std::map<std::string, int> round_of_;
  std::vector<std::pair<std::string, Item>> items_;
};

// Writes sources that name their request; can be told to be out, to fail, or to hold its answers back.
class FakeGenerator : public generate::Generator {
 public:
  absl::Status Supports(const generate::Context&) override {
    std::lock_guard<std::mutex> lock(mu_);
    return supports_;
  }
  absl::StatusOr<generate::IdeasAnswer> ProposeIdeas(const generate::Context& context,
                                                     const generate::IdeaRequest& request) override {
    if (absl::Status status = Begin(request.request, context); !status.ok()) return status;
    generate::IdeasAnswer answer;
    for (int i = 0; i < request.count; ++i) {
      answer.ideas.emplace_back().set_title(absl::StrCat("idea ", i, " of ", request.request));
    }
    answer.usage.calls = 1;
    answer.usage.model = "fake";
    answer.usage.prompt_tokens = 10;
    answer.usage.completion_tokens = 2;
    return answer;
  }
  absl::StatusOr<generate::KernelAnswer> WriteKernel(const generate::Context& context,
                                                     const generate::KernelRequest& request) override {
    if (absl::Status status = Begin(request.request, context); !status.ok()) return status;
    generate::KernelAnswer answer;
    v1::Candidate* candidate = answer.kernel.mutable_candidate();
    candidate->set_format(v1::CANDIDATE_FORMAT_CPP);
    std::lock_guard<std::mutex> lock(mu_);
    candidate->set_source(same_source_ ? "int same;"
                                       : absl::StrCat("int f() { return \"", request.request, "\"; }", declaration_));
    return answer;
  }
  void Cancel() override {
    std::lock_guard<std::mutex> lock(mu_);
    cancelled_ = true;
  }

  void set_supports(absl::Status status) {
    std::lock_guard<std::mutex> lock(mu_);
    supports_ = std::move(status);
  }
  void set_failure(absl::Status status) {
    std::lock_guard<std::mutex> lock(mu_);
    failure_ = std::move(status);
  }
  // At the end of every kernel.
  void set_declaration(std::string text) {
    std::lock_guard<std::mutex> lock(mu_);
    declaration_ = std::move(text);
  }
  void set_same_source(bool same) {
    std::lock_guard<std::mutex> lock(mu_);
    same_source_ = same;
  }
  std::vector<std::string> requests() {
    std::lock_guard<std::mutex> lock(mu_);
    return requests_;
  }
  bool cancelled() {
    std::lock_guard<std::mutex> lock(mu_);
    return cancelled_;
  }
  size_t bank_seen() {
    std::lock_guard<std::mutex> lock(mu_);
    return bank_seen_;
  }

 private:
  absl::Status Begin(const std::string& request, const generate::Context& context) {
    std::lock_guard<std::mutex> lock(mu_);
    requests_.push_back(request);
    bank_seen_ = std::max(bank_seen_, context.bank.size());
    return failure_;
  }
  std::mutex mu_;
  absl::Status supports_;
  absl::Status failure_;
  bool same_source_ = false;
  std::string declaration_;
  bool cancelled_ = false;
  size_t bank_seen_ = 0;
  std::vector<std::string> requests_;
};

class Harness {
 public:
  Harness() { Open(); }

  void Open() {
    absl::Status opened = TryOpen();
    INFO(opened.ToString());
    REQUIRE(opened.ok());
  }
  absl::Status TryOpen() {
    auto real = store::OpenSqliteStore(dir.path());
    if (!real.ok()) return real.status();
    coordinator::EngineDependencies deps;
    deps.clock = &clock;
    deps.store = std::make_unique<FaultyStore>(*std::move(real), faults);
    deps.make_generator = [this](const v1::GeneratorSpec&) { return generator; };
    deps.recognise_operation = [](const v1::ProblemDescription& description) { return description.graph_error(); };
    deps.make_policy = [](const v1::SearchPolicy& spec) { return std::make_unique<SmallPolicy>(spec); };
    deps.with_defaults = [](const v1::SearchPolicy& spec) {
      v1::SearchPolicy filled = spec;
      if (filled.rounds() == 0) filled.set_rounds(2);
      if (filled.ideas() == 0) filled.set_ideas(3);
      return filled;
    };
    deps.validate_policy = [](const v1::SearchPolicy& spec) {
      return spec.rounds() < 0 ? std::optional<std::string>("rounds is negative") : std::nullopt;
    };
    options.data_dir = dir.path();
    options.version = "test";
    options.generator_threads = 2;
    auto made = coordinator::CreateEngine(options, std::move(deps));
    if (!made.ok()) return made.status();
    engine = *std::move(made);
    return absl::OkStatus();
  }
  // As after a crash between two turns: what was not committed is gone.
  void Restart() {
    engine.reset();
    generator = std::make_shared<FakeGenerator>();
    Open();
  }
  // Everything said so far has been acted upon and committed (calls of generators aside).
  void Settle() {
    for (int i = 0; i < 2; ++i) {
      REQUIRE(Wait<coordinator::EngineStats>([&](auto reply) { engine->Stats(reply); }).ok());
    }
  }
  void Advance(absl::Duration by) {
    clock.Advance(by);
    Settle();
  }

  absl::StatusOr<v1::SubmitJobResponse> Submit(const v1::SubmitJobRequest& request) {
    return Wait<v1::SubmitJobResponse>([&](auto reply) { engine->SubmitJob(request, reply); });
  }
  absl::StatusOr<v1::Job> Get(const std::string& id) {
    return Wait<v1::Job>([&](auto reply) { engine->GetJob(id, reply); });
  }
  absl::StatusOr<v1::Job> Cancel(const std::string& id) {
    v1::CancelJobRequest request;
    request.set_id(id);
    return Wait<v1::Job>([&](auto reply) { engine->CancelJob(request, reply); });
  }
  absl::StatusOr<v1::Job> Resume(const std::string& id, int rounds = 0) {
    v1::ResumeJobRequest request;
    request.set_id(id);
    request.set_extra_rounds(rounds);
    return Wait<v1::Job>([&](auto reply) { engine->ResumeJob(request, reply); });
  }
  absl::StatusOr<v1::KernelNode> Kernel(const std::string& id) {
    auto node = Wait<v1::TreeNode>([&](auto reply) { engine->GetNode(id, reply); });
    if (!node.ok()) return node.status();
    return node->kernel();
  }
  std::vector<v1::TreeNode> Tree(const std::string& id) {
    std::vector<v1::TreeNode> all;
    for (;;) {
      auto page = Wait<std::vector<v1::TreeNode>>(
          [&](auto reply) { engine->GetTree(id, static_cast<int64_t>(all.size()), 7, reply); });
      REQUIRE(page.ok());
      if (page->empty()) return all;
      all.insert(all.end(), page->begin(), page->end());
    }
  }
  coordinator::EngineStats Stats() {
    return *Wait<coordinator::EngineStats>([&](auto reply) { engine->Stats(reply); });
  }
  // All events of an ended job, by watching it.
  std::vector<v1::Event> Watch(const std::string& id) {
    std::vector<v1::Event> events;
    uint64_t after = 0;
    for (;;) {
      auto batch = Wait<coordinator::EventBatch>([&](auto reply) { engine->NextEvents(id, after, -1, 5, reply); });
      INFO(batch.status().ToString());
      REQUIRE(batch.ok());
      events.insert(events.end(), batch->events.begin(), batch->events.end());
      after = batch->next_after_seq;
      if (batch->ended) return events;
    }
  }

  TempDir dir;
  FakeClock clock;
  std::shared_ptr<StoreFaults> faults = std::make_shared<StoreFaults>();
  std::shared_ptr<FakeGenerator> generator = std::make_shared<FakeGenerator>();
  coordinator::EngineOptions options;
  std::unique_ptr<coordinator::Engine> engine;
};

// A worker that a test drives by hand.
class Worker {
 public:
  Worker(Harness& harness, std::string id, int capacity = 2) : harness_(harness) {
    hello.set_worker_id(std::move(id));
    hello.set_protocol(1);
    hello.set_capacity(capacity);
    hello.mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
    hello.mutable_device()->set_name("test cpu");
  }
  void Connect() {
    link = std::make_shared<FakeWorkerLink>();
    session = harness_.engine->WorkerConnected(hello, link);
    auto message = link->Next();
    REQUIRE(message.has_value());
    REQUIRE(message->has_welcome());
    welcome = message->welcome();
  }
  v1::Assignment NextAssignment() {
    for (;;) {
      auto message = link->Next();
      REQUIRE(message.has_value());
      if (message->has_assignment()) return message->assignment();
    }
  }
  // Nothing when the job ends without one, as an answer of its generator may have it at any moment.
  std::optional<v1::Assignment> NextAssignmentOf(const std::string& job) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    do {
      const v1::JobState state = harness_.Get(job)->state();
      const bool ended =
          state == v1::JOB_STATE_DONE || state == v1::JOB_STATE_FAILED || state == v1::JOB_STATE_CANCELLED;
      while (auto message = link->TryNext()) {
        if (message->has_assignment()) return message->assignment();
      }
      if (ended) return std::nullopt;
      std::this_thread::yield();
    } while (absl::Now() < deadline);
    FAIL("neither an assignment nor the end of " << job);
    return std::nullopt;
  }
  v1::ResultAck NextAck() {
    for (;;) {
      auto message = link->Next();
      REQUIRE(message.has_value());
      if (message->has_ack()) return message->ack();
    }
  }
  void Say(v1::WorkerMessage message) { harness_.engine->WorkerSaid(session, std::move(message)); }
  void Beat(const std::vector<v1::Lease>& running) {
    v1::WorkerMessage message;
    message.mutable_heartbeat()->set_slot_state("idle");
    for (const v1::Lease& lease : running) *message.mutable_heartbeat()->add_running() = lease;
    Say(std::move(message));
  }
  void Fail(const v1::Lease& lease, const std::string& reason) {
    v1::WorkerMessage message;
    *message.mutable_result()->mutable_lease() = lease;
    message.mutable_result()->set_infrastructure_failure(reason);
    Say(std::move(message));
  }
  void Finish(const v1::Lease& lease, v1::EvaluationResult result) {
    v1::WorkerMessage message;
    *message.mutable_result()->mutable_lease() = lease;
    *message.mutable_result()->mutable_evaluation() = std::move(result);
    Say(std::move(message));
  }
  void Describe(const v1::Lease& lease, const std::string& operation) {
    v1::WorkerMessage message;
    *message.mutable_result()->mutable_lease() = lease;
    v1::ProblemDescription* description = message.mutable_result()->mutable_description();
    description->set_graph_error(operation);  // the fake recogniser reads it there
    description->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
    Say(std::move(message));
  }
  void Close() { harness_.engine->WorkerClosed(session); }

  v1::WorkerHello hello;
  v1::Welcome welcome;
  std::shared_ptr<FakeWorkerLink> link;
  uint64_t session = 0;

 private:
  Harness& harness_;
};

inline v1::EvaluationResult Correct(double speedup) {
  v1::EvaluationResult result;
  result.set_verdict(v1::VERDICT_CORRECT);
  v1::BaselineTiming* baseline = result.mutable_timing()->add_baselines();
  baseline->set_baseline(v1::BASELINE_EAGER);
  baseline->set_speedup(speedup);
  baseline->set_speedup_low(speedup * 0.95);
  baseline->set_speedup_high(speedup * 1.05);
  result.mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  return result;
}

inline v1::EvaluationResult Bad(v1::Verdict verdict) {
  v1::EvaluationResult result;
  result.set_verdict(verdict);
  result.set_reason("it is bad");
  return result;
}

inline std::string KeyOf(const std::string& text) { return absl::StrCat("test-key-0123456789-", text); }

inline v1::SubmitJobRequest EvalJob(const std::string& key, const std::vector<std::string>& sources) {
  v1::SubmitJobRequest request;
  request.set_idempotency_key(KeyOf(key));
  v1::EvalSpec* eval = request.mutable_spec()->mutable_eval();
  eval->mutable_problem()->set_name("softmax");
  eval->mutable_problem()->set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
  eval->mutable_problem()->set_source("class Model: pass\n");
  for (const std::string& source : sources) {
    v1::Candidate* candidate = eval->add_candidates();
    candidate->set_name("c.cpp");
    candidate->set_format(v1::CANDIDATE_FORMAT_CPP);
    candidate->set_source(source);
  }
  return request;
}

inline v1::SubmitJobRequest SearchJob(const std::string& key) {
  v1::SubmitJobRequest request;
  request.set_idempotency_key(KeyOf(key));
  v1::SearchSpec* search = request.mutable_spec()->mutable_search();
  search->mutable_problem()->set_name("softmax");
  search->mutable_problem()->set_format(v1::PROBLEM_FORMAT_KERNELBENCH);
  search->mutable_problem()->set_source("class Model: pass\n");
  return request;
}

}  // namespace grove::testing
