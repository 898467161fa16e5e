#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "sim/plan/divisors.hpp"
#include "sim/plan/parallel_plan.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kMaxRanks = 1'000'000;      // far above any cluster; keeps every product in 32 bits
constexpr std::int64_t kMaxListedTensor = 65'536;  // tensor sizes that a hint looks through
constexpr std::size_t kMaxListed = 16;             // and that it prints

class Resolver {
 public:
  Resolver(const PlanRequest& request, Diagnostics& diagnostics)
      : request_(request),
        spec_(request.parallelism),
        transformer_(std::get_if<TransformerSpec>(&request.model)),
        diagnostics_(diagnostics),
        stages_(saturating_product({spec_.pipeline, spec_.virtual_stages})) {
    SC_CHECK(spec_.tensor > 0 && spec_.pipeline > 0 && spec_.virtual_stages > 0,
             "the loader refuses less than 1");
    SC_CHECK(spec_.data.value_or(1) > 0, "the loader refuses less than 1");
  }

  std::optional<ParallelPlan> run();

 private:
  // What went wrong with the value at `path`.
  void error(const std::string& path, const char* code, std::string message, std::string hint = {});
  // The first of the two that the user wrote.
  [[nodiscard]] std::string written(const char* path, const char* otherwise) const {
    return request_.origins.contains(path) ? path : otherwise;
  }
  [[nodiscard]] bool tensor_divides(const TransformerSpec& model, std::int64_t tensor) const;
  [[nodiscard]] std::string stage_product() const;

  void check_tensor(const TransformerSpec& model);
  void check_sequence(const TransformerSpec& model);
  void check_chunks();
  void check_layers(const TransformerSpec& model);
  void check_stage_layers(const TransformerSpec& model);
  void check_stage_lists(const StagesSpec& model);
  void check_size();
  std::optional<std::int64_t> find_data();
  void derive_data(std::int64_t gpus);
  void check_batch(std::int64_t data);
  [[nodiscard]] std::vector<StageContent> contents() const;

  const PlanRequest& request_;
  const ParallelSpec& spec_;
  const TransformerSpec* transformer_;
  Diagnostics& diagnostics_;
  std::int64_t stages_;  // of the whole pipeline
  bool layers_fit_ = true;
};

void Resolver::error(const std::string& path, const char* code, std::string message, std::string hint) {
  const auto origin = request_.origins.find(path);
  diagnostics_.error({.code = code,
                      .where = origin == request_.origins.end() ? request_.fallback : origin->second,
                      .path = path,
                      .message = std::move(message),
                      .hint = std::move(hint)});
}

std::string Resolver::stage_product() const {
  if (spec_.virtual_stages == 1) return fmt::format("{} stages", spec_.pipeline);
  return fmt::format("pipeline {} × virtual_stages {} = {} stages", spec_.pipeline, spec_.virtual_stages,
                     stages_);
}

bool Resolver::tensor_divides(const TransformerSpec& model, std::int64_t tensor) const {
  return model.heads % tensor == 0 && model.ffn_hidden % tensor == 0 &&
         (model.kv_heads % tensor == 0 || tensor % model.kv_heads == 0);
}

// Heads and the feed-forward width are split over the tensor ranks; key/value heads are split or copied
// evenly. The vocabulary need not divide: frameworks pad it.
void Resolver::check_tensor(const TransformerSpec& model) {
  if (tensor_divides(model, spec_.tensor)) return;
  std::string message;
  if (model.heads % spec_.tensor != 0)
    message = fmt::format("{} does not divide model.heads = {}", spec_.tensor, model.heads);
  else if (model.ffn_hidden % spec_.tensor != 0)
    message = fmt::format("{} does not divide model.ffn_hidden = {}", spec_.tensor, model.ffn_hidden);
  else
    message = fmt::format("{} neither divides model.kv_heads = {} nor is a multiple of it", spec_.tensor,
                          model.kv_heads);
  std::vector<std::int64_t> legal;
  const std::int64_t last = std::min(model.heads, kMaxListedTensor);
  for (std::int64_t t = 1; t <= last && legal.size() < kMaxListed; ++t)
    if (tensor_divides(model, t)) legal.push_back(t);
  error("parallelism.tensor", "not-divisible", std::move(message), "use " + any_of(legal));
}

void Resolver::check_sequence(const TransformerSpec& model) {
  const std::int64_t length = request_.training.sequence_length;
  if (!spec_.sequence_parallel || length % spec_.tensor == 0) return;
  const std::int64_t last = std::max(model.max_sequence_length, length);
  const auto near = nearest_legal(length, last, [&](std::int64_t s) { return s % spec_.tensor == 0; });
  error(written("training.sequence_length", "parallelism.sequence_parallel"), "not-divisible",
        fmt::format("{} tokens do not split over tensor {}, as sequence_parallel asks", length, spec_.tensor),
        near.empty() ? "or set parallelism.sequence_parallel: false"
                     : fmt::format("{} would; or set parallelism.sequence_parallel: false", any_of(near)));
}

