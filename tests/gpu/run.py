#!/usr/bin/env python3
"""What must be seen on an NVIDIA machine, run from the bundle: sandbox, hostile kernels, searches, load_inline, cost of one evaluation.

    python3 run.py --bundle DIR --out DIR [--only doctor,faults,search,load_inline,cost] [--problems NAME,...] [--device cuda:0]

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
    parser.add_argument("--only", default="doctor,cold,cost,kernelbench_style,load_inline,faults,search")
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
