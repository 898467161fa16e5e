#include <fmt/format.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/view/chakra.hpp"
#include "sim/view/chakra_fields.hpp"

namespace stagecraft {
namespace {

struct Field {
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  std::string_view bytes{};
};

// Fields of a message, one after another. After a damaged one there are no more.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool damaged() const { return damaged_; }
  bool done() const { return damaged_ || rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    damaged_ = true;
    return 0;
  }

  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) damaged_ = true;
    if (damaged_) return {};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  Field field() {
    const std::uint64_t tag = varint();
    Field field{.number = static_cast<std::uint32_t>(tag >> 3)};
    switch (tag & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        (void)take(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        (void)take(4);
        break;
      default:
        damaged_ = true;
    }
    return field;
  }

 private:
  std::string_view rest_;
  bool damaged_ = false;
};

struct Node {
  std::uint64_t id = 0, type = 0;
  std::optional<std::uint64_t> micros{};
  std::string name;
  std::vector<std::uint64_t> after{};
  std::map<std::string, std::int64_t, std::less<>> attributes{};

  std::int64_t attribute(std::string_view name_of) const {
    const auto known = attributes.find(name_of);
    return known != attributes.end() ? known->second : -1;
  }
};

// 35 years: of one node, and of all nodes together, so that no sum of times overflows.
constexpr Duration kLongest = std::chrono::microseconds(std::int64_t{1} << 50);

using Handle = ProgramBuilder::Handle;
// Key of a message: source, destination, tag, size.
using MessageKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

// Tasks on a cycle of edges and stream order, or after one; ascending.
std::vector<TaskId> never_ready(const Program& program) {
  std::vector<std::uint32_t> waits(program.task_count());
  std::vector<bool> last(program.task_count());  // is it the last of its stream?
  for (std::uint32_t t = 0; t < program.task_count(); ++t)
    for (const TaskId next : program.successors_of(TaskId(t))) ++waits[next.index()];
  for (std::uint32_t r = 0; r < program.resources.size(); ++r) {
    const bool stream = program.resources[ResourceId(r)].kind == ResourceKind::kStream;
    for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t) {
      last[t] = !stream || t + 1 == program.resource_begin[r + 1];
      if (stream && t > program.resource_begin[r]) ++waits[t];
    }
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t t = 0; t < program.task_count(); ++t)
    if (waits[t] == 0) ready.push_back(t);
  const auto release = [&](std::uint32_t task) {
    if (--waits[task] == 0) ready.push_back(task);
  };
  std::vector<bool> done(program.task_count());
  while (!ready.empty()) {
    const std::uint32_t task = ready.back();
    ready.pop_back();
    done[task] = true;
    for (const TaskId next : program.successors_of(TaskId(task))) release(next.value());
    if (!last[task]) release(task + 1);
  }
  std::vector<TaskId> waiting;
  for (std::uint32_t t = 0; t < program.task_count(); ++t)
    if (!done[t]) waiting.emplace_back(t);
  return waiting;
}

// Node numbers in an order in which each comes after what it waits for, and the order of the file otherwise.
// What is on a cycle, or behind one, comes last.
std::vector<std::size_t> order_of(const std::vector<Node>& nodes) {
  std::map<std::uint64_t, std::size_t> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) places.emplace(nodes[i].id, i);
  std::vector<std::vector<std::size_t>> next(nodes.size());
  std::vector<std::size_t> waits(nodes.size()), order;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const std::uint64_t before : nodes[i].after)
      if (const auto place = places.find(before); place != places.end()) {
        next[place->second].push_back(i);
        ++waits[i];
      }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (waits[i] == 0) ready.push(i);
  while (!ready.empty()) {
    const std::size_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const std::size_t other : next[node])
      if (--waits[other] == 0) ready.push(other);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (waits[i] > 0) order.push_back(i);
  return order;
}

class ChakraReader {
 public:
  ChakraReader(const ChakraNetwork& network, Diagnostics& diagnostics)
      : network_(network), diagnostics_(diagnostics) {}

  std::optional<Program> read(std::span<const ChakraFile> files) {
    for (std::size_t rank = 0; rank < files.size(); ++rank) {
      std::vector<Node> nodes;
      if (read_file(files[rank], nodes)) add_rank(files[rank].name, static_cast<std::int32_t>(rank), nodes);
    }
    if (!diagnostics_.has_errors()) match();
    if (diagnostics_.has_errors()) return std::nullopt;
    Program program = std::move(builder_).build();
    const std::vector<TaskId> waiting = never_ready(program);
    if (waiting.empty()) return program;
    refuse(files.front().name, fmt::format("{} nodes wait for each other, the first of them '{}'",
                                           waiting.size(), program.describe(waiting.front())));
    return std::nullopt;
  }

