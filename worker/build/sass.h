// The machine code of a built object: how many instructions of which kind a GPU's compiler made of the source.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/build/build_cache.h"
#include "worker/device/toolchain.h"
#include "worker/sandbox/sandbox.h"

namespace grove::build {

inline constexpr size_t kMaxOpcodes = 24;                    // kinds that are named
inline constexpr int64_t kMaxSassBytes = int64_t{64} << 20;  // of disassembly that is read
inline constexpr double kSassSeconds = 20;

inline constexpr size_t kMaxFunctions = 256;

struct InstructionMix {
  // By opcode without its suffixes ("FFMA", "LDG", "HMMA", "BAR"), the most frequent first: instructions in the code,
  // not executions. NOP, of which there is only padding, is left out.
  std::vector<std::pair<std::string, int64_t>> counts;
  int64_t total = 0;   // with those that are not named
  std::string sha256;  // of functions and instructions as disassembled; empty where there are none
  // Names of the functions in the code, demangled, each once; at most kMaxFunctions.
  std::vector<std::string> functions;
};

// The text of `cuobjdump -sass`. Lines that are neither a function's nor an instruction's are skipped.
InstructionMix ParseSass(absl::string_view text);

// cuobjdump beside this nvcc, else on PATH; empty where there is none.
std::string FindCuobjdump(const device::Compiler& nvcc);

// Disassembles these objects in a sandbox. Those without code for a GPU count nothing.
// NOT_FOUND: there is no cuobjdump beside this nvcc or on PATH. Other errors: it did not come to an end.
absl::StatusOr<InstructionMix> CountInstructions(std::shared_ptr<sandbox::SandboxHost> host,
                                                 const device::Compiler& nvcc, const std::vector<BuiltObject>& objects,
                                                 const std::function<bool()>& cancelled);

}  // namespace grove::build
