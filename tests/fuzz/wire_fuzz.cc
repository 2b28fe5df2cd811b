// What a candidate may send, byte for byte: through the parser, and through a socket as it would come.
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/wire/channel.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace grove::wire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto value = ParseObject(text)) {
    if (!value->is_object()) std::abort();
    // What was taken can be written and taken again.
    const std::string again = value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (!ParseObject(again)) std::abort();
  }
  if (size > (1 << 16)) return 0;
  auto [sender, receiver] = Channel::CreatePair();
  if (size > 0 && ::send(sender.fd(), data, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return 0;
  sender.Close();
  for (int frames = 0;; ++frames) {
    auto received = receiver.Receive(std::chrono::seconds(1), kMaxCandidateFrameBytes);
    if (!received.ok()) break;
    if (!received.message.body.is_object() || !received.message.fds.empty() || frames > 20000) std::abort();
  }
  // Once broken, always broken.
  if (receiver.Receive(std::chrono::nanoseconds(0)).ok()) std::abort();
  return 0;
}
