#!/usr/bin/env python3
"""What must be seen of judge and candidates on an NVIDIA machine: run with the folder of a build (or an installation).

    python3 tests/judge/gpu_check.py BUILD [--out results.json]

Prints one line per case and exits with the number of cases that did not go as they must.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Judge, build_cpp, build_cu  # noqa: E402

HEADER = """
#include <grove/kernel.h>
#include <cuda_runtime.h>
#include <stdint.h>
"""

LAYERNORM_PROBLEM = """
import torch, torch.nn as nn
class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=shape)
    def forward(self, x):
        return self.ln(x)
def get_inputs():
    return [torch.randn(16, 64, 256, 256)]
def get_init_inputs():
    return [(64, 256, 256)]
"""

LAYERNORM = HEADER + """
constexpr int kParts = 256;
__global__ void Partial(const float4* x, double* sums, long n4) {
  double s = 0, q = 0;
  const float4* row = x + (long)blockIdx.y * n4;
  for (long i = blockIdx.x * 256L + threadIdx.x; i < n4; i += kParts * 256L) {
    float4 v = row[i];
    s += (double)v.x + v.y + v.z + v.w;
    q += (double)v.x * v.x + (double)v.y * v.y + (double)v.z * v.z + (double)v.w * v.w;
  }
  __shared__ double a[256], b[256];
  a[threadIdx.x] = s; b[threadIdx.x] = q; __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (threadIdx.x < k) { a[threadIdx.x] += a[threadIdx.x + k]; b[threadIdx.x] += b[threadIdx.x + k]; }
    __syncthreads();
  }
  if (threadIdx.x == 0) { atomicAdd(sums + 2 * blockIdx.y, a[0]); atomicAdd(sums + 2 * blockIdx.y + 1, b[0]); }
}
__global__ void Apply(const float4* x, const float4* w, const float4* b, float4* y, const double* sums, long n4) {
  double n = 4.0 * n4, m = sums[2 * blockIdx.y] / n, v = sums[2 * blockIdx.y + 1] / n - m * m;
  float mean = (float)m, s = (float)rsqrt(v + 1e-5);
  for (long i = blockIdx.x * 256L + threadIdx.x; i < n4; i += kParts * 256L) {
    float4 p = x[blockIdx.y * n4 + i], g = w[i], h = b[i];
    y[blockIdx.y * n4 + i] = make_float4((p.x - mean) * s * g.x + h.x, (p.y - mean) * s * g.y + h.y,
                                         (p.z - mean) * s * g.z + h.z, (p.w - mean) * s * g.w + h.w);
  }
}
GROVE_KERNEL(args) {
  static double* sums = nullptr;
  long rows = args->inputs[0].shape[0], n = 1;
  for (int i = 1; i < args->inputs[0].ndim; ++i) n *= args->inputs[0].shape[i];
  cudaStream_t s = (cudaStream_t)args->stream;
  if (!sums) cudaMalloc(&sums, 2 * rows * sizeof(double));
  cudaMemsetAsync(sums, 0, 2 * rows * sizeof(double), s);
  dim3 grid(kParts, rows);
  Partial<<<grid, 256, 0, s>>>((const float4*)args->inputs[0].data, sums, n / 4);
  Apply<<<grid, 256, 0, s>>>((const float4*)args->inputs[0].data, (const float4*)args->inputs[1].data,
                             (const float4*)args->inputs[2].data, (float4*)args->outputs[0].data, sums, n / 4);
  return 0;
}
"""

ADD_PROBLEM = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, a, b):
        return a + b
N = %d
def get_inputs():
    return [torch.randn(N), torch.randn(N)]
def get_init_inputs():
    return []
"""

ADD = HEADER + """
__global__ void Add(const float* a, const float* b, float* c, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
GROVE_KERNEL(args) {
  long n = args->outputs[0].shape[0];
  Add<<<(n + 255) / 256, 256, 0, (cudaStream_t)args->stream>>>((const float*)args->inputs[0].data,
      (const float*)args->inputs[1].data, (float*)args->outputs[0].data, n);
  return 0;
}
"""
SIDE_STREAM = ADD.replace("GROVE_KERNEL(args) {", "static cudaStream_t side;\nGROVE_KERNEL(args) {\n  if (!side) "
                          "cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);").replace(
                              "(cudaStream_t)args->stream", "side")
