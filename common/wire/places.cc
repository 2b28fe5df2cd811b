#include "common/wire/places.h"

#include <pthread.h>
#include <sched.h>

#include <cstdlib>
#include <cstring>

namespace grove::wire {

std::vector<int> Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

std::string PlacesOf(const std::vector<int>& processors) {
  std::string places;
  for (int processor : processors) places += (places.empty() ? "{" : ",{") + std::to_string(processor) + "}";
  return places;
}

std::vector<int> ProcessorsOf(const char* places) {
  std::vector<int> processors;
  for (const char* at = places; at != nullptr && (at = std::strchr(at, '{')) != nullptr; ++at) {
    processors.push_back(std::atoi(at + 1));
  }
  return processors;
}

bool FreeThreads(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int processor : processors) {
    if (processor >= 0 && processor < CPU_SETSIZE) CPU_SET(processor, &set);
  }
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  const bool said = ::pthread_attr_setaffinity_np(&attributes, sizeof set, &set) == 0 &&
                    ::pthread_setattr_default_np(&attributes) == 0;
  ::pthread_attr_destroy(&attributes);
  return said;
}

std::vector<std::pair<std::string, std::string>> JudgePlaces(int threads, const std::vector<int>& processors) {
  if (processors.empty() || threads < static_cast<int>(processors.size())) return {};
  const std::string places = PlacesOf(processors);
  return {{"OMP_PLACES", places}, {"OMP_PROC_BIND", "close"}, {kJudgePlaces, places}};
}

}  // namespace grove::wire
