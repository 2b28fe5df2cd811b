// In place of PyTorch's header of this name: see grove_torch_lite.h.
#pragma once
#include <grove_torch_lite.h>
