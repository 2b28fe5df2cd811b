#!/usr/bin/env python3
"""What `grove problem check` finds in many problems: a judge for each, several at once, bounded in time; can be continued.

    python3 tests/gpu/problem_findings.py LIBEXEC FOLDER... [--device cuda] [--jobs 6] [--seconds 140] [--out findings.json]

LIBEXEC is the folder of grove-judge. Files that the output names already are left out.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "judge"))
from harness import Judge  # noqa: E402


def look(path, options, deadline):
    left = deadline - time.time()
    if left < 15:
        return None
    with open(path, encoding="utf-8") as file:
        source = file.read()
    judge = None
    try:
        judge = Judge(options.libexec, device=options.device, python=options.python, threads=2,
                      extra=("--load-seconds", str(int(min(left, options.most)))))
        judge.channel.send({"type": "load", "id": 1, "check": True, "options": {},
                            "problem": {"name": os.path.basename(path)[:-3], "format": "PROBLEM_FORMAT_KERNELBENCH", "source": source}})
        answer = judge.loaded(min(left, options.most) + 5)
        if answer["type"] != "loaded":
            return {"failed": answer["message"][:300]}
        description = answer["description"]
        return {"seconds": description["reference_seconds"], "bytes": description["memory_bytes"], "findings": description["findings"]}
    except (OSError, EOFError) as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    finally:
        if judge is not None:
            judge.process.kill()
            judge.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("libexec")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--most", type=float, default=60, help="seconds for one problem")
    parser.add_argument("--out", default="findings.json")
    options = parser.parse_args()
    results = {}
    if os.path.exists(options.out):
        with open(options.out, encoding="utf-8") as file:
            results = json.load(file)
    names = {}
    for folder in options.folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                names[os.path.basename(os.path.normpath(folder)) + "/" + name[:-3]] = os.path.join(folder, name)
    deadline = time.time() + options.seconds
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(look, path, options, deadline): name for name, path in names.items() if name not in results}
        for done in concurrent.futures.as_completed(waiting):
            if done.result() is not None:
                results[waiting[done]] = done.result()
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=0, sort_keys=True)
    counts, serious = collections.Counter(), collections.Counter()
    for name, result in sorted(results.items()):
        for finding in result.get("findings", []):
            counts[finding["id"]] += 1
            serious[finding["id"]] += finding["serious"]
            if finding["id"] != "memory":
                print(f"{name}: {'SERIOUS ' if finding['serious'] else ''}{finding['id']}: {finding['what']}")
        if "failed" in result:
            print(f"{name}: not loaded: {result['failed']}")
    print(f"{len(results)} of {len(names)} problems looked at,",
          sum(1 for r in results.values() if any(f["serious"] for f in r.get("findings", []))), "with serious findings,",
          sum("failed" in r for r in results.values()), "not loaded")
    for name, count in counts.most_common():
        print(f"  {name}: {count}, serious {serious[name]}")


if __name__ == "__main__":
    main()
