// gRPC's own log lines through ours.
#pragma once

namespace grove::rpc {

// Sends gRPC's errors to LogDebug, component "grpc": what matters of them comes back as a Status, and a refused
// connection is not worth a line of C++ source position on a user's terminal. GRPC_VERBOSITY and GRPC_TRACE work as
// ever (then as LogInfo). Idempotent, thread-safe.
void RouteGrpcLog();

}  // namespace grove::rpc
