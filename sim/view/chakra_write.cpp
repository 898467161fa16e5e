#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.hpp"
#include "sim/lower/task_names.hpp"
#include "sim/view/chakra.hpp"
#include "sim/view/chakra_fields.hpp"
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

class ChakraWriter {
 public:
  explicit ChakraWriter(const ChakraExport& exported)
      : program_(exported.program), timeline_(exported.timeline), message_(exported.message) {
    std::int32_t ranks = 0;
    rank_of_.resize(program_.task_count());
    predecessors_.resize(program_.task_count());
    for (std::uint32_t r = 0; r < program_.resources.size(); ++r) {
      const Resource& resource = program_.resources[ResourceId(r)];
      ranks = std::max(ranks, resource.rank + 1);
      for (std::uint32_t t = program_.resource_begin[r]; t < program_.resource_begin[r + 1]; ++t) {
        rank_of_[t] = resource.rank;
        const bool follows = resource.kind == ResourceKind::kStream && t > program_.resource_begin[r];
        if (follows) predecessors_[t].push_back(TaskId(t - 1));
      }
    }
    for (std::uint32_t t = 0; t < program_.task_count(); ++t)
      for (const TaskId next : program_.successors_of(TaskId(t)))
        predecessors_[next.index()].push_back(TaskId(t));
    files_.resize(static_cast<std::size_t>(ranks));
  }

  std::vector<std::string> write() && {
    std::vector<TaskId> order;
    for (std::uint32_t t = 0; t < program_.task_count(); ++t) order.emplace_back(t);
    std::sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
      return std::tuple(timeline_.start[a], timeline_.end[a], a) <
             std::tuple(timeline_.start[b], timeline_.end[b], b);
    });
    for (File& file : files_) file.bytes.delimited(WireMessage().text(chakra::kVersion, "0.0.4"));
    for (const TaskId task : order) write_task(task);
    std::vector<std::string> bytes;
    for (File& file : files_) bytes.push_back(file.bytes.bytes());
    return bytes;
  }

 private:
  struct File {
    WireMessage bytes;
    std::uint64_t next_id = 1;
    Duration worked{};  // on the compute stream, so far
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
  };

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
    if (node.micros > 0) wire.number(chakra::kDurationMicros, static_cast<std::uint64_t>(node.micros));
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

  // The nodes that `task` waits for on its rank; what comes from another rank is received first.
  std::vector<std::uint64_t> waits_for(TaskId task) {
    std::vector<std::uint64_t> nodes;
    const std::int32_t here = rank_of_[task.index()];
    for (const TaskId before : predecessors_[task.index()]) {
      const std::int32_t there = rank_of_[before.index()];
      nodes.push_back(there == here ? node_of_.at(before.value()) : receive(before, there, here));
    }
    return nodes;
  }

  [[nodiscard]] Bytes size_of(TaskId before) const {
    if (!is_message(program_, before)) return Bytes(1);
    return does(program_, before) == BesideTask::kSendNorm ? Bytes(4) : message_;
  }

  // The send stands where the message began.
  std::uint64_t receive(TaskId before, std::int32_t there, std::int32_t here) {
    const bool message = is_message(program_, before);
    const Message sent{.from = there, .to = here, .tag = next_tag_++, .size = size_of(before)};
    const std::string name = program_.describe(before);
    const Node send{.name = "send: " + name,
                    .type = chakra::kSend,
                    .after = message ? sends_.at(before.value()) : std::vector{node_of_.at(before.value())},
                    .micros = message ? microseconds(timeline_.end[before] - timeline_.start[before]) : 0};
    (void)write_node(there, send, &sent);
    return write_node(here, {.name = "receive: " + name, .type = chakra::kReceive}, &sent);
  }

  void write_task(TaskId task) {
    std::vector<std::uint64_t> after = waits_for(task);
    if (is_message(program_, task)) {
      sends_.emplace(task.value(), std::move(after));
      return;
    }
    File& file = files_[static_cast<std::size_t>(rank_of_[task.index()])];
    const Duration time = timeline_.end[task] - timeline_.start[task];
    const std::int64_t micros = microseconds(file.worked + time) - microseconds(file.worked);
    file.worked += time;
    node_of_.emplace(
        task.value(),
        write_node(rank_of_[task.index()],
                   {.name = program_.describe(task), .after = std::move(after), .micros = micros}, nullptr));
  }

  const Program& program_;
  const Timeline& timeline_;
  Bytes message_;
  std::vector<std::int32_t> rank_of_;              // by task
  std::vector<std::vector<TaskId>> predecessors_;  // by task; on its stream as well
  std::vector<File> files_;
  std::unordered_map<std::uint32_t, std::uint64_t> node_of_;             // by task
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> sends_;  // by message: what it waits for
  std::int32_t next_tag_ = 0;
};

}  // namespace

std::optional<std::string> no_chakra_because(const Program& program, const Timeline& timeline) {
  if (timeline.stall) return "the iteration does not finish";
  if (!program.flows.empty()) return "its links are shared (network: flow), and a trace has fixed times";
  if (!program.loads.empty())
    return "its collectives slow the passes that they run beside (overlap), and a trace has fixed times";
  for (std::uint32_t r = 0; r < program.resources.size(); ++r) {
    const std::string& name = program.resources[ResourceId(r)].name;
    if (name == "compute") {
      for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t)
        if (is_message(program, TaskId(t)))
          return "its messages hold up the compute stream (overlap.pipeline: false)";
      continue;
    }
    for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t) {
      const std::string& label = program.labels[program.label[TaskId(t)]].name;
      if (timeline.end[TaskId(t)] > timeline.start[TaskId(t)] && !is_message(program, TaskId(t)))
        return fmt::format("its '{}' is a collective of replicas that are not simulated", label);
    }
  }
  return std::nullopt;
}

std::vector<std::string> chakra_traces(const ChakraExport& exported) {
  SC_CHECK(!no_chakra_because(exported.program, exported.timeline), "a timeline that is no trace");
  return ChakraWriter(exported).write();
}

}  // namespace stagecraft
