#include "worker/pipeline/warm_judges.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "worker/pipeline/verdict.h"

namespace grove::worker {
namespace {

// A judge that dies so often in a row on one problem is the problem's doing.
constexpr int kMaxDeaths = 3;
constexpr size_t kMaxRemembered = 1000;

std::string KeyOf(const v1::Problem& problem) {
  return Sha256HexOfParts({absl::StrCat(problem.format()), problem.name(), problem.source()});
}

}  // namespace

WarmJudge* WarmJudges::Find(const v1::Problem& problem) {
  const std::string key = KeyOf(problem);
  for (auto it = judges_.begin(); it != judges_.end(); ++it) {
    if (it->problem != key) continue;
    if (!it->judge->Alive()) {
      judges_.erase(it);
      return nullptr;
    }
    judges_.splice(judges_.begin(), judges_, it);
    FitHost(1);
    return &judges_.front();
  }
  return nullptr;
}

void WarmJudges::FitHost(size_t keep) {
  if (options_.most_host_bytes < 0) return;
  int64_t held = 0;
  size_t at = 0;
  judges_.remove_if([&](const WarmJudge& j) {  // most recently used first
    const int64_t its = options_.host_bytes(j);
    if (++at <= keep || held + its <= options_.most_host_bytes) {
      held += its;
      return false;
    }
    LogInfo("worker", "a warm judge is let go: with it they hold ", (held + its) >> 20,
            " MiB of this machine's memory");
    return true;
  });
}

WarmJudge* WarmJudges::Load(const v1::Problem& problem, const v1::EvaluationOptions& options, bool check,
                            const JudgeProcess::OnProgress& on_progress, const JudgeProcess::Cancelled& cancelled,
                            v1::WorkResult* failure) {
  const std::string plain_key = KeyOf(problem);
  const std::string key = absl::StrCat(plain_key, check ? "#check" : "");
  // Room for one more, and for its problem beside those of the judges that stay.
  while (judges_.size() >= options_.most) judges_.pop_back();
  int64_t held = 0;
  judges_.remove_if([&](const WarmJudge& j) {  // most recently used first
    held += j.description.memory_bytes();
    return options_.most_memory_bytes >= 0 && held > options_.most_memory_bytes;
  });
  FitHost(0);
  const Ahead kind = JudgeKind(problem.format() != v1::PROBLEM_FORMAT_NATIVE);
  auto judge = JudgeProcess::Start(options_.config, pool_->Take(kind));
  if (!judge.ok()) {
    failure->set_infrastructure_failure(RepairUtf8(std::string(judge.status().message()), 64 << 10));
    return nullptr;
  }
  JudgeAnswer answer = (*judge)->Load(problem, options, check, on_progress, cancelled);
  // Who works on one problem alone needs no other judge; who has had two will have a third. Not while this one's runs
  // are measured.
  if (options_.ahead && !last_loaded_.empty() && last_loaded_ != plain_key) {
    pool_->Clear(JudgeKind(kind == Ahead::kNativeJudge));  // one at a time, of whichever kind
    pool_->Restock(kind);
  }
  last_loaded_ = plain_key;
  switch (answer.kind) {
    case JudgeAnswer::Kind::kDone:
      break;
    case JudgeAnswer::Kind::kProblem:
      failure->set_problem_error(answer.message);
      return nullptr;
    case JudgeAnswer::Kind::kInfrastructure:
      failure->set_infrastructure_failure(answer.message);
      return nullptr;
    case JudgeAnswer::Kind::kDied:
      if ((*judge)->process().Wait().kind == sandbox::Ending::Kind::kLimit) {
        failure->set_problem_error(absl::StrCat("the problem needs more than the judge may have: ", answer.message));
      } else {
        Died(key, answer.message, failure);
      }
      return nullptr;
  }
  const nlohmann::json empty = nlohmann::json::object();
  auto description = ParseDescription(answer.body.contains("description") ? answer.body["description"] : empty);
  if (!description.ok()) {
    failure->set_infrastructure_failure(std::string(description.status().message()));
    return nullptr;
  }
  judges_.push_front({key, *std::move(judge), *std::move(description)});
  FitHost(1);  // what the problem takes is known only now
  return &judges_.front();
}

void WarmJudges::Drop(std::string problem) {
  judges_.remove_if([&](const WarmJudge& j) { return j.problem == problem; });
}

void WarmJudges::Died(std::string problem, const std::string& message, v1::WorkResult* result) {
  Drop(problem);
  if (deaths_.size() > kMaxRemembered) deaths_.clear();
  const int deaths = ++deaths_[problem];
  LogWarning("worker", "judge: ", message.substr(0, 500));
  if (deaths >= kMaxDeaths) {
    deaths_.erase(problem);
    result->set_problem_error(RepairUtf8(
        absl::StrCat("the process that runs this problem's reference died ", deaths,
                     " times in a row; the last time: ", message,
                     "; its code ends the process, or crashes it: run the file by itself with the python3 of "
                     "the worker, and correct it (`grove doctor` says whether the worker is at fault)"),
        64 << 10));
  } else {
    result->set_infrastructure_failure(RepairUtf8(message, 64 << 10));
  }
}

}  // namespace grove::worker
