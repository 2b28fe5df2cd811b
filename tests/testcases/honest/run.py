#!/usr/bin/env python3
"""Honest programs: each candidate of this folder does its problem's work in another way than the reference, as kernels
do, and has to be CORRECT. One coordinator and one worker evaluate them all.

    run.py BUILD                       all of them
    run.py BUILD norms losses/ctc      those whose names contain one of the words
    run.py BUILD --every 4             about every fourth, by its name, for a quick look
    run.py BUILD --repeat 3            each several times: verdicts must not depend on the draw
    run.py BUILD --timed               also time them for a moment: more draws, compared between timed runs
    run.py BUILD --failures            say nothing of those that are CORRECT
    run.py BUILD --coordinator ADDR    on a coordinator that runs already
    run.py BUILD --without WORD        not those whose names contain it
    run.py BUILD --ahead 2             how many wait while one is judged
    run.py BUILD --themselves FOLDER   instead of the pairs the problems (.py) of this folder, each its own candidate

A pair is NAME.py or NAME.toml (the problem) and NAME.cpp or NAME.new.py (the candidate)."""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "gpu"))
from kernelbench import as_candidate  # noqa: E402

# Known faults (docs/correctness.md, "Limits of it"): honest, and not CORRECT in some evaluations. A line falls out where
# one is mended.
KNOWN = {"ties/beam_step": "WRONG"}
HERE = os.path.dirname(os.path.abspath(__file__))


def pairs():
    for folder, _, files in sorted(os.walk(HERE)):
        for file in sorted(files):
            stem, kind = os.path.splitext(file)
            if folder == HERE or stem.endswith(".new") or kind not in (".py", ".toml"):
                continue
            candidates = [c for c in (stem + ".cpp", stem + ".new.py") if c in files]
            assert len(candidates) == 1, f"{folder}/{stem}: one candidate is wanted, there are {len(candidates)}"
            yield os.path.relpath(os.path.join(folder, stem), HERE), os.path.join(folder, file), os.path.join(folder, candidates[0])


def themselves(folder, into):
    """Each problem of `folder`, with its own text as the candidate (written to the folder `into`)."""
    for where, _, files in sorted(os.walk(folder)):
        for file in sorted(files):
            problem = os.path.join(where, file)
            source = open(problem, encoding="utf-8").read() if file.endswith(".py") else ""
            if not re.search(r"^class Model\b", source, flags=re.M) or re.search(r"^class ModelNew\b", source, flags=re.M):
                continue
            name = os.path.relpath(problem, folder)[: -len(".py")]
            candidate = os.path.join(into, name.replace(os.sep, "-") + ".new.py")
            with open(candidate, "w", encoding="utf-8") as file:
                file.write(as_candidate(source))
            yield name, problem, candidate


def evaluate(grove, where, problem, candidate, timed):
    rest = ["--min-time", "0.05", "--max-time", "0.2"] if timed else ["--no-timing"]
    for _ in range(5):
        done = subprocess.run([grove, "eval", problem, candidate, "--device", "cpu", "--coordinator", where, "--json", "-q", *rest],
                              capture_output=True, text=True)
        try:
            answer = json.loads(done.stdout)["results"][0]
        except (ValueError, KeyError, IndexError):
            return "REFUSED", (done.stderr + done.stdout).strip()[:700]
        # What a busy machine keeps from being timed says nothing of the program.
        if "valid pairs of samples" not in answer["reason"] and "ask again" not in answer["reason"]:
            break
    return answer["verdict"], answer["reason"][:700]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--timed", action="store_true")
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--coordinator")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--ahead", type=int, default=1)
    parser.add_argument("--themselves")
    options = parser.parse_args()
    grove = os.path.abspath(os.path.join(options.build, "bin", "grove"))
    with tempfile.TemporaryDirectory() as folder:
        every = themselves(options.themselves, folder) if options.themselves else pairs()
        wanted = [p for p in every if not options.words or any(w in p[0] for w in options.words)]
        wanted = [p for p in wanted if not any(w in p[0] for w in options.without)]
        wanted = [p for p in wanted if (zlib.crc32(p[0].encode()) >> 8) % options.every == 0]
        if not wanted:
            sys.exit("no such pair")
        service, where = None, options.coordinator
        if not where:
            port = os.path.join(folder, "port")
            log = open(os.path.join(folder, "log"), "w", encoding="utf-8")
            service = subprocess.Popen([grove, "up", "--device", "cpu", "--workers", "1", "--data", os.path.join(folder, "data"),
                                        "--listen", "127.0.0.1:0", "--port-file", port], stdout=log, stderr=log)
            for _ in range(600):
                if os.path.exists(port) and os.path.getsize(port):
                    break
                if service.poll() is not None:
                    sys.exit("grove up did not start: " + open(log.name, encoding="utf-8").read())
                time.sleep(0.1)
            where = open(port, encoding="utf-8").read().strip()
        failed = []
        try:
            # While one is judged the worker builds the next and starts what it needs.
            def of(pair):
                return pair[0], *evaluate(grove, where, pair[1], pair[2], options.timed)
            several = concurrent.futures.ThreadPoolExecutor(options.ahead + 1)
            try:
                for name, verdict, why in several.map(of, [pair for pair in wanted for _ in range(options.repeat)]):
                    known = KNOWN.get(name) == verdict
                    if verdict != "CORRECT" or not options.failures:
                        print(f"{name:44} {verdict:14}{'  (known)' if known else ''}", flush=True)
                    if verdict != "CORRECT" and not known:
                        failed.append(name)
                        print("    " + why.replace("\n", "\n    "), flush=True)
            finally:
                several.shutdown(cancel_futures=True)
        finally:
            if service:
                service.terminate()
                service.wait()
    print(f"{len(wanted)} pairs, {len(failed)} verdicts that are not CORRECT" + "".join("\n  " + n for n in failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
