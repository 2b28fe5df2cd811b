#include "worker/judge/returned_memory.h"

#include <array>
#include <cstring>
#include <exception>
#include <set>
#include <string>

#include "worker/judge/verdict.h"

namespace grove::judge {

bool ProcessResults::Read(std::uint64_t place, char* to, std::size_t bytes) {
  if (own_ && place != 0 && !own_->Has(place, bytes)) {
    throw Verdict{"VERDICT_UNMEASURABLE",
                  "its outputs lie in a mapped file or in shared memory, where one page may be many: return tensors of "
                  "ordinary memory",
                  {}};
  }
  return memory_->Read(place, to, bytes);
}

void ProcessResults::Write(std::uint64_t place, const unsigned char* from, std::size_t bytes) {
  memory_->Write(place, from, bytes);
}

namespace {

constexpr int kOffsetBits = 40;
constexpr std::uint64_t kMostNumber = (std::uint64_t{1} << (64 - kOffsetBits)) - 1;
constexpr std::size_t kMostPieces = std::size_t{1} << 15;  // an honest one has as many as fit, 2 MiB or more each

}  // namespace

DeviceResults::~DeviceResults() {
  try {
    ops_.Synchronize();  // nothing that is queued works on them
  } catch (const std::exception&) {
    // A device that has failed works on nothing.
  }
}

void DeviceResults::Hear(std::vector<Piece> pieces, const std::vector<std::uint64_t>& freed) {
  bool known = false;
  for (const std::uint64_t number : freed) known = known || pieces_.count(number) > 0;
  if (known) ops_.Synchronize();
  for (const std::uint64_t number : freed) {
    const auto gone = pieces_.find(number);
    if (gone == pieces_.end()) continue;
    bytes_ -= gone->second->bytes();
    pieces_.erase(gone);
  }
  for (Piece& piece : pieces) {
    if (piece.number == 0 || piece.number > kMostNumber || pieces_.count(piece.number) > 0) continue;
    if (pieces_.size() >= kMostPieces || piece.bytes > most_bytes_ - bytes_) continue;
    auto block = ops_.Import(piece.fd.get(), piece.bytes);
    if (block == nullptr) continue;
    bytes_ += piece.bytes;
    pieces_.emplace(piece.number, std::move(block));
  }
}

char* DeviceResults::At(std::uint64_t place, std::size_t bytes) const {
  const auto piece = pieces_.find(place >> kOffsetBits);
  if (piece == pieces_.end()) return nullptr;
  const std::uint64_t offset = place & ((std::uint64_t{1} << kOffsetBits) - 1);
  MemoryBlock& block = *piece->second;
  return offset <= block.bytes() && bytes <= block.bytes() - offset ? block.data() + offset : nullptr;
}

bool DeviceResults::Read(std::uint64_t place, char* to, std::size_t bytes) {
  const char* from = At(place, bytes);
  if (from != nullptr) ops_.Copy(to, from, bytes);
  return from != nullptr;
}

void DeviceResults::Write(std::uint64_t place, const unsigned char* from, std::size_t bytes) {
  if (char* to = At(place, bytes)) ops_.Fill(to, from, bytes, bytes);
}

void DeviceResults::RefuseAliases(const std::vector<std::uint64_t>& places) {
  // Each has its number at its beginning for a moment.
  struct Begin {
    std::uint64_t number;
    char* at;
    std::uint64_t was;
  };
  std::set<std::uint64_t> numbers;
  for (const std::uint64_t place : places) numbers.insert(place >> kOffsetBits);
  std::vector<Begin> begins;
  for (const std::uint64_t number : numbers) {
    if (char* at = At(number << kOffsetBits, sizeof number)) begins.push_back({number, at, 0});
  }
  if (begins.size() < 2) return;
  const auto write = [this](char* at, std::uint64_t word) {
    std::array<unsigned char, sizeof word> bytes;
    std::memcpy(bytes.data(), &word, bytes.size());
    ops_.Fill(at, bytes.data(), bytes.size(), bytes.size());
  };
  for (Begin& begin : begins) ops_.ToHost(&begin.was, begin.at, sizeof begin.was);
  for (const Begin& begin : begins) write(begin.at, begin.number);
  std::string evidence;
  for (Begin& begin : begins) {
    std::uint64_t found = 0;
    ops_.ToHost(&found, begin.at, sizeof found);
    if (found == begin.number) continue;
    // Written by somebody else since: that is his.
    if (numbers.count(found) == 0) {
      begin.was = found;
      continue;
    }
    evidence = "what the judge wrote to piece " + std::to_string(found) + " of its memory was read in piece " +
               std::to_string(begin.number) + ", which are two allocations as its process says";
  }
  for (const Begin& begin : begins) write(begin.at, begin.was);
  if (evidence.empty()) return;
  throw Verdict{"VERDICT_CHEATED",
                "its results were said to lie in memory of their own, and lie in the same",
                {{"stage", "time"}, {"evidence", evidence}}};
}

}  // namespace grove::judge
