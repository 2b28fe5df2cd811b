#include "common/rpc/channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/arguments.h"
#include "common/rpc/grpc_log.h"

namespace grove::rpc {

absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(const ChannelOptions& options) {
  RouteGrpcLog();
  GROVE_ASSIGN_OR_RETURN(Address address, ParseAddress(options.address));
  if (!address.is_unix() && address.port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", options.address, "\": port 0 is for listening; nothing answers there"));
  }
  GROVE_ASSIGN_OR_RETURN(TlsMaterial tls, LoadTls(options.tls));

  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (!options.tls.empty()) {
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = tls.ca_pem;
    ssl.pem_cert_chain = tls.cert_pem;
    ssl.pem_private_key = tls.key_pem;
    credentials = grpc::SslCredentials(ssl);
  } else if (address.is_loopback() || options.insecure) {
    credentials = grpc::InsecureChannelCredentials();
  } else {
    return absl::FailedPreconditionError(absl::StrCat(
        "refusing to send sources and results to ", address.ToString(),
        " in plain text; give --tls-ca (and --tls-cert, ",
        "--tls-key where the coordinator asks for client certificates), or --insecure if the network is trusted"));
  }

  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(arguments::kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(arguments::kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, arguments::kMaxMetadataBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, arguments::kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, arguments::kKeepaliveTimeoutMs);
  // Only while a call is open: an idle client costs the coordinator nothing.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  // A quiet watch must not run out of pings: the server bounds them, not we.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, arguments::kInitialReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, arguments::kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, arguments::kMinReconnectMs);
  // Each channel reconnects by its own clock and not by that of another one to the same address.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A cluster's http_proxy is for the outside world; through it, loopback would be the proxy's.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!options.tls_server_name.empty()) arguments.SetSslTargetNameOverride(options.tls_server_name);

  // A Unix socket has no host name; certificates for local use carry "localhost".
  if (address.is_unix() && options.tls_server_name.empty())
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return grpc::CreateCustomChannel(address.ToString(), credentials, arguments);
}

}  // namespace grove::rpc
