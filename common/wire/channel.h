// Framed JSON over a Unix stream socket, with file descriptors: the language between worker, judge and candidate.
//
// A frame is a 4-byte little-endian length N (1 to the receiver's limit) and N bytes of one UTF-8 JSON object. When the
// object has a member "fds": n (1 to 16), n descriptors ride on the frame's first byte by SCM_RIGHTS; a frame whose
// count differs from what arrived is malformed. docs/protocol.md has the messages.
//
// What a candidate sends is hostile: lengths are checked before memory is taken, nesting is bounded, and a malformed
// frame closes the channel for good. Needs the C++ standard library and nlohmann/json only, because the judge and the
// candidate are built on hosts that have neither Abseil nor gRPC.
#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace grove::wire {

// Owns a file descriptor. Move-only.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

struct Message {
  nlohmann::json body;
  std::vector<UniqueFd> fds;
};

enum class ReceiveStatus { kOk, kTimeout, kClosed, kMalformed, kSystemError };

struct ReceiveResult {
  ReceiveStatus status = ReceiveStatus::kSystemError;
  Message message;    // kOk only
  std::string error;  // otherwise: what happened, for people
  bool ok() const { return status == ReceiveStatus::kOk; }
};

inline constexpr std::size_t kMaxFrameBytes = std::size_t{16} << 20;           // trusted direction: sources, results
inline constexpr std::size_t kMaxCandidateFrameBytes = std::size_t{64} << 10;  // what a candidate may say at once
inline constexpr int kMaxFds = 16;
inline constexpr int kMaxJsonDepth = 32;

// One end. Thread-compatible: one sender and one receiver at a time.
class Channel {
 public:
  Channel() = default;
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}

  // A connected pair, both close-on-exec. Throws std::system_error.
  static std::pair<Channel, Channel> CreatePair();

  // Sends one frame; with descriptors, its member "fds" is set to their count. Returns an error text, or nothing when
  // all of it was written before the timeout.
  std::optional<std::string> Send(const nlohmann::json& body, std::span<const int> fds = {},
                                  std::chrono::nanoseconds timeout = std::chrono::seconds(30));

  // Receives one frame. After kMalformed, kClosed or kSystemError the channel is unusable; after kTimeout a later call
  // goes on where this one stopped.
  ReceiveResult Receive(std::chrono::nanoseconds timeout, std::size_t max_bytes = kMaxFrameBytes);
  // From now on Receive looks again and again for so long before it sleeps: waking up takes a while, and no one knows
  // how long.
  void SpinFor(std::chrono::nanoseconds time) { spin_ = time; }

  int fd() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  // The last Send failed for another reason than that the other side is gone or does not read.
  bool send_refused() const { return send_refused_; }
  UniqueFd TakeFd() { return std::move(fd_); }
  void Close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  std::string buffer_;             // bytes received and not yet parsed
  std::vector<UniqueFd> pending_;  // descriptors received and not yet handed out
  bool broken_ = false;            // nothing can be received any more
  bool send_broken_ = false;       // nothing can be sent any more
  bool send_refused_ = false;
  std::chrono::nanoseconds spin_{0};
};

// Parses one JSON object within the depth limit; nothing on malformed text. The only parser of untrusted frames, and
// the fuzz target (tests/fuzz/wire_fuzz.cc).
std::optional<nlohmann::json> ParseObject(std::string_view text);

}  // namespace grove::wire
