#include "sim/search/enumerate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "sim/plan/divisors.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/search/frames.hpp"
#include "sim/search/same_plans.hpp"

namespace stagecraft {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kMostDegree = 1'000'000;

// Values of the axes that are set in place, read once.
struct AxisValues {
  const SearchAxis* axis = nullptr;  // nullptr: the frame's
  Numbers values = {};               // values of an axis that lists them

  [[nodiscard]] bool all() const { return axis != nullptr && axis->all(); }
};

class AxisReader {
 public:
  AxisReader(const SearchSpace& space, Diagnostics& diagnostics) : space_(space), diagnostics_(diagnostics) {}

  AxisValues whole_numbers(const char* path, std::int64_t min, std::int64_t max) {
    return read(path, [&](const YamlNode& node) -> std::optional<std::int64_t> {
      const auto number = parse_integer(node.text);
      if (number && *number >= min && *number <= max) return number;
      refuse(path, node, fmt::format("is no whole number from {} to {}", min, max), "");
      return std::nullopt;
    });
  }

  // The axis, where it takes all values; values that are listed are in frames.
  AxisValues dividing(const char* path) {
    const SearchAxis* axis = space_.find(path);
    return {.axis = axis != nullptr && axis->all() ? axis : nullptr};
  }

  AxisValues flags(const char* path) {
    return read(path, [&](const YamlNode& node) -> std::optional<std::int64_t> {
      if (node.text == "true" || node.text == "false") return node.text == "true" ? 1 : 0;
      refuse(path, node, "is neither true nor false", "");
      return std::nullopt;
    });
  }

  AxisValues words(const char* path, std::span<const std::string_view> names) {
    return read(path, [&](const YamlNode& node) -> std::optional<std::int64_t> {
      const auto found = std::ranges::find(names, std::string_view(node.text));
      if (found != names.end()) return found - names.begin();
      const std::vector<std::string> known(names.begin(), names.end());
      refuse(path, node, "is not one of them", suggest(node.text, known));
      return std::nullopt;
    });
  }

  std::vector<double> of_switch(const PointSwitch& one) {
    std::vector<double> values;
    const SearchAxis* axis = in_place(one.path);
    if (axis == nullptr) return values;
    for (const YamlNode& node : axis->values) {
      const auto number = parse_number(node.text);
      if (one.share && number && *number >= 0 && *number <= 1)
        add_once(values, *number);
      else if (!one.share && (node.text == "true" || node.text == "false"))
        add_once(values, node.text == "true" ? 1.0 : 0.0);
      else
        refuse(std::string(one.path), node, one.share ? "is no share of 0 to 1" : "is neither true nor false",
               "");
    }
    return values;
  }

 private:
  [[nodiscard]] const SearchAxis* in_place(std::string_view path) const {
    const SearchAxis* axis = space_.find(path);
    return axis != nullptr && set_in_place(*axis) ? axis : nullptr;
  }

  template <class Read>
  AxisValues read(const char* path, Read value_of) {
    AxisValues values{.axis = in_place(path)};
    if (values.axis == nullptr) return values;
    for (const YamlNode& node : values.axis->values)
      if (const auto value = value_of(node)) add_once(values.values, *value);
    return values;
  }

  // A value listed twice would produce the same plans twice.
  template <class Number>
  static void add_once(std::vector<Number>& values, Number value) {
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }

  void refuse(const std::string& path, const YamlNode& node, const std::string& why, std::string hint) {
    diagnostics_.error({.code = "bad-value",
                        .where = node.where,
                        .path = path,
                        .message = in_quotes(node.text) + " " + why,
                        .hint = std::move(hint)});
  }

