// The embedded generator: no model, no network. It knows the operation of the problem, and a library of optimisations
// for it. An idea switches one optimisation on or off, or changes parameters, in its parent's recipe; a variant of an
// idea is another choice of the parameters. Which ideas are taken is drawn with a seed, guided by the predicted gain,
// by what came of the same optimisation elsewhere in the tree, and by variety of category; nothing tried is tried
// again.
#pragma once

#include <memory>

#include "coordinator/generate/generator.h"

namespace grove::generate {

// Thread-safe. Answers are a function of the context and the request alone.
std::unique_ptr<Generator> MakeCatalogueGenerator();

}  // namespace grove::generate