void Resolver::check_chunks() {
  if (spec_.virtual_stages > 1 && spec_.pipeline == 1)
    error("parallelism.virtual_stages", "no-pipeline",
          fmt::format("{} model chunks a rank need a pipeline, and parallelism.pipeline = 1",
                      spec_.virtual_stages),
          "leave virtual_stages out, or use a pipeline of 2 or more");
}

void Resolver::check_layers(const TransformerSpec& model) {
  if (!spec_.stage_layers.empty()) return check_stage_layers(model);
  if (model.layers % stages_ == 0) return;
  layers_fit_ = false;
  const auto fits = [&](std::int64_t p, std::int64_t v) {
    return model.layers % saturating_product({p, v}) == 0;
  };
  const auto pipelines = nearest_legal(spec_.pipeline, model.layers,
                                       [&](std::int64_t p) { return fits(p, spec_.virtual_stages); });
  const auto chunks = nearest_legal(spec_.virtual_stages, model.layers,
                                    [&](std::int64_t v) { return fits(spec_.pipeline, v); });
  std::string hint;
  if (spec_.virtual_stages == 1 && !pipelines.empty())
    hint = any_of(pipelines) + " would; or ";
  else if (!pipelines.empty())
    hint = fmt::format("pipeline {} would; or ", any_of(pipelines));
  if (spec_.virtual_stages > 1 && !chunks.empty())
    hint += fmt::format("virtual_stages {}{}; or ", any_of(chunks), pipelines.empty() ? " would" : "");
  error(written("parallelism.pipeline", "parallelism.virtual_stages"), "not-divisible",
        fmt::format("{} do not divide model.layers = {}", stage_product(), model.layers),
        hint + "give parallelism.stage_layers");
}

void Resolver::check_stage_layers(const TransformerSpec& model) {
  const std::vector<std::int64_t>& layers = spec_.stage_layers;
  const auto entries = static_cast<std::int64_t>(layers.size());
  if (entries != stages_)
    error("parallelism.stage_layers", "wrong-count",
          fmt::format("{} entries for {}", entries, stage_product()), "one entry per stage, in model order");
  std::int64_t sum = 0;
  for (const std::int64_t entry : layers)
    sum = sum > model.layers ? sum : sum + entry;  // stops before it overflows
  if (sum != model.layers)
    error("parallelism.stage_layers", "wrong-sum",
          fmt::format("the entries add up to {}{}, and model.layers = {}",
                      sum > model.layers ? "at least " : "", sum, model.layers));
  for (std::size_t i = 1; i + 1 < layers.size(); ++i) {
    if (layers[i] != 0) continue;
    error("parallelism.stage_layers", "empty-stage", fmt::format("stage {} of {} holds nothing", i, entries),
          "only the first (embedding) and the last (head) can do without layers");
    break;
  }
  layers_fit_ = entries == stages_ && sum == model.layers;
}

void Resolver::check_stage_lists(const StagesSpec& model) {
  const auto check = [&](const char* path, std::size_t size) {
    const auto entries = static_cast<std::int64_t>(size);
    if (entries <= 1 || entries == stages_) return;
    error(path, "wrong-count", fmt::format("{} entries for {}", entries, stage_product()),
          "one entry per stage, or one for all");
  };
  check("model.forward", model.forward.size());
  check("model.input_gradient", model.input_gradient.size());
  check("model.weight_gradient", model.weight_gradient.size());
  check("model.activation", model.activation.size());
  check("model.gradient", model.gradient.size());
  if (!spec_.stage_layers.empty())
    error("parallelism.stage_layers", "contradiction", "abstract stages have no layers to split",
          "give model.forward and the others one entry per stage");
}

void Resolver::check_size() {
  const std::int64_t ranks = saturating_product({spec_.tensor, spec_.pipeline, spec_.data.value_or(1)});
  if (ranks > kMaxRanks)
    error(written("parallelism.tensor", "parallelism.pipeline"), "too-large",
          fmt::format("tensor {} × pipeline {} × data {} is more than {} ranks", spec_.tensor, spec_.pipeline,
                      spec_.data.value_or(1), kMaxRanks));
  else if (stages_ > kMaxRanks)
    error(written("parallelism.virtual_stages", "parallelism.pipeline"), "too-large",
          fmt::format("{} are more than {}", stage_product(), kMaxRanks));
}

