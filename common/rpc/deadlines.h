// How long a call may take, in one place, so that client and server agree.
#pragma once

#include "absl/time/time.h"

namespace grove::rpc {

// Calls that are answered from memory or with one fsync. 30 s is far above both (milliseconds) and covers a coordinator
// that is replaying its journal or waits for a slow disk; after it the caller is better served by an error that it can
// retry.
inline constexpr absl::Duration kUnaryDeadline = absl::Seconds(30);

// SubmitJob carries up to 64 MiB, which a 10 Mbit/s line needs 54 s for.
inline constexpr absl::Duration kSubmitDeadline = absl::Seconds(120);

// Streams that end by themselves (GetTree, GetArtifact).
inline constexpr absl::Duration kTransferDeadline = absl::Seconds(300);

// WatchJob and Farm.Connect have none: they live as long as their job or worker. Keepalive finds a dead peer in 30 s
// (common/rpc/arguments.h).

// How long the coordinator's HTTP side waits for the engine before it answers 503 or serves what it knows.
inline constexpr absl::Duration kScrapeDeadline = absl::Seconds(2);

}  // namespace grove::rpc
