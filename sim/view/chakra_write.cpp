#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.hpp"
#include "sim/lower/task_names.hpp"
#include "sim/view/chakra.hpp"
#include "sim/view/chakra_fields.hpp"
#include "sim/view/idle.hpp"
#include "sim/view/wire.hpp"

namespace stagecraft {
namespace {

std::optional<BesideTask> does(const Program& program, TaskId task) {
  return beside_task(program.labels[program.label[task]].name);
}

bool is_message(const Program& program, TaskId task) {
  const std::optional<BesideTask> what = does(program, task);
  return what == BesideTask::kSendForward || what == BesideTask::kSendBackward ||
         what == BesideTask::kSendNorm;
}

std::int64_t microseconds(Duration time) {
  return (time.count() + 500) / 1000;
}

// Bytes of messages between ranks. A message that takes time is a task after the pass that sends it; one of
// zero time is an edge between passes. In a fused pair the edges leave the second pass and lead to the first,
// whichever of the two they are for.
class MessageSizes {
 public:
  MessageSizes(const Program& program, const std::vector<Bytes>& messages,
               const std::vector<std::vector<TaskId>>& predecessors)
      : program_(program), messages_(messages), predecessors_(predecessors) {}

  [[nodiscard]] Bytes of(TaskId message) const {
    return does(program_, message) == BesideTask::kSendNorm ? Bytes(4) : of_message(message);
  }

  // What leads from one pass to another without a task; `nth` of several edges between the two, from 0.
  [[nodiscard]] Bytes of_edge(TaskId from, TaskId to, std::size_t nth) const {
    for (const std::optional<TaskId> a : {std::optional(from), before(from)})
      for (const std::optional<TaskId> b : {std::optional(to), after(to)})
        if (const auto size = a && b ? between(*a, *b) : std::nullopt; size && nth-- == 0) return *size;
    return Bytes(1);
  }

 private:
  [[nodiscard]] int stage_of(TaskId task) const { return program_.labels[program_.label[task]].stage; }

  // Is it a pass that the next stage waits for, or the one before?
  [[nodiscard]] bool goes(TaskId task, bool forward) const {
    const std::optional<Pass> pass = pass_of(program_.labels[program_.label[task]]);
    return pass && (forward ? *pass == Pass::kForward : gives_gradient(*pass));
  }

  [[nodiscard]] Bytes over(int boundary) const {
    SC_CHECK(boundary >= 0 && static_cast<std::size_t>(boundary) < messages_.size(),
             "a message crosses from a stage to the next");
    return std::max(Bytes(1), messages_[static_cast<std::size_t>(boundary)]);
  }

  [[nodiscard]] Bytes of_message(TaskId message) const {
    const bool forward = does(program_, message) == BesideTask::kSendForward;
    TaskId at = predecessors_[message.index()].front();
    while (is_message(program_, at)) at = predecessors_[at.index()].front();
    while (!goes(at, forward) || program_.micro_batch[at] != program_.micro_batch[message]) {
      const std::optional<TaskId> earlier = before(at);
      SC_CHECK(earlier.has_value(), "a message follows its pass");
      at = *earlier;
    }
    return over(forward ? stage_of(at) : stage_of(at) - 1);
  }

  [[nodiscard]] std::optional<Bytes> between(TaskId from, TaskId to) const {
    if (program_.micro_batch[from] != program_.micro_batch[to]) return std::nullopt;
    for (const bool forward : {true, false})
      if (goes(from, forward) && goes(to, forward) && stage_of(to) == stage_of(from) + (forward ? 1 : -1))
        return over(std::min(stage_of(from), stage_of(to)));
    return std::nullopt;
  }

  // The task before it on its stream, and the one after it.
  [[nodiscard]] std::optional<TaskId> before(TaskId task) const {
    const bool first = task.value() == program_.resource_begin[program_.resource_of(task).index()];
    return first ? std::nullopt : std::optional(TaskId(task.value() - 1));
  }
  [[nodiscard]] std::optional<TaskId> after(TaskId task) const {
    const std::uint32_t next = task.value() + 1;
    const bool last = next == program_.resource_begin[program_.resource_of(task).index() + 1];
    return last ? std::nullopt : std::optional(TaskId(next));
  }

  const Program& program_;
  const std::vector<Bytes>& messages_;
  const std::vector<std::vector<TaskId>>& predecessors_;
};

class ChakraWriter {
 public:
  explicit ChakraWriter(const ChakraExport& exported)
      : program_(exported.program),
        timeline_(exported.timeline),
        sizes_(exported.program, exported.messages, predecessors_) {
    rank_of_.resize(program_.task_count());
    predecessors_.resize(program_.task_count());
    for (std::uint32_t r = 0; r < program_.resources.size(); ++r) {
      const Resource& resource = program_.resources[ResourceId(r)];
      for (std::uint32_t t = program_.resource_begin[r]; t < program_.resource_begin[r + 1]; ++t) {
        rank_of_[t] = resource.rank;
        const bool follows = resource.kind == ResourceKind::kStream && t > program_.resource_begin[r];
        if (follows) predecessors_[t].push_back(TaskId(t - 1));
      }
    }
    for (std::uint32_t t = 0; t < program_.task_count(); ++t)
      for (const TaskId next : program_.successors_of(TaskId(t)))
        predecessors_[next.index()].push_back(TaskId(t));
    files_.resize(static_cast<std::size_t>(program_.rank_count()));
  }

