#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "sim/diff/rank_ops.hpp"

namespace stagecraft {
namespace {

// "void at::native::(anonymous namespace)::foo<4>(int)" is at::native::foo.
std::string short_name(std::string name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::", kVoid = "void ";
  if (name.starts_with(kVoid)) name.erase(0, kVoid.size());
  for (std::size_t at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous))
    name.erase(at, kAnonymous.size());
  return name.substr(0, std::min(name.find_first_of("<("), std::size_t{80}));
}

std::string name_of(const KinetoTrace& trace, const KinetoKernel& kernel) {
  if (kernel.op >= 0) return trace.ops[static_cast<std::size_t>(kernel.op)].name;
  return short_name(trace.name_of(kernel));
}

// The groups of the plan that contain the rank.
class Groups {
 public:
  Groups(const ParallelPlan& plan, int rank) {
    const auto add = [&](Activity activity, std::vector<int> ranks) {
      if (ranks.size() > 1) known_.emplace_back(activity, std::move(ranks));
    };
    add(Activity::kTensor, plan.mesh.group(rank, Axis::kTensor));
    add(Activity::kContext, plan.mesh.group(rank, Axis::kContext));
    add(Activity::kPipeline, plan.mesh.group(rank, Axis::kPipeline));
    add(Activity::kData, plan.mesh.group(rank, {Axis::kContext, Axis::kData}));
    add(Activity::kData, plan.mesh.group(rank, Axis::kData));
    add(Activity::kExpert, plan.expert_mesh.group(rank, Axis::kExpert));
    add(Activity::kExpert, plan.expert_mesh.group(rank, Axis::kTensor));
    add(Activity::kData, plan.expert_mesh.group(rank, Axis::kData));
    if (plan.shard_group < plan.replicas()) {
      add(Activity::kData, plan.mesh.block_of(rank, {Axis::kContext, Axis::kData}, plan.shard_group));
      add(Activity::kData, plan.mesh.across_blocks(rank, {Axis::kContext, Axis::kData}, plan.shard_group));
    }
  }

  [[nodiscard]] Activity of(const KinetoCollective* said, const KinetoTraffic& traffic) const {
    if (said != nullptr && !said->ranks.empty()) {
      std::vector<int> ranks = said->ranks;
      std::ranges::sort(ranks);
      for (const auto& [activity, members] : known_)
        if (members == ranks) return activity;
    } else if (said != nullptr) {
      if (const auto activity = by_description(said->group_description)) return *activity;
      if (const auto activity = by_size(traffic.ranks)) return *activity;
    }
    return traffic.kind == CollectiveKind::kSendReceive ? Activity::kPipeline : Activity::kOtherGroup;
  }

 private:
  // Megatron-LM says TENSOR_MODEL_PARALLEL_GROUP, device meshes of PyTorch mesh_tp.
  [[nodiscard]] static std::optional<Activity> by_description(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::pair<std::string_view, Activity> kWords[] = {
        {"expert", Activity::kExpert},    {"tensor", Activity::kTensor},   {"pipeline", Activity::kPipeline},
        {"data", Activity::kData},        {"context", Activity::kContext}, {"mesh_tp", Activity::kTensor},
        {"mesh_pp", Activity::kPipeline}, {"mesh_cp", Activity::kContext}, {"mesh_ep", Activity::kExpert},
        {"mesh_dp", Activity::kData},     {"fsdp", Activity::kData}};
    for (const auto& [word, activity] : kWords)
      if (text.find(word) != std::string::npos) return activity;
    return std::nullopt;
  }

  // Activity of the only group with this number of ranks, if there is one.
  [[nodiscard]] std::optional<Activity> by_size(int ranks) const {
    std::set<Activity> fitting;
    for (const auto& [activity, members] : known_)
      if (static_cast<int>(members.size()) == ranks) fitting.insert(activity);
    return fitting.size() == 1 ? std::optional(*fitting.begin()) : std::nullopt;
  }

  std::vector<std::pair<Activity, std::vector<int>>> known_;
};

class TraceCounter {
 public:
  TraceCounter(const MeasuredTrace& measured, const ParallelPlan& plan, int rank)
      : measured_(measured), trace_(measured.trace), groups_(plan, rank) {}

