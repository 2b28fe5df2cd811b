#!/usr/bin/env python3
"""Builds, checks and times kernels of the CUDA catalogue on this machine's GPU.

    tests/gpu/catalogue/run.py FOLDER [--out FILE.json] [--include DIR] [--only CASE,...] [--jobs N] [--quick]

FOLDER holds sources and manifest.json as catalogue_cuda_dump writes them. Each source is compiled with nvcc (all cores),
loaded, called through grove/kernel.h's ABI on poisoned outputs with two draws of inputs, compared with a float64
reference on the GPU, and timed: CUDA events around one call, the L2 cache written over before each, median of the samples.
torch eager is timed the same way beside it. Prints a table; writes JSON.
"""
import argparse, concurrent.futures, ctypes, datetime, json, os, re, statistics, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Args(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("size", ctypes.c_uint32), ("num_inputs", ctypes.c_int32),
                ("num_outputs", ctypes.c_int32), ("inputs", ctypes.POINTER(DLTensor)), ("outputs", ctypes.POINTER(DLTensor)),
                ("stream", ctypes.c_void_p), ("num_threads", ctypes.c_int32), ("reserved", ctypes.c_int32)]


def compile_one(job):
    source, include, arch, flags = job
    target = source[:-3] + ".so"
    if os.path.exists(target):
        return source, target, "", 0.0
    start = time.time()
    done = subprocess.run(["nvcc", "-O3", "-std=c++17", arch, "-I" + include, "-Xcompiler", "-fPIC", "-shared", source, "-o", target]
                          + flags, capture_output=True, text=True)
    return source, target if done.returncode == 0 else None, done.stdout + done.stderr, time.time() - start


