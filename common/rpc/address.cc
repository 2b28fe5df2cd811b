#include "common/rpc/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace grove::rpc {
namespace {

absl::Status Bad(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not an address: ", why, "; write host:port, [v6]:port or unix:/path/of/socket"));
}

bool IsV6(const std::string& host) {
  unsigned char ip[16];
  return inet_pton(AF_INET6, host.c_str(), ip) == 1;
}

}  // namespace

bool Address::is_loopback() const {
  if (is_unix() || absl::EqualsIgnoreCase(host, "localhost")) return true;
  unsigned char ip[16];
  if (inet_pton(AF_INET, host.c_str(), ip) == 1) return ip[0] == 127;
  if (inet_pton(AF_INET6, host.c_str(), ip) == 1) {
    static constexpr unsigned char kOne[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    static constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(ip, ip + 16, kOne) || (std::equal(ip, ip + 12, kMapped) && ip[12] == 127);
  }
  return false;  // a name may resolve to anything
}

std::string Address::ToString() const {
  if (is_unix()) return absl::StrCat("unix:", unix_path);
  return absl::StrCat(IsV6(host) ? absl::StrCat("[", host, "]") : host, ":", port);
}

absl::StatusOr<Address> ParseAddress(absl::string_view text, int default_port) {
  Address address;
  if (text.empty()) return Bad(text, "it is empty");
  if (text.size() > 512) return Bad(text.substr(0, 64), "it is longer than 512 characters");
  if (absl::StartsWith(text, "unix:")) {
    absl::string_view path = text.substr(5);
    if (absl::StartsWith(path, "//")) path.remove_prefix(2);
    if (path.empty()) return Bad(text, "the socket's path is missing");
    if (path.size() >= sizeof(sockaddr_un::sun_path)) {
      return Bad(text,
                 absl::StrCat("the path of a Unix socket has at most ", sizeof(sockaddr_un::sun_path) - 1, " bytes"));
    }
    address.unix_path = std::string(path);
    return address;
  }
  if (absl::StrContains(text, "://")) return Bad(text, "a scheme such as http:// does not belong there");

  absl::string_view host = text, port;
  bool has_port = false;
  if (text.front() == '[') {
    size_t end = text.find(']');
    if (end == absl::string_view::npos) return Bad(text, "the ']' is missing");
    host = text.substr(1, end - 1);
    absl::string_view rest = text.substr(end + 1);
    if (!IsV6(std::string(host))) return Bad(text, "what is between the brackets is no IPv6 address");
    if (!rest.empty() && rest.front() != ':') return Bad(text, "after ']' comes ':' and the port");
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
  } else if (IsV6(std::string(text))) {
    // A bare IPv6 address: its last group is no port.
  } else {
    size_t colon = text.rfind(':');
    if (colon != absl::string_view::npos) {
      has_port = true;
      host = text.substr(0, colon);
      port = text.substr(colon + 1);
    }
    if (host.find(':') != absl::string_view::npos) return Bad(text, "an IPv6 address with a port needs brackets");
    if (host.find_first_of(" \t\r\n/@%,") != absl::string_view::npos)
      return Bad(text, "a host name has no such characters");
  }
  address.port = default_port;
  if (has_port && (!absl::SimpleAtoi(port, &address.port) || port.front() == '+' || port.front() == '-' ||
                   address.port < 0 || address.port > 65535)) {
    return Bad(text, "the port must be a number from 0 to 65535");
  }
  address.host = host.empty() ? "::" : std::string(host);
  return address;
}

}  // namespace grove::rpc
