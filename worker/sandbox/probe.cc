// Tries, from inside a sandbox, what the sandbox must deny, and uses up what it must bound. Static; no dependencies.
//
//   grove-sandbox-probe deny HOST_PID      one line per attempt: "<layer> <attempt> denied|ALLOWED <detail>"
//   grove-sandbox-probe ok                 prints "ok"
//   grove-sandbox-probe memory BYTES       touches so much, then exits 0
//   grove-sandbox-probe fork N             starts N children that wait, exits 0 when all could be started, else 3
//   grove-sandbox-probe fill PATH BYTES    writes a file, exits 0 when all of it could be written, else 3
//   grove-sandbox-probe spin               uses CPU for ever
//   grove-sandbox-probe sleep              waits for ever
//   grove-sandbox-probe flood BYTES        writes to stdout
//   grove-sandbox-probe signal N           ends itself by a signal
//   grove-sandbox-probe exit N
//   grove-sandbox-probe timers             makes POSIX timers, at most 100; its exit code is the error that ended it
//   grove-sandbox-probe descriptors        opens as many as it may; its exit code is the error that ended it
//   grove-sandbox-probe flight N [PATH]    sends N descriptors that nobody receives; its exit code is the error that
//                                          ended it, or with a path: makes that file then and waits for ever
//   grove-sandbox-probe orphan             leaves a grandchild in a session of its own, which ignores signals, and
//                                          exits 0
//   grove-sandbox-probe fds                lists its descriptors
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#ifndef AF_VSOCK
#define AF_VSOCK 40
#endif

namespace {

void Report(const char* layer, const char* attempt, bool denied, int error) {
  printf("%s %s %s %s\n", layer, attempt, denied ? "denied" : "ALLOWED", denied ? strerror(error) : "-");
}

// A call that must fail with this error: any other failure (say, a bad argument) proves nothing.
template <typename Call>
void Expect(const char* layer, const char* attempt, int wanted, Call call) {
  errno = 0;
  const long result = static_cast<long>(call());
  const int error = errno;
  Report(layer, attempt, result < 0 && error == wanted, error);
}

// Not there, or a folder of the sandbox's own root (a tmpfs) that is only the way to what is mounted below it: where
// the programs are installed in somebody's home, there is such a one.
bool Hidden(const char* path) {
  struct stat info, root;
  if (stat(path, &info) != 0) return true;
  struct statfs system;
  const bool own_root = stat("/", &root) == 0 && statfs("/", &system) == 0 && system.f_type == TMPFS_MAGIC;
  return own_root && S_ISDIR(info.st_mode) && info.st_dev == root.st_dev;
}

void Deny(int host_pid) {
  errno = 0;
  const char* system_file = "/usr/grove-probe";
  int fd = open(system_file, O_WRONLY | O_CREAT, 0600);
  Report("filesystem", "write-usr", fd < 0, errno);
  fd = open("/grove-probe", O_WRONLY | O_CREAT, 0600);
  Report("filesystem", "write-root", fd < 0, errno);
  fd = open("/dev/grove-probe", O_WRONLY | O_CREAT, 0600);
  Report("filesystem", "write-dev", fd < 0, errno);
  for (const char* path : {"/etc/shadow", "/root", "/home", "/proc/1/root/root", "/sys/kernel", "/run", "/var/lib"}) {
    errno = 0;
    Report("filesystem", path, Hidden(path), errno == 0 ? ENOENT : errno);
  }
  // Root outside is the owner of these, capabilities or not.
  for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches"}) {
    errno = 0;
    fd = open(path, O_WRONLY);
    Report("filesystem", path, fd < 0, errno);
  }

  errno = 0;
  const long killed = host_pid > 0 ? kill(host_pid, 0) : -1;
  Report("namespaces", "signal-host-process", killed != 0, errno == 0 ? ESRCH : errno);
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/cmdline", host_pid);
  // In a fresh pid namespace ours are single digits; the host's number names nothing.
  Report("namespaces", "see-host-process", access(path, F_OK) != 0, errno);
  Report("namespaces", "low-pid", getpid() < 100, ESRCH);

