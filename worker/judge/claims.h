// Whether what a candidate claims and what the judge's clock says contradict each other, or the machine explains it:
// where there is more work than processors, a process waits for one before it begins and before it is heard, and only
// it could say so. Pure. docs/timing.md: "Lies that gain nothing are named all the same".
#pragma once

#include <string>
#include <vector>

namespace grove::judge {

enum class Contradiction {
  kNone,
  kUnsure,  // a thread of the judge's own, which was asked in the same way in between, waited as well, or asking has
            // become dearer
  kPlain,
};

// Seconds that waits of the judge's own thread (Echo) explain in each of the candidate's runs: none on a machine that
// has a processor for everyone.
double Explained(const std::vector<double>& waits);

// `missing`: seconds that are on the judge's clock and in no claim; `allowed`: of them, on a quiet machine. `dearer`:
// by how much the candidate's runs of nothing now take more than what is taken off its runs. Who makes them late on
// purpose is found by its runs of two lengths (Lies::InAsking).
Contradiction Judge(double missing, double allowed, const std::vector<double>& waits, double dearer = 0);

// What one call takes by itself, by claims for calls one after the other, or 0: where there are none, or where they
// contradict `call`, the judge's own time of one in a row. Seconds.
double Alone(const std::vector<double>& claims, double call);

// For the reason of an UNMEASURABLE: the machine is at fault only where the judge's own thread has waited.
std::string Busy(const std::vector<double>& waits, double dearer = 0);

}  // namespace grove::judge
