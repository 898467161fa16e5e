// Offload to host memory: the costs of its copies and of the host's optimizer step.
//
//   link         host_link(), in both network modes
//   activations  x A are written while a forward runs and read while a backward does
//   weights      x W bytes (of the rank's shard under ZeRO 3) are read for each forward and each backward
//                a pass waits for what its copies take longer than it does (category other); reads of a
//                backward add up, and both passes of a split one last half of the whole each where they can
//   optimizer    x P/N parameters are stepped on the host: gradients go down, 28 bytes per parameter pass the
//                host's memory (fp32 gradient, master weight and two moments read, three written; 12 + 4 m
//                where a moment takes m bytes), 16-bit weights come up, one after the other. The GPU steps
//                its own share at the same time; what the host needs longer is exposed (category optimizer).
//                The host's step reaches kHostStepShare of its memory's rate.
//   source  traffic: Ren et al. (arXiv 2101.06840), section 4, and
//           Rajbhandari et al. (arXiv 2104.07857), section 4; stepping both shares at once as in
//           DeepSpeed's Twin-Flow.
#pragma once

#include "sim/lower/messages.hpp"
#include "sim/lower/prices.hpp"

namespace stagecraft {

// Vectorised Adam on hosts steps 1.2 to 1.8 billion parameters a second and node, at 28 bytes each.
//   source  deepspeedai/DeepSpeed: 8.2 s for 11.6 billion (pull request 735; 0.15 of the memory's rate of a
//           DGX-2, if it was one), some 10 s for 72.7 billion on 4 nodes of A100 (issue 6834; 0.12), a whole
//           iteration of 2.4 s for 3.1 billion (pull request 7474; at least 0.09). Processes with one thread each,
//           the default of torchrun, take three times as long (gist chenyaofo/d4cd6a20ab4b95cb3a49491747e2139a).
inline constexpr double kHostStepShare = 0.12;

// Fills in `prices.offload` and adds stalls and host steps to the passes and optimizers. Nothing changes
// where every share is 0.
//   requires  passes and optimizers priced.
void price_offload(const TransformerSpec& model, const Network& network, const PricingRequest& request,
                   IterationPrices& prices);

}  // namespace stagecraft
