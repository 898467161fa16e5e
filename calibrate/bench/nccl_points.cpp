#include "calibrate/bench/nccl_points.hpp"

#include <algorithm>

namespace stagecraft {

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kAllToAll:
      return "all_to_all";
    case Collective::kSendReceive:
      return "send_receive";
  }
  return {};
}

bool has_in_place(Collective collective) {
  return collective != Collective::kAllToAll && collective != Collective::kSendReceive;
}

namespace {

bool has_parts(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kAllToAll;
}

}  // namespace

std::int64_t count_of(Collective collective, std::int64_t bytes, int ranks) {
  const std::int64_t elements = bytes / 2;
  return has_parts(collective) ? elements / ranks : elements;
}

std::int64_t result_count(Collective collective, std::int64_t count, int ranks) {
  return collective == Collective::kAllGather || collective == Collective::kAllToAll ? count * ranks : count;
}

int expected_value(Collective collective, const ResultElement& at) {
  const auto part = static_cast<int>(at.count > 0 ? at.index / at.count : 0);
  const auto sum = [&at](std::int64_t index) {
    int total = 0;
    for (int r = 0; r < at.ranks; ++r) total += start_value(index, r);
    return total;
  };
  switch (collective) {
    case Collective::kAllReduce:
      return sum(at.index);
    case Collective::kReduceScatter:
      return sum(at.index + at.rank * at.count);
    case Collective::kAllGather:
      return start_value(at.index % at.count, part);
    case Collective::kBroadcast:
      return start_value(at.index, 0);
    case Collective::kAllToAll:
      return start_value(at.rank * at.count + at.index % at.count, part);
    case Collective::kSendReceive:
      return start_value(at.index, (at.rank + at.ranks - 1) % at.ranks);
  }
  return -1;
}

std::vector<std::int64_t> collective_sizes() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 1024; bytes <= (std::int64_t{1} << 31); bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

std::vector<int> group_sizes(int ranks) {
  std::vector<int> sizes;
  for (const int size : {2, 4, 8, ranks})
    if (size >= 2 && size <= ranks && std::find(sizes.begin(), sizes.end(), size) == sizes.end())
      sizes.push_back(size);
  return sizes;
}

TimingPlan timing_plan(std::int64_t bytes) {
  if (bytes <= 64 * 1024) return {.repeats = 30, .calls = 20};
  if (bytes <= 16 * 1024 * 1024) return {.repeats = 30, .calls = 5};
  return {.repeats = 20, .calls = 1};
}

}  // namespace stagecraft