// Replicas: as given and matching the cluster, or what its GPUs leave. nullopt after reporting.
std::optional<std::int64_t> Resolver::find_data() {
  if (request_.cluster == nullptr) return spec_.data.value_or(1);
  const std::int64_t gpus = request_.cluster->gpu_count();
  const std::int64_t one = saturating_product({spec_.tensor, spec_.pipeline});
  if (!spec_.data) {
    if (one <= gpus && gpus % one == 0) return gpus / one;
    derive_data(gpus);
    return std::nullopt;
  }
  const std::int64_t used = saturating_product({one, *spec_.data});
  if (used == gpus) return spec_.data;
  const bool rest_is_whole = gpus % one == 0 || !layers_fit_;  // a pipeline that is wrong anyway will change
  error("parallelism.data", "wrong-gpu-count",
        fmt::format("tensor {} × pipeline {} × data {} = {} is not the cluster's {} GPUs", spec_.tensor,
                    spec_.pipeline, *spec_.data, used, gpus),
        rest_is_whole
            ? "leave `data` out to use what is left"
            : fmt::format("tensor × pipeline = {} does not divide {} either: change it or the cluster", one,
                          gpus));
  return spec_.data;  // as given: enough to check the batch
}

// Says why tensor and pipeline leave no whole number of replicas.
void Resolver::derive_data(std::int64_t gpus) {
  const std::int64_t one = saturating_product({spec_.tensor, spec_.pipeline});
  const auto near = [&](std::int64_t from, std::int64_t other) {
    return nearest_legal(from, gpus, [&](std::int64_t n) {
      return gpus % saturating_product({n, other}) == 0;
    });
  };
  const auto pipelines = near(spec_.pipeline, spec_.tensor);
  const auto tensors = near(spec_.tensor, spec_.pipeline);
  std::string hint = "change the cluster";
  if (!pipelines.empty())
    hint = fmt::format("pipeline {} would do; or change the cluster", any_of(pipelines));
  else if (!tensors.empty())
    hint = fmt::format("tensor {} would do; or change the cluster", any_of(tensors));
  error(written("parallelism.pipeline", "parallelism.tensor"), "wrong-gpu-count",
        fmt::format("tensor {} × pipeline {} = {} {} the cluster's {} GPUs", spec_.tensor, spec_.pipeline,
                    one, one > gpus ? "is more than" : "does not divide", gpus),
        std::move(hint));
}

void Resolver::check_batch(std::int64_t data) {
  const TrainingSpec& training = request_.training;
  const std::int64_t step = saturating_product({data, training.micro_batch_size});
  const std::int64_t batch = training.global_batch_size;
  if (batch % step != 0) {
    const std::int64_t below = batch / step * step;
    std::vector<std::int64_t> near;
    if (below > 0) near.push_back(below);
    if (step <= std::numeric_limits<std::int64_t>::max() - below) near.push_back(below + step);
    error("training.global_batch_size", "not-divisible",
          fmt::format("{} samples do not split over data {} × micro_batch_size {} = {}", batch, data,
                      training.micro_batch_size, step),
          any_of(near) + " would");
  } else if (batch / step > std::numeric_limits<int>::max()) {
    error("training.global_batch_size", "too-large",
          fmt::format("{} micro-batches are more than {}", batch / step, std::numeric_limits<int>::max()));
  }
}

std::vector<StageContent> Resolver::contents() const {
  std::vector<StageContent> stages(static_cast<std::size_t>(stages_));
  if (transformer_ == nullptr) return stages;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].layers = spec_.stage_layers.empty() ? transformer_->layers / stages_ : spec_.stage_layers[i];
    if (request_.training.recompute.granularity == Recompute::kFull) stages[i].recomputed = stages[i].layers;
  }
  stages.front().embedding = true;
  stages.back().head = true;
  return stages;
}

std::optional<ParallelPlan> Resolver::run() {
  const std::size_t before = diagnostics_.error_count();
  check_size();
  check_chunks();
  if (transformer_ != nullptr) {
    check_tensor(*transformer_);
    check_sequence(*transformer_);
    check_layers(*transformer_);
  } else {
    check_stage_lists(std::get<StagesSpec>(request_.model));
  }
  const std::optional<std::int64_t> data = find_data();
  if (data) check_batch(*data);
  if (diagnostics_.error_count() != before || !data) return std::nullopt;

  const int replicas = static_cast<int>(*data);
  const std::int64_t step = *data * request_.training.micro_batch_size;
  return ParallelPlan{
      .tensor = spec_.tensor,
      .pipeline = spec_.pipeline,
      .data = replicas,
      .virtual_stages = spec_.virtual_stages,
      .shard_group = replicas,
      .micro_batches = static_cast<int>(request_.training.global_batch_size / step),
      .stages = contents(),
      .mesh = RankMesh({spec_.tensor, 1, 1, replicas, spec_.pipeline}, spec_.order),
      .expert_mesh = RankMesh({1, 1, 1, spec_.tensor * replicas, spec_.pipeline}, spec_.order)};
}

}  // namespace

std::optional<ParallelPlan> resolve(const PlanRequest& request, Diagnostics& diagnostics) {
  return Resolver(request, diagnostics).run();
}

}  // namespace stagecraft
