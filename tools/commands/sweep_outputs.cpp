#include "tools/commands/sweep_outputs.hpp"

#include <ostream>
#include <utility>

#include "base/check.hpp"
#include "tools/commands/page_files.hpp"

namespace stagecraft {

RowOutputs::RowOutputs(const Request& request, const Arguments& arguments, Session& session,
                       Diagnostics& diagnostics)
    : session_(session) {
  const bool json = arguments.has("json"), csv = arguments.has("csv"), table = arguments.has("table");
  if (static_cast<int>(json) + static_cast<int>(csv) + static_cast<int>(table) > 1)
    throw UsageError("standard output has one form", "one of --json, --csv and --table");
  const bool for_people = request.to_file || session.out_is_terminal;
  if (csv) {
    documents_.push_back(std::make_unique<CsvSink>(request.columns, to_stream(session.out)));
  } else if (table || (!json && for_people && !arguments.has("quiet"))) {
    auto owned = std::make_unique<SweepTable>(arguments.has("verbose"));
    table_ = owned.get();
    documents_.push_back(std::move(owned));
  } else if (json || !request.to_file) {
    lines_ = to_stream(session.out);
  }
  if (arguments.has("html")) documents_.push_back(page_sink(arguments, request.columns, request.name));
  if (const auto file = arguments.text("sqlite")) {
    const bool replace = request.replace || arguments.has("force");
    database_ = {.file = *file, .replace = replace, .columns = request.columns};
    check_database(*database_, diagnostics);
  }
}

void RowOutputs::open(Diagnostics& diagnostics) {
  if (!database_) return;
  if (auto database = open_database(*database_, diagnostics)) documents_.push_back(std::move(database));
}

std::optional<std::string> RowOutputs::add(const std::string& row) {
  ++rows_;
  // Inside a text these quotes would be escaped.
  if (row.find(",\"feasible\":true,") != std::string::npos) ++feasible_;
  if (row.find(",\"reasons\":[{\"code\":\"internal\",") != std::string::npos) ++bugs_;
  if (lines_)
    if (auto why = lines_(row)) return why;
  if (documents_.empty()) return std::nullopt;
  Diagnostics mistakes;
  const std::optional<RowDocument> document = read_row(row, {}, mistakes);
  SC_CHECK(document.has_value(), "rows read back");
  for (const auto& sink : documents_)
    if (auto why = sink->add(*document)) return why;
  return std::nullopt;
}

std::optional<std::string> RowOutputs::finish() {
  for (const auto& sink : documents_)
    if (auto why = sink->finish()) return why;
  return std::nullopt;
}

void RowOutputs::print_table() {
  if (table_ != nullptr) session_.out << table_->str();
}

}  // namespace stagecraft
