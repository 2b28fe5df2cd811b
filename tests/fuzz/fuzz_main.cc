// Drives a fuzz target where libFuzzer is absent: a fixed corpus, and mutations of it from a printed seed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Of the target: what inputs look like, and what is done to a mutated one besides.
std::vector<std::string> FuzzSeeds();
std::string FuzzWrap(const std::string& text);

namespace {

void Run(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned seed = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 20250528;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 40000;
  std::printf("seed %u, %d rounds\n", seed, rounds);
  const std::vector<std::string> corpus = FuzzSeeds();
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
    Run(random() % 2 == 0 ? text : FuzzWrap(text));
  }
  return 0;
}
