#!/usr/bin/env python3
"""The problem runner keeps nothing of a draw or of a result: with gigabytes in each, a leftover is a full device.

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


def load_runner():
    spec = importlib.util.spec_from_file_location("problem_runner", sys.argv[1] + "/worker/judge/python/problem_runner.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Runner("problem", PROBLEM, False, 0)


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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
