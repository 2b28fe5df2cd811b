#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <cstdlib>
#include <mutex>

#include "common/base/log.h"

namespace grove::rpc {
namespace {

bool g_asked_for = false;  // written once, before gRPC calls Write

void Write(gpr_log_func_args* args) {
  if (g_asked_for) {
    LogInfo("grpc", args->message);
  } else {
    LogDebug("grpc", args->message);
  }
}

}  // namespace

void RouteGrpcLog() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_asked_for = std::getenv("GRPC_VERBOSITY") != nullptr || std::getenv("GRPC_TRACE") != nullptr;
    gpr_set_log_function(Write);
  });
}

}  // namespace grove::rpc
