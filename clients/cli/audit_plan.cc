#include "clients/cli/audit_plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/suggest.h"

namespace grove::cli {
namespace {

bool OnDevice(const AuditFile& file, v1::DeviceKind device) {
  return device == v1::DEVICE_KIND_CUDA ? file.on_cuda : file.on_cpu;
}

const v1::Problem& ProblemOn(const AuditCase& one, v1::DeviceKind device) {
  return device == v1::DEVICE_KIND_CUDA ? one.problem_cuda : one.problem;
}

v1::JobSpec SpecOf(const AuditCase& one, v1::DeviceKind device) {
  v1::JobSpec spec;
  v1::EvalSpec* eval = spec.mutable_eval();
  *eval->mutable_problem() = ProblemOn(one, device);
  *eval->mutable_options() = one.options;
  eval->mutable_options()->set_device(device);
  return spec;
}

std::string KeyOf(const v1::JobSpec& spec) {
  return absl::StrCat(spec.eval().problem().source(), std::string(1, '\0'), spec.eval().options().SerializeAsString());
}

void Add(AuditBatch* batch, const AuditCorpus& corpus, const AuditEntry& entry) {
  *batch->spec.mutable_eval()->add_candidates() = corpus.cases[entry.file_case].files[entry.file].candidate;
  batch->entries.push_back(entry);
}

class Planner {
 public:
  Planner(const AuditCorpus& corpus, v1::DeviceKind device) : corpus_(corpus), device_(device) {}

  absl::Status Take(size_t index) {
    const AuditCase& one = corpus_.cases[index];
    const bool alone = one.sequence || one.leaves_nothing || !one.then.empty();
    AuditBatch own;
    own.spec = SpecOf(one, device_);
    own.spec.set_name(absl::StrCat("audit ", one.id));
    own.alone = true;
    for (size_t f = 0; f < one.files.size(); ++f) {
      if (!OnDevice(one.files[f], device_)) continue;
      std::vector<AuditEntry> entries;
      for (int r = 0; r < one.repeat; ++r) {
        entries.push_back({.judged_case = index, .file_case = index, .file = f, .repetition = r});
      }
      if (one.files[f].expect.gains_nothing) {
        auto twin = TwinFor(one, one.files[f]);
        if (!twin.ok()) return twin.status();
        twin->judged_case = index;
        entries.insert(entries.begin(), *twin);
      }
      if (!alone) {
        AddShared(one, entries);
        continue;
      }
      for (const AuditEntry& entry : entries) Add(&own, corpus_, entry);
      if (one.sequence) Flush(&own);
    }
    if (!alone) return absl::OkStatus();
    if (!own.entries.empty()) Flush(&own);
    if (one.then.empty()) return absl::OkStatus();
    const size_t control = IndexOf(one.then);
    AuditBatch after;
    after.spec = SpecOf(corpus_.cases[control], device_);
    after.spec.set_name(absl::StrCat("audit ", one.id, ", then ", one.then));
    after.alone = true;
    for (size_t f = 0; f < corpus_.cases[control].files.size(); ++f) {
      if (!OnDevice(corpus_.cases[control].files[f], device_)) continue;
      Add(&after, corpus_, {.role = AuditEntry::Role::kThen, .judged_case = index, .file_case = control, .file = f});
      break;  // one is enough to see that the device and the worker are well
    }
    if (after.entries.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(one.id, ": ", one.then, ", which is to come after it, has no file for this device"));
    }
    alone_.push_back(std::move(after));
    return absl::OkStatus();
  }

  std::vector<AuditBatch> Finish() {
    std::vector<AuditBatch> all;
    for (auto& [key, batch] : open_) shared_.push_back(std::move(batch));
    for (const bool timed : {false, true}) {
      std::vector<AuditBatch*> of_kind;
      for (AuditBatch& batch : shared_) {
        // (those of the first round have been moved away by the second)
        if (batch.entries.empty()) continue;
        if (batch.spec.eval().options().skip_timing() != timed) of_kind.push_back(&batch);
      }
      // Jobs of one problem after the other: its judge is warm.
      std::stable_sort(of_kind.begin(), of_kind.end(), [](const AuditBatch* a, const AuditBatch* b) {
        return a->spec.eval().problem().name() < b->spec.eval().problem().name();
      });
      for (AuditBatch* batch : of_kind) all.push_back(std::move(*batch));
      if (!timed) {
        for (AuditBatch& batch : alone_) all.push_back(std::move(batch));
      }
    }
    return all;
  }

 private:
  size_t IndexOf(const std::string& id) const { return static_cast<size_t>(corpus_.Find(id) - corpus_.cases.data()); }

