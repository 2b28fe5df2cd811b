#!/usr/bin/env python3
"""An extension built with the small headers against the same one built with PyTorch's own: documentation, results, errors.

usage: torch_lite_check.py LIBEXEC_DIR GLUE.o     prints "same" or what differs; exit 1 then
"""

import importlib.machinery
import importlib.util
import os
import sys
import tempfile

SOURCE = r"""
#include <vector>
torch::Tensor twice(torch::Tensor a, double s, int64_t n, bool flag, const std::string& word, std::vector<torch::Tensor> more) {
  TORCH_CHECK(a.dim() == 2, "need 2-D, got ", a.dim(), " with ", a.sizes(), " ", a.scalar_type(), " ", a.dtype(), " on ",
              a.device(), " ", 1.5, " ", 1e-7f, " ", word);
  auto c = a.contiguous();
  auto b = torch::empty_like(c);
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "twice", [&] {
    const scalar_t* p = c.data_ptr<scalar_t>();
    scalar_t* q = b.data_ptr<scalar_t>();
    for (int64_t i = 0; i < c.numel(); ++i) q[i] = p[i] * s + n;
  });
  for (auto& m : more) b = b + m;
  return flag ? b.t() : b;
}
std::vector<torch::Tensor> views(const torch::Tensor& a) {
  return {a * 2, a.sum(1, true), a.mean({0}), a.view({-1}), a.reshape({3, -1}), a.transpose(0, 1), a.permute({1, 0}).contiguous(),
          a.unsqueeze(0), a.unsqueeze(0).squeeze(0), a.flatten(), a.select(0, 1), a.narrow(1, 1, 2), a.expand_as(a),
          a.to(torch::kFloat64), a.to(a.device()), a.exp(), torch::relu(a - 2), a.matmul(a.t()), a / 3, at::sqrt(a), a.neg().abs()};
}
std::tuple<torch::Tensor, torch::Tensor> made(torch::Tensor a) {
  return std::make_tuple(torch::full({2, a.size(-1)}, 3, a.options().dtype(torch::kInt64)),
                         torch::zeros({2}, torch::TensorOptions().dtype(torch::kFloat16).requires_grad(true)));
}
std::vector<torch::Tensor> factories(torch::Tensor a) {
  return {torch::ones(a.sizes(), a.options()), at::zeros({2, 2}), torch::zeros_like(a), torch::ones_like(a, torch::kDouble),
          torch::full_like(a, 0.5), torch::zeros({3}, torch::kInt32), torch::zeros({1}, torch::dtype(torch::kBool).device(torch::kCPU))};
}
void in_place(torch::Tensor& a) { a.fill_(3).copy_(a * 2); }
double total(torch::Tensor a) { return a.sum().item<double>(); }
std::vector<int64_t> facts(torch::Tensor a) {
  return {a.numel(), a.dim(), a.stride(0), a.element_size(), int64_t(a.nbytes()), a.is_contiguous(), a.is_cuda(), a.requires_grad(),
          a.is_floating_point(), a.dtype() == torch::kFloat32, a.device() == torch::Device(torch::kCPU), a.sizes() == a.sizes(),
          a.defined(), torch::Tensor().defined(), int64_t(a.scalar_type()), a.type().is_cuda()};
}
torch::Tensor wrong_type(torch::Tensor a) { a.data_ptr<float>(); return a; }
void unexplained(torch::Tensor a) { TORCH_CHECK(a.numel() == 0); }
void standard() { throw std::out_of_range("beyond"); }
"""
FUNCTIONS = {name: f"the {name}" for name in
             ("twice", "views", "made", "factories", "in_place", "total", "facts", "wrong_type", "unexplained", "standard")}


