#include "worker/sandbox/seccomp.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/fd.h"
#include "common/base/files.h"

namespace grove::sandbox {
namespace {

// By name, so that one that this libseccomp or this architecture lacks is skipped and not a build error.
constexpr const char* kDenied[] = {
    // Other processes' memory, descriptors and registers.
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    "process_madvise",
    "process_mrelease",
    // Namespaces and mounts: the sandbox is built before the program runs; nothing in it builds another.
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "chroot",
    "setns",
    "unshare",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "swapon",
    "swapoff",
    "quotactl",
    "quotactl_fd",
    "open_by_handle_at",
    "name_to_handle_at",
    // Kernel machinery with a long record of escapes, or objects that no namespace separates.
    "bpf",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    // One of these is thousands of copies between files and memory, and a freezer waits until a call has returned; the
    // slots are the whole machine's.
    "io_setup",
    "io_destroy",
    "io_submit",
    "io_cancel",
    "io_getevents",
    "io_pgetevents",
    // Counted per user, with all of the host's.
    "inotify_init",
    "inotify_init1",
    "fanotify_init",
    "userfaultfd",
    "perf_event_open",
    "add_key",
    "request_key",
    "keyctl",
    "lookup_dcookie",
    "syslog",
    "acct",
    "nfsservctl",
    "vhangup",
    "uselib",
    "ustat",
    "sysfs",
    "_sysctl",
    "vm86",
    "vm86old",
    "modify_ldt",
    // The machine itself.
    "init_module",
    "finit_module",
    "delete_module",
    "create_module",
    "get_kernel_syms",
    "query_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "stime",
    "ioperm",
    "iopl",
    "sethostname",
    "setdomainname",
};

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ALLOW)) {}
  ~Filter() {
    if (context_ != nullptr) seccomp_release(context_);
  }
  bool ok() const { return context_ != nullptr; }

  void Deny(const char* name, int error) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || number < 0) return;
    Check(seccomp_rule_add(context_, SCMP_ACT_ERRNO(error), number, 0), name);
  }
  // Where all of the conditions hold.
  template <typename... Conditions>
  void DenyIf(const char* name, int error, Conditions... conditions) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || number < 0) return;
    const scmp_arg_cmp all[] = {conditions...};
    Check(seccomp_rule_add_array(context_, SCMP_ACT_ERRNO(error), number, sizeof...(conditions), all), name);
  }
  scmp_filter_ctx context() { return context_; }
  const std::string& error() const { return error_; }

 private:
  void Check(int result, const char* name) {
    if (result != 0 && error_.empty()) error_ = absl::StrCat(name, ": error ", -result);
  }
  scmp_filter_ctx context_;
  std::string error_;
};

}  // namespace