  const SearchSpace& space_;
  Diagnostics& diagnostics_;
};

// Layers that are divided among the stages.
std::int64_t layers_to_split(const Scenario& scenario) {
  const auto* model = std::get_if<TransformerSpec>(&scenario.model);
  return model != nullptr ? counted_layers(*model, scenario.parallelism) : kMostDegree;
}

// The options of the command line that define a space, as one source location: "--gpus 24 --vary
// parallelism.tensor=3". The scenario where there are none.
SourceLocation space_place(const SearchSpace& space, const ScenarioTree& base) {
  std::vector<std::string> options;
  const auto add = [&](const SourceLocation& where) {
    if (!where.file.empty() && where.line == 0) options.push_back(where.file);
  };
  add(space.gpus_where);
  for (const SearchAxis& axis : space.axes)
    if (!axis.usual) add(axis.where);
  return {.file = options.empty() ? base.source : join(options, " ")};
}

class Enumerator {
 public:
  Enumerator(const SearchSpace& space, SearchPlans& plans, Diagnostics& diagnostics)
      : space_(space),
        plans_(plans),
        same_(space, plans.frames),
        some_unchunked_(std::ranges::any_of(plans.frames, [](const SearchFrame& f) { return !f.chunked; })) {
    AxisReader reader(space, diagnostics);
    tensor_ = reader.whole_numbers("parallelism.tensor", 1, kMostDegree);
    pipeline_ = reader.whole_numbers("parallelism.pipeline", 1, kMostDegree);
    context_ = reader.whole_numbers("parallelism.context", 1, kMostDegree);
    data_ = reader.whole_numbers("parallelism.data", 1, kMostDegree);
    expert_ = reader.whole_numbers("parallelism.expert", 1, kMostDegree);
    expert_tensor_ = reader.dividing("parallelism.expert_tensor");
    zero_group_ = reader.dividing("parallelism.zero_group");
    chunks_ = reader.whole_numbers("parallelism.virtual_stages", 1, kMostDegree);
    micro_batch_ = reader.whole_numbers("training.micro_batch_size", 1, kMostDegree);
    zero_ = reader.whole_numbers("parallelism.zero_stage", 0, 3);
    sequence_ = reader.flags("parallelism.sequence_parallel");
    recompute_ = reader.words("training.recompute", kRecomputeNames);
    for (std::size_t i = 0; i < kPointSwitches; ++i) switches_[i] = reader.of_switch(point_switches()[i]);
  }

  // Points of the frames from `frame` on, one of each kind.
  void add(std::uint32_t frame) {
    if (same_.is_repeated(frame)) return;
    const SearchFrame& here = plans_.frames[frame];
    scenario_ = &here.scenario;
    gpus_ = here.gpus;
    chunked_ = here.chunked;
    one_chunk_ = here.one_chunk;
    SearchPoint point{.frame = frame};
    point.own_recompute = recompute_.axis == nullptr;
    const ParallelSpec& own = scenario_->parallelism;
    point.expert_tensor = own.expert_tensor;
    point.zero_group = own.zero_group.value_or(0);
    const auto* model = std::get_if<TransformerSpec>(&scenario_->model);
    const std::int64_t heads = model != nullptr ? model->heads : 1;
    has_experts_ = model != nullptr && model->numbers().with_experts() > 0;
    for (const std::int64_t t : choices(tensor_, own.tensor, gpus_)) {
      if (gpus_ % t != 0 || (tensor_.all() && heads % t != 0)) continue;
      point.tensor = static_cast<int>(t);
      for (const std::int64_t p : choices(pipeline_, own.pipeline, gpus_ / t)) {
        if (gpus_ % (t * p) != 0 || (pipeline_.all() && p > layers_to_split(*scenario_))) continue;
        point.pipeline = static_cast<int>(p);
        add_contexts(point);
      }
    }
  }

  // Why no frame has a point: an axis whose values divide none of the numbers of GPUs, or all together.
  [[nodiscard]] std::string at_fault() const {
    std::set<int> gpus;
    for (const SearchFrame& frame : plans_.frames) gpus.insert(frame.gpus);
    const std::string of = fmt::format("{} GPUs", fmt::join(gpus, ", "));
    for (const AxisValues* axis : {&tensor_, &pipeline_, &context_, &data_}) {
      const auto divides = [&](std::int64_t value) {
        return std::ranges::any_of(gpus, [&](int count) { return count % value == 0; });
      };
      if (axis->values.empty() || std::ranges::any_of(axis->values, divides)) continue;
      return fmt::format("{} {} does not divide {}", axis->axis->path, fmt::join(axis->values, " or "), of);
    }
    return "no choice of its degrees multiplies to " + of;
  }

  [[nodiscard]] bool too_many() const { return plans_.points.size() > kMostCandidates; }

  // Of the axes that share the GPUs among them.
  void note_unused() {
    note_unused(tensor_, &SearchPoint::tensor);
    note_unused(pipeline_, &SearchPoint::pipeline);
    note_unused(context_, &SearchPoint::context);
    note_unused(data_, &SearchPoint::data);
  }

