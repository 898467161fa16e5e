// Sizes in bytes of the tensors of a layer, from which its memory is put together.
//
//   source  models/memory.hpp names them and their sources
#pragma once

#include <cstdint>
#include <string_view>

#include "models/elementwise.hpp"
#include "models/fp8_casts.hpp"
#include "models/memory.hpp"
#include "models/model_spec.hpp"
#include "models/norm_operators.hpp"
#include "models/op_builder.hpp"
#include "models/partition.hpp"
#include "models/shard.hpp"

namespace stagecraft {

inline constexpr std::int64_t kFp32Bytes = 4;

// Sizes in bytes of the building blocks of a layer's tensors.
class LayerSizes {
 public:
  LayerSizes(const TransformerSpec& model, const Shard& shard)  // both outlive it
      : model_(model), shard_(shard), widths_(widths(model, shard.tensor)) {}

  [[nodiscard]] std::int64_t element() const { return element_bytes(shard_.precision); }
  // One row as wide as the residual stream for each local token, as products read it; and one of the stream itself.
  [[nodiscard]] std::int64_t residual() const { return element() * shard_.local_tokens() * model_.hidden; }
  [[nodiscard]] std::int64_t stream() const { return shard_.autocast ? 2 * residual() : residual(); }
  // The residual stream of all tokens of the tensor group: the input of a column-parallel GEMM.
  [[nodiscard]] std::int64_t gathered() const { return element() * shard_.tokens() * model_.hidden; }
  // What is kept of that input for its weight gradient.
  [[nodiscard]] std::int64_t column_input() const {
    return shard_.keeps_gathered() ? gathered() : residual();
  }
  [[nodiscard]] std::int64_t mask() const {
    return model_.dropout ? shard_.local_tokens() * model_.hidden : 0;
  }
  [[nodiscard]] std::int64_t columns(std::int64_t width) const { return element() * shard_.tokens() * width; }
  [[nodiscard]] std::int64_t query() const { return columns(widths_.query); }
  [[nodiscard]] std::int64_t key() const { return columns(widths_.key_value); }
  [[nodiscard]] std::int64_t value() const { return columns(widths_.value); }
  [[nodiscard]] std::int64_t output() const { return columns(widths_.output); }
  [[nodiscard]] std::int64_t log_sum_exp() const { return 4 * shard_.tokens() * widths_.heads; }
  // Elements of the score matrix: a context rank has s/c queries against all keys.
  [[nodiscard]] std::int64_t scores() const { return shard_.tokens() * widths_.heads * shard_.sequence; }
  // Softmax output; dropout's output and mask.
  [[nodiscard]] std::int64_t saved_scores() const {
    return scores() * (model_.dropout ? 2 * element() + 1 : element());
  }
  // Bytes kept of a tensor that only a GEMM reads.
  [[nodiscard]] std::int64_t input(std::int64_t bytes) const {
    return shard_.keeps_fp8() ? copy(bytes) : bytes;
  }
  // The GEMM's own fp8 copy of an input that another operator keeps in 16 bit.
  [[nodiscard]] std::int64_t copy(std::int64_t bytes) const {
    return shard_.keeps_fp8() ? cast_bytes(bytes / element(), shard_) : 0;
  }
  [[nodiscard]] std::int64_t up() const { return columns(widths_.up); }
  [[nodiscard]] std::int64_t ffn() const { return columns(widths_.ffn); }
  [[nodiscard]] bool eager_activation() const { return !fuses_activation(model_, shard_); }
  [[nodiscard]] bool eager_gate() const { return is_gated(model_.activation) && eager_activation(); }
  // Bytes that a norm keeps of an input of `bytes`: the input. Eager RMSNorm keeps an fp32 copy, which is
  // squared and scaled, and the normalised tensor, which the weight multiplies.
  [[nodiscard]] std::int64_t normed(std::int64_t bytes) const {
    return keeps_two() ? bytes / element() * kFp32Bytes + bytes : bytes;
  }
  // The same of the residual stream, which in fp32 needs no copy.
  [[nodiscard]] std::int64_t normed_stream() const {
    if (!shard_.autocast) return normed(residual());
    return keeps_two() ? 2 * stream() : stream();
  }
  // 16-bit copies that autocast makes of weights, which autograd keeps.
  [[nodiscard]] std::int64_t cast(std::int64_t weights) const {
    return shard_.autocast ? element() * weights : 0;
  }

 private:
  [[nodiscard]] bool keeps_two() const {
    return model_.normalization == Normalization::kRmsNorm && !fuses_norm(model_, shard_);
  }

  const TransformerSpec& model_;
  const Shard& shard_;
  const Widths widths_;
};

// Adds a tensor that is kept, unless it is empty.
inline void keep(SavedTensors& tensors, std::string_view name, std::int64_t size) {
  if (size > 0) tensors.push_back({.name = name, .size = Bytes(size)});
}

}  // namespace stagecraft