  Expect("seccomp", "socket-inet", EPERM, [&] { return socket(AF_INET, SOCK_STREAM, 0); });
  Expect("seccomp", "socket-netlink", EPERM, [&] { return socket(AF_NETLINK, SOCK_RAW, 0); });
  Expect("seccomp", "socket-vsock", EPERM, [&] { return socket(AF_VSOCK, SOCK_STREAM, 0); });
  Expect("seccomp", "socket-alg", EPERM, [&] { return socket(38 /* AF_ALG */, SOCK_SEQPACKET, 0); });
  // The namespace itself: no interface but a loopback. Read from /proc, because sockets are denied already.
  {
    FILE* dev = fopen("/proc/net/dev", "r");
    int interfaces = 0;
    char line[512];
    while (dev != nullptr && fgets(line, sizeof(line), dev) != nullptr) {
      if (strchr(line, ':') != nullptr && strstr(line, "lo:") == nullptr) ++interfaces;
    }
    FILE* route = fopen("/proc/net/route", "r");
    int routes = -1;
    while (route != nullptr && fgets(line, sizeof(line), route) != nullptr) ++routes;
    // Tunnel templates (tunl0, sit0) exist in every namespace; a route would mean a way out.
    Report("network", "routes", dev != nullptr && routes <= 0, ENETUNREACH);
    (void)interfaces;
  }
  int peer = socket(AF_UNIX, SOCK_STREAM, 0);
  Report("network", "unix-sockets-work", peer >= 0, 0);

  Expect("seccomp", "ptrace", EPERM, [&] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); });
  char byte = 0;
  iovec local{&byte, 1}, remote{&byte, 1};
  Expect("seccomp", "process_vm_readv", EPERM, [&] { return process_vm_readv(getpid(), &local, 1, &remote, 1, 0); });
  Expect("seccomp", "unshare-user", EPERM, [&] { return unshare(CLONE_NEWUSER); });
  Expect("seccomp", "clone-newns", EPERM, [&] { return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); });
  Expect("seccomp", "clone3", ENOSYS, [&] { return syscall(SYS_clone3, nullptr, 0); });
  Expect("seccomp", "mount", EPERM, [&] { return mount("none", "/tmp", "tmpfs", 0, nullptr); });
  Expect("seccomp", "bpf", EPERM, [&] { return syscall(SYS_bpf, 0, nullptr, 0); });
  Expect("seccomp", "io_uring_setup", EPERM, [&] { return syscall(SYS_io_uring_setup, 1, nullptr); });
  unsigned long slots = 0;
  Expect("seccomp", "io_setup", EPERM, [&] { return syscall(SYS_io_setup, 1, &slots); });
  Expect("seccomp", "io_submit", EPERM, [&] { return syscall(SYS_io_submit, slots, 0, nullptr); });
  Expect("seccomp", "io_getevents", EPERM, [&] { return syscall(SYS_io_getevents, slots, 0, 0, nullptr, nullptr); });
  Expect("seccomp", "io_pgetevents", EPERM,
         [&] { return syscall(SYS_io_pgetevents, slots, 0, 0, nullptr, nullptr, nullptr); });
  Expect("seccomp", "io_cancel", EPERM, [&] { return syscall(SYS_io_cancel, slots, nullptr, nullptr); });
  Expect("seccomp", "io_destroy", EPERM, [&] { return syscall(SYS_io_destroy, slots); });
#ifdef SYS_inotify_init
  Expect("seccomp", "inotify_init", EPERM, [&] { return syscall(SYS_inotify_init); });
#endif
  Expect("seccomp", "inotify_init1", EPERM, [&] { return syscall(SYS_inotify_init1, 0); });
  Expect("seccomp", "fanotify_init", EPERM, [&] { return syscall(SYS_fanotify_init, -1, 0); });
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), folder = open("/usr", O_RDONLY | O_CLOEXEC);
  Expect("seccomp", "lease", EPERM, [&] { return fcntl(file, F_SETLEASE, F_RDLCK); });
  Expect("seccomp", "notify", EPERM, [&] { return fcntl(folder, F_NOTIFY, DN_ACCESS); });
  Expect("seccomp", "userfaultfd", EPERM, [&] { return syscall(SYS_userfaultfd, 0); });
  Expect("seccomp", "perf_event_open", EPERM, [&] { return syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0); });
  Expect("seccomp", "keyctl", EPERM,
         [&] { return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0); });
  Expect("seccomp", "pidfd_getfd", EPERM, [&] { return syscall(SYS_pidfd_getfd, -1, 0, 0); });
  Expect("seccomp", "kcmp", EPERM, [&] { return syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0); });
  Expect("seccomp", "setns", EPERM, [&] { return syscall(SYS_setns, -1, 0); });
  Expect("seccomp", "finit_module", EPERM, [&] { return syscall(SYS_finit_module, -1, "", 0); });
  Expect("seccomp", "open_by_handle_at", EPERM, [&] { return syscall(SYS_open_by_handle_at, -1, nullptr, 0); });
  Expect("seccomp", "personality", EPERM, [&] { return syscall(SYS_personality, 0x0040000); });
  Expect("seccomp", "personality-of-two", EPERM, [&] { return syscall(SYS_personality, 0x0440000); });
  Expect("seccomp", "x32", ENOSYS, [&] { return syscall(SYS_unshare | 0x40000000, CLONE_NEWUSER); });
  // What must go on working.
  const long memory = syscall(SYS_memfd_create, "probe", 0);
  Report("seccomp", "memfd-works", memory >= 0, 0);
  FILE* status = fopen("/proc/self/status", "r");
  char line[512];
  bool no_caps = false, no_new_privs = false;
  while (status != nullptr && fgets(line, sizeof(line), status) != nullptr) {
    if (strncmp(line, "CapBnd:", 7) == 0) no_caps = strtoull(line + 7, nullptr, 16) == 0;
    if (strncmp(line, "NoNewPrivs:", 11) == 0) no_new_privs = strstr(line, "1") != nullptr;
  }
  Report("namespaces", "capabilities", no_caps, EPERM);
  Report("namespaces", "new-privileges", no_new_privs, EPERM);
}

