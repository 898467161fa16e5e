#include "sim/schedule/calls.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "sim/schedule/interleaved.hpp"

namespace stagecraft {
namespace {

void append(Call& call, const std::optional<PeerTransfer>& transfer) {
  if (transfer) call.push_back(*transfer);
}

// Messages between two passes of 1F1B, after `behind` and before `before`. `as_one`: a single call where the
// rank turns from forward to backward or back.
std::vector<Call> between(const Schedule& schedule, const Action* behind, const Action* before, bool as_one) {
  Call call;
  if (behind != nullptr) append(call, transfer_of(schedule, *behind, true));
  if (before != nullptr) append(call, transfer_of(schedule, *before, false));
  if (call.empty()) return {};
  const bool turns = call.size() == 2 && call[0].gradient != call[1].gradient;
  if (call.size() == 1 || (turns && as_one)) return {call};
  if (turns && call[0].gradient)
    std::swap(call[0], call[1]);  // in separate calls the activation precedes the gradient
  return {{call[0]}, {call[1]}};
}

RankCalls one_f_one_b_calls(const Schedule& schedule, int rank, CallStyle style) {
  const std::vector<Action>& order = schedule.ranks[static_cast<std::size_t>(rank)];
  const bool steady = schedule.shape.micro_batches > schedule.shape.ranks - 1 - rank;
  const bool as_one = style == CallStyle::kBatched && steady;
  RankCalls calls(order.size() + 1);
  for (std::size_t i = 0; i <= order.size(); ++i) {
    calls[i] =
        between(schedule, i > 0 ? &order[i - 1] : nullptr, i < order.size() ? &order[i] : nullptr, as_one);
  }
  return calls;
}

// The transfers of some passes in one direction, activations before gradients.
void append_all(Call& call, const Schedule& schedule, std::span<const Action> passes, bool send) {
  for (const bool gradient : {false, true}) {
    for (const Action& action : passes) {
      if (gives_gradient(action.pass) == gradient) append(call, transfer_of(schedule, action, send));
    }
  }
}

// One call after each step; in the steady state a step is a forward and a backward. Without a steady state,
// the send of the last forward and the receive of the first backward are two calls.
RankCalls interleaved_calls(const Schedule& schedule, int rank) {
  const PipelineShape& shape = schedule.shape;
  const std::span<const Action> order = schedule.ranks[static_cast<std::size_t>(rank)];
  const std::size_t n = order.size() / 2;
  const auto warm_up = static_cast<std::size_t>(interleaved_warm_up(shape, rank, shape.ranks));
  const auto step_at = [&](std::size_t at) {
    const std::size_t length = at >= warm_up && at < order.size() - warm_up ? 2 : 1;
    return order.subspan(at, std::min(length, order.size() - at));
  };
  RankCalls calls(order.size() + 1);
  Call call;
  append_all(call, schedule, step_at(0).first(1), false);
  if (!call.empty()) calls[0] = {call};
  for (std::size_t at = 0; at < order.size();) {
    call.clear();
    append_all(call, schedule, step_at(at), true);
    at += step_at(at).size();
    if (warm_up == n && at == n && !call.empty()) {
      calls[at].push_back(call);
      call.clear();
    }
    append_all(call, schedule, step_at(at), false);
    if (!call.empty()) calls[at].push_back(call);
  }
  return calls;
}

// Runs passes and calls; a call waits until all its partners have posted.
class Rendezvous {
 public:
  Rendezvous(const Schedule& schedule, const ScheduleCosts& costs, const std::vector<RankCalls>& calls)
      : schedule_(schedule),
        costs_(costs),
        calls_(calls),
        at_(schedule.ranks.size()),
        clock_(schedule.ranks.size(), 0) {
    result_.busy.assign(schedule.ranks.size(), 0);
    for (const std::vector<Action>& order : schedule.ranks) result_.ranks.emplace_back(order.size());
  }

  Play run() && {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < at_.size(); ++rank) {
        while (step(rank)) moved = true;
      }
    }
    for (std::size_t rank = 0; rank < at_.size(); ++rank) {
      SC_CHECK(at_[rank].pass > schedule_.ranks[rank].size(), "calls that wait for each other");
      const std::vector<PassTime>& times = result_.ranks[rank];
      result_.makespan = std::max(result_.makespan, times.back().end);
      result_.span = std::max(result_.span, times.back().end - times.front().start);
    }
    return std::move(result_);
  }

 private:
  struct Position {
    std::size_t pass = 0;  // next pass
    std::size_t call = 0;  // next call in front of it
    bool posted = false;
  };

