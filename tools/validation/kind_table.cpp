#include "tools/validation/kind_table.hpp"

#include "base/text.hpp"
#include "base/wrapped_text.hpp"
#include "tools/validation/render_parts.hpp"
#include "tools/validation/row_table.hpp"

namespace stagecraft {
namespace {

// Sets, rows; of the held-out ones MAPE, bias, median and how many are inside their interval; of the others
// their number and MAPE.
std::vector<std::string> kind_figures(const KindScore& kind) {
  const PooledErrors& held_out = kind.errors.held_out;
  const PooledErrors& fitted = kind.errors.fitted;
  std::vector<std::string> cells(8, "–");
  cells[0] = std::to_string(kind.sets());
  cells[1] = std::to_string(kind.rows());
  if (!held_out.rows.empty()) {
    const ErrorSummary summary = summarise(held_out.rows);
    cells[2] = percent(summary.mean_absolute);
    cells[3] = signed_percent(summary.bias);
    cells[4] = percent(summary.median_absolute);
    cells[5] = percent(held_out.coverage(), 0);
  }
  if (!fitted.rows.empty()) {
    cells[6] = std::to_string(fitted.rows.size());
    cells[7] = percent(summarise(fitted.rows).mean_absolute);
  }
  return cells;
}

}  // namespace

std::string kind_table_text(const std::vector<KindScore>& kinds) {
  if (kinds.empty()) return {};
  // No title leaves room for its figures: each has a line of its own.
  RowTable table{.longest_name = 0,
                 .aligns = std::vector<Align>(8, Align::kRight),
                 .head = {"sets", "rows", "MAPE", "bias", "median", "inside", "fitted", "MAPE"},
                 .what = "kind of job"};
  for (const KindScore& kind : kinds) table.add(kind.title, kind_figures(kind));
  return wrapped_text("by kind of job: ", "  ",
                      "sets and rows, the errors of held-out rows and the share of these inside their "
                      "90 % interval, then the rows that constants were fitted on and their error") +
         table.str();
}

std::string kind_table_markdown(const std::vector<KindScore>& kinds) {
  if (kinds.empty()) return {};
  std::string out = markdown_head({"kind of job", "sets", "rows", "MAPE, held out", "bias", "median",
                                   "inside 90 %", "fitted", "MAPE, fitted"});
  for (const KindScore& kind : kinds) {
    std::vector<std::string> cells = kind_figures(kind);
    if (!kind.errors.held_out.rows.empty()) cells[2] = "**" + cells[2] + "**";
    cells.insert(cells.begin(), markdown_cell(kind.title));
    out += markdown_row(cells);
  }
  return out;
}

}  // namespace stagecraft
