"""Writes the graph fixtures: what a trace of a small model looks like, and what torch computes for fixed inputs.

Usage: python3 make.py OUT_FOLDER     (any torch >= 1.13)

Each file is {"description": ProblemDescription, "expected": [...]}: the description in the form that the judge gives it,
and the first output, flattened, computed in double precision for the inputs of value() below.
"""
import json
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


def value(i, arg):
    return ((i * 7919 + arg * 104729 + 13) % 2003) / 1001.0 - 1.0


def fill(shape, arg):
    n = 1
    for s in shape:
        n *= s
    return torch.tensor([value(i, arg) for i in range(n)], dtype=torch.float32).reshape(shape)


class Fn(nn.Module):
    def __init__(self, fn, **parameters):
        super().__init__()
        self.fn = fn
        for name, shape in parameters.items():
            setattr(self, name, nn.Parameter(torch.zeros(shape)))

    def forward(self, *x):
        return self.fn(self, *x)


def tensor_type(t, name=""):
    return {"dtype": str(t.dtype).replace("torch.", ""), "shape": list(map(str, t.shape)), "name": name}


def describe(model, inputs):
    graph = torch.jit.trace(model, tuple(inputs), check_trace=False).inlined_graph
    state = model.state_dict()
    names = {k: "p%d" % i for i, k in enumerate(state)}
    values, ops, paths = {}, [], {}
    graph_inputs = list(graph.inputs())
    paths[graph_inputs[0].debugName()] = ""
    for i, v in enumerate(graph_inputs[1:]):
        values[v.debugName()] = "in%d" % i
    for node in graph.nodes():
        kind = node.kind()
        out = [o.debugName() for o in node.outputs()]
        if kind == "prim::GetAttr":
            base = paths[next(node.inputs()).debugName()]
            path = (base + "." if base else "") + node.s("name")
            paths[out[0]] = path
            if path in names:
                values[out[0]] = names[path]
            continue
        if kind == "prim::Constant":
            v = node.output().toIValue()
            if isinstance(v, torch.Tensor):
                v = v.item() if v.numel() == 1 else v.tolist()
            values[out[0]] = json.dumps(v)
            continue
        if kind == "prim::ListConstruct":
            items = [values[i.debugName()] for i in node.inputs()]
            try:
                values[out[0]] = json.dumps([json.loads(i) for i in items])
                continue
            except ValueError:
                pass
        types = []
        for o in node.outputs():
            t = o.type()
            if t.kind() == "TensorType":
                types.append({"dtype": {"Float": "float32", "Long": "int64", "Double": "float64", "Bool": "bool"}.get(
                    t.scalarType(), str(t.scalarType())), "shape": list(map(str, t.sizes() or []))})
            else:
                types.append({"dtype": str(t)})
        for o in out:
            values[o] = "v%d" % len(values)
        ops.append({"kind": kind, "inputs": [values[i.debugName()] for i in node.inputs()],
                    "outputs": [values[o] for o in out], "output_types": types})
    outputs = [values[o.debugName()] for o in graph.outputs()]
    with torch.no_grad():
        result = model(*inputs)
    return {
        "inputs": [tensor_type(x) for x in inputs],
        "parameters": [tensor_type(v, k) for k, v in state.items()],
        "outputs": [tensor_type(r) for r in (result if isinstance(result, tuple) else [result])],
        "graph": ops,
        "graph_outputs": outputs,
    }


def rms(self, x):
    return x / torch.sqrt(torch.mean(x ** 2, dim=1, keepdim=True) + 1e-5)


def rms_last(self, x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w


def gelu_by_hand(self, x):
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0))))


def chain(self, x):
    y = F.leaky_relu(torch.clamp(F.silu(x) * torch.sigmoid(x), -1, 1), 0.1) + F.hardtanh(x) + F.elu(x) + F.selu(x)
    y = y + F.softplus(x) + F.softsign(x) + F.hardsigmoid(x) + F.hardswish(x) - x / (1 + torch.abs(x)) + F.mish(x)
    y = y + torch.exp(x) - torch.log(torch.abs(x) + 0.5) + torch.sqrt(torch.abs(x)) + F.relu(x) + torch.erf(x) + F.relu6(4 * x)
    return y + F.logsigmoid(x) + torch.tanh(x) + F.gelu(x) + F.gelu(x, approximate="tanh") + torch.rsub(x, 1.5) + torch.expm1(x)


