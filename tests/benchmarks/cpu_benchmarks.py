#!/usr/bin/env python3
"""Figures of one machine's coordinator, worker and command line on the CPU device. Prints them and writes JSON; asserts nothing.

    cmake --build BUILD --target grove grove-coordinator grove-worker grove-judge grove-candidate reopen_tree
    tests/benchmarks/cpu_benchmarks.py --build BUILD --out figures.json

What is measured:
  idle    coordinator alone with its worker connected: resident memory, CPU time over 10 s
  warm    `grove eval` of a kernel whose build is cached and whose judge is warm: wall time of the command, less the build
          and less what the judge spends on the candidate (inputs, checks, timing); median of --runs
  queue   --queued evaluations in one submission: coordinator memory before, at most, and after; time until all are judged
  reopen  the program reopen_tree, where it is built
"""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PROBLEM = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x + 1.0


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""
KERNEL = """#include <grove/kernel.h>
GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  float* y = (float*)args->outputs[0].data;
  for (int i = 0; i < 64 * 64; ++i) y[i] = x[i] + 1.0f;
  return 0;
}
"""
# A short measurement, which all the same ends with a figure: these are about what surrounds it.
SHORT = ["--trials", "1", "--min-time", "0.01"]
# In the queue nothing is timed: a timing that must reach its samples takes a second, and a thousand of them a quarter of an hour.
UNTIMED = ["--trials", "1", "--no-timing"]


def resident_kib(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(rf"^{field}:\s+(\d+) kB", status.read(), re.M).group(1))


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(what, seconds, condition):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    sys.exit(f"{what} did not happen within {seconds} s")


class Farm:
    """A coordinator and a worker of their own, in a folder of their own."""

    def __init__(self, bin_dir, folder):
        self.bin, self.folder = bin_dir, folder
        port = f"{folder}/port"
        self.logs = open(f"{folder}/log", "wb")
        self.coordinator = subprocess.Popen([f"{bin_dir}/grove-coordinator", "--data", f"{folder}/data", "--listen", "127.0.0.1:0",
                                             "--port-file", port], stderr=self.logs)
        wait_for("the coordinator's start", 20, lambda: os.path.exists(port) and os.path.getsize(port))
        with open(port, encoding="utf-8") as file:
            self.address = file.read().split()[0]
        self.worker = subprocess.Popen([f"{bin_dir}/grove-worker", "--coordinator", self.address, "--device", "cpu", "--state",
                                        f"{folder}/worker"], stderr=self.logs)
        wait_for("the worker's arrival", 120, lambda: json.loads(self.grove("workers", "--json")).get("workers"))

    def grove(self, *arguments, check=True):
        done = subprocess.run([f"{self.bin}/grove", "--coordinator", self.address, *arguments], capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            sys.exit(f"grove {' '.join(arguments[:3])} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def close(self):
        for process in (self.worker, self.coordinator):
            process.terminate()
        for process in (self.worker, self.coordinator):
            process.wait()
        self.logs.close()


def idle(farm):
    time.sleep(2)
    before = cpu_seconds(farm.coordinator.pid)
    time.sleep(10)
    return {"coordinator_rss_mib": resident_kib(farm.coordinator.pid) / 1024,
            "coordinator_cpu_seconds_in_10_s": cpu_seconds(farm.coordinator.pid) - before}


def warm(farm, problem, kernel, runs):
    samples = []
    for run in range(runs + 1):
        begin = time.monotonic()
        document = json.loads(farm.grove("eval", problem, kernel, *SHORT, "--json", check=False))
        wall = time.monotonic() - begin
        result = document["results"][0]["result"]
        stages = {}
        for stage in result["stages"]:
            stages.setdefault(stage["stage"], stage.get("seconds", 0))
        if run == 0:
            continue  # builds the kernel and starts the judge
        sample = {name: stages.get(name, 0) for name in ("build", "start", "judge", "check", "time")}
        sample.update(wall=wall, rest=wall - stages.get("build", 0) - stages.get("judge", 0), verdict=document["results"][0]["verdict"])
        samples.append(sample)
    figures = {f"{name}_ms": 1000 * statistics.median(s[name] for s in samples)
               for name in ("wall", "build", "start", "judge", "check", "time", "rest")}
    begin = time.monotonic()
    for _ in range(10):
        farm.grove("version")
    figures["process_start_ms"] = 100 * (time.monotonic() - begin)
    begin = time.monotonic()
    for _ in range(10):
        farm.grove("workers")
    figures["one_call_ms"] = 100 * (time.monotonic() - begin)
    figures["runs"] = runs
    figures["verdicts"] = sorted({s["verdict"] for s in samples})
    return figures


def queue(farm, problem, folder, count):
    pid = farm.coordinator.pid
    kernels = []
    for i in range(count):  # each its own, since one source (but for comments and spaces) is judged once
        kernels.append(f"{folder}/add{i}.cpp")
        with open(kernels[-1], "w", encoding="utf-8") as file:
            file.write(f"{KERNEL}static const int kOwn = {i};\n")
    before = resident_kib(pid)
    begin = time.monotonic()
    done = []

    def submit():
        out = json.loads(farm.grove("eval", problem, *kernels, *UNTIMED, "--json", check=False))
        done.append(out)

    thread = threading.Thread(target=submit)
    thread.start()
    peak = before
    while thread.is_alive():
        peak = max(peak, resident_kib(pid))
        thread.join(0.2)
    seconds = time.monotonic() - begin
    time.sleep(10)
    after = resident_kib(pid)
    time.sleep(10)
    verdicts = {}
    for result in done[0].get("results", []):
        verdicts[result["verdict"]] = verdicts.get(result["verdict"], 0) + 1
    return {"evaluations": count, "seconds": seconds, "verdicts": verdicts, "coordinator_rss_before_mib": before / 1024,
            "coordinator_rss_peak_mib": peak / 1024, "coordinator_rss_after_10_s_mib": after / 1024,
            "coordinator_rss_after_20_s_mib": resident_kib(pid) / 1024}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build folder, or the root of an installation")
    parser.add_argument("--out", help="JSON file to write")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--queued", type=int, default=1000)
    parser.add_argument("--skip", default="", help="of idle,warm,queue,reopen")
    arguments = parser.parse_args()
    skip = arguments.skip.split(",")
    bin_dir = os.path.abspath(f"{arguments.build}/bin")
    figures = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "machine": platform.platform(), "cpus": os.cpu_count(),
               "load_average": os.getloadavg(), "version": subprocess.run([f"{bin_dir}/grove", "version"], capture_output=True, text=True,
                                                                          check=True).stdout.split("\n")[0]}
    with tempfile.TemporaryDirectory() as folder:
        problem, kernel = f"{folder}/add.py", f"{folder}/add.cpp"
        for path, text in ((problem, PROBLEM), (kernel, KERNEL)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        farm = Farm(bin_dir, folder)
        try:
            if "idle" not in skip:
                figures["idle"] = idle(farm)
            if "warm" not in skip:
                figures["warm"] = warm(farm, problem, kernel, arguments.runs)
            if "queue" not in skip:
                figures["queue"] = queue(farm, problem, folder, arguments.queued)
        finally:
            farm.close()
    program = f"{arguments.build}/tests/benchmarks/reopen_tree"
    for path in (program, f"{arguments.build}/bin/reopen_tree"):
        if "reopen" not in skip and os.path.exists(path):
            figures["reopen"] = subprocess.run([path], capture_output=True, text=True, check=False).stdout.strip().split("\n")
            break
    figures["load_average_at_end"] = os.getloadavg()
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
