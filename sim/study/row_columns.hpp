// Rows of a sweep read back, and the flat selection of their keys that CSV, SQLite and tables have.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

// One line of a sweep, read.
struct RowDocument {
  std::string line;
  std::string sweep;
  std::size_t point = 0, points = 0;
  YamlNode root;

  // The value at a dotted path of keys and numbers in lists ("memory.peak_bytes", "interval_90_s.0"); nullptr
  // where the row has none.
  [[nodiscard]] const YamlNode* at(std::string_view path) const;
  [[nodiscard]] std::optional<double> number(std::string_view path) const;
  [[nodiscard]] std::string text(std::string_view path) const;  // empty where the row has none
  [[nodiscard]] bool feasible() const { return text("feasible") == "true"; }
};

// nullopt and an error at `where` when the line is no row.
[[nodiscard]] std::optional<RowDocument> read_row(const std::string& line, const SourceLocation& where,
                                                  Diagnostics& diagnostics);

struct RowColumn {
  enum class Kind {
    kPath,    // of the row
    kVaried,  // value of a varied path
    kReason   // code and message of reasons[0]
  };
  std::string name;  // the path
  Kind kind = Kind::kPath;
};

// point, the varied paths, hash, feasible, reason, and the figures of a run; with those of goodput.
[[nodiscard]] std::vector<RowColumn> row_columns(const std::vector<std::string>& varied, bool goodput);
// The paths that vary, from a row.
[[nodiscard]] std::vector<std::string> varied_paths(const RowDocument& row);

struct Cell {
  enum class Kind { kNone, kNumber, kText };
  Kind kind = Kind::kNone;
  std::string text;  // numbers with the digits of the row; lists and mappings as JSON
};
[[nodiscard]] Cell cell_of(const RowDocument& row, const RowColumn& column);

// The first reason why a point is refused; nullopt for a point that runs.
struct RowReason {
  std::string code, text;  // "unknown-key"; "parallelism.tenosr: is not a known key"
};
[[nodiscard]] std::optional<RowReason> first_reason(const RowDocument& row);

// A cell of CSV (RFC 4180): in quotes where it has a comma, a quote or a line end.
[[nodiscard]] std::string csv_quoted(const std::string& text);
// RFC 4180, without line end.
[[nodiscard]] std::string csv_header(const std::vector<RowColumn>& columns);
[[nodiscard]] std::string csv_line(const RowDocument& row, const std::vector<RowColumn>& columns);

}  // namespace stagecraft
