// Offload to host memory: the costs of its copies and of the host's optimizer step.
//
//   link         host_link(), in both network modes
//   activations  x A are written while a forward runs and read while a backward does
//   weights      x W bytes (of the rank's shard under ZeRO 3) are read for each forward and each backward
//                a pass waits for what its copies take longer than it does (category other); reads of a
//                backward add up, and both passes of a split one wait in proportion
//   optimizer    x P/N parameters are stepped on the host: gradients go down, 28 bytes per parameter pass the
//                host's memory (fp32 gradient, master weight and two moments read, three written; 12 + 4 m
//                where a moment takes m bytes), 16-bit weights come up, one after the other. The GPU steps
//                its own share at the same time; what the host needs longer is exposed (category optimizer).
//   source  traffic: Ren et al. (arXiv 2101.06840), section 4, and
//           Rajbhandari et al. (arXiv 2104.07857), section 4; stepping both shares at once as in
//           DeepSpeed's Twin-Flow.
#pragma once

#include "sim/lower/messages.hpp"
#include "sim/lower/prices.hpp"

namespace stagecraft {

// Fills in `prices.offload` and adds stalls and host steps to the passes and optimizers. Nothing changes
// where every share is 0.
//   requires  passes and optimizers priced.
void price_offload(const TransformerSpec& model, const Network& network, const PricingRequest& request,
                   IterationPrices& prices);

}  // namespace stagecraft