 private:
  void note_unused(const AxisValues& axis, int SearchPoint::*degree) {
    for (const std::int64_t value : axis.values)
      if (std::ranges::find(plans_.points, value, degree) == plans_.points.end())
        plans_.unused.push_back({.path = axis.axis->path, .value = value});
  }

  [[nodiscard]] Numbers choices(const AxisValues& axis, std::int64_t own, std::int64_t divided) const {
    if (axis.axis == nullptr) return {own};
    if (!axis.all()) return axis.values;
    Numbers numbers = divisors_of(divided);
    if (axis.axis->at_most > 0)
      std::erase_if(numbers, [&](std::int64_t n) { return n > axis.axis->at_most; });
    return numbers;
  }

  void add_contexts(SearchPoint point) {
    const std::int64_t rest = gpus_ / (point.tensor * point.pipeline);
    for (const std::int64_t c : choices(context_, scenario_->parallelism.context, rest)) {
      if (rest % c != 0) continue;
      const std::int64_t tokens = context_.all() ? context_.axis->tokens_each : 0;
      if (c > 1 && tokens > 0 && scenario_->training.sequence_length / c < tokens) continue;
      point.context = static_cast<int>(c);
      point.data = static_cast<int>(rest / c);
      if (!data_.values.empty() && std::ranges::find(data_.values, rest / c) == data_.values.end()) continue;
      add_experts(point);
    }
  }

  void add_experts(SearchPoint point) {
    const auto* model = std::get_if<TransformerSpec>(&scenario_->model);
    const ParallelSpec& own = scenario_->parallelism;
    const bool experts = model != nullptr && model->experts.has_value();
    const std::int64_t ranks = std::int64_t{point.tensor} * point.context * point.data;
    const Numbers degrees = !experts && expert_.all()
                                ? Numbers{1}
                                : choices(expert_, own.expert, experts ? model->experts->count : 1);
    for (const std::int64_t e : degrees) {
      point.expert = static_cast<int>(e);
      for (const std::int64_t split : expert_splits(ranks, e)) {
        if (expert_.all() && ranks % (e * split) != 0) continue;
        point.expert_tensor = static_cast<int>(split);
        add_chunks(point);
      }
    }
  }

  // Ways to split each expert of ranks that hold `expert` groups of them.
  [[nodiscard]] Numbers expert_splits(std::int64_t ranks, std::int64_t expert) const {
    const auto* model = std::get_if<TransformerSpec>(&scenario_->model);
    if (!expert_tensor_.all()) return {scenario_->parallelism.expert_tensor};
    if (model == nullptr || !model->experts || ranks % expert != 0) return {1};
    return choices(expert_tensor_, 1, std::gcd(model->experts->ffn_hidden, ranks / expert));
  }

  void add_chunks(SearchPoint point) {
    for (const std::int64_t v : chunk_counts(point.pipeline)) {
      point.virtual_stages = static_cast<int>(v);
      add_micro_batches(point);
    }
  }

  [[nodiscard]] Numbers chunk_counts(std::int64_t pipeline) const {
    if (!chunked_) return {1};
    if (!chunks_.all()) return choices(chunks_, scenario_->parallelism.virtual_stages, 1);
    if (pipeline == 1) return one_chunk_ || !some_unchunked_ ? Numbers{1} : Numbers{};
    const std::int64_t layers = layers_to_split(*scenario_) / pipeline;
    const bool even = !space_.uneven_stages && layers_to_split(*scenario_) % pipeline == 0;
    const std::int64_t most = chunks_.axis->at_most > 0 ? std::min(layers, chunks_.axis->at_most) : layers;
    Numbers counts;
    for (std::int64_t v = one_chunk_ ? 1 : 2; v <= most; ++v)
      if (!even || layers % v == 0 || is_own_split(pipeline * v)) counts.push_back(v);
    return counts;
  }

  [[nodiscard]] bool is_own_split(std::int64_t stages) const {
    return std::ssize(scenario_->parallelism.stage_layers) == stages;
  }

