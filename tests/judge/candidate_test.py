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


class Kept(torch.nn.Module):
    """Returns one of `count` buffers that it keeps, in turns; as a new tensor of its memory where `views`."""

    def __init__(self, count, views=False):
        super().__init__()
        self.buffers, self.views, self.calls = [torch.empty(8) for _ in range(count)], views, 0

    def forward(self, x):
        buffer = self.buffers[self.calls % len(self.buffers)]
        self.calls += 1
        torch.mul(x, 2, out=buffer)
        return (buffer.view(8), [x.sum()]) if self.views else buffer


class Runs(unittest.TestCase):
    """Timed runs: all calls, then the answer, then the outputs."""

    def run_all(self, model, slots=12, runs=((0,), tuple(range(8)), tuple(range(12)))):
        sent = []
        program = PROGRAM.Program(types.SimpleNamespace(send=sent.append), PROGRAM.CpuDevice(torch), torch)
        program.model = model
        program.slots = [([torch.rand(8)], [torch.full((8,), float("nan")), torch.full((), float("nan"))])
                         for _ in range(slots)]
        for order in runs:
            for arguments, places in program.slots:
                arguments[0].uniform_()
                for place in places:
                    place.fill_(float("nan"))
            program.run({"slots": list(order), "store": "later"})
            self.assertEqual(sent[-1]["type"], "done")
            self.assertEqual(len(sent[-1]["claimed_ns"]), 1)
            wanted = [arguments[0] * 2 for arguments, _ in program.slots]
            for arguments, _ in program.slots:
                arguments[0].fill_(float("nan"))  # as the judge takes them away at the answer
            program.store_kept({"slots": list(order)})
            for index in order:
                self.assertTrue(torch.equal(program.slots[index][1][0], wanted[index]), (order, index))
        return program

    def test_a_buffer_that_is_kept_and_returned_each_time_is_right_in_every_slot(self):
        for count in (1, 2, 5, 11):
            for views in (False, True):
                with self.subTest(count=count, views=views):
                    self.assertTrue(self.run_all(Kept(count, views)).copies)

    def test_one_that_appears_only_after_some_calls_is_right_from_then_on(self):
        class Later(Kept):
            def forward(self, x):
                if self.calls < 25:
                    self.calls += 1
                    return x * 2
                return super().forward(x)

        runs = ((0,), tuple(range(12)), tuple(range(12)), tuple(range(12)), tuple(range(5)))
        self.assertTrue(self.run_all(Later(1), runs=runs).copies)

    def test_fresh_results_are_not_copied(self):
        class Fresh(torch.nn.Module):
            def forward(self, x):
                return x * 2

        self.assertFalse(self.run_all(Fresh()).copies)
        self.assertFalse(self.run_all(Kept(40)).copies)  # more than any run has


class Inputs(unittest.TestCase):
    def tensor(self, shape, strides, dtype="float32"):
        program = on_cpu()
        program.regions = [torch.arange(256 + 24, dtype=torch.float32).view(torch.uint8)]
        return program.tensor({"region": 0, "offset": 1024, "dtype": dtype, "shape": shape, "strides": strides})

    def test_strides_are_those_of_the_memory(self):
        tensor = self.tensor([4, 6], [1, 4])
        self.assertEqual(tensor.stride(), (1, 4))
        self.assertTrue(torch.equal(tensor, torch.arange(256.0, 280.0).view(6, 4).t()))
        self.assertEqual(self.tensor([1, 5], [1, 1]).stride(), (1, 1))

    def test_strides_that_leave_the_tensors_memory_are_refused(self):
        for shape, strides in (([4, 6], [1, 5]), ([4, 6], [6]), ([4, 6], [7, 1]), ([4, 6], [0, 1]), ([4, 6], [26, -11]),
                               ([4], [1, 1])):
            with self.subTest(shape=shape, strides=strides), self.assertRaises(PROGRAM.Failure):
                self.tensor(shape, strides)


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
