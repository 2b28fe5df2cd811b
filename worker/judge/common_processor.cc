#include "worker/judge/common_processor.h"

#include <pthread.h>

namespace grove::judge {
namespace {

// Where the kernel refuses, it stays where it is: a measurement is not worse for it than it was without.
void StandIn(const cpu_set_t& set) { (void)::sched_setaffinity(0, sizeof set, &set); }

}  // namespace

CommonProcessor::CommonProcessor(Random& random) : random_(random) {
  CPU_ZERO(&all_);
  if (::sched_getaffinity(0, sizeof all_, &all_) != 0) return;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &all_)) processors_.push_back(processor);
  }
  others_ = all_;
  // Threads that are made meanwhile are not bound to where their maker stands.
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  if (::pthread_attr_setaffinity_np(&attributes, sizeof all_, &all_) == 0) ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

CommonProcessor::~CommonProcessor() {
  if (now_ >= 0) StandIn(all_);
}

bool CommonProcessor::Next() {
  if (left_-- > 0) return false;
  left_ = kStay - 1;
  const int before = now_;
  now_ = processors_[random_.Below(processors_.size())];
  others_ = all_;
  CPU_CLR(now_, &others_);
  StandIn(others_);
  return now_ != before;
}

CommonProcessor::There::There(const CommonProcessor& common) : common_(common) {
  if (common_.now_ < 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(common.now_, &one);
  StandIn(one);
}

CommonProcessor::There::~There() {
  if (common_.now_ >= 0) StandIn(common_.others_);
}

}  // namespace grove::judge
