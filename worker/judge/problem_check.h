// Is a problem a measure of kernels at all? What is wrong with it, with figures and a remedy (`grove problem check`).
// The ids are listed in docs/problems.md.
#pragma once

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "worker/judge/device_ops.h"
#include "worker/judge/problem.h"

namespace grove::judge {

// How far two runs of a reference on the same inputs are apart. Where both are finite: rms of the difference over rms
// of the first for fractions, share of the elements for integers. `refused` from 1e-3 on, or from four times the
// type's epsilon where that is more (bfloat16: 0.031; sums in another order, atomics, stay below it), and for integers
// from 5 % on: beyond that an honest kernel could be called wrong for what the reference did.
struct RunsApart {
  double apart = 0;
  bool refused = false;
};
// `first` and `second` as Heads() gives them.
RunsApart RunsDiffer(const at::Tensor& first, const at::Tensor& second);
// Copies of the first 2^20 elements of each, all of which is looked at; whole where there are fewer.
std::vector<at::Tensor> Heads(const std::vector<at::Tensor>& outputs);

// Runs `call`, a run of which takes `each` seconds, as many more times as nobody waits for: what a reference keeps from
// call to call may move slowly. Returns how often.
int RunMore(Call* call, double each);

// A list of ProblemFinding (proto3 JSON), serious ones first. `description`: what `loaded` says of the problem. Runs
// the reference some thirty times at most. Throws what the reference throws.
nlohmann::json CheckProblem(LoadedProblem& problem, DeviceOps& ops, const nlohmann::json& description);

}  // namespace grove::judge
