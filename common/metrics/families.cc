#include "common/metrics/families.h"

#include <dirent.h>
#include <prometheus/metric_type.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/files.h"
#include "common/base/version.h"

namespace grove::metrics {
namespace {

std::vector<prometheus::ClientMetric::Label> ToLabels(const prometheus::Labels& labels) {
  std::vector<prometheus::ClientMetric::Label> out;
  for (const auto& [name, value] : labels) {
    prometheus::ClientMetric::Label label;
    label.name = name;
    label.value = value;
    out.push_back(std::move(label));
  }
  return out;
}

void Add(Families& families, prometheus::MetricType type, std::string name, std::string help, const Samples& samples) {
  if (samples.empty()) return;
  prometheus::MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  for (const auto& [labels, value] : samples) {
    prometheus::ClientMetric metric;
    metric.label = ToLabels(labels);
    if (type == prometheus::MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    family.metric.push_back(std::move(metric));
  }
  families.push_back(std::move(family));
}

int CountEntries(const char* folder) {
  DIR* dir = opendir(folder);
  if (dir == nullptr) return 0;
  int count = 0;
  while (const dirent* entry = readdir(dir)) count += entry->d_name[0] != '.';
  closedir(dir);
  return count;
}

}  // namespace

void AddCounter(Families& families, std::string name, std::string help, const Samples& samples) {
  Add(families, prometheus::MetricType::Counter, std::move(name), std::move(help), samples);
}

void AddGauge(Families& families, std::string name, std::string help, const Samples& samples) {
  Add(families, prometheus::MetricType::Gauge, std::move(name), std::move(help), samples);
}

void AddProcess(Families& families, const std::string& part) {
  AddGauge(families, "grove_build_info", "Always 1; the labels say which program and version this is.",
           Samples{{{{"part", part}, {"version", kVersion}}, 1}});

  // proc(5): fields of /proc/self/stat after the name in parentheses, counted from 3 (state).
  absl::StatusOr<std::string> stat = ReadFile("/proc/self/stat", 1 << 16);
  if (!stat.ok() || !absl::StrContains(*stat, ")")) return;
  const std::vector<std::string> fields =
      absl::StrSplit(absl::string_view(*stat).substr(stat->rfind(')') + 1), ' ', absl::SkipEmpty());
  auto field = [&](std::size_t number) {
    double value = 0;
    return number - 3 < fields.size() && absl::SimpleAtod(fields[number - 3], &value) ? value : 0;
  };
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  AddCounter(families, "process_cpu_seconds_total", "User and system CPU time spent.", (field(14) + field(15)) / ticks);
  AddGauge(families, "process_resident_memory_bytes", "Resident memory.",
           field(24) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  AddGauge(families, "process_threads", "Threads of this process.", field(20));
  AddGauge(families, "process_open_fds", "Open file descriptors.", CountEntries("/proc/self/fd"));
  double boot = 0;
  if (absl::StatusOr<std::string> system = ReadFile("/proc/stat", 1 << 24); system.ok()) {
    const std::size_t at = system->find("\nbtime ");
    long long seconds = 0;
    if (at != std::string::npos && std::sscanf(system->c_str() + at, "\nbtime %lld", &seconds) == 1) {
      boot = static_cast<double>(seconds);
    }
  }
  if (boot > 0) {
    AddGauge(families, "process_start_time_seconds", "Start of the process, seconds since the Unix epoch.",
             boot + field(22) / ticks);
  }
}

LabelledHistogram::LabelledHistogram(std::string name, std::string help, std::string label, std::vector<double> bounds)
    : name_(std::move(name)), help_(std::move(help)), label_(std::move(label)), bounds_(std::move(bounds)) {}

void LabelledHistogram::Observe(const std::string& label_value, double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return;
  std::lock_guard<std::mutex> lock(mu_);
  auto found = series_.find(label_value);
  if (found == series_.end()) {
    found = series_.try_emplace(series_.size() < kMaxLabelValues ? label_value : "other").first;
  }
  Series& series = found->second;
  series.counts.resize(bounds_.size() + 1);
  // A bucket holds what is less than or equal to its bound.
  ++series
        .counts[static_cast<std::size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), seconds) - bounds_.begin())];
  series.sum += seconds;
  ++series.count;
}

void LabelledHistogram::Collect(Families& families) const {
  std::lock_guard<std::mutex> lock(mu_);
  if (series_.empty()) return;
  prometheus::MetricFamily family;
  family.name = name_;
  family.help = help_;
  family.type = prometheus::MetricType::Histogram;
  for (const auto& [value, series] : series_) {
    prometheus::ClientMetric metric;
    metric.label = ToLabels({{label_, value}});
    uint64_t cumulated = 0;
    for (std::size_t i = 0; i < series.counts.size(); ++i) {
      cumulated += series.counts[i];
      prometheus::ClientMetric::Bucket bucket;
      bucket.cumulative_count = cumulated;
      bucket.upper_bound = i < bounds_.size() ? bounds_[i] : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back(bucket);
    }
    metric.histogram.sample_count = series.count;
    metric.histogram.sample_sum = series.sum;
    family.metric.push_back(std::move(metric));
  }
  families.push_back(std::move(family));
}

std::vector<double> StageSecondsBounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
}

}  // namespace grove::metrics
