#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "sim/plan/divisors.hpp"
#include "sim/plan/parallel_plan.hpp"
#include "sim/plan/plan_checks.hpp"

namespace stagecraft {

namespace plan_checks {

namespace {

// "parallelism" of "parallelism.tensor"; empty at the top.
std::string_view section_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

}  // namespace

void Reporter::error(const std::string& path, const char* code, std::string message, std::string hint) const {
  const auto origin = request_.origins.find(path);
  diagnostics_.error({.code = code,
                      .where = origin == request_.origins.end() ? request_.fallback : origin->second,
                      .path = path,
                      .message = std::move(message),
                      .hint = std::move(hint)});
}

// Where the hint of an unknown key names what was meant, it means no other.
bool Reporter::may_be_misspelt(std::string_view path, const Diagnostic& mistake) const {
  if (mistake.code != "unknown-key" || request_.origins.contains(std::string(path))) return false;
  const auto is_hinted = [&](std::string_view name) {
    return mistake.hint.find(in_quotes(name)) != std::string::npos;
  };
  if (is_hinted(path)) return true;  // in another section
  return section_of(mistake.path) == section_of(path) &&
         (!mistake.hint.starts_with("did you mean") || is_hinted(path.substr(path.rfind('.') + 1)));
}

bool Reporter::knows_one(std::string_view path) const {
  const std::string_view section = section_of(path);
  return std::ranges::none_of(request_.mistakes, [&](const Diagnostic& mistake) {
    if (mistake.severity != Severity::kError) return false;
    const std::string& refused = mistake.path;
    return refused == path || refused.starts_with(std::string(path) + ".") ||
           may_be_misspelt(path, mistake) ||
           (!section.empty() && (refused == section || may_be_misspelt(section, mistake)));
  });
}

bool Reporter::knows(std::initializer_list<std::string_view> paths) const {
  return std::ranges::all_of(paths, [&](std::string_view path) { return knows_one(path); });
}

std::string degree_product(const ParallelSpec& spec, std::optional<std::int64_t> data) {
  std::string text = fmt::format("tensor {}", spec.tensor);
  if (spec.context > 1) text += fmt::format(" × context {}", spec.context);
  text += fmt::format(" × pipeline {}", spec.pipeline);
  if (data) text += fmt::format(" × data {}", *data);
  return text;
}

}  // namespace plan_checks

namespace {

using namespace plan_checks;

constexpr std::int64_t kMaxRanks = 1'000'000;  // far above any cluster; keeps every product in 32 bits

class Resolver {
 public:
  Resolver(const PlanRequest& request, Diagnostics& diagnostics)
      : request_(request),
        spec_(request.parallelism),
        diagnostics_(diagnostics),
        report_(request, diagnostics),
        transformer_(report_.knows({"model"}) ? std::get_if<TransformerSpec>(&request.model) : nullptr),
        chunks_known_(report_.knows({"parallelism.virtual_stages"}) &&
                      report_.knows({report_.written("parallelism.virtual_stages", "schedule")})),
        stages_(saturating_product({spec_.pipeline, spec_.virtual_stages})),
        one_replica_(saturating_product({spec_.tensor, spec_.context, spec_.pipeline})) {
    for (const int degree : {spec_.tensor, spec_.context, spec_.pipeline, spec_.virtual_stages, spec_.expert,
                             spec_.expert_tensor, spec_.data.value_or(1), spec_.zero_group.value_or(1)})
      SC_CHECK(degree > 0, "the loader refuses less than 1");
  }

  std::optional<ParallelPlan> run();

 private:
  [[nodiscard]] bool degrees_known() const;
  void check_chunks() const;
  void check_model(const TransformerSpec& model);
  void check_stage_lists(const StagesSpec& model) const;
  void check_size() const;
  void check_batch(std::optional<std::int64_t> data) const;
  std::optional<std::int64_t> find_data() const;
  void derive_data(std::int64_t gpus) const;
  void check_shard_group(std::int64_t data) const;
  void check_expert_shard_group(std::int64_t data, std::int64_t replicas) const;
  void check_order(std::int64_t data) const;
  [[nodiscard]] ParallelPlan plan(int data) const;

