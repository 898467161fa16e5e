// Layers over the stages of a pipeline.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "sim/plan/divisors.hpp"
#include "sim/plan/plan_checks.hpp"

namespace stagecraft {

std::int64_t counted_layers(const TransformerSpec& model, const ParallelSpec& spec) {
  return model.layers + (spec.embedding_as_layer ? 1 : 0) + (spec.loss_as_layer ? 1 : 0);
}

std::vector<std::int64_t> spread_layers(std::int64_t layers, std::int64_t stages) {
  const std::int64_t more = layers % stages;
  const std::int64_t first = (stages - more) / 2;
  std::vector<std::int64_t> spread(static_cast<std::size_t>(stages), layers / stages);
  for (std::int64_t i = first; i < first + more; ++i) ++spread[static_cast<std::size_t>(i)];
  return spread;
}

namespace plan_checks {
namespace {

std::int64_t stage_count(const ParallelSpec& spec) {
  return saturating_product({spec.pipeline, spec.virtual_stages});
}

std::string counted_text(const TransformerSpec& model, const ParallelSpec& spec) {
  std::string text = fmt::format("model.layers = {}", model.layers);
  if (counted_layers(model, spec) == model.layers) return text;
  if (spec.embedding_as_layer) text += " + 1 (embedding)";
  if (spec.loss_as_layer) text += " + 1 (loss)";
  return text + fmt::format(" = {}", counted_layers(model, spec));
}

void refuse_even_split_keys(const ParallelSpec& spec, const Reporter& report) {
  const auto refuse = [&](const char* path, bool given) {
    if (given)
      report.error(path, "contradiction", "is about the even split, and parallelism.stage_layers is given",
                   "leave one of the two out");
  };
  refuse("parallelism.embedding_as_layer", spec.embedding_as_layer);
  refuse("parallelism.loss_as_layer", spec.loss_as_layer);
}

// Two stages without layers at the end: layers of multi-token prediction, then the head alone.
//   source  Megatron-LM, core/transformer/multi_token_prediction.py @d98e8a64; layouts that end in `|m|L`.
bool mtp_has_own_stage(const TransformerSpec& model, const std::vector<std::int64_t>& layers) {
  const std::size_t n = layers.size();
  return model.mtp_layers > 0 && n > 2 && layers[n - 1] == 0 && layers[n - 2] == 0;
}

// Three ranks would hold a tied word embedding.
void refuse_third_embedding(const TransformerSpec& model, const Reporter& report) {
  if (!model.tied_embeddings) return;
  report.error(
      "parallelism.stage_layers", "not-supported",
      "a stage of multi-token prediction alone needs an embedding of its own, and the model ties its "
      "embeddings",
      "leave a layer on the last stage, which then has the prediction too; or model.tied_embeddings: "
      "false");
}

bool check_stage_layers(const TransformerSpec& model, const ParallelSpec& spec, const Reporter& report) {
  const std::vector<std::int64_t>& layers = spec.stage_layers;
  const auto entries = static_cast<std::int64_t>(layers.size());
  refuse_even_split_keys(spec, report);
  if (entries != stage_count(spec))
    report.error("parallelism.stage_layers", "wrong-count",
                 fmt::format("{} entries for {}", entries, stage_product(spec)),
                 "one entry per stage, in model order");
  std::int64_t sum = 0;
  for (const std::int64_t entry : layers)
    sum = sum > model.layers ? sum : sum + entry;  // stops before it overflows
  if (sum != model.layers)
    report.error("parallelism.stage_layers", "wrong-sum",
                 fmt::format("the entries add up to {}{}, and model.layers = {}",
                             sum > model.layers ? "at least " : "", sum, model.layers),
                 sum > model.layers ? "take layers away" : fmt::format("add {} more", model.layers - sum));
  const bool predicts_apart = mtp_has_own_stage(model, layers);
  if (predicts_apart) refuse_third_embedding(model, report);
  for (std::size_t i = 1; i + (predicts_apart ? 2 : 1) < layers.size(); ++i) {
    if (layers[i] != 0) continue;
    report.error("parallelism.stage_layers", "empty-stage",
                 fmt::format("stage {} of {} holds nothing", i, entries),
                 model.mtp_layers > 0
                     ? "only the first (embedding), the last (head) and, before a last one without layers, "
                       "that of multi-token prediction can do without layers"
                     : "only the first (embedding) and the last (head) can do without layers");
    break;
  }
  return entries == stage_count(spec) && sum == model.layers;
}

// The degrees that divide the layers and the GPUs, where there are any; else those that divide the layers.
std::vector<std::int64_t> pipelines_near(const TransformerSpec& model, const ParallelSpec& spec,
                                         std::int64_t gpus) {
  const auto near = [&](auto legal) {
    return nearest_legal(spec.pipeline, counted_layers(model, spec), legal);
  };
  const auto splits = [&](std::int64_t p) { return splits_evenly(model, spec, p); };
  const auto found = near([&](std::int64_t p) {
    return splits(p) && gpus % saturating_product({p, spec.tensor, spec.context}) == 0;
  });
  return found.empty() ? near(splits) : found;
}

bool check_even_split(const TransformerSpec& model, const ParallelSpec& spec, std::int64_t gpus,
                      const Reporter& report) {
  const std::int64_t counted = counted_layers(model, spec);
  if (counted % stage_count(spec) == 0) return true;
  const auto fits = [&](std::int64_t p, std::int64_t v) { return counted % saturating_product({p, v}) == 0; };
  const auto pipelines = pipelines_near(model, spec, gpus);
  const auto chunks =
      nearest_legal(spec.virtual_stages, counted, [&](std::int64_t v) { return fits(spec.pipeline, v); });
  std::string hint;
  if (spec.virtual_stages == 1 && !pipelines.empty())
    hint = any_of(pipelines) + " would; or ";
  else if (!pipelines.empty())
    hint = fmt::format("pipeline {} would; or ", any_of(pipelines));
  if (spec.virtual_stages > 1 && !chunks.empty())
    hint += fmt::format("virtual_stages {}{}; or ", any_of(chunks), pipelines.empty() ? " would" : "");
  const std::string path = spec.virtual_stages == 1
                               ? "parallelism.pipeline"
                               : report.written("parallelism.pipeline", "parallelism.virtual_stages");
  report.error(path, "not-divisible",
               fmt::format("{} do not divide {}", stage_product(spec), counted_text(model, spec)),
               hint + "give parallelism.stage_layers");
  return false;
}

std::int64_t layers_of_stage(const TransformerSpec& model, const ParallelSpec& spec, std::int64_t stage) {
  if (!spec.stage_layers.empty()) return spec.stage_layers[static_cast<std::size_t>(stage)];
  const std::int64_t stages = stage_count(spec);
  std::int64_t layers = counted_layers(model, spec) / stages;
  if (spec.embedding_as_layer && stage == 0) --layers;
  if (spec.loss_as_layer && stage == stages - 1) --layers;
  return layers;
}

std::int64_t recomputed_layers(const RecomputeSpec& recompute, std::int64_t layers) {
  if (recompute.granularity != Recompute::kFull) return 0;
  return recompute.method == RecomputeMethod::kBlock ? std::min(recompute.layers, layers) : layers;
}

}  // namespace

std::string stage_product(const ParallelSpec& spec) {
  if (spec.virtual_stages == 1) return fmt::format("{} stages", spec.pipeline);
  return fmt::format("pipeline {} × virtual_stages {} = {} stages", spec.pipeline, spec.virtual_stages,
                     stage_count(spec));
}

bool splits_evenly(const TransformerSpec& model, const ParallelSpec& spec, std::int64_t pipeline) {
  return counted_layers(model, spec) % saturating_product({pipeline, spec.virtual_stages}) == 0;
}

bool check_layers(const TransformerSpec& model, const ParallelSpec& spec, std::int64_t gpus,
                  const Reporter& report) {
  return spec.stage_layers.empty() ? check_even_split(model, spec, gpus, report)
                                   : check_stage_layers(model, spec, report);
}

std::vector<StageContent> stage_contents(const TransformerSpec& model, const ParallelSpec& spec,
                                         const RecomputeSpec& recompute) {
  std::vector<StageContent> stages(static_cast<std::size_t>(stage_count(spec)));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::int64_t layers = layers_of_stage(model, spec, static_cast<std::int64_t>(i));
    const std::int64_t recomputed = recomputed_layers(recompute, layers);
    stages[i] = {.layers = model.layers_between(first, first + layers),
                 .recomputed = model.layers_between(first, first + recomputed)};
    first += layers;
  }
  SC_CHECK(first == model.layers, "the stages hold the whole model");
  stages.front().embedding = true;
  stages.back().head = true;
  StageContent& predicting =
      mtp_has_own_stage(model, spec.stage_layers) ? *(stages.end() - 2) : stages.back();
  predicting.mtp_layers = model.mtp_layers;
  predicting.recomputed_mtp = model.mtp_layers > 0 && recompute.repeats_mtp();
  return stages;
}

}  // namespace plan_checks
}  // namespace stagecraft