UNWRITTEN = ADD.replace("if (i < n)", "if (i < n / 2)")
PAST_END = ADD.replace("if (i < n) c[i] = a[i] + b[i];", "if (i < n) c[i] = a[i] + b[i];\n  if (i == 0) c[n + 3] = 1;")
WRITES_INPUT = ADD.replace("if (i < n) c[i] = a[i] + b[i];", "if (i < n) { c[i] = a[i] + b[i]; ((float*)a)[i] = c[i]; }")
ILLEGAL = ADD.replace("if (i < n) c[i] = a[i] + b[i];", "if (i < n) c[i + (1L << 38)] = a[i] + b[i];")
ENDLESS = ADD.replace("if (i < n) c[i] = a[i] + b[i];", "volatile float* v = c; while (v[0] != 12345.0f) { }")
ALL_MEMORY = ADD.replace("long n = args->outputs[0].shape[0];", """long n = args->outputs[0].shape[0];
  for (size_t size = 1UL << 36; size >= (1UL << 20);) { void* p; if (cudaMalloc(&p, size) != cudaSuccess) { cudaGetLastError(); size /= 2; } }""")

SOFTMAX = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)
def get_inputs():
    return [torch.randn(4096, 16384)]
def get_init_inputs():
    return []
"""
MATMUL = """
import torch, torch.nn as nn
class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)
N = 4096
def get_inputs():
    return [torch.rand(N, N), torch.rand(N, N)]
