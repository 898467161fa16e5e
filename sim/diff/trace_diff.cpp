#include "sim/diff/trace_diff.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.hpp"

namespace stagecraft {
namespace {

template <class Row>
const DiffRow& row_of(const Row& row) {
  return row.row;
}
const DiffRow& row_of(const DiffRow& row) {
  return row;
}

template <class Row>
void sort_by_difference(std::vector<Row>& rows) {
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    return std::abs(row_of(a).difference()) > std::abs(row_of(b).difference());
  });
}

std::string joined(const std::set<std::string>& names) {
  return join(std::vector<std::string>(names.begin(), names.end()), ", ");
}

// Keys of both sides, each once, in order.
template <class Map>
std::set<typename Map::key_type> keys_of(const Map& a, const Map& b) {
  std::set<typename Map::key_type> keys;
  for (const auto* map : {&a, &b})
    for (const auto& [key, value] : *map) keys.insert(key);
  return keys;
}

template <class Map>
std::optional<OpTotal> total_at(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::nullopt : std::optional<OpTotal>(found->second);
}

std::vector<ProductRow> product_rows(const RankOps& predicted, const RankOps& measured) {
  std::vector<ProductRow> rows;
  for (const ProductKey& key : keys_of(predicted.products, measured.products)) {
    ProductRow row{.shape = key, .row = {}};
    const auto ours = predicted.products.find(key), theirs = measured.products.find(key);
    if (theirs != measured.products.end()) {
      row.row.name = joined(theirs->second.names);
      row.row.measured = theirs->second.total;
    }
    if (ours != predicted.products.end()) {
      row.row.name = joined(ours->second.names);
      row.row.predicted = ours->second.total;
    }
    rows.push_back(std::move(row));
  }
  sort_by_difference(rows);
  return rows;
}

std::vector<TrafficRow> traffic_rows(const RankOps& predicted, const RankOps& measured) {
  std::vector<TrafficRow> rows;
  for (const TrafficKey& key : keys_of(predicted.traffic, measured.traffic)) {
    rows.push_back(
        {.key = key,
         .row = {.name = std::string(kActivityNames[static_cast<std::size_t>(key.group)]) + " " + key.kind,
                 .predicted = total_at(predicted.traffic, key),
                 .measured = total_at(measured.traffic, key)}});
  }
  sort_by_difference(rows);
  return rows;
}

std::vector<OtherRow> family_rows(const RankOps& predicted, const RankOps& measured) {
  std::vector<OtherRow> rows;
  for (const WorkKind kind : keys_of(predicted.kinds, measured.kinds))
    rows.push_back({.kind = kind,
                    .row = {.name = std::string(kWorkKindNames[static_cast<std::size_t>(kind)]),
                            .predicted = total_at(predicted.kinds, kind),
                            .measured = total_at(measured.kinds, kind)}});
  sort_by_difference(rows);
  return rows;
}

std::vector<OperatorRow> operator_rows(std::vector<TiedOperators> tied) {
  std::vector<OperatorRow> rows;
  for (TiedOperators& operators : tied) {
    DiffRow row{.name = joined(operators.ours) + (operators.backward ? " backward" : ""),
                .predicted = operators.predicted,
                .measured = operators.measured};
    rows.push_back({.operators = std::move(operators), .row = std::move(row)});
  }
  sort_by_difference(rows);
  return rows;
}

std::vector<OtherRow> other_rows(const OperatorTies& ties) {
  std::map<std::pair<WorkKind, std::string>, OtherRow> rows;  // one row per name, over all passes and shapes
  const auto add = [&](const OneSidedOperator& operators, std::optional<OpTotal> DiffRow::*side) {
    const auto& [key, total] = operators;
    OtherRow& row = rows[{key.kind, key.name}];
    row.kind = key.kind;
    row.row.name = key.name;
    std::optional<OpTotal>& sum = row.row.*side;
    if (!sum) sum = OpTotal{};
    sum->add(total.count, total.seconds);
  };
  for (const OneSidedOperator& operators : ties.only_predicted) add(operators, &DiffRow::predicted);
  for (const OneSidedOperator& operators : ties.only_measured) add(operators, &DiffRow::measured);
  std::vector<OtherRow> out;
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  sort_by_difference(out);
  return out;
}

}  // namespace

double DiffRow::difference() const {
  return (predicted ? predicted->seconds : 0) - (measured ? measured->seconds : 0);
}

std::optional<double> DiffRow::ratio() const {
  if (!predicted || !measured || measured->seconds <= 0) return std::nullopt;
  return predicted->seconds / measured->seconds;
}

std::optional<double> DiffRow::ratio_of_one() const {
  const std::optional<double> whole = ratio();
  if (!whole || predicted->count <= 0 || measured->count <= 0) return std::nullopt;
  return *whole * measured->count / predicted->count;
}

TiedShares tied_shares(const TraceDiff& diff) {
  TiedShares out;
  for (const OtherRow& family : diff.families)
    if (family.row.measured) out.compute += family.row.measured->seconds;
  for (const ProductRow& product : diff.products)
    if (product.row.predicted && product.row.measured) out.products += product.row.measured->seconds;
  for (const OperatorRow& row : diff.operators)
    (row.operators.tie == Tie::kShape ? out.by_shape : out.by_name) += row.operators.measured.seconds;
  return out;
}

TraceDiff make_trace_diff(const PredictedRank& predicted, const RankOps& measured, const MeasuredTrace& trace,
                          const DiffSources& sources) {
  OperatorTies ties = tie_operators(predicted.ops, measured);
  TraceDiff diff{.scenario = sources.scenario,
                 .trace = sources.trace,
                 .rank = sources.rank,
                 .steps = {},
                 .predicted = predicted.ops.occupation,
                 .measured = measured.occupation,
                 .predicted_kernels = predicted.ops.kernels,
                 .measured_kernels = measured.kernels,
                 .families = family_rows(predicted.ops, measured),
                 .beyond = predicted.beyond,
                 .products = product_rows(predicted.ops, measured),
                 .shapeless = {},
                 .traffic = traffic_rows(predicted.ops, measured),
                 .operators = {},
                 .others = other_rows(ties)};
  diff.operators = operator_rows(std::move(ties.tied));
  for (const std::int32_t step : trace.steps) {
    const std::int64_t number = trace.trace.steps[static_cast<std::size_t>(step)].number;
    if (number >= 0) diff.steps.push_back(number);
  }
  for (const auto& [name, total] : measured.shapeless)
    diff.shapeless.push_back({.name = name, .predicted = {}, .measured = total});
  sort_by_difference(diff.shapeless);
  return diff;
}

}  // namespace stagecraft
