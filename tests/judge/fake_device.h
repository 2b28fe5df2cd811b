// A device of which only what a test gives it is there.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "worker/judge/device_ops.h"

namespace grove::judge {

// Its memory is the host's, so that pieces of it can be copied and filled.
class FakeDevice : public DeviceOps {
 public:
  std::int64_t others = 0, all = std::int64_t{80} << 30;
  std::function<std::unique_ptr<MemoryBlock>(int, std::size_t)> import;

  std::int64_t others_bytes() const override { return others; }
  bool cuda() const override { return true; }
  nlohmann::json Info() const override { return {{"memory_bytes", all}}; }
  std::size_t cache_bytes() const override { return 0; }
  std::size_t free_bytes() const override { return 0; }
  std::unique_ptr<SharedBlock> Allocate(std::size_t) override { return nullptr; }
  std::unique_ptr<MemoryBlock> Import(int fd, std::size_t bytes) override {
    return import ? import(fd, bytes) : nullptr;
  }
  void Copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void CopyPieces(char*, const char*, const std::vector<std::size_t>&, std::size_t) override {}
  void ToHost(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void FromHost(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void Fill(void* to, const unsigned char* pattern, std::size_t element_bytes, std::size_t bytes) override {
    for (std::size_t i = 0; i < bytes; ++i) static_cast<unsigned char*>(to)[i] = pattern[i % element_bytes];
  }
  void Compare(const void*, const void*, std::size_t, const Spoiled&) override {}
  bool Differed() override { return false; }
  void Spoil(void*, std::size_t, const Spoiled&) override {}
  void Synchronize() override {}
  double Rest(int, const std::function<void()>& fill) override {
    fill();
    return 0;
  }
  void EmptyRun() override {}
  std::size_t flush_bytes() const override { return 0; }
  void Flush() override {}
  void Evict(const void*, std::size_t) override {}
  void Touch(const void*, std::size_t) override {}
  double Time(const std::function<void()>&) override { return 0; }
};

}  // namespace grove::judge