def observe(path, torch):
    """What a person who uses the module could see of it."""
    loader = importlib.machinery.ExtensionFileLoader("lite_check", path)
    spec = importlib.util.spec_from_file_location("lite_check", path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    seen = [sorted(name for name in dir(module) if not name.startswith("__"))]
    seen += [(getattr(module, name).__doc__, type(getattr(module, name)).__name__) for name in FUNCTIONS]
    a = torch.arange(6.0).reshape(2, 3)

    def call(name, *arguments, **named):
        try:
            result = getattr(module, name)(*arguments, **named)
            parts = result if isinstance(result, (tuple, list)) else [result]
            seen.append((name, type(result).__name__, [(str(p), str(p.dtype), p.stride(), p.requires_grad) if isinstance(p, torch.Tensor)
                                                       else repr(p) for p in parts]))
        except Exception as error:
            seen.append((name, type(error).__name__, str(error).split("\nException raised")[0]))

    call("twice", a, 2, 1, True, "x", [a, a])
    call("twice", a.double(), 2.5, 1, False, "x", [])
    call("twice", a[0], 2, 1, True, "word", [])
    call("twice", a.int(), 2, 1, True, "x", [])
    call("twice", a, 2, 1.5, True, "x", [])
    call("twice", a, 2, 2**70, True, "x", [])
    call("twice", a, arg1=2, arg2=1, arg3=True, arg4="x", arg5=())
    call("twice", None, 2, 1, True, "x", [])
    call("twice")
    call("views", a)
    call("made", a)
    call("factories", a)
    call("in_place", a)
    seen.append(str(a))
    call("total", a)
    for tensor in (a, a.t(), a.int(), a.double().requires_grad_(True)):
        call("facts", tensor)
    call("wrong_type", a.double())
    call("unexplained", a)
    call("standard")
    call("views", 3)
    return seen


def main():
    libexec, glue = sys.argv[1:3]
    sys.path.insert(0, libexec)
    import torch
    import torch.utils.cpp_extension as cpp_extension
    import torch_lite_build

    ninja = cpp_extension._run_ninja_build
    seen = []
    cpp_extension._import_module_from_library = lambda *arguments: None
    for lite in (True, False):
        how = []
        cpp_extension._run_ninja_build = ninja
        if lite:
            torch_lite_build.LiteBuilder(cpp_extension, os.path.join(libexec, "torch_lite"), glue, how.append)
        cpp_extension.JIT_EXTENSION_VERSIONER.entries.clear()  # else the second is called lite_check_v1
        folder = tempfile.mkdtemp()
        cpp_extension.load_inline(name="lite_check", cpp_sources=SOURCE, functions=dict(FUNCTIONS), build_directory=folder)
        if lite and how != ["small headers"]:
            print("not built with the small headers:", how)
            return 1
        seen.append(observe(os.path.join(folder, "lite_check.so"), torch))
    different = [(a, b) for a, b in zip(*seen) if a != b]
    for a, b in different:
        print("small headers:", a)
        print("full headers: ", b)
    if len(seen[0]) != len(seen[1]) or different:
        return 1
    print("same", len(seen[0]))

    # What the small headers must leave alone.
    for text, fits in [("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n#endif\n", True),
                       ("#define MINE 1\n#ifdef MINE\n#elif MINE > 2\n#endif\n", True),
                       ("#ifdef AT_DISPATCH_CASE\n#endif\n", False), ("  # if TORCH_VERSION_MAJOR > 1 // x\n#endif\n", False),
                       ("#if 1 && \\\n  SOMETHING\n#endif\n", False), ("#if __has_include(<x>)\n#endif\n", False)]:
        try:
            torch_lite_build.check_conditions(text)
            fitted = True
        except torch_lite_build.Unfit:
            fitted = False
        if fitted != fits:
            print("wrongly", "accepted" if fitted else "refused", repr(text))
            return 1
    for text, fits in [("#include <torch/extension.h>\n# include <vector>\n#include <cuda_fp16.h>\n#include <pybind11/pybind11.h>\n", True),
                       ("#include <ATen/ATen.h>\n#include <c10/util/Half.h>\n#include <mma.h>\n", True),
                       ("#include <torch/csrc/utils/pybind.h>\n", False), ("  #  include <pybind11/numpy.h>\n", False),
                       ('#include "mine.h"\n', False), ("#include MINE\n", False), ("#include <ATen/native/Math.h>\n", False)]:
        try:
            torch_lite_build.check_includes(text, os.path.join(libexec, "torch_lite"))
            fitted = True
        except torch_lite_build.Unfit:
            fitted = False
        if fitted != fits:
            print("wrongly", "accepted" if fitted else "refused", repr(text))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
