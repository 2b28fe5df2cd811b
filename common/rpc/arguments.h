// The channel arguments of both ends, in one place because they only work together. Internal to common/rpc.
#pragma once

namespace grove::rpc::arguments {

// One message. The largest by design is SubmitJob with thousands of candidates or with a recording of 16 MiB; 64 MiB
// holds 10,000 kernels of 6 KiB. gRPC's own default of 4 MiB would refuse them, and no limit would let one call take
// all memory.
inline constexpr int kMaxMessageBytes = 64 << 20;

// Request headers. Ours carry nothing; gRPC's default of 8 KiB is said here so that it does not change beneath
// kMaxStatusMessageBytes (status.h).
inline constexpr int kMaxMetadataBytes = 8 << 10;

// Keepalive. Both ends ping a connection that carries a call and was silent for 20 s, and give it up 10 s later: a peer
// that lost power or its network is noticed within 30 s, where TCP alone would take 15 minutes or more. Not shorter,
// because a build host under full load may not schedule the transport for seconds. Leases (15 s) are shorter still and
// do not depend on this.
inline constexpr int kKeepaliveTimeMs = 20'000;
inline constexpr int kKeepaliveTimeoutMs = 10'000;
// What the server puts up with before it calls pings abuse (GOAWAY too_many_pings): half of what our clients do.
inline constexpr int kMinPingIntervalMs = kKeepaliveTimeMs / 2;

// Calls at once on one connection. A client has a handful, a worker one; more is a mistake or an attack.
inline constexpr int kMaxConcurrentStreams = 256;

// A client's wait between attempts to connect. Short at first, because the usual cause on one machine is a coordinator
// that starts up; at most 5 s, so that a worker finds a restarted coordinator while its lease (15 s) still stands.
inline constexpr int kInitialReconnectMs = 100;
inline constexpr int kMaxReconnectMs = 5'000;
// How long one attempt may take: TCP and TLS handshakes over a far link are below 2 s.
inline constexpr int kMinReconnectMs = 5'000;

}  // namespace grove::rpc::arguments
