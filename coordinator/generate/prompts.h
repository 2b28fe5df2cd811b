// What a model is told. Pure functions of what the engine knows.
//
// Order is from what never changes to what changes each time (rules, problem, device, bank, ideas tried, parent, task),
// so that providers that cache prompt prefixes can. Never in a prompt: held-out shapes, seeds, credentials, machine
// names.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/generate/generator.h"
#include "coordinator/llm/model_client.h"

namespace grove::generate {

// Bounds of the parts of a prompt, in bytes. Together about 200 KiB, some 50,000 tokens: what today's models hold with
// room for an answer. A usual prompt is a tenth of it.
inline constexpr size_t kMaxReferenceInPrompt = 32 << 10;
inline constexpr size_t kMaxSourceInPrompt = 48 << 10;
inline constexpr size_t kMaxBankSourceInPrompt = 16 << 10;
inline constexpr size_t kMaxTriedInPrompt = 16 << 10;
// 8 KiB: enough for the first errors of a build, and feedback that was cut to its essence led to faster kernels than
// whole dumps did (CudaForge, arXiv 2511.01884).
inline constexpr size_t kMaxFeedbackInPrompt = 8 << 10;

// "memory", "latency", "precision", "compute", "parallelism", "control": the categories that a model may give an idea.
const std::vector<std::string>& IdeaCategories();

// Asks for request.count ideas as a JSON list.
std::vector<llm::Message> IdeasPrompt(const Context& context, const IdeaRequest& request);

// Asks for one kernel in one fenced block: the idea written out, or request.failed repaired.
std::vector<llm::Message> KernelPrompt(const Context& context, const KernelRequest& request);

// What a verdict means for whoever writes the next kernel: compiler text, the worst mismatch, the signal, the limit, or
// the speedup with its interval. At most max_bytes.
std::string DescribeOutcome(const v1::EvaluationResult& result, size_t max_bytes = kMaxFeedbackInPrompt);

// The problem's source as a model may see it: a KernelBench file as it is; of a native problem only its TorchScript
// text, because the rest of the file names held-out shapes. Empty when there is none.
std::string ReferenceText(const v1::Problem& problem);

// `text` in a fence longer than any run of backticks inside it.
std::string Fenced(absl::string_view language, absl::string_view text);

}  // namespace grove::generate
