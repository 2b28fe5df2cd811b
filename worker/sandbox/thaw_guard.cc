#include "worker/sandbox/thaw_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/log.h"

namespace grove::sandbox {
namespace {

// Killed before they are thawed, so that none of them runs on; a group goes once the last of them is gone. 5 s at most.
constexpr char kScript[] =
    "trap '' TERM INT HUP\n"
    "read -r word && exit 0\n"
    "i=0\n"
    "while [ $i -lt 100 ]; do\n"
    "  left=\n"
    "  for group in \"$1/$2\"*; do\n"
    "    [ -d \"$group\" ] || continue\n"
    "    while read -r pid; do kill -9 \"$pid\"; done < \"$group/cgroup.procs\"\n"
    "    echo THAWED > \"$group/freezer.state\"\n"
    "    rmdir \"$group\" || left=1\n"
    "  done\n"
    "  [ -n \"$left\" ] || exit 0\n"
    "  sleep 0.05\n"
    "  i=$((i + 1))\n"
    "done\n";

}  // namespace

std::unique_ptr<ThawGuard> ThawGuard::Start(const std::string& folder, const std::string& prefix) {
  int line[2];
  if (pipe2(line, O_CLOEXEC) != 0) {
    LogWarning("sandbox", "no guard for what is frozen: ", strerror(errno));
    return nullptr;
  }
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, line[0], 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  // Of its own session: what ends the worker (Ctrl-C, its process group's SIGKILL) must not end it.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string words[] = {"sh", "-c", kScript, "grove-thaw-guard", folder, prefix};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                  words[4].data(), words[5].data(), nullptr};
  char path[] = "PATH=/usr/bin:/bin";
  char* env[] = {path, nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/bin/sh", &files, &attributes, argv, env);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(line[0]);
  if (error != 0) {
    close(line[1]);
    LogWarning("sandbox", "no guard for what is frozen: ", strerror(error));
    return nullptr;
  }
  return std::unique_ptr<ThawGuard>(new ThawGuard(pid, line[1]));
}

ThawGuard::~ThawGuard() {
  // A guard that is gone already must not end us by SIGPIPE: the signal is blocked, and taken out where it came.
  sigset_t pipe_signal, before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  if (write(line_, "x\n", 2) != 2 && errno == EPIPE) {
    const timespec now{};
    sigtimedwait(&pipe_signal, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(line_);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace grove::sandbox
