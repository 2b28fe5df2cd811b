// The NVML library of tests, which the code under test loads by $GROVE_NVML_LIBRARY, by its other face.
#pragma once

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

namespace grove::testing {

class FakeNvml {
 public:
  FakeNvml() {
    setenv("GROVE_NVML_LIBRARY", GROVE_FAKE_NVML, 1);
    handle_ = dlopen(GROVE_FAKE_NVML, RTLD_NOW);
    INFO(dlerror());
    REQUIRE(handle_ != nullptr);
  }
  ~FakeNvml() {
    Hang("");
    Lost(false);
    Processes({});
    unsetenv("GROVE_NVML_LIBRARY");
  }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  // Calls of this name do not return until another one is named: "init", "handle", "name", "wait", "processes", or a
  // value's.
  void Hang(const std::string& call) { Find<void (*)(const char*)>("fake_hang")(call.c_str()); }
  void Lost(bool lost = true) { Find<void (*)(int)>("fake_lost")(lost ? 1 : 0); }
  void Xid(int xid) { Find<void (*)(int)>("fake_xid")(xid); }
  // "sm" and "memory" (MHz), "temperature", "power" (milliwatts), "reasons" (bits).
  void Set(const std::string& name, unsigned long long value) {
    Find<void (*)(const char*, unsigned long long)>("fake_value")(name.c_str(), value);
  }
  void Processes(const std::vector<unsigned>& pids) {
    Find<void (*)(const unsigned*, int)>("fake_processes")(pids.data(), static_cast<int>(pids.size()));
  }
  int Calls(const std::string& call) { return Find<int (*)(const char*)>("fake_calls")(call.c_str()); }

 private:
  template <typename F>
  F Find(const char* name) {
    return reinterpret_cast<F>(dlsym(handle_, name));
  }
  void* handle_ = nullptr;
};

}  // namespace grove::testing
