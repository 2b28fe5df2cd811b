"""A rival beside the candidate: the real judge with two real candidates, without a sandbox."""

import argparse
import os
import socket
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness

PROBLEM = """name = "twice"
torchscript = '''
def forward(x: Tensor) -> Tensor:
    return x * 2.0
'''
[[inputs]]
name = "x"
shape = [4096]
[[held_out]]
x = [64]
"""

STRIDED = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.arange(80.0)

def get_inputs():
    return [torch.randn(80, 48).t()]
"""

WORK = """#include <grove/kernel.h>
#include <stdlib.h>
GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  float* y = (float*)args->outputs[0].data;
  const int64_t n = args->inputs[0].shape[0];
  volatile float known_later = 1.0f;  // or the compiler leaves the work out
  const float one = known_later;
  static int calls;
  ++calls;
  AT_CALL
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i];
    for (int s = 0; s < STEPS; ++s) v = v * one;
    y[i] = v * 2.0f;
  }
  return 0;
}
"""


# What is said where a machine has more to do than processors.
BUSY = ("valid pairs of samples", "more work than processors", "threads that never rest", "ask again")


class Rivals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.judge = harness.Judge(ARGS.libexec, python=ARGS.python)
        loaded = cls.judge.load(PROBLEM, "PROBLEM_FORMAT_NATIVE")
        assert loaded["type"] == "loaded", loaded
        cls.built = {}

    @classmethod
    def tearDownClass(cls):
        cls.judge.close()
        cls.folder.cleanup()

    def kernel(self, steps=40, at_call=""):
        key = f"k{len(self.built)}"
        if (steps, at_call) not in self.built:
            self.built[(steps, at_call)] = harness.build_cpp(WORK.replace("STEPS", str(steps)).replace("AT_CALL", at_call),
                                                             ARGS.include, self.folder.name, key)
        return self.built[(steps, at_call)]

    def compare(self, candidate, rival, judge=None, **options):
        """What `asked` gives; on a machine so busy that a time is not to be had, that of a second or third try."""
        for _ in range(3):
            answer, held = self.asked(candidate, rival, judge, **options)
            if not any(words in answer["result"].get("reason", "") for words in BUSY):
                break
        return answer, held

    def asked(self, candidate, rival, judge=None, **options):
        """The result of one evaluation, and the frames that asked to hold. Each is a path or a ModelNew's text."""
        judge = judge or self.judge
        ends, programs, kinds = [], [], []
        for program in (candidate, rival):
            judge_end, candidate_end = socket.socketpair()
            python = "ModelNew" in program
            command = [f"{judge.libexec}/grove-candidate"]
            if python:
                command = [judge.python, f"{judge.libexec}/grove-candidate-python"]
            programs.append(harness.spawn([*command, "--fd", "3", "--device", "cpu", "--threads", "2"], candidate_end))
            candidate_end.close()
            channel = harness.Channel(judge_end)
            if python:
                channel.send({"type": "program", "kind": "python", "source": program, "extensions": []})
            else:
                fd = os.open(program, os.O_RDONLY)
                channel.send({"type": "program", "kind": "native", "entry": "grove_kernel"}, [fd])
                os.close(fd)
            ends.append(judge_end)
            kinds.append({"kind": "python" if python else "native"})
        judge.next += 1
        judge.channel.send({"type": "evaluate", "id": judge.next, "candidate": kinds[0], "can_hold": True,
                            "rival": kinds[1], "options": {"max_time_seconds": 0.6, **options}},
                           [end.fileno() for end in ends])
        for end in ends:
            end.close()
        held, let_go = [], 0
        try:
            while True:
                answer = judge.channel.receive(180)
                if answer["type"] == "hold":
                    held.append((answer["who"], answer["held"]))
                    if answer["held"]:
                        judge.channel.send({"type": "held", "id": answer["id"], "ok": True, "let_go_ns": let_go})
                    else:
                        let_go = time.monotonic_ns()
                elif answer["type"] != "progress":
                    break
        finally:
            for program in programs:
                program.kill()
                program.wait()
        self.assertEqual(answer["type"], "result", answer)
        return answer, held

    def against(self, result):
        rivals = [b for b in result["timing"]["baselines"] if b["baseline"] == "BASELINE_RIVAL"]
        self.assertEqual(len(rivals), 1, result)
        return rivals[0]

    def test_both_are_timed_against_each_other_and_the_reference_ranks(self):
        for _ in range(3):  # a busy machine may be unable to tell, not always
            answer, held = self.compare(self.kernel(160), self.kernel(40))
            result = answer["result"]
            if result["verdict"] != "VERDICT_CORRECT":
                continue
            rival = self.against(result)
            if rival["speedup_high"] < 0.9 and rival["speedup"] > 0.1 and rival["samples"] >= 10:
                break
        self.assertEqual(result["verdict"], "VERDICT_CORRECT", result)
        self.assertEqual(result["rival"]["verdict"], "VERDICT_CORRECT")
        self.assertEqual([b["baseline"] for b in result["timing"]["baselines"]], ["BASELINE_EAGER", "BASELINE_RIVAL"])
        rival = self.against(result)
        self.assertLess(rival["speedup_high"], 0.9)
        self.assertGreater(rival["speedup"], 0.1)
        self.assertLess(rival["reference_median_seconds"], rival["candidate_median_seconds"])
        self.assertGreaterEqual(rival["samples"], 10)
        # Both are held, each by its own name, and never let go while the other is.
        self.assertEqual({who for who, _ in held}, {"candidate", "rival"})

    def test_a_kernel_against_itself_is_near_1(self):
        answer, _ = self.compare(self.kernel(40), self.kernel(40), max_time_seconds=1)
        rival = self.against(answer["result"])
        # Processes are not held here, and the machine may be busy: the interval reaches to where 1 is not far.
        self.assertLess(rival["speedup_low"], 1.5, rival)
        self.assertGreater(rival["speedup_high"], 0.67, rival)
        self.assertLessEqual(rival["speedup_low"], rival["speedup"])

    def test_one_of_several_pairs_of_processes_takes_its_part_of_the_time_and_the_samples(self):
        # Calls that are long beside what asking costs on a busy machine, so that every pair counts.
        long = self.kernel(4000)
        answer, _ = self.compare(long, long, replicas=4, max_samples=22, min_time_seconds=40, max_time_seconds=80)
        self.assertIn(self.against(answer["result"])["samples"], range(3, 7), answer["result"]["timing"])
        answer, _ = self.compare(long, long, replicas=4, max_time_seconds=1e-3)
        self.assertGreaterEqual(self.against(answer["result"])["samples"], 3)
        self.assertLess(self.against(answer["result"])["samples"], 10)

    def test_what_a_call_takes_in_steps_counts_on_either_side(self):
        # As of a program that does the work of a whole run in its first call.
        plain = STRIDED.replace("Model(", "ModelNew(")
        slow = plain.replace("import torch\n", "import sys\nimport time\nimport torch\n").replace("        return x", """        frame = sys._getframe()
        while frame is not None and frame.f_code.co_name != "run_in_steps": frame = frame.f_back
        if frame is not None: time.sleep(0.004)
        return x""")
        judge = harness.Judge(ARGS.libexec, python=ARGS.python)
        try:
            self.assertEqual(judge.load(STRIDED)["type"], "loaded")
            for candidate, rival, slower in ((slow, plain, "candidate"), (plain, slow, "reference"), (plain, plain, None)):
                for _ in range(3):  # on a busy machine steps may take as long by themselves
                    answer, _ = self.compare(candidate, rival, judge)
                    result = answer["result"]
                    self.assertEqual(result["verdict"], "VERDICT_CORRECT", result)
                    if ("by itself taking" in result["timing"]["method"]) == bool(slower):
                        break
                if slower:
                    self.assertIn("by itself taking 0.004", result["timing"]["method"])
                    self.assertGreater(self.against(result)[f"{slower}_median_seconds"], 0.004, result)
                else:
                    self.assertNotIn("by itself taking", result["timing"]["method"])
        finally:
            judge.close()

    def test_no_reference_is_timed_where_only_the_rival_is_asked_for(self):
        answer, _ = self.compare(self.kernel(40), self.kernel(160), baselines=["BASELINE_RIVAL"])
        self.assertEqual(answer["result"]["verdict"], "VERDICT_CORRECT", answer["result"])
        self.assertEqual([b["baseline"] for b in answer["result"]["timing"]["baselines"]], ["BASELINE_RIVAL"])
        self.assertGreater(self.against(answer["result"])["speedup"], 1.2)

    def failed(self, at_call, verdict, gone=False):
        answer, _ = self.compare(self.kernel(40), self.kernel(40, at_call))
        result = answer["result"]
        self.assertEqual(result["verdict"], "VERDICT_CORRECT", result)
        self.assertEqual(result["rival"]["verdict"], verdict, result["rival"])
        self.assertNotEqual(result["rival"]["reason"], "")
        self.assertEqual(answer.get("rival_ended"), "candidate_gone" if gone else "")
        self.assertEqual(answer["ended"], "")
        self.assertGreater(result["timing"]["baselines"][0]["speedup"], 0)
        return result

    def test_a_wrong_rival_is_wrong_and_the_candidate_is_not(self):
        result = self.failed("return 0;", "VERDICT_WRONG")
        self.assertEqual([b["baseline"] for b in result["timing"]["baselines"]], ["BASELINE_EAGER"])

    def test_a_rival_that_crashes_leaves_the_candidate_its_verdict(self):
        self.failed("abort();", "VERDICT_CRASHED", gone=True)

    def test_a_rival_that_fails_while_it_is_timed_has_no_figure(self):
        # The check has a call for each draw and distribution; this comes later.
        result = self.failed("if (calls > 60) abort();", "VERDICT_CRASHED", gone=True)
        self.assertIn("rival", self.against(result)["unavailable"])

    def test_a_rival_that_is_wrong_only_when_timed_has_no_figure(self):
        result = self.failed("if (calls > 60) return 0;", "VERDICT_WRONG")
        self.assertNotIn("speedup", self.against(result))

    def test_who_is_right_on_given_values_alone_when_timed_is_wrong_on_either_side(self):
        # The check has a call for each draw and distribution; this comes later.
        bounded = "if (calls > 60) { for (int64_t i = 0; i < n; ++i) y[i] = 2 * (x[i] > 30 ? 30 : x[i]); return 0; }"
        result = self.failed(bounded, "VERDICT_WRONG")
        self.assertIn("between timed runs", result["rival"]["reason"])
        answer, _ = self.compare(self.kernel(40, bounded), self.kernel(40))
        self.assertEqual(answer["result"]["verdict"], "VERDICT_WRONG", answer["result"])

    def test_the_candidate_is_judged_first(self):
        answer, _ = self.compare(self.kernel(40, "return 0;"), self.kernel(40))
        self.assertEqual(answer["result"]["verdict"], "VERDICT_WRONG")

    def test_beside_a_native_kernel_a_program_in_python_gets_row_major_inputs(self):
        judge = harness.Judge(ARGS.libexec, python=ARGS.python)
        self.addCleanup(judge.close)
        self.assertEqual(judge.load(STRIDED)["type"], "loaded")
        python = STRIDED.replace("Model(", "ModelNew(")

        def wants(*strides):
            return python.replace("return x", f"assert x.stride() == {strides}, x.stride()\n        return x")

        native = harness.build_cpp("""#include <grove/kernel.h>
GROVE_KERNEL(args) {
  const float* x = (const float*)args->inputs[0].data;
  float* y = (float*)args->outputs[0].data;
  for (int i = 0; i < 48; ++i) for (int j = 0; j < 80; ++j) y[i * 80 + j] = x[i * 80 + j] * j;
  return 0;
}
""", ARGS.include, self.folder.name, "strided")
        for candidate, rival in ((native, wants(80, 1)), (wants(80, 1), native), (wants(1, 48), wants(1, 48))):
            answer, _ = self.compare(candidate, rival, judge)
            result = answer["result"]
            self.assertEqual(result["verdict"], "VERDICT_CORRECT", result)
            self.assertEqual(result["rival"]["verdict"], "VERDICT_CORRECT", result["rival"])
            self.assertGreater(self.against(result)["speedup"], 0)
        # Both are in Python, and one takes the memory for row-major.
        answer, _ = self.compare(python, python.replace("return x", "return x.as_strided(x.shape, (80, 1))"), judge)
        self.assertEqual(answer["result"]["verdict"], "VERDICT_CORRECT", answer["result"])
        self.assertEqual(answer["result"]["rival"]["verdict"], "VERDICT_WRONG", answer["result"])

    def test_rates_are_measured_without_a_problem(self):
        judge = harness.Judge(ARGS.libexec, python=ARGS.python)
        try:
            judge.channel.send({"type": "rates", "id": 1, "max_seconds": 5})
            while True:
                answer = judge.channel.receive(180)
                if answer["type"] != "progress":
                    break
            self.assertEqual(answer["type"], "rates", answer)
            found = answer["calibration"]
            self.assertGreater(found["bandwidth_bytes_per_second"], 1e8)
            rates = {rate["precision"]: rate["operations_per_second"] for rate in found["rates"]}
            self.assertGreater(rates["float32"], 1e8)
            self.assertGreater(rates["float32"], rates["float64"] * 0.5)
        finally:
            judge.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--libexec")
    ARGS, rest = parser.parse_known_args()
    ARGS.libexec = ARGS.libexec or os.path.join(ARGS.build, "libexec/grove")
    ARGS.include = os.path.join(ARGS.build, "share/grove/include")
    unittest.main(argv=[sys.argv[0], "-v"] + rest)
