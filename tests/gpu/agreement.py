#!/usr/bin/env python3
"""The judge's seconds against Nsight Compute's, for kernels of 5 us to 3 ms.

    python3 tests/gpu/agreement.py BUILD [--ncu PATH] [--quick]

Each kernel is evaluated as a native candidate; its median is what the judge's clock gave. Then the same object is called in
a row, on buffers that were never used before, under `ncu --clock-control none`, each kernel alone (ncu lets none overlap the
next), with the caches left as they are and after ncu's own flush. docs/timing.md says why a kernel that runs alone is
faster when it moves memory. Exits with the number of kernels that are outside 2 % (from 50 us) or 5 % (from 5 us) of the
former.
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

# Calls the object's kernel on a new pair of buffers each time.
DRIVER = """
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <grove/kernel.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int64_t n = atoll(argv[2]);
  int calls = atoi(argv[3]);
  int (*kernel)(const grove_args*) = (int (*)(const grove_args*))dlsym(dlopen(argv[1], RTLD_NOW), "grove_kernel");
  if (!kernel) { puts(dlerror()); return 1; }
  size_t step = n * 4 + 512;
  char *x, *y;
  if (cudaMalloc(&x, step * calls) != cudaSuccess || cudaMalloc(&y, step * calls) != cudaSuccess) return 2;
  cudaMemset(x, 0, step * calls); cudaMemset(y, 1, step * calls);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaDeviceSynchronize();
  for (int i = 0; i < calls; ++i) {
    DLTensor in = {}, out = {};
    int64_t shape[1] = {n}, stride[1] = {1};
    in.ndim = out.ndim = 1; in.shape = out.shape = shape; in.strides = out.strides = stride;
    in.device = out.device = {2, 0}; in.dtype = out.dtype = {2, 32, 1};
    in.data = x + i * step; out.data = y + i * step;
    grove_args args = {};
    args.abi = GROVE_KERNEL_ABI; args.size = sizeof args; args.num_inputs = args.num_outputs = 1;
    args.inputs = &in; args.outputs = &out; args.stream = stream;
    if (kernel(&args)) return 3;
  }
  cudaStreamSynchronize(stream);
  return cudaDeviceSynchronize() != cudaSuccess;
}
"""

CASES = [  # (floats, steps)
    (1 << 18, 64), (1 << 18, 1000), (1 << 18, 4000), (1 << 18, 16000), (1 << 18, 64000),
    (1 << 20, 1), (1 << 21, 1), (1 << 22, 1), (1 << 23, 1), (1 << 24, 1), (1 << 26, 1), (1 << 28, 1), (3 << 28, 1),
]


def ncu_seconds(ncu, how, driver, program, n, calls):
    """Of one call, by gpu__time_duration; 0 where ncu gave nothing. how: "none", "all" (cache control)."""
    command = [ncu, "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--csv", "--cache-control", how,
               "-k", "GroveAgree"]
    done = subprocess.run(command + [driver, program, str(n), str(calls)], capture_output=True, text=True, timeout=120)
    rows = [line for line in done.stdout.splitlines() if line.startswith('"')]
    scale = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1, "second": 1}
    values = sorted(float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]] for row in csv.DictReader(rows))
    if not values:
        print("ncu", how, "measured nothing:", done.stdout[-300:], done.stderr[-300:])
        return 0.0
    return values[len(values) // 2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--ncu")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--quick", action="store_true", help="half of the kernels")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    ncu = options.ncu or shutil.which("ncu") or next(iter(sorted(
        glob.glob("/usr/local/cuda*/bin/ncu") + glob.glob("/opt/nvidia/nsight-compute/*/ncu"), reverse=True)), None)
    if ncu is None:
        sys.exit("no ncu; name it with --ncu")
    libexec, include = os.path.join(options.build, "libexec/grove"), os.path.join(options.build, "share/grove/include")
    folder = tempfile.mkdtemp()
    driver = os.path.join(folder, "driver")
    with open(driver + ".cu", "w", encoding="utf-8") as file:
        file.write(DRIVER)
    subprocess.run(["nvcc", "-O2", f"-arch={options.arch}", f"-I{include}", driver + ".cu", "-o", driver, "-ldl"], check=True)
    print(f"{'floats':>12} {'steps':>6} {'calls':>5} | {'judge us':>10} | {'alone':>10} {'off':>7} | "
          f"{'flushed':>10} {'off':>7} | {'slope us':>10} {'eager us':>9}")
    bad = 0
    for number, (n, steps) in enumerate(CASES[::2] if options.quick else CASES):
        program = build_cu(KERNEL.replace("STEPS", str(steps)), include, folder, f"k{number}", options.arch)
        # v -> v / 2 + 1 / 4, `steps` times, then doubled.
        power = 0.5 ** min(steps, 1000)
        problem = PROBLEM.format(n=n, factor=2 * power, summand=1 - power)
        judge = Judge(libexec, device="cuda:0", python=options.python)
        loaded = judge.load(problem)
        if loaded["type"] != "loaded":
            sys.exit(f"the problem does not load: {loaded}")
        result = judge.evaluate(program, options={"min_time_seconds": 0.3, "max_time_seconds": 2.0})["result"]
        judge.close()
        if result["verdict"] != "VERDICT_CORRECT":
            print(f"{n:12} {steps:6}: {result['verdict']}: {result['reason']} {result.get('fault')}")
            bad += 1
            continue
        timing = result["timing"]
        seconds = timing["baselines"][0]["candidate_median_seconds"]
        calls = max(8, min(60, (8 << 30) // (n * 8 + 1024)))
        alone = ncu_seconds(ncu, "none", driver, program, n, min(calls, 24))
        flushed = ncu_seconds(ncu, "all", driver, program, n, min(calls, 12))
        off = [seconds / other - 1 if other > 0 else float("nan") for other in (alone, flushed)]
        allowed = 0.02 if alone >= 50e-6 else 0.05 if alone >= 5e-6 else float("inf")
        verdict = "" if abs(off[0]) <= allowed else "  OUTSIDE"
        bad += verdict != ""
        columns = " | ".join(f"{other * 1e6:10.3f} {part * 100:6.2f}%" for other, part in zip((alone, flushed), off))
        print(f"{n:12} {steps:6} {timing['calls_per_sample']:5} | {seconds * 1e6:10.3f} | {columns} | "
              f"{timing['slope_seconds'] * 1e6:10.3f} {timing['baselines'][0]['reference_median_seconds'] * 1e6:9.3f}{verdict}",
              flush=True)
    print(f"{bad} outside")
    return bad


if __name__ == "__main__":
    sys.exit(main())
