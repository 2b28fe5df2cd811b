#include "common/rpc/address.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "common/rpc/status.h"
#include "worker/rpc/backoff.h"

namespace grove::rpc {
namespace {

TEST_CASE("Addresses are read, written back and know whether others can reach them", "[rpc]") {
  auto [text, written, loopback] = GENERATE(table<std::string, std::string, bool>({
      {"127.0.0.1:7433", "127.0.0.1:7433", true},
      {"127.0.0.1", "127.0.0.1:7433", true},
      {"127.8.9.1:0", "127.8.9.1:0", true},
      {"localhost:1", "localhost:1", true},
      {"LocalHost", "LocalHost:7433", true},
      {"[::1]:80", "[::1]:80", true},
      {"::1", "[::1]:7433", true},
      {"[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", true},
      {"unix:/run/grove.sock", "unix:/run/grove.sock", true},
      {"unix:///run/grove.sock", "unix:/run/grove.sock", true},
      {"unix:grove.sock", "unix:grove.sock", true},
      {":7433", "[::]:7433", false},
      {"0.0.0.0:7433", "0.0.0.0:7433", false},
      {"[::]:7433", "[::]:7433", false},
      {"10.0.0.1:7433", "10.0.0.1:7433", false},
      {"gpu-box.example.org", "gpu-box.example.org:7433", false},
      {"127.0.0.1.example.org:1", "127.0.0.1.example.org:1", false},
      {"localhost.example.org:1", "localhost.example.org:1", false},
  }));
  CAPTURE(text);
  auto address = ParseAddress(text);
  REQUIRE(address.ok());
  CHECK(address->ToString() == written);
  CHECK(address->is_loopback() == loopback);
  auto again = ParseAddress(address->ToString());
  REQUIRE(again.ok());
  CHECK(again->ToString() == written);
}

TEST_CASE("What is no address is refused with the forms that are", "[rpc]") {
  const std::string text =
      GENERATE(as<std::string>{}, "", "host:", "host:x", "host:70000", "host:-1", "host:+1", "http://host:1", "[::1:80",
               "[::1]80", "[nonsense]:1", "a b:1", "fe80::1:2:3:4:5:6:7:8:9", "h/x:1", "a,b:1",
               "unix:", std::string("unix:/") + std::string(200, 'x'), std::string(600, 'x'));
  CAPTURE(text);
  auto address = ParseAddress(text);
  REQUIRE(absl::IsInvalidArgument(address.status()));
  CHECK(absl::StrContains(address.status().message(), "host:port"));
}

TEST_CASE("A status survives the way there and back", "[rpc]") {
  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const auto code = static_cast<absl::StatusCode>(random() % 17);
    std::string message(random() % kMaxStatusMessageBytes, ' ');
    for (char& c : message) c = static_cast<char>(random());
    const absl::Status status(code, message);
    CHECK(FromGrpc(ToGrpc(status)) == status);
    // The other way: every code that gRPC has.
    const grpc::Status wire(static_cast<grpc::StatusCode>(random() % 17), message);
    const grpc::Status back = ToGrpc(FromGrpc(wire));
    CHECK(back.error_code() == wire.error_code());
    if (!wire.ok()) CHECK(back.error_message() == wire.error_message());
  }
}

TEST_CASE("Each code keeps its name and not only its number", "[rpc]") {
  CHECK(ToGrpc(absl::NotFoundError("x")).error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(ToGrpc(absl::UnavailableError("x")).error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(ToGrpc(absl::InvalidArgumentError("x")).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(ToGrpc(absl::DataLossError("x")).error_code() == grpc::StatusCode::DATA_LOSS);
  CHECK(absl::IsUnauthenticated(FromGrpc(grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "x"))));
  // The largest number that the type may hold; a cast of more would be undefined before we see it.
  CHECK(absl::IsUnknown(FromGrpc(grpc::Status(static_cast<grpc::StatusCode>(31), "x"))));
}

TEST_CASE("A long message is cut between characters and says so", "[rpc]") {
  std::string text;
  while (text.size() < 3000) text += "\u00e9\u4e2d";
  const std::string bounded = BoundedMessage(text);
  CHECK(bounded.size() <= kMaxStatusMessageBytes);
  CHECK(absl::EndsWith(bounded, " [...]"));
  const std::string kept = bounded.substr(0, bounded.size() - 6);
  CHECK(absl::StartsWith(text, kept));
  CHECK((static_cast<unsigned char>(text[kept.size()]) & 0xC0) != 0x80);
  CHECK(BoundedMessage(std::string(kMaxStatusMessageBytes, 'x')).size() == kMaxStatusMessageBytes);
}

TEST_CASE("Back-off doubles up to its bound, stays within half of it, and starts over", "[rpc]") {
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  worker::Backoff backoff({absl::Milliseconds(200), absl::Seconds(10)}, seed);
  for (int pass = 0; pass < 2; ++pass) {
    absl::Duration ceiling = absl::Milliseconds(200);
    for (int i = 0; i < 100; ++i) {
      const absl::Duration wait = backoff.Next();
      CHECK(wait >= ceiling / 2);
      CHECK(wait <= ceiling);
      ceiling = std::min(ceiling * 2, absl::Seconds(10));
    }
    backoff.Reset();
  }
}

}  // namespace
}  // namespace grove::rpc
