// Philox4x32-10: random numbers as a pure function of a counter and a key, the same on host and device.
//
// Dropout needs a mask that any thread can compute alone and that the check can compute again. One call gives
// 128 bits; dropout uses them as eight 16-bit draws, one for each element of a 16-byte access.
//
//   source   Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11: ten rounds;
//            multipliers and key increments are those of its Table 2 and reference implementation.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define STAGECRAFT_HOST_DEVICE __host__ __device__
#else
#define STAGECRAFT_HOST_DEVICE
#endif

namespace stagecraft {

struct Random128 {
  std::uint32_t word[4];
};

[[nodiscard]] STAGECRAFT_HOST_DEVICE constexpr Random128 philox(Random128 counter, std::uint32_t key0,
                                                                std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter.word[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(b >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(b),
                static_cast<std::uint32_t>(a >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(a)}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

// The eight draws of the pack of elements [8 * pack, 8 * pack + 8).
[[nodiscard]] STAGECRAFT_HOST_DEVICE constexpr Random128 dropout_draws(std::uint64_t pack,
                                                                       std::uint64_t seed) {
  return philox({{static_cast<std::uint32_t>(pack), static_cast<std::uint32_t>(pack >> 32), 0, 0}},
                static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

// Is element `lane` of the pack kept? threshold = 65536 * P(drop), in [0, 65536].
[[nodiscard]] STAGECRAFT_HOST_DEVICE constexpr bool dropout_keeps(const Random128& draws, int lane,
                                                                  std::uint32_t threshold) {
  return ((draws.word[lane / 2] >> (16 * (lane % 2))) & 0xFFFFU) >= threshold;
}

}  // namespace stagecraft
