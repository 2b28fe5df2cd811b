// A few threads for calls that block. Threads start when they are first needed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace grove::coordinator {

// Thread-safe. The caller bounds what it submits; the destructor drops what has not started and waits for what has.
class Executor {
 public:
  explicit Executor(int threads) : max_threads_(threads) {}
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void Submit(std::function<void()> task);

 private:
  void Run();

  const int max_threads_;
  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  int idle_ = 0;
  bool stopping_ = false;
};

}  // namespace grove::coordinator