  std::vector<std::string> write() && {
    for (File& file : files_) file.bytes.delimited(WireMessage().text(chakra::kVersion, "0.0.4"));
    for (const TaskId task : in_order()) write_task(task);
    std::vector<std::string> bytes;
    for (File& file : files_) bytes.push_back(file.bytes.bytes());
    return bytes;
  }

 private:
  struct File {
    WireMessage bytes;
    std::uint64_t next_id = 1;
    Duration worked{};  // work on the compute stream so far
  };
  struct Node {
    std::string name;
    chakra::NodeType type = chakra::kCompute;
    std::vector<std::uint64_t> after{};
    std::int64_t micros = 0;
  };
  // A message between ranks.
  struct Message {
    std::int32_t from = 0, to = 0;
    std::int32_t tag = 0;
    Bytes size{};
    std::uint64_t node = 0;  // of its send
  };

  // Tasks by start and end; among tasks of zero time a task follows those that it waits for.
  [[nodiscard]] std::vector<TaskId> in_order() const {
    using Place = std::tuple<Duration, Duration, TaskId>;
    std::vector<std::vector<TaskId>> followers(program_.task_count());
    std::vector<std::size_t> missing(program_.task_count());
    std::priority_queue<Place, std::vector<Place>, std::greater<>> ready;
    const auto add = [&](TaskId task) { ready.emplace(timeline_.start[task], timeline_.end[task], task); };
    for (std::uint32_t t = 0; t < program_.task_count(); ++t) {
      missing[t] = predecessors_[t].size();
      for (const TaskId before : predecessors_[t]) followers[before.index()].emplace_back(t);
      if (missing[t] == 0) add(TaskId(t));
    }
    std::vector<TaskId> order;
    while (!ready.empty()) {
      const TaskId task = std::get<TaskId>(ready.top());
      ready.pop();
      order.push_back(task);
      for (const TaskId next : followers[task.index()])
        if (--missing[next.index()] == 0) add(next);
    }
    return order;
  }

  static void add_attribute(WireMessage& node, std::string_view name, std::uint32_t field,
                            std::int64_t value) {
    WireMessage attribute;
    attribute.text(chakra::kAttributeName, name).number(field, static_cast<std::uint64_t>(value));
    node.message(chakra::kAttribute, attribute);
  }

  std::uint64_t write_node(std::int32_t rank, const Node& node, const Message* message) {
    File& file = files_[static_cast<std::size_t>(rank)];
    WireMessage wire;
    wire.number(chakra::kId, file.next_id).text(chakra::kName, node.name).number(chakra::kType, node.type);
    for (const std::uint64_t before : node.after) wire.number(chakra::kDataDeps, before);
    // A send of zero time states its duration, since a missing one is left to the reader.
    if (node.micros > 0 || node.type == chakra::kSend)
      wire.number(chakra::kDurationMicros, static_cast<std::uint64_t>(node.micros));
    add_attribute(wire, "is_cpu_op", chakra::kBool, 0);
    if (message != nullptr) {
      add_attribute(wire, "comm_size", chakra::kInt64, message->size.count());
      add_attribute(wire, "comm_src", chakra::kInt32, message->from);
      add_attribute(wire, "comm_dst", chakra::kInt32, message->to);
      add_attribute(wire, "comm_tag", chakra::kInt32, message->tag);
    }
    file.bytes.delimited(wire);
    return file.next_id++;
  }

  // The nodes that `task` waits for on its rank. Data from another rank is received first.
  std::vector<std::uint64_t> waits_for(TaskId task) {
    std::vector<std::uint64_t> nodes;
    const std::int32_t here = rank_of_[task.index()];
    const std::vector<TaskId>& all = predecessors_[task.index()];
    for (auto before = all.begin(); before != all.end(); ++before) {
      const std::int32_t there = rank_of_[before->index()];
      const auto same = static_cast<std::size_t>(std::count(all.begin(), before, *before));
      nodes.push_back(there == here ? node_of_.at(before->value()) : receive(*before, task, same));
    }
    return nodes;
  }

