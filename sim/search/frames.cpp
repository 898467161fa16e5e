#include "sim/search/frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 10> kInPlace = {
    "parallelism.tensor",        "parallelism.pipeline",
    "parallelism.context",       "parallelism.data",
    "parallelism.expert",        "parallelism.virtual_stages",
    "training.micro_batch_size", "parallelism.zero_stage",
    "training.recompute",        "parallelism.sequence_parallel"};

// Do several ranks with one chunk each run the order?
bool takes_one_chunk(const ScheduleKind& kind) {
  constexpr PipelineShape kShape{.ranks = 2, .micro_batches = 8};
  return !kind.constraint(kShape);
}

// "null" takes a value away.
YamlNode given(const std::string& text, const std::string& file) {
  const bool null = text == "null";
  YamlNode node = yaml_scalar(null ? "" : text, {.file = file});
  if (null) node.kind = YamlNode::Kind::kNull;
  return node;
}

using Assignments = std::vector<Assignment>;

class FrameLoader {
 public:
  FrameLoader(const ScenarioTree& base, const SearchSpace& space, Library& library, Diagnostics& diagnostics)
      : base_(base), space_(space), library_(library), diagnostics_(diagnostics) {
    base_.open_plan = true;
  }

  std::optional<LoadedFrames> load() {
    const ErrorWatch errors(diagnostics_);
    std::vector<Assignments> choices = {taken_away()};
    for (const SearchAxis& axis : space_.axes)
      if (!set_in_place(axis)) multiply(choices, axis);
    for (const Assignments& gpus : gpu_counts())
      for (const Assignments& choice : choices) {
        Assignments all = gpus;
        all.insert(all.end(), choice.begin(), choice.end());
        add(all);
      }
    if (loaded_.frames.empty()) diagnostics_.add_all(first_mistakes_);
    if (!errors.clean()) return std::nullopt;
    std::ranges::stable_sort(loaded_.refused, std::ranges::greater(), &RefusedChoices::count);
    return std::move(loaded_);
  }

 private:
  // Keys of the scenario's own plan that other plans drop.
  [[nodiscard]] Assignments taken_away() const {
    Assignments null;
    const auto take = [&](const char* path) { null.push_back({path, given("null", "search")}); };
    take("parallelism.data");
    for (const char* degree : {"parallelism.tensor", "parallelism.pipeline", "parallelism.context"})
      if (space_.find(degree) != nullptr) take(degree);  // gives a frame all replicas that a point may have
    if (space_.find("parallelism.virtual_stages") != nullptr) take("parallelism.virtual_stages");
    if (const SearchAxis* group = space_.find("parallelism.zero_group"); group != nullptr && group->all())
      take("parallelism.zero_group");
    return null;
  }

  static void multiply(std::vector<Assignments>& choices, const SearchAxis& axis) {
    std::vector<Assignments> finer;
    for (const Assignments& choice : choices)
      for (const YamlNode& value : axis.values) finer.emplace_back(choice).push_back({axis.path, value});
    choices = std::move(finer);
  }

  [[nodiscard]] std::vector<Assignments> gpu_counts() {
    if (space_.gpus.empty()) return {{}};
    Diagnostics ignored;
    const auto own = load_scenario(base_, Assignments{}, library_, ignored);
    if (!own) return {{}};  // mistakes are reported when it is loaded
    if (!own->cluster || own->cluster->groups.size() != 1) {
      error(space_.gpus_where, "cluster", "not-supported", "GPU counts need a cluster of one kind of node",
            "leave --gpus out, or name one node");
      return {{}};
    }
    std::vector<Assignments> all;
    const int per_node = own->cluster->groups.front().node.gpus;
    for (const int gpus : space_.gpus) {
      if (gpus > per_node && gpus % per_node != 0) {
        error(space_.gpus_where, "search.gpus", "not-divisible",
              fmt::format("{} GPUs are no whole nodes of {}", gpus, per_node),
              fmt::format("{} or {} would", gpus / per_node * per_node, (gpus / per_node + 1) * per_node));
        continue;
      }
      const std::string nodes = gpus < per_node ? "null" : std::to_string(gpus / per_node);
      const std::string part = gpus < per_node ? std::to_string(gpus) : "null";
      all.push_back({{"cluster.nodes", given(nodes, "--gpus")}, {"cluster.gpus", given(part, "--gpus")}});
    }
    if (all.empty()) return {{}};  // with what else is wrong
    return all;
  }

  // The degree that splits the weights which a frame of this kind has shards of; nullptr: none does.
  [[nodiscard]] static const char* split_degree(FrameKind kind) {
    if (kind == FrameKind::kShardedStages) return "parallelism.pipeline";
    return kind == FrameKind::kShardedTensor ? "parallelism.tensor" : nullptr;
  }

  // With the smallest degree above 1 that divides the GPUs, where the space varies it; nullopt where no
  // scenario has it, or its own is kept.
  [[nodiscard]] std::optional<Scenario> with_degree(const char* path, Assignments assignments,
                                                    int gpus) const {
    if (gpus < 2 || space_.find(path) == nullptr) return std::nullopt;
    int degree = 2;
    while (gpus % degree != 0) ++degree;
    assignments.push_back({path, given(std::to_string(degree), "search")});
    Diagnostics ignored;
    return load_scenario(base_, assignments, library_, ignored);
  }

