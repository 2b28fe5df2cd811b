// The user's terminal: data on stdout, messages on stderr, and a few lines below the messages that are redrawn.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "clients/cli/config.h"
#include "clients/cli/text.h"

namespace grove::cli {

struct ConsoleOptions {
  bool quiet = false;  // no messages and no progress; errors still
  bool no_color = false;
  bool json = false;  // stdout has a document, so that errors go there as one, too
};

// Thread-safe.
class Console {
 public:
  // Looks at the streams and at NO_COLOR, TERM and the locale through `env`.
  Console(const ConsoleOptions& options, const GetEnv& env);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  const Style& out_style() const { return out_style_; }
  const Style& err_style() const { return err_style_; }
  bool json() const { return options_.json; }
  bool quiet() const { return options_.quiet; }
  bool live() const { return live_; }  // stderr is a terminal that can redraw
  bool out_is_terminal() const { return out_is_terminal_; }
  size_t width() const;      // of stderr's terminal; 80 when it is none
  size_t out_width() const;  // of stdout's; 0 (no limit) when it is none
  size_t height() const;

  void Message(absl::string_view text);  // stderr, unless quiet; a line end is added
  void Error(absl::string_view text);    // stderr: "grove: ..."
  // stdout. False when it cannot be written (a full disk, a closed pipe), which is said once on stderr.
  bool Out(absl::string_view text);

  // Replaces the redrawn lines. Nothing happens without a live terminal.
  void SetBlock(const std::vector<std::string>& lines);
  void ClearBlock() { SetBlock({}); }

 private:
  void EraseBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DrawBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConsoleOptions options_;
  Style out_style_, err_style_;
  bool live_ = false, out_is_terminal_ = false;
  absl::Mutex mutex_;
  std::vector<std::string> block_ ABSL_GUARDED_BY(mutex_);
  size_t drawn_ ABSL_GUARDED_BY(mutex_) = 0;
  bool out_failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace grove::cli
