// Collectives: sizes, counts, and what every element must be afterwards.
//
// A size is that of nccl-tests: the whole buffer of all-reduce, broadcast and send-receive, the gathered
// result of all-gather, the whole input of reduce-scatter and all-to-all. Data are bf16; element i of rank r
// starts as (i + r) mod 4, so that sums of up to 85 ranks are exact and a misplaced part is seen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAllToAll, kSendReceive };
inline constexpr Collective kCollectives[] = {Collective::kAllReduce,     Collective::kAllGather,
                                              Collective::kReduceScatter, Collective::kBroadcast,
                                              Collective::kAllToAll,      Collective::kSendReceive};

[[nodiscard]] std::string_view name_of(
    Collective collective);  // as in samples: "all_reduce", "send_receive", ...
[[nodiscard]] bool has_in_place(Collective collective);

// Elements that one call names, for a size in bytes: of the buffer, or of one rank's part.
[[nodiscard]] std::int64_t count_of(Collective collective, std::int64_t bytes, int ranks);
// Elements of the result on one rank.
[[nodiscard]] std::int64_t result_count(Collective collective, std::int64_t count, int ranks);

inline constexpr int kMostExactRanks = 85;  // 3 * 85 < 2^8, the integers that bf16 has all of
[[nodiscard]] constexpr int start_value(std::int64_t index, int rank) {
  return static_cast<int>((index + rank) % 4);
}
struct ResultElement {
  int rank = 0, ranks = 1;
  std::int64_t count = 0, index = 0;  // of the call; within the result
};
[[nodiscard]] int expected_value(Collective collective, const ResultElement& at);

[[nodiscard]] std::vector<std::int64_t> collective_sizes();  // 1 KiB, 2 KiB, ... 2 GiB
[[nodiscard]] std::vector<int> group_sizes(int ranks);       // 2, 4, 8 and all, each once, none above `ranks`

struct TimingPlan {
  int repeats = 20, calls = 1;  // calls between two events, one after the other
};
// The plan must be the same on every rank, since all take part: it may depend on the size alone.
[[nodiscard]] TimingPlan timing_plan(std::int64_t bytes);

}  // namespace stagecraft
