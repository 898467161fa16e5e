#include "tools/tables/sweep_sqlite.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace stagecraft {
namespace {

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

std::string identifier(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

class DatabaseSink : public RowSink {
 public:
  DatabaseSink(Database database, DatabaseRequest request)
      : database_(std::move(database)), request_(std::move(request)) {}

  std::optional<std::string> begin() {
    std::vector<std::string> columns, marks;
    for (const RowColumn& column : request_.columns) {
      columns.push_back(identifier(column.name) + (column.name == "point" ? " INTEGER PRIMARY KEY" : ""));
      marks.emplace_back("?");
    }
    columns.emplace_back("\"row\" TEXT");
    marks.emplace_back("?");
    if (auto why = execute("CREATE TABLE sweep (key TEXT PRIMARY KEY, value TEXT)")) return why;
    if (auto why = execute(fmt::format("CREATE TABLE points ({})", join(columns, ", ")))) return why;
    insert_ = prepare(fmt::format("INSERT INTO points VALUES ({})", join(marks, ", ")));
    if (!insert_) return message();
    return execute("BEGIN");
  }

  std::optional<std::string> add(const RowDocument& row) override {
    constexpr std::size_t kBatch = 1'000;
    if (rows_ == 0)
      if (auto why = describe(row)) return why;
    sqlite3_reset(insert_.get());
    int at = 0;
    for (const RowColumn& column : request_.columns) bind(++at, cell_of(row, column));
    bind(++at, {.kind = Cell::Kind::kText, .text = row.line});
    if (sqlite3_step(insert_.get()) != SQLITE_DONE) return message();
    if (++rows_ % kBatch != 0) return std::nullopt;
    return execute("COMMIT; BEGIN");
  }

  std::optional<std::string> finish() override { return execute("COMMIT"); }

 private:
  std::optional<std::string> execute(const std::string& sql) {
    if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK)
      return std::nullopt;
    return message();
  }

  Statement prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr);
    return Statement(statement);
  }

  [[nodiscard]] std::string message() const {
    return fmt::format("{} could not be written: {}", request_.file, sqlite3_errmsg(database_.get()));
  }

  std::optional<std::string> describe(const RowDocument& row) {
    const Statement statement = prepare("INSERT INTO sweep VALUES (?, ?)");
    if (!statement) return message();
    const std::pair<const char*, std::string> facts[] = {
        {"schema", "stagecraft.sweep/1"}, {"sweep", row.sweep}, {"points", std::to_string(row.points)}};
    for (const auto& [key, value] : facts) {
      sqlite3_reset(statement.get());
      sqlite3_bind_text(statement.get(), 1, key, -1, SQLITE_TRANSIENT);
      sqlite3_bind_text(statement.get(), 2, value.c_str(), -1, SQLITE_TRANSIENT);
      if (sqlite3_step(statement.get()) != SQLITE_DONE) return message();
    }
    return std::nullopt;
  }

  void bind(int at, const Cell& cell) {
    sqlite3_stmt* statement = insert_.get();
    const auto integer = cell.kind == Cell::Kind::kNumber ? parse_integer(cell.text) : std::nullopt;
    const auto number = cell.kind == Cell::Kind::kNumber ? parse_number(cell.text) : std::nullopt;
    if (cell.kind == Cell::Kind::kNone)
      sqlite3_bind_null(statement, at);
    else if (integer && cell.text.find_first_of(".eE") == std::string::npos)
      sqlite3_bind_int64(statement, at, *integer);
    else if (number)
      sqlite3_bind_double(statement, at, *number);
    else
      sqlite3_bind_text(statement, at, cell.text.c_str(), static_cast<int>(cell.text.size()),
                        SQLITE_TRANSIENT);
  }

  Database database_;  // closed last
  Statement insert_;
  DatabaseRequest request_;
  std::size_t rows_ = 0;
};

Diagnostic refusal(const DatabaseRequest& request, std::string code, std::string message,
                   std::string hint = {}) {
  return {.code = std::move(code),
          .where = {.file = request.file},
          .message = std::move(message),
          .hint = std::move(hint)};
}

}  // namespace

void check_database(const DatabaseRequest& request, Diagnostics& diagnostics) {
  std::error_code ignored;
  if (!std::filesystem::exists(request.file, ignored)) return;
  if (!std::filesystem::is_regular_file(request.file, ignored))
    diagnostics.error(
        refusal(request, "cannot-write", "is no file that a database can be in", "give the path of a file"));
  else if (!request.replace)
    diagnostics.error(refusal(request, "exists", "exists and is left as it is", "--force replaces it"));
}

std::unique_ptr<RowSink> open_database(const DatabaseRequest& request, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  check_database(request, diagnostics);
  if (!watch.clean()) return nullptr;
  const auto refuse = [&](std::string message) {
    diagnostics.error(refusal(request, "cannot-write", std::move(message)));
    return nullptr;
  };
  std::error_code error;
  if (std::filesystem::exists(request.file, error))
    std::filesystem::resize_file(request.file, 0, error);  // SQLite takes it for a new one
  if (error) return refuse("cannot be replaced: " + error.message());
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(request.file.c_str(), &opened);
  auto sink = std::make_unique<DatabaseSink>(Database(opened), request);
  if (code != SQLITE_OK) return refuse(fmt::format("cannot be written: {}", sqlite3_errstr(code)));
  if (const auto why = sink->begin()) return refuse(*why);
  return sink;
}

}  // namespace stagecraft
