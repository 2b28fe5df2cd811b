// What a check has found, as figures and as words for people: CorrectnessReport (proto/grove/v1/types.proto), and what
// a verdict says is wrong. Decides nothing but whether a Python candidate's outputs have the reference's types. Errors
// are rms errors relative to the output's rms; docs/correctness.md derives every constant.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "worker/judge/compare.h"
#include "worker/judge/conversation.h"
#include "worker/judge/distributions.h"

namespace grove::judge {

// Said in the place of what would tell a shape that is held out.
inline constexpr char kHidden[] = "[a shape that is held out]";

// How the check goes on one distribution of values.
struct Outcome {
  Distribution distribution = Distribution::kGiven;
  int trials = 0, passed = 0;
  std::string how, skipped;
  double error = 0;  // the largest rms error over rms
};

const char* Word(Distribution distribution);  // "scaled"
// `right`: draws of the problem's own values that passed.
std::string OnTheseInputs(const Outcome& there, int right, const std::string& failure);

struct Findings {
  struct Figures {  // on the values given
    bool also_1e4 = true, also_1e2 = true, also_scaled = true;
    double worst_allowed = 0, error_found = 0, error_same = 0, condition = 1, reference_noise = 0;
    // `leaning`: of a draw that is moved to where rounding errs one way; `quiet`: the candidate may know it to be of a
    // shape that is held out.
    void Add(const Comparison& compared, bool leaning, bool quiet);
  };

  int trials = 0, passed = 0, first_failing = 0;
  bool inputs_modified = false;
  Figures figures;
  std::vector<Outcome> outcomes;        // the first: on the values given
  std::vector<nlohmann::json> outputs;  // as OutputWords describes them

  // Of each output the description with the larger error.
  void KeepWorst(const std::vector<nlohmann::json>& worse);
  // `rule`: of the values given; `has_high`: there was a float64 evaluation to compare with.
  nlohmann::json Report(const Rule& rule, bool has_high) const;
};

// What may not be told. `quiet`: what the candidate writes, for it has run a shape that is held out; `held_out`: the
// shape, which this one is.
struct Secrecy {
  bool quiet, held_out;
};

// Says things of outputs; `paths` are their places in what the reference returns.
class OutputWords {
 public:
  explicit OutputWords(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  std::string Name(std::size_t i, std::size_t count) const;  // "the output", or "output 1" of several
  nlohmann::json Describe(std::size_t i, const at::Tensor& expected, const Comparison& compared, Secrecy secret) const;
  std::string Explain(std::size_t i, std::size_t count, const at::Tensor& got, const at::Tensor& expected,
                      const Comparison& compared, int trial, Secrecy secret) const;
  // Whether what a Python candidate says that its outputs are is what the reference's are, on this device ("cpu",
  // "cuda"): describes all of them, and says what is wrong with the first that is not.
  void CheckTypes(const Conversation& conversation, const Reply& reply, const std::vector<at::Tensor>& expected,
                  const std::string& device, Secrecy secret, std::vector<nlohmann::json>* outputs,
                  std::string* failure) const;

 private:
  std::string Path(std::size_t i) const;

  std::vector<std::string> paths_;
};

}  // namespace grove::judge
