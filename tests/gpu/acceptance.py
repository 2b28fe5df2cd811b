#!/usr/bin/env python3
"""All that a GPU has to show, one step after the other, within the time that there is; goes on where it stopped.

    python3 acceptance.py --bundle DIR --out DIR [--problems KernelBench/] [--seconds S] [--only STEP,...] [--list]

Steps: `setup` (judge and candidate for this host), the classes of the audit, the scripts of this folder that give a table, and, with --problems,
KernelBench's problems against themselves. Each writes what it prints to OUT/STEP.txt and a line to OUT/acceptance.jsonl (step, exit code, seconds,
device, last line). A step that has a line with exit code 0 is not run again, and none is begun that took longer, where it has been measured, than is
left of --seconds; so a table that takes an hour can be made in several short holds of a machine, when OUT is kept. `setup` builds each time (a minute
with 16 processors) unless --no-setup; on a machine with several GPUs run it once, then one of this for each with that and an OUT of its own (comparison,
agreement, faults and throughput are made on the first). Exit code: 0 all steps have passed, 1 one of them failed, 75 there are steps left.
"""

import argparse
import datetime
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LEFT = 75  # EX_TEMPFAIL: ask again


def steps(bundle, out, python, device, problems):
    """(name, seconds that it took on an H200 with 16 cores, command). What fools an evaluator first: most depends on it."""
    grove = str(bundle / "bin/grove")
    script = lambda name, *rest: [python, str(HERE / (name + ".py")), *rest]  # noqa: E731
    data = ["--data", str(out / "data")]  # a coordinator of its own: the GPU is the one that is named
    audits = dict(semantics=215, controls=320, timing=340, fake=225, harness=130, host=75, replay=80, build=26)
    for name, seconds in audits.items():
        yield "audit-" + name, seconds, [grove, "audit", "--device", device, "--class", name, *data]
    yield "correctness", 120, script("correctness", str(bundle / "libexec/grove"))
    yield "profile", 60, script("run", "--bundle", str(bundle), "--out", str(out), "--only", "profile", "--device", device)
    yield "comparison", 40, script("compare")
    yield "agreement", 130, script("agreement", str(bundle), "--quick")
    yield "faults", 135, script("faults", "--bundle", str(bundle), "--out", str(out))
    yield "calibration", 200, [grove, "calibrate", "--device", device, "--runs", "80", "--max-seconds", "170", *data]
    yield "throughput", 370, script("throughput", "--bundle", str(bundle), "--out", str(out))
    if problems:
        yield "kernelbench", 60, script("kernelbench", "--bundle", str(bundle), "--problems", problems, "--out", str(out), "--clients", "3", "--device", device)


def device_name():
    done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no GPU"


def run(name, command, env, out, most=None):
    """The exit code (124 after `most` seconds), and the last line of what it printed."""
    path = out / (name + ".txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("$ " + shlex.join(command) + "\n")
        file.flush()
        try:
            code = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, check=False, timeout=most).returncode
        except subprocess.TimeoutExpired:
            code = 124
    lines = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return code, lines[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--problems", default="", help="a checkout's folder with level1/, level2/, level3/")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", default="", help="names of steps, with commas between them")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--no-setup", action="store_true", help="judge and candidate are built")
    parser.add_argument("--list", action="store_true", help="say what is left, and run nothing")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    bundle, out = options.bundle.resolve(), options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    record = out / "acceptance.jsonl"
    passed = set()
    if record.exists():
        lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
        passed = {line["step"] for line in lines if line["exit"] == 0}
    every = list(steps(bundle, out, options.python, options.device, options.problems))
    only = [name for name in options.only.split(",") if name]
    for name in only:
        if name not in [step for step, _, _ in every]:
            parser.error(f"there is no step {name}; they are " + ", ".join(step for step, _, _ in every))
    todo = [step for step in every if step[0] not in passed and (not only or step[0] in only)]
    if options.list:
        for name, seconds, command in todo:
            print(f"{name:16} {seconds:4} s  {shlex.join(command)}")
        return 0
    env = dict(os.environ, PATH=f"{bundle / 'bin'}:{os.environ['PATH']}", PYTHONUNBUFFERED="1")
    env.pop("GROVE_COORDINATOR", None)
    code, last = (0, "") if options.no_setup else run("setup", [str(bundle / "bin/grove-worker"), "setup"], env, out)
    if code != 0:
        print(f"setup failed ({last}); see {out / 'setup.txt'}", file=sys.stderr)
        return 1
    failed, left = [], []
    for name, seconds, command in todo:
        rest = end - time.monotonic()
        if seconds > rest:
            left.append(name)
            continue
        most = None if rest == float("inf") else rest
        if name == "kernelbench" and most:  # what is in hand has time to end
            command = [*command, "--seconds", str(int(most - 25))]
        begin = time.monotonic()
        code, last = run(name, command, env, out, most)
        took = time.monotonic() - begin
        line = dict(step=name, exit=code, seconds=round(took, 1), device=device_name(), last=last, at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"))
        with open(record, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{name:16} exit {code:3} {took:6.1f} s  {last[:120]}", flush=True)
        if code == LEFT:
            left.append(name)
        elif code != 0:
            failed.append(name)
    for title, names in (("failed", failed), ("left", left)):
        if names:
            print(title + ": " + ", ".join(names))
    return 1 if failed else LEFT if left else 0


if __name__ == "__main__":
    sys.exit(main())
