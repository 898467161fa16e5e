#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.hpp"
#include "sim/diff/trace_diff.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostRows = 12;  // rows of a table; the rest is counted
constexpr std::size_t kWidestName = 40;

std::string time_text(double seconds) {
  return human(from_seconds(seconds));
}

std::string signed_time(double seconds) {
  const Duration length = from_seconds(std::abs(seconds));
  if (length == Duration::zero()) return "0";
  return (seconds < 0 ? "-" : "+") + human(length);
}

std::string count_text(double count) {
  const bool whole = std::abs(count - std::round(count)) < 1e-9;
  return whole ? with_thousands(static_cast<std::int64_t>(std::llround(count)))
               : fmt::format("{:.1f}", count);
}

std::string cut(const std::string& name) {
  return name.size() <= kWidestName ? name : fmt::format("{}...", name.substr(0, kWidestName - 3));
}

std::string times_or_dash(const std::optional<OpTotal>& total) {
  return total ? time_text(total->seconds) : "-";
}
std::string count_or_dash(const std::optional<OpTotal>& total) {
  return total ? count_text(total->count) : "-";
}
std::string one_or_dash(const std::optional<OpTotal>& total) {
  return total && total->count > 0 ? time_text(total->seconds / total->count) : "-";
}

// The rows that a table has room for.
template <class Row>
std::span<const Row> shown(const std::vector<Row>& rows) {
  return std::span(rows).first(std::min(rows.size(), kMostRows));
}

std::string rest_line(std::size_t rows) {
  return rows > kMostRows ? fmt::format("  {} more; --format json has all\n", rows - kMostRows) : "";
}

std::string heading(const TraceDiff& diff) {
  std::vector<std::string> numbers;
  for (const std::int64_t step : diff.steps) numbers.push_back(std::to_string(step));
  return fmt::format("{} against {}\nrank {}, {}\n+: predicted too slow, -: too fast, as in `validate`\n",
                     diff.scenario, diff.trace, diff.rank,
                     numbers.empty() ? "the whole trace as one iteration"
                                     : fmt::format("mean of ProfilerStep {}", join(numbers, ", ")));
}

std::string iteration_table(const TraceDiff& diff) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.row({"", "predicted", "measured", "difference"});
  const auto row = [&](const std::string& name, Duration ours, Duration theirs) {
    table.row({name, human(ours), human(theirs), signed_time(to_seconds(ours) - to_seconds(theirs))});
  };
  row("iteration", diff.predicted.window, diff.measured.window);
  row("  compute", diff.predicted.compute, diff.measured.compute);
  row("  exposed communication", diff.predicted.exposed_communication(),
      diff.measured.exposed_communication());
  for (std::size_t i = 1; i < kActivityNames.size(); ++i) {
    if (diff.predicted.exposed[i] == Duration{} && diff.measured.exposed[i] == Duration{}) continue;
    row(fmt::format("    {}", kActivityNames[i]), diff.predicted.exposed[i], diff.measured.exposed[i]);
  }
  row("  idle", diff.predicted.idle, diff.measured.idle);
  const auto pipeline = static_cast<std::size_t>(Activity::kPipeline);
  if (diff.predicted.busy[pipeline] > Duration::zero() || diff.measured.busy[pipeline] > Duration::zero())
    row("  pipeline and idle", diff.predicted.pipeline_or_idle(), diff.measured.pipeline_or_idle());
  const double more = diff.predicted_kernels - diff.measured_kernels;
  table.row({"kernels", diff.predicted_kernels > 0 ? count_text(diff.predicted_kernels) : "-",
             count_text(diff.measured_kernels),
             diff.predicted_kernels > 0 ? (more < 0 ? "-" : "+") + count_text(std::abs(more)) : "-"});
  return table.str();
}

// Rows with their sums: count and time of both sides.
template <class Row>
std::string sums_table(const std::string& title, const std::vector<Row>& rows,
                       const std::string& extra_name = "", Duration extra = {}) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({title, "predicted", "kernels", "measured", "kernels", "difference"});
  for (const Row& entry : shown(rows)) {
    const DiffRow& row = entry.row;
    table.row({"  " + cut(row.name), times_or_dash(row.predicted), count_or_dash(row.predicted),
               times_or_dash(row.measured), count_or_dash(row.measured), signed_time(row.difference())});
  }
  if (extra != Duration::zero())
    table.row(
        {"  " + extra_name, signed_time(to_seconds(extra)), "", "-", "", signed_time(to_seconds(extra))});
  return "\n" + table.str() + rest_line(rows.size());
}

std::string shape_text(const ProductKey& key) {
  return fmt::format("{}{} x {} x {}", key.batch > 1 ? fmt::format("{} of ", key.batch) : "", key.m, key.n,
                     key.k);
}

