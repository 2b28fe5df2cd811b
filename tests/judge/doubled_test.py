#!/usr/bin/env python3
"""A problem's model in float64 is the same program, less rounded: it takes the branches that it takes as written.

    python3 doubled_test.py SOURCE_ROOT
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
                "x.type() == 'torch.FloatTensor'", "x.element_size() == 4", "torch.result_type(x, 1) == torch.float32",
                "torch.result_type(x.long(), 1) == torch.int64", "torch.result_type(x.long(), 1.5) == torch.float32",
                "torch.promote_types(torch.float64, torch.float32) == torch.float64",
                "torch.promote_types(torch.int32, torch.int64) == torch.int64",
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

    def test_the_default_type_may_be_changed_and_set_back(self):
        single, precise = evaluated("""
    def forward(self, x):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        assert torch.get_default_dtype() == torch.float64 and torch.zeros(1).dtype == torch.float64
        torch.set_default_dtype(before)
        assert torch.get_default_dtype() == torch.float32 and torch.zeros(1).dtype == torch.float32
        return torch.linspace(0, 1, 100) + 0 * x
""")
        self.assertTrue(precise.equal(torch.linspace(0, 1, 100, dtype=torch.float64).expand(8, 100)))
        self.assertEqual(torch.get_default_dtype(), torch.float32)

    def test_the_bits_of_another_type_are_not_to_be_had(self):
        with self.assertRaisesRegex(NotImplementedError, "bits"):
            evaluated("""
    def forward(self, x):
        return x.view(torch.int32)
""")


class Models(unittest.TestCase):
    def test_tensors_among_attributes_are_in_float64_too(self):
        single, precise = evaluated("""
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(100))
        self.table = torch.randn(100, 30)
    def forward(self, x):
        assert self.table.dtype == torch.float32
        return x * self.weight @ self.table
""")
        self.assertLess((single.double() - precise).abs().max().item(), 1e-4)

    def test_those_that_gradients_are_asked_for_stay_so(self):
        single, precise = evaluated("""
    def __init__(self):
        super().__init__()
        self.t = torch.linspace(0, 1, 100).requires_grad_()
    def forward(self, x):
        with torch.enable_grad():
            return torch.autograd.grad((x * self.t ** 2).sum(), self.t)[0]
""")
        self.assertLess((single.double() - precise).abs().max().item(), 1e-4)

    def test_a_buffer_that_modules_share_has_its_type_in_each(self):
        single, precise = evaluated("""
    def __init__(self):
        super().__init__()
        shared = torch.rand(100)
        self.parts = torch.nn.ModuleList([torch.nn.BatchNorm1d(100) for _ in range(3)]).eval()
        for part in self.parts:
            part.register_buffer("shared", shared)
    def forward(self, x):
        for part in self.parts:
            assert part.running_mean.dtype == torch.float32 and part.num_batches_tracked.dtype == torch.int64
            x = part((x * 0.7).to(part.running_mean.dtype) + part.shared)
        return x
""")
        self.assertLess((single.double() - precise).abs().max().item(), 1e-5)

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
