// How one GPU sees a transformer: its share of the tokens, heads and widths, and the choices that change its
// kernels.
#pragma once

#include <cstdint>
#include <string_view>

#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

enum class Attention : std::uint8_t { kFlash, kUnfused };
inline constexpr std::string_view kAttentionNames[] = {"flash", "unfused"};
enum class Recompute : std::uint8_t { kNone, kSelective, kFull };
inline constexpr std::string_view kRecomputeNames[] = {"none", "selective", "full"};

struct Shard {
  std::int64_t sequence = 0;     // s, tokens of a sample
  std::int64_t micro_batch = 1;  // b, samples
  std::int64_t tensor = 1;       // t
  bool sequence_parallel = false;
  Precision precision = Precision::kBf16;
  Precision gradient = Precision::kFp32;  // dtype in which gradients are accumulated and reduced
  Attention attention = Attention::kFlash;
  Recompute recompute = Recompute::kNone;
  bool fused_kernels = true;
  bool gradient_accumulation_fusion = true;

  [[nodiscard]] std::int64_t tokens() const { return sequence * micro_batch; }  // T
  [[nodiscard]] std::int64_t local_tokens() const {
    return sequence_parallel ? tokens() / tensor : tokens();
  }  // T'
};

}  // namespace stagecraft
