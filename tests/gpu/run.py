#!/usr/bin/env python3
"""What must be seen on an NVIDIA machine, run from the bundle: sandbox, hostile kernels, searches, load_inline, cost of one evaluation.

    python3 run.py --bundle DIR --out DIR [--only doctor,profile,faults,search,load_inline,cost] [--problems NAME,...] [--device cuda:0]

Builds judge and candidate with `grove-worker setup` unless --no-setup, starts `grove up` on the device, runs the parts, prints a line for
each check and writes OUT/gpu.json. Exit code 1 when a check failed. Needs PyTorch with CUDA, nvcc, cmake and a C++ compiler; no network.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

# Problem -> (least speedup over eager that section's text asks for, rounds, ideas, variants, keep).
SEARCHES = {
    "layernorm": dict(least=20.0),
    "softmax": dict(least=1.0),
    "matmul": dict(least=1.0),
    "conv2d": dict(least=1.0),
    "conv2d_relu_maxpool": dict(least=1.0),
}


class Run:
    def __init__(self, args):
        self.args = args
        self.bundle = pathlib.Path(args.bundle).resolve()
        self.out = pathlib.Path(args.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.grove = str(self.bundle / "bin" / "grove")
        self.checks = []
        self.report = {"checks": self.checks}
        self.examples = self.bundle / "share" / "grove" / "examples"
        self.data = tempfile.mkdtemp(prefix="grove-gpu-")
        self.up = None
        self.env = dict(os.environ)

    def check(self, name, ok, detail=""):
        self.checks.append({"name": name, "ok": bool(ok), "detail": detail})
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {detail}", flush=True)

    def call(self, *arguments, timeout=300, env=None):
        begin = time.perf_counter()
        try:
            done = subprocess.run(
                [self.grove, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=env or self.env
            )
            code, stdout, stderr = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as error:
            code, stdout, stderr = -1, (error.stdout or b"").decode(), (error.stderr or b"").decode()
        return code, stdout, stderr, time.perf_counter() - begin

    # ------------------------------------------------------------------------------------------------ set-up
    def setup(self):
        if self.args.no_setup:
            return
        begin = time.perf_counter()
        done = subprocess.run([str(self.bundle / "bin" / "grove-worker"), "setup"], capture_output=True, text=True)
        (self.out / "setup.log").write_text(done.stdout + done.stderr)
        self.report["setup_seconds"] = round(time.perf_counter() - begin, 1)
        self.check("setup", done.returncode == 0, f"{self.report['setup_seconds']} s, exit {done.returncode}")
        if done.returncode != 0:
            print(done.stdout[-3000:], done.stderr[-3000:])
            sys.exit(1)

    def start(self):
        port_file = os.path.join(self.data, "address")
        log = open(self.out / "up.log", "w")
        self.up = subprocess.Popen(
            [self.grove, "up", "--device", self.args.device, "--workers", "1", "--data", self.data, "--listen",
             "127.0.0.1:0", "--port-file", port_file],
            stdout=log, stderr=subprocess.STDOUT, env=self.env)
        deadline = time.monotonic() + 60
        while not (os.path.exists(port_file) and os.path.getsize(port_file)):
            if self.up.poll() is not None or time.monotonic() > deadline:
                print((self.out / "up.log").read_text()[-3000:])
                sys.exit("grove up did not start")
            time.sleep(0.05)
        self.env["GROVE_COORDINATOR"] = pathlib.Path(port_file).read_text().strip()
        while time.monotonic() < deadline:
            code, stdout, _, _ = self.call("workers", "--json")
            if code == 0 and json.loads(stdout).get("workers"):
                return
            time.sleep(0.1)
        print((self.out / "up.log").read_text()[-3000:])
        sys.exit("no worker connected within 60 s")

    def stop(self):
        if self.up and self.up.poll() is None:
            self.up.send_signal(signal.SIGINT)
            try:
                self.up.wait(30)
            except subprocess.TimeoutExpired:
                self.up.kill()

    # ------------------------------------------------------------------------------------------------ parts
    def evaluate(self, problem, candidate, *flags, timeout=300):
        code, stdout, stderr, seconds = self.call("eval", problem, candidate, "--device", "cuda", "--json", *flags, timeout=timeout)
        try:
            result = json.loads(stdout)["results"][0]["result"]
        except (ValueError, KeyError, IndexError):
            result = {"verdict": "NONE", "reason": f"exit {code}: {stderr[-800:]}"}
        return code, result, seconds

    def doctor(self):
        done = subprocess.run([str(self.bundle / "bin" / "grove-worker"), "doctor", "--device", self.args.device],
                              capture_output=True, text=True, env=self.env)
        (self.out / "doctor.txt").write_text(done.stdout + done.stderr)
        self.check("doctor", done.returncode == 0, (done.stdout + done.stderr).strip().replace("\n", " | ")[-900:])

    def faults(self):
        problem = self.examples / "problems" / "cuda" / "layernorm.py"
        good = self.examples / "candidates" / "layer_norm.cu"
        expected = {"spin.cu": "VERDICT_TIMED_OUT", "out_of_bounds.cu": "VERDICT_CRASHED",
                    "take_all_memory.cu": ("VERDICT_CRASHED", "VERDICT_LIMIT_EXCEEDED")}
        self.report["faults"] = []
        code, result, seconds = self.evaluate(problem, good)
        self.check("honest kernel before the faults", result["verdict"] == "VERDICT_CORRECT", f"{result.get('reason')} ({seconds:.1f} s)")
        for name, verdicts in expected.items():
            verdicts = (verdicts,) if isinstance(verdicts, str) else verdicts
            code, result, seconds = self.evaluate(problem, HERE / "candidates" / name, "--limit", "call_wall_seconds=5")
            self.check(f"{name} gets its verdict", result["verdict"] in verdicts, f"{result['verdict']} {result.get('reason')} ({seconds:.1f} s)")
            code, after, seconds_after = self.evaluate(problem, good)
            self.check(f"the evaluation after {name} is unharmed", after["verdict"] == "VERDICT_CORRECT",
                       f"{after['verdict']} {after.get('reason')} ({seconds_after:.1f} s)")
            self.report["faults"].append({"candidate": name, "result": result, "seconds": seconds, "next": after, "next_seconds": seconds_after})

    def search(self):
        self.report["search"] = {}
        faster = 0
        names = self.args.problems.split(",") if self.args.problems else list(SEARCHES)
        for name in names:
            problem = self.examples / "problems" / "cuda" / f"{name}.py"
            code, stdout, stderr, seconds = self.call(
                "search", problem, "--device", "cuda", "--seed", self.args.seed, "--rounds", self.args.rounds, "--ideas", self.args.ideas,
                "--variants", 2, "--keep", 2, "--max-evaluations", self.args.max_evaluations, "--no-bank", "--name", name, "--json", timeout=900)
            (self.out / f"search-{name}.log").write_text(stderr[-200000:])
            try:
                found = json.loads(stdout)
                job = found["job"]
            except (ValueError, KeyError):
                self.check(f"search {name}", False, f"exit {code}: {stderr[-800:]}")
                continue
            _, tree, _, _ = self.call("tree", job)
            (self.out / f"tree-{name}.txt").write_text(tree)
            source = self.out / f"best-{name}.cu"
            self.call("best", job, "-o", source)
            speedup = found.get("speedup") or 0.0
            faster += speedup > 1.0
            self.report["search"][name] = {"seconds": round(seconds, 1), "found": found}
            self.check(f"search {name}", speedup > SEARCHES[name]["least"],
                       f"{speedup:.3f}x [{found.get('speedup_low') or 0:.3f}, {found.get('speedup_high') or 0:.3f}] over eager, "
                       f"{found.get('counts', {}).get('finished', 0)} evaluations in {seconds:.0f} s")
        self.report["faster_than_eager"] = faster
        self.check("at least three of five faster than eager", faster >= min(3, len(names)), f"{faster} of {len(names)}")

    def load_inline(self):
        problem = self.examples / "problems" / "cuda" / "layernorm.py"
        code, result, seconds = self.evaluate(problem, HERE / "candidates" / "layernorm_load_inline.py", timeout=400)
        self.report["load_inline"] = {"seconds": seconds, "result": result}
        self.check("KernelBench candidate with load_inline", result["verdict"] == "VERDICT_CORRECT", f"{result['verdict']} {result.get('reason')} ({seconds:.1f} s)")

    def cost(self):
        problem = self.examples / "problems" / "cuda" / "layernorm.py"
        source = (self.examples / "candidates" / "layer_norm.cu").read_text()
        seconds = []
        stages = []
        for i in range(6):  # distinct sources, so that each is built; the judge is warm from the second on
            path = pathlib.Path(self.data) / f"layernorm{i}.cu"
            path.write_text(f"{source}\nstatic const int grove_run_{time.time_ns()} __attribute__((unused)) = {i};\n")
            code, result, took = self.evaluate(problem, path)
            seconds.append(took)
            stages.append({s["stage"]: s.get("seconds", 0) for s in result.get("stages", [])})
            if i == 0:
                self.check("cost: verdict", result["verdict"] == "VERDICT_CORRECT", f"{result['verdict']} {result.get('reason')}")
        warm = sorted(seconds[1:])[len(seconds[1:]) // 2]
        self.report["cost"] = {"first_seconds": seconds[0], "warm_seconds": seconds[1:], "warm_median_seconds": warm, "stages": stages}
        self.check("warm eval within 3 s", warm <= 3.0, f"median {warm:.2f} s of {len(seconds) - 1}; stages {stages[-1]}")

    def cold(self):
        """A daemon just started, nothing cached: from submit to verdict."""
        problem = self.examples / "problems" / "cuda" / "layernorm.py"
        code, result, seconds = self.evaluate(problem, self.examples / "candidates" / "layer_norm.cu")
        self.report["cold_seconds"] = seconds
        self.check("cold eval within 15 s", result["verdict"] == "VERDICT_CORRECT" and seconds <= 15.0, f"{result['verdict']} in {seconds:.2f} s: {result.get('reason')}")

    def profile(self):
        """--profile: figures that are there, and that can be true. LayerNorm moves memory and does little else."""
        problem = self.examples / "problems" / "cuda" / "layernorm.py"
        self.report["profile"] = {}
        for candidate in (self.examples / "candidates" / "layer_norm.cu", HERE / "candidates" / "layernorm_load_inline.py"):
            name = candidate.name
            code, result, seconds = self.evaluate(problem, candidate, "--profile", timeout=400)
            report = result.get("profile", {})
            kernels = report.get("kernels", [])
            took = sum(s["seconds"] for s in result.get("stages", []) if s["stage"] == "profile")
            self.report["profile"][name] = {"seconds": seconds, "profile_seconds": took, "result": result}
            self.check(f"{name} with --profile is correct", result["verdict"] == "VERDICT_CORRECT", f"{result.get('reason')} ({seconds:.1f} s, {took:.1f} s of it profiling)")
            self.check(f"{name} is profiled", bool(kernels), report.get("unavailable") or f"{len(kernels)} kernels in {took:.1f} s")
            if not kernels:
                continue
            for kernel in kernels:
                print("    ", json.dumps(kernel), flush=True)
            self.check(f"{name}: every kernel has a time, and the shares add up to one",
                       all(k.get("seconds", 0) > 0 for k in kernels) and 0.9 < sum(k.get("share", 0) for k in kernels) < 1.01,
                       ", ".join(f"{1e6 * k.get('seconds', 0):.1f} us" for k in kernels))
            self.check(f"{name}: occupancy", all(0 < k.get("occupancy", 0) <= 1 for k in kernels), ", ".join(f"{k.get('occupancy', 0):.2f}" for k in kernels))
            busiest = max(k.get("dram_fraction", 0) for k in kernels)
            self.check(f"{name}: a memory-bound kernel keeps DRAM busy", 0.3 < busiest <= 1, f"{busiest:.2f} of peak")
            self.check(f"{name}: registers", all(8 <= k.get("registers", 0) <= 255 for k in kernels), ", ".join(str(k.get("registers", 0)) for k in kernels))
            self.check(f"{name}: stalls", all(k.get("stalls") and sum(s["share"] for s in k["stalls"]) <= 1.001 for k in kernels),
                       "; ".join(f"{s['reason']} {s['share']:.2f}" for s in kernels[0].get("stalls", [])))
            self.check(f"{name}: grid and block", all("x" in k.get("grid", "") and "x" in k.get("block", "") for k in kernels), f"{kernels[0].get('grid')} of {kernels[0].get('block')}")
            own = sum(k.get("share", 0) for k in kernels if k.get("own"))
            self.check(f"{name}: the kernels are its own", own > 0.9, f"{own:.2f} of the time")
            opcodes = {i["precision"]: i["operations_per_second"] for i in report.get("instructions", [])}
            self.check(f"{name}: instruction mix", opcodes.get("FFMA", 0) > 0 and any(o in opcodes for o in ("LDG", "LD")) and len(report.get("sass_sha256", "")) == 64,
                       ", ".join(f"{n:.0f} {o}" for o, n in list(opcodes.items())[:12]) or "none")
            # The profiler's clock is its own, and its caches are flushed; the same order of magnitude is all that can be asked.
            baselines = result.get("timing", {}).get("baselines", [])
            if baselines:
                timed, profiled = baselines[0]["candidate_median_seconds"], sum(k["seconds"] for k in kernels)
                self.check(f"{name}: the kernels' times fit the time that was measured", 0.3 < profiled / timed < 3, f"{1e6 * profiled:.1f} us of {1e6 * timed:.1f} us")
        # A kernel that breaks where it is watched, and only there: its verdict and its time stand, and so does the device.
        good = (self.examples / "candidates" / "layer_norm.cu").read_text()
        shy = self.out / "shy.cu"
        shy.write_text("#include <cstdlib>\n__global__ void Trap() { asm volatile(\"trap;\"); }\n" +
                       good.replace("GROVE_KERNEL(args) {", "GROVE_KERNEL(args) {\n"
                                    "  if (getenv(\"NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT\")) Trap<<<1, 1>>>();", 1))
        code, result, seconds = self.evaluate(problem, shy, "--profile", timeout=400)
        report = result.get("profile", {})
        self.check("a kernel that breaks under the profiler keeps its verdict", result["verdict"] == "VERDICT_CORRECT" and bool(result.get("timing", {}).get("baselines")),
                   f"{result.get('reason')} ({seconds:.1f} s)")
        self.check("its profile says so", bool(report.get("unavailable")), report.get("unavailable") or json.dumps(report.get("kernels", []))[:500])
        code, result, seconds = self.evaluate(problem, self.examples / "candidates" / "layer_norm.cu")
        self.check("the next evaluation is unharmed", result["verdict"] == "VERDICT_CORRECT", f"{result.get('reason')} ({seconds:.1f} s)")
        code, stdout, stderr, _ = self.call("eval", problem, self.examples / "candidates" / "layer_norm.cu", "--device", "cuda", "--profile")
        (self.out / "profile.txt").write_text(stdout)
        print(stdout, flush=True)
        self.check("a person can read it", "Nsight Compute" in stdout and "OCCUPANCY" in stdout, "profile.txt")

    def kernelbench_style(self):
        problem = self.examples / "problems" / "cuda" / "layernorm.py"
        done = subprocess.run([self.args.python, str(HERE / "kernelbench_style.py"), str(problem), str(HERE / "candidates" / "layernorm_load_inline.py")],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.check("kernelbench-style stages", False, done.stderr[-1500:])
            return
        stages = json.loads(done.stdout)
        self.report["kernelbench_style"] = stages
        warm = self.report.get("cost", {}).get("warm_median_seconds")
        ratio = stages["total_seconds"] / warm if warm else 0.0
        self.report["times_cheaper"] = ratio
        self.check("a KernelBench-style evaluation takes at least 12 times as long", ratio >= 12.0, f"{stages['total_seconds']:.1f} s, {ratio:.1f} times a warm eval; {stages['stages_seconds']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", default="doctor,cold,cost,profile,kernelbench_style,load_inline,faults,search")
    parser.add_argument("--problems", default="")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--rounds", default="3")
    parser.add_argument("--ideas", default="4")
    parser.add_argument("--max-evaluations", default="40")
    parser.add_argument("--no-setup", action="store_true")
    args = parser.parse_args()
    run = Run(args)
    run.env["GROVE_PYTHON"] = args.python
    run.setup()
    parts = args.only.split(",")
    if "doctor" in parts:
        run.doctor()
    run.start()
    try:
        for part in parts:
            if part != "doctor":
                try:
                    getattr(run, part)()
                except Exception as error:  # one part's failure must not hide the others' figures
                    run.check(part, False, f"{type(error).__name__}: {error}")
    finally:
        run.stop()
        (run.out / "gpu.json").write_text(json.dumps(run.report, indent=1))
    failed = [c["name"] for c in run.checks if not c["ok"]]
    print(f"{len(run.checks) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