absl::StatusOr<int> CompileSeccompFilter(bool loopback) {
  Filter filter;
  if (!filter.ok()) return absl::InternalError("libseccomp could not start a filter");
  // Calls of the 32-bit tables and of x32, as on a kernel that has none.
  if (seccomp_attr_set(filter.context(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) != 0) {
    return absl::InternalError("libseccomp took no action for calls of another architecture");
  }
  for (const char* name : kDenied) filter.Deny(name, EPERM);
  // clone3 takes its flags in memory, which a filter cannot read. glibc falls back to clone on ENOSYS.
  filter.Deny("clone3", ENOSYS);
  for (uint64_t flag : {uint64_t{CLONE_NEWUSER}, uint64_t{CLONE_NEWNS}, uint64_t{CLONE_NEWPID}, uint64_t{CLONE_NEWNET},
                        uint64_t{CLONE_NEWIPC}, uint64_t{CLONE_NEWUTS}, uint64_t{CLONE_NEWCGROUP}}) {
    filter.DenyIf("clone", EPERM, SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  }
  // Families other than AF_UNIX reach kernel code that no network namespace separates (vsock, alg, netlink), or a
  // network that is not there.
  if (loopback) {
    // One rule can compare an argument only once: all families but three, by ranges.
    static_assert(AF_UNIX == 1 && AF_INET == 2 && AF_INET6 == 10);
    filter.DenyIf("socket", EPERM, SCMP_A0_32(SCMP_CMP_EQ, AF_UNSPEC));
    for (int family = AF_INET + 1; family < AF_INET6; ++family) {
      filter.DenyIf("socket", EPERM, SCMP_A0_32(SCMP_CMP_EQ, static_cast<uint32_t>(family)));
    }
    filter.DenyIf("socket", EPERM, SCMP_A0_32(SCMP_CMP_GT, AF_INET6));
    // Of the two families TCP and UDP: whoever asks for another protocol may have the kernel load a module.
    for (const uint32_t family : {uint32_t{AF_INET}, uint32_t{AF_INET6}}) {
      for (const uint32_t type : {uint32_t{SOCK_RAW}, uint32_t{SOCK_RDM}, uint32_t{SOCK_SEQPACKET}, uint32_t{SOCK_DCCP},
                                  uint32_t{SOCK_PACKET}}) {
        filter.DenyIf("socket", EPERM, SCMP_A0_32(SCMP_CMP_EQ, family), SCMP_A1_32(SCMP_CMP_MASKED_EQ, 0xF, type));
      }
      for (uint32_t protocol = 1; protocol < IPPROTO_UDP; ++protocol) {
        if (protocol == IPPROTO_TCP) continue;
        filter.DenyIf("socket", EPERM, SCMP_A0_32(SCMP_CMP_EQ, family), SCMP_A2_32(SCMP_CMP_EQ, protocol));
      }
      filter.DenyIf("socket", EPERM, SCMP_A0_32(SCMP_CMP_EQ, family), SCMP_A2_32(SCMP_CMP_GT, IPPROTO_UDP));
    }
  } else {
    filter.DenyIf("socket", EPERM, SCMP_A0_32(SCMP_CMP_NE, AF_UNIX));
  }
  // A lease on a file of the host keeps whoever opens it waiting, and he who holds it or asks for notice hears of that.
  for (const uint32_t command : {uint32_t{F_SETLEASE}, uint32_t{F_NOTIFY}}) {
    filter.DenyIf("fcntl", EPERM, SCMP_A1_32(SCMP_CMP_EQ, command));
  }
  // Typing into the terminal of whoever started us.
  filter.DenyIf("ioctl", EPERM, SCMP_A1_32(SCMP_CMP_EQ, TIOCSTI));
  filter.DenyIf("ioctl", EPERM, SCMP_A1_32(SCMP_CMP_EQ, 0x541C /* TIOCLINUX */));
  // Address randomisation off, or old memory layouts, alone or with other bits. 0 and the query (all bits) stay. One
  // rule can compare an argument only once, so the query is told from the rest by its highest bit: with it, no other
  // may be missing; without it, none of these may be there.
  constexpr uint32_t kHighest = uint32_t{1} << 31;
  for (uint32_t bit : {uint32_t{ADDR_NO_RANDOMIZE}, uint32_t{READ_IMPLIES_EXEC}, uint32_t{ADDR_COMPAT_LAYOUT},
                       uint32_t{MMAP_PAGE_ZERO}}) {
    filter.DenyIf("personality", EPERM, SCMP_A0_32(SCMP_CMP_MASKED_EQ, kHighest | bit, bit));
  }
  for (int shift = 0; shift < 31; ++shift) {
    filter.DenyIf("personality", EPERM, SCMP_A0_32(SCMP_CMP_MASKED_EQ, kHighest | (uint32_t{1} << shift), kHighest));
  }
  if (!filter.error().empty()) return absl::InternalError(absl::StrCat("libseccomp refused a rule: ", filter.error()));
  Fd fd(memfd_create("grove-seccomp", MFD_CLOEXEC));
  if (fd.get() < 0) return ErrnoStatus(errno, "cannot make a memfd for the system call filter");
  const int result = seccomp_export_bpf(filter.context(), fd.get());
  if (result != 0 || lseek(fd.get(), 0, SEEK_SET) != 0) {
    return absl::InternalError(absl::StrCat("libseccomp could not export the filter: error ", -result));
  }
  return fd.release();
}

}  // namespace grove::sandbox
