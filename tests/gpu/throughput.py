#!/usr/bin/env python3
"""How many evaluations one GPU does in an hour, and how long one takes from submit to verdict.

    python3 throughput.py --bundle DIR --out DIR [--candidates N] [--clients C] [--kernelbench K] [--device cuda:0|cpu]

Makes N distinct LayerNorm kernels (block size, slice, loads, unrolling), all correct, and has C clients give them to a coordinator one after the
other, each waiting for its verdict: the whole way of `grove eval`, nothing cached. Then K of the same kernels as load_inline candidates go through
the stages of KernelBench's evaluator (kernelbench_style.py), alone on the machine. On the CPU device the kernels are variants of GELU in C++
and there is nothing to compare with: that is for trying this script. Prints a summary and writes OUT/throughput.json.
Exit code 1 where a kernel was not CORRECT, or, on a GPU, where a figure is short of what the service promises on an H200:
--least-per-hour evaluations, --least-share of the time in which the GPU is checking or timing, --least-times as cheap as KernelBench's
stages (0 = do not ask).
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent


def layernorm_variants(source):
    """(name, source) of distinct kernels, from the hand-written one."""
    loads = {"stream": ("__ldcs(x + at)", "p[i * kThreads]"), "plain": ("x[at]", "p[i * kThreads]"), "ldg": ("__ldg(x + at)", "__ldg(p + i * kThreads)"),
             "late": ("__ldcs(x + at)", "__ldcs(p + i * kThreads)")}
    slices = [4096, 8192, 16384, 2048, 32768]
    for threads, columns, (load, (apply, read)), unroll in itertools.product([256, 512, 128, 1024], slices, loads.items(), ["", " 2"]):
        packs = columns // 4 // threads
        if not 1 <= packs <= 16 or columns % (4 * threads):
            continue
        text = source.replace("kSliceColumns = 8192", f"kSliceColumns = {columns}").replace("kThreads = 256", f"kThreads = {threads}")
        text = text.replace("__ldcs(x + at)", apply).replace("v[i] = p[i * kThreads]", f"v[i] = {read}")
        head, tail = text.rsplit("#pragma unroll", 1)
        yield f"t{threads}-c{columns}-{load}-u{unroll.strip() or 'all'}", f"{head}#pragma unroll{unroll}{tail}"


def gelu_variants(source):
    for i in range(1000):
        yield f"gelu{i}", f"{source}\nstatic const int grove_variant __attribute__((unused)) = {i};\n"


def as_load_inline(source, name):
    """The same kernels behind PyTorch's load_inline, in KernelBench's format."""
    body = source.replace("#include <grove/kernel.h>", "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>")
    body = body[: body.index("GROVE_KERNEL(args)")]
    host = """
torch::Tensor layernorm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  auto y = torch::empty_like(x);
  auto stream = at::cuda::getCurrentCUDAStream();
  Statistics<<<kRows * kSlices, kThreads, 0, stream>>>((const float4*)x.data_ptr<float>());
  Normalise<<<kRows * kSlices, kThreads, 0, stream>>>((const float4*)x.data_ptr<float>(), (const float4*)weight.data_ptr<float>(),
                                                     (const float4*)bias.data_ptr<float>(), (float4*)y.data_ptr<float>());
  return y;
}
"""
    return f'''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""{body}{host}"""
module = load_inline(name="{name}", cpp_sources="torch::Tensor layernorm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
                     cuda_sources=CUDA, functions=["layernorm"])


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x):
        return module.layernorm(x.contiguous(), self.ln.weight, self.ln.bias)
