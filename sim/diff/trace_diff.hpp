// Differences between a prediction and a trace of the same rank.
//
//   difference  predicted minus measured, per iteration: positive where the prediction is too slow, as the
//               errors of `validate`
//   source      the prediction: sim/diff/rank_ops.hpp; the trace: formats/kineto.hpp
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/diff/rank_ops.hpp"
#include "sim/diff/tie_operators.hpp"

namespace stagecraft {

// A row of a table; the entry of a missing side is absent.
struct DiffRow {
  std::string name;
  std::optional<OpTotal> predicted, measured;

  [[nodiscard]] double difference() const;  // seconds
  // Predicted over measured, of the total times and of the time of one. GEMMs are the same on both sides, so
  // their second ratio measures the price. For other rows one side may use one kernel where the other uses
  // several.
  [[nodiscard]] std::optional<double> ratio() const;
  [[nodiscard]] std::optional<double> ratio_of_one() const;
};

struct ProductRow {
  ProductKey shape;
  DiffRow row;  // named as the model names it; by the operator of PyTorch where no prediction has it
};

struct TrafficRow {
  TrafficKey key;
  DiffRow row;
};

// Operators of the model, and their counterparts in the trace.
struct OperatorRow {
  TiedOperators operators;
  DiffRow row;  // named as the model names them, with "backward" of that pass
};

struct OtherRow {
  WorkKind kind = WorkKind::kMemory;
  DiffRow row;
};

// All lists are sorted by their contribution to the difference, largest first.
struct TraceDiff {
  std::string scenario, trace;
  int rank = 0;
  std::vector<std::int64_t> steps;  // numbers; empty where the trace has none
  Occupation predicted, measured;
  double predicted_kernels = 0, measured_kernels = 0;
  std::vector<OtherRow> families;  // a row for each kind of compute
  Duration beyond{};               // the prediction's compute beyond its operators
  std::vector<ProductRow> products;
  std::vector<DiffRow> shapeless;  // GEMMs of the trace without shapes, by kernel
  std::vector<TrafficRow> traffic;
  std::vector<OperatorRow> operators;  // matched operators besides GEMMs and communication
  std::vector<OtherRow> others;        // entries of one side only: compared by family
};

// Compute of the trace with a matching operator in the prediction, in seconds.
struct TiedShares {
  double products = 0;               // GEMMs by shape
  double by_shape = 0, by_name = 0;  // the other operators
  double compute = 0;                // all of it
  [[nodiscard]] double by_family() const { return compute - products - by_shape - by_name; }
};
[[nodiscard]] TiedShares tied_shares(const TraceDiff& diff);

struct DiffSources {
  std::string scenario, trace;
  int rank = 0;
};
[[nodiscard]] TraceDiff make_trace_diff(const PredictedRank& predicted, const RankOps& measured,
                                        const MeasuredTrace& trace, const DiffSources& sources);

// The difference for people, 100 columns.
[[nodiscard]] std::string render_text(const TraceDiff& diff);
// One document on one line: schema stagecraft.diff/1; times in seconds per iteration.
[[nodiscard]] std::string render_json(const TraceDiff& diff);

}  // namespace stagecraft