  void add_micro_batches(SearchPoint point) {
    const std::int64_t batch = scenario_->training.global_batch_size;
    point.global_batch = batch;
    if (space_.batch_at_most && batch >= point.data) point.global_batch = batch / point.data * point.data;
    const std::int64_t share = std::max<std::int64_t>(point.global_batch / point.data, 1);
    for (const std::int64_t b : choices(micro_batch_, scenario_->training.micro_batch_size, share)) {
      point.micro_batch = b;
      add_training(point);
    }
  }

  void add_training(SearchPoint point) {
    const ParallelSpec& own = scenario_->parallelism;
    Numbers flags = sequence_.axis == nullptr ? Numbers{own.sequence_parallel ? 1 : 0} : sequence_.values;
    if (point.tensor == 1) flags = {std::ranges::min(flags)};
    Numbers stages = zero_.axis == nullptr ? Numbers{plans_.frames[point.frame].own_zero} : zero_.values;
    if (!has_replicas(point)) stages = different_without_shards(stages);
    const Numbers again = recompute_.axis == nullptr ? Numbers{0} : recompute_.values;
    for (const std::int64_t flag : flags) {
      point.sequence_parallel = flag != 0;
      for (const std::int64_t kind : again) {
        point.recompute = static_cast<Recompute>(kind);
        add_zero_stages(point, stages);
      }
    }
  }

  // Where nobody shares, stages of ZeRO differ only in code that software runs under ZeRO all the same: it keeps
  // weights in fp8, and copies buckets in one way under ZeRO 1 and in another above. The smallest of those that
  // are alike.
  [[nodiscard]] Numbers different_without_shards(Numbers stages) const {
    const OptionsSpec& options = scenario_->options;
    const bool fp8 = scenario_->training.precision == Precision::kFp8;
    std::set<std::pair<bool, std::int64_t>> known;
    const auto is_known = [&](std::int64_t zero) {
      const bool holds_fp8 = fp8 && options.holds_fp8(static_cast<int>(zero));
      const std::int64_t copies = options.memory.bucket_copies ? std::min<std::int64_t>(zero, 2) : 0;
      return !known.emplace(holds_fp8, copies).second;
    };
    std::ranges::sort(stages);
    std::erase_if(stages, is_known);
    return stages;
  }

  // `point` has the first frame of its choice. Those of sharded weights may run other software.
  void add_zero_stages(SearchPoint point, const Numbers& stages) {
    const std::uint32_t first = point.frame;
    for (const std::int64_t zero : stages) {
      point.zero_stage = static_cast<int>(zero);
      point.frame = first + static_cast<std::uint32_t>(frame_kind(point));
      if (repeats_for_nothing(point)) continue;
      for (const std::int64_t group : shard_groups(point)) {
        point.zero_group = static_cast<int>(group);
        add_switches(point, 0);
      }
    }
  }

  [[nodiscard]] FrameKind frame_kind(const SearchPoint& point) const {
    if (point.zero_stage < 2 || !has_replicas(point)) return FrameKind::kReplicated;
    if (point.pipeline > 1) return FrameKind::kShardedStages;
    return point.tensor > 1 ? FrameKind::kShardedTensor : FrameKind::kSharded;
  }

  [[nodiscard]] bool has_replicas(const SearchPoint& point) const {
    return hold_weights_twice(point.replicas(), point, has_experts_);
  }

  // 0 is all replicas; a group of one shards nothing, which ZeRO 0 is.
  [[nodiscard]] Numbers shard_groups(const SearchPoint& point) const {
    if (!zero_group_.all()) return {scenario_->parallelism.zero_group.value_or(0)};
    if (point.zero_stage == 0 || point.replicas() == 1) return {0};
    Numbers groups = choices(zero_group_, 0, point.replicas());
    std::erase(groups, 1);
    std::ranges::replace(groups, point.replicas(), 0);
    return groups;
  }

  // A flash kernel recomputes the attention core itself, so selective recompute of the core is no better than
  // none, where that is tried. Software that runs the kernel again loses time and saves about a thousandth of the
  // memory, which a search does without.
  [[nodiscard]] bool repeats_for_nothing(const SearchPoint& point) const {
    const Scenario& scenario = plans_.frames[point.frame].scenario;
    return point.recompute == Recompute::kSelective && scenario.training.attention == Attention::kFlash &&
           scenario.options.selective == kCoreAttentionOnly &&
           std::ranges::find(recompute_.values, static_cast<std::int64_t>(Recompute::kNone)) !=
               recompute_.values.end();
  }