  // What `task` needs of `before` on another rank, the `nth` time. A message without a task of its own is
  // sent now.
  std::uint64_t receive(TaskId before, TaskId task, std::size_t nth) {
    const std::int32_t there = rank_of_[before.index()], here = rank_of_[task.index()];
    const std::string name = program_.describe(before);
    const auto known = sent_.find(before.value());
    const Message message = known != sent_.end()
                                ? known->second
                                : send({.name = name, .after = {node_of_.at(before.value())}}, there, here,
                                       sizes_.of_edge(before, task, nth));
    return write_node(here, {.name = "receive: " + name, .type = chakra::kReceive}, &message);
  }

  Message send(Node node, std::int32_t from, std::int32_t to, Bytes size) {
    node.name = "send: " + node.name;
    node.type = chakra::kSend;
    Message message{.from = from, .to = to, .tag = next_tag_++, .size = size};
    message.node = write_node(from, node, &message);
    return message;
  }

  // The rank that receives a message.
  [[nodiscard]] std::int32_t peer_of(TaskId message) const {
    const std::span<const TaskId> next = program_.successors_of(message);
    const auto there = std::ranges::find_if(
        next, [&](TaskId task) { return rank_of_[task.index()] != rank_of_[message.index()]; });
    SC_CHECK(there != next.end(), "a message has a receiver");
    return rank_of_[there->index()];
  }

  void write_task(TaskId task) {
    std::vector<std::uint64_t> after = waits_for(task);
    const std::int32_t rank = rank_of_[task.index()];
    const Duration time = timeline_.end[task] - timeline_.start[task];
    if (is_message(program_, task)) {
      const Message message =
          send({.name = program_.describe(task), .after = std::move(after), .micros = microseconds(time)},
               rank, peer_of(task), sizes_.of(task));
      node_of_.emplace(task.value(), message.node);
      sent_.emplace(task.value(), message);
      return;
    }
    File& file = files_[static_cast<std::size_t>(rank)];
    const std::int64_t micros = microseconds(file.worked + time) - microseconds(file.worked);
    file.worked += time;
    node_of_.emplace(
        task.value(),
        write_node(rank, {.name = program_.describe(task), .after = std::move(after), .micros = micros},
                   nullptr));
  }

  const Program& program_;
  const Timeline& timeline_;
  std::vector<std::int32_t> rank_of_;              // by task
  std::vector<std::vector<TaskId>> predecessors_;  // by task; includes the predecessor on its stream
  const MessageSizes sizes_;
  std::vector<File> files_;
  std::unordered_map<std::uint32_t, std::uint64_t> node_of_;  // by task
  std::unordered_map<std::uint32_t, Message> sent_;           // by message
  std::int32_t next_tag_ = 0;
};

constexpr const char* kOneReplica =
    "one replica of a pipeline is: --set parallelism.data=1 --set parallelism.context=1, on as many GPUs";

// Refusal of a task besides the passes that takes time.
ChakraRefusal refused_collective(const Program& program, TaskId task) {
  const std::string& label = program.labels[program.label[task]].name;
  switch (does(program, task).value_or(BesideTask::kGradientReduction)) {
    case BesideTask::kEmbeddingSum:
      return {.why = fmt::format("its '{}' is a collective of the first and the last stage", label),
              .hint = "--set model.tied_embeddings=false"};
    case BesideTask::kCopySum:
      return {.why = fmt::format("its '{}' of a stage is a collective", label),
              .hint = "an order that holds the weights once has none: --set schedule=1f1b"};
    default:
      return {.why = fmt::format("its '{}' is a collective of replicas that are not simulated", label),
              .hint = kOneReplica};
  }
}

}  // namespace

std::optional<ChakraRefusal> no_chakra_because(const Program& program, const Timeline& timeline) {
  if (timeline.stall)
    return ChakraRefusal{.why = "the iteration does not finish",
                         .hint = "without its faults it does: --set 'faults=[]'"};
  if (!program.loads.empty())
    return ChakraRefusal{
        .why = "its collectives slow the passes that they run beside (overlap), and a trace has fixed times",
        .hint = kOneReplica};
  if (!program.flows.empty())
    return ChakraRefusal{.why = "its links are shared (network: flow), and a trace has fixed times",
                         .hint = "--set network=closed-form"};
  const std::vector<bool> compute = compute_resources(program);
  for (std::uint32_t r = 0; r < program.resources.size(); ++r) {
    const bool computes = compute[r];
    for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t) {
      const bool message = is_message(program, TaskId(t));
      if (computes && message)
        return ChakraRefusal{.why = "its messages hold up the compute stream (overlap.pipeline: false)",
                             .hint = "--set overlap.pipeline=true"};
      if (!computes && !message && timeline.end[TaskId(t)] > timeline.start[TaskId(t)])
        return refused_collective(program, TaskId(t));
    }
  }
  return std::nullopt;
}

std::vector<std::string> chakra_traces(const ChakraExport& exported) {
  SC_CHECK(!no_chakra_because(exported.program, exported.timeline), "a timeline that is no trace");
  return ChakraWriter(exported).write();
}

}  // namespace stagecraft