class Call:
    """One prepared call: keeps the descriptor arrays alive."""

    def __init__(self, torch, inputs, output, stream):
        self.keep = []

        def describe(t):
            n = max(1, t.dim())
            shape, strides = (ctypes.c_int64 * n)(*t.shape), (ctypes.c_int64 * n)(*t.stride())
            self.keep += [shape, strides, t]
            return DLTensor(t.data_ptr(), 2, 0, t.dim(), 2, 32, 1, shape, strides, 0)

        self.inputs = (DLTensor * len(inputs))(*[describe(t) for t in inputs])
        self.outputs = (DLTensor * 1)(describe(output))
        self.args = Args(1, ctypes.sizeof(Args), len(inputs), 1, self.inputs, self.outputs, stream, 0, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--out")
    parser.add_argument("--include", default=os.path.join(HERE, "../../../worker/candidate/include"))
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true", help="check only")
    parser.add_argument("--seconds", type=float, default=0.12, help="sampling time per kernel")
    options = parser.parse_args()
    manifest = json.load(open(os.path.join(options.folder, "manifest.json")))
    only = set(filter(None, options.only.split(",")))
    kernels = [k for k in manifest["kernels"] if not only or k["case"] in only]

    capability = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True,
                                text=True).stdout.split()[0].replace(".", "")
    suffix = capability + ("a" if capability == "90" else "")
    arch = f"-gencode=arch=compute_{suffix},code=sm_{suffix}"
    jobs = [(os.path.join(options.folder, k["file"]), options.include, arch, k["flags"]) for k in kernels]
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    builds = [pool.submit(compile_one, job) for job in jobs]

    import torch  # while nvcc runs
    import torch.nn.functional as F
    assert torch.cuda.is_available(), "no CUDA device"
    props = torch.cuda.get_device_properties(0)
    flush = torch.empty(2 * props.L2_cache_size // 4, dtype=torch.float32, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream

    def timed(call, budget=None):
        budget = budget or options.seconds
        for _ in range(2):
            call()
        torch.cuda.synchronize()
        samples, start = [], time.time()
        while len(samples) < 5 or (time.time() - start < budget and len(samples) < 60):
            events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(5)]
            for before, after in events:
                flush.fill_(1.0)
                before.record()
                call()
                after.record()
            torch.cuda.synchronize()
            samples += [before.elapsed_time(after) for before, after in events]
        return statistics.median(samples), len(samples)

    results = []
    for case in manifest["cases"]:
        mine = [(k, b) for k, b in zip(kernels, builds) if k["case"] == case["name"]]
        if not mine:
            continue
        code = compile(case["reference"], case["name"], "eval")

        def draw(seed):
            generator = torch.Generator(device="cuda").manual_seed(seed)
            xs = []
            for i, shape in enumerate(case["args"]):
                x = torch.randn(shape, device="cuda", generator=generator)
                xs.append(eval(case["inputs"], {"x": x, "i": i}).contiguous() if case["inputs"] else x)
            return xs

        def reference(xs, dtype=torch.float64):
            return eval(code, {"torch": torch, "F": F, "x": [t.to(dtype) for t in xs]})

        draws = [draw(1), draw(2)]
        with torch.no_grad():
            expected = []
            for xs in draws:
                if sum(t.numel() for t in xs) > 1 << 27 and case["name"] == "softmax":
                    rows = [reference([xs[0][i:i + 512]]).float() for i in range(0, xs[0].shape[0], 512)]
                    expected.append(torch.cat(rows))
                else:
                    expected.append(reference(xs))
            output = torch.empty(case["output"], device="cuda")

            def error(got, want):
                diff = (got.double() - want.double()) if got.numel() < 1 << 27 else (got - want.float())
                scale = want.double().pow(2).mean().sqrt() if got.numel() < 1 << 27 else want.pow(2).mean().sqrt()
                return (diff.pow(2).mean().sqrt() / scale).item(), (diff.abs().max() / scale).item()

            eager_out = eval(code, {"torch": torch, "F": F, "x": draws[0]})
            eager_error = error(eager_out, expected[0].reshape(eager_out.shape))
            del eager_out
            eager_ms = None if options.quick else timed(lambda: eval(code, {"torch": torch, "F": F, "x": draws[0]}))[0]
        def show(row):
            settings = ", ".join(k if "." not in k else f"{k}={v}" for k, v in row.get("recipe", {}).items())
            print(f"{row['case']:20s} {row['verdict']:10s} {row.get('ms') or 0:9.4f} ms x{row.get('speedup', 1):6.2f} "
                  f"rms {row.get('rms_error', 0):8.1e} max {row.get('max_error', 0):8.1e} {row['file']:28s} {settings}", flush=True)
            if row["verdict"] == "BUILD_FAILED":
                print("    " + "\n    ".join(re.findall(r".*error.*", row["log"])[:4]), flush=True)

        results.append({"case": case["name"], "file": "torch eager", "ms": eager_ms, "rms_error": eager_error[0],
                        "max_error": eager_error[1], "verdict": "reference"})
        show(results[-1])
        for kernel, build in mine:
            source, target, log, seconds = build.result()
            row = {"case": case["name"], "file": kernel["file"], "recipe": kernel["recipe"], "build_seconds": round(seconds, 2)}
            results.append(row)
            if target is None:
                row.update(verdict="BUILD_FAILED", log=log[-2000:])
                show(row)
                continue
            function = ctypes.CDLL(os.path.abspath(target)).grove_kernel
            worst, codes = (0.0, 0.0), []
            for xs, want in zip(draws, expected):
                for _ in range(2):
                    output.fill_(float("nan"))
                    prepared = Call(torch, xs, output, stream)
                    codes.append(function(ctypes.byref(prepared.args)))
                    torch.cuda.synchronize()  # raises when the kernel faulted
                    worst = max(worst, error(output, want.reshape(output.shape)), key=lambda e: e[1] if e[1] == e[1] else 1e30)
            row.update(rms_error=worst[0], max_error=worst[1], code=max(codes, key=abs))
            # Near float32: 2e-4 of the result's magnitude, or as good as torch's own float32 result.
            row["verdict"] = "CORRECT" if worst[1] < max(2e-4, 2 * eager_error[1]) and not any(codes) else "WRONG"
            if not options.quick and not any(codes):
                prepared = Call(torch, draws[0], output, stream)
                row["ms"], row["samples"] = timed(lambda: function(ctypes.byref(prepared.args)))
                row["speedup"] = eager_ms / row["ms"]
            show(row)
        del draws, expected, output
        torch.cuda.empty_cache()

    report = {"schema": 1, "device": props.name, "multiprocessors": props.multi_processor_count, "torch": torch.__version__,
              "cuda": torch.version.cuda, "date": datetime.date.today().isoformat(),
              "driver": subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True,
                                       text=True).stdout.strip(), "results": results}
    if options.out:
        json.dump(report, open(options.out, "w"), indent=1)
    verdicts = [r["verdict"] for r in results]
    print({v: verdicts.count(v) for v in sorted(set(verdicts))})
    return 0 if "BUILD_FAILED" not in verdicts else 1


if __name__ == "__main__":
    sys.exit(main())
