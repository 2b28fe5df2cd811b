#include "worker/judge/trace.h"

namespace grove::judge {

TraceResult Trace(Reference&, const std::vector<Leaf>&) {
  TraceResult result;
  result.error = "not traced";
  result.reduction = 1024;
  return result;
}

}  // namespace grove::judge
