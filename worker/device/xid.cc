#include "worker/device/xid.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace grove::device {

const std::vector<XidMeaning>& XidTable() {
  using B = XidBlame;
  constexpr char kRestart[] = "none: the program is ended";
  constexpr char kIgnore[] = "none";
  constexpr char kReset[] = "reset the GPU";
  static const std::vector<XidMeaning> table = {
      {8, B::kApplication, "GPU stopped processing", kRestart},
      {11, B::kApplication, "invalid or corrupted push buffer", kRestart},
      {13, B::kApplication, "graphics engine exception", kRestart},
      {25, B::kApplication, "invalid or illegal push buffer stream", kRestart},
      {31, B::kApplication, "GPU memory page fault", kRestart},
      {32, B::kApplication, "invalid or corrupted push buffer stream", kRestart},
      {37, B::kNotice, "driver firmware error", kIgnore},
      {38, B::kNotice, "driver firmware error", kIgnore},
      {39, B::kApplication, "copy engine exception", kRestart},
      {40, B::kApplication, "copy engine exception", kRestart},
      {41, B::kApplication, "copy engine exception", kRestart},
      {43, B::kApplication, "GPU stopped processing", kRestart},
      {44, B::kNotice, "graphics engine fault during a context switch", kIgnore},
      {45, B::kApplication, "preemptive cleanup after an earlier error", kRestart},
      {46, B::kDevice, "GPU timeout", kReset},
      {48, B::kDevice, "double-bit ECC error", "drain, then reset the GPU"},
      {60, B::kApplication, "video processor exception", kRestart},
      {61, B::kDevice, "internal microcontroller breakpoint", kReset},
      {62, B::kDevice, "internal microcontroller halt", kReset},
      {63, B::kNotice, "row remapping recorded", "reset the GPU at the next occasion"},
      {64, B::kDevice, "row remapping failed", kReset},
      {66, B::kNotice, "illegal access by driver", kIgnore},
      {67, B::kNotice, "illegal access by driver", kIgnore},
      {68, B::kApplication, "video decoder exception", kRestart},
      {69, B::kApplication, "graphics engine class error", kRestart},
      {70, B::kApplication, "copy engine exception", kRestart},
      {71, B::kApplication, "copy engine exception", kRestart},
      {72, B::kApplication, "copy engine exception", kRestart},
      {74, B::kDevice, "NVLink error", "check the link, reset the GPU"},
      {75, B::kApplication, "copy engine exception", kRestart},
      {76, B::kApplication, "copy engine exception", kRestart},
      {77, B::kApplication, "copy engine exception", kRestart},
      {79, B::kDevice, "GPU has fallen off the bus", "reboot the machine"},
      {82, B::kApplication, "JPEG engine exception", kRestart},
      {83, B::kApplication, "video decoder exception", kRestart},
      {84, B::kApplication, "video decoder exception", kRestart},
      {85, B::kApplication, "copy engine exception", kRestart},
      {86, B::kApplication, "optical flow engine exception", kRestart},
      {88, B::kApplication, "video decoder exception", kRestart},
      {89, B::kApplication, "video decoder exception", kRestart},
      {92, B::kNotice, "high rate of single-bit ECC errors", "none"},
      // The memory's fault, although only one program is hit: the evaluation is made again elsewhere.
      {94, B::kDevice, "contained memory error", "none: the program is ended, through no fault of its own"},
      {95, B::kDevice, "uncontained memory error", kReset},
      {96, B::kApplication, "video decoder exception", kRestart},
      {97, B::kApplication, "video decoder exception", kRestart},
      {98, B::kApplication, "video decoder exception", kRestart},
      {99, B::kApplication, "JPEG engine exception", kRestart},
      {100, B::kApplication, "JPEG engine exception", kRestart},
      {101, B::kApplication, "JPEG engine exception", kRestart},
      {102, B::kApplication, "JPEG engine exception", kRestart},
      {103, B::kApplication, "JPEG engine exception", kRestart},
      {104, B::kApplication, "JPEG engine exception", kRestart},
      {105, B::kApplication, "JPEG engine exception", kRestart},
      // The catalogue would reset the GPU, the device plugin takes it for an application's. Kernels that do not yield
      // bring it about; the canary that follows every fault tells whether the GPU is still good.
      {109, B::kApplication, "context switch timeout", "reset the GPU when its test fails"},
      {110, B::kDevice, "security fault", "reboot the machine"},
      {119, B::kDevice, "timeout of a call to the GPU's system processor", kReset},
      {120, B::kDevice, "error of the GPU's system processor", kReset},
      {137, B::kApplication, "access fault over NVLink", kRestart},
      {140, B::kDevice, "unrecovered ECC error", kReset},
      {143, B::kDevice, "GPU initialisation error", kReset},
      {154, B::kDevice, "the recovery action has changed", "as nvidia-smi -q says under GPU Recovery Action"},
      {158, B::kDevice, "fatal timeout", kReset},
  };
  return table;
}

XidMeaning MeaningOf(int xid) {
  const std::vector<XidMeaning>& table = XidTable();
  const auto it = std::lower_bound(table.begin(), table.end(), xid,
                                   [](const XidMeaning& meaning, int number) { return meaning.xid < number; });
  if (it != table.end() && it->xid == xid) return *it;
  return {xid, XidBlame::kDevice, "not known to this version", "see NVIDIA's Xid catalogue"};
}

std::string XidText(int xid) { return absl::StrCat("Xid ", xid, " (", MeaningOf(xid).text, ")"); }

}  // namespace grove::device
