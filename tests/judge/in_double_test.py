#!/usr/bin/env python3
"""A problem's model in float64 is the same program, less rounded: it takes the branches that it takes as written, and its
tables are as precise as what it computes.

    python3 in_double_test.py SOURCE_ROOT
"""

import sys
import unittest

import torch

sys.path.insert(0, sys.argv[1] + "/worker/judge/python")

import problem_runner  # noqa: E402

HEAD = """
import torch

"""


def evaluated(body, inputs="torch.randn(8, 100)"):
    """The first output as written and in float64; body: of class Model."""
    problem = HEAD + "class Model(torch.nn.Module):\n" + body + f"""
def get_inputs():
    return [{inputs}]
"""
    runner = problem_runner.Runner("problem", problem, False, 0)
    leaves, _ = runner.draw(1)
    return [runner.flatten(runner.run(runner.prepare(leaves, mode)))[0] for mode in (0, 2)]


def asked(expression, inputs="torch.randn(8, 100)"):
    """What a forward that returns whether expression is true says, as written and in float64."""
    return [bool(output) for output in evaluated(f"""
    def forward(self, x):
        return torch.tensor(bool({expression}))
""", inputs)]


class Types(unittest.TestCase):
    def test_a_tensor_says_the_type_that_it_has_as_written(self):
        for expression in (
                "x.dtype == torch.float32", "torch.finfo(x.dtype).eps > 1e-10", "x[0].exp().sum().dtype == torch.float32",
                "x.double().dtype == torch.float64", "x.double().float().dtype == torch.float32",
                "torch.zeros(3).dtype == torch.float32", "torch.zeros(3, dtype=torch.float64).dtype == torch.float64",
                "torch.get_default_dtype() == torch.float32", "torch.fft.rfft(x).dtype == torch.complex64",
                "torch.fft.rfft(x).abs().dtype == torch.float32", "(x * 2).max(1)[0].dtype == torch.float32",
                "x.half().dtype == torch.float16", "(x * torch.ones((), dtype=torch.float64)).dtype == torch.float32",
                "(x * torch.ones(100, dtype=torch.float64)).dtype == torch.float64",
                "torch.cat([x, x]).type_as(x).dtype == torch.float32", "x.long().float().dtype == torch.float32"):
            self.assertEqual(asked(expression), [True, True], expression)

    def test_half_types_and_mixed_ones_too(self):
        half = "torch.randn(8, 100).bfloat16()"
        for expression in ("x.dtype == torch.bfloat16", "(x * 2).dtype == torch.bfloat16", "x.float().dtype == torch.float32",
                           "(x + torch.ones(100)).dtype == torch.float32", "x.float().to(x.dtype).dtype == torch.bfloat16",
                           "x.float().type_as(x).dtype == torch.bfloat16"):
            self.assertEqual(asked(expression, half), [True, True], expression)
        self.assertEqual(asked("x.dtype == torch.float64", "torch.randn(8, 100).double()"), [True, True])

    def test_what_is_half_as_drawn_is_not_rounded_and_what_is_made_half_is(self):
        forward = """
    def forward(self, x):
        return (x.float() / 3).to(torch.bfloat16).float()
"""
        _, precise = evaluated(forward, "torch.randn(8, 100).bfloat16()")
        self.assertFalse(precise.equal(precise.bfloat16().double()))
        _, rounded = evaluated(forward)
        self.assertTrue(rounded.equal(rounded.bfloat16().double()))

    def test_a_cast_is_a_copy_where_it_is_one_as_written(self):
        forward = """
    def forward(self, x):
        y = x.double()
        y += 1
        return x
"""
        single, precise = evaluated(forward)
        self.assertTrue(single.double().equal(precise))
        self.assertEqual(asked("x.float() is x"), [True, True])
        self.assertEqual(asked("x.double() is x"), [False, False])

    def test_an_epsilon_is_that_of_the_type_as_written(self):
        single, precise = evaluated("""
    def forward(self, x):
        return x.relu().clamp(min=torch.finfo(x.dtype).eps).log()
""")
        self.assertLess((single.double() - precise).abs().max().item(), 1e-4)

    def test_the_bits_of_another_type_are_not_to_be_had(self):
        with self.assertRaisesRegex(NotImplementedError, "bits"):
            evaluated("""
    def forward(self, x):
        return x.view(torch.int32)
""")


class Tables(unittest.TestCase):
    EXACT = torch.outer(torch.arange(4096, dtype=torch.float64), 10000.0 ** -(torch.arange(16, dtype=torch.float64) / 16)).cos()

    def table(self, hold, read):
        """What forward reads of a table that __init__ holds, as written and in float64."""
        return evaluated(f"""
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        table = torch.outer(torch.arange(4096).float(), 10000.0 ** -(torch.arange(16).float() / 16)).cos()
        {hold}
    def forward(self, x):
        table = {read}
        return table + 0 * x.sum() + self.weight
""")

    def test_those_that_a_model_makes_itself_are_made_in_float64(self):
        for hold, read in (("self.register_buffer('table', table, persistent=False)", "self.table"),
                           ("self.table = table", "self.table"), ("self._t = [(table, 1)]", "self._t[0][0]"),
                           ("self.t = {'a': table}", "self.t['a']")):
            single, precise = self.table(hold, read)
            self.assertGreater((single.double() - self.EXACT).abs().max().item(), 1e-5, hold)
            self.assertLess((precise - self.EXACT).abs().max().item(), 1e-11, hold)

    def test_what_candidates_are_given_is_exact(self):
        for hold, read in (("self.register_buffer('table', table)", "self.table"),
                           ("self.table = torch.nn.Parameter(table)", "self.table"),
                           ("self.table = torch.nn.Parameter(table); self.all = [self.table]", "self.all[0]")):
            single, precise = self.table(hold, read)
            self.assertTrue(single.double().equal(precise), hold)

    def test_random_ones_stay(self):
        for hold in ("self.register_buffer('table', torch.randn(4096, 16), persistent=False)",
                     "self.table = torch.rand(4096, 16)"):
            single, precise = self.table(hold, "self.table")
            self.assertTrue(single.double().equal(precise), hold)

    def test_those_of_the_first_call_are_made_again(self):
        single, precise = evaluated("""
    def forward(self, x):
        if not hasattr(self, "table"):
            self.table = (torch.arange(100).float() * 41).cos()
        return x * 0 + self.table
""")
        exact = (torch.arange(100, dtype=torch.float64) * 41).cos().expand(8, 100)
        self.assertGreater((single.double() - exact).abs().max().item(), 1e-8)
        self.assertLess((precise - exact).abs().max().item(), 1e-12)

    def test_parameters_are_those_of_the_moment(self):
        problem = HEAD + """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.LSTM(4, 4)
        self.mean = torch.nn.BatchNorm1d(4)
        self.eval()
    def forward(self, x):
        return self.mean(self.rnn(x)[0].sum(0))

def get_inputs():
    return [torch.randn(3, 5, 4)]
"""
        runner = problem_runner.Runner("problem", problem, False, 0)
        leaves, _ = runner.draw(1)
        results = []
        for vary in (False, True):
            if vary:
                self.assertTrue(runner.vary(7))
            single, precise = (runner.flatten(runner.run(runner.prepare(leaves, mode)))[0] for mode in (0, 2))
            self.assertLess((single.double() - precise).abs().max().item(), 1e-5)
            results.append(precise)
        self.assertGreater((results[0] - results[1]).abs().max().item(), 1e-3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
