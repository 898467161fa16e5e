// The one table of schedules.
#include <algorithm>
#include <array>

#include "sim/schedule/gpipe.hpp"
#include "sim/schedule/interleaved.hpp"
#include "sim/schedule/interleaved_group.hpp"
#include "sim/schedule/one_f_one_b.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

// All ranks of an order that is given rank by rank and looks at no costs.
template <auto rank_order, Placement placement = Placement::kLoop>
Schedule fixed_order(const PipelineShape& shape, const ScheduleCosts&) {
  Schedule schedule{.name = {}, .shape = shape, .placement = placement, .ranks = {}};
  schedule.ranks.reserve(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) schedule.ranks.push_back(rank_order(shape, rank));
  return schedule;
}

constexpr std::array kKinds{
    ScheduleKind{.name = "gpipe",
                 .summary = "fill and drain: all forwards, then all backwards; holds every micro-batch",
                 .citation = "Huang et al., NeurIPS'19 (arXiv 1811.06965)",
                 .constraint = gpipe_constraint,
                 .generate = fixed_order<gpipe>},
    ScheduleKind{
        .name = "1f1b",
        .summary = "one forward, one backward; takes as long as gpipe, holds at most p micro-batches",
        .citation = "Narayanan et al., SC'21 (arXiv 2104.04473), section 2.2.1",
        .constraint = one_f_one_b_constraint,
        .generate = fixed_order<one_f_one_b>},
    ScheduleKind{.name = "interleaved-1f1b",
                 .summary = "1f1b over several chunks a rank: less bubble, more messages and activations",
                 .citation = "Narayanan et al., SC'21 (arXiv 2104.04473), section 2.2.2",
                 .chunked = true,
                 .grouped = true,
                 .constraint = interleaved_constraint,
                 .generate = fixed_order<interleaved>},
    ScheduleKind{
        .name = "interleaved-group",
        .summary =
            "interleaved in small groups with a split backward: fewer activations than interleaved-1f1b",
        .citation = "Wan et al., ICML'25 (PipeOffload, arXiv 2503.01328)",
        .chunked = true,
        .grouped = true,
        .split_backward = true,
        .constraint = interleaved_group_constraint,
        .generate = fixed_order<interleaved_group>},
};

constexpr std::array<std::string_view, 16> kPlanned{
    "looped-bfs", "zb-h1",    "interleaved-zb", "zb-h2",   "zb-2p",  "zb-v",   "v-half",        "v-min",
    "1f1b-v",     "dualpipe", "dualpipe-v",     "chimera", "hanayo", "varuna", "pipedream-2bw", "pipemare"};

}  // namespace

std::span<const ScheduleKind> schedule_kinds() {
  return kKinds;
}

std::span<const std::string_view> planned_schedules() {
  return kPlanned;
}

const ScheduleKind* find_schedule(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &ScheduleKind::name);
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace stagecraft