CASES = {
    "relu": (Fn(lambda s, x: torch.relu(x)), [(5, 37)]),
    "gelu_by_hand": (Fn(gelu_by_hand), [(3, 41)]),
    "long_chain": (Fn(chain), [(7, 29)]),
    "bias_gelu_residual": (Fn(lambda s, x, r: F.gelu(x + s.b) * 2.0 + r, b=(19,)), [(6, 19), (6, 19)]),
    "broadcast_both": (Fn(lambda s, x, y: x * y + s.c,
                          c=(4, 1, 1)), [(2, 4, 3, 5), (2, 1, 3, 1)]),
    "transposed_add": (Fn(lambda s, x, y: x.t() + y), [(9, 21), (21, 9)]),
    "softmax_last": (Fn(lambda s, x: torch.softmax(x, dim=1)), [(5, 131)]),
    "softmax_middle": (Fn(lambda s, x: torch.softmax(x, dim=1)), [(3, 7, 45)]),
    "softmax_scaled": (Fn(lambda s, x, y: torch.softmax((x + y) * 8.0, dim=-1) * 3.0), [(2, 3, 70), (70,)]),
    "log_softmax": (Fn(lambda s, x: F.log_softmax(x * 30, dim=-1)), [(4, 4099)]),
    "log_softmax_middle": (Fn(lambda s, x: F.log_softmax(x, dim=0)), [(6, 33)]),
    "layer_norm": (nn.LayerNorm((4, 39)), [(5, 4, 39)]),
    "layer_norm_shifted": (Fn(lambda s, x: F.layer_norm(x * 0.1 + 1000.0, (300,))), [(3, 300)]),
    "layer_norm_gelu": (Fn(lambda s, x, r: F.gelu(F.layer_norm(x + r, (67,), s.w, s.b)), w=(67,), b=(67,)), [(4, 67), (4, 67)]),
    "group_norm": (nn.GroupNorm(2, 6), [(2, 6, 5, 7)]),
    "instance_norm": (nn.InstanceNorm2d(3, affine=True), [(2, 3, 5, 9)]),
    "batch_norm_eval": (nn.BatchNorm2d(5).eval(), [(2, 5, 3, 7)]),
    "rms_norm_dim1": (Fn(rms), [(2, 24, 5, 11)]),
    "rms_norm_last": (Fn(rms_last, w=(90,)), [(4, 90)]),
    "l2_norm": (Fn(lambda s, x: x / torch.norm(x, p=2, dim=1, keepdim=True)), [(6, 83)]),
    "frobenius_norm": (Fn(lambda s, x: x / torch.norm(x)), [(6, 13, 5)]),
    "sum_dim": (Fn(lambda s, x: torch.sum(x, dim=1, keepdim=True)), [(4, 700, 21)]),
    "sum_last": (Fn(lambda s, x: torch.sum(x * x + 1, dim=-1)), [(3, 9001)]),
    "mean_all": (Fn(lambda s, x: torch.mean(x)), [(7, 1301)]),
    "mean_dims": (Fn(lambda s, x: torch.mean(x, dim=(2, 3))), [(3, 5, 6, 7)]),
    "max_dim": (Fn(lambda s, x: torch.max(x, dim=1)[0]), [(4, 9, 13)]),
    "amin_last": (Fn(lambda s, x: torch.amin(x, dim=-1)), [(6, 77)]),
    "prod_dim": (Fn(lambda s, x: torch.prod(x + 1.5, dim=1)), [(5, 11)]),
    "logsumexp": (Fn(lambda s, x: torch.logsumexp(x * 20, dim=1)), [(4, 5000)]),
    "logsumexp_middle": (Fn(lambda s, x: torch.logsumexp(x, dim=1)), [(3, 8, 19)]),
    "mse_loss": (Fn(lambda s, x, y: torch.mean((x - y) ** 2)), [(12, 801), (12, 801)]),
    "huber_loss": (Fn(lambda s, x, y: F.huber_loss(3 * x, y, delta=1.5)), [(12, 401), (12, 401)]),
    "smooth_l1_loss": (Fn(lambda s, x, y: F.smooth_l1_loss(2 * x, y, reduction="sum")), [(7, 91), (7, 91)]),
    "reduce_then_relu": (Fn(lambda s, x: torch.relu(torch.sum(x, dim=1) * 0.1)), [(5, 50)]),
    "matmul": (Fn(lambda s, a, b: torch.matmul(a, b)), [(37, 53), (53, 41)]),
    "matmul_ta": (Fn(lambda s, a, b: torch.matmul(a.T, b)), [(53, 14), (53, 41)]),
    "matmul_tb": (Fn(lambda s, a, b: torch.matmul(a, b.T)), [(13, 300), (50, 300)]),
    "matmul_vector": (Fn(lambda s, a, b: torch.matmul(a, b)), [(37, 600), (600, 1)]),
    "matmul_3d": (Fn(lambda s, a, b: torch.matmul(a, b)), [(3, 7, 20), (20, 33)]),
    "bmm": (Fn(lambda s, a, b: torch.bmm(a, b)), [(4, 9, 17), (4, 17, 35)]),
    "einsum_4d": (Fn(lambda s, a, b: torch.einsum("pqrs, sk -> pqrk", a, b)), [(2, 3, 5, 17), (17, 21)]),
    "einsum_batched": (Fn(lambda s, a, b: torch.einsum("ikb,jkb->bij", a, b)), [(9, 17, 4), (35, 17, 4)]),
    "linear": (nn.Linear(45, 70), [(9, 45)]),
    "mlp_epilogue": (Fn(lambda s, x, r: F.gelu(F.linear(x, s.w, s.b)) * 0.5 + r, w=(66, 31), b=(66,)), [(10, 31), (10, 66)]),
    "conv2d": (nn.Conv2d(3, 10, 3, padding=1), [(2, 3, 9, 11)]),
    "conv2d_strided": (nn.Conv2d(4, 8, (5, 3), stride=2, padding=(2, 0), dilation=(1, 2), groups=2, bias=False), [(1, 4, 17, 19)]),
    "conv2d_tanh": (Fn(lambda s, x: torch.tanh(F.conv2d(x, s.w, s.b) - 0.5) * 2, w=(5, 3, 3, 3), b=(5,)), [(2, 3, 8, 10)]),
    "conv1d": (Fn(lambda s, x: F.conv1d(x, s.w, s.b, stride=2, padding=3, dilation=2), w=(10, 3, 5), b=(10,)), [(2, 3, 41)]),
    "conv1d_grouped_gelu": (Fn(lambda s, x: F.gelu(F.conv1d(x, s.w, groups=2)), w=(8, 2, 3)), [(3, 4, 33)]),
    "conv_relu_maxpool": (Fn(lambda s, x: F.max_pool2d(torch.relu(F.conv2d(x, s.w, s.b, stride=2, padding=2)), 3, 2),
                             w=(7, 3, 5, 5), b=(7,)), [(2, 3, 25, 27)]),
    "max_pool2d": (nn.MaxPool2d(3, 2, padding=1), [(2, 3, 11, 14)]),
    "max_pool1d": (nn.MaxPool1d(4, 3, padding=2, dilation=2), [(2, 5, 43)]),
    "avg_pool1d": (nn.AvgPool1d(4, 3, padding=1), [(2, 5, 43)]),
    "avg_pool2d": (nn.AvgPool2d(3, 2, padding=1), [(2, 3, 11, 14)]),
    # Not known to the catalogue.
    "unknown_cumsum": (Fn(lambda s, x: torch.cumsum(x, dim=1)), [(4, 8)]),
    "unknown_attention": (Fn(lambda s, q, k, v: torch.softmax(q @ k.transpose(-1, -2), -1) @ v), [(2, 8, 4), (2, 8, 4), (2, 8, 4)]),
    "unknown_two_outputs": (Fn(lambda s, x: (x + 1, x * 2)), [(4, 8)]),
    "unknown_einsum": (Fn(lambda s, a, b: torch.einsum("ij,ij->i", a, b)), [(4, 8), (4, 8)]),
    "unknown_pool3d": (nn.MaxPool3d(2), [(1, 2, 4, 4, 4)]),
    "unknown_chain": (Fn(lambda s, x: torch.relu(torch.cumsum(x, dim=1)) / 2), [(4, 8)]),
    "unknown_argmax": (Fn(lambda s, x: torch.argmax(x, dim=1)), [(4, 8)]),
    "unknown_batch_norm_training": (nn.BatchNorm2d(4), [(2, 4, 3, 3)]),
}


def main(folder):
    for name, (model, shapes) in CASES.items():
        inputs = [fill(s, i) for i, s in enumerate(shapes)]
        for i, (key, p) in enumerate(model.state_dict().items()):
            if p.dtype == torch.float32:
                values = fill(p.shape, len(inputs) + i)
                p.copy_(values.abs() + 0.5 if key == "running_var" else values)
        description = describe(model, inputs)
        expected = []
        if not name.startswith("unknown"):
            with torch.no_grad():
                expected = [float("%.9g" % v) for v in model.double()(*[x.double() for x in inputs]).reshape(-1).tolist()]
        with open("%s/%s.json" % (folder, name), "w") as out:
            json.dump({"description": description, "expected": expected}, out)
            out.write("\n")


main(sys.argv[1])
