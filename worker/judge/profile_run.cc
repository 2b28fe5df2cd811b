#include "worker/judge/profile_run.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "worker/judge/conversation.h"
#include "worker/judge/random.h"
#include "worker/judge/slots.h"
#include "worker/judge/verdict.h"

namespace grove::judge {

using nlohmann::json;

std::string RunForProfiler(LoadedProblem& problem, DeviceOps& ops, wire::Channel candidate, bool python,
                           double seconds) {
  c10::NoGradGuard no_grad;
  Reference& reference = *problem.reference;
  reference.KeepStrides(python);
  Random random = Random::Secret();
  // Under a profiler one call takes as long as its kernels' many replays, so the whole is what is bounded.
  Conversation conversation(std::move(candidate), {seconds, seconds}, nullptr);
  std::string failure;
  if (problem.large()) ops.ReleaseCache();
  {
    Arena arena(ops, random);
    try {
      conversation.Hello();
      conversation.SetStage("open");
      arena.SetParameters(reference.Parameters());
      reference.SelectShapeSet(0);
      std::vector<Leaf> leaves = reference.Draw(SecretSeed());
      {
        auto call = reference.Prepare(leaves, Mode::kEager);
        call->Run();
        arena.Add(1, 0, leaves, call->Outputs());
      }
      json open{{"seed", 42}};
      if (python) {
        open["init"] = reference.InitPickle();
        open["structure"] = reference.Structure();
      }
      arena.Map(&conversation);
      arena.Open(&conversation, open);
      conversation.SetStage("check");
      const auto draw = [&] {
        Slot& slot = arena.at(0);
        arena.Fill(&slot, reference.Draw(SecretSeed()));
        arena.Poison(&slot);
        ops.Synchronize();
      };
      draw();
      conversation.Run({0}, "all");
      draw();
      conversation.RunProfiled({0});
      conversation.Close();
    } catch (const Verdict& verdict) {
      failure = verdict.reason;
    }
  }
  if (problem.large()) ops.ReleaseCache();
  return failure;
}

}  // namespace grove::judge