def get_init_inputs():
    return []
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--out")
    parser.add_argument("--arch", default="sm_90")
    options = parser.parse_args()
    libexec = os.path.join(options.build, "libexec/grove")
    include = os.path.join(options.build, "share/grove/include")
    folder = tempfile.mkdtemp()
    begin = time.time()
    results, failures = [], 0

    def report(case, passed, text):
        nonlocal failures
        failures += not passed
        results.append({"case": case, "passed": bool(passed), "text": text})
        print(f"{time.time() - begin:6.1f} {'ok  ' if passed else 'FAIL'} {case}: {text}", flush=True)

    def judged(case, answer, verdict, also=lambda result: True):
        result = answer.get("result", {})
        try:
            passed = result.get("verdict") == "VERDICT_" + verdict and also(result)
        except Exception as error:
            passed = False
            print(error)
        baselines = [
            f"{b['baseline'][9:].lower()} {b.get('reference_median_seconds', 0) * 1e6:.1f}us/"
            f"{b.get('candidate_median_seconds', 0) * 1e6:.1f}us={b.get('speedup', 0):.4f}"
            f"[{b.get('speedup_low', 0):.4f},{b.get('speedup_high', 0):.4f}] n={b.get('samples')} {b.get('unavailable', '')}"
            for b in result.get("timing", {}).get("baselines", [])]
        timing = result.get("timing", {})
        text = (f"{result.get('verdict', answer)} {result.get('reason', '')[:200]} | {baselines} claim "
                f"{timing.get('claimed_median_seconds', 0) * 1e6:.2f}us slope {timing.get('slope_seconds', 0) * 1e6:.2f}us "
                f"alone {timing.get('alone_seconds', 0) * 1e6:.2f}us "
                f"K={timing.get('slope_k')} {timing.get('method', '')} verified={timing.get('outputs_verified')} | "
                f"{answer['seconds']:.2f}s {[(s['stage'], round(s['seconds'], 2)) for s in result.get('stages', [])]} "
                f"{result.get('fault', '')} {answer['stderr'][-200:]}")
        report(case, passed, text)
        results[-1]["answer"] = {k: v for k, v in answer.items() if k != "progress"}

    t = time.time()
    test = subprocess.run([libexec + "/grove-candidate", "--device", "cuda:0", "--self-test"], capture_output=True, text=True)
    report("self-test of the candidate", test.returncode == 0, f"{test.stdout.strip()} {time.time() - t:.2f}s")

    sources = {"layernorm": LAYERNORM, "add": ADD, "side": SIDE_STREAM, "unwritten": UNWRITTEN, "past": PAST_END,
               "input": WRITES_INPUT, "illegal": ILLEGAL, "endless": ENDLESS, "memory": ALL_MEMORY}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        built = dict(zip(sources, pool.map(lambda item: build_cu(item[1], include, folder, item[0], options.arch),
                                           sources.items())))
    print("built", round(time.time() - begin, 1), flush=True)

    def judge_for(problem, name):
        t = time.time()
        judge = Judge(libexec, "cuda:0", sys.executable)
        started = time.time() - t
        loaded = judge.load(problem, name=name)
        description = loaded.get("description", {})
        report(f"load {name}", loaded["type"] == "loaded" and not description.get("graph_error"),
               f"start {started:.2f}s load {time.time() - t - started:.2f}s "
               f"{loaded.get('message', '')} {description.get('graph_error', '')} {[op['kind'] for op in description.get('graph', [])]}")
        return judge

    # The honest kernel's own events against the judge's clock.
    def agrees(result):
        claimed, judged = result["timing"]["claimed_median_seconds"], result["timing"]["baselines"][0]["candidate_median_seconds"]
        return abs(judged / claimed - 1) < 0.05

    # A call by itself has no other to wait for.
    def alone_is_less(result):
        judged = result["timing"]["baselines"][0]["candidate_median_seconds"]
        return 0.85 < result["timing"]["alone_seconds"] / judged < 1.03

    both = {"baselines": ["BASELINE_EAGER", "BASELINE_COMPILE"]}
    judge = judge_for(ADD_PROBLEM % (1 << 24), "add")
    judged("add, native", judge.evaluate(built["add"]), "CORRECT",
           lambda r: agrees(r) and alone_is_less(r) and 0.8 < r["timing"]["baselines"][0]["speedup"] < 1.25)
    judged("work on a stream that is not joined", judge.evaluate(built["side"]), "CHEATED")
    judged("half of the output unwritten", judge.evaluate(built["unwritten"]), "WRONG", lambda r: "NaN" in r["reason"])
    judged("a write just past the output", judge.evaluate(built["past"]), "WRONG", lambda r: "outside" in r["reason"])
    judged("inputs written", judge.evaluate(built["input"]), "WRONG", lambda r: r["correctness"]["inputs_modified"])
    judged("illegal address", judge.evaluate(built["illegal"]), "CRASHED", lambda r: "llegal" in r["fault"]["cuda_error"])
    judged("endless kernel", judge.evaluate(built["endless"], options={"limits": {"call_wall_seconds": 2}}), "TIMED_OUT",
           lambda r: r["fault"]["limit"] == "call_wall_seconds")
    judged("add again, right after", judge.evaluate(built["add"]), "CORRECT")
    judged("all memory taken", judge.evaluate(built["memory"], options={"skip_timing": True, "limits": {"device_memory_bytes": 16 << 30}}),
           "LIMIT_EXCEEDED")
    judged("add after that", judge.evaluate(built["add"], options={"skip_timing": True}), "CORRECT")
    report("judge ends", judge.close() == 0, "")

    judge = judge_for(ADD_PROBLEM % 1024, "tiny add")
    judged("tiny add, in batches", judge.evaluate(built["add"]), "CORRECT")
    judge.close()

    judge = judge_for(LAYERNORM_PROBLEM, "layernorm")
    judged("LayerNorm, native", judge.evaluate(built["layernorm"]), "CORRECT", lambda r: agrees(r) and r["timing"]["baselines"][0]["speedup"] > 10)
    judged("LayerNorm, native, both baselines", judge.evaluate(built["layernorm"], options=both), "CORRECT",
           lambda r: not r["timing"]["baselines"][1].get("unavailable"))
    judge.close()

    judge = judge_for(SOFTMAX, "softmax")
    judged("softmax, the same program in Python", judge.evaluate(source=SOFTMAX.replace("Model(", "ModelNew(")), "CORRECT",
           lambda r: 0.95 < r["timing"]["baselines"][0]["speedup"] < 1.05)
    judged("softmax, zeros", judge.evaluate(source=SOFTMAX.replace("Model(", "ModelNew(").replace(
        "torch.softmax(x, dim=1)", "torch.zeros_like(x)")), "WRONG")
    judge.close()

    judge = judge_for(MATMUL, "matmul")
    new = MATMUL.replace("Model(", "ModelNew(")
    quick = {"skip_timing": True}
    judged("matmul, split in K", judge.evaluate(source=new.replace(
        "torch.matmul(a, b)", "a[:, :2048] @ b[:2048] + a[:, 2048:] @ b[2048:]"), options=quick), "CORRECT")
    judged("matmul, fp16 inside", judge.evaluate(source=new.replace(
        "torch.matmul(a, b)", "torch.matmul(a.half(), b.half()).float()"), options=quick), "WRONG")
    judged("matmul, TF32 inside", judge.evaluate(source="import torch\ntorch.backends.cuda.matmul.allow_tf32=True\n" + new,
                                                 options=quick), "WRONG")
    judge.close()

    judge = Judge(libexec, "cpu", sys.executable)
    loaded = judge.load(ADD_PROBLEM % (1 << 20), name="add on the CPU")
    cpp = build_cpp("""#include <grove/kernel.h>
GROVE_KERNEL(args) { const float*a=(const float*)args->inputs[0].data,*b=(const float*)args->inputs[1].data; float*c=(float*)args->outputs[0].data;
 long n=args->outputs[0].shape[0];
 #pragma omp parallel for num_threads(args->num_threads)
 for(long i=0;i<n;++i) c[i]=a[i]+b[i];
 return 0; }""", include, folder, "addcpu")
    judged("add on the CPU device", judge.evaluate(cpp), "CORRECT")
    judge.close()
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"failures": failures, "results": results}, file, indent=1)
    print(f"{failures} of {len(results)} cases failed")
    return min(failures, 100)


if __name__ == "__main__":
    sys.exit(main())
