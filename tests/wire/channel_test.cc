#include "common/wire/channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <ctime>
#include <thread>

#include "common/wire/dtype.h"

namespace grove::wire {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

void WriteRaw(const Channel& channel, const std::string& bytes) {
  REQUIRE(::send(channel.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

std::string Frame(const std::string& text) {
  std::string frame(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) frame[i] = static_cast<char>(text.size() >> (8 * i));
  return frame + text;
}

int OpenDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("A frame arrives as it was sent, also when larger than the socket's buffer", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  const std::string large(3 << 20, 'x');
  std::thread sender([&a = a, &large] { CHECK_FALSE(a.Send({{"type", "big"}, {"text", large}}).has_value()); });
  auto received = b.Receive(seconds(30));
  sender.join();
  REQUIRE(received.ok());
  CHECK(received.message.body["text"] == large);
}

TEST_CASE("Frames that arrive together are handed out one by one, byte by byte too", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  const std::string both = Frame(R"({"n":1})") + Frame(R"({"n":2})");
  const bool slowly = GENERATE(false, true);
  if (slowly) {
    for (std::size_t i = 0; i < both.size(); ++i) {
      WriteRaw(a, both.substr(i, 1));
      if (i == 5) CHECK(b.Receive(milliseconds(0)).status == ReceiveStatus::kTimeout);
    }
  } else {
    WriteRaw(a, both);
  }
  CHECK(b.Receive(seconds(5)).message.body["n"] == 1);
  CHECK(b.Receive(seconds(5)).message.body["n"] == 2);
  CHECK(b.Receive(milliseconds(0)).status == ReceiveStatus::kTimeout);
}

TEST_CASE("Descriptors arrive with their own frame", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  for (int i = 0; i < 3; ++i) {
    UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
    REQUIRE(::write(file.get(), &i, sizeof i) == sizeof i);
    const int fds[] = {file.get()};
    CHECK_FALSE(a.Send({{"n", i}}, fds).has_value());
    CHECK_FALSE(a.Send({{"plain", i}}).has_value());
  }
  for (int i = 0; i < 3; ++i) {
    auto with = b.Receive(seconds(5));
    REQUIRE(with.ok());
    REQUIRE(with.message.fds.size() == 1);
    int value = -1;
    CHECK(::pread(with.message.fds[0].get(), &value, sizeof value, 0) == sizeof value);
    CHECK(value == i);
    CHECK((::fcntl(with.message.fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(b.Receive(seconds(5)).message.fds.empty());
  }
}

TEST_CASE("Malformed frames close the channel for good and leak no descriptor", "[wire]") {
  const int before = OpenDescriptors();
  {
    const std::string text =
        GENERATE(std::string("\0\0\0\0", 4), std::string("\xff\xff\xff\x7f", 4), Frame("[]"), Frame("1"), Frame("{"),
                 Frame("{}}"), Frame("nonsense"), Frame("{\"a\":\"\xff\"}"), Frame(R"({"fds":1})"),
                 Frame(R"({"fds":-1})"), Frame(R"({"fds":"x"})"), Frame(R"({"fds":17})"),
                 Frame("{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}"));
    auto [a, b] = Channel::CreatePair();
    WriteRaw(a, text);
    CHECK(b.Receive(seconds(5)).status == ReceiveStatus::kMalformed);
    WriteRaw(a, Frame("{}"));
    CHECK(b.Receive(milliseconds(10)).status == ReceiveStatus::kClosed);
  }
  CHECK(OpenDescriptors() == before);
}

TEST_CASE("What the other side said before it went is still received after a failed send", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  REQUIRE_FALSE(a.Send({{"type", "regions"}}).has_value());  // never read
  REQUIRE_FALSE(b.Send({{"type", "fail"}}).has_value());
  b.Close();
  REQUIRE(a.Send({{"type", "open"}}).has_value());
  const ReceiveResult received = a.Receive(seconds(5));
  CAPTURE(received.error);
  REQUIRE(received.ok());
  CHECK(received.message.body["type"] == "fail");
  CHECK(a.Receive(seconds(5)).status != ReceiveStatus::kOk);
  CHECK(a.Send({{"type", "open"}}).has_value());
}

TEST_CASE("A frame over the receiver's limit is refused before it is read", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  WriteRaw(a, std::string("\x01\x00\x01\x00", 4));  // 65537
  CHECK(b.Receive(seconds(5), kMaxCandidateFrameBytes).status == ReceiveStatus::kMalformed);
}

TEST_CASE("Unannounced descriptors are malformed", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  std::string frame = Frame("{}");
  iovec part{frame.data(), frame.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = 0;
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  REQUIRE(::sendmsg(a.fd(), &header, 0) > 0);
  CHECK(b.Receive(seconds(5)).status == ReceiveStatus::kMalformed);
}

TEST_CASE("A closed end is told apart from a silent one, and sending to it is an error", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  CHECK(b.Receive(milliseconds(1)).status == ReceiveStatus::kTimeout);
  a.Close();
  CHECK(b.Receive(seconds(5)).status == ReceiveStatus::kClosed);
  auto [c, d] = Channel::CreatePair();
  d.Close();
  CHECK(c.Send({{"x", 1}}).has_value());
}

TEST_CASE("Who looks again and again before it sleeps receives the same, and is at work meanwhile", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  const auto worked = [&b = b](milliseconds wait) {  // seconds of this processor
    const std::clock_t begin = std::clock();
    CHECK(b.Receive(wait).status == ReceiveStatus::kTimeout);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const double asleep = worked(milliseconds(200));
  b.SpinFor(std::chrono::seconds(100));
  const double awake = worked(milliseconds(200));  // no longer than it was to wait
  CHECK(awake > 10 * asleep);
  REQUIRE_FALSE(a.Send({{"type", "one"}}));
  ReceiveResult received = b.Receive(milliseconds(0));
  REQUIRE(received.ok());
  CHECK(received.message.body["type"] == "one");
  a.Close();
  CHECK(b.Receive(milliseconds(40)).status == ReceiveStatus::kClosed);
}

TEST_CASE("A reader that does not read costs the sender no more than its timeout", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  const std::string large(8 << 20, 'x');
  auto error = a.Send({{"text", large}}, {}, milliseconds(20));
  REQUIRE(error.has_value());
  CHECK(a.Send({{"x", 1}}).has_value());
}

TEST_CASE("Text that is not UTF-8 is sent repaired", "[wire]") {
  auto [a, b] = Channel::CreatePair();
  CHECK_FALSE(a.Send({{"log", "a\xff"}}).has_value());
  CHECK(b.Receive(seconds(5)).message.body["log"] == "a\xEF\xBF\xBD");
}

TEST_CASE("Brackets inside strings are not depth", "[wire]") {
  CHECK(ParseObject("{\"a\":\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"}").has_value());
  CHECK_FALSE(ParseObject("{\"a\":" + std::string(100000, '[')).has_value());
}

TEST_CASE("Element types have sizes, and shapes that overflow have no count", "[wire]") {
  CHECK(FindDType("bfloat16")->bytes() == 2);
  CHECK(FindDType("complex128")->bytes() == 16);
  CHECK_FALSE(FindDType("float31").has_value());
  CHECK(CountElements({}) == 1);
  CHECK(CountElements({3, 0, 5}) == 0);
  CHECK_FALSE(CountElements({-1}).has_value());
  CHECK_FALSE(CountElements({1LL << 40, 1LL << 40}).has_value());
}

}  // namespace grove::wire
