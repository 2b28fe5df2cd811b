#!/usr/bin/env python3
"""The check on an NVIDIA machine, where outputs are compared on the device: python3 tests/gpu/correctness.py LIBEXEC [--device cuda:0]

Candidates are Python, so that nothing is built. Prints one line per case and exits with the number that did not go as they must.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "judge"))
from harness import Judge  # noqa: E402

QUICK = {"skip_timing": True}
REDUCED = dict(QUICK, precision="PRECISION_POLICY_REDUCED")


def model(body, inputs):
    lines = "\n".join("        " + line for line in body.split("; "))
    return (f"import torch\nclass Model(torch.nn.Module):\n    def forward(self, *a):\n{lines}\n"
            f"def get_inputs():\n    return {inputs}\ndef get_init_inputs():\n    return []\n")


MATMUL = ("return a[0] @ a[1]", "[torch.rand(1024, 4096), torch.rand(4096, 1024)]")
NORMAL = ("return a[0] @ a[1]", "[torch.randn(1024, 4096), torch.randn(4096, 1024)]")
SOFTMAX = ("return torch.softmax(a[0], dim=1)", "[torch.rand(512, 65536)]")
NORM = ("return torch.nn.functional.layer_norm(a[0], a[0].shape[1:])", "[torch.randn(16, 64, 256, 256)]")
MEAN = ("return a[0].mean(dim=1)", "[torch.rand(256, 1 << 20)]")
HALF = ("return (a[0] @ a[1]).relu()", "[torch.randn(512, 2048).half(), torch.randn(2048, 512).half()]")
CONV = ("return torch.nn.functional.conv2d(a[0], a[1], stride=4, padding=2)", "[torch.randn(32, 3, 224, 224), torch.randn(96, 3, 11, 11)]")
CASES = [
    # name, problem, candidate's body, options, verdict, words in the reason or the report
    ("matmul, as it is", MATMUL, None, QUICK, "CORRECT", "as the reference"),
    ("matmul, split in K", MATMUL, "return sum(x @ y for x, y in zip(a[0].split(512, 1), a[1].split(512, 0)))", QUICK, "CORRECT", ""),
    ("matmul, transposed twice", NORMAL, "return (a[1].t().contiguous() @ a[0].t().contiguous()).t().contiguous()", QUICK, "CORRECT", ""),
    ("matmul, float64 inside", NORMAL, "return (a[0].double() @ a[1].double()).float()", QUICK, "CORRECT", ""),
    ("matmul, three products of TF32-sized parts", NORMAL,
     "h = [(x.view(torch.int32) & -8192).view(torch.float32) for x in a]; l = [x - y for x, y in zip(a, h)]; return h[0] @ h[1] + (h[0] @ l[1] + l[0] @ h[1]) + l[0] @ l[1]",
     QUICK, "CORRECT", ""),
    ("matmul, TF32 inside", MATMUL, "torch.backends.cuda.matmul.allow_tf32 = True; return a[0] @ a[1]", QUICK, "WRONG", "precision"),
    ("matmul, half inside", MATMUL, "return (a[0].half() @ a[1].half()).float()", QUICK, "WRONG", ""),
    ("matmul, bfloat16 inside", NORMAL, "return (a[0].bfloat16() @ a[1].bfloat16()).float()", QUICK, "WRONG", ""),
    ("matmul, bfloat16 inside, allowed", NORMAL, "return (a[0].bfloat16() @ a[1].bfloat16()).float()", REDUCED, "CORRECT", "reduced (bfloat16"),
    ("matmul, TF32 inside, allowed", NORMAL, "torch.backends.cuda.matmul.allow_tf32 = True; return a[0] @ a[1]", REDUCED, "CORRECT", "reduced (TF32"),
    ("matmul, the last term left out", MATMUL, "return a[0][:, :-1].contiguous() @ a[1][:-1]", QUICK, "WRONG", ""),
    ("matmul, one row wrong", MATMUL, "y = a[0] @ a[1]; y[777] = y[776]; return y", QUICK, "WRONG", ""),
    ("matmul, one element wrong", MATMUL, "y = a[0] @ a[1]; y[777, 5] *= 1.001; return y", QUICK, "WRONG", "[777,5]"),
    ("convolution, as it is", CONV, None, QUICK, "CORRECT", ""),
    ("convolution, by unfolding", CONV,
     "y = torch.nn.functional.unfold(a[0], 11, padding=2, stride=4); return (a[1].reshape(96, -1) @ y).reshape(32, 96, 55, 55)", QUICK, "CORRECT", ""),
    ("convolution, half inside", CONV, "return torch.nn.functional.conv2d(a[0].half(), a[1].half(), stride=4, padding=2).float()", QUICK, "WRONG", ""),
    ("softmax, as it is", SOFTMAX, None, QUICK, "CORRECT", ""),
    ("softmax by log-sum-exp", SOFTMAX, "return (a[0] - torch.logsumexp(a[0], 1, keepdim=True)).exp()", QUICK, "CORRECT", ""),
    ("softmax without its maximum", SOFTMAX, "e = a[0].exp(); return e / e.sum(1, keepdim=True)", dict(QUICK, distributions=["INPUT_DISTRIBUTION_SCALED"]), "WRONG", "times 128"),
    ("the same, given inputs only", SOFTMAX, "e = a[0].exp(); return e / e.sum(1, keepdim=True)", dict(QUICK, only_given_inputs=True), "CORRECT", ""),
    ("softmax, zeros", SOFTMAX, "return torch.zeros_like(a[0])", QUICK, "WRONG", ""),
    ("softmax, even", SOFTMAX, "return torch.full_like(a[0], 1 / 65536)", QUICK, "WRONG", ""),
    ("layer norm, as it is", NORM, None, QUICK, "CORRECT", ""),
    ("layer norm, two passes",  NORM,
     "x = a[0].flatten(1); m = x.mean(1, keepdim=True); v = (x - m).square().mean(1, keepdim=True); return ((x - m) * torch.rsqrt(v + 1e-5)).view_as(a[0])",
     QUICK, "CORRECT", ""),
    ("layer norm, one pass", NORM,
     "x = a[0].flatten(1); m = x.mean(1, keepdim=True); v = x.square().mean(1, keepdim=True) - m * m; return ((x - m) * torch.rsqrt(v + 1e-5)).view_as(a[0])",
     QUICK, "WRONG", "1000"),
    ("layer norm, the mean taken for zero", NORM,
     "x = a[0].flatten(1); v = x.square().mean(1, keepdim=True); return (x * torch.rsqrt(v + 1e-5)).view_as(a[0])", QUICK, "WRONG", ""),
    ("mean of a million, as it is", MEAN, None, QUICK, "CORRECT", ""),
    ("mean of a million, in parts", MEAN, "return a[0].view(256, 1024, 1024).sum(1).sum(1) / (1 << 20)", QUICK, "CORRECT", ""),
    ("mean of half of them", MEAN, "return a[0][:, ::2].mean(dim=1)", QUICK, "WRONG", ""),
    ("mean of all but the last", MEAN, "return a[0][:, :-1].mean(dim=1)", QUICK, "WRONG", ""),
    ("mean, known beforehand", MEAN, "return torch.full((256,), 0.5, device=a[0].device)", QUICK, "WRONG", ""),
    ("half precision, as it is", HALF, None, QUICK, "CORRECT", ""),
    ("half precision, float32 inside", HALF, "return (a[0].float() @ a[1].float()).relu().half()", QUICK, "CORRECT", ""),
    ("half precision, bfloat16 inside", HALF, "return (a[0].bfloat16() @ a[1].bfloat16()).relu().half()", QUICK, "WRONG", ""),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("libexec")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", default="")
    parser.add_argument("-k", default="")
    options = parser.parse_args()
    failed, judges, results = 0, {}, []
    for name, problem, body, settings, verdict, words in CASES:
        if options.k not in name:
            continue
        if problem not in judges:
            for old in judges.values():
                old.close()
            judges = {problem: Judge(options.libexec, device=options.device, python=options.python, threads=8)}
            loaded = judges[problem].load(model(*problem))
            assert loaded["type"] == "loaded", loaded
        source = model(body or problem[0], problem[1]).replace("class Model", "class ModelNew")
        answer = judges[problem].evaluate(source=source, options=settings)
        result = answer.get("result", {})
        report = result.get("correctness", {})
        said = result.get("reason", answer.get("message", "")) + " " + report.get("precision", "")
        good = result.get("verdict") == "VERDICT_" + verdict and words in said
        failed += not good
        skipped = [d["distribution"][19:] + ": " + d["skipped"] for d in report.get("distributions", []) if d.get("skipped")]
        print("ok  " if good else "FAIL", name, "|", result.get("verdict"), "| error", report.get("error_found"), "of",
              report.get("error_same_precision"), "|", round(answer["seconds"], 2), "s |", said[:160].strip(), "|", *skipped, flush=True)
        results.append({"case": name, "ok": good, "result": result, "seconds": answer["seconds"]})
    for judge in judges.values():
        judge.close()
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=0)
    print(failed, "failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
