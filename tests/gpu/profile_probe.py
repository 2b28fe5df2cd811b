#!/usr/bin/env python3
"""Finds out what keeps Nsight Compute from working in a sandbox on this machine: for whoever sees "profile: none".

    python3 profile_probe.py [--ncu PATH] [--arch sm_90] [--source DIR] [--quick]

Compiles a program that does what a candidate does (talks over an inherited descriptor, maps memory, marks one call), and runs it under ncu
with the arguments of worker/pipeline/profile.cc: bare; in bubblewrap; in bubblewrap with the system calls denied that worker/sandbox/seccomp.cc
denies; with the same and sockets of the IP families let through (what a profile's sandbox has). Where the last fails, each denied call is let
through by itself to see which one it is. Prints what it found and, for the last that worked, ncu's table. Needs nvcc, g++, bubblewrap, a GPU.
"""

import argparse
import errno
import fcntl
import glob
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = r"""
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
__global__ void Scale(float* x, long n) { long i = blockIdx.x * (long)blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * 2 + 1; }
int main() {
  printf("descriptor 3 is %s\n", fcntl(3, F_GETFD) >= 0 ? "there" : "closed");
  long n = 16 << 20;
  // As the judge hands memory over: shareable, mapped by hand.
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  cudaFree(0);
  CUmemGenericAllocationHandle made, handle; CUdeviceptr at; int fd = -1;
  int bad = cuMemCreate(&made, n * 4, &prop, 0) || cuMemExportToShareableHandle(&fd, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
         || cuMemImportFromShareableHandle(&handle, (void*)(long)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
         || cuMemAddressReserve(&at, n * 4, 0, 0, 0) || cuMemMap(at, n * 4, 0, handle, 0);
  CUmemAccessDesc access = {}; access.location.type = CU_MEM_LOCATION_TYPE_DEVICE; access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  bad = bad || cuMemSetAccess(at, n * 4, &access, 1);
  printf("shared memory %s\n", bad ? "FAILED" : "mapped");
  if (bad) return 1;
  Scale<<<n / 256, 256>>>((float*)at, n);
  cudaDeviceSynchronize();
  cudaProfilerStart();
  Scale<<<n / 256, 256>>>((float*)at, n);
  cudaDeviceSynchronize();
  cudaProfilerStop();
  printf("done: %s\n", cudaGetErrorString(cudaGetLastError()));
  return 0;
}
"""


