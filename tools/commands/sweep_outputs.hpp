// Outputs of `sweep` and `merge` by their options: standard output as a table, JSON lines or CSV, and beside it a
// page and a database.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "tools/command_line/command_line.hpp"
#include "tools/tables/sweep_sinks.hpp"
#include "tools/tables/sweep_sqlite.hpp"
#include "tools/tables/sweep_table.hpp"

namespace stagecraft {

class RowOutputs {
 public:
  struct Request {
    std::vector<RowColumn> columns;
    bool to_file = false;   // the rows are kept elsewhere, so that standard output is for people
    bool replace = false;   // an existing database
    std::string name = {};  // of the sweep; rows that are merged do not know it
  };

  // Nothing is opened yet. throws UsageError for options that contradict each other. Reports what cannot be
  // opened.
  RowOutputs(const Request& request, const Arguments& arguments, Session& session, Diagnostics& diagnostics);

  // Before the first row. An existing database is emptied. Reports.
  void open(Diagnostics& diagnostics);
  // The next row in order. The reason when it cannot be written.
  [[nodiscard]] std::optional<std::string> add(const std::string& row);
  // Ends what is open.
  [[nodiscard]] std::optional<std::string> finish();
  void print_table();  // where one is wanted

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t feasible() const { return feasible_; }
  [[nodiscard]] std::size_t bugs() const { return bugs_; }

 private:
  Session& session_;
  AppendLine lines_;
  std::vector<std::unique_ptr<RowSink>> documents_;  // what wants to understand rows
  SweepTable* table_ = nullptr;
  std::optional<DatabaseRequest> database_;
  std::size_t rows_ = 0, feasible_ = 0, bugs_ = 0;
};

}  // namespace stagecraft
