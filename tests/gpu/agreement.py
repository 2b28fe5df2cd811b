#!/usr/bin/env python3
"""The judge's seconds against Nsight Compute's, for kernels of 5 us to 3 ms.

    python3 tests/gpu/agreement.py BUILD [--ncu PATH] [--quick | --below-50]

BUILD is a build folder, or a bundle whose judge `grove-worker setup` has built (in GROVE_RUNTIME, or where it is by default).

Each kernel is evaluated as a native candidate; its median is what the judge's clock gave of calls in a row, `single` what the
candidate's process claims of a call by itself (alone_seconds, `-` where it is not known). Then the same object is called on
as many buffers as a timed run of the judge had, each used once, in four ways:

  row      in a row, by two events of the program that calls it, without Nsight Compute
  ncu row  the same row as one CUDA graph, which `ncu --graph-profiling graph` times as a whole (gpu__time_duration)
  alone    each kernel by itself (`ncu` lets none overlap the next), with the caches left as they are; the median of the
           second half, for the first ones find other caches
  flushed  the same after ncu's own flush of the caches

Always with `--clock-control none`. docs/timing.md says why a kernel that runs alone is faster than in a row. What is "off" is the
judge's time from the rows, and `single` (where it is not known, the judge's time) from the kernel alone. Exits with the number
of kernels that are outside 2 % (from 50 us) or 5 % (from 5 us) of what Nsight Compute says of them alone.
"""

import argparse
import csv
import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "judge"))
from harness import Judge, build_cu  # noqa: E402

PROBLEM = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return x * {factor!r} + {summand!r}
def get_inputs():
    return [torch.rand({n})]
def get_init_inputs():
    return []
