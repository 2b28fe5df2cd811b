// Building blocks of a /metrics page over prometheus-cpp's types.
#pragma once

#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace grove::metrics {

using Families = std::vector<prometheus::MetricFamily>;
using Samples = std::vector<std::pair<prometheus::Labels, double>>;

// Names: grove_<part>_<what>_<unit>, base units, "_total" for counters; help is one sentence. A family without samples
// is left out, as Prometheus cannot tell it from an absent one.
void AddCounter(Families& families, std::string name, std::string help, const Samples& samples);
void AddGauge(Families& families, std::string name, std::string help, const Samples& samples);
inline void AddCounter(Families& families, std::string name, std::string help, double value) {
  AddCounter(families, std::move(name), std::move(help), Samples{{prometheus::Labels{}, value}});
}
inline void AddGauge(Families& families, std::string name, std::string help, double value) {
  AddGauge(families, std::move(name), std::move(help), Samples{{prometheus::Labels{}, value}});
}

// grove_build_info, and process_* as Prometheus' own clients name them: CPU seconds, resident memory, open descriptors,
// threads, start.
void AddProcess(Families& families, const std::string& part);

// Histograms by one label, fed with batches of observations. Thread-safe.
class LabelledHistogram {
 public:
  // `bounds` ascending, +Inf is implied.
  LabelledHistogram(std::string name, std::string help, std::string label, std::vector<double> bounds);
  // A label value beyond the first kMaxLabelValues is counted as "other", so that a faulty peer cannot fill a time
  // series database.
  static constexpr std::size_t kMaxLabelValues = 32;
  void Observe(const std::string& label_value, double seconds);
  void Collect(Families& families) const;

 private:
  struct Series {
    std::vector<uint64_t> counts;  // per bound, not cumulated; the last is +Inf
    double sum = 0;
    uint64_t count = 0;
  };
  const std::string name_, help_, label_;
  const std::vector<double> bounds_;
  mutable std::mutex mu_;
  std::map<std::string, Series> series_;
};

// Stages of an evaluation: a cached build takes milliseconds, a nvcc build a minute, a search of samples ten.
std::vector<double> StageSecondsBounds();

}  // namespace grove::metrics
