// Small cases for resolve(), and what it says about them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/parallel_plan.hpp"

namespace stagecraft {

// A small model whose numbers fit in the head: 12 layers, 8 heads, 4 key/value heads, width 24.
inline TransformerSpec small_model() {
  return {.name = "small",
          .layers = 12,
          .hidden = 64,
          .heads = 8,
          .kv_heads = 4,
          .head_size = 8,
          .ffn_hidden = 24,
          .vocab = 101,
          .max_sequence_length = 16};
}

inline ClusterSpec cluster_of(int nodes, int gpus) {
  ClusterSpec cluster;
  cluster.groups.push_back({.node = {.gpus = gpus}, .count = nodes});
  return cluster;
}

struct Case {
  ModelSpec model = small_model();
  std::optional<ClusterSpec> cluster = cluster_of(1, 8);
  ParallelSpec parallelism;
  TrainingSpec training{.global_batch_size = 8, .sequence_length = 16};
  Origins origins = {};
};

struct Outcome {
  std::optional<ParallelPlan> plan;
  std::vector<Diagnostic> errors;
};

inline Outcome outcome_of(const Case& c) {
  Diagnostics diagnostics;
  auto plan = resolve({.model = c.model,
                       .cluster = c.cluster ? &*c.cluster : nullptr,
                       .parallelism = c.parallelism,
                       .training = c.training,
                       .origins = c.origins,
                       .fallback = {.file = "case.yaml"}},
                      diagnostics);
  return {std::move(plan), diagnostics.items()};
}

// The one message of a case with one mistake, with its hint.
inline std::string message_of(const Case& c) {
  const Outcome outcome = outcome_of(c);
  EXPECT_FALSE(outcome.plan);
  EXPECT_EQ(outcome.errors.size(), 1u);
  return outcome.errors.empty() ? "" : render(outcome.errors.front());
}

// small_model() with 8 experts of width 16 in every layer but the first two, and two shared ones of width 8.
inline TransformerSpec small_expert_model() {
  TransformerSpec model = small_model();
  model.experts = ExpertsSpec{
      .count = 8, .top_k = 2, .ffn_hidden = 16, .shared = 2, .shared_ffn_hidden = 8, .dense_layers = {0, 1}};
  return model;
}

}  // namespace stagecraft
