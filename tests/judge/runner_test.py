#!/usr/bin/env python3
"""The problem runner keeps nothing of a draw or of a result: with gigabytes in each, a leftover is a full device. Of
inputs it keeps the strides.

    python3 runner_test.py SOURCE_ROOT
"""

import gc
import importlib.util
import sys
import unittest
import weakref

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return {"sum": x + y["b"][0], "pair": (x, [x * 2])}

def get_inputs():
    return [torch.randn(8), {"b": [torch.randn(8)]}]

def get_init_inputs():
    return []
"""


sys.path.insert(0, sys.argv[1] + "/worker/judge/python")


def load_runner(problem=PROBLEM):
    spec = importlib.util.spec_from_file_location("problem_runner", sys.argv[1] + "/worker/judge/python/problem_runner.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Runner("problem", problem, False, 0)


class Runner(unittest.TestCase):
    def setUp(self):
        gc.disable()  # a reference cycle would hide behind a collection that happens to come by

    def tearDown(self):
        gc.enable()

    def test_a_draw_is_gone_when_nobody_holds_it(self):
        runner = load_runner()
        leaves, names = runner.draw(1)
        self.assertEqual(names, ["x", "y['b'][0]"])
        held = [weakref.ref(leaf) for leaf in leaves]
        del leaves
        self.assertEqual([ref() for ref in held], [None, None])

    def test_a_result_is_gone_when_nobody_holds_it(self):
        runner = load_runner()
        leaves, _ = runner.draw(1)
        results = runner.flatten(runner.run(runner.prepare(leaves, 0)))
        self.assertEqual(runner.paths, ["['sum']", "['pair'][0]", "['pair'][1][0]"])
        held = [weakref.ref(result) for result in results]
        del results, leaves
        self.assertEqual([ref() for ref in held], [None, None, None])


class Strides(unittest.TestCase):
    def draws(self, inputs, keep=True, count=1):
        runner = load_runner(PROBLEM.replace("torch.randn(8), {\"b\": [torch.randn(8)]}", inputs))
        runner.keep_strides = keep
        return [[leaf.stride() for leaf in runner.draw(seed)[0]] for seed in range(count)], runner

    def test_dense_ones_are_kept(self):
        inputs = "torch.randn(6, 4).t(), {'b': [torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)]}"
        (strides,), runner = self.draws(inputs)
        self.assertEqual(strides, [(1, 4), (60, 1, 15, 3)])
        self.assertEqual(runner.made_strides, strides)

    def test_others_keep_the_order_of_their_dimensions(self):
        (strides,), runner = self.draws("torch.randn(6, 8)[:, ::2].t(), {'b': [torch.zeros(1, 5).expand(3, 5)]}")
        self.assertEqual(strides, [(1, 4), (5, 1)])
        self.assertEqual(runner.made_strides, [(2, 8), (0, 1)])

    def test_row_major_ones_are_none(self):
        (strides,), runner = self.draws("torch.randn(6, 4), {'b': [torch.randn(0, 4).t(), torch.randn(())]}")
        self.assertEqual(strides, [(4, 1), (1, 1), ()])
        self.assertEqual(runner.made_strides[0::2], [None, None])

    def test_all_are_row_major_where_that_is_asked_for(self):
        inputs = "torch.randn(6, 4).t(), {'b': [torch.randn(6, 1).t(), torch.randn(4, 6)[::2]]}"
        (strides,), _ = self.draws(inputs, keep=False)
        self.assertEqual(strides, [(6, 1), (6, 1), (6, 1)])

    def test_they_are_those_of_the_first_draw(self):
        inputs = "torch.randn(6, 6) if torch.rand(()) < 0.5 else torch.randn(6, 6).t(), {'b': [torch.randn(3)]}"
        draws, _ = self.draws(inputs, count=12)
        self.assertEqual(draws, draws[:1] * 12)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
