// What an Xid, the number by which NVIDIA's driver reports an error, says about who caused it.
//
// Source of the actions: NVIDIA's catalogue, docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (column
// "Immediate action" for H100): what it answers by RESTART_APP is an application's (but for 80, corrupted data on the
// way to the GPU, and 94), what it answers by IGNORE without naming an application is a notice. Of what else is an
// application's: the same, and the list of those that NVIDIA's Kubernetes device plugin does not take for a sick device
// (13, 31, 43, 45, 68, 109; internal/rm/health.go).
#pragma once

#include <string>
#include <vector>

namespace grove::device {

enum class XidBlame {
  kApplication,  // the program on the GPU: expected of kernels that are being tried out
  kDevice,       // hardware, firmware, driver or link: says nothing about the program
  kNotice,       // a record of something that needs no action now
};

struct XidMeaning {
  int xid;
  XidBlame blame;
  const char* text;
  const char* action;  // for the operator; as the catalogue has it, in words
};

// Every Xid has a meaning: one that is not in the table is the device's, because what is not known to be a program's
// doing must not become its verdict.
XidMeaning MeaningOf(int xid);

// "Xid 31 (GPU memory page fault)".
std::string XidText(int xid);

// All that the table has, in ascending order.
const std::vector<XidMeaning>& XidTable();

}  // namespace grove::device
