#include "common/rpc/server.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/rpc/arguments.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/status.h"

namespace grove::rpc {
namespace {

// gRPC answers a request that does not parse with UNIMPLEMENTED and no text, as if the method were missing. Our
// services implement every method that their descriptors have, so for one of those it can only mean that the bytes were
// no message; callers get the truth instead.
class EmptyUnimplementedInterceptor : public grpc::experimental::Interceptor {
 public:
  explicit EmptyUnimplementedInterceptor(grpc::Status instead) : instead_(std::move(instead)) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(grpc::experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty()) {
        methods->ModifySendStatus(instead_);
      }
    }
    methods->Proceed();
  }

 private:
  const grpc::Status instead_;
};

class EmptyUnimplementedInterceptorFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    const std::string path = info->method();  // "/grove.v1.Jobs/GetJob"
    // Health and reflection may leave methods out.
    if (!absl::StartsWith(path, "/grove.")) return nullptr;
    const std::string name = absl::StrReplaceAll(path.substr(1), {{"/", "."}});
    const bool known = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name) != nullptr;
    return new EmptyUnimplementedInterceptor(
        known
            ? grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                           absl::StrCat("the request of ", path, " is malformed: its bytes are not the message of ",
                                        "proto/grove/v1, or a text in it is not UTF-8"))
            : grpc::Status(grpc::StatusCode::UNIMPLEMENTED, absl::StrCat("this server (version ", kVersion,
                                                                         ") has no call ", BoundedMessage(path, 128))));
  }
};

// The reflection library adds itself to every server of a program that links it. Here it is there only when asked for.
class WithoutReflection : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->erase(std::remove_if(plugins->begin(), plugins->end(),
                                  [](const auto& plugin) { return plugin->name() == "proto_server_reflection"; }),
                   plugins->end());
  }
};

// Says why `address` could not be bound, by trying again: gRPC tells only that it failed.
absl::Status WhyNotBound(const Address& address) {
  const std::string where = address.ToString();
  int error = 0;
  if (address.is_unix()) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    address.unix_path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0) error = errno;
    if (fd >= 0) close(fd);
    if (fd >= 0 && error == 0) unlink(address.unix_path.c_str());
  } else {
    addrinfo hints{};
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    int code = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
    if (code != 0) {
      return absl::NotFoundError(
          absl::StrCat("cannot listen on ", where, ": ", gai_strerror(code), "; check the host name"));
    }
    for (addrinfo* one = found; one != nullptr && error == 0; one = one->ai_next) {
      int fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
      if (fd < 0) continue;
      int on = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      if (bind(fd, one->ai_addr, one->ai_addrlen) != 0 || listen(fd, 1) != 0) error = errno;
      close(fd);
    }
    freeaddrinfo(found);
  }
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(absl::StrCat("cannot listen on ", where,
                                                   ": it is in use by another program; stop that one, or choose "
                                                   "another address with --listen (port 0 takes any free one)"));
    case EADDRNOTAVAIL:
      return absl::NotFoundError(
          absl::StrCat("cannot listen on ", where, ": this machine has no such address; see `ip address`"));
    case EACCES:
      return absl::PermissionDeniedError(
          absl::StrCat("cannot listen on ", where,
                       ": permission denied; ports below 1024 need privileges, a Unix socket a writable folder"));
    case 0:
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", where, "; --log-level debug shows gRPC's reason"));
    default:
      return ErrnoStatus(error, absl::StrCat("cannot listen on ", where));
  }
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> Credentials(const ServerOptions& options,
                                                                     const Address& address) {
  if (options.tls.empty()) {
    if (!address.is_loopback() && !options.insecure) {
      return absl::FailedPreconditionError(
          absl::StrCat("refusing to serve plain text on ", address.ToString(),
                       ", which other machines can reach: anyone there could run code ",
                       "on the workers. Give --tls-cert and --tls-key (and --tls-ca to ask clients for certificates; "
                       "`grove certs` makes ",
                       "them), listen on 127.0.0.1, or say --insecure if the network is trusted"));
    }
    return grpc::InsecureServerCredentials();
  }
  if (options.tls.cert.empty()) {
    return absl::InvalidArgumentError("a server with --tls-ca needs --tls-cert and --tls-key too");
  }
  GROVE_ASSIGN_OR_RETURN(TlsMaterial tls, LoadTls(options.tls));
  grpc::SslServerCredentialsOptions ssl(tls.ca_pem.empty()
                                            ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                            : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = tls.ca_pem;
  ssl.pem_key_cert_pairs.push_back({tls.key_pem, tls.cert_pem});
  return grpc::SslServerCredentials(ssl);
}

}  // namespace

struct Server::Impl {
  std::vector<std::string> names;  // of the services, as the health service is asked for them
  std::unique_ptr<grpc::Server> server;
  std::once_flag shutdown;
};

Server::Server(Address address, std::unique_ptr<Impl> impl) : address_(std::move(address)), impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      const std::vector<grpc::Service*>& services) {
  RouteGrpcLog();
  GROVE_ASSIGN_OR_RETURN(Address address, ParseAddress(options.listen));
  GROVE_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ServerCredentials> credentials, Credentials(options, address));

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();  // idempotent; keeps the library linked

  grpc::ServerBuilder builder;
  if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
  builder.SetMaxReceiveMessageSize(arguments::kMaxMessageBytes);
  builder.SetMaxSendMessageSize(arguments::kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, arguments::kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, arguments::kMaxConcurrentStreams);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, arguments::kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, arguments::kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, arguments::kMinPingIntervalMs);
  // Linux would let a second process share the port, and calls would go to either.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<EmptyUnimplementedInterceptorFactory>());
  builder.experimental().SetInterceptorCreators(std::move(interceptors));

  int port = 0;
  builder.AddListeningPort(address.ToString(), credentials, &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  auto impl = std::make_unique<Impl>();
  const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName("grove/v1/services.proto");
  if (file != nullptr && !services.empty()) {
    for (int i = 0; i < file->service_count(); ++i) impl->names.push_back(file->service(i)->full_name());
  }
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr || port == 0) {
    impl->server.reset();
    return WhyNotBound(address);
  }
  if (!address.is_unix()) address.port = port;
  std::unique_ptr<Server> server(new Server(std::move(address), std::move(impl)));
  server->SetServing(false);
  return server;
}

Server::~Server() { Shutdown(absl::ZeroDuration()); }

void Server::SetServing(bool serving) {
  auto* health = impl_->server->GetHealthCheckService();
  if (health == nullptr) return;
  for (const std::string& name : impl_->names) health->SetServingStatus(name, serving);
  health->SetServingStatus(serving);
}

void Server::Shutdown(absl::Duration patience) {
  std::call_once(impl_->shutdown, [&] {
    if (auto* health = impl_->server->GetHealthCheckService()) health->Shutdown();
    impl_->server->Shutdown(absl::ToChronoTime(absl::Now() + patience));
    impl_->server->Wait();
  });
}

}  // namespace grove::rpc
