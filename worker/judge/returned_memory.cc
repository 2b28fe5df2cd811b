#include "worker/judge/returned_memory.h"

#include <exception>

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

}  // namespace grove::judge
