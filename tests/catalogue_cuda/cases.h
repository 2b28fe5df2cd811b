// Operations for the CUDA catalogue's tests, built by hand: the blog's five problems and awkward relatives of them.
#pragma once

#include <string>
#include <vector>

#include "coordinator/generate/operation.h"

namespace grove::generate::catalogue {

struct Case {
  std::string name;
  OpSpec spec;
  std::string reference;  // Python: the result from x[0], x[1], ... (torch tensors)
  std::string inputs;     // Python applied to each x[i] after randn, with i in scope; "" = as it is
  bool large = false;     // worth timing
};

std::vector<Case> CudaCases();

}  // namespace grove::generate::catalogue
