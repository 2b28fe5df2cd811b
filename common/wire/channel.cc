#include "common/wire/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace grove::wire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kHeaderBytes = 4;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;

std::string ErrnoText(const char* what, int error) { return std::string(what) + ": " + std::strerror(error); }

// Waits until the socket is ready for `events` or the deadline has passed. 1 ready, 0 timeout, -1 errno is set.
int WaitFor(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    left = std::max<decltype(left)>(left, 0);
    timespec wait{static_cast<time_t>(left / 1000000000), static_cast<long>(left % 1000000000)};
    pollfd entry{fd, events, 0};
    int ready = ::ppoll(&entry, 1, &wait, nullptr);
    if (ready > 0) return 1;
    if (ready == 0) return 0;
    if (errno != EINTR) return -1;
  }
}

Clock::time_point DeadlineAfter(std::chrono::nanoseconds timeout) {
  // A caller's "for ever" must not overflow the clock: one day is as good.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24);
  return Clock::now() + std::clamp(timeout, std::chrono::nanoseconds(0), kLongest);
}

// Depth of brackets outside strings, so that nesting is bounded before the parser recurses. Runs over malformed text
// too.
bool DepthWithin(std::string_view text, int limit) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > limit) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

ReceiveResult Fail(ReceiveStatus status, std::string error) {
  ReceiveResult result;
  result.status = status;
  result.error = std::move(error);
  return result;
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

std::pair<Channel, Channel> Channel::CreatePair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {Channel(UniqueFd(fds[0])), Channel(UniqueFd(fds[1]))};
}

std::optional<std::string> Channel::Send(const nlohmann::json& body, std::span<const int> fds,
                                         std::chrono::nanoseconds timeout) {
  if (!valid() || broken_ || send_broken_) return "the channel is closed";
  if (fds.size() > static_cast<std::size_t>(kMaxFds)) {
    return "a frame carries at most " + std::to_string(kMaxFds) + " descriptors, not " + std::to_string(fds.size());
  }
  // The count of descriptors is written here, so that no caller can get it wrong.
  nlohmann::json counted;
  const nlohmann::json* message = &body;
  if (!fds.empty()) {
    counted = body;
    counted["fds"] = fds.size();
    message = &counted;
  }
  // Bad UTF-8 (a compiler's or a kernel's own words) is replaced, never an exception.
  std::string text = message->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMaxFrameBytes) {
    return "a frame of " + std::to_string(text.size()) + " bytes is over the limit of " +
           std::to_string(kMaxFrameBytes);
  }
  std::string frame(kHeaderBytes, '\0');
  for (std::size_t i = 0; i < kHeaderBytes; ++i) frame[i] = static_cast<char>((text.size() >> (8 * i)) & 0xff);
  frame += text;

  const auto deadline = DeadlineAfter(timeout);
  std::size_t sent = 0;
  while (sent < frame.size()) {
    iovec part{frame.data() + sent, frame.size() - sent};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control{};
    if (sent == 0 && !fds.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      std::memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * fds.size());
    }
    ssize_t n = ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
      continue;
    }
    int error = n < 0 ? errno : EIO;
    if (error == EINTR) continue;
    if (error == EAGAIN || error == EWOULDBLOCK) {
      int ready = WaitFor(fd_.get(), POLLOUT, deadline);
      if (ready > 0) continue;
      if (ready < 0) error = errno;
      // A frame cut in the middle cannot be taken back.
      if (sent > 0) send_broken_ = true;
      return ready == 0 ? "the other side did not read in time" : ErrnoText("poll", error);
    }
    send_broken_ = true;  // what the other side said before it went can still be received
    send_refused_ = error != EPIPE && error != ECONNRESET;
    return error == EPIPE || error == ECONNRESET ? "the other side closed the channel" : ErrnoText("sendmsg", error);
  }
  return std::nullopt;
}

