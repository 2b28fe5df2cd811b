#!/usr/bin/env python3
"""An extension built with the small headers against the same one built with PyTorch's own: documentation, results, errors.

usage: torch_lite_check.py LIBEXEC_DIR GLUE.o     prints "same" or what differs; exit 1 then
"""

import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import time

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
std::vector<int64_t> shape(torch::Tensor a) {
  std::vector<int64_t> all = {a.dim(), a.numel(), a.storage_offset(), int64_t(a.sizes().size()), int64_t(a.strides().size())};
  for (int64_t d = -a.dim(); d < a.dim(); ++d) all.insert(all.end(), {a.size(d), a.stride(d)});
  for (int64_t d = 0; d < a.dim(); ++d) all.insert(all.end(), {a.sizes()[d], a.strides()[d]});
  return all;
}
int64_t size_at(torch::Tensor a, int64_t d) { return a.size(d); }
int64_t stride_at(torch::Tensor a, int64_t d) { return a.stride(d); }
std::vector<int64_t> none() { torch::Tensor a; return {a.numel(), a.dim(), a.size(0), int64_t(a.sizes().size())}; }
std::vector<int64_t> strides_of_none() { return torch::Tensor().strides().vec(); }
torch::Tensor loop(torch::Tensor a) {
  auto b = torch::empty_like(a);
  const float* p = a.data_ptr<float>();
  float* q = b.data_ptr<float>();
  for (int64_t i = 0; i < a.numel(); ++i) q[i] = p[i] > 0 ? p[i] : 0;
  for (int64_t i = 0; i < a.size(0); ++i) {
    for (int64_t j = 0; j < a.size(1); ++j) q[i * b.stride(0) + j * b.stride(-1)] += p[i * a.stride(0) + j * a.stride(-1)];
  }
  return b;
}
torch::Tensor wrong_type(torch::Tensor a) { a.data_ptr<float>(); return a; }
void unexplained(torch::Tensor a) { TORCH_CHECK(a.numel() == 0); }
void standard() { throw std::out_of_range("beyond"); }
"""
FUNCTIONS = {name: f"the {name}" for name in
             ("twice", "views", "made", "factories", "in_place", "total", "facts", "shape", "size_at", "stride_at",
              "none", "strides_of_none", "loop", "wrong_type", "unexplained", "standard")}


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
    deep = torch.zeros(2, 1, 2, 3, 1, 2, 2)
    for tensor in (a, a.t(), a[0, 1], a[:, 1:], a[:0], deep, deep.transpose(0, 3)[:, :, 1], torch.zeros(2, 3, 4, 5, 6).permute(4, 2, 0, 1, 3),
                   torch.nn.Parameter(a), a.to_sparse(), a[0].expand(4, 3)):
        call("shape", tensor)
        for dimension in (-9, -3, -1, 0, 2, 7):
            call("size_at", tensor, dimension)
            call("stride_at", tensor, dimension)
    call("none")
    call("strides_of_none")
    call("loop", a - 3)
    call("wrong_type", a.double())
    call("unexplained", a)
    call("standard")
    call("views", 3)
    return seen, module


def compare_times(torch, lite, full):
    """What loops ask for on every turn must be as cheap as with PyTorch's own headers: lite/full, least of many."""
    a = torch.randn(384, 384)
    least = {lite: 1e9, full: 1e9}
    for attempt in range(20):
        for _ in range(20):
            for module in least:
                begin = time.perf_counter()
                module.loop(a)
                least[module] = min(least[module], time.perf_counter() - begin)
        if attempt >= 2 and least[lite] < 1.1 * least[full]:
            break
    return least[lite] / least[full]


def main():
    libexec, glue = sys.argv[1:3]
    sys.path.insert(0, libexec)
    import torch
    import torch.utils.cpp_extension as cpp_extension
    import torch_lite_build

    ninja = cpp_extension._run_ninja_build
    seen, modules = [], []
    cpp_extension._import_module_from_library = lambda *arguments: None
    for lite in (True, False):
        how = []
        cpp_extension._run_ninja_build = ninja
        if lite:
            torch_lite_build.LiteBuilder(cpp_extension, os.path.join(libexec, "torch_lite"), glue, how.append)
        cpp_extension.JIT_EXTENSION_VERSIONER.entries.clear()  # else the second is called lite_check_v1
        folder = tempfile.mkdtemp()
        cpp_extension.load_inline(name="lite_check", cpp_sources=SOURCE, functions=dict(FUNCTIONS), build_directory=folder,
                                  extra_cflags=["-O3"])
        if lite and how != ["small headers"]:
            print("not built with the small headers:", how)
            return 1
        observed, module = observe(os.path.join(folder, "lite_check.so"), torch)
        seen.append(observed)
        modules.append(module)
    different = [(a, b) for a, b in zip(*seen) if a != b]
    for a, b in different:
        print("small headers:", a)
        print("full headers: ", b)
    if len(seen[0]) != len(seen[1]) or different:
        return 1
    ratio = compare_times(torch, *modules)
    if ratio > 1.5:
        print(f"a loop takes {ratio:.2f} times as long with the small headers")
        return 1
    print("same", len(seen[0]), f"{ratio:.2f}")

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
