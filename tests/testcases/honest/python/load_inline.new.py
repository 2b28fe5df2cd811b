# A leaky ReLU by an extension in C++, as KernelBench's candidates have it.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
torch::Tensor leaky(torch::Tensor x, double slope) {
  auto in = x.contiguous();
  auto y = torch::empty_like(in);
  const float* a = in.data_ptr<float>();
  float* b = y.data_ptr<float>();
  for (int64_t i = 0; i < in.numel(); ++i) b[i] = a[i] > 0 ? a[i] : a[i] * static_cast<float>(slope);
  return y;
}
"""
leaky = load_inline(name="leaky", cpp_sources=source, functions=["leaky"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return leaky.leaky(x, self.slope)