def find_ncu(given):
    places = [given] if given else [shutil.which("ncu"), *sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"), reverse=True), "/usr/local/cuda/bin/ncu"]
    return next((p for p in places if p and os.access(p, os.X_OK)), None)


def metrics(source, arch):
    text = (source / "worker/pipeline/ncu_report.cc").read_text()
    single = re.findall(r'constexpr char k\w+\[\] = "([a-z0-9_.]+)";', text)
    stalls = re.search(r"kStalls\[\] = \{(.*?)\};", text, re.S).group(1)
    version = int(re.sub(r"\D", "", arch) or 0)
    skip = "sm__inst_executed_pipe_tensor" if version >= 80 else "sm__pipe_tensor_cycles_active"
    names = [m for m in single if not m.startswith((skip, "gpu__dram"))]
    reasons = re.findall(r'"(\w+)"', stalls) + (["gmma"] if version == 90 else [])
    return ",".join(names + [f"smsp__average_warps_issue_stalled_{r}_per_issue_active.ratio" for r in reasons])


def numbers(folder, names):
    body = "".join(f'#ifdef SYS_{n}\n  printf("{n} %d\\n", (int)SYS_{n});\n#endif\n' for n in names)
    source = pathlib.Path(folder, "numbers.c")
    source.write_text("#include <stdio.h>\n#include <sys/syscall.h>\nint main(void) {\n" + body + "  return 0;\n}\n")
    subprocess.run(["cc", "-o", folder + "/numbers", str(source)], check=True)
    return dict((line.split()[0], int(line.split()[1])) for line in subprocess.run([folder + "/numbers"], capture_output=True, text=True).stdout.splitlines())


def filter_fd(denied, enosys, families):
    """A BPF program as bubblewrap takes it: EPERM for these numbers, ENOSYS for those, and sockets of these families alone."""
    load, jeq, ret = 0x20, 0x15, 0x06
    code = [(load, 0, 0, 0)]
    for number in denied:
        code += [(jeq, 0, 1, number), (ret, 0, 0, 0x00050000 | errno.EPERM)]
    for number in enosys:
        code += [(jeq, 0, 1, number), (ret, 0, 0, 0x00050000 | errno.ENOSYS)]
    if families:
        code += [(jeq, 0, len(families) + 2, 41), (load, 0, 0, 16)]  # 41: socket; its first argument
        for i, family in enumerate(families):
            code.append((jeq, len(families) - i, 0, family))
        code.append((ret, 0, 0, 0x00050000 | errno.EPERM))
    code.append((ret, 0, 0, 0x7FFF0000))
    made = os.memfd_create("filter")
    fd = fcntl.fcntl(made, fcntl.F_DUPFD, 20)
    os.close(made)
    os.write(fd, b"".join(struct.pack("<HBBI", *one) for one in code))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ncu", default="")
    parser.add_argument("--arch", default="sm_90")
    places = (pathlib.Path(__file__).resolve().parents[2], pathlib.Path.cwd())  # the tree that this lies in; where it is called from
    known = next((p for p in places if (p / "worker/sandbox/seccomp.cc").exists()), places[0])
    parser.add_argument("--source", default=str(known), help="this project's sources (all of them: a bundle has not enough)")
    parser.add_argument("--quick", action="store_true", help="stop once the profile's own sandbox has worked")
    args = parser.parse_args()
    source = pathlib.Path(args.source)
    ncu = find_ncu(args.ncu)
    print("ncu:", ncu, "| user", os.geteuid())
    if not ncu:
        sys.exit("Nsight Compute is not here")
    print(subprocess.run([ncu, "--version"], capture_output=True, text=True).stdout.strip().splitlines()[-1])
    params = pathlib.Path("/proc/driver/nvidia/params")
    print(*[line for line in (params.read_text().splitlines() if params.exists() else ["no NVIDIA driver is loaded"]) if "rofiling" in line or "driver" in line], sep="\n")
    folder = tempfile.mkdtemp(prefix="grove-probe-")
    pathlib.Path(folder, "p.cu").write_text(PROGRAM)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    subprocess.run([nvcc, f"-arch={args.arch}", "-o", folder + "/program", folder + "/p.cu", f"-L{os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))}/lib64/stubs", "-lcuda"], check=True)

    text = (source / "worker/sandbox/seccomp.cc").read_text()
    names = re.findall(r'^    "(\w+)",$', text, re.M)
    known = numbers(folder, names + ["clone3"])
    denied = [known[n] for n in names if n in known]
    wrapped = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox", "--new-session",
               "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr"]
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(path):
            wrapped += ["--symlink", os.readlink(path), path]
        elif os.path.exists(path):
            wrapped += ["--ro-bind", path, path]
    for path in ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"):
        wrapped += ["--ro-bind-try", path, path]
    wrapped += ["--tmpfs", "/dev"]
    for node in ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", *glob.glob("/dev/nvidia[0-9]*"), "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]:
        wrapped += ["--dev-bind-try", node, node]
    wrapped += ["--proc", "/proc", "--size", str(1 << 30), "--perms", "1777", "--tmpfs", "/tmp", "--symlink", "/tmp", "/var/tmp",
                "--ro-bind-try", "/opt/nvidia/nsight-compute", "/opt/nvidia/nsight-compute", "--ro-bind", folder + "/program", folder + "/program",
                "--size", str(1 << 30), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    users = {"": ["--unshare-user", "--uid", "1000", "--gid", "1000"], " without a user namespace": []}

    def command(log, chosen=None):
        return [ncu, "--config-file", "off", "--log-file", log, "--csv", "--page", "raw", "--print-units", "base", "--profile-from-start", "off",
                "--target-processes", "application-only", "--launch-count", "32", "--replay-mode", "kernel", "--clock-control", "none", "--cache-control", "all",
                *(chosen or ["--metrics", metrics(source, args.arch)]), folder + "/program"]

    environment = ["HOME=/tmp", "TMPDIR=/tmp", "LC_ALL=C.UTF-8", "PATH=/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin", "CUDA_MODULE_LOADING=EAGER",
                   "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT=1"]
    if os.environ.get("LD_LIBRARY_PATH"):
        environment.append("LD_LIBRARY_PATH=" + os.environ["LD_LIBRARY_PATH"])

    def attempt(name, prefix, fd, chosen=None, show=False, trace=None):
        """In a sandbox the table is printed by a shell that runs behind it, because its /tmp is gone afterwards."""
        log = "/tmp/table.csv" if prefix else folder + "/table.csv"
        run = " ".join(f"'{a}'" for a in command(log, chosen))
        shell = ["/bin/sh", "-c", f"{trace or ''} {run}; echo exit $?; echo TABLE; cat {log}"]
        keep = [3]
        given = list(prefix)
        if fd is not None:
            given += ["--seccomp", str(fd)]
            keep.append(fd)
        read, write = os.pipe()
        held = fcntl.fcntl(read, fcntl.F_DUPFD_CLOEXEC, 20)
        os.dup2(held, 3, inheritable=True)
        begin = time.monotonic()
        try:
            done = subprocess.run([*given, *(["--"] if given else []), "/usr/bin/env", "-i", *environment, *shell], capture_output=True, text=True, timeout=90, pass_fds=keep)
            out = done.stdout + done.stderr
        except subprocess.TimeoutExpired as error:
            out = "TIMED OUT " + str(error.stdout)[-500:]
        for one in {read, write, held, 3}:
            os.close(one)
        words, _, table = out.partition("TABLE\n")
        good = '"ID"' in table and '"Scale' in table
        print(f"{'ok  ' if good else 'FAIL'} {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        if not good or show:
            print("      " + (words + table)[-3500 if not good else -6000:].strip().replace("\n", "\n      "), flush=True)
        return good

    every = (1, 2, 10)
    attempt("bare", [], None, show=True)
    working = None
    for label, user in users.items():
        box = wrapped[:1] + user + wrapped[1:]
        if not attempt(f"bubblewrap{label}, no filter", box, None):
            for more in (["--ro-bind", "/sys", "/sys"], ["--ro-bind", "/etc", "/etc"], ["--ro-bind", "/opt", "/opt"], ["--share-net"]):
                attempt(f"  the same with {' '.join(more)}", [a for a in box if a != "--unshare-net"] if more == ["--share-net"] else box[:-6] + more + box[-6:], None)
        if attempt(f"bubblewrap{label}, the filter of a profile", box, filter_fd(denied, [known["clone3"]], every), show=working is None):
            working = working or box
        if args.quick and working:
            break
        attempt(f"bubblewrap{label}, the filter of a candidate (local sockets alone)", box, filter_fd(denied, [known["clone3"]], (1,)))
    if working is None:
        box = wrapped[:1] + users[""] + wrapped[1:]
        print("which call it is that the profiler misses:")
        attempt("  all calls denied, any socket", box, filter_fd(denied, [known["clone3"]], ()))
        attempt("  none denied but sockets of other families", box, filter_fd([], [], every))
        attempt("  netlink sockets besides", box, filter_fd(denied, [known["clone3"]], (*every, 16)))
        attempt("  clone3 allowed", box, filter_fd(denied, [], every))
        for name, number in known.items():
            if name == "clone3":
                continue
            if attempt(f"  {name} allowed", box, filter_fd([n for n in denied if n != number], [known["clone3"]], every)):
                print(f"  => {name}")
        if shutil.which("strace"):
            attempt("  traced, unfiltered", box, None, show=True, trace="strace -f -e trace=socket,connect,ptrace,process_vm_readv,perf_event_open,clone3 -o /dev/stderr")
    sections = [word for name in re.findall(r'"(\w+)"', re.search(r"NcuSections\(\) \{(.*?)\}", (source / "worker/pipeline/ncu_report.cc").read_text(), re.S).group(1)) for word in ("--section", name)]
    attempt("by sections, in place of metrics by name", (working or []), None, chosen=sections)
    attempt("with a metric that no chip has", (working or []), None, chosen=["--metrics", "gpu__time_duration.sum,sm__no_such_metric.sum"], show=True)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
