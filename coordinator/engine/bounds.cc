#include "coordinator/engine/bounds.h"

#include <algorithm>

namespace grove::coordinator {
namespace {

// Length of the UTF-8 sequence at the start of `text`, 0 when it is broken (overlong forms and surrogates are).
size_t SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

void Cut(std::string* text, size_t max) {
  if (text->size() > max) *text = Utf8Prefix(*text, max);
}

template <typename Repeated>
void Keep(Repeated* list, int max) {
  if (list->size() > max) list->DeleteSubrange(max, list->size() - max);
}

void DropSamples(v1::EvaluationResult* result) {
  if (!result->has_timing()) return;
  for (v1::BaselineTiming& baseline : *result->mutable_timing()->mutable_baselines()) {
    baseline.clear_reference_seconds();
    baseline.clear_candidate_seconds();
    baseline.clear_sample_states();
  }
}

// Of a result or of its rival.
template <typename Report>
void CutTexts(Report* report, size_t log, size_t text) {
  if (report->has_build()) {
    if (report->build().log().size() > log) report->mutable_build()->set_log_truncated(true);
    Cut(report->mutable_build()->mutable_log(), log);
    Cut(report->mutable_build()->mutable_command(), text);
  }
  if (report->has_fault()) {
    Cut(report->mutable_fault()->mutable_message(), text);
    Cut(report->mutable_fault()->mutable_stderr_tail(), text);
    Cut(report->mutable_fault()->mutable_evidence(), text);
  }
}

void CutLogs(v1::EvaluationResult* result, size_t log, size_t text) {
  CutTexts(result, log, text);
  if (result->has_rival()) CutTexts(result->mutable_rival(), log, text);
}

}  // namespace

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Utf8Prefix(absl::string_view text, size_t max) {
  std::string out;
  out.reserve(std::min(text.size(), max));
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (out.size() + std::max<size_t>(length, 1) > max) break;
    if (length == 0) {
      out.push_back('?');
      text.remove_prefix(1);
    } else {
      out.append(text.data(), length);
      text.remove_prefix(length);
    }
  }
  return out;
}

v1::EvaluationResult BoundedResult(const v1::EvaluationResult& whole) {
  v1::EvaluationResult result = whole;
  DropSamples(&result);
  CutLogs(&result, 1024, 512);
  Cut(result.mutable_reason(), 512);
  if (result.has_build()) Keep(result.mutable_build()->mutable_kernels(), 4);
  if (result.has_correctness()) {
    v1::CorrectnessReport* report = result.mutable_correctness();
    Cut(report->mutable_rule(), 256);
    Keep(report->mutable_also_passes(), 8);
    Keep(report->mutable_outputs(), 2);
    for (v1::OutputComparison& output : *report->mutable_outputs()) {
      Cut(output.mutable_path(), 128);
      Cut(output.mutable_expected_type(), 128);
      Cut(output.mutable_got_type(), 128);
    }
  }
  if (result.has_timing()) {
    Keep(result.mutable_timing()->mutable_baselines(), 4);
    Keep(result.mutable_timing()->mutable_discards(), 8);
    Cut(result.mutable_timing()->mutable_method(), 256);
    for (v1::BaselineTiming& baseline : *result.mutable_timing()->mutable_baselines()) {
      Cut(baseline.mutable_unavailable(), 256);
      baseline.clear_each_replica();
    }
  }
  if (result.has_work()) {
    v1::WorkReport* work = result.mutable_work();
    Cut(work->mutable_how(), 256);
    Keep(work->mutable_kernels(), 8);
    Keep(work->mutable_libraries(), 16);
    for (v1::KernelProfile& kernel : *work->mutable_kernels()) Cut(kernel.mutable_name(), 128);
    for (std::string& library : *work->mutable_libraries()) Cut(&library, 64);
  }
  if (result.has_profile()) {
    v1::ProfileReport* profile = result.mutable_profile();
    Cut(profile->mutable_unavailable(), 256);
    Keep(profile->mutable_kernels(), 4);
    Keep(profile->mutable_instructions(), 12);
    Cut(profile->mutable_sass_sha256(), 64);
    for (v1::Rate& one : *profile->mutable_instructions()) Cut(one.mutable_precision(), 24);
    for (v1::KernelProfile& kernel : *profile->mutable_kernels()) {
      Cut(kernel.mutable_name(), 128);
      Cut(kernel.mutable_grid(), 32);
      Cut(kernel.mutable_block(), 32);
      Keep(kernel.mutable_stalls(), 3);
      for (v1::StallShare& stall : *kernel.mutable_stalls()) Cut(stall.mutable_reason(), 64);
    }
  }
  result.clear_combinations();  // the whole result has them
  if (result.has_rival()) {
    Cut(result.mutable_rival()->mutable_reason(), 512);
    Cut(result.mutable_rival()->mutable_name(), 256);
    Keep(result.mutable_rival()->mutable_build()->mutable_kernels(), 4);
  }
  if (result.device().has_calibration()) {
    Keep(result.mutable_device()->mutable_calibration()->mutable_kernels(), 0);
    Keep(result.mutable_device()->mutable_calibration()->mutable_warnings(), 0);
    Keep(result.mutable_device()->mutable_calibration()->mutable_rates(), 8);
  }
  Keep(result.mutable_stages(), 16);
  if (result.ByteSizeLong() > 8192) {
    // Something unusual is long; what ranks and explains stays.
    v1::EvaluationResult core;
    core.set_verdict(result.verdict());
    core.set_reason(result.reason());
    core.set_worker(Utf8Prefix(result.worker(), 128));
    core.set_attempt(result.attempt());
    if (result.has_timing()) {
      for (const v1::BaselineTiming& baseline : result.timing().baselines()) {
        *core.mutable_timing()->add_baselines() = baseline;
      }
    }
    core.mutable_device()->set_kind(result.device().kind());
    core.mutable_device()->set_name(Utf8Prefix(result.device().name(), 128));
    core.mutable_device()->set_arch(Utf8Prefix(result.device().arch(), 64));
    if (result.has_fault()) core.mutable_fault()->set_message(result.fault().message());
    if (result.has_rival()) {
      core.mutable_rival()->set_verdict(result.rival().verdict());
      core.mutable_rival()->set_reason(result.rival().reason());
    }
    return core;
  }
  return result;
}

void LimitWholeResult(v1::EvaluationResult* result) {
  if (result->ByteSizeLong() <= kMaxResultBytes) return;
  DropSamples(result);
  CutLogs(result, 1 << 20, 64 << 10);
  if (result->ByteSizeLong() > kMaxResultBytes) *result = BoundedResult(*result);
}

void LimitForPrompt(v1::EvaluationResult* result) {
  DropSamples(result);
  CutLogs(result, 32 << 10, 8 << 10);
}

}  // namespace grove::coordinator
