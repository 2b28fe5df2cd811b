// What a live coordinator and worker do with peers that speak no gRPC, half of it, or nonsense, and with a full disk.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/e2e/scene.h"

namespace grove::e2e {
namespace {

using nlohmann::json;

// A connection that says what it is told to and reads nothing.
class Peer {
 public:
  explicit Peer(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) FAIL("connect: " << address);
  }
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  // Until the other side closes.
  void Say(const std::string& bytes) const {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<size_t>(n);
    }
  }

 private:
  int fd_;
};

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& body) {
  const auto size = static_cast<uint32_t>(body.size());
  std::string frame = {static_cast<char>(size >> 16), static_cast<char>(size >> 8), static_cast<char>(size),
                       static_cast<char>(type), static_cast<char>(flags)};
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(stream >> shift);
  return frame + body;
}

TEST_CASE("Nothing that is said to its port ends a coordinator or its worker", "[hostile]") {
  Scene scene;
  Process& up = scene.Up();
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const std::string settings = Frame(4, 0, 0, "");
  std::mt19937 random(7);
  const auto noise = [&](size_t size) {
    std::string bytes(size, 0);
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  };
  std::vector<std::string> openings = {
      "",
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      std::string(1 << 20, 'A'),
      preface,
      preface.substr(0, 9),
      preface + settings + std::string("\xff\xff\xff", 3),              // a frame of 16 MiB, and no more of it
      preface + settings + Frame(1, 4, 1, noise(200)),                  // header block that is none
      preface + settings + Frame(0, 0, 1, noise(200)),                  // data for a stream that was never opened
      preface + settings + Frame(1, 0, 1, ""),                          // a stream left half open
      preface + settings + Frame(8, 0, 0, std::string("\0\0\0\0", 4)),  // a window of nothing
  };
  for (int i = 0; i < 20; ++i) openings.push_back((i % 2 == 0 ? "" : preface + settings) + noise(1 + random() % 4096));
  for (int i = 0; i < 20; ++i) {
    std::string many = preface + settings;
    for (int k = 0; k < 50; ++k)
      many += Frame(static_cast<uint8_t>(random() % 12), 0, random() % 7, noise(random() % 64));
    openings.push_back(many);
  }
  {
    std::vector<std::unique_ptr<Peer>> open;  // all at once, and none goes away before the work is done
    for (const std::string& opening : openings) {
      open.push_back(std::make_unique<Peer>(scene.address()));
      open.back()->Say(opening);
    }
    const json result = scene.Document(Quick({"eval", TestCase("relu.py"), TestCase("relu.cpp")}), 0);
    CHECK(result["results"][0]["verdict"] == "CORRECT");
  }
  CHECK(scene.Document({"workers"}, 0)["workers"].size() == 1);
  CHECK(up.Running());
  // Nobody had to be started again.
  CHECK(up.Err().find("starting it again") == std::string::npos);
}

TEST_CASE("A coordinator on a full disk says so, serves what it has, and goes on when there is room", "[hostile]") {
  Scene scene;
  // A small disk of its own, where this kernel lets us have one.
  const auto trial = scene.Start({"/usr/bin/unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"});
  if (trial->Wait().code != 0) {
    WARN("no user namespaces here: not tried");
    return;
  }
  const std::string port_file = scene.Path("port"), room = scene.Path("room");
  std::filesystem::create_directories(scene.data());
  // Makes room when the file `room` appears.
  const auto coordinator = scene.Start(
      {"/usr/bin/unshare", "-rm", "/bin/sh", "-c",
       "mount -t tmpfs -o size=600k none \"$1\" || exit 9; "
       "\"$2\" --data \"$1\" --listen 127.0.0.1:0 --port-file \"$3\" "
       "& "
       "trap 'kill $!' TERM; while [ ! -e \"$4\" ]; do sleep 0.1; done; mount -o remount,size=64m \"$1\"; wait",
       "sh", scene.data(), Program("grove-coordinator"), port_file, room});
  REQUIRE(Eventually([&] { return !ReadText(port_file).empty() || !coordinator->Running(); }));
  INFO(coordinator->Err());
  REQUIRE(coordinator->Running());
  const std::string address = ReadText(port_file);
  scene.ConnectTo(address.substr(0, address.find('\n')));
  const std::string kept = scene.Document({"eval", TestCase("relu.py"), TestCase("relu.cpp"), "--detach"}, 0)["job"];
  // Text that cannot be compressed away.
  std::mt19937 random(11);
  std::string large = "import torch\n#";
  for (int i = 0; i < 900'000; ++i) large += static_cast<char>('!' + random() % 90);
  const std::string problem = scene.Write("large.py", large + "\n");
  const std::vector<std::string> submit = {"eval", problem, TestCase("relu.cpp"), TestCase("wrong.cpp"), "--detach"};
  const Ended refused = scene.Grove(submit);
  CHECK(refused.code == 20);
  CHECK(refused.err.find("No space left on device") != std::string::npos);
  CHECK(refused.err.find("free some space on its disk") != std::string::npos);
  CHECK(coordinator->Running());
  CHECK(scene.Document({"jobs"}, 0).dump().find(kept) != std::string::npos);
  scene.Write("room", "");
  CHECK(Eventually([&] { return scene.Grove(submit).code == 0; }));
  CHECK(scene.Document({"jobs"}, 0).dump().find(kept) != std::string::npos);
  coordinator->Signal(SIGTERM);
  coordinator->Wait();  // the shell hands it on, and would leave the coordinator behind where it is killed itself
}

}  // namespace
}  // namespace grove::e2e
