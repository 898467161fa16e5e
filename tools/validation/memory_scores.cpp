#include "tools/validation/memory_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/wrapped_text.hpp"
#include "sim/simulate.hpp"
#include "tools/validation/render_parts.hpp"
#include "tools/validation/row_table.hpp"

namespace stagecraft {
namespace {

Bytes figure_of(const StageMemory& stage, MemoryFigure figure) {
  switch (figure) {
    case MemoryFigure::kAllocated:
      return stage.allocated();
    case MemoryFigure::kReserved:
      return stage.reserved();
    case MemoryFigure::kDevice:
      break;
  }
  return stage.peak();
}

Bytes figure_of(const MemoryLedger& ledger, MemoryFigure figure, MemoryRank rank) {
  if (rank == MemoryRank::kFirst) return figure_of(ledger.stages.front(), figure);
  if (rank == MemoryRank::kLast) return figure_of(ledger.stages.back(), figure);
  Bytes most{};
  for (const StageMemory& stage : ledger.stages) most = std::max(most, figure_of(stage, figure));
  return most;
}

std::string gib(Bytes size) {
  using namespace literals;
  return fmt::format("{:.2f}", size / 1_GiB);
}

std::string_view figure_name(const MemoryScores& scores) {
  return kMemoryFigureNames[static_cast<std::size_t>(scores.figure)];
}

// A run ended as the verdict says, or else the verdict is wrong or the card was nearly full.
std::string verdict_text(const MemoryScore& row) {
  std::string text(name_of(row.verdict));
  if (row.wrong_verdict()) return text + " (wrong)";
  return row.verdict == Verdict::kOutOfMemory && !row.out_of_memory ? text + ", ran" : text;
}

}  // namespace

std::optional<double> MemoryScore::error() const {
  if (!measured) return std::nullopt;
  return predicted / *measured - 1;
}

bool MemoryScore::wrong_verdict() const {
  const bool refused = verdict == Verdict::kOutOfMemory;
  if (out_of_memory) return !refused;
  constexpr double kNearlyFull = 0.95;
  const bool nearly_full = measured && *measured / capacity > kNearlyFull;
  return refused && !nearly_full;
}

ErrorSummary MemoryScores::summary() const {
  std::vector<double> errors;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::optional<double> error = rows[i].error();
    if (!error) continue;
    errors.push_back(*error);
    places.push_back(i);
  }
  ErrorSummary summary = summarise(errors);
  if (!places.empty()) summary.worst = places[summary.worst];
  return summary;
}

int MemoryScores::wrong_verdicts() const {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [](const MemoryScore& row) { return row.wrong_verdict(); }));
}

MemoryScores score_memory(const PublishedSet& set, Library& library) {
  constexpr double kGiB = 1 << 30;
  MemoryScores scores{.name = set.name,
                      .title = set.title,
                      .figure = set.memory_figure.value_or(MemoryFigure::kDevice),
                      .rows = {},
                      .skipped = {}};
  for (const LoadedRow& loaded : load_rows(set, library)) {
    const PublishedRow& row = *loaded.row;
    const bool ran = row.memory_gib || row.iteration_seconds || row.tokens_per_s_per_gpu;
    if (!ran && !row.out_of_memory) continue;
    if (!loaded.scenario) {
      scores.skipped.push_back({row.id, loaded.refused});
      continue;
    }
    const MemoryLedger ledger = memory_of(*loaded.scenario);
    if (loaded.scenario->profile) scores.profile_hashes.push_back(loaded.scenario->profile->hash);
    scores.rows.push_back(
        {.id = row.id,
         .predicted = figure_of(ledger, scores.figure, set.memory_rank),
         .measured = row.memory_gib ? std::optional(to_bytes(*row.memory_gib * kGiB)) : std::nullopt,
         .verdict = ledger.verdict(),
         .out_of_memory = row.out_of_memory.value_or(false),
         .capacity = ledger.capacity});
  }
  return scores;
}

void print_memory_text(const MemoryScores& scores, bool quiet, std::ostream& out) {
  out << wrapped_text(scores.name + "   ", "  ", scores.title)
      << fmt::format("  memory: {}, in GiB\n", figure_name(scores));
  if (!quiet) {
    RowTable table{.longest_name = 25,
                   .aligns = {Align::kRight, Align::kRight, Align::kRight, Align::kLeft},
                   .head = {"predicted", "measured", "error", "verdict"}};
    for (const MemoryScore& row : scores.rows)
      table.add(row.id, {gib(row.predicted), row.measured ? gib(*row.measured) : "-",
                         row.error() ? signed_percent(*row.error()) : "-", verdict_text(row)});
    out << table.str();
    for (const auto& [id, reason] : scores.skipped)
      out << wrapped_text("  ", "    ", fmt::format("{} skipped: {}", id, reason));
  }
  if (const ErrorSummary summary = scores.summary(); summary.rows > 0) {
    const MemoryScore& worst = scores.rows[summary.worst];
    out << wrapped_text(
        "  ", "    ",
        fmt::format("{}: {}, worst {} ({})", counted(static_cast<std::int64_t>(summary.rows), "figure"),
                    errors_text(summary), worst.id, signed_percent(*worst.error())));
  }
  out << fmt::format("  {}, {} wrong\n\n", counted(std::ssize(scores.rows), "verdict"),
                     scores.wrong_verdicts());
}

std::string memory_json(const MemoryScores& scores) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "stagecraft.validation/1")
      .field("set", scores.name)
      .field("quantity", "memory")
      .field("figure", figure_name(scores));
  const ErrorSummary summary = scores.summary();
  json.field("rows_scored", summary.rows)
      .field("mape", summary.mean_absolute)
      .field("bias", summary.bias)
      .field("median", summary.median_absolute);
  json.field("worst", summary.rows == 0 ? 0.0 : std::abs(*scores.rows[summary.worst].error()))
      .field("verdicts", scores.rows.size())
      .field("wrong_verdicts", scores.wrong_verdicts());
  json.key("rows").begin_array();
  for (const MemoryScore& row : scores.rows) {
    json.begin_object()
        .field("id", row.id)
        .field("predicted_bytes", row.predicted)
        .field("verdict", name_of(row.verdict));
    if (row.measured) json.field("measured_bytes", *row.measured).field("error", *row.error());
    json.field("ran_out_of_memory", row.out_of_memory).end_object();
  }
  json.end_array();
  write_skipped(scores.skipped, json);
  return json.end_object().str();
}

}  // namespace stagecraft
