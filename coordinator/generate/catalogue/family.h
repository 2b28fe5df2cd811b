// A kernel family writes kernels for a group of operations on one kind of device. One file per family:
// cpu/<family>.cc and cuda/<family>.cc; the lists are cpu/families.cc and cuda/families.cc.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/generate/catalogue/optimisation.h"
#include "coordinator/generate/catalogue/recipe.h"
#include "coordinator/generate/operation.h"
#include "grove/v1/types.pb.h"

namespace grove::generate::catalogue {

struct Source {
  std::string text;  // whole file; starts with a comment that says what it is
  std::vector<std::string>
      build_flags;  // beyond the worker's own: -ffast-math, --use_fast_math, -D..., -maxrregcount=...
};

// Stateless and thread-safe. Everything is a function of the arguments alone.
class KernelFamily {
 public:
  virtual ~KernelFamily() = default;

  virtual v1::DeviceKind device() const = 0;
  // OK, or FAILED_PRECONDITION with why it cannot write for this spec (other operation: any message; only the messages
  // of families that match the operation are shown).
  virtual absl::Status Accepts(const OpSpec& spec, const v1::DeviceInfo& device) const = 0;
  virtual bool Matches(absl::string_view operation) const = 0;

  // Those that apply to this spec on this device, with the parameter values that apply. Deterministic.
  virtual std::vector<Optimisation> Optimisations(const OpSpec& spec, const v1::DeviceInfo& device) const = 0;

  // Starting points of round 0, plainest first: the first is the straightforward correct kernel, the rest bold
  // combinations. At least one. Settings only; operation and device are filled in by the catalogue.
  struct Start {
    std::string title, description;
    double predicted_speedup = 1;  // over the reference
    Recipe recipe;
  };
  virtual std::vector<Start> Starts(const OpSpec& spec, const v1::DeviceInfo& device) const = 0;

  // The kernel's source. Must succeed and be correct for every recipe that CheckRecipe(Optimisations(...)) passes.
  virtual absl::StatusOr<Source> Write(const OpSpec& spec, const v1::DeviceInfo& device,
                                       const Recipe& recipe) const = 0;
};

// Defined in cpu/families.cc and cuda/families.cc.
std::vector<const KernelFamily*> CpuFamilies();
std::vector<const KernelFamily*> CudaFamilies();

// The family that writes for this spec on this device; FAILED_PRECONDITION with the reason when there is none.
absl::StatusOr<const KernelFamily*> FindFamily(const OpSpec& spec, const v1::DeviceInfo& device);

}  // namespace grove::generate::catalogue