  absl::StatusOr<AuditEntry> TwinFor(const AuditCase& one, const AuditFile& file) const {
    const size_t control = IndexOf(one.twin);
    const AuditCase& twin = corpus_.cases[control];
    for (size_t f = 0; f < twin.files.size(); ++f) {
      if (twin.files[f].candidate.format() == file.candidate.format() && OnDevice(twin.files[f], device_)) {
        return AuditEntry{.role = AuditEntry::Role::kTwin, .file_case = control, .file = f};
      }
    }
    return absl::FailedPreconditionError(
        absl::StrCat(one.id, "/", file.name, ": its twin ", one.twin, " has no file of this kind to compare with"));
  }

  void AddShared(const AuditCase& one, const std::vector<AuditEntry>& entries) {
    v1::JobSpec spec = SpecOf(one, device_);
    const std::string key = KeyOf(spec);
    AuditBatch& batch = open_[key];
    if (!batch.entries.empty() && batch.entries.size() + entries.size() > kAuditBatch) {
      shared_.push_back(std::move(batch));
      batch = AuditBatch();
    }
    if (batch.entries.empty()) {
      batch.spec = std::move(spec);
      batch.spec.set_name(absl::StrCat("audit ", batch.spec.eval().problem().name()));
    }
    for (const AuditEntry& entry : entries) {
      // One measurement of a twin does for all that are compared with it in this job.
      const bool there = entry.role == AuditEntry::Role::kTwin &&
                         std::any_of(batch.entries.begin(), batch.entries.end(), [&](const AuditEntry& other) {
                           return other.role == AuditEntry::Role::kTwin && other.file_case == entry.file_case &&
                                  other.file == entry.file;
                         });
      if (!there) Add(&batch, corpus_, entry);
    }
  }

  void Flush(AuditBatch* own) {
    AuditBatch next;
    next.spec = own->spec;
    next.spec.mutable_eval()->clear_candidates();
    next.alone = true;
    alone_.push_back(std::move(*own));
    *own = std::move(next);
  }

  const AuditCorpus& corpus_;
  const v1::DeviceKind device_;
  std::map<std::string, AuditBatch> open_;
  std::vector<AuditBatch> shared_, alone_;
};

}  // namespace

bool IsTwinOf(const AuditCorpus& corpus, const AuditEntry& twin, const AuditEntry& attempt) {
  if (twin.role != AuditEntry::Role::kTwin || attempt.role != AuditEntry::Role::kAttempt) return false;
  const AuditCase& control = corpus.cases[twin.file_case];
  const AuditCase& judged = corpus.cases[attempt.file_case];
  return judged.twin == control.id &&
         control.files[twin.file].candidate.format() == judged.files[attempt.file].candidate.format();
}

bool AppliesTo(const AuditCase& one, v1::DeviceKind device) {
  return std::any_of(one.files.begin(), one.files.end(), [&](const AuditFile& file) { return OnDevice(file, device); });
}

absl::StatusOr<std::vector<size_t>> SelectAuditCases(const AuditCorpus& corpus, const AuditSelection& selection) {
  for (const std::string& id : selection.ids) {
    if (corpus.Find(id) != nullptr) continue;
    std::vector<std::string> known;
    for (const AuditCase& one : corpus.cases) known.push_back(one.id);
    const std::string near = ClosestName(id, known);
    return absl::InvalidArgumentError(absl::StrCat("there is no case ", id,
                                                   near.empty() ? "" : absl::StrCat("; did you mean ", near, "?"),
                                                   " (`grove audit --list` has them)"));
  }
  for (const std::string& name : selection.classes) {
    if (std::find(kAuditClasses.begin(), kAuditClasses.end(), name) == kAuditClasses.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no class ", name, "; they are ", absl::StrJoin(kAuditClasses, ", ")));
    }
  }
  const auto among = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const bool all = selection.ids.empty() && selection.classes.empty();
  std::vector<size_t> chosen;
  for (size_t i = 0; i < corpus.cases.size(); ++i) {
    const AuditCase& one = corpus.cases[i];
    if (all || among(selection.ids, one.id) || among(selection.classes, one.group)) chosen.push_back(i);
  }
  return chosen;
}

absl::StatusOr<std::vector<AuditBatch>> PlanAudit(const AuditCorpus& corpus, const std::vector<size_t>& cases,
                                                  v1::DeviceKind device) {
  Planner planner(corpus, device);
  for (size_t index : cases) {
    if (!AppliesTo(corpus.cases[index], device)) continue;
    if (absl::Status taken = planner.Take(index); !taken.ok()) return taken;
  }
  return planner.Finish();
}

}  // namespace grove::cli