"""

# Every element is read and written once, with `steps` dependent multiplications and additions between.
KERNEL = """
#include <grove/kernel.h>
#include <cuda_runtime.h>
__global__ void GroveAgree(const float4* x, float4* y, long n4) {
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n4; i += (long)gridDim.x * blockDim.x) {
    float4 v = x[i];
    for (int k = 0; k < STEPS; ++k) {
      v.x = v.x * 0.5f + 0.25f; v.y = v.y * 0.5f + 0.25f; v.z = v.z * 0.5f + 0.25f; v.w = v.w * 0.5f + 0.25f;
    }
    v.x += v.x; v.y += v.y; v.z += v.z; v.w += v.w;
    y[i] = v;
  }
}
GROVE_KERNEL(args) {
  long n = args->outputs[0].shape[0];
  long blocks = (n / 4 + 255) / 256;
  GroveAgree<<<blocks < 4096 ? blocks : 4096, 256, 0, (cudaStream_t)args->stream>>>(
      (const float4*)args->inputs[0].data, (float4*)args->outputs[0].data, n / 4);
  return 0;
}
"""

# Calls the object's kernel on `calls` pairs of buffers, each used once; how: one by one ("alone"), in a row by events
# ("row": prints nanoseconds a call, the median of five), or as one graph ("graph").
DRIVER = """
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <grove/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
static int (*kernel)(const grove_args*);
static char *x, *y;
static size_t step;
static int Call(int64_t n, int i, cudaStream_t stream) {
  DLTensor in = {}, out = {};
  int64_t shape[1] = {n}, stride[1] = {1};
  in.ndim = out.ndim = 1; in.shape = out.shape = shape; in.strides = out.strides = stride;
  in.device = out.device = {2, 0}; in.dtype = out.dtype = {2, 32, 1};
  in.data = x + i * step; out.data = y + i * step;
  grove_args args = {};
  args.abi = GROVE_KERNEL_ABI; args.size = sizeof args; args.num_inputs = args.num_outputs = 1;
  args.inputs = &in; args.outputs = &out; args.stream = stream;
  return kernel(&args);
}
int main(int argc, char** argv) {
  const int64_t n = atoll(argv[2]);
  const int calls = atoi(argv[3]);
  const char* how = argv[4];
  kernel = (int (*)(const grove_args*))dlsym(dlopen(argv[1], RTLD_NOW), "grove_kernel");
  if (!kernel) { puts(dlerror()); return 1; }
  step = n * 4 + 512;
  if (cudaMalloc(&x, step * calls) != cudaSuccess || cudaMalloc(&y, step * calls) != cudaSuccess) return 2;
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEvent_t begin, end;
  cudaEventCreate(&begin); cudaEventCreate(&end);
  cudaGraphExec_t graph = nullptr;
  if (!strcmp(how, "graph")) {
    cudaGraph_t captured;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    for (int i = 0; i < calls; ++i) if (Call(n, i, stream)) return 3;
    if (cudaStreamEndCapture(stream, &captured) != cudaSuccess) return 4;
    if (cudaGraphInstantiate(&graph, captured, 0) != cudaSuccess) return 5;
  }
  float times[5];
  for (int round = 0; round < 5; ++round) {
    cudaMemset(x, 0, step * calls); cudaMemset(y, 1, step * calls);
    cudaDeviceSynchronize();
    cudaEventRecord(begin, stream);
    if (graph != nullptr) {
      if (cudaGraphLaunch(graph, stream) != cudaSuccess) return 6;
    } else {
      for (int i = 0; i < calls; ++i) if (Call(n, i, stream)) return 3;
    }
    cudaEventRecord(end, stream);
    cudaStreamSynchronize(stream);
    cudaEventElapsedTime(times + round, begin, end);
    if (!strcmp(how, "alone")) break;
  }
  std::sort(times, times + 5);
  if (strcmp(how, "alone")) printf("nanoseconds %.1f\\n", times[2] * 1e6 / calls);
  return cudaDeviceSynchronize() != cudaSuccess;
}
"""

CASES = [  # (floats, steps), the most telling first
    (1 << 18, 1000), (1 << 24, 1), (1 << 18, 4000), (1 << 22, 1), (1 << 18, 16000), (1 << 26, 1), (1 << 18, 64000),
    (1 << 28, 1), (1 << 21, 1), (1 << 23, 1), (1 << 25, 1), (3 << 28, 1), (1 << 18, 64), (1 << 20, 1),
]

BELOW_50 = [(1 << 18, 1000), (1 << 18, 400), (1 << 22, 1), (1 << 21, 1), (1 << 18, 4000), (1 << 18, 2000), (1 << 24, 1), (1 << 23, 1)]


def ncu_seconds(ncu, how, driver, program, n, calls, graph=False):
    """Of one call, by gpu__time_duration; 0 where ncu gave nothing. how: "none" (the second half of the calls), "all" (cache
    control)."""
    command = [ncu, "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--csv", "--cache-control", how]
    command += ["--graph-profiling", "graph"] if graph else ["-k", "GroveAgree"]
    done = subprocess.run(command + [driver, program, str(n), str(calls), "graph" if graph else "alone"],
                          capture_output=True, text=True, timeout=120)
    rows = [line for line in done.stdout.splitlines() if line.startswith('"')]
    scale = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1, "second": 1}
    values = [float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]] for row in csv.DictReader(rows)]
    if graph:  # the rows of a graph are long; fills of memory are kernels, too
        values = [value / calls for value in sorted(values)[-5:]]
    elif how == "none":
        values = values[len(values) // 2:]
    values.sort()
    if not values:
        print("ncu", how, "measured nothing:", done.stdout[-300:], done.stderr[-300:])
        return 0.0
    return values[len(values) // 2]


def row_seconds(driver, program, n, calls):
    """Of one call in a row of `calls`, by the driver's own events."""
    done = subprocess.run([driver, program, str(n), str(calls), "row"], capture_output=True, text=True, timeout=120)
    return float(done.stdout.split()[1]) * 1e-9 if done.returncode == 0 else 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--ncu")
    parser.add_argument("--arch", default="sm_90")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="eight of the kernels")
    which.add_argument("--below-50", action="store_true", help="those of less than 50 us")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    ncu = options.ncu or shutil.which("ncu") or next(iter(sorted(
        glob.glob("/usr/local/cuda*/bin/ncu") + glob.glob("/opt/nvidia/nsight-compute/*/ncu"), reverse=True)), None)
    if ncu is None:
        sys.exit("no ncu; name it with --ncu")
    libexec, include = os.path.join(options.build, "libexec/grove"), os.path.join(options.build, "share/grove/include")
    if not os.path.exists(os.path.join(libexec, "grove-judge")):
        runtime = os.environ.get("GROVE_RUNTIME") or os.path.expanduser("~/.local/share/grove/runtime")
        libexec = os.path.join(runtime, "libexec/grove")
        if not os.path.exists(os.path.join(libexec, "grove-judge")):
            sys.exit(f"no grove-judge in {options.build} nor {libexec}: run grove-worker setup")
        print("judge:", os.path.join(libexec, "grove-judge"))
    folder = tempfile.mkdtemp()
    driver = os.path.join(folder, "driver")
    with open(driver + ".cu", "w", encoding="utf-8") as file:
        file.write(DRIVER)
    subprocess.run(["nvcc", "-O2", f"-arch={options.arch}", f"-I{include}", driver + ".cu", "-o", driver, "-ldl"], check=True)
    print(f"{'floats':>12} {'steps':>6} {'calls':>5} | {'judge us':>10} | {'single':>9} | {'claimed':>9} | {'row':>9} {'off':>7} | "
          f"{'ncu row':>9} {'off':>7} | {'alone':>9} {'off':>7} | {'flushed':>9} {'off':>7} | {'slope':>9} {'eager':>9}")
    bad = 0
    cases = BELOW_50 if options.below_50 else CASES[:8] if options.quick else CASES
    for number, (n, steps) in enumerate(cases):
        program = build_cu(KERNEL.replace("STEPS", str(steps)), include, folder, f"k{number}", options.arch)
        # v -> v / 2 + 1 / 4, `steps` times, then doubled.
        power = 0.5 ** min(steps, 1000)
        problem = PROBLEM.format(n=n, factor=2 * power, summand=1 - power)
        judge = Judge(libexec, device="cuda:0", python=options.python)
        loaded = judge.load(problem)
        if loaded["type"] != "loaded":
            sys.exit(f"the problem does not load: {loaded}")
        result = judge.evaluate(program, options={"min_time_seconds": 0.2, "max_time_seconds": 1.0})["result"]
        judge.close()
        if result["verdict"] != "VERDICT_CORRECT":
            print(f"{n:12} {steps:6}: {result['verdict']}: {result['reason']} {result.get('fault')}")
            bad += 1
            continue
        timing = result["timing"]
        seconds = timing["baselines"][0]["candidate_median_seconds"]
        single = timing.get("alone_seconds", 0)
        calls = timing["calls_per_sample"]
        # Enough to fill the caches some times over with what is written; each reads and writes 4 bytes an element.
        alone_calls = min(calls, max(24, int(400e6 / (8 * n))))
        row = row_seconds(driver, program, n, calls)
        ncu_row = ncu_seconds(ncu, "none", driver, program, n, calls, graph=True)
        alone = ncu_seconds(ncu, "none", driver, program, n, alone_calls)
        flushed = ncu_seconds(ncu, "all", driver, program, n, min(calls, 12))
        off = [mine / other - 1 if other > 0 else float("nan")
               for mine, other in ((seconds, row), (seconds, ncu_row), (single or seconds, alone),
                                   (single or seconds, flushed))]
        allowed = 0.02 if alone >= 50e-6 else 0.05 if alone >= 5e-6 else float("inf")
        verdict = "" if abs(off[2]) <= allowed and abs(off[0]) <= 0.05 else "  OUTSIDE"
        bad += verdict != ""
        columns = " | ".join(f"{other * 1e6:9.3f} {part * 100:6.2f}%"
                             for other, part in zip((row, ncu_row, alone, flushed), off))
        print(f"{n:12} {steps:6} {calls:5} | {seconds * 1e6:10.3f} | {f'{single * 1e6:.3f}' if single else '-':>9} | "
              f"{timing['claimed_median_seconds'] * 1e6:9.3f} | {columns} | "
              f"{timing['slope_seconds'] * 1e6:9.3f} {timing['baselines'][0]['reference_median_seconds'] * 1e6:9.3f}{verdict}",
              flush=True)
    print(f"{bad} outside")
    return bad


if __name__ == "__main__":
    sys.exit(main())
