// The system calls that no sandboxed program gets, as a BPF program for bubblewrap.
#pragma once

#include "absl/status/statusor.h"

namespace grove::sandbox {

// A memfd (close-on-exec, at offset 0, owned by the caller) with the compiled filter. Everything is allowed but:
// looking into or steering other processes (ptrace, process_vm_*, kcmp, pidfd_getfd), namespaces and mounts, the
// kernel's own machinery (bpf, io_uring, aio, inotify, keyrings, userfaultfd, perf, modules, kexec, clocks), every
// socket family but AF_UNIX, and foreign architectures. What CUDA needs stays: memfd_create, ioctl on its devices,
// threads. docs/sandbox.md has the list with reasons.
// `loopback`: also sockets of the IP families; only for sandboxes with a network namespace of their own, in which those
// reach nothing but the sandbox itself.
absl::StatusOr<int> CompileSeccompFilter(bool loopback = false);

}  // namespace grove::sandbox
