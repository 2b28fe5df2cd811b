// What a coordinator says before the first event of a WatchJob stream: initial metadata under this key, sent at once. A
// watcher of a quiet job tells by it that it is attached and not waiting for a connection.
#pragma once

#include "absl/strings/string_view.h"

namespace grove::rpc {

inline constexpr absl::string_view kAttachedMetadata = "grove-attached";

}  // namespace grove::rpc
