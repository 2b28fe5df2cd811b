#!/usr/bin/env python3
"""The Python candidate's own parts, called directly.

    python3 candidate_test.py SOURCE_ROOT
"""

import importlib.machinery
import importlib.util
import sys
import types
import unittest

import torch


def load_program():
    path = sys.argv[1] + "/worker/candidate/grove-candidate-python"
    loader = importlib.machinery.SourceFileLoader("grove_candidate_python", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


PROGRAM = load_program()


def on_cpu():
    return PROGRAM.Program(None, PROGRAM.CpuDevice(torch), torch)


class Observed(unittest.TestCase):
    """What the judge takes is [name, microseconds from 0, kind]; anything else would be a broken protocol."""

    def work(self, *events):
        seen = [types.SimpleNamespace(name=name, self_cpu_time_total=took) for name, took in events]
        profiler = types.SimpleNamespace(events=lambda: seen)
        return {name: took for name, took, _ in on_cpu().observed(profiler, [5000])}

    def test_self_times_below_zero_count_as_nothing(self):
        work = self.work(("aten::mm", 3.5), ("aten::linear", -2.0), ("aten::mm", -1.0))
        self.assertEqual(work, {"aten::mm": 3.5, "aten::linear": 0.0, "call": 5.0})

    def test_times_that_are_no_numbers_are_left_out(self):
        work = self.work(("aten::mm", float("nan")), ("aten::add", float("inf")), ("aten::relu", 2))
        self.assertEqual(work, {"aten::relu": 2.0, "call": 5.0})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
