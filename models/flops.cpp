#include "base/check.hpp"
#include "models/operators.hpp"
#include "models/partition.hpp"

namespace stagecraft {

namespace {

// Forward FLOPs of one sample, on however many GPUs.
struct ForwardFlops {
  double linear = 0;  // of all layers' weights
  double core = 0;    // of all layers' attention cores: Q K^T and P V over the full square
  double head = 0;
  [[nodiscard]] double all() const { return linear + core + head; }
};

ForwardFlops forward_flops(const TransformerSpec& model, std::int64_t sequence) {
  const Widths w = widths(model, 1);
  const auto l = static_cast<double>(model.layers), s = static_cast<double>(sequence);
  const auto weights = static_cast<double>(model.hidden * (w.qkv() + w.query + w.up + w.ffn));
  return {.linear = 2.0 * l * s * weights,
          .core = 4.0 * l * s * s * static_cast<double>(w.query),
          .head = 2.0 * s * static_cast<double>(model.hidden * model.vocab)};
}

}  // namespace

Flops total_flops(const Ops& ops) {
  Flops sum{};
  for (const Op& op : ops) sum += op.flops;
  return sum;
}

Flops model_flops(const TransformerSpec& model, std::int64_t samples, std::int64_t sequence) {
  return Flops(3.0 * static_cast<double>(samples) * forward_flops(model, sequence).all());
}

Flops hardware_flops(const TransformerSpec& model, std::int64_t samples, std::int64_t sequence,
                     const RecomputedShare& recompute) {
  const ForwardFlops forward = forward_flops(model, sequence);
  double again = 0;
  switch (recompute.granularity) {
    case Recompute::kNone:
      break;
    // The convention of the paper's figures (s/6h more); one repetition of the core would be a third of it.
    case Recompute::kSelective:
      again = 3.0 * forward.core;
      break;
    case Recompute::kFull:
      again = recompute.layers * (forward.linear + forward.core);
      break;
  }
  return Flops(static_cast<double>(samples) * (3.0 * forward.all() + again));
}

}  // namespace stagecraft
