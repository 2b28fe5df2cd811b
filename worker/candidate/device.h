// What a native candidate runs on. One implementation per device kind; owned and used by the main thread.
#pragma once

#include <grove/kernel.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace grove::candidate {

// This header stays within C++17, which is what CMake 3.25 knows of nvcc 13.
class Device {
 public:
  virtual ~Device() = default;

  // Maps shared memory handed over by the judge. Null and an error text when it cannot.
  virtual void* Map(int fd, std::size_t bytes, std::string* error) = 0;

  virtual DLDevice Where() const = 0;
  virtual void* Stream() const = 0;

  // One run: Prepare, then for each of its `count` calls Begin, the kernel, End. All return an error text, empty when
  // well.
  virtual std::string Prepare(std::size_t count) = 0;
  virtual std::string Begin(std::size_t index) = 0;
  virtual std::string End(std::size_t index) = 0;

  // Before Begin: keeps the device busy for longer than it takes to queue a call, which then starts when all of it is
  // queued. On a GPU alone.
  virtual std::string Cover() = 0;

  // One call of a program of our own, in a kernel's place: some ten microseconds of reading and writing memory. Only
  // before the candidate's program is loaded; EndPractice gives back what it takes.
  virtual std::string Practice() = 0;
  virtual void EndPractice() = 0;

  // Waits for everything that runs on the device, on whichever stream.
  virtual std::string Wait() = 0;
  // The same, and gives a time for each call (on a GPU its share of the run).
  virtual std::string Finish(std::vector<std::int64_t>* nanoseconds) = 0;

  // From here on (until `false`) what runs on the device is for a profiler that watches this process, if there is one.
  virtual std::string Profile(bool on) = 0;

  // The canary: computes what is known beforehand, on all of the device, and says how long a fixed piece of it took
  // (the best of three; on a CPU in time of this thread).
  virtual std::string SelfTest(double* seconds) = 0;
  virtual std::string Name() const = 0;
};

std::unique_ptr<Device> MakeCpuDevice();

// Makes the CUDA context, which is what takes the time. Null and an error text where there is no such device, or where
// this program was built without CUDA.
std::unique_ptr<Device> MakeCudaDevice(int ordinal, std::string* error);

}  // namespace grove::candidate
