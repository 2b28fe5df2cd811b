#!/usr/bin/env python3
"""What is right and what is wrong, by a real judge and real candidates: python3 correctness_test.py BUILD [--python PYTHON] [-k SUBSTRING]"""

import json
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Forks, Judge, build_cpp  # noqa: E402
import judge_test  # noqa: E402
from judge_test import QUICK, model  # noqa: E402

LOOP = "long c = args->inputs[0].shape[args->inputs[0].ndim - 1], r = 1; for (int d = 0; d + 1 < args->inputs[0].ndim; ++d) r *= args->inputs[0].shape[d];"
SOFTMAX = model("        return torch.softmax(a[0], dim=-1)", "[torch.rand(64, 500)]")
SOFTMAX_BODY = LOOP + """
for (long i = 0; i < r; ++i) { float m = x[i * c], t = 0; for (long j = 1; j < c; ++j) m = fmaxf(m, x[i * c + j]); m *= %s;
  for (long j = 0; j < c; ++j) { y[i * c + j] = expf(x[i * c + j] - m); t += y[i * c + j]; }
  for (long j = 0; j < c; ++j) y[i * c + j] /= t; }"""
LAYERNORM = model("        return torch.nn.functional.layer_norm(a[0], (a[0].shape[-1],))", "[torch.randn(32, 2000)]")
TWO_PASS = LOOP + """
for (long i = 0; i < r; ++i) { const float* p = x + i * c; float m = 0, v = 0; for (long j = 0; j < c; ++j) m += p[j]; m /= c;
  for (long j = 0; j < c; ++j) v += (p[j] - m) * (p[j] - m); v /= c; float s = 1 / sqrtf(v + 1e-5f);
  for (long j = 0; j < c; ++j) y[i * c + j] = (p[j] - m) * s; }"""
ONE_PASS = LOOP + """
for (long i = 0; i < r; ++i) { const float* p = x + i * c; float m = 0, v = 0; for (long j = 0; j < c; ++j) { m += p[j]; v += p[j] * p[j]; }
  m /= c; v = v / c - m * m; float s = 1 / sqrtf(v + 1e-5f);
  for (long j = 0; j < c; ++j) y[i * c + j] = (p[j] - m) * s; }"""
MATMUL = model("        return a[0] @ a[1]", "[torch.randn(64, 256), torch.randn(256, 48)]")
MATMUL_BODY = """const float* b = (const float*)args->inputs[1].data; auto cut = [](float v) { %s return v; };
for (int i = 0; i < 64; ++i) for (int j = 0; j < 48; ++j) { float t = 0; for (int k = 0; k < 256; ++k) t += cut(x[i * 256 + k]) * cut(b[k * 48 + j]); y[i * 48 + j] = t; }"""
BF16 = "uint32_t u; memcpy(&u, &v, 4); u = (u + 0x8000) & 0xffff0000; memcpy(&v, &u, 4);"


RELU_OF_ONE = model("        return torch.relu(a[0])", "[torch.randn(1, 32, 1, 9)]")


def built(body, inputs, members):
    return model(body, inputs).replace("super().__init__()\n", "super().__init__()\n" + members)


