#!/usr/bin/env python3
"""How long extensions take to build: ours against torch's load_inline on the same machine, and whether both do the same.

    python3 extension_builds.py --bundle DIR --out DIR [--only NAME,...] [--parallel N]

For each file of candidates/extensions: load_inline as it is (N at a time), and the way that a worker builds it
(record_extensions.py: a new process that imports torch, runs the candidate's text and compiles). Then a process for each object makes the same
calls with the same inputs; outputs are compared bit by bit, errors and documentation word by word; and the machine code of both objects is compared. Last, `grove eval` of a KernelBench candidate says what its build cost in the product. Needs `grove-worker setup` to have run.
Writes OUT/extension_builds.json and prints a table. Exit code 1 when something differs.
"""

import argparse
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

# Runs in a process of its own: load_inline with nothing of ours, timed without the import of torch.
BASELINE = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
import torch
from torch.utils.cpp_extension import load_inline
case = __import__(sys.argv[2])
begin = time.perf_counter()
load_inline(name="grove_" + sys.argv[2], cpp_sources=case.CPP, cuda_sources=case.CUDA, functions=case.FUNCTIONS, **getattr(case, "OPTIONS", {}))
print(json.dumps({"seconds": time.perf_counter() - begin}))
"""


def load(path, name):
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, str(path), loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def observe(case, module, torch):
    """What calls of the module do, with inputs that depend on the seed alone."""
    torch.manual_seed(7)
    seen = [sorted(name for name in dir(module) if not name.startswith("__"))]
    seen += [getattr(module, name).__doc__ for name in seen[0]]
    for function, arguments in case.calls(module, torch):
        try:
            result = function(*arguments)
            torch.cuda.synchronize()
            parts = result if isinstance(result, (tuple, list)) else [result]
            seen.append([type(result).__name__] + [part.cpu().contiguous().view(torch.uint8).numpy().tobytes().hex()
                                                   if isinstance(part, torch.Tensor) and part.dim() > 0 else repr(part) for part in parts])
        except Exception as error:
            text = str(error).split("\nException raised")[0]
            seen.append([type(error).__name__, re.sub(r"tensor\(.*", "", text, flags=re.S)])
    return seen


def observe_alone(argv):
    """observe NAME OBJECT: what `observe` gives, as JSON. A process for each object: two that define the same kernels and hold a C++ library of
    their own each are not loaded into one where they are used, and ended it by a signal here."""
    name, path = argv
    import torch

    sys.path.insert(0, str(HERE / "candidates" / "extensions"))
    case = __import__(name)
    print(json.dumps(observe(case, load(path, f"grove_{name}"), torch)))
    return 0


def compare(python, name, ours, theirs):
    """(whether both do the same, what was seen)."""
    seen, said, ends = [], [], []
    for whose, path in (("ours", ours), ("theirs", theirs)):
        # A compiler that links its C++ library into what load_inline builds (seen with g++ 13 outside /usr) makes an object whose first exception ends
        # the process; with the library that torch has, loaded first, both throw alike.
        done = subprocess.run([python, "-X", "faulthandler", __file__, "observe", name, path], capture_output=True, text=True,
                              env=dict(os.environ, LD_PRELOAD="libstdc++.so.6"))
        try:
            seen.append(json.loads(done.stdout.splitlines()[-1]))
        except (IndexError, ValueError):
            return False, f"{whose}: exit {done.returncode}: {done.stderr[-1000:].strip()}"
        ends.append(done.returncode)
        if done.returncode != 0:  # all was seen, and then the process did not end as it should
            said.append(f"{whose} ends with {done.returncode}: {done.stderr[-600:].strip()}")
    a, b = seen
    differences = [f"ours: {str(x)[:300]}, theirs: {str(y)[:300]}" for x, y in zip(a, b) if x != y]
    if len(a) != len(b):
        differences.append(f"ours: {len(a)} observations, theirs: {len(b)}")
    errors = sum(isinstance(x, list) and str(x[0]).endswith("Error") for x in a)
    return not differences and ends == [0, 0], "; ".join(differences + said + [f"{len(a)} observations, {errors} of them errors"])


def machine_code(path):
    """SASS by function, in any order."""
    text = subprocess.run(["cuobjdump", "-sass", str(path)], capture_output=True, text=True).stdout
    parts = re.split(r"^\s*Function : ", text, flags=re.M)[1:]
    return sorted(re.sub(r"_GLOBAL__N__[0-9a-zA-Z_]*", "", re.sub(r"\.{5,}.*", "", part, flags=re.S)) for part in parts)


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "observe":
        return observe_alone(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--parallel", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--no-product", action="store_true")
    args = parser.parse_args()
    bundle, out = pathlib.Path(args.bundle).resolve(), pathlib.Path(args.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    libexec = bundle / "libexec" / "grove"
    work = pathlib.Path(tempfile.mkdtemp(prefix="grove-extensions-"))
    names = sorted(path.stem for path in (HERE / "candidates" / "extensions").glob("*.py"))
    if args.only:
        names = [name for name in names if name in args.only.split(",")]
    runtime = pathlib.Path(os.environ.get("GROVE_RUNTIME") or os.path.expanduser("~/.local/share/grove/runtime"))
    report = {"cases": {}}
    glue = next(iter(sorted((runtime / "torch-glue").glob("*.o"))), None)
    if glue is None:
        begin, glue = time.perf_counter(), work / "glue.o"
        subprocess.run([args.python, str(libexec / "torch_lite_build.py"), str(libexec / "torch_lite"), str(glue)], check=True)
        report["glue_seconds"] = round(time.perf_counter() - begin, 1)
    sys.path.insert(0, str(HERE / "candidates" / "extensions"))
    arch = subprocess.run([args.python, "-c", "import torch; print('%d.%d' % torch.cuda.get_device_capability())"], capture_output=True,
                          text=True).stdout.strip()
    arch += "a" if int(arch.split(".")[0]) >= 9 else ""
    environment = dict(os.environ, TORCH_CUDA_ARCH_LIST=arch)

    def ours(name):
        case = __import__(name)
        folder = work / "ours" / name
        folder.mkdir(parents=True)
        call = f"name={'grove_' + name!r}, cpp_sources={case.CPP!r}, cuda_sources={case.CUDA!r}, functions={case.FUNCTIONS!r}"
        call += "".join(f", {key}={value!r}" for key, value in getattr(case, "OPTIONS", {}).items())
        (folder / "candidate.py").write_text(f"import torch\nfrom torch.utils.cpp_extension import load_inline\nmodule = load_inline({call})\n")
        begin = time.perf_counter()
        done = subprocess.run([args.python, str(libexec / "record_extensions.py"), str(folder / "candidate.py"), str(folder / "out"),
                               str(libexec / "torch_lite"), str(glue)], capture_output=True, text=True,
                              env=dict(environment, TORCH_EXTENSIONS_DIR=str(folder / "build")))
        seconds = time.perf_counter() - begin
        if done.returncode != 0:
            return {"seconds": seconds, "how": "failed", "log": (done.stdout + done.stderr)[-2000:]}
        item = json.loads((folder / "out" / "manifest.json").read_text())["extensions"][0]
        return {"seconds": seconds, "how": item["how"], "object": str(folder / "out" / item["file"])}

    def theirs(name):
        folder = work / "theirs" / name
        folder.mkdir(parents=True)
        done = subprocess.run([args.python, "-c", BASELINE, str(HERE / "candidates" / "extensions"), name], capture_output=True, text=True,
                              env=dict(environment, TORCH_EXTENSIONS_DIR=str(folder)))
        if done.returncode != 0:
            return {"seconds": 0.0, "log": (done.stdout + done.stderr)[-2000:]}
        return {"seconds": json.loads(done.stdout.strip().splitlines()[-1])["seconds"],
                "object": str(next(folder.rglob(f"grove_{name}.so")))}

    ours(names[0])  # torch's files into the page cache, for both
    shutil.rmtree(work / "ours")
    built = {name: ours(name) for name in names if name != "needs_full_headers"}
    baseline = {}
    with concurrent.futures.ThreadPoolExecutor(args.parallel) as pool:
        waiting = {name: pool.submit(theirs, name) for name in names}
        if "needs_full_headers" in names:
            built["needs_full_headers"] = pool.submit(ours, "needs_full_headers").result()
        baseline.update({name: future.result() for name, future in waiting.items()})

    failed = 0
    print("| extension | load_inline s | ours s | times | built with | outputs | machine code |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        a, b = built[name], baseline[name]
        same, said, sass = False, "", None
        if "object" in a and "object" in b:
            same, said = compare(args.python, name, a["object"], b["object"])
            if shutil.which("cuobjdump"):
                first, second = machine_code(a["object"]), machine_code(b["object"])
                sass = len(first) > 0 and first == second
        failed += not same or sass is False
        row = {"load_inline_seconds": round(b["seconds"], 2), "seconds": round(a["seconds"], 2), "how": a["how"], "same": same, "said": said,
               "same_machine_code": sass, "log": a.get("log", "") + b.get("log", "")}
        row["times"] = round(b["seconds"] / a["seconds"], 1) if a["seconds"] else 0
        report["cases"][name] = row
        print(f"| {name} | {row['load_inline_seconds']} | {row['seconds']} | {row['times']} | {row['how'][:60]} | "
              f"{'same' if same else 'DIFFER: ' + said[:600]} | {sass} |", flush=True)
    if not args.no_product:
        report["product"] = product(args, bundle, out)
        print("product:", report["product"])
    (out / "extension_builds.json").write_text(json.dumps(report, indent=1))
    shutil.rmtree(work, ignore_errors=True)
    return 1 if failed else 0


def product(args, bundle, out):
    sys.path.insert(0, str(HERE))
    import run as whole

    class Options:
        pass

    options = Options()
    options.bundle, options.out, options.device, options.no_setup = bundle, out / "product", "cuda:0", True
    service = whole.Run(options)
    service.env["GROVE_PYTHON"] = args.python
    service.start()
    try:
        problem = service.examples / "problems" / "cuda" / "layernorm.py"
        code, result, seconds = service.evaluate(problem, HERE / "candidates" / "layernorm_load_inline.py", timeout=120)
        build = result.get("build", {})
        return {"verdict": result.get("verdict"), "reason": result.get("reason"), "build_seconds": build.get("seconds"), "command": build.get("command"),
                "eval_seconds": round(seconds, 2)}
    finally:
        service.stop()


if __name__ == "__main__":
    sys.exit(main())
