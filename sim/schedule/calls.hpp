// Point-to-point calls of a rank between its passes, where messages block.
//
//   batched   Megatron-LM without overlap: one call with all sends and receives between two passes. 1F1B:
//             receive, F, send while warming up; then F, {send forward, receive gradient}, B, {send gradient,
//             receive forward}. Interleaved: one call after each step, a step being an F and a B in the
//             steady part.
//   blocking  DeepSpeed's 1F1B: the same transfers one by one; of a pair the send of an activation comes
//             before the receive of a gradient, and the receive of an activation before the send of a
//             gradient.
//
// A call ends when all its partners have posted theirs, and a message time later (rendezvous); the rank does
// nothing else meanwhile. Neither way is known for other orders.
//   source   NVIDIA/Megatron-LM, schedules.py and p2p_communication.py; DeepSpeed, runtime/pipe/schedule.py.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "sim/schedule/play.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

enum class CallStyle { kBatched, kOneByOne };

struct PeerTransfer {
  bool send = false;
  bool gradient = false;
  std::int32_t stage = 0;  // stage of the pass that sends, or that needs the message
  std::int32_t micro_batch = 0;
  friend bool operator==(const PeerTransfer&, const PeerTransfer&) = default;
};
// The message that a pass sends, or receives; nullopt where its neighbour is on the same rank or is not there.
[[nodiscard]] std::optional<PeerTransfer> transfer_of(const Schedule& schedule, const Action& action,
                                                      bool send);
// What both ends of a message share: its kind, the sending stage, the micro-batch.
using MessageKey = std::tuple<bool, int, int>;
[[nodiscard]] MessageKey key_of(const PeerTransfer& transfer);
// Transfers of one rank; sends before receives, forward before gradient.
using Call = std::vector<PeerTransfer>;

// The calls between the passes of one rank: calls[i] run before pass i, the last of all after the last pass.
using RankCalls = std::vector<std::vector<Call>>;

// nullopt where the style is known for the order: 1f1b both ways, interleaved-1f1b batched and in groups of
// p.
[[nodiscard]] std::optional<ScheduleProblem> refuse_calls(const Schedule& schedule, CallStyle style);
// [rank]. requires an order that refuse_calls lets pass.
[[nodiscard]] std::vector<RankCalls> calls_of(const Schedule& schedule, CallStyle style);

// Plays as play() does, with messages by these calls. requires calls without deadlock.
[[nodiscard]] Play play_calls(const Schedule& schedule, const ScheduleCosts& costs,
                              const std::vector<RankCalls>& calls);

}  // namespace stagecraft