  // The frames of a choice, one of each kind; none where it makes no scenario.
  void add(const Assignments& assignments) {
    Diagnostics said;
    std::vector<SearchFrame> kinds;
    const auto own = load_scenario(base_, assignments, library_, said);
    for (std::uint32_t kind = 0; kind < kFrameKinds && !said.has_errors(); ++kind)
      if (auto frame = frame_of(assignments, static_cast<FrameKind>(kind), said)) {
        frame->own_zero = own->parallelism.zero_stage;
        kinds.push_back(*std::move(frame));
      }
    if (said.has_errors()) {
      refuse(std::move(said));
    } else {
      diagnostics_.add_all(said);
      std::ranges::move(kinds, std::back_inserter(loaded_.frames));
    }
    ++choice_;
  }

  void refuse(Diagnostics mistakes) {
    const std::vector<Diagnostic> sorted = mistakes.sorted();
    const Diagnostic& reason = *first_error(sorted);
    const auto known = std::ranges::find_if(loaded_.refused, [&](const RefusedChoices& other) {
      return other.reason.code == reason.code && other.reason.path == reason.path;
    });
    if (known != loaded_.refused.end())
      ++known->count;
    else
      loaded_.refused.push_back({.reason = reason, .choice = choice_, .count = 1});
    if (choice_ == 0) first_mistakes_ = std::move(mistakes);
  }

  std::optional<SearchFrame> frame_of(Assignments assignments, FrameKind kind, Diagnostics& said) {
    const bool sharded = kind != FrameKind::kReplicated;
    assignments.push_back({"parallelism.zero_stage", given(sharded ? "2" : "0", "search")});
    const ScenarioTree tree = assigned(base_, assignments, library_, said);
    auto scenario = read_scenario(tree, library_, said);
    if (!scenario) return std::nullopt;
    if (!scenario->cluster) {
      said.error({.code = "missing-key",
                  .where = {.file = base_.source},
                  .path = "cluster",
                  .message = "a search needs GPUs, and the scenario has no cluster",
                  .hint = "`schedule search` finds orders without any"});
      return std::nullopt;
    }
    const int gpus = scenario->cluster->gpu_count();
    if (const char* degree = split_degree(kind))
      if (auto with = with_degree(degree, assignments, gpus)) scenario = std::move(with);
    for (const SearchAxis& axis : space_.axes)  // a point writes them, and is refused as if a person had
      if (set_in_place(axis)) scenario->origins.insert_or_assign(axis.path, axis.where);
    SearchFrame frame{.scenario = *std::move(scenario), .choice = choice_, .gpus = gpus};
    if (const YamlNode* order = tree.root.find("schedule")) frame.schedule = *order;
    const YamlNode* training = tree.root.find("training");
    if (const YamlNode* again = training == nullptr ? nullptr : training->find("recompute"))
      frame.recompute = *again;
    frame.runs = run_orders(frame.scenario, space_);
    if (const ScheduleKind* order = find_schedule(frame.scenario.schedule.name)) {
      frame.chunked = order->chunked;
      frame.one_chunk = takes_one_chunk(*order);
    }
    return frame;
  }

  void error(const SourceLocation& where, const char* path, const char* code, std::string message,
             std::string hint) {
    diagnostics_.error(
        {.code = code, .where = where, .path = path, .message = std::move(message), .hint = std::move(hint)});
  }

  ScenarioTree base_;
  const SearchSpace& space_;
  Library& library_;
  Diagnostics& diagnostics_;
  std::size_t choice_ = 0;
  LoadedFrames loaded_;
  Diagnostics first_mistakes_;  // of the first choice
};

}  // namespace

bool set_in_place(const SearchAxis& axis) {
  const bool words = std::ranges::all_of(
      axis.values, [](const YamlNode& value) { return value.kind == YamlNode::Kind::kScalar; });
  const bool listed = std::ranges::find(kInPlace, axis.path) != kInPlace.end() || switch_at(axis.path);
  return axis.all() || (listed && words && !axis.loaded);
}

std::size_t frame_choices(const SearchSpace& space, std::size_t most) {
  std::size_t count = std::max<std::size_t>(space.gpus.size(), 1);
  for (const SearchAxis& axis : space.axes)
    if (count <= most && !set_in_place(axis)) count *= axis.values.size();
  return count;
}

std::size_t value_in_choice(const SearchSpace& space, const SearchAxis& axis, std::size_t choice) {
  std::size_t rest = choice;
  for (std::size_t i = space.axes.size(); i-- > 0;) {
    const SearchAxis& other = space.axes[i];
    if (set_in_place(other)) continue;
    if (&other == &axis) break;
    rest /= other.values.size();
  }
  return rest % axis.values.size();
}

std::optional<LoadedFrames> load_frames(const ScenarioTree& base, const SearchSpace& space, Library& library,
                                        Diagnostics& diagnostics) {
  return FrameLoader(base, space, library, diagnostics).load();
}

}  // namespace stagecraft
