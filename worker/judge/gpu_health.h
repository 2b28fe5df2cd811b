// Which timed pairs a GPU's own state leaves valid, and what state it was in during those. Pure.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/judge/gpu_watch.h"

namespace grove::judge {

class GpuHealth {
 public:
  struct Window {
    GpuWatch::Clock::time_point begin, end;
  };

  // Of a pair of runs, one of each side, the readings since the last one: why it does not count; empty where it does,
  // and its readings are kept.
  std::string Refuse(const std::vector<GpuWatch::Reading>& readings, const Window& other, const Window& candidate);
  // SampleState of the last pair that counts; {} before.
  const nlohmann::json& LastPair() const { return last_pair_; }
  // More than half of ten pairs and more.
  bool MostRefused() const;
  void BeginAnew();

  // DeviceState of the pairs that count. `unavailable`: GpuWatch::Unavailable, which is asked for where there are
  // readings, too: they may have ended in the middle.
  nlohmann::json State(const std::string& unavailable) const;

 private:
  std::vector<GpuWatch::Reading> readings_;  // taken within runs that count
  nlohmann::json last_pair_ = nlohmann::json::object();
  int pairs_ = 0, refused_ = 0;
};

// Seconds that an empty kernel may take while the candidate is held. `quiet`: what it took when timing began. That is
// after the candidate has run, so that whoever was at work then does not raise what is allowed beyond a bound.
double AllowedForNothing(double quiet);

}  // namespace grove::judge