'''


class Service:
    """A coordinator and one worker, with their metrics."""

    def __init__(self, args, out):
        self.bin = pathlib.Path(args.bundle).resolve() / "bin"
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="grove-throughput-"))
        self.env = dict(os.environ, GROVE_PYTHON=args.python)
        port_file = self.data / "address"
        self.logs = [open(out / f"{name}.log", "w") for name in ("coordinator", "worker")]
        self.processes = [subprocess.Popen([self.bin / "grove-coordinator", "--listen", "127.0.0.1:0", "--port-file", port_file, "--data-dir",
                                            self.data / "coordinator"], stdout=self.logs[0], stderr=subprocess.STDOUT, env=self.env)]
        self.wait(lambda: port_file.exists() and port_file.stat().st_size > 0, "the coordinator did not start")
        self.env["GROVE_COORDINATOR"] = port_file.read_text().strip()
        self.processes.append(subprocess.Popen(
            [self.bin / "grove-worker", "--coordinator", self.env["GROVE_COORDINATOR"], "--device", args.device, "--state-dir", self.data / "worker",
             "--metrics-listen", "127.0.0.1:0"] + args.worker_flag, stdout=self.logs[1], stderr=subprocess.STDOUT, env=self.env))
        log = out / "worker.log"
        self.wait(lambda: "connected to the coordinator" in log.read_text(), "the worker did not connect")
        self.metrics_url = re.search(r"metrics on (http://\S+/metrics)", log.read_text()).group(1)

    def wait(self, condition, message):
        deadline = time.monotonic() + 90
        while not condition():
            if time.monotonic() > deadline or any(process.poll() is not None for process in self.processes):
                self.stop()
                sys.exit(message)
            time.sleep(0.05)

    def metrics(self):
        values = {}
        with urllib.request.urlopen(self.metrics_url, timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                if not line.startswith("#"):
                    name, value = line.rsplit(" ", 1)
                    values[name] = float(value)
        return values

    def evaluate(self, problem, candidate, *flags):
        begin = time.monotonic()
        done = subprocess.run([self.bin / "grove", "eval", problem, candidate, "--json", *flags], capture_output=True, text=True, env=self.env, timeout=300)
        end = time.monotonic()
        try:
            result = json.loads(done.stdout)["results"][0]["result"]
        except (ValueError, KeyError, IndexError):
            result = {"verdict": "NONE", "reason": f"exit {done.returncode}: {done.stderr[-500:]}"}
        return {"begin": begin, "end": end, "seconds": end - begin, "verdict": result["verdict"], "reason": result.get("reason", ""),
                "stages": {stage["stage"]: stage.get("seconds", 0.0) for stage in result.get("stages", [])}, "result": result}

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.data, ignore_errors=True)


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--candidates", type=int, default=60)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--kernelbench", type=int, default=5, help="candidates that go through KernelBench's stages, too (about 55 s each; 0: none)")
    parser.add_argument("--least-per-hour", type=float, default=1500)
    parser.add_argument("--least-share", type=float, default=0.85)
    parser.add_argument("--least-times", type=float, default=20)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--worker-flag", action="append", default=[])
    parser.add_argument("--eval-flag", action="append", default=[])
    args = parser.parse_args()
    out = pathlib.Path(args.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    examples = pathlib.Path(args.bundle).resolve() / "share" / "grove" / "examples"
    if not examples.exists():
        examples = HERE.parent.parent / "docs" / "examples"
    cuda = args.device.startswith("cuda")
    problem = examples / "problems" / ("cuda/layernorm.py" if cuda else "gelu.py")
    original = (examples / "candidates" / ("layer_norm.cu" if cuda else "gelu.cpp")).read_text()
    variants = list(itertools.islice((layernorm_variants if cuda else gelu_variants)(original), args.candidates + 1))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="grove-variants-"))
    paths = []
    for name, text in variants:
        paths.append(folder / f"{name}.{'cu' if cuda else 'cpp'}")
        paths[-1].write_text(text)
    flags = ["--device", "cuda" if cuda else "cpu", *args.eval_flag]
    report = {"candidates": len(paths) - 1, "clients": args.clients, "flags": args.eval_flag + args.worker_flag}

    service = Service(args, out)
    try:
        first = service.evaluate(problem, paths[0], *flags)  # the judge loads the problem
        report["first_seconds"] = round(first["seconds"], 2)
        before, begin = service.metrics(), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(args.clients) as pool:
            done = list(pool.map(lambda path: service.evaluate(problem, path, *flags), paths[1:]))
        wall = time.monotonic() - begin
        after = service.metrics()
    finally:
        service.stop()
    verdicts = {}
    for each in done:
        verdicts[each["verdict"]] = verdicts.get(each["verdict"], 0) + 1
    latencies = [each["seconds"] for each in done]
    # While all clients have work: the last ones of a run wait for nobody.
    changed = {name: round(after[name] - before.get(name, 0.0), 4) for name in after
               if name.startswith(("grove_worker_slot_busy", "grove_worker_slot_seconds", "grove_worker_stage_duration_seconds_sum",
                                   "grove_worker_build")) and after[name] != before.get(name, 0.0)}
    busy = changed.get("grove_worker_slot_busy_seconds_total", 0.0)
    working = sum(value for name, value in changed.items()
                  if name.startswith("grove_worker_slot_seconds_total") and ('"checking"' in name or '"timing"' in name))
    report.update(wall_seconds=round(wall, 2), evaluations_per_hour=round(3600 * len(done) / wall), p50_seconds=round(quantile(latencies, 0.5), 2),
                  p99_seconds=round(quantile(latencies, 0.99), 2), verdicts=verdicts, slot_busy_share=round(busy / wall, 3),
                  checking_and_timing_share=round(working / wall, 3), metrics=changed,
                  stages_median={stage: round(quantile([e["stages"].get(stage, 0.0) for e in done], 0.5), 4)
                                 for stage in sorted({s for e in done for s in e["stages"]})},
                  reasons=sorted({each["reason"][:200] for each in done if each["verdict"] != "VERDICT_CORRECT"}))
    report["speedups"] = sorted(round(each["result"].get("timing", {}).get("baselines", [{}])[0].get("speedup", 0.0), 2) for each in done)

    if cuda and args.kernelbench > 0:
        report["kernelbench_style"] = []
        for i in range(min(args.kernelbench, len(variants) - 1)):
            name, text = variants[1 + i]
            candidate = folder / f"inline{i}.py"
            candidate.write_text(as_load_inline(text, f"grove_inline_{i}_{os.getpid()}"))
            run = subprocess.run([args.python, str(HERE / "kernelbench_style.py"), str(problem), str(candidate)], capture_output=True, text=True)
            report["kernelbench_style"].append(json.loads(run.stdout) if run.returncode == 0 else {"error": run.stderr[-1500:]})
        totals = [one["total_seconds"] for one in report["kernelbench_style"] if "total_seconds" in one]
        if totals:
            report["kernelbench_seconds"] = round(sum(totals) / len(totals), 2)
            report["kernelbench_median_seconds"] = round(quantile(totals, 0.5), 2)
            report["times_cheaper"] = round(report["kernelbench_seconds"] * len(done) / wall, 1)
    (out / "throughput.json").write_text(json.dumps(report, indent=1))
    shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(report, indent=1))
    short = [] if set(verdicts) == {"VERDICT_CORRECT"} else [f"verdicts: {verdicts}"]
    if cuda:
        asked = {"evaluations_per_hour": args.least_per_hour, "checking_and_timing_share": args.least_share,
                 "times_cheaper": args.least_times if args.kernelbench > 0 else 0}
        short += [f"{name}: {report.get(name, 'not measured')}, not {least}" for name, least in asked.items() if least > 0 and report.get(name, 0) < least]
    print("throughput: " + ("; ".join(short) or f"{report['evaluations_per_hour']} evaluations an hour"))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
