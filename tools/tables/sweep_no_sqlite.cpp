// In place of sweep_sqlite.cpp where SQLite was not found.
#include "tools/tables/sweep_sqlite.hpp"

namespace stagecraft {

void check_database(const DatabaseRequest& request, Diagnostics& diagnostics) {
  diagnostics.error(
      {.code = "not-built-in",
       .where = {.file = request.file},
       .message = "this program was built without SQLite",
       .hint = "install libsqlite3-dev and configure with -DSTAGECRAFT_SQLITE=ON, or use --csv"});
}

std::unique_ptr<RowSink> open_database(const DatabaseRequest& request, Diagnostics& diagnostics) {
  check_database(request, diagnostics);
  return nullptr;
}

}  // namespace stagecraft