  RankOps count() {
    std::vector<Busy> busy;
    for (const KinetoKernel& kernel : trace_.kernels) {
      const WorkKind kind = work_kind(trace_, kernel);
      const Activity activity = kind == WorkKind::kCommunication ? group_of(kernel) : Activity::kCompute;
      if (kind != WorkKind::kCopy || !of_host(kernel))
        busy.push_back({activity, kernel.start, kernel.start + kernel.length});
      if (std::ranges::find(measured_.steps, kernel.step) != measured_.steps.end())
        add(kernel, kind, activity);
    }
    std::vector<Occupation> windows;
    for (const std::int32_t step : measured_.steps) {
      const auto [begin, end] = window_of(step);
      windows.push_back(occupation(busy, begin, end));
    }
    out_.occupation = mean(windows);
    average();
    return std::move(out_);
  }

 private:
  // Batches that are copied in, and losses that are copied out.
  [[nodiscard]] bool of_host(const KinetoKernel& kernel) const {
    const std::string& name = trace_.name_of(kernel);
    return name.find("HtoD") != std::string::npos || name.find("DtoH") != std::string::npos;
  }

  [[nodiscard]] Activity group_of(const KinetoKernel& kernel) const {
    const KinetoCollective* said =
        kernel.collective < 0 ? nullptr : &trace_.collectives[static_cast<std::size_t>(kernel.collective)];
    return groups_.of(said, traffic_of(trace_, kernel));
  }

  void add(const KinetoKernel& kernel, WorkKind kind, Activity activity) {
    const double seconds = to_seconds(kernel.length);
    out_.kernels += 1;
    if (kind == WorkKind::kCommunication) {
      const KinetoTraffic traffic = traffic_of(trace_, kernel);
      const std::string word = traffic.kind
                                   ? std::string(kCollectiveNames[static_cast<std::size_t>(*traffic.kind)])
                                   : short_name(trace_.name_of(kernel));
      return out_.traffic[{activity, word}].add(1, seconds);
    }
    out_.kinds[kind].add(1, seconds);
    if (kind != WorkKind::kProduct) {
      const OperatorWork work = operator_work(trace_, kernel);
      return out_
          .others[{.kind = kind,
                   .role = work.role,
                   .backward = work.backward,
                   .elements = work.elements,
                   .name = name_of(trace_, kernel)}]
          .add(1, seconds);
    }
    const std::optional<KinetoProduct> product = product_of(trace_, kernel);
    if (!product) return out_.shapeless[short_name(trace_.name_of(kernel))].add(1, seconds);
    NamedTotal& known = out_.products[product_key(product->m, product->n, product->k, product->batch)];
    known.names.insert(name_of(trace_, kernel));
    known.total.add(calls_.insert(kernel.call).second ? 1 : 0, seconds);  // once with its split-k sum
  }

  // From the first kernel of the step to that of the next; otherwise to its last end or to the host's end of
  // the step.
  [[nodiscard]] std::pair<Duration, Duration> window_of(std::int32_t step) const {
    Duration begin = Duration::max(), end{}, next = Duration::max();
    for (const KinetoKernel& kernel : trace_.kernels) {
      if (kernel.step == step) {
        begin = std::min(begin, kernel.start);
        end = std::max(end, kernel.start + kernel.length);
      } else if (kernel.step == step + 1) {
        next = std::min(next, kernel.start);
      }
    }
    SC_CHECK(begin != Duration::max(), "a step that counts has a kernel");
    if (next != Duration::max() && next > begin) return {begin, next};
    return {begin, std::max(end, begin + trace_.steps[static_cast<std::size_t>(step)].length)};
  }

  void average() {
    const auto steps = static_cast<double>(measured_.steps.size());
    const auto share = [&](OpTotal& total) {
      total.count /= steps;
      total.seconds = to_seconds(from_seconds(total.seconds / steps));  // sums of doubles leave crumbs
    };
    out_.kernels /= steps;
    for (auto& [key, item] : out_.products) share(item.total);
    for (auto& [key, total] : out_.shapeless) share(total);
    for (auto& [key, total] : out_.traffic) share(total);
    for (auto& [key, total] : out_.others) share(total);
    for (auto& [key, total] : out_.kinds) share(total);
  }

  const MeasuredTrace& measured_;
  const KinetoTrace& trace_;
  Groups groups_;
  RankOps out_;
  std::set<std::int64_t> calls_;
};

}  // namespace

RankOps measured_rank(const MeasuredTrace& measured, const ParallelPlan& plan, int rank) {
  return TraceCounter(measured, plan, rank).count();
}

}  // namespace stagecraft
