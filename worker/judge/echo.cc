#include "worker/judge/echo.h"

#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "worker/judge/clock.h"

namespace grove::judge {
namespace {

// One that is not there, or not ours to use, changes nothing.
void StandOn(int processor, const cpu_set_t& all) {
  cpu_set_t set = all;
  if (processor >= 0) {
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
  }
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

template <typename Frame>
bool Read(int fd, Frame* frame) {
  for (;;) {
    const ssize_t got = ::recv(fd, frame, sizeof *frame, 0);
    if (got == static_cast<ssize_t>(sizeof *frame)) return true;
    if (got >= 0 || errno != EINTR) return false;
  }
}

template <typename Frame>
void Write(int fd, const Frame& frame) {
  while (::send(fd, &frame, sizeof frame, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

}  // namespace

Echo::Echo() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  mine_ = wire::UniqueFd(ends[0]);
  its_ = wire::UniqueFd(ends[1]);
  thread_ = std::thread([this] { Serve(); });
}

Echo::~Echo() {
  ::shutdown(mine_.get(), SHUT_RDWR);
  thread_.join();
}

void Echo::Serve() {
  cpu_set_t all;
  CPU_ZERO(&all);
  ::sched_getaffinity(0, sizeof all, &all);
  int stands = -1;
  for (Question question; Read(its_.get(), &question);) {
    const auto begin = Clock::now();
    double worked = 0;
    while ((worked = Since(begin)) < question.work) __builtin_ia32_pause();
    Write(its_.get(), worked);
    // Where it is to be next is where it was, mostly: moving is nobody's time.
    if (question.processor != stands) {
      StandOn(question.processor, all);
      stands = question.processor;
    }
  }
}

double Echo::Wait(double work, int processor) {
  const auto begin = Clock::now();
  Write(mine_.get(), Question{work, processor});
  double worked = 0;
  if (!Read(mine_.get(), &worked)) return 0;
  return Since(begin) - worked;
}

}  // namespace grove::judge
