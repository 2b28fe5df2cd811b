// From an engine's answer to a unary call's end.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/status.h"

namespace grove::coordinator {

// The engine answers CANCELLED to whatever waits when it stops. To a client that did not cancel, it means: try again
// later.
inline absl::Status ForClient(const absl::Status& status) {
  if (!absl::IsCancelled(status)) return status;
  return absl::UnavailableError("the coordinator is shutting down; try again when it is back");
}

// Ends the call with an error at once.
inline grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

// Calls start(reply), where reply fills in `response` and ends the call. Context and response live until the call has
// ended, and the engine answers every request once, so the reply needs no owner.
template <typename Response, typename StartFunction>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, Response* response, StartFunction start) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  start([reactor, response](absl::StatusOr<Response> answer) {
    if (answer.ok()) *response = *std::move(answer);
    reactor->Finish(rpc::ToGrpc(ForClient(answer.status())));
  });
  return reactor;
}

}  // namespace grove::coordinator