ReceiveResult Channel::Receive(std::chrono::nanoseconds timeout, std::size_t max_bytes) {
  if (!valid() || broken_) return Fail(ReceiveStatus::kClosed, "the channel is closed");
  const auto deadline = DeadlineAfter(timeout), awake = std::min(deadline, DeadlineAfter(spin_));
  auto malformed = [this](std::string why) {
    broken_ = true;
    pending_.clear();
    return Fail(ReceiveStatus::kMalformed, std::move(why));
  };

  std::vector<char> chunk;
  for (;;) {
    if (buffer_.size() >= kHeaderBytes) {
      std::uint32_t length = 0;
      for (std::size_t i = 0; i < kHeaderBytes; ++i) {
        length |= static_cast<std::uint32_t>(static_cast<unsigned char>(buffer_[i])) << (8 * i);
      }
      if (length == 0 || length > max_bytes) {
        return malformed("a frame of " + std::to_string(length) + " bytes; the limit is " + std::to_string(max_bytes));
      }
      if (buffer_.size() >= kHeaderBytes + length) {
        auto body = ParseObject(std::string_view(buffer_).substr(kHeaderBytes, length));
        if (!body) return malformed("a frame that is not one JSON object of bounded depth");
        std::size_t count = 0;
        if (auto member = body->find("fds"); member != body->end()) {
          if (!member->is_number_unsigned() || *member > static_cast<unsigned>(kMaxFds)) {
            return malformed("a frame whose \"fds\" is not a count from 0 to " + std::to_string(kMaxFds));
          }
          count = member->get<std::size_t>();
        }
        // Descriptors ride on the first byte of their frame, and reading stops at a frame's end, so what is pending
        // belongs to this frame alone.
        if (pending_.size() != count) {
          return malformed("a frame that announces " + std::to_string(count) + " descriptors and brings " +
                           std::to_string(pending_.size()));
        }
        ReceiveResult result;
        result.status = ReceiveStatus::kOk;
        result.message.body = std::move(*body);
        result.message.fds = std::move(pending_);
        pending_.clear();
        buffer_.erase(0, kHeaderBytes + length);
        return result;
      }
    }

    // Never reads past the frame at hand: bytes of the next one stay in the socket with their descriptors.
    std::size_t want = kHeaderBytes - std::min(buffer_.size(), kHeaderBytes);
    if (want == 0) {
      std::uint32_t length = 0;
      for (std::size_t i = 0; i < kHeaderBytes; ++i) {
        length |= static_cast<std::uint32_t>(static_cast<unsigned char>(buffer_[i])) << (8 * i);
      }
      want = std::min(kReadBytes, kHeaderBytes + length - buffer_.size());
    }
    chunk.resize(want);
    iovec part{chunk.data(), chunk.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control{};
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    ssize_t n = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0) {
      int error = errno;
      if (error == EINTR) continue;
      if (error == EAGAIN || error == EWOULDBLOCK) {
        if (spin_.count() > 0 && Clock::now() < awake) continue;
        int ready = WaitFor(fd_.get(), POLLIN, deadline);
        if (ready > 0) continue;
        if (ready == 0) return Fail(ReceiveStatus::kTimeout, "no frame came in time");
        error = errno;
      }
      broken_ = true;
      if (error == ECONNRESET) return Fail(ReceiveStatus::kClosed, "the other side closed the channel");
      return Fail(ReceiveStatus::kSystemError, ErrnoText("recvmsg", error));
    }
    for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
      if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
      std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof(int));
        pending_.emplace_back(fd);
      }
    }
    if (n == 0) {
      broken_ = true;
      bool inside = !buffer_.empty();
      return Fail(ReceiveStatus::kClosed,
                  inside ? "the other side closed the channel inside a frame" : "the other side closed the channel");
    }
    if ((header.msg_flags & MSG_CTRUNC) != 0 || pending_.size() > static_cast<std::size_t>(kMaxFds)) {
      return malformed("more descriptors than a frame may carry");
    }
    buffer_.append(chunk.data(), static_cast<std::size_t>(n));
  }
}

std::optional<nlohmann::json> ParseObject(std::string_view text) {
  if (!DepthWithin(text, kMaxJsonDepth)) return std::nullopt;
  auto value = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded() || !value.is_object()) return std::nullopt;
  return value;
}

}  // namespace grove::wire