  void add_switches(SearchPoint point, std::size_t next) {
    if (too_many()) return;
    if (next == kPointSwitches) return put(point);
    const PointSwitch& one = point_switches()[next];
    std::span<const double> values = switches_[next];
    const std::array<double, 1> own = {one.get(*scenario_)};
    if (values.empty()) values = own;
    for (const double value : values) {
      point.switches[next] = value;
      add_switches(point, next + 1);
    }
  }

  void put(SearchPoint point) {
    SearchFrame& frame = plans_.frames[point.frame];
    if (!(point.pipeline > 1 ? frame.runs.stages : frame.runs.one_stage)) {
      if (point.pipeline > 1) ++frame.left_aside;  // with one stage all orders are the same
      return;
    }
    point.stage_layers = split_of(point);
    if (!same_.is_new(point)) return;
    const Numbers& own = scenario_->parallelism.stage_layers;
    if (!own.empty() && point.stage_layers != own) ++plans_.without_own_layers;
    plans_.points.push_back(std::move(point));
  }

  [[nodiscard]] Numbers split_of(const SearchPoint& point) const {
    const ParallelSpec& own = scenario_->parallelism;
    const auto* model = std::get_if<TransformerSpec>(&scenario_->model);
    const std::int64_t stages = std::int64_t{point.pipeline} * point.virtual_stages;
    const bool listed = space_.find("parallelism.stage_layers") != nullptr;
    if (space_.fixed_stage_layers || listed || model == nullptr || is_own_split(stages))
      return own.stage_layers;
    const bool spreads = space_.uneven_stages && !own.embedding_as_layer && !own.loss_as_layer;
    if (!spreads || model->layers % stages == 0) return {};
    return spread_layers(model->layers, stages);
  }

  const SearchSpace& space_;
  SearchPlans& plans_;
  SamePlans same_;
  bool some_unchunked_;
  AxisValues tensor_, pipeline_, context_, data_, expert_, expert_tensor_, zero_group_, chunks_, micro_batch_,
      zero_, sequence_, recompute_;
  std::array<std::vector<double>, kPointSwitches> switches_;
  // Properties of the current frame.
  const Scenario* scenario_ = nullptr;
  int gpus_ = 0;
  bool chunked_ = false, one_chunk_ = true, has_experts_ = false;
};

}  // namespace

std::optional<SearchPlans> enumerate_plans(const ScenarioTree& base, const SearchSpace& space,
                                           Library& library, Diagnostics& diagnostics) {
  const auto refuse = [&](const char* code, std::string message, std::string hint) {
    diagnostics.error({.code = code,
                       .where = space_place(space, base),
                       .path = "search",
                       .message = std::move(message),
                       .hint = std::move(hint)});
    return std::nullopt;
  };
  const auto too_many = [&](std::size_t most, const char* what) {
    return refuse(
        "too-many",
        fmt::format("the space has more than {} {}", with_thousands(static_cast<std::int64_t>(most)), what),
        "list fewer values with --vary, or --fix paths");
  };
  if (frame_choices(space, kMostFrameChoices) > kMostFrameChoices)
    return too_many(kMostFrameChoices, "choices of schedules, numbers of GPUs and varied keys");
  auto loaded = load_frames(base, space, library, diagnostics);
  if (!loaded) return std::nullopt;
  SearchPlans plans{.frames = std::move(loaded->frames), .points = {}, .refused = std::move(loaded->refused)};
  Enumerator enumerator(space, plans, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  for (std::uint32_t i = 0; i < plans.frames.size() && !enumerator.too_many(); i += kFrameKinds)
    enumerator.add(i);
  if (enumerator.too_many()) return too_many(kMostCandidates, "plans");
  if (plans.points.empty()) {
    const auto aside =
        std::ranges::find_if(plans.frames, [](const SearchFrame& f) { return f.left_aside > 0; });
    if (aside == plans.frames.end())
      return refuse("no-points", "the space has no plan: " + enumerator.at_fault(),
                    "let the degrees divide the GPUs, or vary them");
    return refuse("no-points",
                  fmt::format("the space has no plan whose order {} runs", aside->scenario.options.software),
                  "--vary schedule=1f1b tries an order all the same");
  }
  enumerator.note_unused();
  return plans;
}

}  // namespace stagecraft
