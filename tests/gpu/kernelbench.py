#!/usr/bin/env python3
"""KernelBench as it is: every problem with itself as the candidate, through the whole product.

    python3 kernelbench.py --bundle DIR --problems KernelBench/ --out DIR [--levels 1,2,3] [--stride N] [--offset N] [--clients N] [--seconds S]

--problems is a checkout's folder with level1/, level2/, level3/ (fetch it yourself; nothing of it is part of this project). The candidate is the
problem's own text with Model renamed ModelNew, so it should come out CORRECT and SAME. SAME, FASTER, SLOWER and UNCLEAR are the service's own words
(by interval and the device's resolution; --data takes a folder that `grove calibrate --data` has filled); whether the interval contains 1 or the speedup is within 5 % of it is counted beside them.
Writes one JSON line per problem to OUT/kernelbench.jsonl and skips those that are there already, so that it can be continued; those that had no answer,
no memory or no time that could be measured are tried again then. Prints a table. Exit code 1 where a problem that loads came out as none of these four.
--clients problems are in hand at once (of each, one process of the judge and one of the candidate), so memory is bounded by that many of the largest ones;
what is timed has its GPU for itself all the same. --seconds stops between problems, with exit code 75. --smaller makes them small enough for --device cpu: all sizes, or batches alone where the model does not load so.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from smaller import smaller


def as_candidate(source):
    """The problem as its own candidate."""
    source = re.sub(r"^class Model\b", "class ModelNew", source, flags=re.M)
    return re.sub(r"\bsuper\(Model\s*,", "super(ModelNew,", source)


def classify(result):
    verdict = result.get("verdict", "NONE").replace("VERDICT_", "")
    if verdict != "CORRECT":
        return verdict, 0.0, 0.0, 0.0
    timing = (result.get("timing", {}).get("baselines") or [{}])[0]
    speedup, low, high = (timing.get(k, 0.0) for k in ("speedup", "speedup_low", "speedup_high"))
    return timing.get("comparison", "").removeprefix("COMPARISON_") or "UNCLEAR", speedup, low, high


NO_ANSWER = "no answer within 300 s"
COMPARED = {"SAME", "FASTER", "SLOWER", "UNCLEAR"}


def again(row):
    """Whether it says nothing of the problem, so that whoever continues asks again."""
    return row["outcome"] in {"UNMEASURABLE", "LIMIT_EXCEEDED", "TIMED_OUT"} or row["reason"] == NO_ANSWER


def near(row):
    return row["outcome"] in COMPARED and (row["low"] <= 1.0 <= row["high"] or abs(row["speedup"] - 1.0) <= 0.05)


def evaluate(grove, env, device, path, folder, sizes):
    """One row of the table: the problem of `path` with itself as the candidate, its sizes changed by the first of `sizes` with which it loads. None
    when it was interrupted."""
    for size in sizes:
        row = evaluate_one(grove, env, device, path, folder, size)
        if row is None or row["outcome"] != "NONE":
            break
    return row


def evaluate_one(grove, env, device, path, folder, size):
    start = time.monotonic()
    name = f"{path.parent.name}/{path.name}"
    problem, candidate = (pathlib.Path(folder, f"{what}_{path.parent.name}_{path.name}") for what in ("problem", "candidate"))
    source = size(path.read_text())
    problem.write_text(source)
    candidate.write_text(as_candidate(source))
    try:
        run = subprocess.run([grove, "eval", str(problem), str(candidate), "--device", device.split(":")[0], "--json", "--trials", "2", "--max-time", "1"],
                             capture_output=True, text=True, env=env, timeout=300)
        if run.returncode == 130:
            return None
        document = json.loads(run.stdout)
        results = document.get("results") or []
        result = results[0].get("result") or {} if results else {}
        reason = result.get("reason") or document.get("state_reason") or run.stderr[-500:]
    except subprocess.TimeoutExpired:
        result, reason = {}, NO_ANSWER
    except ValueError:
        result, reason = {}, run.stderr[-500:]
    outcome, speedup, low, high = classify(result)
    timing = (result.get("timing", {}).get("baselines") or [{}])[0]
    return {"problem": name, "outcome": outcome, "speedup": speedup, "low": low, "high": high, "resolution": timing.get("resolution"),
            "seconds": round(time.monotonic() - start, 2), "reason": reason[:600],
            "stages": {stage["stage"]: round(stage["seconds"], 3) for stage in result.get("stages", [])}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--problems", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--device", default="cuda", help="cpu, cuda (all GPUs) or cuda:N")
    parser.add_argument("--data", help="data folder of the service, kept (default: a new one)")
    parser.add_argument("--smaller", action="store_true", help="sizes that a CPU can do (smaller.py)")
    args = parser.parse_args()
    sizes = [smaller, lambda source: smaller(source, features=False)] if args.smaller else [str]
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    journal = out / "kernelbench.jsonl"
    done = {}
    if journal.exists():
        for line in journal.read_text().splitlines():
            row = json.loads(line)
            done[row["problem"]] = row
    done = {name: row for name, row in done.items() if not again(row)}
    files = []
    for level in args.levels.split(","):
        found = list(pathlib.Path(args.problems, f"level{level}").glob("*.py"))
        files += sorted(found, key=lambda p: int(p.name.split("_")[0]))
    files = files[args.offset :: args.stride]

    scratch = tempfile.mkdtemp(prefix="grove-kernelbench-")
    data = args.data or os.path.join(scratch, "data")
    grove = str(pathlib.Path(args.bundle, "bin", "grove").resolve())
    port_file = os.path.join(scratch, "address")
    up = subprocess.Popen([grove, "up", "--device", args.device, "--data", data, "--listen", "127.0.0.1:0", "--port-file", port_file],
                          stdout=subprocess.DEVNULL, stderr=open(out / "kernelbench-up.log", "w"))
    begin = time.monotonic()
    while not (os.path.exists(port_file) and os.path.getsize(port_file)):
        if up.poll() is not None or time.monotonic() - begin > 60:
            sys.exit((out / "kernelbench-up.log").read_text())
        time.sleep(0.05)
    env = dict(os.environ, GROVE_COORDINATOR=pathlib.Path(port_file).read_text().strip())
    waiting = [path for path in files if f"{path.parent.name}/{path.name}" not in done]
    lock = threading.Lock()

    def work(rows):
        while True:
            with lock:
                if not waiting or time.monotonic() - begin > args.seconds:
                    return
                path = waiting.pop(0)
            row = evaluate(grove, env, args.device, path, scratch, sizes)
            if row is None:
                return
            if row["outcome"] == "NONE":
                time.sleep(1)  # a service that ends takes some time to be gone
            if up.poll() is not None:  # what it could not be asked for says nothing of a problem
                sys.exit(f"grove up ended: {(out / 'kernelbench-up.log').read_text()[-2000:]}")
            with lock:
                done[row["problem"]] = row
                rows.write(json.dumps(row) + "\n")
                rows.flush()
                if row["outcome"] != "SAME":
                    print("{problem}: {outcome} {speedup:.3f} [{low:.3f}, {high:.3f}] {reason:.300}".format(**row), flush=True)

    try:
        with open(journal, "a") as rows, concurrent.futures.ThreadPoolExecutor(args.clients) as clients:
            try:
                for client in [clients.submit(work, rows) for _ in range(args.clients)]:
                    client.result()
            except BaseException:
                waiting.clear()  # what is in hand ends, and nothing else begins
                raise
        if waiting:
            print(f"stopped with {len(waiting)} problems left; run again to continue")
    finally:
        up.send_signal(signal.SIGINT)
        try:
            up.wait(40)
        except subprocess.TimeoutExpired:
            up.kill()
    counts = collections.defaultdict(collections.Counter)
    for name, row in done.items():
        counts[name.split("/")[0]][row["outcome"]] += 1
    for level in sorted(counts):
        of_level = [row for name, row in done.items() if name.startswith(f"{level}/")]
        print(level, dict(counts[level]), f"with 1 in the interval or within 5 %: {sum(map(near, of_level))} of {len(of_level)}")
    print(f"{len(done)} problems, median {sorted(r['seconds'] for r in done.values())[len(done) // 2]:.1f} s each" if done else "none")
    return 75 if waiting else 1 if any(row["outcome"] not in COMPARED | {"NONE"} or row["reason"] == NO_ANSWER for row in done.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
