#include "bench/workload_a.hpp"

#include <algorithm>
#include <vector>

#include "base/units.hpp"

namespace stagecraft {
namespace {

using namespace stagecraft::literals;
using namespace std::chrono_literals;
using Handle = ProgramBuilder::Handle;

constexpr Duration kForward = 1000us;
constexpr Duration kBackward = 2000us;
constexpr Duration kPathLatency = 2us;  // two links of 1000 ns
constexpr Bytes kMessage = 16_MiB;
constexpr Bytes kGradients = 512_MiB;
const Bandwidth kLink{50.0 * 1024 * 1024 * 1024};

Duration ring_all_reduce(int replicas) {
  return 2 * (replicas - 1) * (kGradients / std::int64_t{replicas} / kLink + kPathLatency);
}

struct Labels {
  LabelId forward, backward, send, receive, all_reduce;
};

// The streams of one rank, and the ends of the messages that its neighbours are to be tied to, by
// micro-batch.
struct Rank {
  ResourceId compute, network, receive_activations, receive_gradients;
  std::vector<Handle> activation_sent, activation_received;
  std::vector<Handle> gradient_sent, gradient_received;
  Handle last_backward;
};

class Builder {
 public:
  explicit Builder(const WorkloadA& workload)
      : workload_(workload), message_(kMessage / kLink + kPathLatency) {
    builder_.reserve(task_count(workload), dependency_count());
    labels_ = {.forward = add_label("F"),
               .backward = add_label("B"),
               .send = add_label("send"),
               .receive = add_label("receive"),
               .all_reduce = add_label("all-reduce")};
  }

  Program build() && {
    std::vector<std::vector<Handle>> last_backward(static_cast<std::size_t>(workload_.stages));
    std::vector<ResourceId> network;
    for (int replica = 0; replica < simulated_replicas(); ++replica) {
      const std::vector<Rank> ranks = add_replica(replica);
      for (std::size_t stage = 0; stage < ranks.size(); ++stage) {
        last_backward[stage].push_back(ranks[stage].last_backward);
        network.push_back(ranks[stage].network);
      }
    }
    if (workload_.replicas > 1) add_all_reduces(last_backward, network);
    return std::move(builder_).build();
  }

 private:
  LabelId add_label(const char* name) { return builder_.add_label({.name = name, .parts = {}}); }

  [[nodiscard]] int simulated_replicas() const { return workload_.folded ? 1 : workload_.replicas; }

  [[nodiscard]] std::size_t dependency_count() const {
    const auto p = static_cast<std::size_t>(workload_.stages),
               m = static_cast<std::size_t>(workload_.micro_batches);
    const auto d = static_cast<std::size_t>(simulated_replicas());
    return d * 6 * (p - 1) * m + (workload_.replicas > 1 ? d * d * p : 0);
  }

  std::vector<Rank> add_replica(int replica) {
    std::vector<Rank> ranks;
    for (int stage = 0; stage < workload_.stages; ++stage) ranks.push_back(add_rank(replica, stage));
    for (std::size_t stage = 0; stage + 1 < ranks.size(); ++stage) {
      connect(ranks[stage].activation_sent, ranks[stage + 1].activation_received);
      connect(ranks[stage + 1].gradient_sent, ranks[stage].gradient_received);
    }
    return ranks;
  }

  Rank add_rank(int replica, int stage) {
    const std::int32_t number = replica * workload_.stages + stage;
    const auto stream = [&](const char* name) {
      return builder_.add_resource({.rank = number, .name = name});
    };
    Rank rank{.compute = stream("compute"),
              .network = stream("network"),
              .receive_activations = stream("receive activations"),
              .receive_gradients = stream("receive gradients"),
              .activation_sent = {},
              .activation_received = {},
              .gradient_sent = {},
              .gradient_received = {},
              .last_backward = {}};
    const int warm_up = std::min(workload_.stages - stage - 1, workload_.micro_batches);
    for (int i = 0; i < warm_up; ++i) add_forward(rank, stage, i);
    for (int i = warm_up; i < workload_.micro_batches; ++i) {
      add_forward(rank, stage, i);
      add_backward(rank, stage, i - warm_up);
    }
    for (int i = workload_.micro_batches - warm_up; i < workload_.micro_batches; ++i)
      add_backward(rank, stage, i);
    return rank;
  }

  void add_forward(Rank& rank, int stage, std::int32_t micro_batch) {
    const Handle compute = builder_.add_task(rank.compute, kForward, labels_.forward, micro_batch);
    if (stage > 0)
      rank.activation_received.push_back(add_receive(rank.receive_activations, compute, micro_batch));
    if (stage + 1 < workload_.stages)
      rank.activation_sent.push_back(add_send(rank.network, compute, micro_batch));
  }

  void add_backward(Rank& rank, int stage, std::int32_t micro_batch) {
    const Handle compute = builder_.add_task(rank.compute, kBackward, labels_.backward, micro_batch);
    if (stage + 1 < workload_.stages)
      rank.gradient_received.push_back(add_receive(rank.receive_gradients, compute, micro_batch));
    if (stage > 0) rank.gradient_sent.push_back(add_send(rank.network, compute, micro_batch));
    rank.last_backward = compute;
  }

  // A message has arrived when its send ends; the receive itself takes no time.
  Handle add_receive(ResourceId stream, Handle compute, std::int32_t micro_batch) {
    const Handle receive = builder_.add_task(stream, Duration::zero(), labels_.receive, micro_batch);
    builder_.add_dependency(receive, compute);
    return receive;
  }

  Handle add_send(ResourceId stream, Handle compute, std::int32_t micro_batch) {
    const Handle send = builder_.add_task(stream, message_, labels_.send, micro_batch);
    builder_.add_dependency(compute, send);
    return send;
  }

  void connect(const std::vector<Handle>& sent, const std::vector<Handle>& received) {
    for (std::size_t i = 0; i < sent.size(); ++i) builder_.add_dependency(sent[i], received[i]);
  }

  // Each rank of a stage joins when all replicas of the stage are through.
  void add_all_reduces(const std::vector<std::vector<Handle>>& last_backward,
                       const std::vector<ResourceId>& network) {
    const Duration time = ring_all_reduce(workload_.replicas);
    for (std::size_t rank = 0; rank < network.size(); ++rank) {
      const Handle all_reduce = builder_.add_task(network[rank], time, labels_.all_reduce);
      for (const Handle before : last_backward[rank % last_backward.size()])
        builder_.add_dependency(before, all_reduce);
    }
  }

  WorkloadA workload_;
  Duration message_;
  ProgramBuilder builder_;
  Labels labels_;
};

}  // namespace

std::size_t task_count(const WorkloadA& workload) {
  const auto p = static_cast<std::size_t>(workload.stages),
             m = static_cast<std::size_t>(workload.micro_batches);
  const auto d = static_cast<std::size_t>(workload.folded ? 1 : workload.replicas);
  return d * (2 * p * m + 4 * (p - 1) * m) + (workload.replicas > 1 ? p * d : 0);
}

Program build(const WorkloadA& workload) {
  return Builder(workload).build();
}

}  // namespace stagecraft
