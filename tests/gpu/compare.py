#!/usr/bin/env python3
"""Whether the comparison of outputs says the same on the GPU as on the CPU.

    python3 tests/gpu/compare.py [--arch sm_90] [--nvcc nvcc] [--cxx g++] [--source DIR]

Builds tests/judge/compare_gpu_test.cu with the judge's own sources (DIR, by default those that this script lies among) and runs it, where there
is no whole build to run it in. Exits with the number of comparisons that came out differently.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--source", default=str(pathlib.Path(__file__).resolve().parents[2]))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for source in ("worker/judge/compare.cc", "common/wire/dtype.cc"):
            objects.append(os.path.join(folder, os.path.basename(source) + ".o"))
            subprocess.run([options.cxx, "-std=c++20", "-O2", "-I", options.source, "-c", os.path.join(options.source, source),
                            "-o", objects[-1]], check=True)
        program = os.path.join(folder, "compare_gpu_test")
        subprocess.run([options.nvcc, "-std=c++17", "-O2", f"-arch={options.arch}", "-I", options.source,
                        os.path.join(options.source, "tests/judge/compare_gpu_test.cu"),
                        os.path.join(options.source, "worker/judge/compare_cuda.cu"), *objects, "-o", program], check=True)
        return subprocess.run([program], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