int Memory(size_t bytes) {
  const size_t step = size_t{4} << 20;
  for (size_t have = 0; have < bytes; have += step) {
    char* p = static_cast<char*>(mmap(nullptr, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (p == MAP_FAILED) return 3;
    memset(p, 0x5A, step);
  }
  return 0;
}

// One file's descriptor, `copies` times in one message. The error, 0 = none.
int Send(int socket, int copies) {
  int files[250];
  for (int& file : files) file = 0;
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(files))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * copies);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int) * copies);
  memcpy(CMSG_DATA(rights), files, sizeof(int) * copies);
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
}

// Sends descriptors that nobody receives, until it may send no more or has sent so many. The error that ended it.
int Flight(int count) {
  int ends[2];
  for (int sent = 0; sent < count;) {
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0) return errno;
    for (int error = 0; error == 0 && sent < count;) {
      const int copies = count - sent < 250 ? count - sent : 250;
      error = Send(ends[0], copies);
      if (error == 0) sent += copies;
      if (error != 0 && error != EAGAIN) return error;
    }
  }
  return 0;
}

int Fork(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    if (pid < 0) return 3;
    if (pid == 0) {
      pause();
      _exit(0);
    }
  }
  return 0;
}

int Fill(const char* path, size_t bytes) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) return 4;
  static char chunk[1 << 16];
  memset(chunk, 'x', sizeof(chunk));
  for (size_t have = 0; have < bytes; have += sizeof(chunk)) {
    if (write(fd, chunk, sizeof(chunk)) != static_cast<ssize_t>(sizeof(chunk))) return 3;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* what = argv[1];
  const char* value = argc > 2 ? argv[2] : "0";
  if (strcmp(what, "ok") == 0) {
    puts("ok");
    return 0;
  }
  if (strcmp(what, "deny") == 0) {
    Deny(atoi(value));
    return 0;
  }
  if (strcmp(what, "memory") == 0) return Memory(strtoull(value, nullptr, 10));
  if (strcmp(what, "fork") == 0) return Fork(atoi(value));
  if (strcmp(what, "fill") == 0 && argc > 3) return Fill(value, strtoull(argv[3], nullptr, 10));
  if (strcmp(what, "spin") == 0) {
    for (;;) asm volatile("");
  }
  if (strcmp(what, "sleep") == 0) {
    for (;;) pause();
  }
  if (strcmp(what, "flood") == 0) {
    static char chunk[1 << 16];
    memset(chunk, 'y', sizeof(chunk));
    for (size_t left = strtoull(value, nullptr, 10); left > 0;) {
      const ssize_t n = write(1, chunk, left < sizeof(chunk) ? left : sizeof(chunk));
      if (n <= 0) return 3;
      left -= static_cast<size_t>(n);
    }
    return 0;
  }
  if (strcmp(what, "signal") == 0) {
    signal(atoi(value), SIG_DFL);
    raise(atoi(value));
    return 5;
  }
  if (strcmp(what, "descriptors") == 0) {
    while (dup(0) >= 0) {
    }
    return errno;
  }
  if (strcmp(what, "flight") == 0) {
    const int error = Flight(atoi(value));
    if (argc <= 3) return error;
    close(open(argv[3], O_WRONLY | O_CREAT, 0600));
    for (;;) pause();
  }
  if (strcmp(what, "timers") == 0) {
    for (int i = 0; i < 100; ++i) {
      sigevent event = {};
      event.sigev_notify = SIGEV_SIGNAL;
      event.sigev_signo = SIGRTMIN;
      timer_t timer;
      if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return errno;
    }
    return 0;
  }
  if (strcmp(what, "exit") == 0) return atoi(value);
  if (strcmp(what, "orphan") == 0) {
    if (fork() == 0) {
      setsid();
      if (fork() == 0) {
        for (int s = 1; s < 32; ++s) signal(s, SIG_IGN);
        for (;;) pause();
      }
      _exit(0);
    }
    return 0;
  }
  if (strcmp(what, "fds") == 0) {
    for (int fd = 0; fd < 256; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
    }
    puts("");
    return 0;
  }
  return 2;
}
