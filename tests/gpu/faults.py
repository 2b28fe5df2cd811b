#!/usr/bin/env python3
"""Every fault that must be seen on a GPU, through the whole service: its verdict, what it costs the next evaluation, and the device's state after it.

    python3 faults.py --bundle DIR --out DIR [--only device,memory,host,quarantine] [--python PATH]

The bundle is set up already. Prints a line for each check and writes OUT/faults-PARTS.json. Exit code 1 when a check failed.
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
CANDIDATES = HERE / "candidates"
CPU_CASES = HERE.parent / "testcases"
AUDIT_HOST = CPU_CASES / "exploits/host"
GIB = 1 << 30

# (name, source, flags, verdicts, what fault or reason must say)
DEVICE = [
    ("endless kernel", CANDIDATES / "spin.cu", ["call_wall_seconds=2"], ["TIMED_OUT"], "call_wall_seconds"),
    ("grid deadlock", CANDIDATES / "faults/grid_deadlock.cu", ["call_wall_seconds=2"], ["TIMED_OUT"], "call_wall_seconds"),
    ("endless kernel with children", CANDIDATES / "faults/spin_then_children.cu", ["call_wall_seconds=2"], ["TIMED_OUT"], "call_wall_seconds"),
    ("illegal access", CANDIDATES / "out_of_bounds.cu", [], ["CRASHED"], "cudaErrorIllegalAddress"),
    ("misaligned access", CANDIDATES / "faults/misaligned.cu", [], ["CRASHED"], "cudaErrorMisalignedAddress"),
    ("shared memory overrun", CANDIDATES / "faults/shared_memory_beyond.cu", [], ["CRASHED"], "cudaError"),
    ("trap", CANDIDATES / "faults/trap.cu", [], ["CRASHED"], "cudaError"),
    ("device assert", CANDIDATES / "faults/device_assert.cu", [], ["CRASHED"], "cudaErrorAssert"),
]
# What the driver has to have said of them, too; an MMU fault has a number of its own.
XIDS = {"illegal access": "Xid 31", "misaligned access": "Xid ", "shared memory overrun": "Xid ", "trap": "Xid ", "device assert": "Xid "}
MEMORY = [
    ("all device memory", CANDIDATES / "take_all_memory.cu", [], ["LIMIT_EXCEEDED"], "device_memory_bytes"),
    ("8 GiB of device memory where 4 are allowed", CANDIDATES / "faults/holds_device_memory.cu", ["device_memory_bytes=4GiB"], ["LIMIT_EXCEEDED"], "device_memory_bytes"),
    ("pinned memory", CANDIDATES / "faults/pinned_hog.cu", ["memory_bytes=4GiB"], ["LIMIT_EXCEEDED"], "memory_bytes"),
    ("host memory", CPU_CASES / "memory_hog.cpp", ["memory_bytes=4GiB"], ["LIMIT_EXCEEDED"], "memory_bytes"),
]
HOST = [
    ("fork bomb", CPU_CASES / "fork_bomb.cpp", [], ["LIMIT_EXCEEDED"], "processes"),
    ("thread bomb", CPU_CASES / "thread_bomb.cpp", [], ["LIMIT_EXCEEDED"], "processes"),
    ("descriptor bomb", AUDIT_HOST / "X61-descriptor-bomb/descriptors.cpp", ["call_wall_seconds=4"], ["LIMIT_EXCEEDED", "TIMED_OUT", "CRASHED"], ""),
    ("disk", CPU_CASES / "disk_filler.cpp", [], ["LIMIT_EXCEEDED"], "disk_bytes"),
    ("inodes", CPU_CASES / "inode_flood.cpp", ["disk_bytes=32MiB"], ["LIMIT_EXCEEDED"], "disk_bytes"),
    ("/dev/shm", AUDIT_HOST / "X03-fills-storage/shm.cpp", ["disk_bytes=32MiB", "memory_bytes=4GiB"], ["LIMIT_EXCEEDED"], "_bytes"),
    ("log flood", CPU_CASES / "log_flood.cpp", [], ["LIMIT_EXCEEDED"], "output_bytes"),
    ("orphan", CANDIDATES / "faults/orphan.cu", [], ["CRASHED"], "code 0"),
    ("segmentation fault", CPU_CASES / "segfault.cpp", [], ["CRASHED"], "SIGSEGV"),
]


class Run:
    def __init__(self, args):
        self.args = args
        self.bundle = pathlib.Path(args.bundle).resolve()
        self.out = pathlib.Path(args.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.grove = str(self.bundle / "bin" / "grove")
        self.examples = self.bundle / "share" / "grove" / "examples"
        self.problem = self.examples / "problems" / "cuda" / "layernorm.py"
        self.good = self.examples / "candidates" / "layer_norm.cu"
        self.data = tempfile.mkdtemp(prefix="grove-faults-")
        self.env = dict(os.environ, GROVE_PYTHON=args.python)
        self.checks, self.cases = [], []
        self.up = None

    def check(self, name, ok, detail=""):
        self.checks.append({"name": name, "ok": bool(ok), "detail": detail})
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {detail}", flush=True)
        return bool(ok)

    def start(self):
        port_file = os.path.join(self.data, "address")
        log = open(self.out / "up.log", "w")
        self.up = subprocess.Popen([self.grove, "up", "--device", "cuda:0", "--workers", "1", "--data", self.data, "--listen", "127.0.0.1:0", "--port-file", port_file],
                                   stdout=log, stderr=subprocess.STDOUT, env=self.env)
        deadline = time.monotonic() + 60
        while not (os.path.exists(port_file) and os.path.getsize(port_file)):
            if self.up.poll() is not None or time.monotonic() > deadline:
                sys.exit("grove up did not start:\n" + (self.out / "up.log").read_text()[-3000:])
            time.sleep(0.05)
        self.env["GROVE_COORDINATOR"] = pathlib.Path(port_file).read_text().strip()
        while time.monotonic() < deadline:
            if self.worker():
                return
            time.sleep(0.1)
        sys.exit("no worker connected within 60 s:\n" + (self.out / "up.log").read_text()[-3000:])

    def stop(self):
        if self.up and self.up.poll() is None:
            self.up.send_signal(signal.SIGINT)
            try:
                self.up.wait(15)
            except subprocess.TimeoutExpired:
                self.up.kill()

    def worker(self):
        done = subprocess.run([self.grove, "workers", "--json"], capture_output=True, text=True, timeout=30, env=self.env)
        try:
            return json.loads(done.stdout)["workers"][0]
        except (ValueError, KeyError, IndexError):
            return None

    def evaluate(self, candidate, limits=(), timeout=100):
        """(result, seconds). A .cpp case is compiled as a .cu: what it does on the host is the same."""
        path = pathlib.Path(candidate)
        if path.suffix == ".cpp":
            copy = pathlib.Path(self.data) / (path.stem + ".cu")
            copy.write_text(path.read_text())
            path = copy
        flags = [word for limit in limits for word in ("--limit", limit)]
        begin = time.perf_counter()
        try:
            done = subprocess.run([self.grove, "eval", str(self.problem), str(path), "--device", "cuda", "--json", "--samples", "20", "--max-time", "1", *flags],
                                  capture_output=True, text=True, timeout=timeout, env=self.env)
            result = json.loads(done.stdout)["results"][0]["result"]
        except subprocess.TimeoutExpired:
            result = {"verdict": "NONE", "reason": f"no answer in {timeout} s"}
        except (ValueError, KeyError, IndexError):
            result = {"verdict": "NONE", "reason": f"exit {done.returncode}: {done.stderr[-800:]}"}
        return result, time.perf_counter() - begin

    def group(self, cases):
        for name, source, limits, verdicts, says in cases:
            result, seconds = self.evaluate(source, limits)
            stages = {s["stage"]: round(s.get("seconds", 0), 2) for s in result.get("stages", [])}
            fault = result.get("fault", {})
            verdict = result["verdict"].replace("VERDICT_", "")
            said = says in json.dumps(fault) + (result.get("reason") or "")
            self.check(name, verdict in verdicts and said, f"{verdict}: {result.get('reason')} | {seconds:.1f} s, {stages}")
            print("     fault:", json.dumps(fault)[:600], flush=True)
            if name in XIDS:
                self.check(f"{name}: the driver's own error", XIDS[name] in json.dumps(fault) + (result.get("reason") or ""), XIDS[name])
            after, seconds_after = self.evaluate(self.good)
            right = after["verdict"] == "VERDICT_CORRECT"
            self.check(f"after {name}", right and seconds_after < self.warm + 1.5, f"{after['verdict']} in {seconds_after:.2f} s (warm: {self.warm:.2f} s): {after.get('reason')}")
            state = self.worker() or {}
            print("     worker:", state.get("slot_state"), "|", state.get("health"), flush=True)
            self.cases.append({"case": name, "verdict": verdict, "seconds": seconds, "stages": stages, "fault": fault, "reason": result.get("reason"),
                               "next_verdict": after["verdict"], "next_seconds": seconds_after, "state": state.get("slot_state"), "health": state.get("health")})

    def inside(self):
        # Nothing of any candidate of this service is left (others may run beside it).
        listing = subprocess.run(["ps", "-eo", "pid,ppid,stat,etimes,args"], capture_output=True, text=True).stdout
        lines = [line.split(None, 4) for line in listing.splitlines()[1:]]
        parents = {line[0]: line[1] for line in lines}
        sandboxed = {line[0] for line in lines if "grove-candidate" in line[-1] or "bwrap" in line[-1]}

        def own(pid):
            while pid in sandboxed:
                pid = parents[pid]
            orphaned = pid in ("0", "1")  # whose service is gone, or which outlived what it was started by
            while pid in parents and pid != str(self.up.pid):
                pid = parents[pid]
            return orphaned or pid == str(self.up.pid)

        left = [" ".join(line) for line in lines
                if "grove-candidate" in line[-1] and "bwrap" not in line[-1] and "python" not in line[-1] and own(line[0])]
        print("     candidates' processes now:", len(left))
        self.check("no process of a candidate outlives its evaluation", len(left) <= 2, "; ".join(left)[:600])

    def quarantine(self):
        """A GPU whose memory somebody else has taken fails its canary: the slot is quarantined, visibly, and comes back."""
        code = ("import torch,sys,select\nheld=[]\npiece=1<<33\n"
                "while piece>=1<<21:\n"
                "    try: held.append(torch.empty(piece,dtype=torch.uint8,device='cuda'))\n"
                "    except RuntimeError: piece//=2\n"
                "print('held',flush=True)\n"
                # What others give back it takes as well.
                "while not select.select([sys.stdin],[],[],0.01)[0]:\n"
                "    try: held.append(torch.empty(1<<25,dtype=torch.uint8,device='cuda'))\n"
                "    except RuntimeError: pass\n")
        hog = subprocess.Popen([self.args.python, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = hog.stdout.readline().strip()
        print("     hog:", line, flush=True)
        trapped = subprocess.Popen([self.grove, "eval", str(self.problem), str(CANDIDATES / "faults/trap.cu"), "--device", "cuda", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        seen = {}
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            seen = self.worker() or {}
            if seen.get("slot_state") == "quarantined":
                break
            time.sleep(0.2)
        self.check("a device that fails its canary is quarantined, and grove workers says so", seen.get("slot_state") == "quarantined" and seen.get("health"), f"{seen.get('slot_state')}: {seen.get('health')}")
        text = subprocess.run([self.grove, "workers"], capture_output=True, text=True, env=self.env).stdout
        print(text, flush=True)
        hog.stdin.close()
        hog.wait(30)
        begin = time.monotonic()
        while time.monotonic() < begin + 60:
            seen = self.worker() or {}
            if seen.get("slot_state") != "quarantined":
                break
            time.sleep(0.2)
        self.check("it comes back by itself", seen.get("slot_state") != "quarantined", f"after {time.monotonic() - begin:.1f} s: {seen.get('health')}")
        try:
            stdout, stderr = trapped.communicate(timeout=60)
            result = json.loads(stdout)["results"][0]["result"]
            self.check("the evaluation in hand is made again and gets its own verdict", result["verdict"] == "VERDICT_CRASHED", f"{result['verdict']}: {result.get('reason')}, attempt {result.get('attempt')}")
        except (subprocess.TimeoutExpired, ValueError, KeyError, IndexError) as error:
            trapped.kill()
            self.check("the evaluation in hand is made again and gets its own verdict", False, f"{type(error).__name__}: {error}")
        after, seconds = self.evaluate(self.good)
        self.check("after the quarantine", after["verdict"] == "VERDICT_CORRECT", f"{after['verdict']} in {seconds:.1f} s: {after.get('reason')}")

    def run(self):
        self.start()
        try:
            first, seconds = self.evaluate(self.good)
            self.check("honest kernel before the faults", first["verdict"] == "VERDICT_CORRECT", f"{first.get('reason')} ({seconds:.1f} s)")
            self.warm = min(self.evaluate(self.good)[1] for _ in range(3))
            for part in self.args.only.split(","):
                try:
                    if part in ("quarantine", "inside"):
                        getattr(self, part)()
                    else:
                        self.group({"device": DEVICE, "memory": MEMORY, "host": HOST}[part])
                except Exception as error:  # one part's failure must not hide the others' results
                    self.check(part, False, f"{type(error).__name__}: {error}")
            self.inside()
            self.check("the daemon is alive", self.up.poll() is None)
        finally:
            self.stop()
            (self.out / f"faults-{self.args.only.replace(',', '-')}.json").write_text(json.dumps({"warm_seconds": getattr(self, "warm", None), "checks": self.checks, "cases": self.cases}, indent=1))
        failed = [c["name"] for c in self.checks if not c["ok"]]
        print(f"{len(self.checks) - len(failed)} passed, {len(failed)} failed: {failed}")
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", default="device,memory,host,quarantine")
    parser.add_argument("--python", default=sys.executable)
    sys.exit(Run(parser.parse_args()).run())


if __name__ == "__main__":
    main()