  const PlanRequest& request_;
  const ParallelSpec& spec_;
  Diagnostics& diagnostics_;
  Reporter report_;
  const TransformerSpec* transformer_;
  bool chunks_known_;         // virtual_stages, or what the schedule has where it is not written
  std::int64_t stages_;       // stages of the whole pipeline
  std::int64_t one_replica_;  // GPUs
  bool layers_fit_ = true;
};

void Resolver::check_chunks() const {
  if (spec_.virtual_stages == 1 || spec_.pipeline > 1) return;
  if (!chunks_known_ || !report_.knows({"parallelism.pipeline"})) return;
  const std::string said_by = report_.written("parallelism.virtual_stages", "schedule");
  report_.error(said_by, "no-pipeline",
                fmt::format("{} model chunks a rank need a pipeline, and parallelism.pipeline = 1",
                            spec_.virtual_stages),
                said_by == "schedule" ? "use a pipeline of 2 or more, or an order of one chunk"
                                      : "leave virtual_stages out, or use a pipeline of 2 or more");
}

void Resolver::check_stage_lists(const StagesSpec& model) const {
  const bool stages_known = chunks_known_ && report_.knows({"parallelism.pipeline"});
  const auto check = [&](const char* path, std::size_t size) {
    const auto entries = static_cast<std::int64_t>(size);
    if (!stages_known || entries <= 1 || entries == stages_) return;
    report_.error(path, "wrong-count", fmt::format("{} entries for {}", entries, stage_product(spec_)),
                  "one entry per stage, or one for all");
  };
  check("model.forward", model.forward.size());
  check("model.input_gradient", model.input_gradient.size());
  check("model.weight_gradient", model.weight_gradient.size());
  check("model.activation", model.activation.size());
  check("model.gradient", model.gradient.size());
  check("model.recompute", model.recompute.size());
  check("model.message", model.message.size());
  if (!spec_.stage_layers.empty())
    report_.error("parallelism.stage_layers", "contradiction", "abstract stages have no layers to split",
                  "give model.forward and the others one entry per stage");
  refuse_expert_degrees(spec_, report_);
}

void Resolver::check_size() const {
  if (!degrees_known() || !chunks_known_) return;
  const std::int64_t ranks = saturating_product({one_replica_, spec_.data.value_or(1)});
  if (ranks > kMaxRanks)
    report_.error(
        report_.written("parallelism.tensor", "parallelism.pipeline"), "too-large",
        fmt::format("{} is more than {} ranks", degree_product(spec_, spec_.data.value_or(1)), kMaxRanks),
        "use smaller degrees");
  else if (stages_ > kMaxRanks)
    report_.error(report_.written("parallelism.virtual_stages", "parallelism.pipeline"), "too-large",
                  fmt::format("{} are more than {}", stage_product(spec_), kMaxRanks), "use smaller degrees");
}

bool Resolver::degrees_known() const {
  return report_.knows(
      {"parallelism.tensor", "parallelism.context", "parallelism.pipeline", "parallelism.data"});
}

// Number of replicas: as given if it matches the cluster, or derived from its GPUs. nullopt after reporting, or
// where it is not known.
std::optional<std::int64_t> Resolver::find_data() const {
  if (!report_.knows({"parallelism.data"})) return std::nullopt;
  if (request_.cluster == nullptr) {
    // A transformer without a cluster has a mistake there.
    const bool needs_none = transformer_ == nullptr && report_.knows({"model", "cluster"});
    return needs_none ? spec_.data.value_or(1) : spec_.data;
  }
  if (!degrees_known()) return spec_.data;
  const std::int64_t gpus = request_.cluster->gpu_count();
  if (!spec_.data) {
    if (one_replica_ <= gpus && gpus % one_replica_ == 0) return gpus / one_replica_;
    derive_data(gpus);
    return std::nullopt;
  }
  const std::int64_t used = saturating_product({one_replica_, *spec_.data});
  if (used == gpus) return spec_.data;
  // A pipeline that is wrong anyway will change.
  const bool rest_is_whole = gpus % one_replica_ == 0 || !layers_fit_;
  report_.error(
      "parallelism.data", "wrong-gpu-count",
      fmt::format("{} = {} is not the cluster's {} GPUs", degree_product(spec_, spec_.data), used, gpus),
      rest_is_whole ? "leave `data` out to use what is left"
                    : fmt::format("{} = {} does not divide {} either: change it or the cluster",
                                  degree_product(spec_, {}), one_replica_, gpus));
  return spec_.data;  // as given: enough to check the batch
}

// Says why the other degrees leave no whole number of replicas.
void Resolver::derive_data(std::int64_t gpus) const {
  const auto near = [&](std::int64_t from, const auto& suits) {
    const std::int64_t others = one_replica_ / from;  // exact, or so large that no number will do
    return nearest_legal(from, gpus, [&](std::int64_t n) {
      return gpus % saturating_product({n, others}) == 0 && suits(n);
    });
  };
  const bool even = transformer_ != nullptr && spec_.stage_layers.empty();
  const auto pipelines =
      near(spec_.pipeline, [&](std::int64_t p) { return !even || splits_evenly(*transformer_, spec_, p); });
  const auto tensors = near(spec_.tensor, [&](std::int64_t t) {
    return transformer_ == nullptr || tensor_divides(*transformer_, t);
  });
  const auto contexts = near(
      spec_.context, [&](std::int64_t c) { return transformer_ == nullptr || context_divides(request_, c); });
  std::string path = report_.written("parallelism.pipeline", "parallelism.tensor");
  std::string hint = "change the cluster";
  const auto offer = [&](const char* degree, const std::vector<std::int64_t>& sizes) {
    if (sizes.empty()) return false;
    path = fmt::format("parallelism.{}", degree);
    hint = fmt::format("{} {} would do; or change the cluster", degree, any_of(sizes));
    return true;
  };
  if (!offer("pipeline", pipelines) && !offer("tensor", tensors)) offer("context", contexts);
  report_.error(path, "wrong-gpu-count",
                fmt::format("{} = {} {} the cluster's {} GPUs", degree_product(spec_, {}), one_replica_,
                            one_replica_ > gpus ? "is more than" : "does not divide", gpus),
                std::move(hint));
}

// Where the replicas are not known, whole micro-batches at least.
void Resolver::check_batch(std::optional<std::int64_t> data) const {
  const TrainingSpec& training = request_.training;
  if (!report_.knows({"training.global_batch_size", "training.micro_batch_size"})) return;
  const std::int64_t step = saturating_product({data.value_or(1), training.micro_batch_size});
  const std::int64_t batch = training.global_batch_size;
  if (batch % step != 0) {
    const std::int64_t below = batch / step * step;
    std::vector<std::int64_t> near;
    if (below > 0) near.push_back(below);
    if (step <= std::numeric_limits<std::int64_t>::max() - below) near.push_back(below + step);
    const std::string over =
        data ? fmt::format("data {} × micro_batch_size {} = {}", *data, training.micro_batch_size, step)
             : fmt::format("micro_batch_size {}", step);
    report_.error("training.global_batch_size", "not-divisible",
                  fmt::format("{} samples do not split over {}", batch, over), any_of(near) + " would");
  } else if (batch / step > std::numeric_limits<int>::max()) {
    report_.error(
        "training.global_batch_size", "too-large",
        fmt::format("{} micro-batches are more than {}", batch / step, std::numeric_limits<int>::max()),
        "use larger micro-batches");
  }
}

// ZeRO shards over blocks of the data × context ranks, and experts over as many blocks of the ranks that hold
// them.
void Resolver::check_shard_group(std::int64_t data) const {
  if (!spec_.zero_group || !report_.knows({"parallelism.zero_group"})) return;
  const std::int64_t replicas = saturating_product({data, spec_.context});
  if (replicas % *spec_.zero_group == 0) return check_expert_shard_group(data, replicas);
  const std::string ranks = spec_.context == 1
                                ? fmt::format("data {}", data)
                                : fmt::format("data {} × context {} = {}", data, spec_.context, replicas);
  report_.error("parallelism.zero_group", "not-divisible",
                fmt::format("{} does not divide the replicas, {}", *spec_.zero_group, ranks),
                would(nearest_legal(*spec_.zero_group, replicas,
                                    [&](std::int64_t group) { return replicas % group == 0; }),
                      "leave it out: all replicas share"));
}

void Resolver::check_expert_shard_group(std::int64_t data, std::int64_t replicas) const {
  const std::int64_t stage_ranks = saturating_product({spec_.tensor, spec_.context, data});
  const std::int64_t holders = saturating_product({spec_.expert, spec_.expert_tensor});
  if (stage_ranks % holders != 0 || *spec_.zero_group == replicas) return;
  const std::int64_t copies = stage_ranks / holders;
  const auto fits = [&](std::int64_t group) {
    return replicas % group == 0 && copies % (replicas / group) == 0;
  };
  if (fits(*spec_.zero_group) || !report_.knows({"parallelism.expert", "parallelism.expert_tensor"})) return;
  report_.error(
      "parallelism.zero_group", "not-divisible",
      fmt::format(
          "{} sharded copies do not divide the {} ranks that hold the same experts, tensor × context × "
          "data / (expert × expert_tensor)",
          replicas / *spec_.zero_group, copies),
      fmt::format("zero_group {} would", any_of(nearest_legal(*spec_.zero_group, replicas, fits))));
}

// Dense layers and experts of a pipeline stage live on the same ranks, whatever the order: the next stage is
// as many ranks away in the one mesh as in the other.
void Resolver::check_order(std::int64_t data) const {
  const std::int64_t stage_ranks = saturating_product({spec_.tensor, spec_.context, data});
  const std::int64_t holders = saturating_product({spec_.expert, spec_.expert_tensor});
  if (spec_.pipeline == 1 || stage_ranks % holders != 0) return;
  const auto ranks_inside = [&](const std::array<std::int64_t, kAxisCount>& degree) {
    std::int64_t product = 1;
    for (const Axis axis : spec_.order) {
      if (axis == Axis::kPipeline) break;
      product = saturating_product({product, degree[static_cast<std::size_t>(axis)]});
    }
    return product;
  };
  const std::int64_t dense = ranks_inside({spec_.tensor, spec_.context, 1, data, spec_.pipeline});
  const std::int64_t experts =
      ranks_inside({spec_.expert_tensor, 1, spec_.expert, stage_ranks / holders, spec_.pipeline});
  if (dense == experts) return;
  if (!report_.knows({"parallelism.order", "parallelism.expert", "parallelism.expert_tensor"})) return;
  report_.error(
      "parallelism.order", "contradiction",
      fmt::format("the next pipeline stage of dense layers is {} ranks away, that of experts {}: they "
                  "would not live on the same ranks",
                  dense, experts),
      "put pipeline last, or first");
}

ParallelPlan Resolver::plan(int data) const {
  const std::int64_t step = data * request_.training.micro_batch_size;
  const int stage_ranks = spec_.tensor * spec_.context * data;
  const int expert_data = stage_ranks / (spec_.expert * spec_.expert_tensor);
  return ParallelPlan{
      .tensor = spec_.tensor,
      .pipeline = spec_.pipeline,
      .data = data,
      .virtual_stages = spec_.virtual_stages,
      .context = spec_.context,
      .expert = spec_.expert,
      .expert_tensor = spec_.expert_tensor,
      .replicated_embedding = spec_.replicated_embedding,
      .shard_group = spec_.zero_group.value_or(data * spec_.context),
      .micro_batches = static_cast<int>(request_.training.global_batch_size / step),
      .placement = request_.placement,
      .stages = transformer_ != nullptr ? stage_contents(*transformer_, spec_, request_.training.recompute)
                                        : std::vector<StageContent>(static_cast<std::size_t>(stages_)),
      .mesh = RankMesh({spec_.tensor, spec_.context, 1, data, spec_.pipeline}, spec_.order),
      .expert_mesh =
          RankMesh({spec_.expert_tensor, 1, spec_.expert, expert_data, spec_.pipeline}, spec_.order)};
}

// The model on the degrees alone.
void Resolver::check_model(const TransformerSpec& model) {
  const bool gpus_matter = request_.cluster != nullptr && degrees_known();
  const std::int64_t gpus = gpus_matter ? request_.cluster->gpu_count() : 0;
  check_tensor(model, spec_, gpus, report_);
  check_embedding(model, spec_, report_);
  check_autocast(model, spec_, request_.training, report_);
  check_context(model, request_, report_);
  check_recompute(model, request_.training, report_);
  if (!report_.knows({"parallelism.pipeline", "parallelism.stage_layers", "parallelism.embedding_as_layer",
                      "parallelism.loss_as_layer"}))
    return;
  ParallelSpec split = spec_;
  // Layers that split over the chunks split over the ranks as well.
  if (!chunks_known_) split.virtual_stages = 1;
  if (chunks_known_ || spec_.stage_layers.empty()) layers_fit_ = check_layers(model, split, gpus, report_);
}

std::optional<ParallelPlan> Resolver::run() {
  const ErrorWatch errors(diagnostics_);
  check_size();
  check_chunks();
  if (transformer_ != nullptr)
    check_model(*transformer_);
  else if (report_.knows({"model"}))
    check_stage_lists(std::get<StagesSpec>(request_.model));
  const ErrorWatch errors_of_data(diagnostics_);
  const std::optional<std::int64_t> data = find_data();
  const bool placed = data && degrees_known() && errors_of_data.clean();
  check_batch(data);
  if (transformer_ != nullptr) {
    check_activations(*transformer_, request_.training, data, report_);
    check_experts(*transformer_, spec_, placed ? data : std::nullopt, report_);
  }
  if (placed) check_shard_group(*data);
  if (placed && transformer_ != nullptr && transformer_->experts) check_order(*data);
  if (!errors.clean() || !placed || !request_.mistakes.empty()) return std::nullopt;
  return plan(static_cast<int>(*data));
}

}  // namespace

std::optional<ParallelPlan> resolve(const PlanRequest& request, Diagnostics& diagnostics) {
  return Resolver(request, diagnostics).run();
}

}  // namespace stagecraft