  bool step(std::size_t rank) {
    Position& at = at_[rank];
    if (at.pass >= calls_[rank].size()) return false;
    const std::vector<Call>& here = calls_[rank][at.pass];
    if (at.call < here.size()) return finish_call(rank, here[at.call]);
    if (at.pass < schedule_.ranks[rank].size()) {
      const std::int64_t lasts = length_of(schedule_.ranks[rank][at.pass], costs_);
      result_.ranks[rank][at.pass] = {.start = clock_[rank], .end = clock_[rank] + lasts};
      clock_[rank] += lasts;
      result_.busy[rank] += lasts;
    }
    at = {.pass = at.pass + 1};
    return true;
  }

  bool finish_call(std::size_t rank, const Call& call) {
    Position& at = at_[rank];
    const bool news = !at.posted;
    if (news) {
      for (const PeerTransfer& transfer : call) posts_[{key_of(transfer), transfer.send}] = clock_[rank];
      at.posted = true;
    }
    std::int64_t all = clock_[rank];
    for (const PeerTransfer& transfer : call) {
      const auto partner = posts_.find({key_of(transfer), !transfer.send});
      if (partner == posts_.end()) return news;
      all = std::max(all, partner->second);
    }
    clock_[rank] = all + costs_.message;
    ++at.call;
    at.posted = false;
    return true;
  }

  const Schedule& schedule_;
  const ScheduleCosts& costs_;
  const std::vector<RankCalls>& calls_;
  std::vector<Position> at_;
  std::vector<std::int64_t> clock_;
  std::map<std::pair<MessageKey, bool>, std::int64_t> posts_;  // (message, its sender or receiver) -> when
  Play result_;
};

}  // namespace

std::optional<PeerTransfer> transfer_of(const Schedule& schedule, const Action& action, bool send) {
  const bool gradient = gives_gradient(action.pass);
  if (!gradient && action.pass != Pass::kForward) return std::nullopt;
  const int neighbour = action.stage + (gradient == send ? -1 : 1);
  if (neighbour < 0 || neighbour >= schedule.stages()) return std::nullopt;
  if (schedule.rank_of(neighbour, action.micro_batch) == schedule.rank_of(action.stage, action.micro_batch))
    return std::nullopt;
  return PeerTransfer{
      .send = send, .gradient = gradient, .stage = action.stage, .micro_batch = action.micro_batch};
}

MessageKey key_of(const PeerTransfer& transfer) {
  const int sender = transfer.send ? transfer.stage : transfer.stage + (transfer.gradient ? 1 : -1);
  return {transfer.gradient, sender, transfer.micro_batch};
}

std::optional<ScheduleProblem> refuse_calls(const Schedule& schedule, CallStyle style) {
  const bool batched = style == CallStyle::kBatched;
  if (schedule.name == "1f1b") return std::nullopt;
  if (schedule.name == "interleaved-1f1b" && batched) {
    const PipelineShape& shape = schedule.shape;
    if (shape.group == 0 || shape.group == shape.ranks) return std::nullopt;
    return ScheduleProblem{.message = "batched calls of interleaved-1f1b in groups of " +
                                      std::to_string(shape.group) + " are not known, only in groups of its " +
                                      std::to_string(shape.ranks) + " ranks",
                           .hint = "leave the group out, or send overlapped"};
  }
  return ScheduleProblem{.message = std::string(batched ? "batched" : "one-by-one") + " calls of " +
                                    schedule.name + " are not known",
                         .hint = batched
                                     ? "1f1b and interleaved-1f1b have them; or send overlapped or blocking"
                                     : "1f1b has them"};
}

std::vector<RankCalls> calls_of(const Schedule& schedule, CallStyle style) {
  SC_CHECK(!refuse_calls(schedule, style), "ask refuse_calls first");
  std::vector<RankCalls> calls;
  for (int rank = 0; rank < schedule.shape.ranks; ++rank) {
    calls.push_back(schedule.shape.chunks == 1 ? one_f_one_b_calls(schedule, rank, style)
                                               : interleaved_calls(schedule, rank));
  }
  return calls;
}

Play play_calls(const Schedule& schedule, const ScheduleCosts& costs, const std::vector<RankCalls>& calls) {
  SC_CHECK(schedule.flush && calls.size() == schedule.ranks.size(),
           "calls of every rank of an order that drains");
  return Rendezvous(schedule, costs, calls).run();
}

}  // namespace stagecraft
