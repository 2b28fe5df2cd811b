#include "clients/cli/follow.h"

#include <algorithm>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clients/cli/json.h"
#include "clients/cli/progress.h"
#include "clients/cli/watch_stop.h"

namespace grove::cli {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(200);
// More kernels than this make a line each a flood; then a summary every so often.
constexpr int kLinePerKernel = 200;
constexpr absl::Duration kSummaryEvery = absl::Seconds(5);
// A coordinator that served the folder is started again within seconds, or not at all.
constexpr absl::Duration kBorrowedReattach = absl::Seconds(10);

}  // namespace

Followed Follow(Session* session, const std::string& job, const FollowOptions& options, Console* console,
                Interrupts* interrupts) {
  Followed followed;
  JobModel& model = followed.model;
  absl::Mutex mutex;  // the model, between the watching and the drawing thread
  bool done = false;
  const absl::Time began = absl::Now();
  int finished_before = 0;
  bool caught_up = false;

  const auto view = [&]() {
    ProgressView v;
    v.style = console->err_style();
    v.width = std::max<size_t>(20, console->width()) - 1;
    v.max_lines = std::max<size_t>(3, std::min<size_t>(14, console->height() / 2));
    v.elapsed_seconds = absl::ToDoubleSeconds(absl::Now() - began);
    v.finished_before = finished_before;
    return v;
  };

  const bool draw = console->live() && !options.ndjson;
  WatchStop stop(session, interrupts);
  // At once, and not only when the thread gets its turn: a job may be over by then.
  if (draw) console->SetBlock(RenderProgress(job, model, view()));
  std::thread ticker([&] {
    absl::MutexLock lock(&mutex);
    while (!done) {
      if (draw) console->SetBlock(RenderProgress(job, model, view()));
      mutex.AwaitWithTimeout(absl::Condition(&done), kTick);
    }
  });

  client::WatchOptions watch;
  watch.after_seq = options.after_seq;
  watch.with_progress = draw || options.ndjson;
  watch.cancellation = &stop.cancellation();
  if (session->embedded()) watch.reattach_for = absl::Seconds(30);
  if (session->borrowed()) watch.reattach_for = kBorrowedReattach;
  if (options.reattach_seconds >= 0) watch.reattach_for = absl::Seconds(options.reattach_seconds);
  bool said_gone = false;
  watch.on_reattach = [&](const absl::Status& why, absl::Duration left) {
    if (!said_gone) {
      console->Message(absl::StrCat(why.message(), "\ntrying to attach again for ",
                                    absl::FormatDuration(absl::Ceil(left, absl::Seconds(1)))));
    }
    said_gone = true;
  };
  watch.on_attached = [&] {
    if (said_gone) console->Message("attached again");
    said_gone = false;
  };
  absl::Time last_summary = absl::Now();
  // What happened before this watcher came is not "done in the time it looked".
  const int64_t began_nanos = absl::ToUnixNanos(began);
  followed.status = session->client().WatchJob(job, watch, [&](const v1::Event& event) {
    std::string line;
    {
      absl::MutexLock lock(&mutex);
      model.Apply(event);
      if (!caught_up) {
        if (event.time_unix_nanos() >= began_nanos) {
          caught_up = true;
        } else {
          finished_before = model.finished();
        }
      }
      if (!draw && !options.ndjson) {
        const bool flood = model.PlannedEvaluations() > kLinePerKernel || model.kernels().size() > kLinePerKernel;
        if (!flood || event.has_job_state() || event.has_problem_described()) {
          line = PlainLine(event, model);
        } else if (absl::Now() - last_summary > kSummaryEvery) {
          last_summary = absl::Now();
          line = PlainSummary(model, view());
        }
      }
    }
    if (options.ndjson) return console->Out(absl::StrCat(EventDocument(event), "\n"));
    if (!line.empty()) {
      if (options.lines_to_stdout) return console->Out(absl::StrCat(line, "\n"));
      for (absl::string_view one : absl::StrSplit(line, '\n')) console->Message(absl::StrCat(job, " ", one));
    }
    return true;
  });
  {
    absl::MutexLock lock(&mutex);
    done = true;
  }
  ticker.join();
  console->ClearBlock();
  followed.status = stop.Outcome(followed.status);
  return followed;
}

}  // namespace grove::cli
