// The memory estimator of Fujii et al. for 4D parallelism, as published with its omissions: a second opinion
// beside our ledger.
//
//   parameters   (attention + FFN) ceil(l/p) / t + norms ceil(l/p) + both word matrices / t + final norm:
//                the words are charged to every stage
//   state        6 + 12/d bytes per parameter with a distributed optimizer, 18 without; d, not d c
//   activations  s b h (12 + 4 k/a + 8 f/h) / (t c) a layer (eq. 12), x ceil(l/p) p: the first stage under
//                1F1B. No logits, no temporaries, no context, no communicators.
//   interleaving changes nothing here: the web tool divides by v, which is wrong and is not copied.
//   source  arXiv 2411.06465; okoge-kaz/okoge-kaz.github.io static/js/memory-estimator.js @72832da6.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "models/model_spec.hpp"

namespace stagecraft {

struct FujiiLayout {
  std::int64_t tensor = 1, pipeline = 1, context = 1, data = 1;
  std::int64_t sequence = 0, micro_batch = 1;
  bool distributed_optimizer = true;
};

struct FujiiEstimate {
  std::int64_t parameters = 0;  // parameters on the fullest GPU
  Bytes state, activations;
  [[nodiscard]] Bytes total() const { return state + activations; }
};

// nullopt for models that the formulas do not describe: experts, latent attention, no gate in the
// feed-forward block, norms elsewhere than before the blocks. requires degrees and sequence of at least 1.
[[nodiscard]] std::optional<FujiiEstimate> fujii_estimate(const TransformerSpec& model,
                                                          const FujiiLayout& layout);

}  // namespace stagecraft
