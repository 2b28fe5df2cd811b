// absl::Status <-> grpc::Status. The codes are the same numbers by design of both; the message needs a bound.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace grove::rpc {

// The message travels percent-encoded in a trailer, where HTTP/2 peers accept 8 KiB of headers by default
// (GRPC_ARG_MAX_METADATA_SIZE) and a byte may take three: 2 KiB always fits. Longer ones are cut, or the peer would see
// RESOURCE_EXHAUSTED instead.
inline constexpr std::size_t kMaxStatusMessageBytes = 2048;

// At most `max_bytes` of `text`, cut at a UTF-8 boundary and marked with " [...]".
inline std::string BoundedMessage(absl::string_view text, std::size_t max_bytes = kMaxStatusMessageBytes) {
  constexpr absl::string_view kMark = " [...]";
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t end = max_bytes > kMark.size() ? max_bytes - kMark.size() : 0;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + std::string(kMark);
}

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), BoundedMessage(status.message()));
}

// A code that this version does not know is UNKNOWN.
inline absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = static_cast<int>(status.error_code());
  const bool known = code >= 1 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, status.error_message());
}

}  // namespace grove::rpc