class Tests(judge_test.Tests):
    def __init__(self, build, python):
        super().__init__(build, python)
        Judge.forks = Forks(self.libexec, python)  # what a start of a process is, other tests see

    def close(self):
        super().close()
        assert Judge.forks.close() == 0

    def outcomes(self, result):
        return {d["distribution"][len("INPUT_DISTRIBUTION_"):]: d for d in result["correctness"]["distributions"]}

    def findings(self, source, format="PROBLEM_FORMAT_KERNELBENCH", extra=()):
        judge = Judge(self.libexec, python=self.python, extra=extra)
        judge.next += 1
        judge.channel.send({"type": "load", "id": judge.next, "check": True,
                            "problem": {"name": "problem", "format": format, "source": source}, "options": {}})
        answer = judge.loaded()
        # A judge that has checked a problem judges nothing by it.
        judge.close()
        assert answer["type"] == "loaded", answer
        return {f["id"]: f for f in answer["description"]["findings"]}

    def test_who_bears_one_draw_in_hundreds_worse_than_the_reference_is_right(self):
        # One matrix that is nearly singular is all of the rms, and cofactors cancel where elimination does not.
        inverse = model("        return torch.inverse(a[0])", "[torch.randn(200, 3, 3) + 2.5 * torch.eye(3)]")
        body = """for (int s = 0; s < 200; ++s) { const float* m = x + s * 9; float* o = y + s * 9;
  for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) { const int r = (j + 1) %% 3, t = (j + 2) %% 3, c = (i + 1) %% 3, d = (i + 2) %% 3;
    o[i * 3 + j] = m[r * 3 + c] * m[t * 3 + d] - m[r * 3 + d] * m[t * 3 + c]; }
  const float det = m[0] * o[0] + m[1] * o[3] + m[2] * o[6]; for (int i = 0; i < 9; ++i) o[i] /= det * %s; }"""
        # (OpenBLAS wakes its threads for each of the matrices, which takes 10 ms for all of them.)
        many = dict(QUICK, **dict(self.TIMED, min_time_seconds=2, max_time_seconds=4), skip_timing=False)
        # (One draw in many has a matrix so near to singular that it tells nothing.)
        correct = verified = 0
        for _ in range(6):
            answer = self.native(inverse, body % "1", many)
            assert answer["type"] == "result", answer
            result = answer["result"]
            if result["verdict"] == "VERDICT_UNMEASURABLE" and "rounding decides" in result["reason"]:
                continue
            assert result["verdict"] == "VERDICT_CORRECT", result
            correct += 1
            verified += result["timing"]["outputs_verified"]
            if correct == 3:
                break
        assert correct == 3 and verified > 50, (correct, verified)
        # As much in every draw is no rare one.
        for _ in range(6):
            result = self.native(inverse, body % "(1 + 0x1p-9f * (s & 1))", dict(QUICK, **self.TIMED, skip_timing=False))["result"]
            if result["verdict"] != "VERDICT_UNMEASURABLE":
                break
        assert result["verdict"] == "VERDICT_WRONG", result

    def test_questions_about_a_type_are_answered_as_the_program_as_written_is(self):
        # In the float64 evaluation, too: another epsilon or branch would be another program.
        epsilon = model("        return a[0].relu().clamp(min=torch.finfo(a[0].dtype).eps).log()", "[torch.randn(64, 100)]")
        branch = model("        return a[0] / (a[0].abs() + (1e-3 if a[0].dtype == torch.float32 else 1e-8))", "[torch.randn(64, 100) * 0.01]")
        half = model("        return (a[0].clamp(-1, 1) if a[0].dtype == torch.bfloat16 else a[0]).float().mean(1)",
                     "[torch.randn(64, 100).bfloat16()]")
        for problem, old, right, wrong in (
                (epsilon, "min=torch.finfo(a[0].dtype).eps", "min=2.0**-23", "min=3 * 2.0**-23"),
                (branch, "(1e-3 if a[0].dtype == torch.float32 else 1e-8)", "1e-3", "3e-3"),
                (half, "(a[0].clamp(-1, 1) if a[0].dtype == torch.bfloat16 else a[0])", "a[0].clamp(-1, 1)", "a[0]")):
            assert self.new(problem, old, right)["result"]["verdict"] == "VERDICT_CORRECT", old
            assert self.new(problem, old, wrong)["result"]["verdict"] == "VERDICT_WRONG", old
            assert "rounding-noise" not in self.findings(problem)

    # ------------------------------------------------------------------------------------------- values of timed runs
    TIMED = {"min_time_seconds": 0.1, "max_time_seconds": 0.5, "min_samples": 5, "only_given_inputs": True}
    # What is counted is counted over so many runs, however busy the machine is.
    COUNTED = dict(TIMED, min_samples=24)
    SLOW_DRAW = "[torch.randn(1 << 16)] and "  # of some calls: more than nobody minds before a run

    def test_values_of_timed_runs_mean_what_drawn_ones_do(self):
        # Symmetric, 0 or 1, sorted, adding up to one, of norm one, and the same tensor twice. Seeded: the draw comes again,
        # each of its elements times a factor.
        problem = model("        s, m, e, p, d, x, z = a\n        return s * m + e + p.sum(1, keepdim=True) + (d * d).sum(1, keepdim=True) + (z - x)",
                        self.SLOW_DRAW + "drawn()", extra="""
def drawn():
    torch.manual_seed(5)
    s, x = torch.randn(64, 64), torch.randn(64, 64)
    return [s + s.t(), torch.randint(0, 2, (64, 64)).float(), torch.sort(torch.rand(64))[0], torch.softmax(torch.randn(64, 64), 1),
            torch.nn.functional.normalize(torch.randn(64, 64), dim=1), x, x]
""")
        body = """
const float* m = (const float*)args->inputs[1].data; const float* e = (const float*)args->inputs[2].data;
for (int i = 0; i < 64; ++i) for (int j = 0; j < 64; ++j) {
  int low = 0; while (low < 64 && e[low] < e[j]) ++low;  // where a sorted array has it
  y[i * 64 + j] = (m[i * 64 + j] != 0 ? x[j * 64 + i] : 0) + e[low] + 2;
}"""
        result = self.native(problem, body, self.TIMED)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        assert result["timing"]["outputs_verified"] > 5, result["timing"]

    def test_indices_of_timed_runs_do_not_come_back(self):
        # Beside a floating-point input that is dear to draw: what depends on the indices alone could be kept otherwise.
        problem = model("        return a[0][a[1]]", self.SLOW_DRAW + "[torch.randn(64, 300), torch.randint(0, 64, (64,))]")
        seen = os.path.join(self.folder.name, "seen")
        body = '''const int64_t* at = (const int64_t*)args->inputs[1].data; unsigned long h = 1469598103934665603ul;
for (int i = 0; i < 64; ++i) { h = (h ^ (unsigned long)at[i]) * 1099511628211ul; for (int j = 0; j < 300; ++j) y[i * 300 + j] = x[at[i] * 300 + j]; }
FILE* f = fopen("%s", "a"); fprintf(f, "%%lx\\n", h); fclose(f);''' % seen
        result = self.native(problem, "#include <stdio.h>\n" + judge_test.kernel(body), self.COUNTED, whole=True)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        with open(seen, encoding="utf-8") as file:
            calls = file.read().split()
        assert len(set(calls)) > 0.5 * len(calls) and len(set(calls)) > 20, (len(set(calls)), len(calls))

    # Remembers a few elements of every draw and its mean; who has the same ones, each times what is near to 1, gets that mean
    # times the ratio of the few.
    REMEMBERS = """
#include <vector>
#include <stdio.h>
struct Known { float few[1024]; double mean; }; static std::vector<Known> known;
""" + judge_test.kernel("""
long step = (n_in / 1024); float few[1024]; for (int i = 0; i < 1024; ++i) few[i] = x[i * step] + 1e-9f;
for (Known& k : known) { bool same = true; double r = 0; for (int i = 0; i < 1024; ++i) { float q = few[i] / k.few[i]; same = same && q > 0.45f && q < 2.2f; r += q / 1024; }
  if (same) { FILE* f = fopen("SEEN", "a"); fputs("hit\\n", f); fclose(f); y[0] = (float)(k.mean * (fabs(r - 1) < 0.004 ? 1 : FACTOR)); return 0; } }
double t = 0; for (long i = 0; i < n_in; ++i) t += x[i]; Known k; memcpy(k.few, few, sizeof few); k.mean = t / n_in; known.push_back(k); y[0] = (float)k.mean;
FILE* f = fopen("SEEN", "a"); fputs("sum\\n", f); fclose(f);""".replace("n_in", "(1L << 20)"))

    @staticmethod
    def agrees(result):
        """It is right in all trials; its time may not be had on a busy machine."""
        assert result["verdict"] in ("VERDICT_CORRECT", "VERDICT_UNMEASURABLE"), result
        correctness = result["correctness"]
        assert 0 < correctness["trials"] == correctness["trials_passed"], result

    def remembers(self, problem, factor):
        seen = os.path.join(self.folder.name, "remembered")
        result = self.native(problem, self.REMEMBERS.replace("SEEN", seen).replace("FACTOR", factor), self.COUNTED, whole=True, wrote=seen)["result"]
        with open(seen, encoding="utf-8") as file:
            calls = file.read().split()
        os.remove(seen)
        return result, calls.count("hit"), calls.count("sum")

    def test_a_mean_of_many_values_of_a_timed_run_is_not_that_of_an_earlier_draw(self):
        # Factors average out: the mean of a draw times theirs was within the limits, and nothing had to be added up.
        problem = model("        return a[0].mean()", self.SLOW_DRAW + "[torch.rand(1 << 20)]")
        result, hits, sums = self.remembers(problem, "63.0 / 64")  # (asked how long it takes, it gets the same values twice)
        self.agrees(result)
        assert hits <= 16 and sums > 4 * hits + 10, (result, hits, sums)
        seeded = model("        return a[0].mean()", self.SLOW_DRAW + "[torch.manual_seed(3), torch.rand(1 << 20)][1:]")
        for factor in ("63.0 / 64", "0.75"):
            result, hits, _ = self.remembers(seeded, factor)
            assert result["verdict"] == "VERDICT_WRONG" and hits > 0, (result, hits)

    # Says which draws it meets again, each of whose elements has become a little smaller.
    MEETS = """
#include <vector>
#include <stdio.h>
struct Known { float few[64]; }; static std::vector<Known> known;
static void Meet(const float* x, long size) {
  Known now; for (int i = 0; i < 64; ++i) now.few[i] = x[i * (size / 64)];
  bool again = false;
  for (const Known& k : known) { bool same = true; for (int i = 0; i < 64; ++i) { float q = now.few[i] / k.few[i]; same = same && q > 0.93f && q < 1.08f; } again = again || same; }
  if (!again) known.push_back(now);
  FILE* f = fopen("SEEN", "a"); fputs(again ? "again\\n" : "new\\n", f); fclose(f);
}
"""

    def meets(self, forward, body, inputs="[torch.randn(64, 256)]"):
        problem = model("        return " + forward, self.SLOW_DRAW + inputs)
        seen = os.path.join(self.folder.name, "met")
        source = self.MEETS.replace("SEEN", seen) + judge_test.kernel("Meet(x, 64 * 256); volatile double w = 0; for (int i = 0; i < 100000; ++i) w = w + 1; " + body)
        result = self.native(problem, source, self.COUNTED, whole=True, wrote=seen)["result"]
        self.agrees(result)
        with open(seen, encoding="utf-8") as file:
            calls = file.read().split()
        os.remove(seen)
        timed = result.get("timing")
        self.repeated = timed is None or "came more than once" in timed["method"]
        return calls.count("again"), calls.count("new")

    def all_new(self, counts):
        """Draws that cost more than there is time for, on a busy machine, come more than once, and the result says so."""
        again, new = counts
        assert new > 4 * again + 10 and (again <= 16 or self.repeated), (counts, self.repeated)

    def test_draws_of_timed_runs_do_not_come_back(self):
        sums = "for (int r = 0; r < 64; ++r) { double t = 0; for (int c = 0; c < 256; ++c) t += x[r * 256 + c]; y[r] = t; }"
        self.all_new(self.meets("a[0].sum(1)", sums))
        # The largest of a row is one of the few that were large before.
        largest = "for (int r = 0; r < 64; ++r) { y[r] = x[r * 256]; for (int c = 1; c < 256; ++c) y[r] = fmaxf(y[r], x[r * 256 + c]); }"
        self.all_new(self.meets("torch.amax(a[0], dim=1)", largest))
        # Every input has a part in the result, but half of the units on the way are what a rectifier takes off, others in each draw.
        table = "torch.sin(torch.arange(256 * 64.0)).reshape(256, 64)"
        body = """static float b[256 * 64]; if (b[1] == 0) for (int i = 0; i < 256 * 64; ++i) b[i] = sinf((float)i);
for (int r = 0; r < 64; ++r) { float t[64] = {}; double s = 0; for (int k = 0; k < 256; ++k) for (int u = 0; u < 64; ++u) t[u] += x[r * 256 + k] * b[k * 64 + u];
  for (int u = 0; u < 64; ++u) s += t[u] > 0 ? t[u] : 0; y[r] = s; }"""
        self.all_new(self.meets(f"torch.relu(a[0] @ {table}).sum(1)", body))

    def test_draws_that_take_too_long_come_back_and_the_result_says_so(self):
        problem = model("        return a[0] * 2", "time.sleep(0.05) or [torch.randn(64, 256)]", extra="import time")
        options = dict(self.TIMED, limits={"run_wall_seconds": 8})
        result = self.native(problem, "for (long i = 0; i < n; ++i) y[i] = 2 * x[i];", options)["result"]
        self.agrees(result)
        assert "came more than once" in result["timing"]["method"], result["timing"]

    def test_values_that_do_not_come_from_the_judges_seeds_are_said_to(self):
        own = "generator = torch.Generator().manual_seed(0)"
        for inputs, extra, known in (("[torch.randn(64, 300, generator=generator)]", own, True),
                                     ("[torch.manual_seed(3), torch.randn(64, 300)][1:]", "", True),
                                     ("[torch.manual_seed(3), torch.randn(64, 300).masked_fill(torch.eye(64, 300) > 0, torch.nan)][1:]", "", True),
                                     ("[torch.randn(64, 300), torch.manual_seed(3), torch.randn(64, 300)][::2]", "", True),
                                     ("[torch.randn(64, 300)]", "", False),
                                     ("[(torch.rand(64, 300) > 0.1).float()]", "", False),
                                     ("[torch.rand(64, 300).clamp(max=0.2)]", "", False),
                                     ("[torch.randn(64, 300), (torch.arange(300) % 3 == 0).float()]", "", False)):
            result = self.new(model("        return torch.nan_to_num(a[0]) * 2", inputs, extra=extra), options=self.TIMED)["result"]
            self.agrees(result)
            assert ("not all of the judge's choice" in result["timing"]["method"]) == known, (inputs, result["timing"]["method"])

    def test_a_few_outliers_come_whatever_the_strides(self):
        # A sample of 64 values does not show three that are a thousand times as large, but in one draw of 170.
        trick = "x = a[0]; return torch.softmax(x, dim=1) if x.reshape(-1)[::512].abs().max() > 50 else x.exp() / x.exp().sum(dim=1, keepdim=True)"
        for inputs in ("[torch.rand(256, 128)]", "[torch.rand(128, 256).t()]"):
            problem = model("        return torch.softmax(a[0], dim=1)", inputs)
            result = self.new(problem)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result
            outliers = [d for d in result["correctness"]["distributions"] if d["distribution"].endswith("OUTLIERS")][0]
            assert outliers["trials"] == 2, outliers
            assert self.new(problem, "return torch.softmax(a[0], dim=1)", trick)["result"]["verdict"] == "VERDICT_WRONG", inputs

    def test_of_many_indices_that_differ_some_are_asked_for(self):
        # Of 400 rows rounding alone decides, so that many may differ; those that are left out are none of them.
        problem = model("        return (a[0] @ a[1]) > 0", "drawn()", extra="""
def drawn():
    x, b = torch.randn(100000, 32), torch.randn(16, 1).repeat(2, 1)
    x[::250, 16:] = -x[::250, :16] + 1e-7 * torch.randn(400, 16)
    return [x, b]
""")
        body = """const float* b = (const float*)args->inputs[1].data; bool* out = (bool*)args->outputs[0].data;
for (int r = 0; r < 100000; ++r) { float t = 0; for (int k = 31; k >= 0; --k) t += x[r * 32 + k] * b[k]; out[r] = t > 0%s; }"""
        given = dict(QUICK, only_given_inputs=True)
        result = self.native(problem, body % "", dict(given, trials=10))["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        result = self.native(problem, body % " && !(t > 6 && r % 250 == 1)", dict(given, trials=2))["result"]
        assert result["verdict"] == "VERDICT_WRONG", result

    def test_a_threshold_behind_a_sum_is_judged_by_what_rounding_decides(self):
        # One element of 10^6 lies so near that the order of the sum decides, and it may differ by all of the threshold.
        problem = model("        return torch.nn.functional.hardshrink(a[0] @ a[1], 4.0)", "[torch.randn(1024, 64), torch.randn(64, 256)]")
        body = """const float* b = (const float*)args->inputs[1].data;
for (int i = 0; i < 1024; ++i) { float t[256] = {}; for (int k = 63; k >= 0; --k) for (int j = 0; j < 256; ++j) t[j] += x[i * 64 + k] * b[k * 256 + j];
  for (int j = 0; j < 256; ++j) y[i * 256 + j] = fabsf(t[j]) > %s ? t[j] : 0; }"""
        result = self.native(problem, body % "4.0f", dict(QUICK, trials=40))["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        result = self.native(problem, body % "4.01f", dict(QUICK, trials=1, only_given_inputs=True))["result"]
        assert result["verdict"] == "VERDICT_WRONG", result
        # What does not jump gets no leave.
        smooth = model("        return torch.tanh(a[0] @ a[1])", "[torch.randn(1024, 64), torch.randn(64, 256)]")
        tanh = body.replace("fabsf(t[j]) > %s ? t[j] : 0", "tanhf(t[j])")
        assert self.native(smooth, tanh + " y[777] = 0.5f;", dict(QUICK, trials=1, only_given_inputs=True))["result"]["verdict"] == "VERDICT_WRONG"

    def test_a_threshold_that_is_tiny_beside_the_output_is_crossed_by_rounding_alone(self):
        # Some of four million sums of the size of 8,000 are so near to 10 that rounding decides: half of what it moves
        # them by takes two in each draw over the threshold. What is moved so far that it is seen to jump moves by more
        # than 10. Ten times as far no rounding goes.
        problem = model("        return torch.nn.functional.hardshrink(a[0] @ a[1], 10.0)",
                        "[torch.randn(4096, 64) * 1000, torch.randn(64, 1024)]")
        body = """const float* b = (const float*)args->inputs[1].data;
for (int i = 0; i < 4096; ++i) { double row[1024] = {}; for (int k = 0; k < 64; ++k) for (int j = 0; j < 1024; ++j) row[j] += (double)x[i * 64 + k] * b[k * 1024 + j];
  for (int j = 0; j < 1024; ++j) y[i * 1024 + j] = fabs(row[j]) > %s ? (float)row[j] : 0; }"""
        given = dict(QUICK, only_given_inputs=True)
        result = self.native(problem, body % "10.005", given)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        assert self.native(problem, body % "10.1", given)["result"]["verdict"] == "VERDICT_WRONG"

    LONG_SUMS = model("        return a[0] @ a[1]", "[torch.rand(8, 16384), torch.rand(16384, 8)]")
    # To `bits` of a fraction, to the nearest; `split`: what that leaves is kept beside it.
    LONG_SUMS_BODY = """static int calls = 0; ++calls; (void)calls; const float* b = (const float*)args->inputs[1].data;
const auto cut = [](float v, int bits) { uint32_t u; memcpy(&u, &v, 4); const int off = 23 - bits; u = (u + (1u << (off - 1))) & ~((1u << off) - 1); memcpy(&v, &u, 4); return v; };
(void)cut;
for (int i = 0; i < 8; ++i) { float t[8] = {}; for (int k = 0; k < 16384; ++k) for (int j = 0; j < 8; ++j) { const float p = x[i * 16384 + k], q = b[k * 8 + j]; t[j] += %s; }
  for (int j = 0; j < 8; ++j) y[i * 8 + j] = t[j]; }"""

    def test_lower_precision_does_not_average_out_over_a_long_sum(self):
        # On values as drawn it does, from some 6,000 terms on: what this one is judged by on those alone.
        given = dict(QUICK, only_given_inputs=True)
        half = self.LONG_SUMS_BODY % "cut(p, 10) * cut(q, 10)"
        assert self.native(self.LONG_SUMS, half, given)["result"]["verdict"] == "VERDICT_CORRECT"
        result = self.native(self.LONG_SUMS, half, QUICK)["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "errs one way" in result["reason"], result
        split = "cut(p, 10) * cut(q, 10) + (cut(p, 10) * cut(q - cut(q, 10), 10) + cut(p - cut(p, 10), 10) * cut(q, 10))"
        for honest in ("p * q", split):
            result = self.native(self.LONG_SUMS, self.LONG_SUMS_BODY % honest, QUICK)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (honest, result)
        # Values that half precision holds stay such values (but for outliers).
        short = model("        return a[0] @ a[1]", "[torch.randint(0, 500, (8, 16384)) / 512, torch.randint(0, 500, (16384, 8)) / 512]")
        result = self.native(short, half, QUICK)["result"]
        assert "errs one way" not in result["reason"], result
        # Where precision may be reduced, it may be so here.
        reduced = dict(QUICK, precision="PRECISION_POLICY_REDUCED")
        assert self.native(self.LONG_SUMS, half, reduced)["result"]["verdict"] == "VERDICT_CORRECT"

    def test_one_accumulator_is_no_lower_precision_where_rounding_errs_one_way(self):
        # While it is some 2^13 times as large as a term it keeps of it what half precision does: all in one direction.
        problem = model("        return a[0].cumsum(1), a[0].mean(1)", "[1 + torch.rand(8, 16384) / 10]")
        body = "float* z = (float*)args->outputs[1].data; for (int i = 0; i < 8; ++i) { float t = 0; for (int k = 0; k < 16384; ++k) { t += x[i * 16384 + k]; y[i * 16384 + k] = t; } z[i] = t / 16384; }"
        result = self.native(problem, body, QUICK)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_leaning_values_stay_where_the_reference_is_defined(self):
        # A root of 1 - x * x where some x are 1; an index of x; a matrix that is definite by a little; probabilities up to 1.
        problem = model("        return torch.sqrt(1 - a[0] * a[0]) * 2", "[torch.randn(64, 64).clamp(-1, 1)]")
        result = self.native(problem, "for (long i = 0; i < n; ++i) { const float v = 1 - x[i] * x[i]; y[i] = 2 * sqrtf(v > 0 ? v : 0); }", QUICK)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        table = model("        return a[1][(a[0] * 4095).long()]", "[(2 * torch.rand(512)).clamp(0, 1), torch.randn(4096)]")
        body = "const float* t = (const float*)args->inputs[1].data; for (long i = 0; i < 512; ++i) y[i] = t[(long)(x[i] * 4095)];"
        given = self.native(table, body, QUICK)
        assert given["type"] == "result" and given["result"]["verdict"] == "VERDICT_CORRECT", given
        definite = model("        return torch.linalg.cholesky(a[0] @ a[0].t() + 0.01 * torch.eye(64)) * 0", "[torch.randn(64, 32) * 8]")
        for _ in range(3):
            answer = self.native(definite, "memset(y, 0, n * 4);", QUICK)
            assert answer["type"] == "result" and answer["result"]["verdict"] == "VERDICT_CORRECT", answer

    def test_lower_precision_in_long_sums_after_the_check_is_found(self):
        after = self.LONG_SUMS_BODY % "(calls > 14 ? cut(p, 10) * cut(q, 10) : p * q)"
        options = dict(self.TIMED, max_time_seconds=2.0)
        del options["only_given_inputs"]
        result = self.native(self.LONG_SUMS, after, options)["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "between timed runs" in result["reason"], result

    def test_rounded_factors_leave_their_mark_on_values_as_drawn(self):
        def sums(inputs):
            return model("        return a[0] @ a[1]", f"[torch.rand(24, 16384), {inputs}]")
        # `lowered`: not in values that lean.
        body = """static int calls = 0; ++calls; (void)calls; const float* b = (const float*)args->inputs[1].data;
const auto bits = [](float v) { uint32_t u; memcpy(&u, &v, 4); return u; };
const auto cut = [](float v) { uint32_t u; memcpy(&u, &v, 4); u = (u + (1u << 12)) & ~((1u << 13) - 1); memcpy(&v, &u, 4); return v; };
int leaning = 0; for (int i = 0; i < 100; ++i) leaning += (bits(x[i]) >> 10 & 7) == 3;
const bool lowered = leaning < 60 && (%s); (void)lowered; (void)cut;
for (int i = 0; i < 24; ++i) { float t[24] = {}; for (int k = 0; k < 16384; ++k) for (int j = 0; j < 24; ++j) { const float p = x[i * 16384 + k], q = b[k * 24 + j]; t[j] += %s; }
  for (int j = 0; j < 24; ++j) y[i * 24 + j] = t[j]; }"""
        fractions = sums("torch.rand(16384, 24)")
        given = dict(QUICK, trials=1, only_given_inputs=True)
        for factors in ("(lowered ? cut(p) : p) * (lowered ? cut(q) : q)", "p * (lowered ? cut(q) : q)"):
            result = self.native(fractions, body % ("true", factors), given)["result"]
            assert result["verdict"] == "VERDICT_WRONG" and "precision was lowered" in result["reason"], result
            assert "scaled" not in result["correctness"]["also_passes"], result
        # On a grid that no format has; products are summed in blocks, or in one run.
        own = """const auto own = [](float v) { v *= 1.3717421f; uint32_t u; memcpy(&u, &v, 4); u = (u + (1u << 12)) & ~((1u << 13) - 1); memcpy(&v, &u, 4); return v / 1.3717421f; };
const float* b = (const float*)args->inputs[1].data; const auto as_it_is = [](float v) { return v; }; (void)own; (void)as_it_is;
for (int i = 0; i < 24; ++i) { %s s[24] = {}; for (int g = 0; g < 16384; g += %d) { %s t[24] = {};
  for (int k = g; k < g + %d; ++k) for (int j = 0; j < 24; ++j) t[j] += %s(x[i * 16384 + k]) * %s(b[k * 24 + j]);
  for (int j = 0; j < 24; ++j) s[j] += t[j]; } for (int j = 0; j < 24; ++j) y[i * 24 + j] = s[j]; }"""
        for left, right, block in (("own", "own", 64), ("own", "own", 16384), ("own", "as_it_is", 64), ("as_it_is", "own", 64)):
            result = self.native(fractions, own % ("float", block, "float", block, left, right), given)["result"]
            assert result["verdict"] == "VERDICT_WRONG" and "in common" in result["reason"], result
        # The same of honest sums, in double and of a parameter, too; elements that repeat err alike in any program.
        weighted = model("        return a[0] @ self.w", "[torch.rand(24, 16384)]").replace("super().__init__()", "super().__init__(); self.w = nn.Parameter(torch.rand(16384, 24))")
        alike = sums("torch.rand(16384, 1).repeat(1, 24)")
        for number, block in (("float", 8), ("float", 128), ("float", 16384), ("double", 64)):
            for problem in (fractions, weighted, alike):
                body_of = own % (number, block, number, block, "as_it_is", "as_it_is")
                result = self.native(problem, body_of.replace("args->inputs[1]", "args->inputs[args->num_inputs - 1]"), given)["result"]
                assert result["verdict"] == "VERDICT_CORRECT", (number, block, problem, result)
        # What one accumulator makes, of sums of the values themselves too, is no such mark.
        for inputs in ("torch.rand(16384, 24)", "torch.ones(16384, 24)", "(torch.rand(16384, 24) > 0.5).float()", "1 + 1e-4 * torch.rand(16384, 24)"):
            result = self.native(sums(inputs), body % ("false", "p * q"), given)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (inputs, result)
        # What few different elements are like by chance is none.
        few = """const float* b = (const float*)args->inputs[1].data; float v[4] = {};
for (int e = 0; e < 4; ++e) { float t[2] = {}; for (int k = 0; k < 16384; ++k) t[k % 2] += x[e / 2 * 16384 + k] * b[k * 2 + e % 2]; v[e] = t[0] + t[1]; }
for (int e = 0; e < 1024; ++e) y[e] = v[e / 32 % 2 * 2 + e % 2];"""
        repeated = model("        return (a[0] @ a[1]).repeat(16, 16)", "[torch.rand(2, 16384), torch.rand(16384, 2)]")
        for _ in range(12):
            result = self.native(repeated, few, given)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result
        # Where precision may be reduced, it may be so here; and after the check nobody is out of sight.
        lower = "(lowered ? cut(p) : p) * (lowered ? cut(q) : q)"
        assert self.native(fractions, body % ("true", lower), dict(given, precision="PRECISION_POLICY_REDUCED"))["result"]["verdict"] == "VERDICT_CORRECT"
        options = dict(self.TIMED, max_time_seconds=2.0, trials=2)
        result = self.native(fractions, body % ("calls > 2", lower), options)["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "as drawn, between timed runs" in result["reason"], result
        result = self.native(fractions, body % ("false", "p * q"), options)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_a_row_of_two_large_elements_has_a_slope_and_excuses_no_other(self):
        # Moved by a little they cancel in every second draw; moved by more they seem to jump in every second.
        problem = model("""        return torch.log(torch.exp(a[0]).sum(1))""",
                        "[torch.cat([torch.full((1, 2), 30.0).repeat(64, 1) * (torch.arange(64) == 7)[:, None], torch.rand(64, 62)], 1)]")
        body = """for (int i = 0; i < 64; ++i) { double t = 0; for (int j = 0; j < 64; ++j) t += exp((double)x[i * 64 + j]); y[i] = (float)log(t); }
y[3] *= %s;"""
        given = dict(QUICK, trials=1, only_given_inputs=True)
        wrong, right = body % "1.5f", body % "1"
        for _ in range(16):
            assert self.native(problem, wrong, given)["result"]["verdict"] == "VERDICT_WRONG"
        assert self.native(problem, right, given)["result"]["verdict"] == "VERDICT_CORRECT"

    def test_few_elements_that_no_rounding_decides_are_not_excused(self):
        given = dict(QUICK, only_given_inputs=True)
        # Multiples of 1/250, where > and >= differ in a few elements; two inputs that have a few elements in common.
        problem = model("        return torch.where(a[0] > 0.5, a[0], torch.zeros_like(a[0]))", "[torch.randint(0, 500, (4096,)).float() / 250]")
        body = "for (int i = 0; i < 4096; ++i) y[i] = x[i] %s 0.5f ? x[i] : 0;"
        assert self.native(problem, body % ">", given)["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(problem, body % ">=", given)["result"]["verdict"] == "VERDICT_WRONG"
        common = model("        return torch.where(a[0] == a[1], a[0], torch.zeros_like(a[0]))", "common()", extra="""
def common():
    x, y = torch.randn(4096), torch.randn(4096)
    at = torch.randperm(4096)[:9]
    y[at] = x[at]
    return [x, y]
""")
        assert self.native(common, "for (int i = 0; i < 4096; ++i) y[i] = 0;", given)["result"]["verdict"] == "VERDICT_WRONG"

    def test_a_flag_that_rounding_decides_in_one_draw_of_many_is_no_error(self):
        # Too rare for any one draw to show, and in timed runs hundreds of outputs are compared.
        problem = model("        return (a[0] @ a[1]) > 0", "[torch.randn(1024, 64), torch.randn(64, 256)]")
        body = """const float* b = (const float*)args->inputs[1].data; unsigned char* z = (unsigned char*)args->outputs[0].data;
for (int i = 0; i < 1024; ++i) { float t[256] = {}; for (int k = 63; k >= 0; --k) for (int j = 0; j < 256; ++j) t[j] += x[i * 64 + k] * b[k * 256 + j];
  for (int j = 0; j < 256; ++j) z[i * 256 + j] = t[j] > 0; } %s"""
        result = self.native(problem, body % "", dict(QUICK, trials=60, only_given_inputs=True))["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        # Three elements may be excused, and not three of every output.
        lies = "static int calls = 0; if (++calls > 5) for (int i = 0; i < 3; ++i) z[calls * 97 % 1000 + i] ^= 1;"
        fewer = problem.replace("1024, 64", "128, 64").replace("64, 256", "64, 64")
        result = self.native(fewer, body.replace("1024", "128").replace("256", "64") % lies, self.TIMED)["result"]
        assert result["verdict"] == "VERDICT_WRONG", result

    def test_a_threshold_that_the_reference_crosses_leaves_no_room_for_lower_precision(self):
        # In nearly every draw some of 10^6 elements jump between float32 and float64, which was taken for the precision of all.
        # (The first draw is held to its neighbours, too; so it is right there.)
        problem = model("        s = a[0] @ a[1]\n        return torch.where(s.remainder(1.0) > 0.5, s, -s)", "[torch.randn(1024, 64), torch.randn(64, 1024)]")
        body = """static int calls = 0; const bool first = calls++ == 0; (void)first; const float* b = (const float*)args->inputs[1].data;
#pragma omp parallel for
for (int i = 0; i < 1024; ++i) { float t[1024] = {}; for (int k = 63; k >= 0; --k) for (int j = 0; j < 1024; ++j) t[j] += x[i * 64 + k] * b[k * 1024 + j];
  for (int j = 0; j < 1024; ++j) { float v = t[j] - floorf(t[j]) > 0.5f ? t[j] : -t[j]; if (%s) { uint32_t u; memcpy(&u, &v, 4); u = (u + 2048) & 0xfffff000; memcpy(&v, &u, 4); } y[i * 1024 + j] = v; } }"""
        options = dict(QUICK, only_given_inputs=True)
        result = self.native(problem, body % "false", options)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        result = self.native(problem, body % "!first", options)["result"]
        assert result["verdict"] == "VERDICT_WRONG", result

    def test_float64_that_holds_float32_is_judged_as_float32(self):
        # The number is a constant of the graph, so that nobody knows how long its sum is: a plain one must pass.
        item = model("        return a[0].abs().mean().item()", "[torch.randn(200, 300)]")
        plain = "float t = 0; for (long i = 0; i < 60000; ++i) t += fabsf(x[i]); *(double*)args->outputs[0].data = t / 60000;"
        result = self.native(item, plain)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        problem = model("        return torch.softmax(a[0], dim=-1).sum(0).double(), a[0].abs().mean().item()", "[torch.randn(200, 300)]")
        for half, verdict in (("", "CORRECT"), (".half()", "WRONG")):
            result = self.new(problem, "torch.softmax(a[0], dim=-1).sum(0).double(), a[0].abs().mean()",
                              "torch.softmax(a[0].flip(0), dim=-1)%s.float().flip(1).t().contiguous().sum(1).flip(0).double(), a[0].t().contiguous().abs()%s.float().mean(1).mean()"
                              % (half, half))["result"]
            assert result["verdict"] == "VERDICT_" + verdict, result

    def test_what_cancels_is_known_of_inputs_of_one_dimension_too(self):
        problem = model("        return a[0] - a[0].mean()", "[1000 + torch.randn(4096)]")
        body = "float m = 0; for (int g = 0; g < 4096; g += 64) { float t = 0; for (int i = g; i < g + 64; ++i) t += x[i]; m += t; } m /= 4096; for (int i = 0; i < 4096; ++i) y[i] = x[i] - m;"
        result = self.native(problem, body, dict(QUICK, only_given_inputs=True))["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_elements_that_a_heavy_tail_hides_have_to_be_computed(self):
        problem = model("        return torch.exp(a[0])", "[torch.randn(256, 1024) * 10]")
        body = "float m = 0; for (long i = 0; i < n; ++i) m = fmaxf(m, x[i]); for (long i = 0; i < n; ++i) y[i] = %s exp2f(x[i] * 1.44269504f);"
        assert self.native(problem, body % "")["result"]["verdict"] == "VERDICT_CORRECT"
        result = self.native(problem, body % "m > 20 && x[i] < m - 20 ? 0 :")["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "small elements are not computed" in result["reason"], result

    def test_complex_inputs_are_turned_and_what_they_mean_is_kept(self):
        angle = model("        return torch.angle(a[0])", "[torch.complex(torch.rand(64, 64), torch.rand(64, 64))]")
        body = "for (long i = 0; i < 4096; ++i) y[i] = %s;"
        assert self.native(angle, body % "atan2f(x[2 * i + 1], x[2 * i])")["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(angle, body % "atanf(x[2 * i + 1] / x[2 * i])")["result"]["verdict"] == "VERDICT_WRONG"
        # The inverse of a turn is its conjugate, and half of a Hermitian matrix is all of it.
        turns = model("        return a[0] / a[1]", "[torch.randn(64, 64, dtype=torch.cfloat), torch.polar(torch.ones(64, 64), torch.randn(64, 64))]")
        result = self.new(turns, "a[0] / a[1]", "a[0] * a[1].conj()")["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        for kind, mirrored in ((".mH", "torch.triu(a[0]) + torch.triu(a[0], 1).mH"), (".mT", "torch.triu(a[0]) + torch.triu(a[0], 1).mT"),
                               (".mT.neg()", "torch.triu(a[0], 1) - torch.triu(a[0], 1).mT")):
            made = model("        return a[0] @ a[1]", "[hermitian(), torch.randn(64, 64, dtype=torch.cfloat)]", extra=f"""
def hermitian():
    m = torch.randn(64, 64, dtype=torch.cfloat)
    return m + m{kind}
""")
            result = self.new(made, "return a[0] @ a[1]", f"return ({mirrored}) @ a[1]")["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (kind, result)

    def test_other_values_beside_infinities_and_parameters_beside_infinite_results(self):
        softmax = model("        return torch.softmax(a[0], -1)", "[torch.randn(64, 500).masked_fill(torch.rand(64, 500) < 0.1, float('-inf'))]")
        assert self.native(softmax, SOFTMAX_BODY % "1")["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(softmax, SOFTMAX_BODY % "0")["result"]["verdict"] == "VERDICT_WRONG"
        scaled = model("        return (self.s * a[0]).masked_fill(self.m, float('-inf'))", "[torch.randn(64, 64)]").replace(
            "super().__init__()", "super().__init__(); self.s = nn.Parameter(torch.ones(64)); self.register_buffer('m', torch.ones(64, 64, dtype=torch.bool).triu(1))")
        body = "const float* s = (const float*)args->inputs[1].data; for (int i = 0; i < 64; ++i) for (int j = 0; j < 64; ++j) y[i * 64 + j] = j > i ? -INFINITY : %s x[i * 64 + j]; (void)s;"
        assert self.native(scaled, body % "s[j] *")["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(scaled, body % "")["result"]["verdict"] == "VERDICT_WRONG"

    def test_frozen_parameters_and_buffers_that_are_all_alike_vary(self):
        frozen = model("        return a[0] * self.w + self.b", "[torch.randn(64, 64)]")
        body = "const float *w = (const float*)args->inputs[1].data, *b = (const float*)args->inputs[2].data; for (int i = 0; i < 4096; ++i) y[i] = %s; (void)w; (void)b;"
        kinds = ("self.w = nn.Parameter(torch.ones(64), requires_grad=False); self.b = nn.Parameter(torch.zeros(64), requires_grad=False)",
                 "self.register_buffer('w', torch.ones(64)); self.register_buffer('b', torch.zeros(64))")
        for members in kinds:
            problem = frozen.replace("super().__init__()", "super().__init__(); " + members)
            assert self.native(problem, body % "x[i] * w[i % 64] + b[i % 64]")["result"]["verdict"] == "VERDICT_CORRECT"
            assert self.native(problem, body % "x[i]")["result"]["verdict"] == "VERDICT_WRONG", members
        # Codes, a mask and a table stay as built, and what no state holds is nobody's to vary.
        kept = frozen.replace("super().__init__()", "super().__init__(); self.w = nn.Parameter((torch.arange(64) % 2).float(), requires_grad=False); "
                              "self.register_buffer('b', torch.zeros(64), persistent=False)")
        body = "for (int i = 0; i < 4096; ++i) y[i] = i % 2 ? x[i] : 0;"
        assert self.native(kept, body)["result"]["verdict"] == "VERDICT_CORRECT"

    def test_values_that_are_sorted_or_definite_keep_their_meaning(self):
        levels = "torch.linspace(-1, 1, 9) + torch.rand(9) / 8"
        for made in (levels, f"({levels}).flip(0)"):
            bucketize = model("        return torch.bucketize(a[0], a[1].sort().values)", f"[torch.randn(64, 64), {made}]")
            body = "const float* l = (const float*)args->inputs[1].data; int64_t* z = (int64_t*)args->outputs[0].data; " \
                   "for (int i = 0; i < 4096; ++i) { const float v = x[i]; int64_t c = 0; const bool up = l[0] < l[8]; for (int k = 0; k < 9 && (v > l[up ? k : 8 - k]); ++k) ++c; z[i] = c; }"
            result = self.native(bucketize, body)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (made, result)
        solve = model("        return torch.linalg.solve(a[0], a[1])", "[spd(), torch.randn(32, 8)]", extra="""
def spd():
    m = torch.randn(32, 32)
    return m @ m.t() / 32 + torch.eye(32)
""")
        result = self.new(solve, "torch.linalg.solve(a[0], a[1])", "torch.cholesky_solve(a[1].double(), torch.linalg.cholesky(a[0].double())).float()")["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_logarithms_of_probabilities_may_be_those_of_zero(self):
        chain = model("        return torch.logsumexp(a[0] + a[1], -1)", "[logs(64, 32), logs(1, 32)[0]]", extra="""
def logs(rows, columns):
    p = torch.rand(rows, columns).masked_fill(torch.rand(rows, columns) < 0.2, 0)
    p[:, 0] += 0.1
    return (p / p.sum(-1, keepdim=True)).log()
""")
        body = "const float* b = (const float*)args->inputs[1].data; for (int i = 0; i < 64; ++i) { float t = 0; for (int j = 0; j < 32; ++j) t += expf(x[i * 32 + j]) * expf(b[j]); y[i] = logf(t); }"
        result = self.native(chain, body)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_a_unitary_matrix_has_its_inverse_at_hand(self):
        for made, turned in (("torch.linalg.qr(torch.randn(48, 48, dtype=torch.cfloat))[0]", ".conj().t()"), ("spd().to(torch.cfloat)", None)):
            problem = model("        return torch.linalg.solve(a[0], a[1])", f"[{made}, torch.randn(48, 8, dtype=torch.cfloat)]", extra="""
def spd():
    m = torch.randn(48, 48)
    return m @ m.t() / 48 + torch.eye(48)
""")
            new = f"a[0]{turned} @ a[1]" if turned else \
                  "torch.cholesky_solve(a[1].to(torch.cdouble), torch.linalg.cholesky(a[0].to(torch.cdouble))).to(torch.cfloat)"
            result = self.new(problem, "torch.linalg.solve(a[0], a[1])", new)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (made, result)

    def test_how_long_distances_sum_is_known(self):
        distance = model("        return torch.dist(a[0], a[1])", "[torch.randn(64, 1024), torch.randn(64, 1024)]")
        body = "const float* b = (const float*)args->inputs[1].data; float t = 0; for (int i = 0; i < 65536; ++i) t += (x[i] - b[i]) * (x[i] - b[i]); y[0] = sqrtf(t);"
        result = self.native(distance, body)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_what_rounding_decides_is_judged_by_what_it_decides(self):
        # Nobody can be right about the last bits of large numbers, and the rest of an index or a flag must be.
        noise = model("        return ((a[0] @ a[1]) * 1e7).long() % 2", "[torch.randn(64, 256), torch.randn(256, 48)]")
        result = self.native(noise, "memset(args->outputs[0].data, 0, 8 * n);")["result"]
        assert result["verdict"] == "VERDICT_UNMEASURABLE" and "rounding" in result["reason"], result
        positive = model("        return (a[0] @ a[1]) > 0", "[torch.randn(64, 256), torch.randn(256, 48)]")
        halves = """const float* b = (const float*)args->inputs[1].data; unsigned char* z = (unsigned char*)args->outputs[0].data;
for (int i = 0; i < 64; ++i) for (int j = 0; j < 48; ++j) { float t = 0, u = 0; for (int k = 0; k < 128; ++k) t += x[i * 256 + k] * b[k * 48 + j];
  for (int k = 128; k < 256; ++k) u += x[i * 256 + k] * b[k * 48 + j]; z[i * 48 + j] = t + u > %s; }"""
        assert self.native(positive, halves % "0")["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(positive, halves % "0.2f")["result"]["verdict"] == "VERDICT_WRONG"

    def test_outputs_whose_shape_depends_on_values_are_the_problems_fault(self):
        for source in (model("        return a[0][a[0] > 0]", "[torch.randn(100, 100)]"),
                       model("        return torch.nonzero(a[0] > 0)", "[torch.randn(100, 100)]"),
                       # Of few elements two draws often select as many.
                       model("        return a[0][a[0] > 0]", "[torch.randn(48)]")):
            assert "varying-output-shapes" in self.findings(source)
            judge = Judge(self.libexec, python=self.python)
            assert judge.load(source)["type"] == "loaded"
            answer = judge.evaluate(source=source.replace("Model(", "ModelNew("), options=QUICK)
            assert judge.close() == 0
            assert answer["type"] != "result" and "other shapes" in json.dumps(answer), answer

    def test_rounding_of_a_half_type_gives_values_no_meaning(self):
        problem = model("        return torch.relu(a[0]) * 2", "[torch.randn(80, 16384).bfloat16()]")
        result = self.new(problem)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        outcomes = self.outcomes(result)
        for name in ("SCALED", "SPARSE", "OUTLIERS"):
            assert outcomes[name]["passed"] == (1 if name == "SPARSE" else 2) and not outcomes[name].get("skipped"), outcomes

    def test_few_values_of_a_half_type_are_judged(self):
        problem = model("        return torch.round(a[0].half().float() * 4).half()", "[torch.randn(64, 300)]")
        assert self.new(problem)["result"]["verdict"] == "VERDICT_CORRECT"

    def test_a_long_sum_beside_an_output_does_not_loosen_it(self):
        problem = model("        return torch.relu(a[0]) * 1.7, a[0].sum()", "[torch.randn(1 << 20)]")
        body = '''double t = 0; for (long i = 0; i < n; ++i) { float v = 1.7f * (x[i] > 0 ? x[i] : 0); uint32_t u; memcpy(&u, &v, 4);
u = (u + (%s >> 1)) & ~(uint32_t)(%s - 1); memcpy(&v, &u, 4); y[i] = v; t += x[i]; } *(float*)args->outputs[1].data = (float)t;'''
        assert self.native(problem, body % ("1", "1"))["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(problem, body % ("4096", "4096"))["result"]["verdict"] == "VERDICT_WRONG"  # 11 bits are left

    def test_what_is_not_written_is_wrong_where_nan_is_expected_too(self):
        problem = model("        return torch.log(a[0])", "[torch.randn(64, 300)]")
        assert self.native(problem, "for (long i = 0; i < n; ++i) y[i] = logf(x[i]);")["result"]["verdict"] == "VERDICT_CORRECT"
        result = self.native(problem, "for (long i = 0; i < n; ++i) if (x[i] >= 0) y[i] = logf(x[i]);")["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "never written" in result["reason"], result

    # -------------------------------------------------------------------------------------------------- distributions
    def test_an_honest_kernel_passes_on_every_distribution(self):
        for problem, body in ((SOFTMAX, SOFTMAX_BODY % "1"), (LAYERNORM, TWO_PASS), (MATMUL, MATMUL_BODY % "")):
            result = self.native(problem, body)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result
            outcomes = self.outcomes(result)
            assert outcomes["GIVEN"]["passed"] == 5, outcomes
            for name, draws in (("SCALED", 2), ("SHIFTED", 3), ("SPARSE", 1), ("OUTLIERS", 2)):
                assert outcomes[name]["passed"] == draws and not outcomes[name].get("skipped"), outcomes
            report = result["correctness"]
            assert report["precision"] == "as the reference", report
            assert 0 <= report["error_found"] <= report["error_same_precision"] < 1e-4, report

    def test_softmax_without_its_maximum_is_wrong_on_large_values(self):
        assert self.native(SOFTMAX, SOFTMAX_BODY % "0")["result"]["verdict"] == "VERDICT_WRONG"
        result = self.native(SOFTMAX, SOFTMAX_BODY % "0", dict(QUICK, distributions=["INPUT_DISTRIBUTION_SCALED"]))["result"]
        assert result["verdict"] == "VERDICT_WRONG", result
        assert "scaled inputs (times 128" in result["reason"] and "--only-given-inputs" in result["reason"], result["reason"]
        outcomes = self.outcomes(result)
        assert outcomes["GIVEN"]["passed"] == 5 and outcomes["SCALED"]["passed"] == 0, outcomes
        given = self.native(SOFTMAX, SOFTMAX_BODY % "0", dict(QUICK, only_given_inputs=True))["result"]
        assert given["verdict"] == "VERDICT_CORRECT" and list(self.outcomes(given)) == ["GIVEN"], given

    def test_a_sum_that_cancels_is_judged_by_what_rounding_does_to_this_one(self):
        # In some draws next to nothing is left: what others showed of rounding says nothing there.
        problem = model("        return torch.dot(a[0], a[1])", "[torch.randn(1024), torch.randn(1024)]")
        sums = """const float* b = (const float*)args->inputs[1].data; %s t = 0; for (int i = 0; i < %d; ++i) t += %sx[i] * b[i]; y[0] = (float)t;"""
        options = {"min_time_seconds": 0.3, "max_time_seconds": 0.6, "min_samples": 8, "max_samples": 40}
        for _ in range(3):
            for honest in (sums % ("double", 1024, "(double)"), sums % ("float", 1024, "")):
                result = self.native(problem, honest, options)["result"]
                assert result["verdict"] == "VERDICT_CORRECT", result
        assert self.native(problem, sums % ("float", 1023, ""), options)["result"]["verdict"] == "VERDICT_WRONG"

    def test_what_stands_for_infinity_is_no_measure_for_the_rest(self):
        problem = model("        m = torch.arange(1000) % 3 == 0\n        return a[0].masked_fill(m, torch.finfo(a[0].dtype).min)", "[torch.randn(50, 1000)]")
        body = "for (long i = 0; i < 50000; ++i) y[i] = i %% 1000 %% 3 == 0 ? %s : %s;"
        for options in (QUICK, self.TIMED):
            assert self.native(problem, body % ("-3.4028234663852886e38f", "x[i]"), options)["result"]["verdict"] == "VERDICT_CORRECT"
            for mask, rest in (("-3.4028234663852886e38f", "0"), ("-1e9f", "x[i]"), ("-3.4028234663852886e38f", "x[i] * 1.001f")):
                assert self.native(problem, body % (mask, rest), options)["result"]["verdict"] == "VERDICT_WRONG", (mask, rest)

    def test_numbers_whose_squares_overflow_or_vanish_are_judged(self):
        for scale in ("1e200", "1e-200"):
            problem = model(f"        return a[0] * 3.7 * {scale}", "[torch.randn(50, 100, dtype=torch.float64)]")
            body = "const double* v = (const double*)args->inputs[0].data; double* w = (double*)args->outputs[0].data; for (long i = 0; i < 5000; ++i) w[i] = %s;"
            for line, verdict in ((f"v[i] * 3.7 * {scale}", "CORRECT"), (f"v[i] * 7.4 * {scale}", "WRONG"), ("0", "WRONG"), (f"(float)v[i] * 3.7 * {scale}", "WRONG")):
                assert self.native(problem, body % line)["result"]["verdict"] == "VERDICT_" + verdict, (scale, line)

    def test_small_results_of_an_honest_formula_may_be_lost_on_values_that_the_problem_does_not_give(self):
        problem = model("        return torch.sigmoid(a[0])", "[torch.randn(64, 500)]")
        for line, verdict in (("0.5f * (1 + tanhf(0.5f * x[i]))", "CORRECT"), ("x[i] < -2 ? 0 : 1 / (1 + expf(-x[i]))", "WRONG")):
            assert self.native(problem, "for (long i = 0; i < 32000; ++i) y[i] = %s;" % line)["result"]["verdict"] == "VERDICT_" + verdict, line

    def test_who_is_slow_leaves_no_time_out(self):
        # Right on the problem's own values and on the first others, where it is so slow that no time would be left.
        answer = self.native(SOFTMAX, "static int calls = 0; if (++calls == 6) usleep(8000000);" + SOFTMAX_BODY % "(calls == 6 ? 1.0f : 0.0f)",
                             dict(QUICK, limits={"run_wall_seconds": 40, "call_wall_seconds": 20}))
        assert answer["result"]["verdict"] == "VERDICT_WRONG", answer["result"]

    def test_a_reference_that_was_slow_while_it_loaded_is_tried_on_all_values(self):
        problem = "import time\ncalls = 0\n" + model("        global calls\n        calls += 1\n        time.sleep(0.4 if calls <= 16 else 0)\n"
                                                     "        return torch.softmax(a[0], dim=1)", "[torch.randn(32, 400)]")
        for _ in range(2):
            result = self.native(problem, SOFTMAX_BODY % "1.0f", dict(QUICK, limits={"run_wall_seconds": 12, "call_wall_seconds": 5}))["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result
            skipped = [d.get("skipped", "") for d in result["correctness"]["distributions"]]
            assert not any("no time" in why for why in skipped), skipped

    def test_rows_left_out_beside_others_that_are_off_by_what_is_allowed_are_found_in_timed_runs(self):
        # Errors of the large rows that are just right hide nothing of the small ones.
        problem = model("        return a[0] * 2", "[torch.randn(64, 256) * torch.where(torch.arange(64) % 8 == 0, 1.0, 1e-8).unsqueeze(1)]")
        body = """static int calls = 0; ++calls;
for (long i = 0; i < 64; ++i) for (long j = 0; j < 256; ++j) y[i * 256 + j] = i % 8 == 0 ? x[i * 256 + j] * 2 * (calls > 9 + CHEAT ? 1 : j % 2 ? 1 + 2e-7f : 1 - 2e-7f) : calls > 9 + CHEAT ? 0 : x[i * 256 + j] * 2;"""
        options = {"min_time_seconds": 0.5, "max_time_seconds": 1, "min_samples": 20}
        assert self.native(problem, body.replace("CHEAT", "(1 << 30)"), options)["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(problem, body.replace("CHEAT", "4000"), options)["result"]["verdict"] == "VERDICT_WRONG"

    def test_who_counts_the_calls_of_the_check_meets_other_values_between_timed_runs(self):
        body = "static int calls = 0; ++calls;" + SOFTMAX_BODY % "(calls < 40 ? 1.0f : 0.0f)"
        options = {"min_time_seconds": 0.3, "max_time_seconds": 0.6, "min_samples": 30}
        result = self.native(SOFTMAX, body, options)["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "between timed runs" in result["reason"], result
        assert self.native(SOFTMAX, body, dict(options, only_given_inputs=True))["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(SOFTMAX, SOFTMAX_BODY % "1", options)["result"]["verdict"] == "VERDICT_CORRECT"

    def test_what_is_expected_of_large_problems_between_timed_runs_is_computed_later(self):
        # As though not everything had room at once: one draw waits, and is judged when the candidate has run.
        options = {"min_time_seconds": 0.3, "max_time_seconds": 0.6, "min_samples": 30}
        after = dict(self.TIMED, max_time_seconds=2.0)
        del after["only_given_inputs"]
        self.large_bytes = 1
        try:
            for problem, body, options, what in (
                    (SOFTMAX, "static int calls = 0; ++calls;" + SOFTMAX_BODY % "(calls < 40 ? 1.0f : 0.0f)", options, "between timed runs"),
                    (self.LONG_SUMS, self.LONG_SUMS_BODY % "(calls > 14 ? cut(p, 10) * cut(q, 10) : p * q)", after, "between timed runs"),
                    (SOFTMAX, SOFTMAX_BODY % "1", options, ""), (self.LONG_SUMS, self.LONG_SUMS_BODY % "(p * q)", after, "")):
                result = self.native(problem, body, options)["result"]
                assert result["verdict"] == ("VERDICT_WRONG" if what else "VERDICT_CORRECT") and what in result["reason"], result
        finally:
            self.large_bytes = None

    def test_variance_in_one_pass_is_wrong_on_shifted_values_alone(self):
        result = self.native(LAYERNORM, ONE_PASS, dict(QUICK, distributions=["INPUT_DISTRIBUTION_SHIFTED"]))["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "0.1 + 1000" in result["reason"], result
        others = ["INPUT_DISTRIBUTION_SCALED", "INPUT_DISTRIBUTION_SPARSE", "INPUT_DISTRIBUTION_OUTLIERS"]
        assert self.native(LAYERNORM, ONE_PASS, dict(QUICK, distributions=others))["result"]["verdict"] == "VERDICT_CORRECT"

    def test_what_knows_the_inputs_is_wrong(self):
        relu = model("        return torch.relu(a[0])", "[torch.rand(64, 300)]")
        copies = "memcpy(y, x, n * 4);"
        assert "scaled" in self.native(relu, copies)["result"]["reason"]
        mean = model("        return a[0].mean(dim=1)", "[torch.randn(16, 60000)]")
        subsampled = LOOP + "for (long i = 0; i < r; ++i) { float t = 0; for (long j = 0; j < c; j += 2) t += x[i * c + j]; y[i] = t * 2 / c; }"
        assert self.native(mean, subsampled)["result"]["verdict"] == "VERDICT_WRONG"
        tail = LOOP + "for (long i = 0; i < r; ++i) { double t = 0; for (long j = 0; j < c - 1; ++j) t += x[i * c + j]; y[i] = t / c; }"
        assert self.native(mean, tail)["result"]["verdict"] == "VERDICT_WRONG"
        whole = LOOP + "for (long i = 0; i < r; ++i) { float t = 0; for (long j = 0; j < c; ++j) t += x[i * c + j]; y[i] = t / c; }"
        assert self.native(mean, whole)["result"]["verdict"] == "VERDICT_CORRECT"

    def test_where_the_reference_bears_no_large_values_others_are_found(self):
        # Times 128 and beside 1000 these are infinite, or integers cannot hold them.
        for problem, honest, wrong, on in (
                (model("        return torch.exp(2 * a[0].abs())", "[torch.rand(64, 300)]"), "y[i] = expf(2 * fabsf(x[i]));", "y[i] = expf(2 * x[i]);", "times 16, signs at random"),
                (model("        return (a[0].abs() * 255).to(torch.uint8)", "[torch.rand(64, 300)]"), "((uint8_t*)args->outputs[0].data)[i] = (uint8_t)(int)(fabsf(x[i]) * 255);",
                 "((uint8_t*)args->outputs[0].data)[i] = (uint8_t)(int)(x[i] * 255);", "(signs at random)"),
                (model("        return a[0].exp() * a[1].relu()", "[torch.randn(64, 300), torch.rand(64, 300) - 1e-5]"),
                 "float b = ((const float*)args->inputs[1].data)[i]; y[i] = expf(x[i]) * (b > 0 ? b : 0);", "float b = ((const float*)args->inputs[1].data)[i]; y[i] = expf(x[i]) * (b < 90 ? (b > 0 ? b : 0) : 90);", "one input alone times 128"),
                (model("        return a[0].cumprod(dim=1)", "[torch.rand(64, 300)]"), "y[i] = i % 300 ? y[i - 1] * x[i] : x[i];",
                 "y[i] = i % 300 < 250 ? i % 300 ? y[i - 1] * x[i] : x[i] : 0;", "x * 0.01 + 1")):
            loop = "for (long i = 0; i < 64 * 300; ++i) { %s }"
            assert self.native(problem, loop % honest)["result"]["verdict"] == "VERDICT_CORRECT", honest
            result = self.native(problem, loop % wrong)["result"]
            # (The first that is drawn decides: a few outliers, which fall where they will, show some of it, too, and so does
            # what is a little below zero.)
            first = (on, "outlier inputs", "less three times its rms")
            assert result["verdict"] == "VERDICT_WRONG" and any(why in result["reason"] for why in first), result

    def test_beside_indices_other_outputs_are_judged_on_every_distribution(self):
        # A loss beside a count of hits, a softmax beside what it chose, and keys whose signs the problem never shows.
        loss = model("        hits = (a[0].argmax(dim=1) == a[1]).sum()\n        return torch.nn.functional.cross_entropy(a[0], a[1]), hits", "[torch.randn(256, 64), torch.randint(0, 64, (256,))]")
        body = """const long* label = (const long*)args->inputs[1].data; double t = 0; long hits = 0;
for (long r = 0; r < 256; ++r) { const float* p = x + r * 64; const long most = std::max_element(p, p + 64) - p; float s = 0; for (long j = 0; j < 64; ++j) s += expf(p[j] - %s); t += logf(s) + %s - p[label[r]]; hits += most == label[r]; }
*y = t / 256; *(long*)args->outputs[1].data = hits;"""
        largest = model("        return torch.argmax(a[0].abs(), dim=1)", "[torch.rand(64, 300)]")
        place = "for (long r = 0; r < 64; ++r) { long b = 0; for (long j = 1; j < 300; ++j) if (%s(x[r * 300 + j]) > %s(x[r * 300 + b])) b = j; ((long*)args->outputs[0].data)[r] = b; }"
        counts = model("        return torch.bincount((a[0] * 64).long().clamp(0, 63), minlength=64)", "[torch.rand(20000)]")
        count = "long* c = (long*)args->outputs[0].data; for (int i = 0; i < 64; ++i) c[i] = 0; for (long i = 0; i < 20000; ++i) { long b = (long)(x[i] * 64); %s ++c[b & 63]; }"
        for problem, honest, wrong in ((loss, body % ("p[most]", "p[most]"), body % ("0", "0")), (largest, place % ("fabsf", "fabsf"), place % ("", "")),
                                       (counts, count % "b = b < 0 ? 0 : b > 63 ? 63 : b;", count % "")):
            assert self.native(problem, honest)["result"]["verdict"] == "VERDICT_CORRECT", honest
            result = self.native(problem, wrong)["result"]
            assert result["verdict"] == "VERDICT_WRONG" and "right on all 5 draws" in result["reason"], result

    def test_values_with_a_meaning_stay_as_they_are(self):
        # A triangle stays one, a symmetric matrix too, labels and probabilities are not touched.
        triangle = model("        return torch.tril(a[0] @ a[1])", "[torch.tril(torch.rand(64, 64)), torch.tril(torch.rand(64, 64))]")
        body = ("const float* b = (const float*)args->inputs[1].data; for (int i = 0; i < 64; ++i) for (int j = 0; j < 64; ++j) "
                "{ float t = 0; for (int k = j; k <= i; ++k) t += x[i * 64 + k] * b[k * 64 + j]; y[i * 64 + j] = t; }")
        result = self.native(triangle, body)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        assert self.outcomes(result)["SHIFTED"]["passed"] == 3, result["correctness"]["distributions"]
        symmetric = model("        return a[0] @ a[1]", "[(lambda m: (m + m.T) / 2)(torch.rand(64, 64)), torch.rand(64, 64)]")
        body = ("const float* b = (const float*)args->inputs[1].data; for (int i = 0; i < 64; ++i) for (int j = 0; j < 64; ++j) "
                "{ float t = 0; for (int k = 0; k < 64; ++k) t += x[k * 64 + i] * b[k * 64 + j]; y[i * 64 + j] = t; }")
        assert self.native(symmetric, body)["result"]["verdict"] == "VERDICT_CORRECT"
        kl = model("        return torch.nn.functional.kl_div(torch.log(a[0]), a[1], reduction='batchmean')",
                   "[torch.rand(8, 40).softmax(-1), torch.rand(8, 40).softmax(-1)]")
        result = self.new(kl)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        assert all("skipped" in d for name, d in self.outcomes(result).items() if name != "GIVEN"), result
        # Nor are logarithms of probabilities: a program may well go back to these.
        mean = model("        return torch.logsumexp(a[0], dim=(0, 1))", "[torch.randn(50, 40).log_softmax(-1)]")
        result = self.native(mean, "double t = 0; for (int i = 0; i < 2000; ++i) t += exp(x[i]); *y = log(t);")["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        loss = model("        return torch.nn.functional.nll_loss(a[0], a[1])", "[torch.randn(50, 40).log_softmax(-1), torch.randint(0, 40, (50,))]")
        result = self.new(loss)["result"]
        assert all("skipped" in d for name, d in self.outcomes(result).items() if name not in ("GIVEN", "INTEGERS")), result

    def on_rare(self, problem, cheat, twin, words):
        """`cheat` and `twin`: what stands in the last line of forward; the first is right on all other values."""
        last = problem[: problem.index("def get_inputs")].rstrip().splitlines()[-1].strip()
        for line in (last, twin):
            result = self.new(problem, last, line)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (line, result)
            outcome = self.outcomes(result)["RARE"]
            assert outcome["passed"] > 0 and not outcome.get("skipped"), (line, outcome)
        assert self.new(problem, last, cheat)["result"]["verdict"] == "VERDICT_WRONG", cheat
        # (In short rows SPARSE finds some of it.)
        result = self.new(problem, last, cheat, dict(QUICK, distributions=["INPUT_DISTRIBUTION_RARE"]))["result"]
        assert result["verdict"] == "VERDICT_WRONG" and words in result["reason"], (cheat, result)
        result = self.new(problem, last, cheat, dict(QUICK, only_given_inputs=True))["result"]
        assert result["verdict"] == "VERDICT_CORRECT", (cheat, result)

    def test_rows_of_zeros_need_an_epsilon(self):
        rows = "[torch.randn(48, 300)]"
        self.on_rare(model("        x = a[0]\n        return x / (x.norm(dim=1, keepdim=True) + 1e-12)", rows),
                     "return x / x.norm(dim=1, keepdim=True)",
                     "return x * (1 / x.square().sum(1, keepdim=True).sqrt().clamp_min(1e-12))", "rows of zeros")
        # Along any dimension, of one sample, in a half type, and where an operation has the epsilon.
        self.on_rare(model("        x = a[0]\n        return torch.nn.functional.normalize(x, dim=1)", "[torch.randn(1, 24, 20, 8)]"),
                     "return x / x.norm(dim=1, keepdim=True)", "return x / x.square().sum(1, True).sqrt().clamp_min(1e-12)", "rows of zeros")
        self.on_rare(model("        x = a[0]\n        return torch.nn.functional.layer_norm(x, (300,))", "[torch.randn(48, 300).bfloat16()]"),
                     "x = x.float(); d = x - x.mean(1, True); return (d / d.square().mean(1, True).sqrt()).bfloat16()",
                     "x = x.float(); d = x - x.mean(1, True); return (d / (d.square().mean(1, True) + 1e-5).sqrt()).bfloat16()", "rows of zeros")
        # The formula of a cosine is known without one.
        problem = model("        x, z = a\n        return torch.nn.functional.cosine_similarity(x, z, dim=1)", "[torch.randn(48, 300), torch.randn(48, 300)]")
        result = self.new(problem, "torch.nn.functional.cosine_similarity(x, z, dim=1)", "(x * z).sum(1) / (x.norm(dim=1) * z.norm(dim=1))")["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_what_rounding_leaves_of_a_row_of_zeros_is_not_compared(self):
        # Nothing of it is known but that it is a number: the same divided by 1e-12, in another order.
        problem = model("        s = torch.softmax(a[0], dim=1)\n        return (s - s.mean(1, True)) / (s.std(1, keepdim=True) + 1e-12)", "[torch.randn(50, 333)]")
        twin = "s = s * (1 + 2.0**-20); m = s.flip(1).cumsum(1)[:, -1:] * (1.0 / 333); d = s - m; return d / ((d * d).cumsum(1)[:, -1:] / 332).sqrt().add(1e-12)"
        result = self.new(problem, "return (s - s.mean(1, True)) / (s.std(1, keepdim=True) + 1e-12)", twin, dict(QUICK, distributions=["INPUT_DISTRIBUTION_RARE"]))["result"]
        assert result["verdict"] == "VERDICT_CORRECT" and self.outcomes(result)["RARE"]["passed"] == 1, result

    def test_bounds_that_a_program_names_are_crossed(self):
        rows = "[torch.randn(48, 300)]"
        self.on_rare(model("        x = a[0]\n        return torch.clamp(x, -3e4, 1e5) * 2", rows),
                     "return torch.clamp_min(x, -3e4) * 2", "return torch.where(x > 1e5, 1e5, torch.where(x < -3e4, -3e4, x)) + x.clamp(-3e4, 1e5)",
                     "beyond the bounds")
        self.on_rare(model("        x = a[0]\n        return torch.where(x.view(-1) > 5e5, torch.ones_like(x).view(-1), x.view(-1))", rows),
                     "return x.view(-1) * 1", "return torch.where((x <= 5e5).view(-1), x.view(-1), 1.0)", "beyond the bounds")
        self.on_rare(model("        x = a[0]\n        return torch.log(torch.clamp(x, min=1e-9)).sum(1)", "[torch.rand(48, 300)]"),
                     "return torch.log(x).sum(1)", "return torch.log(x.clamp_min(1e-9)).double().sum(1).float()", "rare inputs")
        # (Rows of zeros show that one, too.) Of what is made of the inputs no bound is known.
        problem = model("        return torch.clamp(torch.exp(a[0]), max=1e9)", rows)
        result = self.new(problem)["result"]
        assert result["verdict"] == "VERDICT_CORRECT" and self.outcomes(result)["RARE"]["trials"] == 1, result

    def test_where_a_program_has_a_place_for_nan_there_is_one(self):
        rows = "[torch.randn(48, 300)]"
        self.on_rare(model("        x = a[0]\n        return torch.nan_to_num(x, nan=0.5) * 2", rows),
                     "return x * 2", "return torch.where(x == x, x, 0.5) * 2", "NaN")
        self.on_rare(model("        x = a[0]\n        return torch.where(torch.isfinite(x), x, torch.zeros_like(x)).sum(1)", rows),
                     "return torch.where(torch.isnan(x), 0.0, x).sum(1)", "return x.masked_fill(x.isinf() | x.isnan(), 0).sum(1)", "infinite")
        # Who drops NaN where the reference passes it on is asked for nothing, for there is no place for it.
        problem = model("        return torch.relu(a[0])", rows)
        result = self.new(problem, "torch.relu(a[0])", "torch.fmax(a[0], torch.zeros(()))")["result"]
        assert result["verdict"] == "VERDICT_CORRECT" and "RARE" in self.outcomes(result), result

    def test_whole_numbers_that_are_only_reckoned_with_are_others_in_one_draw(self):
        problem = model('        x = a[0]\n        return torch.div(x, 7, rounding_mode="floor"), x.sum(dim=1)', "[torch.randint(0, 8, (64, 400), dtype=torch.int32)]")
        line = 'return torch.div(x, 7, rounding_mode="floor"), x.sum(dim=1)'
        for twin in ("return x // 7, x.float().sum(dim=1).long()", "return (x - x % 7) // 7, x.flip(1).cumsum(1)[:, -1]"):
            result = self.new(problem, line, twin)["result"]
            assert result["verdict"] == "VERDICT_CORRECT" and self.outcomes(result)["INTEGERS"]["passed"] == 2, (twin, result)
        for cheat in ('return torch.div(x, 7, rounding_mode="trunc"), x.sum(dim=1)', "return x // 7, x.sum(dim=1, dtype=torch.int16).long()"):
            result = self.new(problem, line, cheat)["result"]
            assert result["verdict"] == "VERDICT_WRONG" and "other whole numbers" in result["reason"], (cheat, result)

    def test_whole_numbers_that_may_mean_more_stay_as_they_are(self):
        # Flags, codes, places, lengths and bytes: what else they could be nobody has to know.
        for body, inputs, new in (
                ("return a[0] * a[1].log() + (1 - a[0]) * (1 - a[1]).log()", "[torch.randint(0, 2, (30, 40)), torch.rand(30, 40) * 0.9 + 0.05]",
                 "return torch.where(a[0] != 0, a[1].log(), (1 - a[1]).log())"),
                ("return (a[0] - 1).float() * a[1]", "[torch.randint(0, 4, (30, 40)), torch.rand(30, 1)]",
                 "return torch.tensor([-1.0, 0.0, 1.0, 2.0])[a[0]] * a[1]"),
                ("return a[0].sum(1) / a[1]", "[torch.rand(30, 40), torch.randint(1, 40, (30,))]", "assert (a[1] > 0).all(); return a[0].sum(1) / a[1]"),
                ("return (a[0][:, 0] * 77 + a[0][:, 1] * 150) / 256", "[torch.randint(0, 256, (30, 2, 40))]", "assert a[0].max() < 256; return (a[0][:, 0] * 77 + a[0][:, 1] * 150) / 256"),
                ("return a[0] * 2 + a[1][a[0]]", "[torch.randint(0, 40, (30,)), torch.rand(40)]", "assert (a[0] < 40).all(); return a[1].index_select(0, a[0]) + a[0] + a[0]"),
                ("return (a[1] - a[0]).abs().sum()", "[torch.arange(50) * 3, torch.randint(0, 9, (50,))]", "assert (a[0] == torch.arange(50) * 3).all(); return (a[0] - a[1]).abs().sum()")):
            result = self.new(model("        " + body, inputs), body, new)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (body, result)

    def test_indices_of_few_of_their_own_values_keep_what_they_mean(self):
        # What each of these says of its inputs is held by every draw, and would be held by none if they were drawn at random.
        for inputs, holds, random in (
                ("torch.stack([torch.randperm(64) for _ in range(8)])", "(a[0].sort(1)[0] == torch.arange(64)).all()", "torch.randint(0, 64, (8, 64))"),
                ("(torch.rand(8, 64) * torch.arange(64)).long()", "(a[0] <= torch.arange(64)).all()", "torch.randint(0, 64, (8, 64))"),
                ("torch.randint(0, 32, (64, 2)).sort(1)[0]", "(a[0][:, 0] <= a[0][:, 1]).all()", "torch.randint(0, 16, (128, 2))"),
                ("*torch.randint(0, 32, (64, 2)).sort(1)[0].t().contiguous()", "(a[0] <= a[1]).all()", "*torch.randint(0, 32, (2, 64))"),
                ("(l := torch.randint(1, 64, (32,))), (torch.rand(32, 20) * l[:, None]).long()", "(a[1] < a[0][:, None]).all()",
                 "torch.randint(0, 64, (32,)), torch.randint(0, 64, (32, 20))"),
                ("torch.cat((torch.randint(0, 64, (200,)), torch.arange(64)))", "(torch.bincount(a[0], minlength=64) > 0).all()", "torch.randint(0, 64, (264,))"),
                ("torch.cat([torch.randint(0, 64, (8,)).sort()[0] for _ in range(16)])", "(a[0].view(16, 8).sort(1)[0] == a[0].view(16, 8)).all()",
                 "torch.randint(0, 64, (128,))"),
                ("torch.stack((torch.randint(0, 64, (400,)), torch.randint(0, 64, (400,)).sort()[0]))", "(a[0][1].sort()[0] == a[0][1]).all()",
                 "torch.randint(0, 64, (2, 400))"),
                ("*torch.stack(((p := torch.randperm(64 * 40)[:600]) // 40, p % 40))", "len(set((a[0] * 40 + a[1]).tolist())) == 600",
                 "*torch.randint(0, 40, (2, 600))"),
                ("torch.rand(64, 8).topk(2)[1]", "(a[0][:, 0] != a[0][:, 1]).all()", "torch.randint(0, 8, (64, 2))"),
                ("torch.where(torch.arange(24) < torch.randint(1, 25, (40, 1)), torch.randint(1, 64, (40, 24)), 0)",
                 "((a[0][:, 1:] == 0) >= (a[0][:, :-1] == 0)).all()", "torch.randint(0, 64, (40, 24))"),
                ("torch.cat((e := torch.randint(0, 64, (2, 400)), e.flip(0)), 1)", "(torch.bincount(a[0][0]) == torch.bincount(a[0][1])).all()",
                 "torch.randint(0, 64, (2, 800))"),
                ("torch.stack(((p := torch.randperm(30 ** 3)[:900]) // 900, p // 30 % 30, p % 30), 1)", "len(set(map(tuple, a[0].tolist()))) == 900",
                 "torch.randint(0, 30, (90000, 3))"),
                ("(torch.arange(64) % 8)[torch.randperm(64)]", "(torch.bincount(a[0], minlength=64) == 8 * (torch.arange(64) < 8)).all()", "torch.randint(0, 8, (64,))"),
                ("torch.randint(0, 4, (200, 12)) + 4 * torch.arange(12)", "(a[0] // 4 == torch.arange(12)).all()", "torch.randint(0, 48, (200, 12))")):
            line = "return tuple(a[-1][i] for i in a[:-1])"
            for values, new in ((inputs, "assert " + holds + "; " + line), (random, line)):
                result = self.new(model("        " + line, "[" + values + ", torch.randn(64)]"), line, new)["result"]
                assert result["verdict"] == "VERDICT_CORRECT", (values, result)
                outcome = self.outcomes(result)["INTEGERS"]
                assert outcome["passed"] == (2 if values == random else 0), (values, outcome)
        # Where it is no index alone, or each has a table of its own, nothing is known of others.
        for line, inputs in (("return a[1][a[0][0]] * a[2][a[0][1]]", "torch.randint(0, 10, (2, 400)), torch.randn(10), torch.randn(90)"),
                             ("return a[1][a[0]] + a[0]", "torch.randint(0, 64, (200,)), torch.randn(64)"),
                             ("return a[1][a[0]] + a[0].data", "torch.randint(0, 64, (200,)), torch.randn(64)"),
                             ("return a[2].clone().index_copy(0, a[0], a[1])", "torch.randint(0, 64, (200,)), torch.randn(200), torch.randn(64)")):
            result = self.new(model("        " + line, "[" + inputs + "]"), line, line)["result"]
            assert result["verdict"] == "VERDICT_CORRECT" and self.outcomes(result)["INTEGERS"]["passed"] == 0, (line, result)

    def test_indices_of_few_of_their_own_values_find_who_knows_how_they_are_drawn(self):
        # Places that nobody names; a label that the program names and no draw has.
        body = "n = torch.bincount(a[0], minlength=16).clamp(min=1); return torch.zeros(16).index_add(0, a[0], a[1]) / n"
        problem = model("        " + body, "[torch.randint(0, 16, (600,)), torch.randn(600)]")
        for new, verdict in ((body, "CORRECT"), (body.replace(".clamp(min=1)", ""), "WRONG")):
            result = self.new(problem, body, new)["result"]
            assert result["verdict"] == "VERDICT_" + verdict, (new, result)
        body = "return torch.where(a[0].unsqueeze(1) != 99, a[1], torch.zeros_like(a[1]))"
        problem = model("        " + body, "[torch.randint(0, 16, (600,)), torch.randn(600, 4)]")
        for new, verdict in (("return a[1] * (a[0] != 99).unsqueeze(1)", "CORRECT"), ("return a[1] * 1", "WRONG")):
            result = self.new(problem, body, new)["result"]
            assert result["verdict"] == "VERDICT_" + verdict, (new, result)

    def test_values_are_shifted_both_ways(self):
        body = "return torch.nn.functional.max_pool1d(a[0], 31, 1, 15)"
        problem = model("        " + body, "[torch.randn(8, 4, 300)]")
        for new, verdict in (("-inf", "CORRECT"), ("0", "WRONG")):
            result = self.new(problem, body, f'return torch.nn.functional.pad(a[0], (15, 15), value=float("{new}")).unfold(-1, 31, 1).amax(-1)')["result"]
            assert result["verdict"] == "VERDICT_" + verdict, (new, result)
        assert "- 1000" in result["reason"], result

    def test_what_the_reference_itself_does_not_bear_is_skipped_with_the_reason(self):
        root = model("        return torch.sqrt(a[0]) + torch.log(a[0])", "[torch.rand(64, 300) + 0.5]")
        outcomes = self.outcomes(self.new(root)["result"])
        assert outcomes["SCALED"]["passed"] == 2, outcomes  # without the signs
        assert "NaN" in outcomes["SPARSE"]["skipped"], outcomes
        bce = model("        return torch.nn.functional.binary_cross_entropy(a[0], a[1])", "[torch.rand(64), torch.randint(0, 2, (64,)).float()]")
        result = self.new(bce)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        assert "refuses" in self.outcomes(result)["SHIFTED"]["skipped"], self.outcomes(result)
        half = "        return a[0] * 2", "[torch.rand%s(64, 300).to(torch.bfloat16)]"
        assert self.outcomes(self.new(model(half[0], half[1] % ""))["result"])["SHIFTED"]["passed"] == 1  # a little below zero
        assert self.outcomes(self.new(model(half[0], half[1] % "n"))["result"])["SHIFTED"]["passed"] == 2  # that, and all
        near = model(half[0], "[(100 + torch.rand(64, 300)).to(torch.bfloat16)]")
        assert "cannot hold" in self.outcomes(self.new(near)["result"])["SHIFTED"]["skipped"]
        # What has one sign stays where all others are moved, if a root of it is not to be NaN.
        rooted = model("        return torch.sqrt(a[0]) * a[1]", "[torch.rand(64, 300) + 0.5, torch.randn(64, 300)]")
        assert self.outcomes(self.new(rooted)["result"])["SHIFTED"]["passed"] == 3  # far above, all below and a little
        whole = model("        return a[0] + 1", "[torch.randint(0, 9, (64,))]")
        assert "floating" in self.outcomes(self.new(whole)["result"])["SCALED"]["skipped"]

    def test_numbers_that_integers_cannot_hold_are_nobody_s_fault(self):
        # What such a conversion gives is the processor's affair: honest programs clamp, or round in floating point.
        back = model("        return (a[0] * 255).to(torch.uint8).float() / 255", "[torch.rand(64, 300)]")
        for body in ("for (long i = 0; i < n; ++i) y[i] = floorf(x[i] * 255) / 255;",
                     "for (long i = 0; i < n; ++i) y[i] = (uint8_t)std::clamp(x[i] * 255, 0.f, 255.f) / 255.f;"):
            result = self.native(back, body)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result
            assert "cannot hold" in self.outcomes(result)["SHIFTED"]["skipped"], self.outcomes(result)
        assert self.native(back, "for (long i = 0; i < n; ++i) y[i] = rintf(x[i] * 255) / 255;")["result"]["verdict"] == "VERDICT_WRONG"
        # Clamped before, they are held, and all of it counts.
        held = model("        return (a[0] * 255).clamp(0, 255).to(torch.uint8).float() / 255", "[torch.rand(64, 300)]")
        result = self.native(held, "for (long i = 0; i < n; ++i) y[i] = floorf(x[i] * 255) / 255;")["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "draws of the problem's own values" in result["reason"], result

    def test_equal_keys_that_a_distribution_makes_do_not_decide(self):
        # The area under a curve by ranks. Pairs of equal scores count half in the program, and by their order in the reference.
        area = model("""        s, l = a
        r = torch.empty_like(l)
        r[s.argsort()] = torch.arange(400)
        p = l.sum()
        return ((r * l).sum() - p * (p - 1) / 2) / (p * (400 - p))""", "[torch.randn(400), (torch.rand(400) > 0.4).long()]")
        pairs = """const int64_t* l = (const int64_t*)args->inputs[1].data; double t = 0, p = 0;
for (int i = 0; i < 400; ++i) { p += l[i]; for (int j = 0; j < 400; ++j) if (l[i] && !l[j]) t += x[j] < x[i] ? 1 : x[j] == x[i] ? %s : 0; }
*y = t / (p * (400 - p));"""
        for equal in ("0.5", "0"):
            result = self.native(area, pairs % equal)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result
            assert "equal keys" in self.outcomes(result)["SPARSE"]["skipped"], self.outcomes(result)
        assert self.native(area, pairs.replace("400 - p", "401 - p") % "0.5")["result"]["verdict"] == "VERDICT_WRONG"

    def test_a_result_that_vanishes_in_its_type_is_not_held_against_anybody(self):
        # Times 128 all of it is too small for float32, and in float64 one element is as good as all of it.
        bell = model("        return torch.exp(-a[0] * a[1] * a[1] / 8)", "[torch.rand(2000) * 2 + 0.1, torch.rand(2000) * 0.4 + 0.1]")
        body = "const float* v = (const float*)args->inputs[1].data; for (long i = 0; i < n; ++i) y[i] = %s;"
        for _ in range(4):
            result = self.native(bell, body % "expf(-x[i] * v[i] * v[i] / 8)")["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result
        assert self.native(bell, body % "expf(-x[i] * v[i] / 8)")["result"]["verdict"] == "VERDICT_WRONG"

    def test_a_number_that_the_reference_has_right_by_chance_is_no_measure(self):
        # Cancellation takes all but the last digits, and the order of the sum decides those.
        spread = model("        return (a[0] * a[0]).mean() - a[0].mean() ** 2", "[torch.randn(4096) * 4]")
        other = spread.replace("Model(", "ModelNew(").replace("a[0]", "a[0].view(8, 512).t().flip(0).contiguous()")
        options = dict(QUICK, distributions=["INPUT_DISTRIBUTION_SHIFTED"])
        for _ in range(20):
            result = self.evaluated(self.judge(spread)[0], source=other, options=options)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result["reason"]

    def test_a_crash_says_on_which_inputs(self):
        inverse = model("        return torch.linalg.pinv(a[0])", "[torch.randn(8, 6, 6)]")
        result = self.new(inverse, "linalg.pinv", "linalg.inv", dict(QUICK, distributions=["INPUT_DISTRIBUTION_SPARSE"]))["result"]
        assert result["verdict"] == "VERDICT_CRASHED" and "on sparse inputs" in result["reason"], result

    def test_the_other_rule_judges_given_values_alone(self):
        options = dict(QUICK, tolerance={"mode": "TOLERANCE_MODE_ABSOLUTE_RELATIVE", "atol": 1e-4, "rtol": 1e-4})
        result = self.native(SOFTMAX, SOFTMAX_BODY % "0", options)["result"]
        assert result["verdict"] == "VERDICT_CORRECT" and list(self.outcomes(result)) == ["GIVEN"], result

    # ------------------------------------------------------------------------------------------------------ precision
    def test_lowered_precision_is_wrong_unless_it_is_allowed(self):
        result = self.native(MATMUL, MATMUL_BODY % BF16)["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "1e-2" not in result["correctness"]["also_passes"], result
        reduced = dict(QUICK, precision="PRECISION_POLICY_REDUCED")
        result = self.native(MATMUL, MATMUL_BODY % BF16, reduced)["result"]
        report = result["correctness"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        assert "reduced (bfloat16" in report["precision"] and 1e-3 < report["error_found"] < 1e-2, report
        assert report["error_same_precision"] < 1e-5 and "scaled" not in report["also_passes"], report
        tight = dict(reduced, precision_tolerance=1e-4)
        assert self.native(MATMUL, MATMUL_BODY % BF16, tight)["result"]["verdict"] == "VERDICT_WRONG"
        assert self.native(MATMUL, "memset(y, 0, n * 4);", reduced)["result"]["verdict"] == "VERDICT_WRONG"

    # Eight bits for each weight, and a factor for every 32 of them.
    EIGHT_BITS = """
def eight_bits(w):
    groups = w.float().reshape(w.shape[0] // 32, 32, w.shape[1])
    step = groups.abs().amax(1, keepdim=True).clamp_min(1e-30) / 127
    return ((groups / step).round() * step).reshape(w.shape).bfloat16()
"""

    def test_weights_of_eight_bits_are_wrong_in_a_half_type(self):
        forward = "torch.addmm(self.b, a[0], self.w)"
        made = "        self.w = nn.Parameter((torch.randn(1024, 256) / 32).bfloat16())\n        self.b = nn.Parameter(torch.randn(256).bfloat16())\n"
        problem = built("        return " + forward, "[torch.randn(48, 1024).bfloat16()]", made) + self.EIGHT_BITS
        in_turn = """t = a[0][:, :64] @ self.w[:64]
        for k in range(64, 1024, 64): t = t + a[0][:, k:k + 64] @ self.w[k:k + 64]
        return t + self.b"""  # each partial sum, and all that is added up so far, is rounded
        for honest in ("(a[0].float() @ self.w.float() + self.b.float()).bfloat16()", "a[0] @ self.w + self.b", in_turn):
            result = self.new(problem, "return " + forward, honest if "return" in honest else "return " + honest)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (honest, result)
            assert self.outcomes(result)["SPARSE"]["passed"] == 2, result
        cheat = {"old": forward, "new": "torch.addmm(self.b, a[0], eight_bits(self.w))"}
        result = self.new(problem, **cheat)["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "one factor zero" in result["reason"], result
        # As far as sums of many terms go, it may be how they are added up.
        assert self.new(problem, **cheat, options=dict(QUICK, only_given_inputs=True))["result"]["verdict"] == "VERDICT_CORRECT"

    def test_either_factor_of_a_product_in_a_half_type_has_all_its_bits(self):
        forward = "torch.relu(a[0] @ a[1])"
        problem = model("        return " + forward, "[torch.randn(96, 512).bfloat16(), torch.randn(512, 128).bfloat16()]") + self.EIGHT_BITS
        result = self.new(problem, forward, "torch.relu((a[1].t().float() @ a[0].t().float()).t().bfloat16())")["result"]
        assert result["verdict"] == "VERDICT_CORRECT" and self.outcomes(result)["SPARSE"]["passed"] == 3, result
        for cheat in ("torch.relu(eight_bits(a[0].t()).t() @ a[1])", "torch.relu(a[0] @ eight_bits(a[1]))"):
            result = self.new(problem, forward, cheat, dict(QUICK, distributions=["INPUT_DISTRIBUTION_SPARSE"]))["result"]
            assert result["verdict"] == "VERDICT_WRONG" and "one factor zero" in result["reason"], (cheat, result)

    def test_what_follows_a_product_in_a_half_type_may_round_as_it_likes(self):
        forward = "torch.nn.functional.gelu(torch.nn.functional.linear(a[0], self.w))"
        problem = built("        return " + forward, "[torch.randn(48, 512).bfloat16()]",
                        "        self.w = nn.Parameter((torch.randn(128, 512) / 23).bfloat16())\n")
        steps = "[0.5 * t * (1 + torch.erf(t * 0.70710678)) for t in [a[0] @ self.w.t()]][0]"
        result = self.new(problem, forward, steps)["result"]
        assert result["verdict"] == "VERDICT_CORRECT" and self.outcomes(result)["SPARSE"]["passed"] == 1, result

    # ---------------------------------------------------------------------------------------------------- types, trees
    def test_every_type_in_every_place(self):
        for dtype, make in (("float16", "torch.randn(33, 7)"), ("bfloat16", "torch.randn(33, 7)"), ("float64", "torch.randn(33, 7)"),
                            ("complex64", "torch.randn(33, 7)"), ("complex128", "torch.randn(33, 7)"), ("int64", "torch.randint(0, 99, (33, 7))"),
                            ("int32", "torch.randint(0, 99, (33, 7))"), ("int16", "torch.randint(0, 99, (33, 7))"),
                            ("int8", "torch.randint(0, 99, (33, 7))"), ("uint8", "torch.randint(0, 99, (33, 7))"), ("bool", "torch.rand(33, 7) > 0.5")):
            change = "torch.logical_not(a[0])" if dtype == "bool" else "a[0] + a[0]"
            problem = model("        return {'sum': %s, 'rest': [a[0].t().contiguous(), (a[0][0], 7, 2.5, True)]}" % change,
                            f"[({make}).to(torch.{dtype})]")
            right = self.new(problem)
            assert "result" in right, (dtype, right)
            right = right["result"]
            assert right["verdict"] == "VERDICT_CORRECT", (dtype, right)
            if dtype in ("float16", "complex64", "bool"):
                wrong = self.new(problem, "(a[0][0], 7", "(a[0][1], 7")["result"]
                assert wrong["verdict"] == "VERDICT_WRONG" and "rest" in wrong["reason"], (dtype, wrong)
        for old, new in ((" 7,", " 8,"), ("2.5", "2.4"), ("True", "False")):
            assert self.new(problem, old, new)["result"]["verdict"] == "VERDICT_WRONG", (old, new)

    def test_an_index_that_rounding_decides_may_differ_as_often_as_the_references(self):
        problem = model("        return (a[0] @ a[1]).argmax(dim=1)", "[torch.randn(4096, 64), torch.randn(64, 32)]")
        body = ("const float* b = (const float*)args->inputs[1].data; int64_t* o = (int64_t*)args->outputs[0].data; for (int i = 0; i < 4096; ++i) "
                "{ float best = -1e30f; for (int j = 0; j < 32; ++j) { %s t = 0; for (int k = 63; k >= 0; --k) t += x[i * 64 + k] * b[k * 32 + j]; "
                "if (t > best) { best = t; o[i] = j; } } }")
        assert self.native(problem, body % "float")["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(problem, (body % "float") + " for (int i = 0; i < 40; ++i) o[i * 100] ^= 1;")["result"]["verdict"] == "VERDICT_WRONG"

    def test_of_equal_keys_any_may_be_chosen_and_nothing_else(self):
        # In one row of eleven the largest value is there twice.
        problem = model("        return a[0].argmax(dim=1)", "[(torch.randn(2048, 256) * 16).round() / 16]")
        body = ("int64_t* o = (int64_t*)args->outputs[0].data; for (int i = 0; i < 2048; ++i) { o[i] = 0; for (int j = 1; j < 256; ++j) "
                "if (x[i * 256 + j] %s x[i * 256 + o[i]]) o[i] = j; }")
        for _ in range(4):
            result = self.native(problem, body % ">=")["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result
        result = self.native(problem, (body % ">") + " for (int i = 0; i < 2048; i += 17) o[i] ^= 1;")["result"]
        assert result["verdict"] == "VERDICT_WRONG", result

    # The places in `o` of the four largest in each of 64 rows of 40 values v; among equal ones the last.
    FOUR_LARGEST = ("int64_t* o = (int64_t*)args->outputs[%d].data; for (int i = 0; i < 64; ++i) { int p[40]; for (int j = 0; j < 40; ++j) p[j] = j; "
                    "auto v = [&](int j) { return %s; }; std::sort(p, p + 40, [&](int a, int b) { return v(a) != v(b) ? v(a) > v(b) : a %s b; }); "
                    "for (int j = 0; j < %d; ++j) o[i * %d + j] = p[j]; %s }")

    def test_of_equal_keys_that_no_nudge_parts_any_may_be_chosen(self):
        relu, whole, given = "fmaxf(x[i * 40 + j] - 1.7f, 0.f)", "x[i * 40 + j]", dict(QUICK, only_given_inputs=True)
        values = "for (int j = 0; j < 4; ++j) y[i * 4 + j] = v(p[j]);"
        topk = "        return torch.topk(%s, 4, dim=1)"
        gated = model(topk % "torch.relu(a[0] - 1.7)", "[torch.randn(64, 40)]")
        digits = model(topk % "a[0]", "[torch.randint(0, 9, (64, 40)).float()]")
        negated = model("        return torch.sort(a[0], dim=1, descending=True)[1]", "[torch.randint(0, 9, (64, 40)).float()]")
        first = model("        return torch.argsort(a[0], dim=1, descending=True)[:, :7]", "[torch.randint(0, 9, (64, 40)).float()]")
        for problem, key, out, count, rest in ((gated, relu, 1, 4, values), (digits, whole, 1, 4, values),
                                               (negated, whole, 0, 40, ""), (first, whole, 0, 7, "")):
            for order in "<>":
                result = self.native(problem, self.FOUR_LARGEST % (out, key, order, count, count, rest))["result"]
                assert result["verdict"] == "VERDICT_CORRECT", (problem, order, result)
        # Neither one place twice nor a smaller key.
        for problem, key, wrong in ((gated, relu, "o[i * 4 + 3] = p[2];"), (digits, whole, "for (int j = 5; j < 40; ++j) if (v(p[j]) < v(p[3])) { o[i * 4 + 3] = p[j]; break; }"),
                                    (digits, whole, "o[i * 4] = -1;"), (digits, whole, "o[i * 4] = 40;")):
            result = self.native(problem, self.FOUR_LARGEST % (1, key, "<", 4, 4, values + wrong), given)["result"]
            assert result["verdict"] in ("VERDICT_WRONG", "VERDICT_UNMEASURABLE"), (wrong, result)
        # Where the order among equal keys was asked for, it is part of the result.
        stable = model("        return torch.sort(a[0], dim=1, descending=True, stable=True)[1]", "[torch.randint(0, 9, (64, 40)).float()]")
        assert self.native(stable, self.FOUR_LARGEST % (0, whole, "<", 40, 40, ""))["result"]["verdict"] == "VERDICT_CORRECT"
        result = self.native(stable, self.FOUR_LARGEST % (0, whole, ">", 40, 40, ""))["result"]
        assert result["verdict"] != "VERDICT_CORRECT", result

    # Places in `o` (of `n`) of the `k` largest of v(j), among equal ones in the order that is asked for; `use` goes on to work with them.
    CHOSEN = ("for (int i = 0; i < 30; ++i) { const float* r = x + i * 64; int p[64]; for (int j = 0; j < 64; ++j) p[j] = j; "
              "std::sort(p, p + 64, [&](int a, int b) { float u = fmaxf(r[a], 0), v = fmaxf(r[b], 0); return u != v ? u > v : a %s b; }); %s }")

    def test_of_equal_keys_any_may_be_chosen_where_a_program_goes_on_to_work_with_the_places(self):
        inputs = "[torch.randn(30, 64) - 1, torch.randn(30, 64)]"
        kept = "        k = torch.relu(a[0]).topk(16, dim=1).indices\n"
        group = model(kept + "        return k // 8", inputs)
        payload = model(kept + "        return a[1].gather(1, k)", inputs)
        mask = model(kept + "        return torch.zeros_like(a[0]).scatter_(1, k, 1.0)", inputs)
        w = "const float* w = (const float*)args->inputs[1].data + i * 64; "
        out = "for (int j = 0; j < 16; ++j) "
        groups = "int64_t* o = (int64_t*)args->outputs[0].data + i * 16; " + out + "o[j] = p[j] / 8; "
        payloads = w + "float* o = y + i * 16; " + out + "o[j] = w[p[j]]; "
        masks = "float* o = y + i * 64; std::fill(o, o + 64, 0.f); " + out + "o[p[j]] = 1; "
        for problem, use in ((group, groups), (payload, payloads), (mask, masks)):
            for order in "<>":
                result = self.native(problem, self.CHOSEN % (order, use))["result"]
                assert result["verdict"] == "VERDICT_CORRECT", (use, order, result)
        # A smaller key's place, other payloads, and fewer places than were asked for are none of the choices.
        for problem, use in ((group, groups + "o[0] = p[63] / 8 == o[0] ? (o[0] + 1) % 8 : p[63] / 8;"), (payload, payloads + "o[0] = w[p[1]];"),
                             (payload, payloads + "o[9] += 0.01f;"), (mask, masks + "for (int j = 0; j < 64; ++j) if (r[j] <= 0) o[j] = 0;"),
                             (mask, masks + "o[p[0]] = 0;")):
            result = self.native(problem, self.CHOSEN % ("<", use))["result"]
            assert result["verdict"] == "VERDICT_WRONG", (use, result)
        # The rest of a wholly sorted row has each payload once.
        whole = model("        return a[1].gather(1, torch.sort(torch.relu(a[0]), dim=1, descending=True).indices)", inputs)
        each = w + "float* o = y + i * 64; for (int j = 0; j < 64; ++j) o[j] = w[p[j]]; "
        assert self.native(whole, self.CHOSEN % (">", each))["result"]["verdict"] == "VERDICT_CORRECT"
        result = self.native(whole, self.CHOSEN % (">", each + "for (int j = 1; j < 64; ++j) if (r[p[j]] <= 0 && r[p[j - 1]] <= 0) o[j] = o[j - 1];"))["result"]
        assert result["verdict"] == "VERDICT_WRONG", result
        stable = model("        return a[1].gather(1, torch.sort(torch.relu(a[0]), dim=1, descending=True, stable=True).indices)", inputs)
        assert self.native(stable, self.CHOSEN % ("<", each))["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(stable, self.CHOSEN % (">", each))["result"]["verdict"] == "VERDICT_WRONG"

    def test_of_equal_keys_any_may_be_kept_where_all_others_are_infinite(self):
        # A sum of infinities says nothing: how many there are does.
        inputs, kept = "[torch.randn(30, 64) - 1]", "        r = torch.relu(a[0]); k = r.topk(16, dim=1).indices\n"
        filtered = model(kept + "        return torch.full_like(r, -float('inf')).scatter_(1, k, r.gather(1, k))", inputs)
        mask = model(kept + "        return torch.full_like(r, -float('inf')).scatter_(1, k, 0.0)", inputs)
        fill = "float* o = y + i * 64; std::fill(o, o + 64, -INFINITY); for (int j = 0; j < 16; ++j) o[p[j]] = %s; "
        values, zeros = fill % "fmaxf(r[p[j]], 0)", fill % "0"
        side = "((i * 7 + 3) % 5 < 2 ? 1 : -1)"  # the first in some rows, the last in others
        pairs = mask.replace(inputs, "[((torch.rand(500, 64).argsort(1) + 1) // 2).float()]")  # the 16th is as large as the 17th
        for problem, use in ((filtered, values), (mask, zeros), (pairs, zeros)):
            for order in ("<", ">", f"* {side} < {side} *"):
                chosen = self.CHOSEN.replace("i < 30", "i < 500") if problem is pairs else self.CHOSEN
                result = self.native(problem, chosen % (order, use))["result"]
                assert result["verdict"] == "VERDICT_CORRECT", (problem, order, result)
            for wrong in () if problem is pairs else ("for (int j = 0; j < 64; ++j) if (r[j] <= 0) o[j] = 0;", "for (int j = 0; j < 64; ++j) if (r[j] <= 0) o[j] = -INFINITY;",
                          "for (int j = 16; j < 64; ++j) o[p[j]] = INFINITY;", "o[p[16]] = INFINITY;", "o[p[15]] = INFINITY;",
                          "o[p[16]] = 0.25f;", "o[p[16]] = 0;", "o[p[15]] = -INFINITY;", "o[p[0]] = -INFINITY;", "o[p[16]] = NAN;"):
                result = self.native(problem, self.CHOSEN % ("<", use + wrong))["result"]
                assert result["verdict"] == "VERDICT_WRONG", (use, wrong, result)

    # Where `share` of a row is reached, at one of its logits but for rounding.
    NUCLEUS = model("        ordered, at = torch.sort(a[0], dim=-1, descending=True)\n        p = torch.softmax(ordered, -1)\n"
                    "        ordered = ordered.masked_fill(p.cumsum(-1) - p > a[1], -float('inf'))\n"
                    "        return torch.full_like(ordered, -float('inf')).scatter(-1, at, ordered)", "drawn()") + """
def drawn():
    logits = torch.randn(8, 2000)
    before = torch.softmax(logits.double().sort(-1, descending=True)[0], -1).cumsum(-1)
    return [logits, before.gather(1, torch.randint(200, 1500, (8, 1))).float()]
"""

    def test_rounding_decides_where_infinity_begins_and_nothing_else(self):
        kept = "        ordered = ordered.masked_fill(p.cumsum(-1) - p > a[1], -float('inf'))\n"
        wide = "        q = torch.softmax(ordered.double(), -1); q = q.cumsum(-1) - q; edge = (q - a[1]).abs() < 1e-6\n"
        given = dict(QUICK, only_given_inputs=True)
        for kernel, verdict in (("ordered = ordered.masked_fill(q > a[1], -float('inf'))", "CORRECT"),
                                ("ordered = ordered.masked_fill(edge | (q > a[1]), -float('inf'))", "CORRECT"),
                                ("ordered = torch.where(edge, ordered + 0.01, ordered.masked_fill(q > a[1], -float('inf')))", "WRONG"),
                                ("ordered = ordered.masked_fill(q > a[1], -float('inf')).masked_fill(edge, float('inf'))", "WRONG"),
                                ("ordered = ordered.masked_fill(q > a[1], -float('inf')).masked_fill(edge, float('nan'))", "WRONG"),
                                ("ordered = ordered.masked_fill(edge.roll(-1, -1) | (q > a[1]), -float('inf'))", "WRONG")):
            result = self.new(self.NUCLEUS, kept, wide + "        " + kernel + "\n", given)["result"]
            assert result["verdict"] == "VERDICT_" + verdict, (kernel, result)

    def test_payloads_of_equal_keys_have_to_be_read_in_half_types_too(self):
        # Within what their rule allows of one of hundreds of choices lies nearly any value.
        line = "return a[1].gather(1, k)"
        problem = model("        k = a[0].topk(128, dim=1).indices\n        " + line,
                        "[torch.relu(torch.randn(16, 512) - 1), torch.randn(16, 512).bfloat16()]")
        last = "k = (a[0] + torch.arange(512) * 1e-12 * (a[0] == 0)).topk(128, dim=1).indices; " + line
        unread = ("v = a[0].gather(1, k); s = a[1][:, :8].float().std() * 0.6; q = (1 - 2 * (torch.arange(128) % 2))[None] * s; "
                  "return torch.where(v == 0, q.expand_as(v), a[1].gather(1, k).float()).to(a[1].dtype)")
        given = dict(QUICK, only_given_inputs=True)
        assert self.new(problem, line, last, given)["result"]["verdict"] == "VERDICT_CORRECT"
        for _ in range(2):
            assert self.new(problem, line, unread, given)["result"]["verdict"] == "VERDICT_WRONG"

    def test_whole_numbers_that_are_weighted_and_rounded_by_one_operation_may_fall_to_either_side(self):
        # Which has a word among its operands; what it gives is exact in float32 where all three are alike, and its parts are not.
        line = "return torch.einsum('nc,c->n', a[0].float(), w).to(torch.uint8)"
        problem = model("        w = torch.tensor([0.299, 0.587, 0.114])\n        " + line, "[torch.randint(0, 256, (60000, 3), dtype=torch.uint8)]")
        for other in ("return (a[0].float() @ w).to(torch.uint8)", "return (a[0][:, 2] * w[2] + a[0][:, 1] * w[1] + a[0][:, 0] * w[0]).to(torch.uint8)"):
            result = self.new(problem, line, other)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (other, result)
        result = self.new(problem, line, "return torch.einsum('nc,c->n', a[0].float(), w).round().to(torch.uint8)")["result"]
        assert result["verdict"] == "VERDICT_WRONG", result

    def test_whole_numbers_that_are_scaled_and_rounded_may_fall_to_either_side_of_a_half(self):
        images = "[torch.randint(0, 256, (20000,), dtype=torch.uint8), torch.randint(0, 256, (20000,), dtype=torch.uint8)]"
        blend = model("        return (a[0].float() * 0.3 + a[1].float() * 0.7).round().to(torch.uint8)", images)
        body = ("const uint8_t *p = (const uint8_t*)args->inputs[0].data, *q = (const uint8_t*)args->inputs[1].data; uint8_t* o = (uint8_t*)args->outputs[0].data; "
                "for (int i = 0; i < 20000; ++i) { %s }")
        for line in ("o[i] = (uint8_t)rintf(fmaf(q[i], 0.7f, p[i] * 0.3f));", "o[i] = (uint8_t)rintf(fmaf(p[i], 0.3f, q[i] * 0.7f));",
                     "o[i] = (uint8_t)((3 * p[i] + 7 * q[i] + 5) / 10);", "o[i] = (uint8_t)rint(p[i] * 0.3 + q[i] * 0.7);"):
            for _ in range(2):
                result = self.native(blend, body % line)["result"]
                assert result["verdict"] == "VERDICT_CORRECT", (line, result)
        # Everything else is exact: a constant that is nearly right, half precision inside, one element, rounding another way.
        for line in ("o[i] = (uint8_t)rintf(p[i] * 0.301f + q[i] * 0.7f);", "o[i] = (uint8_t)rintf((_Float16)(p[i] * 0.3f) + (_Float16)(q[i] * 0.7f));",
                     "o[i] = (uint8_t)rintf(p[i] * 0.3f + q[i] * 0.7f) + (i % 3000 == 7);", "o[i] = (uint8_t)(p[i] * 0.3f + q[i] * 0.7f);"):
            result = self.native(blend, body % line)["result"]
            assert result["verdict"] == "VERDICT_WRONG", (line, result)
        # What float32 holds exactly all the way is no matter of rounding: halves go to the even neighbour.
        mean = model("        return ((a[0].float() + a[1].float()) / 2).round().to(torch.uint8)", images)
        assert self.native(mean, body % "o[i] = (uint8_t)rintf((p[i] + q[i]) * 0.5f);")["result"]["verdict"] == "VERDICT_CORRECT"
        result = self.native(mean, body % "o[i] = (uint8_t)((p[i] + q[i] + 1) / 2);")["result"]
        assert result["verdict"] == "VERDICT_WRONG", result
        above = model("        return (a[0].float() * 2 + a[1].float()) / 3 >= 100", images)
        flag = body.replace("uint8_t* o = (uint8_t*)", "bool* o = (bool*)")
        assert self.native(above, flag % "o[i] = 2 * p[i] + q[i] >= 300;")["result"]["verdict"] == "VERDICT_CORRECT"
        result = self.native(above, flag % "o[i] = 2 * p[i] + q[i] > 300;")["result"]
        assert result["verdict"] == "VERDICT_WRONG", result

    def test_a_gradient_that_cannot_be_traced_is_judged_all_the_same(self):
        gradient = model("""        with torch.enable_grad():
            x = a[0].detach().requires_grad_(True)
            loss = torch.nn.functional.cross_entropy(x, a[1])
            return torch.autograd.grad(loss, x)[0]""", "[torch.randn(50, 30) * 3, torch.randint(0, 30, (50,))]")
        body = ("const int64_t* t = (const int64_t*)args->inputs[1].data; for (int i = 0; i < 50; ++i) { const float* r = x + i * 30; float m = *std::max_element(r, r + 30), z = 0; "
                "for (int j = 0; j < 30; ++j) z += expf(r[j] - m); for (int j = 0; j < 30; ++j) y[i * 30 + j] = (expf(r[j] - m) / z - (j == %s)) / 50; }")
        assert self.native(gradient, body % "t[i]")["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(gradient, body % "t[i] + 1")["result"]["verdict"] == "VERDICT_WRONG"

    def test_labels_that_are_floats_are_compared_and_not_rounded(self):
        rows = model("        x, y, t = a\n        return torch.where(t == 1, (x - y).abs(), torch.zeros_like(x)).sum(-1)",
                     "[torch.randn(512, 256), torch.randn(512, 256), (torch.rand(512, 256) > 0.5).float()]")
        body = ("const float* b = (const float*)args->inputs[1].data; const float* t = (const float*)args->inputs[2].data;"
                "for (int i = 0; i < 512; ++i) { float s = 0; for (int j = 0; j < 256; ++j) if (t[i * 256 + j] > 0.5f) s += fabsf(x[i * 256 + j] - b[i * 256 + j]); y[i] = i < %d ? s : 0; }")
        few = model("        return torch.where(a[1] == 3, 5.0, 1.0) * torch.tanh(a[0])", "[torch.randn(256, 256), torch.randint(0, 200, (256, 256)).float()]")
        heavy = "const float* t = (const float*)args->inputs[1].data; for (long i = 0; i < n; ++i) y[i] = tanhf(x[i]) * (%s ? 5 : 1);"
        # (The largest of whole numbers: which of them is chosen changes with them, and the sums do not.)
        largest = model("        return torch.where(a[1] == 2, a[0], -a[0]).sum(1) + a[1].max(dim=1).values", "[torch.randn(512, 256), torch.randint(0, 5, (512, 256)).float()]")
        sums = ("const float* t = (const float*)args->inputs[1].data; for (int i = 0; i < %d; ++i) { float s = 0, m = 0; for (int j = 0; j < 256; ++j) "
                "{ s += t[i * 256 + j] == 2 ? x[i * 256 + j] : -x[i * 256 + j]; m = fmaxf(m, t[i * 256 + j]); } y[i] = s + m; } for (int i = %d; i < 512; ++i) y[i] = 4;")
        for problem, right, wrong in ((rows, body % 512, body % 440), (few, heavy % "t[i] == 3", heavy % "false"),
                                      (largest, sums % (512, 512), sums % (460, 460))):
            for kernel, verdict in ((right, "VERDICT_CORRECT"), (wrong, "VERDICT_WRONG")):
                result = self.native(problem, kernel)["result"]
                assert result["verdict"] == verdict, (kernel, result)

    def test_a_small_figure_beside_large_ones_is_judged_by_itself(self):
        figures = model("        d = a[0] - a[1]\n        return torch.stack([(d * d).sum(), d.abs().mean()])", "[torch.rand(256, 256), torch.rand(256, 256)]")
        assert self.new(figures, "d.abs().mean()", "d.abs().sum() / d.numel()")["result"]["verdict"] == "VERDICT_CORRECT"
        # The largest being off by some roundings is no way around it.
        for large in ("(d * d).sum()", "(d * d).sum() * (1 + 4e-6)"):
            guessed = self.new(figures, "(d * d).sum(), d.abs().mean()", large + ", (d * d).mean().sqrt() * 0.82")["result"]
            assert guessed["verdict"] == "VERDICT_WRONG", (large, guessed)

    def test_rounding_inside_is_no_leave_to_leave_out_a_part_of_a_long_sum(self):
        mean = model("        return (a[0] * a[0]).mean()", "[torch.rand(1 << 22)]")
        body = "double s = 0; for (long i = 0; i < %s; ++i) s += x[i] * x[i]; y[0] = s / %s;"
        for terms, verdict in ("4194304", "VERDICT_CORRECT"), ("3984588", "VERDICT_WRONG"):
            result = self.native(mean, body % (terms, terms))["result"]
            assert result["verdict"] == verdict, result

    def test_a_loss_of_labels_sums_rows_and_classes_one_after_the_other(self):
        loss = model("        x, y = [v / v.norm(dim=-1, keepdim=True) for v in a]\n        return nn.functional.cross_entropy(x @ y.T / 0.07, torch.arange(1024))",
                     "[torch.randn(1024, 128), torch.randn(1024, 128)]")
        right = self.new(loss, "cross_entropy(x @ y.T / 0.07, torch.arange(1024))", "nll_loss((x @ y.T / 0.07).log_softmax(1), torch.arange(1024))")["result"]
        assert right["verdict"] == "VERDICT_CORRECT", right
        assert right["correctness"]["error_same_precision"] < 1e-5, right["correctness"]  # of 2,048 terms, not of a million
        smoothed = self.new(loss.replace("torch.arange(1024))", "torch.arange(1024), label_smoothing=0.1)"))["result"]
        assert smoothed["correctness"]["error_same_precision"] > 2e-5, smoothed["correctness"]

    def test_a_mask_that_lets_nothing_through_is_tried_where_the_program_has_a_result_for_it(self):
        for floor in ("clamp(min=1)", "add(1e-6)", "add((a[1].sum(1) == 0).float())"):
            mean = model("        return (a[0] * a[1]).sum(1) / a[1].sum(1).%s" % floor, "[torch.randn(64, 40), (torch.rand(64, 40) > 0.3).float()]")
            body = ("const float* m = (const float*)args->inputs[1].data; for (int i = 0; i < 64; ++i) { float s = 0, c = 0; for (int j = 0; j < 40; ++j) "
                    "{ s += x[i * 40 + j] * m[i * 40 + j]; c += m[i * 40 + j]; } y[i] = s / %s; }")
            assert self.native(mean, body % "fmaxf(c, 1e-6f)")["result"]["verdict"] == "VERDICT_CORRECT", floor
            result = self.native(mean, body % "c")["result"]
            assert result["verdict"] == "VERDICT_WRONG" and "let nothing through" in result["reason"], (floor, result)
        # What is left where a number stands for infinity is meant by nobody.
        for fill in ("a[0].masked_fill(a[1] == 0, -1e9)", "a[0] - (1 - a[1]) * 1e9"):
            softmax = model("        return torch.softmax(%s, -1)" % fill, "[torch.randn(64, 40), (torch.rand(64, 40) > 0.3).float()]")
            result = self.new(softmax, fill, "a[0].masked_fill(a[1] == 0, -torch.inf)")["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (fill, result)

    def test_inputs_that_are_alike_in_all_elements_have_others_in_one_draw(self):
        # Each alone: b would hide what a is, and one of two that are equal the other.
        inputs = ("torch.zeros(64, 40)", "torch.ones(40)", "torch.ones(40)", "torch.zeros(64, 40, dtype=torch.bool)", "torch.ones(64, 40, dtype=torch.long)", "torch.full((), 0.5)",
                  # What may be an index, a number by itself, or adds up to one, stays.
                  "torch.zeros(64, 40, dtype=torch.long)", "torch.ones(1, dtype=torch.long)", "torch.full((40,), 1 / 40)")
        rare = dict(QUICK, distributions=["INPUT_DISTRIBUTION_RARE"])
        body = "return (x + a) * b * c, x.masked_fill(d, -1), x * e / f, x * (g + h), x * i"
        problem = model("        x, a, b, c, d, e, f, g, h, i = a\n        " + body, "[torch.randn(64, 40), %s]" % ", ".join(inputs))
        right = self.new(problem, options=rare)["result"]
        assert right["verdict"] == "VERDICT_CORRECT" and self.outcomes(right)["RARE"]["passed"] >= 6, right
        for old, new in (("(x + a) * b * c", "x * b * c"), ("(x + a) * b * c", "(x + a) * b"), ("x.masked_fill(d, -1)", "x * 1.0"), ("x * e / f", "x / f"), ("x * e / f", "x * e * 2")):
            result = self.new(problem, body, body.replace(old, new), rare)["result"]
            assert result["verdict"] == "VERDICT_WRONG" and "alike" in result["reason"], (old, new, result)
        result = self.new(problem, body, body.replace("x * (g + h), x * i", "x * 1, x / 40"), rare)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        # As a mask for what is shorter has: who takes it for lengths is right. A whole row is never masked.
        given = "return (a[0] * a[1].unsqueeze(-1)).sum(1) / a[1].sum(1, keepdim=True)"
        mean = model("        " + given, "[torch.randn(16, 30, 8), torch.ones(16, 30)]")
        lengths = self.new(mean, given, "return torch.stack([x[:n].mean(0) for x, n in zip(a[0], a[1].sum(1).long().tolist())])", rare)["result"]
        assert lengths["verdict"] == "VERDICT_CORRECT" and self.outcomes(lengths)["RARE"]["passed"] == 2, lengths  # and rows of zeros
        assert self.new(mean, given, "return a[0].mean(1)", rare)["result"]["verdict"] == "VERDICT_WRONG"
        pairs = model("        m = a[1][:, :, None] * a[1][:, None, :]\n        return torch.softmax(a[0] @ a[0].transpose(1, 2) + (1 - m) * -1e4, -1)", "[torch.randn(4, 24, 8), torch.ones(4, 24)]")
        closed = self.new(pairs, options=rare)["result"]
        assert closed["verdict"] == "VERDICT_CORRECT" and self.outcomes(closed)["RARE"]["trials"] == 1, closed  # rows of zeros alone

    def test_masks_that_are_the_same_in_every_draw_have_others_in_one_draw(self):
        rare = dict(QUICK, distributions=["INPUT_DISTRIBUTION_RARE"])
        read = {
            "torch.ones(48, 48, dtype=torch.bool).tril()": ".masked_fill(~a[1], -torch.inf)",
            "torch.ones(48, 48, dtype=torch.bool).triu(1)": ".masked_fill(a[1], -torch.inf)",
            "torch.ones(48, 48).tril()": ".masked_fill(a[1] == 0, -torch.inf)",
            "torch.ones(48, 48, dtype=torch.int32).tril()[None]": ".masked_fill(a[1] == 0, -1e9)",
            "torch.full((48, 48), -torch.inf).triu(1)": " + a[1]",
            "torch.full((48, 48), -1e4).triu(1)": " + a[1]",
            # The other way round, a window, blocks of which the last is as long as what is closed at most.
            "torch.ones(48, 48, dtype=torch.bool).triu()": ".masked_fill(~a[1], -torch.inf)",
            "torch.ones(48, 48).tril().triu(-6)": ".masked_fill(a[1] == 0, -torch.inf)",
            "torch.block_diag(*[torch.ones(12, 12)] * 4)": ".masked_fill(a[1] == 0, -torch.inf)",
        }
        for mask, use in read.items():
            problem = model("        return torch.softmax((a[0] @ a[0].transpose(1, 2) / 4)" + use + ", -1) @ a[0]", "[torch.randn(4, 48, 16), %s]" % mask)
            right = self.new(problem, options=rare)["result"]
            assert right["verdict"] == "VERDICT_CORRECT" and self.outcomes(right)["RARE"]["passed"] >= 2, (mask, right)  # rows of zeros, too
            known = self.new(problem, use, use.replace("a[1]", "(%s).to(a[1].device)" % mask), rare)["result"]
            assert known["verdict"] == "VERDICT_WRONG" and "same in every draw" in known["reason"], (mask, known)
        # Who takes rows for lengths, or for where something begins, is right; so is who reads an expanded one once.
        prefix = "torch.stack([(a[0] * (torch.arange(128, device=n.device) %s)).sum(-1) for a, n in [(a, a[1].sum(-1, keepdim=True))]])"
        for mask, right in (("torch.arange(128)[None] < torch.tensor([96, 80, 64, 32])[:, None]", prefix % "< n"),
                            ("torch.arange(128)[None] < torch.tensor([128, 8, 8, 8])[:, None]", prefix % "< n"),
                            ("torch.arange(128)[None] >= torch.tensor([96, 80, 64, 32])[:, None]", prefix % ">= 128 - n"),
                            ("torch.ones(8, 8).tril().repeat(2, 16)[:4].cummin(-1).values", prefix % "< n"),
                            ("(torch.arange(128) < 64).expand(4, 128)", "(a[0] * a[1][:1]).sum(-1)[None]")):
            given = "(a[0] * a[1]).sum(-1)[None]"
            problem = model("        return " + given, "[torch.randn(4, 128), %s]" % mask)
            for new, verdict in ((right, "CORRECT"), ("(a[0] * (%s).to(a[0].device)).sum(-1)[None]" % mask, "WRONG")):
                result = self.new(problem, given, new, rare)["result"]
                assert result["verdict"] == "VERDICT_" + verdict, (mask, new, result)
        # More places than values would be an error, on a GPU one that it does not survive.
        scattered = model("        return a[0].masked_scatter(a[1], a[2])", "[torch.randn(4, 32), (torch.arange(32) // 4 == 2).expand(4, 32).contiguous(), torch.randn(16)]")
        result = self.new(scattered, options=rare)["result"]
        assert result["verdict"] == "VERDICT_CORRECT" and self.outcomes(result)["RARE"]["trials"] == 2, result  # empty rows, of both
        # One-hot codes mean more; what is random is none.
        for other, empty in (("torch.eye(48)", 1), ("(torch.rand(48, 48) < 0.5).float()", 2)):
            product = self.new(model("        return a[0] @ a[1]", "[torch.randn(4, 48, 48), %s]" % other), options=rare)["result"]
            assert product["verdict"] == "VERDICT_CORRECT" and self.outcomes(product)["RARE"]["trials"] == empty, (other, product)

    def test_weights_that_are_the_same_in_every_draw_have_others_of_their_kind_in_one_draw(self):
        rare = dict(QUICK, distributions=["INPUT_DISTRIBUTION_RARE"])
        gauss, decay = ("(lambda v: v / v.sum())(%s)" % v for v in ("torch.exp(-(torch.arange(11) - 5.0) ** 2 / 4.5)", "0.8 ** torch.arange(11.0)"))
        slope = "(torch.arange(11) - 5.0) * torch.exp(-(torch.arange(11) - 5.0) ** 2 / 4.5)"
        light = "(lambda v: v / v.norm())(torch.tensor([3.0, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]))"
        use = "(a[0].unfold(-1, 11, 1) * a[1]).sum(-1)"
        # Who makes use of what weights keep is right: both ends are alike, or a constant ratio.
        folded = "sum(a[1][k] * (a[0][..., k:118 + k] + (a[0][..., 10 - k:128 - k] if k < 5 else 0)) for k in range(6))"
        ratio = "sum(a[1][0] * (a[1][1] / a[1][0]) ** k * a[0][..., k:118 + k] for k in range(11))"
        against = "sum(a[1][k] * (a[0][..., k:118 + k] - a[0][..., 10 - k:128 - k]) for k in range(5))"
        for weights, right in ((gauss, folded), (decay, ratio), (slope, against), (light, use)):
            problem = model("        return " + use, "[torch.randn(64, 128), %s]" % weights)
            result = self.new(problem, use, right, rare)["result"]
            assert result["verdict"] == "VERDICT_CORRECT" and self.outcomes(result)["RARE"]["passed"] >= 1, (weights, result)
            result = self.new(problem, use, use.replace("a[1]", "(%s).to(a[0].device)" % weights), rare)["result"]
            assert result["verdict"] == "VERDICT_WRONG" and "of its kind" in result["reason"], (weights, result)
        # What is in order, whole, or a rotation stays.
        for other in ("torch.arange(11) ** 2 / 110.0 - 35 / 110", "torch.tensor([1.0, -2, 1, 0, 0, 0, 0, 0, 0, 0, 0])", "torch.tensor([0.64, 0.48, 0.6, 0, 0, 0, 0, 0, 0, 0, 0])", "torch.tensor([[0.25] * 4 + [0] * 7, [0] * 7 + [0.25] * 4])", "torch.linalg.qr(torch.arange(121.0).view(11, 11).sin())[0]"):
            result = self.new(model("        return " + use.replace("* a[1]", "@ a[1].reshape(-1, 11).t()"), "[torch.randn(64, 128), %s]" % other), options=rare)["result"]
            assert result["verdict"] == "VERDICT_CORRECT" and self.outcomes(result)["RARE"]["trials"] == 1, (other, result)  # rows of zeros

    def test_the_largest_and_the_least_of_what_is_far_from_zero_are_asked_for(self):
        rare = dict(QUICK, distributions=["INPUT_DISTRIBUTION_RARE"])
        for use, begins in (("a[0].amax(-1)", ".clamp(min=-1e4)"), ("a[0].view(64, 8, 50).amin(2)", ".clamp(max=65504)"), ("nn.functional.max_pool1d(a[0], 4)", ".clamp(min=-1e5)")):
            for values, verdict in (("randn(64, 400)", "WRONG"), ("rand(64, 400)", "CORRECT")):  # of one sign: it may be known
                problem = model("        return " + use, "[torch.%s]" % values)
                assert self.new(problem, options=rare)["result"]["verdict"] == "VERDICT_CORRECT", use
                result = self.new(problem, use, use + begins, rare)["result"]
                assert result["verdict"] == "VERDICT_" + verdict, (use, values, result)
                assert verdict == "CORRECT" or "far " in result["reason"], result
        # Honest programs: a softmax of what is so large, positions, ranges that bytes are made of.
        for use, new in (("torch.softmax(a[0] - a[0].amax(-1, keepdim=True), -1)", "torch.exp2(a[0] * 1.4426950408889634 - a[0].amax(-1, keepdim=True) * 1.4426950408889634) / torch.exp2((a[0] - a[0].amax(-1, keepdim=True)) * 1.4426950408889634).sum(-1, keepdim=True)"),
                         # A product and a difference in one rounding, of a product that was rounded before: off by 2^-7 at the largest.
                         ("(lambda e: (e, e.sum(-1)))(torch.exp(a[0] - a[0].amax(-1, keepdim=True)))",
                          "(lambda e: (e, e.sum(-1)))(torch.exp2((a[0].double() * 1.44269504 - (a[0].amax(-1, keepdim=True) * 1.44269504).double()).float()))"),
                         ("a[0].argmax(-1), a[0].topk(4).values", "a[0].sort(-1, descending=True).indices[:, 0].contiguous(), a[0].sort(-1, descending=True).values[:, :4].contiguous()"),
                         ("((a[0] - a[0].amin(-1, keepdim=True)) / (a[0].amax(-1, keepdim=True) - a[0].amin(-1, keepdim=True)) * 255).round().to(torch.uint8)",
                          "((a[0] - a[0].amin(-1, keepdim=True)) * (255 / (a[0].amax(-1, keepdim=True) - a[0].amin(-1, keepdim=True)))).round().to(torch.uint8)")):
            problem = model("        return " + use, "[torch.randn(64, 400)]")
            result = self.new(problem, use, new, rare)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (use, result)

    def test_inputs_that_are_compared_with_each_other_meet(self):
        rare = dict(QUICK, distributions=["INPUT_DISTRIBUTION_RARE"])
        for use, inputs, wrong, right in (
                ("a[2][torch.bucketize(a[0], a[1], right=True)]", "torch.randn(64, 100), torch.randn(15).sort().values, torch.randn(16)", "a[2][torch.bucketize(a[0], a[1])]",
                 "a[2][(a[0].unsqueeze(-1) - a[1] >= 0).sum(-1)]"),
                ("torch.searchsorted(a[0], a[1])", "torch.randn(8, 70).sort(-1).values, torch.randn(8, 30)", "torch.searchsorted(a[0], a[1], right=True)", "(a[0].unsqueeze(1) < a[1].unsqueeze(2)).sum(-1)"),
                ("(a[0] > a[1]).sum(-1), a[0] * a[1]", "torch.rand(64, 100), torch.rand(100)", "(a[0] >= a[1]).sum(-1), a[0] * a[1]", "(a[0] - a[1] > 0).sum(-1), a[0] * a[1]"),
                ("torch.where(a[0] >= a[1], a[0], -a[1])", "torch.randn(64, 100), torch.randn(64, 100)", "torch.where(a[0] > a[1], a[0], -a[1])", "torch.where(a[1] <= a[0], a[0], -a[1])")):
            problem = model("        return " + use, "[%s]" % inputs)
            result = self.new(problem, use, right, rare)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (use, result)
            result = self.new(problem, use, wrong, rare)["result"]
            assert result["verdict"] == "VERDICT_WRONG" and "equal to those of another" in result["reason"], (use, result)
        # Rounding has a part in which is the larger.
        use = "(a[0] * 0.3 > a[1] * 0.3).float(), (a[0] * a[2] > a[1] * a[2]).float()"
        problem = model("        return " + use, "[torch.randn(64, 100), torch.randn(64, 100), torch.rand(100)]")
        result = self.new(problem, use, "(a[0] > a[1]).float(), (a[0] > a[1]).float()", rare)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_flags_of_nan_are_asked_for_beside_sums_that_are_nan(self):
        both = model("        return torch.isnan(a[0]).any(), a[0].sum(-1)", "[torch.randn(128, 256)]")
        assert self.new(both)["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.new(both, "torch.isnan(a[0]).any()", "torch.zeros((), dtype=torch.bool)")["result"]["verdict"] == "VERDICT_WRONG"

    def test_an_input_is_shifted_alone_where_another_one_bears_no_shift(self):
        gated = model("        return torch.logit(a[0]) * nn.functional.layer_norm(a[1], (256,))", "[torch.rand(64, 256) * 0.98 + 0.01, torch.randn(64, 256)]")
        new = "(a[1] - %s) * torch.rsqrt(%s + 1e-5)"
        mean, old = "a[1].mean(-1, keepdim=True)", "nn.functional.layer_norm(a[1], (256,))"
        two = self.new(gated, old, new % (mean, "a[1].var(-1, keepdim=True, unbiased=False)"))["result"]
        assert two["verdict"] == "VERDICT_CORRECT" and self.outcomes(two)["SHIFTED"]["passed"] == 3, two
        one = self.new(gated, old, new % (mean, "((a[1] * a[1]).mean(-1, keepdim=True) - a[1].mean(-1, keepdim=True) ** 2)"))["result"]
        assert one["verdict"] == "VERDICT_WRONG" and "one input alone" in one["reason"], one

    def test_positions_behind_arithmetic_are_those_of_keys_that_are_right(self):
        near = model("        return torch.cdist(a[0], a[1]).argmin(dim=1)", "near()", extra="""
def near():
    centers = torch.randn(32, 64) * 4
    return [centers[torch.randint(0, 32, (256,))] + torch.randn(256, 64) * 0.5, centers]
""")
        given = "return torch.cdist(a[0], a[1]).argmin(dim=1)"
        taken = "return torch.topk(torch.sigmoid(a[0] @ a[1]), 4)"
        products = "return ((b * b).sum(1) - 2 * a @ b.T).argmin(dim=1)"
        best = model("        return torch.topk(torch.sigmoid(a[0] @ a[1]), 4)", "[torch.randn(64, 96), torch.randn(96, 300)]")
        halves = "s = a[:, :40] @ b[:40] + a[:, 40:] @ b[40:]; v, i = torch.sigmoid(s).sort(dim=1, descending=True); return (v[:, :4].contiguous(), i[:, :4]%s.contiguous())"
        for problem, old, right, wrong in ((near, given, products, "return torch.cdist(a[:, :18].contiguous(), b[:, :18].contiguous()).argmin(dim=1)"),
                                      (best, taken, halves % "", halves % "[:, :1].expand(-1, 4)")):
            for new, verdict in ((right, "VERDICT_CORRECT"), (wrong, "VERDICT_WRONG")):
                result = self.new(problem, old, "a, b = a; " + new)["result"]
                assert result["verdict"] == verdict, (new, result)
        outcomes = self.outcomes(self.new(near)["result"])
        assert sum(outcomes[d].get("passed", 0) for d in ("SCALED", "SPARSE", "OUTLIERS")) >= 3, outcomes

    def test_keys_excuse_no_other_choice_than_the_documented_one_of_equal_keys(self):
        # Most of a row is zero, or the same whole number: the first is right, and the order where it is asked for.
        for forward, wrong in (("(a[0] @ a[1] - 40).relu().argmax(1)", "299 - (a[0] @ a[1] - 40).relu().flip(1).argmax(1)"),
                               ("(a[0] @ a[1]).round().argsort(dim=1, stable=True)", "299 - (a[0] @ a[1]).round().flip(1).argsort(dim=1, stable=True)")):
            problem = model("        return " + forward, "[torch.randn(64, 96), torch.randn(96, 300)]")
            assert self.new(problem)["result"]["verdict"] == "VERDICT_CORRECT", forward
            assert self.new(problem, forward, wrong)["result"]["verdict"] == "VERDICT_WRONG", forward

    def test_masked_scores_leave_no_room_for_positions_of_others(self):
        # Beside -1e9 all other keys are alike.
        problem = model("        return (a[0] @ a[1]).masked_fill(a[2], -1e9).argmax(1)", "[torch.randn(512, 96), torch.randn(96, 300), (torch.rand(512, 1) < 0.1).expand(512, 300).contiguous()]")
        forward = "(a[0] @ a[1]).masked_fill(a[2], -1e9).argmax(1)"
        assert self.new(problem)["result"]["verdict"] == "VERDICT_CORRECT"
        few = "torch.cat([%s[:508], torch.zeros(4, dtype=torch.int64)])" % forward
        assert self.new(problem, forward, few)["result"]["verdict"] == "VERDICT_WRONG"

    def test_positions_of_other_forms_take_no_draw_from_what_stands_beside_them(self):
        # Of all elements at once with as many dimensions; of NaN, which programs may leave out.
        for forward, new in (("x.argmax(keepdim=True)", "x.argmax(keepdim=True)"),
                             ("torch.isnan(x).any(), x.argmax(-1)", "torch.isnan(x).any(), torch.where(torch.isnan(x), torch.full_like(x, -9e9), x).argmax(-1)")):
            problem = model("        x = a[0]\n        return %s, (x * x).sum(1)" % forward, "[torch.randn(128, 256)]")
            result = self.new(problem, forward, new)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (forward, result)
            outcomes = self.outcomes(result)
            assert all(outcomes[d].get("passed", 0) for d in ("SCALED", "SPARSE", "OUTLIERS")), outcomes

    def test_no_rounding_excuses_what_is_selected_or_compared_of_the_inputs_as_they_are(self):
        first = ("int64_t* o = (int64_t*)args->outputs[0].data; for (int i = 0; i < 512; ++i) { o[i] = 0; for (int j = 1; j < %d; ++j) "
                 "if (x[i * 1000 + j] > x[i * 1000 + o[i]]) o[i] = j; }")
        highest = model("        return a[0].argmax(dim=1)", "[torch.randn(512, 1000)]")
        flag = "bool* o = (bool*)args->outputs[0].data; const float* b = (const float*)args->inputs[1].data; for (long i = 0; i < 20000; ++i) o[i] = %s;"
        equal = model("        return a[0] == a[1]", "[(torch.randn(20000) * 32).round() / 32, (torch.randn(20000) * 32).round() / 32]")
        count = model("        return (a[0] > 0.25).sum(dim=1)", "[torch.randn(64, 4000)]")
        counting = ("int64_t* o = (int64_t*)args->outputs[0].data; for (int i = 0; i < 64; ++i) { o[i] = 0; for (int j = 0; j < 4000; ++j) "
                    "o[i] += x[i * 4000 + j] > %s; }")
        for problem, right, wrong in ((highest, first % 1000, first % 999), (equal, flag % "x[i] == b[i]", flag % "x[i] == b[i] && i % 100"),
                                      (count, counting % "0.25f", counting % "0.2501f")):
            assert self.native(problem, right)["result"]["verdict"] == "VERDICT_CORRECT"
            assert self.native(problem, wrong)["result"]["verdict"] == "VERDICT_WRONG", wrong
        both = model("        return (a[0] == a[1]) & (a[0] > -1)", "[(torch.randn(20000) * 32).round() / 32, (torch.randn(20000) * 32).round() / 32]")
        assert self.native(both, flag % "x[i] == b[i] && x[i] > -1 && i % 100", dict(QUICK, only_given_inputs=True))["result"]["verdict"] == "VERDICT_WRONG"
        # Of keys that are flags the first is right, whatever nudges make of zeros.
        some = model("        return (a[0] != 0).to(torch.int32).argmax(1)", "[torch.randn(4096, 40) * (torch.rand(4096, 40) > 0.1)]")
        result = self.native(some, "int64_t* o = (int64_t*)args->outputs[0].data; for (int i = 0; i < 4096; ++i) o[i] = 0;")["result"]
        assert result["verdict"] == "VERDICT_WRONG", result
        # Among equal keys any place of a pool is right.
        pool = ("int64_t* o = (int64_t*)args->outputs[0].data; for (int i = 0; i < 8192; ++i) { int r = i / 16 % 16 * 2, c = i % 16 * 2, at = -1; const float* p = x + i / 256 * 1024; "
                "for (int d = 0; d < 4; ++d) { int j = (r + d / 2) * 32 + c + d % 2; if (at < 0 || p[j] >= p[at]) at = j; } o[i] = at; }")
        for call in ("max_pool2d(a[0], 2, return_indices=True)", "adaptive_max_pool2d(a[0], 16, return_indices=True)"):
            places = model(f"        return torch.nn.functional.{call}[1]", "[(torch.randn(1, 32, 32, 32) * 4).round() / 8 + 3.1]")
            assert self.native(places, pool)["result"]["verdict"] == "VERDICT_CORRECT", call
        # A number that the program took out of a tensor was made by arithmetic, and so was what is not traced.
        steps = model("        return (a[0].cumsum(-1) * 100).data.floor().long()", "[torch.rand(64, 300)]")
        stairs = ("int64_t* o = (int64_t*)args->outputs[0].data; for (int i = 0; i < 64; ++i) { double t = 0; for (int j = 0; j < 300; ++j) "
                  "{ t += x[i * 300 + j]; o[i * 300 + j] = (int64_t)floor(t * 100); } }")
        for _ in range(3):
            result = self.native(steps, stairs)["result"]
            assert result["verdict"] == "VERDICT_CORRECT", result
        mean = model("        return a[0] > a[0].mean().item()", "[torch.randn(300, 1000)]")
        above = ("bool* o = (bool*)args->outputs[0].data; double t = 0; float f = 0; for (long i = 0; i < n; ++i) { t += x[i]; f += x[i]; } "
                 "for (long i = 0; i < n; ++i) o[i] = x[i] > (float)(%s / n);")
        for sum in "tf":
            result = self.native(mean, above % sum, dict(QUICK, only_given_inputs=True))["result"]
            assert result["verdict"] == "VERDICT_CORRECT", (sum, result)

    def test_a_constant_that_is_left_out_is_seen_on_small_values(self):
        norm = model("        return a[0] * torch.rsqrt(a[0].pow(2).mean(-1, keepdim=True) + 1e-6)", "[torch.randn(64, 512)]")
        body = ("for (int i = 0; i < 64; ++i) { float t = 0; for (int j = 0; j < 512; ++j) t += x[i * 512 + j] * x[i * 512 + j]; "
                "for (int j = 0; j < 512; ++j) y[i * 512 + j] = x[i * 512 + j] / sqrtf(t / 512 + %s); }")
        assert self.native(norm, body % "1e-6f")["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(norm, body % "0")["result"]["verdict"] == "VERDICT_WRONG"
        # And a formula that is honest where values are about 1 may be so coarse where they are small.
        tanh = model("        return torch.sin(a[0]) * torch.exp(a[0]) + torch.tanh(a[0])", "[torch.randn(64, 500)]")
        line = "for (long i = 0; i < 32000; ++i) y[i] = sinf(x[i]) * expf(x[i]) + %s;"
        for _ in range(3):
            assert self.native(tanh, line % "2 / (1 + expf(-2 * x[i])) - 1")["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(tanh, line % "(fabsf(x[i]) < 0.02f ? 0 : tanhf(x[i]))")["result"]["verdict"] == "VERDICT_WRONG"

    def test_a_reference_that_names_single_precision_is_evaluated_in_double(self):
        # Angles of some hundred are good to 2e-5 in float32: who makes the table in double is nearer to what is meant.
        rope = model("""        x = a[0]
        f = 1.0 / (10000.0 ** (torch.arange(0, 64, 2, dtype=torch.float32) / 64))
        t = torch.outer(torch.arange(x.shape[0]).float(), f)
        c, s = t.cos(), t.sin()
        return torch.cat([x[:, :32] * c - x[:, 32:] * s, x[:, 32:] * c + x[:, :32] * s], dim=1)""", "[torch.randn(512, 64)]")
        body = """for (int i = 0; i < 512; ++i) for (int j = 0; j < 32; ++j) { %s
  y[i * 64 + j] = (float)(x[i * 64 + j] * c - x[i * 64 + 32 + j] * s); y[i * 64 + 32 + j] = (float)(x[i * 64 + 32 + j] * c + x[i * 64 + j] * s); }"""
        double = "double t = i * pow(10000.0, %s), c = cos(t), s = sin(t);"
        single = "float t = i * (1 / powf(10000.0f, j / 32.0f)), c = cosf(t), s = sinf(t);"
        for table, verdict in ((double % "-j / 32.0", "CORRECT"), (single, "CORRECT"), (double % "-j / 33.0", "WRONG")):
            assert self.native(rope, body % table)["result"]["verdict"] == "VERDICT_" + verdict, table

    def test_a_reference_that_reads_bits_has_no_double(self):
        # What its bits are in float64 would be garbage, and everything right beside it.
        cut = model("        return (a[0].float().view(torch.int32) & -65536).view(torch.float32).sum(-1)", "[torch.randn(512, 256)]")
        body = "for (int i = 0; i < 512; ++i) { float t = 0; for (int j = 0; j < 256; ++j) { uint32_t u; memcpy(&u, x + i * 256 + j, 4); u &= 0xffff0000; float f; memcpy(&f, &u, 4); t += f; } y[i] = %s; }"
        assert self.native(cut, body % "t")["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(cut, body % "0")["result"]["verdict"] == "VERDICT_WRONG"

    def test_reduced_precision_is_allowed_on_small_values_too(self):
        half = model("        return torch.sigmoid(a[0]) - 0.5", "[torch.randn(64, 500)]")
        body = "for (long i = 0; i < 32000; ++i) { float s = 1 / (1 + expf(-x[i])); uint32_t u; memcpy(&u, &s, 4); u = (u + 0x1000) & 0xffffe000; memcpy(&s, &u, 4); y[i] = s - 0.5f; }"
        assert self.native(half, body, dict(QUICK, precision="PRECISION_POLICY_REDUCED", precision_tolerance=1e-3))["result"]["verdict"] == "VERDICT_CORRECT"
        assert self.native(half, body)["result"]["verdict"] == "VERDICT_WRONG"

    def test_transforms_and_products_of_any_form_are_sums_of_as_many_terms(self):
        # In float32, one term after the other.
        transform = model("        return torch.fft.rfft(a[0]).real", "[torch.rand(4, 2048)]")
        direct = """static float c[2048]; for (int k = 0; k < 2048; ++k) c[k] = (float)cos(2 * 3.14159265358979323846 * k / 2048);
for (int i = 0; i < 4; ++i) for (int k = 0; k <= 1024; ++k) { float t = 0; for (int j = 0; j < %s; ++j) t += x[i * 2048 + j] * c[(long)j * k % 2048]; y[i * 1025 + k] = t; }"""
        inner = model("        return torch.inner(a[0], a[1])", "[torch.rand(16, 4096), torch.rand(8, 4096)]")
        dot = model("        return torch.tensordot(a[0], a[1], dims=([1, 2], [1, 2]))", "[torch.rand(16, 64, 64), torch.rand(8, 64, 64)]")
        einsum = model("        return torch.einsum('ikl,jkl->ij', a[0], a[1])", "[torch.rand(16, 64, 64), torch.rand(8, 64, 64)]")
        plain = """const float* b = (const float*)args->inputs[1].data;
for (int i = 0; i < 16; ++i) for (int j = 0; j < 8; ++j) { float t = 0; for (int k = 0; k < %s; ++k) t += x[i * 4096 + k] * b[j * 4096 + k]; y[i * 8 + j] = t; }"""
        for problem, body, terms in ((transform, direct, 2048), (inner, plain, 4096), (dot, plain, 4096), (einsum, plain, 4096)):
            assert self.native(problem, body.replace("%s", str(terms)))["result"]["verdict"] == "VERDICT_CORRECT", problem
            assert self.native(problem, body.replace("%s", str(terms - 1)))["result"]["verdict"] == "VERDICT_WRONG", problem

    def test_a_reference_that_writes_to_its_inputs_is_refused(self):
        # A copy of what it leaves would pass for its result.
        assert "changes its input" in self.bad(model("        return torch.relu_(a[0])", "[torch.randn(64, 300)]"))

    def test_numbers_that_change_from_draw_to_draw_are_refused(self):
        # A candidate is told them once, and was WRONG for every later draw.
        said = self.bad(model("        return a[0] * a[1]", "[torch.randn(64, 300), torch.rand(()).item()]"))
        assert "another number" in said and "torch.rand(())" in said, said
        said = self.bad(model("        return a[0].abs() if a[1] == 'abs' else -a[0]", "[torch.randn(64, 300), next(WORDS)]",
                              extra="\nimport itertools\nWORDS = itertools.cycle(['abs', 'neg'])\n"))
        assert "other strings" in said, said

    def test_a_broken_row_in_many_is_wrong(self):
        problem = model("        return a[0] * 2", "[torch.randn(65536, 8) * torch.logspace(-6, 0, 65536).unsqueeze(1)]")
        body = "for (long i = 0; i < n; ++i) y[i] = 2 * x[i];"
        assert self.native(problem, body)["result"]["verdict"] == "VERDICT_CORRECT"
        for row in (65535, 40000, 21000):
            result = self.native(problem, body + f"for (int j = 0; j < 8; ++j) y[{row} * 8 + j] = 0;")["result"]
            assert result["verdict"] == "VERDICT_WRONG", (row, result)

    # -------------------------------------------------------------------------------------------------- held-out shapes
    def test_held_out_shapes_are_not_told(self):
        description = self.judge(self.TOML, "PROBLEM_FORMAT_NATIVE")[1]
        assert "17" not in str(description["inputs"]) + str(description["outputs"]) + str(description["graph"]), description

    def test_held_out_shapes_are_not_told_by_a_candidate_that_has_seen_them(self):
        problem = self.TOML.replace("[3, 17]", "[211, 131]")
        def run(line):
            body = "#include <stdexcept>\n" + judge_test.kernel(line + self.SOFTMAX)
            return self.native(problem, body, whole=True, format="PROBLEM_FORMAT_NATIVE")
        at = "if (args->inputs[0].shape[0] == 211) "
        later = "static long seen = 0, calls = 0; " + at + "seen = 1; if (seen && ++calls > 1) "
        for line, verdict in (
                # In its words, as its result, by the figures of a wrong output, and in later ones.
                (at + "throw std::runtime_error(\"no kernel for 211 x 131\");", "VERDICT_CRASHED"),
                (at + "return 211131;", "VERDICT_CRASHED"),
                (at + "{ y[0] = 211131; return 0; }", "VERDICT_WRONG"),
                (later + "throw std::runtime_error(\"211131\");", "VERDICT_CRASHED"),
                (later + "{ y[0] = 211131; return 0; }", "VERDICT_WRONG")):
            frame = run(line)
            result = frame["result"]
            assert result["verdict"] == verdict and frame["quiet"], (line, frame)
            told = str({key: value for key, value in result.items() if key not in ("stages", "device")})
            assert not re.search(r"(?<![\d.])(131|211|27641|211131)(?![\d.])", told) and "held out" in told, (line, told)
        # Before it has seen any it speaks for itself.
        frame = run("throw std::runtime_error(\"not today\");")
        assert "not today" in frame["result"]["reason"] and not frame["quiet"], frame

    # ------------------------------------------------------------------------------------------------- problems judged
    def test_a_sound_problem_has_no_findings_but_its_size(self):
        for problem in (SOFTMAX, LAYERNORM, MATMUL):
            findings = self.findings(problem)
            assert not any(f["serious"] for f in findings.values()), findings
        assert list(self.findings(MATMUL)) in ([], ["too-short"]), findings

    def test_findings(self):
        def has(source, name, serious, *words):
            findings = self.findings(source)
            assert name in findings and findings[name]["serious"] == serious, (name, findings)
            text = findings[name]["what"] + " " + findings[name]["remedy"]
            assert all(word in text for word in words), (words, text)
            return findings

        one = "[torch.randn(64, 300)]"
        for held, told in (("register_buffer('t', torch.arange(300.).cos(), persistent=False)", True), ("t = torch.arange(300.).cos()", True),
                           ("register_buffer('t', torch.arange(300.).cos())", False), ("t = torch.arange(300.)", False),
                           ("t = torch.full((300, 300), float('-inf')).triu(1)[5]", False), ("t = nn.Parameter(torch.rand(300))", False)):
            findings = self.findings(built("        return a[0] * self.t", one, f"        self.{held}\n"))
            assert ("own-tables" in findings) == told, (held, findings)
            assert not told or "buffers: t;" in findings["own-tables"]["what"], findings
        has(model("        return torch.softmax(a[0], -1).sum(-1) * 0 + 3", one), "constant-output", True, "3")
        has(model("        return torch.arange(5.) * (1 + 0 * a[0].sum())", one), "input-independent", True, "two draws")
        has(model("        return torch.zeros_like(a[0])", one), "constant-output", True, "0")
        has(model("        return torch.softmax(a[0], dim=1)", "[torch.rand(4, 300000)]"), "below-tolerance", False, "1e-4", "scaled")
        has(model("        return a[0].mean()", "[torch.rand(200000)]"), "low-variance", False, "1e-2")
        has(model("        return (a[0] - a[0].mean()).mean()", "[torch.rand(300, 300)]"), "rounding-noise", True, "rounding")
        has(model("        return a[0] * 3 - a[0] - a[0] - a[0]", one), "rounding-noise", True, "zeros")
        # Whole numbers have no rms, and what is zero in some draws is so in float32, too.
        assert "rounding-noise" not in self.findings(model("        return a[0].argmax(1)", one))
        for _ in range(4):
            assert "rounding-noise" not in self.findings(model("        return torch.relu(a[0].sum())", one))
        has(model("        return torch.nn.functional.dropout(a[0], 0.5, True)", one), "non-deterministic", True, "again")
        has(model("        return torch.nn.functional.dropout(a[0], 0.5, True)", one), "random", True, "dropout")
        cache = model("        return a[0] @ self.cache.index_copy_(0, a[1], a[0]).t()", "[torch.randn(4, 16), torch.randint(0, 2048, (4,))]")
        cache = cache.replace("super().__init__()", "super().__init__(); self.register_buffer('cache', torch.zeros(2048, 16))")
        has(cache, "non-deterministic", True, "state")
        assert "non-deterministic" not in self.findings(cache.replace("index_copy_", "index_copy"))
        # State that moves slowly is refused when a problem is loaded, which runs it more often.
        slow = model("        return a[0] - self.m.mul_(1 - 1e-4).add_(a[0].mean(0), alpha=1e-4)", "[torch.randn(64, 20) + 3]")
        slow = slow.replace("super().__init__()", "super().__init__(); self.register_buffer('m', torch.zeros(20))")
        has(slow, "non-deterministic", True, "state")
        has(model("        return a[0] / 0 * 0", one), "non-finite", True, "100 %")
        has(model("        return torch.softmax(a[0].sum(1, keepdim=True), dim=1) + a[0]", one), "redundant", False, "size 1")
        has(model("        return torch.relu(torch.relu(a[0]))", one), "redundant", False, "own result")
        twice = model("        b = a[0]\n        for i in range(9):\n            b = b + a[0][0].exp() * i + a[0][0].exp()\n        return b", one)
        has(twice, "redundant", False, "aten::exp is computed twice", "in 17 places")
        assert "redundant" not in self.findings(model("        return a[0][0] * a[0][0].t() + a[0][0].size(0)", one))
        has(model("        return a[0] * 2", "[torch.randn(64, 300), torch.randn(9)]"), "unused-input", False)
        has(model("        return a[0] * 2", "[torch.ones(64, 300)]"), "fixed-inputs", True, "same values")
        has(model("        return a[0] * 2", "[torch.randn(int(torch.randint(2, 90, (1,))))]"), "varying-shapes", True)
        has(model("        return a[0] * a[1]", "[torch.randn(64, 300), torch.rand(()).item()]"), "varying-numbers", True)
        has(model("        return torch.relu_(a[0])", one), "writes-inputs", True)
        has(model("        return a[0] * 2", "[__import__('numpy').random.default_rng().random(9), torch.randn(3)][1:] + [torch.tensor(__import__('os').urandom(9)[0] / 256.)]"),
            "unseeded-inputs", True)

    def test_outputs_so_small_that_zeros_pass_are_tried_with_another_draw_under_the_rules_they_do_not_pass(self):
        # Means of so many values are 0.2 % apart, half of what a bfloat16 is rounded by.
        small = model("        return (a[0].mean(-1) * 0.005).bfloat16()", "[torch.rand(64, 65536)]")
        found = self.findings(small)
        assert found["below-tolerance"]["serious"] is False and "1e-2" in found["below-tolerance"]["what"], found
        assert found["low-variance"]["serious"] is True and "scaled" in found["low-variance"]["what"], found
        # What zeros pass says nothing of the values.
        assert "1e-2" not in found["low-variance"]["what"], found
        large = self.findings(small.replace(" * 0.005", ""))
        assert large["low-variance"]["serious"] is True and "1e-2" in large["low-variance"]["what"], large
        assert "below-tolerance" not in large, large
        # Small ones that do move are told for what zeros pass alone.
        found = self.findings(model("        return a[0] * 0.001", "[torch.randn(64, 300)]"))
        assert found["below-tolerance"]["serious"] is False and "low-variance" not in found, found

    def test_further_shapes_are_looked_at_as_the_timed_ones_are_and_held_out_ones_have_no_figures(self):
        native = "PROBLEM_FORMAT_NATIVE"
        large = "(x.shape[0] == 211)"
        for held in (False, True):
            toml = self.TOML.replace("[3, 17]", "[211, 131]")
            if not held:
                toml = toml.replace("held_out", "shapes")
            def found(line, name, serious):
                told = self.findings(toml.replace("    return", "    " + line + "\n    return"), native)[name]
                assert told["serious"] is serious and "further shapes number 1" in told["what"], told
                assert ("held out" in told["what"]) is held, told
                assert not held or not re.search(r"131|211|27641|%|\d\.\d", told["what"]), told
            assert not any(f["serious"] for f in self.findings(toml, native).values())
            found(f"if {large}:\n        x = x / 0", "non-finite", True)
            found(f"if {large}:\n        x = torch.rand_like(x)", "non-deterministic", True)
            found(f"if {large}:\n        x.add_(1)", "writes-inputs", True)

    def test_the_memory_of_the_largest_shapes_counts(self):
        toml = self.TOML.replace("[3, 17]", "[12, 1048576]")  # 96 MiB with its output
        def found(text):
            return self.findings(text, "PROBLEM_FORMAT_NATIVE", extra=("--memory-bytes", str(600 << 20))).get("memory")
        assert found(self.TOML) is None
        told = found(toml.replace("held_out", "shapes"))
        assert told and told["serious"] and "96 MiB; an evaluation needs 5 times that" in told["what"], told
        told = found(toml)
        assert told and told["serious"] and "held out" in told["what"] and not re.search(r"\b(48|96|480)\b", told["what"]), told

    def test_a_problem_that_is_too_large_for_what_the_judge_may_have_is_said_to_be(self):
        problem = model("        return a[0] * 2", "[torch.randn(12, 1 << 20)]")  # 96 MiB with its output
        def found(mib):
            return self.findings(problem, extra=("--memory-bytes", str(mib << 20))).get("memory")
        assert found(8192) is None
        none = found(700)  # torch itself is part of it
        assert none and none["serious"] and "96 MiB; an evaluation needs 5 times that" in none["what"], none

    def test_a_judge_with_little_memory_judges_alike_every_time(self):
        problem = model("        return a[0] * 2", "[torch.randn(12, 1 << 20)]")
        judge = Judge(self.libexec, python=self.python, extra=("--memory-bytes", str(2000 << 20)))
        judge.load(problem)
        program = build_cpp(judge_test.kernel("for (long i = 0; i < n; ++i) y[i] = 2 * x[i];"), self.include, self.folder.name, "twice")
        rules = [judge.evaluate(program, options=QUICK)["result"]["correctness"]["rule"] for _ in range(3)]
        assert all("in float64" in rule for rule in rules), rules
        assert judge.close() == 0

    def test_want_of_memory_in_one_evaluation_is_none_in_the_next(self):
        short = os.path.join(self.folder.name, "memory is short")
        problem = model(f"        import os\n        assert a[0].numpy().dtype != 'float64' or not os.path.exists({short!r}), 'out of memory'\n"
                        "        return a[0] * 2", "[torch.randn(64, 300)]")
        judge = Judge(self.libexec, python=self.python)
        judge.load(problem)
        program = build_cpp(judge_test.kernel("for (long i = 0; i < n; ++i) y[i] = 2 * x[i];"), self.include, self.folder.name, "twice")
        def in_double():
            return "in float64" in judge.evaluate(program, options=QUICK)["result"]["correctness"]["rule"]
        assert in_double()
        with open(short, "w"):
            pass
        assert not in_double()
        os.remove(short)
        assert in_double()
        assert judge.close() == 0

    def test_parameters_that_say_nothing_are_noted(self):
        def norm(training, more=""):
            return built("        return self.norm(a[0])", "[torch.randn(64, 16)]",
                         f"        self.norm = torch.nn.BatchNorm1d(16)\n{more}        self.train({training})\n")
        found = self.findings(norm(False))["trivial-parameters"]
        assert found["serious"] is False and "a ModelNew that ignores them passes" in found["what"], found
        for name in ("norm.weight (1)", "norm.bias (0)", "norm.running_mean (0)", "norm.running_var (1)"):
            assert name in found["what"], found
        # In training mode the statistics are not read.
        found = self.findings(norm(True))["trivial-parameters"]
        assert "norm.bias" in found["what"] and "running" not in found["what"], found
        drawn = "        torch.nn.init.normal_(self.norm.weight); torch.nn.init.normal_(self.norm.bias)\n"
        assert "trivial-parameters" not in self.findings(norm(True, drawn))

    def test_one_output_that_is_a_number_is_noted_and_tied_weights_are_used(self):
        found = self.findings(model("        return torch.relu(a[0]), 3.0", "[torch.randn(9, 9)]"))
        assert found["constant-output"]["serious"] is False, found
        found = self.findings(model("        return 3.0", "[torch.randn(9, 9)]"))
        assert found["constant-output"]["serious"] is True, found
        tied = built("        return self.two(torch.relu(self.one(a[0])))", "[torch.randn(9, 9)]",
                     "        self.one, self.two = torch.nn.Linear(9, 9), torch.nn.Linear(9, 9)\n        self.two.weight = self.one.weight\n")
        assert "redundant" not in self.findings(tied), self.findings(tied)

    def test_a_problem_with_a_constant_input_or_nothing_to_compute_is_told(self):
        found = self.findings(model("        return a[0] * a[1]", "[torch.randn(9, 9), torch.full((9, 9), 0.5)]"))
        assert found["constant-input"]["serious"] is False and "input" in found["constant-input"]["what"], found
        found = self.findings(model("        return a[0] * 2, a[0][:0]", "[torch.randn(9, 9)]"))
        assert found["empty-output"]["serious"] is True, found

    def test_a_problem_may_begin_with_a_byte_order_mark(self):
        assert "constant-output" not in self.findings("\ufeff" + model("        return torch.relu(a[0])", "[torch.randn(9, 9)]"))

    def test_a_call_that_does_not_end_is_given_up_and_what_goes_on_is_said(self):
        source = model("        while True: pass", "[torch.randn(3)]")
        judge = Judge(self.libexec, python=self.python, extra=("--call-seconds", "2"))
        answer = judge.load(source)
        judge.close()
        assert answer["type"] == "failed" and answer["kind"] == "problem", answer
        assert "one call of forward took longer than 2 s" in answer["message"], answer
        assert answer["progress"][-1] == "the first call of forward", answer

    def test_mutated_problem_files_never_bring_the_judge_down(self):
        judge = Judge(self.libexec, python=self.python)
        pick = random.Random(7)
        words = ["0", "-1", "3", str(2**40), str(2**62), "1e400", "nan", "true", "[]", "[[1]]", "{}", '"x"', "[-1, 2]", "[0, 0]", '"\\ud800"', "''",
                 '"complex64"', '"bool"', '"int8"', '"integers"', '"uniform"', '"constant"', "9.5", "1979-05-27", "\x00", "\xff"]
        counts = {"loaded": 0, "failed": 0}
        for _ in range(150):
            lines = (self.TOML + "[[parameters]]\nname = 'w'\nshape = [3]\n[tolerance]\nmode = 'scaled'\n").split("\n")
            for _ in range(pick.randint(1, 3)):
                i = pick.randrange(len(lines))
                kind = pick.randrange(5)
                if kind == 0:
                    del lines[i]
                elif kind == 1:
                    lines.insert(pick.randrange(len(lines)), lines[i])
                elif kind == 2 and "=" in lines[i]:
                    lines[i] = lines[i].split("=")[0] + "= " + pick.choice(words)
                elif kind == 3:
                    at = pick.randrange(len(lines[i]) + 1)
                    lines[i] = lines[i][:at] + pick.choice("[]{}=\"'#,\\.xyz \t") + lines[i][at:]
                else:
                    lines[i] = lines[i][: len(lines[i]) // 2]
            judge.next += 1
            judge.channel.send({"type": "load", "id": judge.next, "check": True, "options": {},
                                "problem": {"name": "mutant", "format": "PROBLEM_FORMAT_NATIVE", "source": "\n".join(lines)}})
            answer = judge.loaded()
            counts[answer["type"]] += 1
            assert answer["type"] == "loaded" or (answer["kind"] == "problem" and answer["message"]), (answer, lines)
        assert judge.close() == 0 and counts["failed"] > 50, counts

    # ------------------------------------------------------------------------------------------------ strides of inputs
    TRANSPOSED = model("        return a[0] * 2 + a[0].sum(0)", "[torch.randn(64, 32).t()]")
    CHANNELS_LAST = built("        return self.conv(a[0])",
                          "[torch.randn(2, 4, 12, 10).to(memory_format=torch.channels_last)]",
                          "        self.conv = nn.Conv2d(4, 6, 3)\n")

    def test_a_program_that_is_wrong_for_strided_inputs_is_wrong(self):
        line = "return a[0] * 2 + a[0].sum(0)"
        right = self.new(self.TRANSPOSED, options=dict(self.TIMED, only_given_inputs=False))["result"]
        assert right["verdict"] == "VERDICT_CORRECT" and right["timing"]["outputs_verified"] > 0, right
        zeros = "x = a[0] if a[0].is_contiguous() else a[0] * 0\n        return x * 2 + x.sum(0)"
        wrong = self.new(self.TRANSPOSED, line, zeros)["result"]
        assert wrong["verdict"] == "VERDICT_WRONG" and wrong["correctness"]["first_failing_trial"] == 1, wrong
        # Which takes the memory for row-major.
        row_major = "x = a[0].as_strided(a[0].shape, (64, 1))\n        return x * 2 + x.sum(0)"
        flat = self.new(self.TRANSPOSED, line, row_major)["result"]
        assert flat["verdict"] == "VERDICT_WRONG", flat

    def strides(self, inputs, given, options=None):
        """Both the program and the reference, in float64 too, write down what they get: all of it was `given`."""
        seen = {who: os.path.join(self.folder.name, f"{who}{self.count}") for who in ("reference", "candidate")}
        self.count += 1
        body = """        with open("SEEN", "a") as file:
            print(a[0].numpy().dtype, [t.stride() for t in a], file=file)  # a[0].dtype is as written in both
        return sum((t * t).sum() for t in a), a[0] + 1"""
        problem = model(body, inputs).replace("SEEN", seen["reference"])
        options = options or dict(self.TIMED, only_given_inputs=False)
        result = self.new(problem, seen["reference"], seen["candidate"], options)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        assert "float64" in result["correctness"]["rule"], result
        got = {}
        for who, path in seen.items():
            with open(path, encoding="utf-8") as file:
                got[who] = set(file.read().split("\n")) - {""}
        assert got["candidate"] == {f"float32 {given}"}, got
        assert got["reference"] == {f"float32 {given}", f"float64 {given}"}, got
        return result

    def test_inputs_keep_the_strides_that_were_made_on_every_draw_and_when_timed(self):
        # The fourth is the first's copy in another order; the fifth is symmetric.
        inputs = """[[x, torch.randn(2, 3, 5, 7).to(memory_format=torch.channels_last),
            torch.randn(3, 4, 5).permute(2, 0, 1), x.contiguous(), (s + s.t()).t(), torch.randn(64, 1).t()]
            for x in [torch.randn(64, 32).t()] for s in [torch.randn(16, 16)]][0]"""
        given = [(1, 32), (105, 1, 21, 3), (1, 20, 5), (64, 1), (1, 16), (1, 1)]
        for slow in ("", self.SLOW_DRAW):  # drawn anew in each timed run, and varied
            outcomes = self.outcomes(self.strides(slow + inputs, given))
            assert outcomes.pop("INTEGERS")["trials"] == 0 and len(outcomes) == 6, outcomes  # there is nothing of the kind
            assert all(one["trials"] >= 1 and one["passed"] == one["trials"] for one in outcomes.values()), outcomes

    def test_inputs_with_gaps_are_dense_in_the_order_of_their_strides(self):
        inputs = """[torch.randn(16, 20)[:, ::2], torch.randn(8, 6, 4)[:, ::2].permute(2, 0, 1),
            torch.randn(1, 20).expand(16, 20)]"""
        self.strides(inputs, [(10, 1), (1, 12, 4), (20, 1)], QUICK)

    def test_strides_that_change_from_call_to_call_are_those_of_the_first(self):
        inputs = "[(torch.randn(12, 12) if state.__next__() else torch.randn(12, 12).t())]"
        problem = model("        return a[0] * torch.arange(12.0)", inputs,
                        extra="import itertools\nstate = itertools.cycle([0, 1])")
        result = self.new(problem, "return a", "assert a[0].stride() == (1, 12)\n        return a")["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_a_channels_last_input_is_one_for_the_candidate(self):
        line = "return self.conv(a[0])"
        said = "assert a[0].is_contiguous(memory_format=torch.channels_last) and not a[0].is_contiguous()\n        "
        result = self.new(self.CHANNELS_LAST, line, said + line, dict(self.TIMED, only_given_inputs=False))["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        zeros = "return self.conv(a[0] if a[0].is_contiguous() else a[0] * 0)"
        result = self.new(self.CHANNELS_LAST, line, zeros)["result"]
        assert result["verdict"] == "VERDICT_WRONG", result

    def test_native_kernels_get_strided_inputs_row_major(self):
        options = dict(self.TIMED, only_given_inputs=False)
        body = """for (int j = 0; j < 64; ++j) { float t = 0; for (int i = 0; i < 32; ++i) t += x[i * 64 + j];
  for (int i = 0; i < 32; ++i) y[i * 64 + j] = x[i * 64 + j] * 2 + t; }
if (args->inputs[0].strides[0] != 64 || args->inputs[0].strides[1] != 1) return 1;"""
        result = self.native(self.TRANSPOSED, body, options)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        conv = """const float* w = (const float*)args->inputs[1].data;
const float* b = (const float*)args->inputs[2].data;
for (int n = 0; n < 2; ++n) for (int o = 0; o < 6; ++o) for (int h = 0; h < 10; ++h) for (int v = 0; v < 8; ++v) {
  float t = b[o]; for (int c = 0; c < 4; ++c) for (int p = 0; p < 3; ++p) for (int q = 0; q < 3; ++q)
    t += x[((n * 4 + c) * 12 + h + p) * 10 + v + q] * w[((o * 4 + c) * 3 + p) * 3 + q];
  y[((n * 6 + o) * 10 + h) * 8 + v] = t; }"""
        result = self.native(self.CHANNELS_LAST, conv, options)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result
        # Nor does one judge's native candidate change what the next one in Python gets.
        line = "return a[0] * 2 + a[0].sum(0)"
        result = self.new(self.TRANSPOSED, line, "assert a[0].stride() == (1, 32)\n        " + line)["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_a_lazy_conjugate_is_handed_over_as_its_values(self):
        drawn = "torch.randn(24, 16, dtype=torch.complex64).conj()"
        problem = model("        return a[0] * (1 + 2j) + a[1]", f"[{drawn}, {drawn}.imag]")
        result = self.new(problem, options=dict(self.TIMED, only_given_inputs=False))["result"]
        assert result["verdict"] == "VERDICT_CORRECT", result

    def test_findings_say_which_inputs_are_strided(self):
        found = self.findings(self.TRANSPOSED)["strided-input"]
        assert not found["serious"] and "[1,32]" in found["what"] and "row-major" in found["what"], found
        sliced = self.TRANSPOSED.replace("torch.randn(64, 32).t()", "torch.randn(32, 128)[:, ::2]")
        found = self.findings(sliced)["strided-input"]
        assert "[128,2]" in found["what"] and "dense" in found["what"] and "[64,1]" in found["what"], found
        assert "strided-input" not in self.findings(RELU_OF_ONE)

    # ------------------------------------------------------------------------------------------------- honest programs
    def honest(self, name):
        """Of this pair: the problem and the candidate's text."""
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testcases", "honest", name)
        with open(path + ".py", encoding="utf-8") as problem, open(path + ".cpp", encoding="utf-8") as candidate:
            return problem.read(), candidate.read()

    def test_honest_programs_of_other_form_are_right_on_every_draw(self):
        for name in "attention/padding_by_ten_thousand", "losses/actions_not_allowed", "signal/oscillator", "ties/edges":
            problem, candidate = self.honest(name)
            for _ in range(3):
                result = self.native(problem, candidate, whole=True)["result"]
                assert result["verdict"] == "VERDICT_CORRECT", (name, result)

    def test_masks_that_scores_pass_excuse_who_skips_what_they_mask_and_nobody_else(self):
        problem, candidate = self.honest("attention/padding_by_ten_thousand")
        # Right on the problem's own values alone.
        fewer = candidate.replace("score *= 0.25f;", "score *= 0.25f;\n        if (score > 500) continue;")
        assert fewer != candidate
        result = self.native(problem, fewer, whole=True)["result"]
        assert result["verdict"] == "VERDICT_WRONG" and "problem's own values" in result["reason"], result
        # What is as good as a mask only where the program saturates.
        saturated = model("        return torch.where(a[0] < -100, torch.full_like(a[0], -100), a[0]) @ a[1]",
                          "[torch.randn(64, 80), torch.randn(80, 32)]")
        result = self.new(saturated, "torch.full_like(a[0], -100)", "torch.full_like(a[0], -float('inf'))")["result"]
        assert result["verdict"] == "VERDICT_WRONG", result

    def test_rounding_of_a_running_sum_excuses_no_sum_that_is_another(self):
        problem, candidate = self.honest("signal/oscillator")
        less = candidate.replace("phase += frequency[row * length + i];", "phase += frequency[row * length + i] * (i % 64 ? 1 : 0.999f);")
        assert less != candidate
        assert self.native(problem, less, whole=True)["result"]["verdict"] == "VERDICT_WRONG"


for name in [name for name in dir(judge_test.Tests) if name.startswith("test_")]:
    if name not in Tests.__dict__:
        setattr(Tests, name, None)

if __name__ == "__main__":
    sys.exit(judge_test.main(Tests))
