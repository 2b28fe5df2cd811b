// The memory that a script's results lie in: read by the judge where it lay when the clock stopped, and written to
// afterwards. A place is a word of the script's own, which says where a result lies; 0 is nowhere. All of it is
// hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "worker/judge/candidate_memory.h"
#include "worker/judge/conversation.h"
#include "worker/judge/device_ops.h"

namespace grove::judge {

class ReturnedMemory {
 public:
  virtual ~ReturnedMemory() = default;
  // Before results are read, their process standing still.
  virtual void Look() {}
  // To the judge's memory on the device; queued. False where not all of it is there. Throws UNMEASURABLE where one page
  // of it may be many.
  virtual bool Read(std::uint64_t place, char* to, std::size_t bytes) = 0;
  // Where the judge has it on a GPU; null where nothing is there.
  virtual const char* Find(std::uint64_t /*place*/, std::size_t /*bytes*/) const { return nullptr; }
  virtual void Write(std::uint64_t place, const unsigned char* from, std::size_t bytes) = 0;  // 1 to 16 bytes; queued
  // Of results that have been read: throws CHEATED where places that are not the same are the same memory. Waits.
  virtual void RefuseAliases(const std::vector<std::uint64_t>& /*places*/) {}
};

// On a CPU: addresses of its process.
class ProcessResults : public ReturnedMemory {
 public:
  explicit ProcessResults(std::shared_ptr<const CandidateMemory> memory) : memory_(std::move(memory)) {}
  void Look() override { own_ = memory_->Own(); }
  bool Read(std::uint64_t place, char* to, std::size_t bytes) override;
  void Write(std::uint64_t place, const unsigned char* from, std::size_t bytes) override;

 private:
  const std::shared_ptr<const CandidateMemory> memory_;
  std::optional<OwnMemory> own_;
};

// The place on a GPU of what a script has copied to its slot, because it lies where nobody else can read it.
inline constexpr std::uint64_t kInItsSlot = 1;

// On a GPU: (number of a piece << 40) | offset in it in bytes. The judge maps the pieces that the process names. Each
// is one allocation of the driver's, mapped as a whole: no page of it is there twice. That two numbers are not one
// allocation is the process's word alone, so RefuseAliases writes to each and looks at the others.
class DeviceResults : public ReturnedMemory {
 public:
  // `most_bytes`: of all pieces together; what goes beyond is not there.
  DeviceResults(DeviceOps& ops, std::uint64_t most_bytes) : ops_(ops), most_bytes_(most_bytes) {}
  ~DeviceResults() override;
  void Hear(std::vector<Piece> pieces, const std::vector<std::uint64_t>& freed);
  bool Read(std::uint64_t place, char* to, std::size_t bytes) override;
  const char* Find(std::uint64_t place, std::size_t bytes) const override { return At(place, bytes); }
  void Write(std::uint64_t place, const unsigned char* from, std::size_t bytes) override;
  void RefuseAliases(const std::vector<std::uint64_t>& places) override;

 private:
  char* At(std::uint64_t place, std::size_t bytes) const;  // null where nothing is there

  DeviceOps& ops_;
  const std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::map<std::uint64_t, std::unique_ptr<MemoryBlock>> pieces_;
};

}  // namespace grove::judge
