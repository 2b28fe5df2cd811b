// Drives a fuzz target where libFuzzer is absent: a fixed corpus, and mutations of it from a printed seed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::string Frame(const std::string& text) {
  std::string frame(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) frame[i] = static_cast<char>(text.size() >> (8 * i));
  return frame + text;
}

void Run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned seed = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 20250528;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 40000;
  std::printf("seed %u, %d rounds\n", seed, rounds);
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
  for (const std::string& body : bodies) corpus.push_back(Frame(body));
  corpus.push_back(Frame(bodies[0]) + Frame(bodies[3]));
  corpus.push_back(std::string(200, '['));
  std::mt19937 random(seed);
  for (const std::string& text : corpus) Run(text);
  static const char kTokens[] = "{}[]\",:\\0123456789eE+-.truefalsenl\xff\x00\x80";
  for (int round = 0; round < rounds; ++round) {
    std::string text = corpus[random() % corpus.size()];
    for (unsigned change = random() % 6; change-- > 0;) {
      const std::size_t at = text.empty() ? 0 : random() % text.size();
      switch (random() % 5) {
        case 0:
          if (!text.empty()) text[at] = static_cast<char>(random());
          break;
        case 1:
          text.insert(at, 1 + random() % 8, kTokens[random() % (sizeof kTokens - 1)]);
          break;
        case 2:
          if (!text.empty()) text.erase(at, 1 + random() % 8);
          break;
        case 3:
          text += corpus[random() % corpus.size()];
          break;
        default:
          if (!text.empty()) text.insert(at, text.substr(random() % text.size(), random() % 64));
      }
    }
    // Half of the time with a true length in front, so that the body is reached.
    Run(random() % 2 == 0 ? text : Frame(text));
  }
  return 0;
}
