#!/usr/bin/env python3
"""The stages of a KernelBench-style evaluation of one load_inline candidate, each timed: what a `grove eval` is compared with.

Stages (KernelBench main, src/kernelbench/eval.py): import torch; build the candidate by load_inline; five correctness trials with
inputs made on the CPU; 100 timed runs of reference and candidate with an L2 flush before each. Prints one JSON document.

    python3 kernelbench_style.py PROBLEM.py CANDIDATE.py
"""

import importlib.util
import json
import os
import sys
import tempfile
import time

start = time.perf_counter()
stages = {}


def stage(name):
    global start
    now = time.perf_counter()
    stages[name] = now - start
    start = now


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    os.environ["TORCH_EXTENSIONS_DIR"] = tempfile.mkdtemp()  # nothing from an earlier run
    import torch

    stage("import torch")
    device = torch.device("cuda")
    torch.zeros(1, device=device)
    stage("CUDA context")
    problem = load(sys.argv[1], "problem")
    stage("load problem")
    candidate = load(sys.argv[2], "candidate")
    stage("load_inline")

    init = problem.get_init_inputs()
    torch.manual_seed(42)
    reference = problem.Model(*init).to(device)
    torch.manual_seed(42)
    model = candidate.ModelNew(*init).to(device)
    torch.cuda.synchronize()
    stage("models")

    passed = 0
    with torch.no_grad():
        for trial in range(5):
            torch.manual_seed(trial)
            inputs = [x.to(device) if isinstance(x, torch.Tensor) else x for x in problem.get_inputs()]
            expected = reference(*inputs)
            torch.cuda.synchronize()
            got = model(*inputs)
            torch.cuda.synchronize()
            passed += bool(torch.allclose(expected, got, atol=1e-4, rtol=1e-4))
        stage("5 correctness trials")

        def timed(fn, args):
            times = []
            for _ in range(3):
                fn(*args)
            for _ in range(100):
                torch.cuda.synchronize()
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                torch.empty(256 * 1024 * 1024 // 8, dtype=torch.int64, device=device).fill_(42)
                begin.record()
                fn(*args)
                end.record()
                torch.cuda.synchronize()
                times.append(begin.elapsed_time(end))
            return sorted(times)[len(times) // 2]

        torch.manual_seed(42)
        inputs = [x.to(device) if isinstance(x, torch.Tensor) else x for x in problem.get_inputs()]
        candidate_ms = timed(model, inputs)
        reference_ms = timed(reference, inputs)
        stage("100 + 100 timed runs")

    print(
        json.dumps(
            {
                "device": torch.cuda.get_device_name(0),
                "torch": torch.__version__,
                "stages_seconds": {name: round(seconds, 3) for name, seconds in stages.items()},
                "total_seconds": round(sum(stages.values()), 3),
                "trials_passed": passed,
                "reference_median_ms": reference_ms,
                "candidate_median_ms": candidate_ms,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
