// The one table of schedules.
#include <algorithm>
#include <array>

#include "sim/schedule/chimera.hpp"
#include "sim/schedule/closed_forms.hpp"
#include "sim/schedule/dual_pipe.hpp"
#include "sim/schedule/gpipe.hpp"
#include "sim/schedule/hanayo.hpp"
#include "sim/schedule/interleaved.hpp"
#include "sim/schedule/interleaved_group.hpp"
#include "sim/schedule/interleaved_pytorch.hpp"
#include "sim/schedule/looped_bfs.hpp"
#include "sim/schedule/one_f_one_b.hpp"
#include "sim/schedule/pipedream.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/schedule/v_schedules.hpp"
#include "sim/schedule/varuna.hpp"
#include "sim/schedule/zb_auto.hpp"
#include "sim/schedule/zb_h1.hpp"
#include "sim/schedule/zb_v.hpp"
#include "sim/schedule/zb_v_auto.hpp"

namespace stagecraft {
namespace {

// Builds all ranks of an order that is defined rank by rank and ignores costs.
template <auto rank_order, Placement placement = Placement::kLoop>
Schedule fixed_order(const PipelineShape& shape, const ScheduleCosts&) {
  Schedule schedule{.name = {}, .shape = shape, .placement = placement, .ranks = {}};
  schedule.ranks.reserve(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) schedule.ranks.push_back(rank_order(shape, rank));
  return schedule;
}

// One iteration of an order that never drains.
template <auto rank_order>
Schedule steady_order(const PipelineShape& shape, const ScheduleCosts& costs) {
  Schedule schedule = fixed_order<rank_order>(shape, costs);
  schedule.flush = false;
  return schedule;
}

constexpr std::array kKinds{
    ScheduleKind{.name = "gpipe",
                 .summary = "fill and drain: all forwards, then all backwards; holds every micro-batch",
                 .citation = "Huang et al., NeurIPS'19 (arXiv 1811.06965)",
                 .constraint = gpipe_constraint,
                 .bubble_form = "(p-1)(F+B)",
                 .peak_form = "m",
                 .bubble = fill_and_drain_bubble,
                 .peak = all_micro_batches_peak,
                 .generate = fixed_order<gpipe>},
    ScheduleKind{
        .name = "1f1b",
        .summary = "one forward, one backward; takes as long as gpipe, holds at most p micro-batches",
        .citation = "Narayanan et al., SC'21 (arXiv 2104.04473), section 2.2.1",
        .constraint = one_f_one_b_constraint,
        .bubble_form = "(p-1)(F+B)",
        .peak_form = "min(p-r, m)",
        .bubble = fill_and_drain_bubble,
        .peak = one_f_one_b_peak,
        .generate = fixed_order<one_f_one_b>},
    ScheduleKind{.name = "interleaved-1f1b",
                 .summary = "1f1b over several chunks a rank: less bubble, more messages and activations",
                 .citation = "Narayanan et al., SC'21 (arXiv 2104.04473), section 2.2.2",
                 .chunked = true,
                 .grouped = true,
                 .constraint = interleaved_constraint,
                 .bubble_form = "(p-1)(F+B)",
                 .peak_form = "min(2(p-1-r) + (v-1)N + 1, m v)",
                 .bubble = fill_and_drain_bubble,
                 .peak = interleaved_peak,
                 .generate = fixed_order<interleaved>},
    ScheduleKind{
        .name = "interleaved-pytorch",
        .summary = "interleaved-1f1b in PyTorch's equal rounds; also for fewer micro-batches than ranks",
        .citation = "Narayanan et al., SC'21 (arXiv 2104.04473), as PyTorch runs it",
        .chunked = true,
        .constraint = interleaved_pytorch_constraint,
        .bubble_form = "(p-1)(F+B) + (v-1) max(0, p-m)(F+B)",
        .peak_form = "min(2(p-1-r) + (v-1)N + 1, m v)",
        .bubble = interleaved_pytorch_bubble,
        .peak = interleaved_pytorch_peak,
        .generate = fixed_order<interleaved_pytorch>},
    ScheduleKind{
        .name = "interleaved-group",
        .summary =
            "interleaved in small groups with a split backward: fewer activations than interleaved-1f1b",
        .citation = "Wan et al., ICML'25 (PipeOffload, arXiv 2503.01328)",
        .chunked = true,
        .grouped = true,
        .split_backward = true,
        .constraint = interleaved_group_constraint,
        .bubble_form = "2(p-1) + (v-1)(p-g) passes at F = I = W, g divides m >= p",
        .peak_form = "g(v-1) + p-r, g divides m >= p",
        .bubble = interleaved_group_bubble,
        .peak = interleaved_group_peak,
        .generate = fixed_order<interleaved_group>},
    ScheduleKind{
        .name = "looped-bfs",
        .summary = "all micro-batches through one chunk after the other: weights are gathered once a pass",
        .citation = "Lamy-Poirier, MLSys'23 (arXiv 2211.05953)",
        .chunked = true,
        .constraint = looped_bfs_constraint,
        .bubble_form = "(p-1)(F+B) + (v-1) max(0, p-m)(F+B)",
        .peak_form = "m v",
        .bubble = interleaved_pytorch_bubble,
        .peak = all_micro_batches_peak,
        .generate = fixed_order<looped_bfs>},
    ScheduleKind{
        .name = "zb-h1",
        .summary = "1f1b with a split backward: weight gradients fill bubbles, memory stays that of 1f1b",
        .citation = "Qi et al., ICLR'24 (arXiv 2401.10241)",
        .split_backward = true,
        .constraint = zb_h1_constraint,
        .bubble_form = "(p-1)(F+I) - (min(m,p)-1) min(F,I,W)",
        .peak_form = "p, m >= p",
        .bubble = zb_h1_bubble,
        .peak = zb_h1_peak,
        .generate = fixed_order<zb_h1>},
    ScheduleKind{.name = "interleaved-zb",
                 .summary = "zb-h1 over several chunks a rank",
                 .citation = "Qi et al., ICLR'24 (arXiv 2401.10241), as PyTorch interleaves it",
                 .chunked = true,
                 .split_backward = true,
                 .constraint = interleaved_zb_constraint,
                 .bubble_form = "(p-1)(F+I-min(F,I,W)), m >= p",
                 .peak_form = "min((v-1)N + p, m v), m >= p",
                 .bubble = interleaved_zb_bubble,
                 .peak = interleaved_zb_peak,
                 .generate = fixed_order<interleaved_zb>},
    ScheduleKind{
        .name = "zb-v",
        .summary = "down the ranks and back, split backward: no rank idles at F = I = W, memory of 1f1b",
        .citation = "Qi et al., ICLR'24 (arXiv 2401.10241); searched where costs differ",
        .chunked = true,
        .split_backward = true,
        .placement = Placement::kV,
        .to_measure = true,
        .constraint = zb_v_constraint,
        .bubble_form = "p-1 passes at F = I = W, m >= 2p-1; none within a rank's own span",
        .peak_form = "2p, m >= 2p-1",
        .bubble = zb_skew_bubble,
        .peak = zb_v_peak,
        .generate = zb_v_made_to_measure},
    ScheduleKind{.name = "zb-h2",
                 .summary = "made to measure with 2p-1 activations a rank: next to no bubble within its span",
                 .citation = "Qi et al., ICLR'24 (arXiv 2401.10241), section 3",
                 .split_backward = true,
                 .to_measure = true,
                 .constraint = zb_h2_constraint,
                 .bubble_form = "p-1 passes at F = I = W, m >= 2p-1; none within a rank's own span",
                 .peak_form = "at most 2p-1",
                 .bubble = zb_skew_bubble,
                 .generate = zb_h2},
    ScheduleKind{.name = "zb-2p",
                 .summary = "made to measure with twice the activations of 1f1b",
                 .citation = "Qi et al., ICLR'24 (arXiv 2401.10241), section 3",
                 .split_backward = true,
                 .to_measure = true,
                 .constraint = zb_2p_constraint,
                 .bubble_form = "p-1 passes at F = I = W, m >= 2p-1; none within a rank's own span",
                 .peak_form = "at most 2p, half of one counted as freed by I where W is short",
                 .bubble = zb_skew_bubble,
                 .generate = zb_2p},
    ScheduleKind{.name = "v-half",
                 .summary = "down the ranks and back with half of 1f1b's activations",
                 .citation = "Qi et al., NeurIPS'24 (arXiv 2405.15362), section 4",
                 .chunked = true,
                 .split_backward = true,
                 .placement = Placement::kV,
                 .constraint = v_half_constraint,
                 .bubble_form = "3p-7 passes, 3p-4 for odd p, 1 for p = 2, at F = I = W, m >= 2p",
                 .peak_form = "at most 2((p+2) div 2)",
                 .bubble = v_half_bubble,
                 .generate = v_half},
    ScheduleKind{.name = "v-min",
                 .summary = "down the ranks and back with a third of 1f1b's activations",
                 .citation = "Qi et al., NeurIPS'24 (arXiv 2405.15362), section 4",
                 .chunked = true,
                 .split_backward = true,
                 .placement = Placement::kV,
                 .constraint = v_min_constraint,
                 .bubble_form = "4p-5 passes, 4p-7 where 3 divides p, at F = I = W, m > p",
                 .peak_form = "at most 2((p+4) div 3)",
                 .bubble = v_min_bubble,
                 .generate = v_min},
    ScheduleKind{.name = "1f1b-v",
                 .summary = "1f1b down the ranks and back, whole backwards, two thirds of 1f1b's activations",
                 .citation = "Qi et al., NeurIPS'24 (arXiv 2405.15362), appendix",
                 .chunked = true,
                 .placement = Placement::kV,
                 .constraint = one_f_one_b_v_constraint,
                 .bubble_form = "none known",
                 .peak_form = "at most 2((2p) div 3 + 1)",
                 .generate = one_f_one_b_v},
    ScheduleKind{.name = "dualpipe",
                 .summary = "micro-batches from both ends in fused pairs; two copies of the weights",
                 .citation = "DeepSeek-AI, DeepSeek-V3 (arXiv 2412.19437), section 3.2.1",
                 .split_backward = true,
                 .fused_pairs = true,
                 .placement = Placement::kBidirectional,
                 .constraint = dual_pipe_constraint,
                 .bubble_form = "(p/2-1)([FB]+B-3W) at F = I >= W, elsewhere at most that",
                 .peak_form = "p+1",
                 .bubble = dual_pipe_bubble,
                 .peak = dual_pipe_peak,
                 .generate = fixed_order<dual_pipe, Placement::kBidirectional>},
    ScheduleKind{
        .name = "dualpipe-v",
        .summary =
            "half of dualpipe, folded: down the ranks and back in fused pairs, one copy of the weights",
        .citation = "DeepSeek-AI, DeepSeek-V3 (arXiv 2412.19437), as deepseek-ai/DualPipe folds it",
        .chunked = true,
        .split_backward = true,
        .fused_pairs = true,
        .placement = Placement::kV,
        .constraint = dual_pipe_v_constraint,
        .bubble_form = "(p-1)([FB]+B-3W) at F = I >= W, elsewhere at most that",
        .peak_form = "2p+1",
        .bubble = dual_pipe_v_bubble,
        .peak = dual_pipe_v_peak,
        .generate = fixed_order<dual_pipe_v, Placement::kV>},
    ScheduleKind{
        .name = "chimera",
        .summary =
            "two pipelines in opposite directions fill each other's bubbles; two copies of the weights",
        .citation = "Li and Hoefler, SC'21 (arXiv 2107.06925)",
        .placement = Placement::kBidirectionalUnits,
        .constraint = chimera_constraint,
        .bubble_form = "(p-2)F at B = F, (p-2)(m/p+1)F at B = 2F",
        .peak_form = "p/2 + 1 + min(r, p-1-r)",
        .bubble = chimera_bubble,
        .peak = chimera_peak,
        .generate = fixed_order<chimera, Placement::kBidirectionalUnits>},
    ScheduleKind{
        .name = "hanayo",
        .summary = "waves down the ranks and back; the order is our own list scheduling at the given costs",
        .citation = "Liu et al., SC'23 (arXiv 2308.15762), placement only",
        .chunked = true,
        .placement = Placement::kWave,
        .to_measure = true,
        .constraint = hanayo_constraint,
        .bubble_form = "none known",
        .peak_form = "none known",
        .generate = hanayo},
    ScheduleKind{.name = "varuna",
                 .summary = "1f1b with every forward run again before its backward; keeps inputs only",
                 .citation = "Athlur et al., EuroSys'22 (arXiv 2111.04007)",
                 .recomputes = true,
                 .constraint = varuna_constraint,
                 .bubble_form = "none known",
                 .peak_form = "1, and the inputs of the micro-batches in flight",
                 .peak = varuna_peak,
                 .generate = varuna},
    ScheduleKind{
        .name = "pipedream-2bw",
        .summary = "1f1b that never drains: no bubble, two versions of the weights, gradients one step late",
        .citation = "Narayanan et al., ICML'21 (arXiv 2006.09503)",
        .weight_versions = 2,
        .kept_beside = "second version of the weights",
        .flush = false,
        .constraint = pipedream_2bw_constraint,
        .bubble_form = "0 in the steady state",
        .peak_form = "min(p-r, m)",
        .bubble = no_bubble,
        .peak = one_f_one_b_peak,
        .generate = steady_order<steady_one_f_one_b>},
    ScheduleKind{.name = "pipemare",
                 .summary =
                     "1f1b that never drains, one version of the weights: a backward's are up to p-1-r "
                     "micro-batches newer than its forward's",
                 .citation = "Yang et al., MLSys'21 (arXiv 1910.05124)",
                 .kept_beside = "running average of the weights",
                 .flush = false,
                 .constraint = pipemare_constraint,
                 .bubble_form = "0 in the steady state",
                 .peak_form = "min(p-r, m)",
                 .bubble = no_bubble,
                 .peak = one_f_one_b_peak,
                 .generate = steady_order<steady_one_f_one_b>},
};

}  // namespace

std::span<const ScheduleKind> schedule_kinds() {
  return kKinds;
}

const ScheduleKind* find_schedule(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &ScheduleKind::name);
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace stagecraft
