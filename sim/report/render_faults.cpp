#include "sim/report/render_faults.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "sim/report/text_lines.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kFewRanks = 8;  // more are counted

std::string rank_line(const StalledRank& rank) {
  if (rank.stuck && !rank.begun)
    return hanging_lines(
        "", fmt::format("{}: dead from {} on, before {}", rank.rank, human(rank.since), rank.task));
  if (rank.stuck)
    return hanging_lines(
        "", fmt::format("{}: {} began at {} and never ends", rank.rank, rank.task, human(rank.since)));
  const std::string whom = rank.waits_for_rank == rank.rank ? "its " + rank.waits_for
                                                            : rank.waits_for + " of " + rank.waits_for_rank;
  return hanging_lines(
      "", fmt::format("{}: idle from {} on: {} waits for {}", rank.rank, human(rank.since), rank.task, whom));
}

}  // namespace

void write_faults(JsonWriter& json, const Report& report) {
  const FaultReport& faults = *report.faults;
  json.begin_object()
      .field("given", faults.faults)
      .field("iteration_time_without_s", faults.without)
      .field("finishes", !faults.stall);
  if (faults.stall) {
    json.key("stall").begin_object().field("time_s", *faults.stall).key("ranks").begin_array();
    for (const StalledRank& rank : faults.ranks) {
      json.begin_object().field("rank", rank.rank).field("since_s", rank.since);
      json.field("task", rank.task).field("stuck", rank.stuck).field("begun", rank.begun);
      if (!rank.stuck) json.field("waits_for", rank.waits_for).field("waits_for_rank", rank.waits_for_rank);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_object();
}

std::string fault_lines(const Report& report, bool verbose) {
  if (!report.faults) return "";
  const FaultReport& faults = *report.faults;
  std::string out;
  for (const std::string& fault : faults.faults) out += hanging_lines(out.empty() ? "faults" : "", fault);
  if (!faults.stall) {
    const Duration cost = report.iteration_time - faults.without;
    return out + hanging_lines("", fmt::format("cost {} of the iteration, without them {}", human(cost),
                                               human(faults.without)));
  }
  out += hanging_lines("", fmt::format("at rest from {} on; without them the iteration takes {}",
                                       human(*faults.stall), human(faults.without)));
  const std::size_t shown = verbose ? faults.ranks.size() : std::min(kFewRanks, faults.ranks.size());
  for (std::size_t i = 0; i < shown; ++i) out += rank_line(faults.ranks[i]);
  const auto more = static_cast<std::int64_t>(faults.ranks.size() - shown);
  if (more > 0)
    out += hanging_lines("", fmt::format("and {} more {} (--verbose)", more, plural(more, "rank")));
  return out;
}

}  // namespace stagecraft
