// What a candidate may send, byte for byte: through the parser, and through a socket as it would come.
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/wire/channel.h"

// With a true length in front, so that the body is reached.
std::string FuzzWrap(const std::string& text) {
  std::string frame(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) frame[i] = static_cast<char>(text.size() >> (8 * i));
  return frame + text;
}

std::vector<std::string> FuzzSeeds() {
  const std::vector<std::string> bodies{
      R"({"type":"hello","pid_ready":true})",
      R"({"type":"ok"})",
      R"({"type":"opened"})",
      R"({"type":"done","claimed_ns":[1,2,3]})",
      R"({"type":"done","claimed_ns":[-1,1e300,null,"x"],"outputs":[{"dtype":"float32","shape":[1,2],"device":"cpu"}]})",
      R"({"type":"fail","stage":"run","kind":"cuda_error","message":"\ud83d\ude00 \u0000"})",
      R"({"fds":2})",
      "{}",
      "[]",
      "{\"a\":{\"b\":[[[[[1]]]]]}}"};
  std::vector<std::string> corpus = bodies;
  for (const std::string& body : bodies) corpus.push_back(FuzzWrap(body));
  corpus.push_back(FuzzWrap(bodies[0]) + FuzzWrap(bodies[3]));
  corpus.push_back(std::string(200, '['));
  return corpus;
}

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
