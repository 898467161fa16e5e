// Parts of resolve(): the error and the hint of each mistake in a placement, and the values that are known.
//
// Each function reports every mistake that it finds and goes on, so that the user sees all of them at once. A
// check that depends on a wrong number (sequence over context x tensor, where context alone does not divide)
// stays silent until that number is fixed, and so does one of a value that was refused before.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/parallel_plan.hpp"

namespace stagecraft::plan_checks {

// Collects mistakes.
class Reporter {
 public:
  Reporter(const PlanRequest& request, Diagnostics& diagnostics)
      : request_(request), diagnostics_(diagnostics) {}

  // Reports the mistake in the value at `path`, with a hint.
  void error(const std::string& path, const char* code, std::string message, std::string hint = {}) const;
  // The first of the two that the user wrote, else the second.
  [[nodiscard]] std::string written(const char* path, const char* otherwise) const {
    return request_.origins.contains(path) ? path : otherwise;
  }
  // Are these values what the user means? Not those that were refused, nor those that were not written and may
  // be meant by a key that is not known.
  [[nodiscard]] bool knows(std::initializer_list<std::string_view> paths) const;

 private:
  [[nodiscard]] bool knows_one(std::string_view path) const;
  [[nodiscard]] bool may_be_misspelt(std::string_view path, const Diagnostic& mistake) const;

  const PlanRequest& request_;
  Diagnostics& diagnostics_;
};

// "tensor 8 × context 2 × pipeline 4": context only where it is above 1, data only where it is given.
[[nodiscard]] std::string degree_product(const ParallelSpec& spec, std::optional<std::int64_t> data);

// Checks that heads, widths, tokens and experts divide over the ranks.
// `gpus`: of the cluster, for hints; 0: unknown.
void check_tensor(const TransformerSpec& model, const ParallelSpec& spec, std::int64_t gpus,
                  const Reporter& report);
// Refuses a replicated embedding whose matrix is the head's.
void check_embedding(const TransformerSpec& model, const ParallelSpec& spec, const Reporter& report);
// Refuses autocast beside tensor ranks and multi-token prediction.
void check_autocast(const TransformerSpec& model, const ParallelSpec& spec, const TrainingSpec& training,
                    const Reporter& report);
// Would heads and widths divide over so many tensor ranks?
[[nodiscard]] bool tensor_divides(const TransformerSpec& model, std::int64_t tensor);
void check_context(const TransformerSpec& model, const PlanRequest& request, const Reporter& report);
// Would the sequence divide over so many context ranks?
[[nodiscard]] bool context_divides(const PlanRequest& request, std::int64_t context);
// Activations are counted in 64 bits. `data` is absent where the replicas are not known.
void check_activations(const TransformerSpec& model, const TrainingSpec& training,
                       std::optional<std::int64_t> data, const Reporter& report);
// Recompute by operator is defined for the GEMMs of a dense layer with grouped heads and a fused core.
void check_recompute(const TransformerSpec& model, const TrainingSpec& training, const Reporter& report);
// `data` is absent where the replicas are not known, for reasons that were reported.
void check_experts(const TransformerSpec& model, const ParallelSpec& spec, std::optional<std::int64_t> data,
                   const Reporter& report);
// Expert degrees of a model without experts.
void refuse_expert_degrees(const ParallelSpec& spec, const Reporter& report);

// Checks the split of the layers over pipeline * virtual_stages stages. False after reporting. `gpus`: GPUs
// of the cluster, for the hint; 0: unknown.
[[nodiscard]] bool check_layers(const TransformerSpec& model, const ParallelSpec& spec, std::int64_t gpus,
                                const Reporter& report);
// Would the layers split evenly over `pipeline` ranks?
[[nodiscard]] bool splits_evenly(const TransformerSpec& model, const ParallelSpec& spec,
                                 std::int64_t pipeline);
// What recompute of every second product is not modelled for, of such layers; empty: it is modelled.
[[nodiscard]] std::vector<std::string_view> without_second_products(const TransformerSpec& model,
                                                                    Attention attention);
// requires check_layers.
[[nodiscard]] std::vector<StageContent> stage_contents(const TransformerSpec& model, const ParallelSpec& spec,
                                                       const RecomputeSpec& recompute);
// "pipeline 4 × virtual_stages 2 = 8 stages"
[[nodiscard]] std::string stage_product(const ParallelSpec& spec);

}  // namespace stagecraft::plan_checks
