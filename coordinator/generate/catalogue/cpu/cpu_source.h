// The parts that every C++ kernel of the catalogue is put together from.
//
// Everything works on flat positions: position p of a space is element p of the row-major result. A "range loop" walks
// [begin, end) of a space, vector by vector, splitting where an operand's broadcast or stride changes direction, and
// stores the value of an expression. Kernels differ in what they do before that loop and in the "acc" that it reads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "coordinator/generate/catalogue/emit.h"
#include "coordinator/generate/catalogue/family.h"
#include "coordinator/generate/catalogue/optimisation.h"
#include "coordinator/generate/operation.h"

namespace grove::generate::catalogue::cpu {

// Text of "acc" at flat position `p` (an expression): scalar; a full vector; or the first `m` lanes of one.
enum class Lanes { kScalar, kVector, kPart };
using AccText = std::function<std::string(const std::string& p, Lanes lanes)>;

struct RangeOptions {
  bool simd = false;
  int unroll = 1;
  bool stream = false;     // non-temporal stores
  int prefetch_bytes = 0;  // ahead of the loads of contiguous operands
};

// A block that stores `expr` for flat positions [begin, end) to dst[p - dst_base]; the operand pointers are in<arg>.
std::string RangeLoop(const Expr& expr, const std::string& begin, const std::string& end, const std::string& dst,
                      const std::string& dst_base, const AccText& acc, const RangeOptions& options,
                      const std::string& indent);

// Includes, vector type, arithmetic. `bytes` = widest vector to use (64, 32, 16), `exp_degree` = 4, 5 or 6.
std::string Prelude(const std::string& title, const Recipe& recipe, int64_t bytes, int64_t exp_degree);

// The beginning of the entry point: shape checks of every argument that `used` names, pointers in<arg> and out.
std::string OpenKernel(const OpSpec& spec, const std::vector<int>& used);

// Kernel arguments that the spec reads, sorted.
std::vector<int> UsedArgs(const OpSpec& spec);

// A loop over [0, units) cut into chunks for the threads: `body` sees begin and end. With threads off: one chunk.
// `granule`: chunk bounds are multiples of it.
std::string ParallelLoop(const std::string& units, int64_t granule, const Recipe& recipe, const std::string& body);

// OK when everything that the spec reads is float32 and dense.
absl::Status AcceptFloat(const OpSpec& spec);

// Optimisations that most families share.
Optimisation Threads(double units, double bytes);
Optimisation Simd(const v1::DeviceInfo& device, double predicted);
Optimisation Unroll();
Optimisation Stream(double output_bytes);
Optimisation Prefetch();
Optimisation ShortPolynomial();
int64_t VectorBytes(const Recipe& recipe);   // of "simd.bytes"
int64_t ExpDegree(const Recipe& recipe);     // of "short_poly.degree"
RangeOptions RangeOf(const Recipe& recipe);  // from simd, unroll, stream, prefetch
bool CallsExp(const Expr& expr);             // whether the polynomial of exp matters

// "in<arg>" of a prologue that is one dense input over the whole space; empty when it must be computed first.
std::string DenseInput(const Expr& prologue);

// A start of every optimisation in `ids`.
KernelFamily::Start MakeStart(const std::vector<Optimisation>& list, const std::vector<std::string>& ids,
                              const std::string& title, const std::string& description, double predicted);

std::string Num(int64_t value);  // "123LL"

// base[p - origin] as text, in the lanes asked for.
std::string Read(const std::string& base, const std::string& p, const std::string& origin, Lanes lanes);

}  // namespace grove::generate::catalogue::cpu
