// A generator has ideas and writes kernels. Implementations: the catalogue (embedded), an OpenAI-compatible model, and
// a replay of recorded answers. Calls block (a model call takes a minute) and are made from an executor of the engine,
// several at once: implementations are thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grove/v1/tree.pb.h"
#include "grove/v1/types.pb.h"

namespace grove::generate {

// What the generator may know of the search. Never held-out shapes, never credentials.
struct Context {
  v1::Problem problem;
  v1::ProblemDescription description;
  v1::DeviceInfo device;  // of a worker that will run it; at least kind is set
  v1::EvaluationOptions options;
  std::vector<v1::IdeaNode> tried;  // all ideas of the job so far, with state and credit, oldest first
  std::vector<v1::BankEntry>
      bank;           // good kernels for the same operation and device, best first, at most 3, with source
  uint64_t seed = 0;  // of the search; mix with the request key
};

struct IdeaRequest {
  std::string request;    // the policy's key
  v1::KernelNode parent;  // with source and result; id empty = start from the reference
  int count = 0;
};

struct KernelRequest {
  std::string request;
  v1::IdeaNode idea;
  v1::KernelNode parent;  // id empty = from the reference
  int variant = 0;
  int repair = 0;
  v1::KernelNode failed;                 // repair > 0: the kernel to repair, with source and result
  std::vector<v1::KernelNode> siblings;  // other variants of the idea, with results
};

// What one call cost. Zero for generators that cost nothing.
struct Usage {
  std::string model;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  double seconds = 0;
  int calls = 0;
  bool estimated = false;  // the server gave no token counts: they are its text's length divided by four
  std::string exchange;    // JSON line with prompt and answer, for the recording; empty = none
};

// Only title, description, category, predicted_speedup and recipe of the nodes are set.
struct IdeasAnswer {
  std::vector<v1::IdeaNode> ideas;
  Usage usage;
};

// Only candidate, recipe, notes and bank_origin of the node are set.
struct KernelAnswer {
  v1::KernelNode kernel;
  Usage usage;
};

class Generator {
 public:
  virtual ~Generator() = default;
  // Whether it can work on this problem at all. FAILED_PRECONDITION says why not and names the alternatives.
  virtual absl::Status Supports(const Context& context) = 0;
  // Errors: UNAVAILABLE or RESOURCE_EXHAUSTED = an outage, the search pauses and the request is made again; anything
  // else = this request has no answer, and the search goes on without it.
  virtual absl::StatusOr<IdeasAnswer> ProposeIdeas(const Context& context, const IdeaRequest& request) = 0;
  // A failed call may carry what it cost: UsageOf(status) of coordinator/generate/usage_status.h.
  virtual absl::StatusOr<KernelAnswer> WriteKernel(const Context& context, const KernelRequest& request) = 0;
  // Ends calls in flight within a moment, with CANCELLED, and makes later ones fail so. From any thread, for shutdown
  // and for a cancelled job. Generators that answer at once need not do anything.
  virtual void Cancel() {}
  // The catalogue's name for the operation of a problem ("softmax", "conv2d_relu_maxpool", ...), "" if it knows none.
  // Every generator answers it by the catalogue's recogniser, because the bank is ordered by it.
};

// coordinator/generate/operation.h: std::string RecogniseOperation(const v1::ProblemDescription&);

}  // namespace grove::generate