std::string products_table(const std::vector<const ProductRow*>& rows) {
  if (rows.empty()) return {};
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kRight});
  table.row({"gemm", "m x n x k", "count", "predicted", "count", "measured", "ratio", "difference"});
  for (const ProductRow* product : shown(rows)) {
    const DiffRow& row = product->row;
    const std::optional<double> ratio = row.ratio_of_one();
    table.row({"  " + cut(row.name), shape_text(product->shape), count_or_dash(row.predicted),
               one_or_dash(row.predicted), count_or_dash(row.measured), one_or_dash(row.measured),
               ratio ? fmt::format("{:.2f}", *ratio) : "-", signed_time(row.difference())});
  }
  return "\n" + table.str() + rest_line(rows.size());
}

// A list of the entries of one side only.
class OneSided {
 public:
  explicit OneSided(std::string title) : title_(std::move(title)) {}
  void add(const std::string& name, const OpTotal& total) { rows_.emplace_back(name, total); }

  [[nodiscard]] std::string str() const {
    if (rows_.empty()) return {};
    TextTable table({Align::kLeft, Align::kRight, Align::kRight});
    table.row({title_, "count", "time"});
    auto rows = rows_;
    std::ranges::stable_sort(
        rows, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    for (const auto& [name, total] : shown(rows))
      table.row({"  " + name, count_text(total.count), time_text(total.seconds)});
    return "\n" + table.str() + rest_line(rows.size());
  }

 private:
  std::string title_;
  std::vector<std::pair<std::string, OpTotal>> rows_;
};

std::string one_sided(const TraceDiff& diff, bool measured) {
  OneSided list(measured ? "only in the trace" : "only in the prediction");
  const auto add = [&](const DiffRow& row, const std::string& name) {
    const auto& here = measured ? row.measured : row.predicted;
    const auto& there = measured ? row.predicted : row.measured;
    if (here && !there) list.add(name, *here);
  };
  for (const ProductRow& row : diff.products)
    add(row.row, fmt::format("{} {}", cut(row.row.name), shape_text(row.shape)));
  for (const DiffRow& row : diff.shapeless) add(row, fmt::format("{}, shape not recorded", cut(row.name)));
  for (const TrafficRow& row : diff.traffic) add(row.row, cut(row.row.name));
  return list.str();
}

// The model's operators with the matching operators of the trace.
std::string operators_table(const std::vector<OperatorRow>& rows) {
  if (rows.empty()) return {};
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight});
  table.row({"operator", "tied by", "predicted", "kernels", "measured", "kernels", "difference"});
  for (const OperatorRow& operators : shown(rows)) {
    const DiffRow& row = operators.row;
    table.row({"  " + cut(row.name),
               std::string(kTieNames[static_cast<std::size_t>(operators.operators.tie)]),
               times_or_dash(row.predicted), count_or_dash(row.predicted), times_or_dash(row.measured),
               count_or_dash(row.measured), signed_time(row.difference())});
  }
  return "\n" + table.str() + rest_line(rows.size());
}

std::string shares_text(const TiedShares& shares) {
  return fmt::format(
      "\nOf the trace's {} of compute, {} are GEMMs that the model has, {} other operators tied by shape "
      "and\n{} by name; {} are compared by family alone.\n",
      time_text(shares.compute), time_text(shares.products), time_text(shares.by_shape),
      time_text(shares.by_name), time_text(std::max(shares.by_family(), 0.0)));
}

// Unmatched operators, grouped by family: the longest of both sides in each.
std::string others_table(const TraceDiff& diff) {
  constexpr int kMostOfSide = 3;
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.row({"by family alone, the longest of each", "kernels", "predicted", "measured"});
  bool any = false;
  for (const OtherRow& family : diff.families) {
    int left[2] = {kMostOfSide, kMostOfSide};
    for (const OtherRow& other : diff.others) {
      if (other.kind != family.kind || left[other.row.measured ? 1 : 0]-- <= 0) continue;
      const OpTotal& total = other.row.measured ? *other.row.measured : *other.row.predicted;
      table.row({fmt::format("  {}: {}", family.row.name, cut(other.row.name)), count_text(total.count),
                 times_or_dash(other.row.predicted), times_or_dash(other.row.measured)});
      any = true;
    }
  }
  return any ? "\n" + table.str() : "";
}

}  // namespace

std::string render_text(const TraceDiff& diff) {
  std::vector<const ProductRow*> matched;
  for (const ProductRow& row : diff.products)
    if (row.row.predicted && row.row.measured) matched.push_back(&row);
  std::string out = heading(diff) + "\n" + iteration_table(diff);
  out += sums_table("compute, by family", diff.families, "beyond its operators", diff.beyond);
  if (!diff.traffic.empty()) out += sums_table("communication", diff.traffic);
  out += products_table(matched) + operators_table(diff.operators) + others_table(diff) +
         one_sided(diff, true) + one_sided(diff, false);
  const bool operators = std::ranges::any_of(
      diff.families, [](const OtherRow& family) { return family.row.predicted.has_value(); });
  if (!operators) out += "\nThe scenario gives costs of stages and no operators: only times are compared.\n";
  if (operators) out += shares_text(tied_shares(diff));
  return out;
}

}  // namespace stagecraft
