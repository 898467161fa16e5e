// Reconfiguration of the pipelines after failures: each takes the template of its new size, borrows nodes
// from a larger one, or is merged with others.
//
// Sizes count nodes, because the ranks of a node fail together. The published rules count ranks: multiply by
// the GPUs of a node.
//
//   1  Failed nodes leave their pipelines; empty pipelines go.
//   2  In order, a pipeline of fewer than n0 nodes takes the last node of the largest pipeline, the last
//      of those on a tie, until it has n0; if the largest has no more than n0, nothing can be borrowed: 3.
//   3  Short pipelines take each other in order, then the others in order, until none is short.
//   4  Nodes are sorted in each pipeline that changed, and pipelines by (nodes, first node).
//
//   source  Jang et al., "Oobleck", SOSP 2023, section 5, in the form of their code and tests: github.com/
//           SymbioticLab/Oobleck at 3b7a0c2f; docs/resilience.md, section 5.5
#pragma once

#include <span>
#include <vector>

namespace stagecraft {

using Pipelines = std::vector<std::vector<int>>;  // node numbers, in stage order

enum class PipelineChange {
  kReplace,  // a node that stood by took the place of a lost one
  kSimple,   // lost nodes, and has enough left
  kBorrow,   // took nodes of another pipeline
  kLend,     // gave nodes to another pipeline
  kMerge,    // became part of another pipeline, or took others whole
  kGone,     // lost all its nodes
  kAnew      // all pipelines were composed anew (planner.hpp)
};

struct PipelineEvent {
  int pipeline = 0;  // its number before the failure
  PipelineChange change = PipelineChange::kSimple;
  int node = -1;   // kBorrow, kLend: the node that moved; kReplace: the one that stood by
  int other = -1;  // kBorrow: who lent; kLend: who took; kMerge: who took it in; kReplace: the lost node

  friend bool operator==(const PipelineEvent&, const PipelineEvent&) = default;
};

struct Reconfiguration {
  Pipelines pipelines = {};
  std::vector<PipelineEvent> events = {};  // in the order they happen
  bool recoverable = true;                 // false: fewer than n0 nodes are left in all
};

// requires min_nodes >= 1 and nodes that appear once. Failed nodes that no pipeline has are ignored.
[[nodiscard]] Reconfiguration reconfigure(Pipelines pipelines, std::span<const int> failed, int min_nodes);

}  // namespace stagecraft