 private:
  void refuse(const std::string& file, std::string message, std::string hint = {}) {
    diagnostics_.error({.code = "not-a-trace",
                        .where = {.file = file},
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  // Each of these says whether the message is whole.
  static bool read_attribute(std::string_view bytes, Node& node) {
    WireReader reader(bytes);
    std::string name;
    std::int64_t value = 0;
    while (!reader.done()) {
      const Field field = reader.field();
      if (field.number == chakra::kAttributeName) name = field.bytes;
      if (field.number == chakra::kInt32 || field.number == chakra::kInt64 || field.number == chakra::kUint64)
        value = static_cast<std::int64_t>(field.value);
    }
    node.attributes[name] = value;
    return !reader.damaged();
  }

  // Numbers one by one, or packed.
  static bool read_deps(const Field& field, Node& node) {
    WireReader packed(field.bytes);
    if (packed.done()) node.after.push_back(field.value);
    while (!packed.done()) node.after.push_back(packed.varint());
    return !packed.damaged();
  }

  static bool read_node(std::string_view bytes, Node& node) {
    WireReader reader(bytes);
    bool whole = true;
    while (whole && !reader.done()) {
      const Field field = reader.field();
      if (field.number == chakra::kId) node.id = field.value;
      if (field.number == chakra::kName) node.name = field.bytes;
      if (field.number == chakra::kType) node.type = field.value;
      if (field.number == chakra::kDurationMicros) node.micros = field.value;
      if (field.number == chakra::kControlDeps || field.number == chakra::kDataDeps)
        whole = read_deps(field, node);
      if (field.number == chakra::kAttribute) whole = read_attribute(field.bytes, node);
    }
    return whole && !reader.damaged();
  }

  bool read_file(const ChakraFile& file, std::vector<Node>& nodes) {
    WireReader reader(file.bytes);
    (void)reader.take(reader.varint());  // GlobalMetadata
    bool whole = true;
    while (whole && !reader.done()) {
      const std::string_view bytes = reader.take(reader.varint());
      Node node;
      whole = !reader.damaged() && read_node(bytes, node);
      if (whole) nodes.push_back(std::move(node));
    }
    whole = whole && !reader.damaged() && !nodes.empty();
    if (!whole)
      refuse(file.name,
             fmt::format("is no Chakra trace: it ends, or is damaged, behind node {}", nodes.size()));
    return whole;
  }

  std::optional<Duration> own_time(const std::string& file, const Node& node) {
    constexpr auto kMostMicros =
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(kLongest).count());
    const std::uint64_t micros = node.micros.value_or(0);
    const std::int64_t size = node.attribute("comm_size");
    const bool on_link = node.type == chakra::kSend && micros == 0 && network_.link.count() > 0;
    const double link_s =
        on_link ? static_cast<double>(size) / network_.link.count() + to_seconds(network_.latency) : 0;
    if (micros > kMostMicros || link_s > to_seconds(kLongest)) {
      refuse(file, fmt::format("'{}' takes longer than 35 years", node.name));
      return std::nullopt;
    }
    if (on_link) return Bytes(size) / network_.link + network_.latency;
    if (node.type == chakra::kSend && size > 1 && !node.micros) {
      refuse(file, fmt::format("'{}' does not say how long its {} bytes take", node.name, size),
             "give the bandwidth of a link");
      return std::nullopt;
    }
    if (const std::int64_t work = node.attribute("num_ops");
        node.type == chakra::kCompute && work > 0 && !node.micros) {
      refuse(file, fmt::format("'{}' does not say how long its {} operations take", node.name, work),
             "traces of a profiler or a simulator have a time for each node");
      return std::nullopt;
    }
    return std::chrono::microseconds(micros);
  }

  // Reports once when all nodes together take too long.
  std::optional<Duration> time_of(const std::string& file, const Node& node) {
    const std::optional<Duration> time = own_time(file, node);
    if (!time || total_ > kLongest) return std::nullopt;
    total_ += *time;
    if (total_ <= kLongest) return time;
    refuse(file, fmt::format("'{}' and the nodes before it take longer than 35 years", node.name));
    return std::nullopt;
  }

  // Is it known what goes where? Else matching would be by chance.
  bool says_its_size(const std::string& file, const Node& node) {
    const bool says = node.attribute("comm_size") >= 0;
    if (!says)
      refuse(file, fmt::format("'{}' is a message, and its comm_size is {}", node.name,
                               node.attributes.contains("comm_size") ? "negative" : "missing"));
    return says;
  }

  std::optional<Handle> add_node(const std::string& file, std::int32_t rank, const Node& node) {
    const bool message = node.type == chakra::kSend || node.type == chakra::kReceive;
    if (message && !says_its_size(file, node)) return std::nullopt;
    const std::optional<Duration> time = time_of(file, node);
    if (!time) return std::nullopt;
    const LabelId label = label_of(node.name);
    const MessageKey key{node.attribute("comm_src"), node.attribute("comm_dst"), node.attribute("comm_tag"),
                         node.attribute("comm_size")};
    if (node.type == chakra::kCompute) return builder_.add_task(streams_.compute, *time, label);
    if (node.type == chakra::kReceive) {
      const Handle task = builder_.add_task(streams_.receive, Duration::zero(), label);
      receives_[key].push_back({task, file});
      return task;
    }
    if (node.type == chakra::kSend) {
      if (std::get<0>(key) != rank)
        refuse(file, fmt::format("'{}' sends from rank {}, and this is rank {}", node.name, std::get<0>(key),
                                 rank));
      const Handle task = builder_.add_task(streams_.send, *time, label);
      sends_[key].push_back({task, file});
      return task;
    }
    refuse(file,
           fmt::format("'{}' is a node of type {}: only compute (4), send (5) and receive (6) are understood",
                       node.name, node.type),
           "collectives and memory nodes need a model of their own");
    return std::nullopt;
  }

  void add_rank(const std::string& file, std::int32_t rank, const std::vector<Node>& nodes) {
    streams_ = {.compute = builder_.add_resource({ResourceKind::kStream, rank, "compute"}),
                .send = builder_.add_resource({ResourceKind::kConcurrent, rank, "send"}),
                .receive = builder_.add_resource({ResourceKind::kConcurrent, rank, "receive"})};
    std::map<std::uint64_t, Handle> known;
    for (const std::size_t place : order_of(nodes)) {
      const Node& node = nodes[place];
      const std::optional<Handle> task = add_node(file, rank, node);
      if (task && !known.emplace(node.id, *task).second)
        refuse(file, fmt::format("node {} is there twice", node.id));
    }
    for (const Node& node : nodes) {
      for (const std::uint64_t before : node.after) {
        const auto first = known.find(before), second = known.find(node.id);
        if (first == known.end())
          refuse(file, fmt::format("'{}' waits for node {}, which is not there", node.name, before));
        else if (second != known.end())
          builder_.add_dependency(first->second, second->second);
      }
    }
  }

  // Matches sends and receives in order, as ASTRA-sim does.
  void match() {
    for (auto& [key, sent] : sends_) {
      std::deque<Known>& received = receives_[key];
      for (const Known& send : sent) {
        if (received.empty()) return refuse_message(send.file, key, "is sent, and nobody receives it");
        builder_.add_dependency(send.task, received.front().task);
        received.pop_front();
      }
    }
    for (const auto& [key, left] : receives_)
      if (!left.empty()) return refuse_message(left.front().file, key, "is received, and nobody sends it");
  }

  void refuse_message(const std::string& file, const MessageKey& key, std::string_view what) {
    const auto& [from, to, tag, size] = key;
    refuse(file, fmt::format("message {} of {} bytes from rank {} to rank {} {}", tag, size, from, to, what));
  }

  LabelId label_of(const std::string& name) {
    const auto known = labels_.find(name);
    if (known != labels_.end()) return known->second;
    const LabelId label = builder_.add_label({.name = name, .stage = -1, .parts = {}});
    return labels_.emplace(name, label).first->second;
  }

  struct Streams {
    ResourceId compute, send, receive;
  };
  struct Known {
    Handle task;
    std::string file;
  };

  const ChakraNetwork& network_;
  Diagnostics& diagnostics_;
  ProgramBuilder builder_;
  Streams streams_{};  // streams of the current rank
  Duration total_{};   // of all nodes so far
  std::map<MessageKey, std::deque<Known>> sends_, receives_;
  std::map<std::string, LabelId> labels_;
};

}  // namespace

std::optional<Program> chakra_program(std::span<const ChakraFile> files, const ChakraNetwork& network,
                                      Diagnostics& diagnostics) {
  return ChakraReader(network, diagnostics).read(files);
}

}  // namespace stagecraft
