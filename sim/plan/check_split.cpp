// Heads, widths, tokens and experts over ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/plan/divisors.hpp"
#include "sim/plan/plan_checks.hpp"

namespace stagecraft::plan_checks {

namespace {

constexpr std::int64_t kMaxListedTensor = 65'536;  // tensor sizes that a hint looks through
constexpr std::size_t kMaxListed = 16;             // most lengths listed and printed

std::string why_tensor_does_not_divide(const TransformerSpec& model, std::int64_t tensor) {
  if (model.heads % tensor != 0)
    return fmt::format("{} does not divide model.heads = {}", tensor, model.heads);
  if (model.has_dense_layers() && model.ffn_hidden % tensor != 0)
    return fmt::format("{} does not divide model.ffn_hidden = {}", tensor, model.ffn_hidden);
  if (model.experts && model.experts->shared_width() % tensor != 0)
    return fmt::format("{} does not divide the width of the shared experts, {} × {} = {}", tensor,
                       model.experts->shared, model.experts->shared_ffn_hidden,
                       model.experts->shared_width());
  return fmt::format("{} neither divides model.kv_heads = {} nor is a multiple of it", tensor,
                     model.kv_heads);
}

// Pieces that the sequence is cut into. A causal ring deals each rank one early and one late chunk, so that
// all have the same work.
//   source  Brandon et al., Striped Attention (arXiv 2311.09431) for the imbalance; Megatron-LM and
//           TransformerEngine cut into 2c chunks.
std::int64_t context_pieces(const ParallelSpec& spec, std::int64_t context) {
  const bool chunks = context > 1 && spec.context_exchange != ContextExchange::kAllToAll;
  return chunks ? saturating_product({2, context}) : context;
}

void check_sequence(const TransformerSpec& model, const PlanRequest& request, const Reporter& report) {
  const ParallelSpec& spec = request.parallelism;
  const std::int64_t length = request.training.sequence_length;
  const std::int64_t pieces = context_pieces(spec, spec.context);
  const std::int64_t last = std::max(model.max_sequence_length, length);
  if (!report.knows({"training.sequence_length", "parallelism.context", "parallelism.context_exchange"}))
    return;
  if (length % pieces != 0) {
    const auto near =
        nearest_legal(spec.context, length, [&](std::int64_t c) { return context_divides(request, c); });
    report.error("parallelism.context", "not-divisible",
                 pieces == spec.context
                     ? fmt::format("{} does not divide training.sequence_length = {}", spec.context, length)
                     : fmt::format("2 × {} = {} chunks do not divide training.sequence_length = {}",
                                   spec.context, pieces, length),
                 would(near, "use another training.sequence_length"));
    return;
  }
  if (!spec.sequence_parallel || length / spec.context % spec.tensor == 0) return;
  if (!tensor_divides(model, spec.tensor)) return;
  if (!report.knows({"parallelism.sequence_parallel", "parallelism.tensor"})) return;
  const auto near = nearest_legal(
      length, last, [&](std::int64_t s) { return s % pieces == 0 && s / spec.context % spec.tensor == 0; });
  const std::string ranks = spec.context == 1
                                ? fmt::format("tensor {}", spec.tensor)
                                : fmt::format("context {} × tensor {}", spec.context, spec.tensor);
  const std::string said_by = report.written("parallelism.sequence_parallel", "parallelism.tensor");
  report.error(report.written("training.sequence_length", said_by.c_str()), "not-divisible",
               fmt::format("{} tokens do not split over {}, as sequence_parallel asks", length, ranks),
               (near.empty() ? "" : any_of(near) + " would; or ") +
                   (model.experts ? "set parallelism.tensor: 1: experts need sequence_parallel"
                                  : "set parallelism.sequence_parallel: false"));
}

// All-to-all turns a part of the tokens with all heads of a rank into all tokens with a part of its heads.
//   source  Jacobs et al., DeepSpeed-Ulysses (arXiv 2309.14509), section 3.1.
void check_exchanged_heads(const TransformerSpec& model, const ParallelSpec& spec, const Reporter& report) {
  if (spec.context == 1 || spec.context_exchange != ContextExchange::kAllToAll) return;
  if (!report.knows({"parallelism.tensor", "parallelism.context", "parallelism.context_exchange"})) return;
  if (!tensor_divides(model, spec.tensor)) return;
  const std::int64_t heads = model.heads / spec.tensor;
  const std::int64_t kv_heads = std::max<std::int64_t>(model.kv_heads / spec.tensor, 1);
  const bool heads_split = heads % spec.context == 0;
  if (heads_split && kv_heads % spec.context == 0) return;
  const auto near =
      nearest_legal(spec.context, heads, [&](std::int64_t c) { return heads % c == 0 && kv_heads % c == 0; });
  report.error(
      "parallelism.context", "not-divisible",
      fmt::format("{} does not divide the {} {} of a tensor rank, as context_exchange all-to-all asks",
                  spec.context, heads_split ? kv_heads : heads, heads_split ? "key/value heads" : "heads"),
      fmt::format("{}parallelism.context_exchange {}",
                  near.empty() ? "use " : any_of(near) + " would; or use ",
                  model.sliding_window ? "all-gather" : "p2p or all-gather"));
}

// A ring's blocks are whole samples of other ranks.
//   source  NVIDIA/TransformerEngine, context_parallel.py: sliding windows with all_gather and a2a alone.
void check_window(const TransformerSpec& model, const ParallelSpec& spec, const Reporter& report) {
  if (spec.context == 1 || spec.context_exchange != ContextExchange::kRing || !model.sliding_window) return;
  if (!report.knows({"parallelism.context", "parallelism.context_exchange"})) return;
  report.error("parallelism.context", "not-supported-yet",
               fmt::format("{} ranks exchange keys in a ring (context_exchange: p2p), which knows no "
                           "model.sliding_window",
                           spec.context),
               "use parallelism.context_exchange all-gather or all-to-all");
}

void check_expert_width(const ExpertsSpec& experts, const ParallelSpec& spec, const Reporter& report) {
  if (experts.count % spec.expert != 0 && report.knows({"parallelism.expert"}))
    report.error("parallelism.expert", "not-divisible",
                 fmt::format("{} does not divide model.experts.count = {}", spec.expert, experts.count),
                 would(nearest_legal(spec.expert, experts.count,
                                     [&](std::int64_t e) { return experts.count % e == 0; }),
                       "use 1"));
  if (experts.ffn_hidden % spec.expert_tensor != 0 && report.knows({"parallelism.expert_tensor"}))
    report.error("parallelism.expert_tensor", "not-divisible",
                 fmt::format("{} does not divide model.experts.ffn_hidden = {}", spec.expert_tensor,
                             experts.ffn_hidden),
                 would(nearest_legal(spec.expert_tensor, experts.ffn_hidden,
                                     [&](std::int64_t et) { return experts.ffn_hidden % et == 0; }),
                       "use 1"));
}

// Experts live on the ranks of a pipeline stage: expert × expert_tensor of them hold all experts once.
void check_expert_ranks(const ExpertsSpec& experts, const ParallelSpec& spec, std::int64_t data,
                        const Reporter& report) {
  const std::int64_t ranks = saturating_product({spec.tensor, spec.context, data});
  const std::int64_t holders = saturating_product({spec.expert, spec.expert_tensor});
  if (ranks % holders == 0 || !report.knows({"parallelism.expert", "parallelism.expert_tensor"})) return;
  const auto near = nearest_legal(spec.expert, std::min(experts.count, ranks), [&](std::int64_t e) {
    return experts.count % e == 0 && ranks % saturating_product({e, spec.expert_tensor}) == 0;
  });
  report.error(
      report.written("parallelism.expert", "parallelism.expert_tensor"), "not-divisible",
      fmt::format("expert {} × expert_tensor {} = {} does not divide the {} ranks of a pipeline stage, "
                  "tensor {} × context {} × data {}",
                  spec.expert, spec.expert_tensor, holders, ranks, spec.tensor, spec.context, data),
      near.empty() ? std::string("use another expert_tensor") : fmt::format("expert {} would", any_of(near)));
}

}  // namespace

// Heads and feed-forward widths are split over the tensor ranks; key/value heads are split or copied evenly.
// The vocabulary need not divide: frameworks pad it. Routed experts are split `expert_tensor` ways instead.
bool tensor_divides(const TransformerSpec& model, std::int64_t tensor) {
  return model.heads % tensor == 0 && (!model.has_dense_layers() || model.ffn_hidden % tensor == 0) &&
         (!model.experts || model.experts->shared_width() % tensor == 0) &&
         (model.kv_heads % tensor == 0 || tensor % model.kv_heads == 0);
}

// Names the degrees that leave whole replicas on the GPUs, if there are any; else all that divide the model.
void check_tensor(const TransformerSpec& model, const ParallelSpec& spec, std::int64_t gpus,
                  const Reporter& report) {
  if (tensor_divides(model, spec.tensor) || !report.knows({"parallelism.tensor"})) return;
  std::vector<std::int64_t> legal, on_gpus;
  const std::int64_t last = std::min(model.heads, kMaxListedTensor);
  for (std::int64_t t = 1; t <= last && legal.size() < kMaxListed; ++t) {
    if (!tensor_divides(model, t)) continue;
    legal.push_back(t);
    if (gpus % saturating_product({t, spec.pipeline, spec.context}) == 0) on_gpus.push_back(t);
  }
  const bool alone = on_gpus.size() == 1 && legal.size() > 1;
  report.error("parallelism.tensor", "not-divisible", why_tensor_does_not_divide(model, spec.tensor),
               "use " + any_of(on_gpus.empty() ? legal : on_gpus) + (alone ? "; or change the cluster" : ""));
}

// The head's product is split over the tensor ranks, and its matrix with it.
void check_embedding(const TransformerSpec& model, const ParallelSpec& spec, const Reporter& report) {
  if (!spec.replicated_embedding || spec.tensor == 1 || !model.tied_embeddings) return;
  if (!report.knows({"parallelism.replicated_embedding", "parallelism.tensor"})) return;
  report.error("parallelism.replicated_embedding", "contradiction",
               "the head shares its matrix (model.tied_embeddings), and tensor ranks split the head",
               "leave it out, or use model.tied_embeddings: false");
}

// What tensor ranks and multi-token prediction make of a residual stream in fp32 is not known.
void check_autocast(const TransformerSpec& model, const ParallelSpec& spec, const TrainingSpec& training,
                    const Reporter& report) {
  if (!training.autocast || !report.knows({"training.autocast", "parallelism.tensor"})) return;
  if (spec.tensor > 1)
    report.error("training.autocast", "not-supported", "tensor ranks are not modelled beside it",
                 "use parallelism.tensor: 1, or leave it out");
  if (model.mtp_layers > 0)
    report.error("training.autocast", "not-supported", "multi-token prediction is not modelled beside it",
                 "leave it out");
}

// Products of the numbers stay inside 64 bits below these sizes, also where a rank holds all its micro-batches at
// once, as under GPipe. In doubles, which do not overflow; 16 bytes an element are more than any tensor has.
void check_activations(const TransformerSpec& model, const TrainingSpec& training,
                       std::optional<std::int64_t> data, const Reporter& report) {
  constexpr double kMostBytes = 1e17, kMostOfAll = 1e18;
  if (!report.knows({"training.sequence_length", "training.micro_batch_size", "training.attention"})) return;
  const auto length = static_cast<double>(training.sequence_length);
  const double tokens = static_cast<double>(training.micro_batch_size) * length;
  double width = static_cast<double>(std::max({model.hidden, model.ffn_hidden, model.vocab}));
  if (training.attention == Attention::kUnfused)
    width = std::max(width, static_cast<double>(model.heads) * length);
  const double bytes = 16 * tokens * width * static_cast<double>(model.layers);
  if (bytes > kMostBytes)
    report.error(
        "training.sequence_length", "quantity-too-large",
        fmt::format("a micro-batch of {:g} tokens would have about {:.3g} bytes of activations, and at most "
                    "{:g} are counted",
                    tokens, bytes, kMostBytes),
        "check training.sequence_length and training.micro_batch_size");
  if (!data || bytes > kMostBytes || !report.knows({"training.global_batch_size"})) return;
  const double samples =
      std::ceil(static_cast<double>(training.global_batch_size) / static_cast<double>(*data));
  const double all = bytes * samples / static_cast<double>(training.micro_batch_size);
  if (all > kMostOfAll)
    report.error(
        length > samples ? "training.sequence_length" : "training.global_batch_size", "quantity-too-large",
        fmt::format("all micro-batches of a replica would have about {:.3g} bytes of activations, and at "
                    "most {:g} are counted",
                    all, kMostOfAll),
        "check training.global_batch_size and training.sequence_length");
}

bool context_divides(const PlanRequest& request, std::int64_t context) {
  return request.training.sequence_length % context_pieces(request.parallelism, context) == 0;
}

void check_context(const TransformerSpec& model, const PlanRequest& request, const Reporter& report) {
  check_sequence(model, request, report);
  check_exchanged_heads(model, request.parallelism, report);
  check_window(model, request.parallelism, report);
}

std::vector<std::string_view> without_second_products(const TransformerSpec& model, Attention attention) {
  std::vector<std::string_view> with;
  if (model.latent_attention) with.emplace_back("latent attention");
  if (model.has_norms_behind()) with.emplace_back("norms behind the blocks, which read their last products");
  if (attention != Attention::kFlash) with.emplace_back("unfused attention, whose core is two products more");
  return with;
}

void check_recompute(const TransformerSpec& model, const TrainingSpec& training, const Reporter& report) {
  if (training.recompute.granularity != Recompute::kSelective ||
      !training.recompute.modules.has(RecomputeModule::kEverySecondProduct) ||
      !report.knows({"training.recompute", "training.attention"}))
    return;
  for (const std::string_view with : without_second_products(model, training.attention))
    report.error("training.recompute.modules", "not-supported",
                 fmt::format("every_second_product is not modelled for {}", with),
                 "name other modules, or use recompute: full");
  if (training.recompute.modules != RecomputeModules{RecomputeModule::kEverySecondProduct})
    report.error(
        "training.recompute.modules", "contradiction",
        "every_second_product says of all tensors whether they are kept, so no other module goes with it",
        "name it alone, or leave it out");
}

void check_experts(const TransformerSpec& model, const ParallelSpec& spec, std::optional<std::int64_t> data,
                   const Reporter& report) {
  if (!model.experts) return refuse_expert_degrees(spec, report);
  check_expert_width(*model.experts, spec, report);
  if (data) check_expert_ranks(*model.experts, spec, *data, report);
  if (spec.tensor > 1 && !spec.sequence_parallel &&
      report.knows({"parallelism.tensor", "parallelism.sequence_parallel"}))
    report.error(
        report.written("parallelism.sequence_parallel", "parallelism.tensor"), "needs-another-key",
        fmt::format("experts beside tensor {} need sequence_parallel, as in Megatron-LM: each tensor "
                    "rank routes tokens of its own",
                    spec.tensor),
        "set parallelism.sequence_parallel: true, or parallelism.tensor: 1");
}

void refuse_expert_degrees(const ParallelSpec& spec, const Reporter& report) {
  const auto refuse = [&](const char* path, int degree) {
    if (degree > 1 && report.knows({path}))
      report.error(path, "no-experts",
                   fmt::format("{} ways to split experts, and the model has none", degree),
                   "leave it out, or give the model experts");
  };
  refuse("parallelism.expert", spec.expert);
  refuse("parallelism.expert_tensor", spec.expert_tensor);
}

}  // namespace stagecraft::plan_checks
