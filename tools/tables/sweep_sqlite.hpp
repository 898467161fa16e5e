// A sweep as an SQLite database.
//
//   table sweep   key TEXT PRIMARY KEY, value TEXT: schema ("stagecraft.sweep/1"), sweep (its hash), points
//   table points  one row a point: point INTEGER PRIMARY KEY; the columns of CSV, by the same names (a dotted
//                 path stands in double quotes); `row`: the whole row as JSON, for json_extract()
//
// Numbers are INTEGER or REAL; missing values are NULL. Rows are committed a thousand at a time and at the
// end, so after a kill the database is consistent and holds all committed rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "tools/tables/sweep_sinks.hpp"

namespace stagecraft {

struct DatabaseRequest {
  std::string file;
  bool replace = false;  // an existing file; else it is refused
  std::vector<RowColumn> columns;
};

// Reports a file that no database can be in, or that is there and not to be replaced, and a program that was
// built without SQLite.
void check_database(const DatabaseRequest& request, Diagnostics& diagnostics);

// Empties an existing file. nullptr after a report where it cannot be, or may not.
[[nodiscard]] std::unique_ptr<RowSink> open_database(const DatabaseRequest& request,
                                                     Diagnostics& diagnostics);

}  // namespace stagecraft
