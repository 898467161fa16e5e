#include <fmt/format.h>

#include <cstdint>
#include <ostream>
#include <vector>

#include "base/text.hpp"
#include "sim/study/row_columns.hpp"
#include "sim/study/row_file.hpp"
#include "sim/study/sweep_points.hpp"
#include "tools/command_line/files.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/sweep_outputs.hpp"

namespace stagecraft {
namespace {

// The rows of a sweep from several files, back in grid order.
class Merger {
 public:
  explicit Merger(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void read(const std::string& file) {
    const std::optional<std::string> text = read_text_file(file, diagnostics_);
    if (!text) return;
    int number = 0;
    for (std::size_t begin = 0; begin < text->size();) {
      const std::size_t end = text->find('\n', begin);
      if (end == std::string::npos) return torn(file, number + 1);
      if (!take(text->substr(begin, end - begin), {.file = file, .line = ++number})) return;
      begin = end + 1;
    }
  }

  // Checks that all rows are present.
  void check() {
    if (diagnostics_.has_errors()) return;
    std::vector<std::string> missing;
    std::size_t count = 0;
    constexpr std::size_t kNamed = 8;
    for (std::size_t point = 0; point < rows_.size(); ++point) {
      if (!rows_[point].empty()) continue;
      if (++count <= kNamed) missing.push_back(std::to_string(point));
    }
    if (count > kNamed) missing.push_back(fmt::format("{} more", count - kNamed));
    if (count > 0)
      error("missing-rows", {},
            fmt::format("{} of {} rows are missing: {}", count, rows_.size(), join(missing, ", ")),
            "run the shards that have them with --resume, and name all files");
  }

  [[nodiscard]] const std::vector<std::string>& rows() const { return rows_; }
  [[nodiscard]] std::vector<RowColumn> columns() const { return row_columns(varied_, goodput_); }

 private:
  bool take(const std::string& line, const SourceLocation& where) {
    const std::optional<RowDocument> row = read_row(line, where, diagnostics_);
    if (!row) return false;
    if (row->points > kMostPoints) {
      error("out-of-range", where,
            fmt::format("says that its sweep has {} points, and none has more than {}",
                        with_thousands(static_cast<std::int64_t>(row->points)), with_thousands(kMostPoints)),
            {});
      return false;
    }
    if (rows_.empty()) {
      sweep_ = row->sweep;
      rows_.resize(row->points);
      varied_ = varied_paths(*row);
    }
    if (row->sweep != sweep_ || row->points != rows_.size()) {
      error("other-sweep", where,
            fmt::format("is a row of sweep {} of {} points, the first is of sweep {} of {} points",
                        row->sweep, row->points, sweep_, rows_.size()),
            "merge the shards of one sweep, of one program, --set, --seed and --full");
      return false;
    }
    goodput_ = goodput_ || row->at("goodput") != nullptr;
    std::string& place = rows_[row->point];
    if (!place.empty() && place != line)
      error("contradictory", where,
            fmt::format("point {} is there twice, with different results", row->point), {});
    place = line;
    return true;
  }

  void torn(const std::string& file, int line) {
    diagnostics_.warning({.code = "torn-line",
                          .where = {.file = file, .line = line},
                          .message = "the last line is torn, and counts as missing"});
  }

  void error(std::string code, SourceLocation where, std::string message, std::string hint) {
    diagnostics_.error({.code = std::move(code),
                        .where = std::move(where),
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  Diagnostics& diagnostics_;
  std::string sweep_;
  std::vector<std::string> rows_;  // by point; empty: not there
  std::vector<std::string> varied_;
  bool goodput_ = false;
};

// The reason when a row cannot be written.
std::optional<std::string> write_all(const std::vector<std::string>& rows, RowFile* file,
                                     RowOutputs& outputs) {
  for (const std::string& row : rows) {
    if (file != nullptr)
      if (auto why = file->append(row)) return why;
    if (auto why = outputs.add(row)) return why;
  }
  if (file != nullptr)
    if (auto why = file->sync()) return why;
  return outputs.finish();
}

}  // namespace

int merge_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string>& files = arguments.words();
  if (files.empty())
    throw UsageError("no file is named", "stagecraft merge shard-0.jsonl shard-1.jsonl --output all.jsonl");
  Diagnostics diagnostics;
  Merger merger(diagnostics);
  for (const std::string& file : files) merger.read(file);
  merger.check();
  if (!diagnostics.has_errors() && merger.rows().empty())
    diagnostics.error({.code = "no-points", .where = {.file = files[0]}, .message = "there are no rows"});
  std::optional<RowFile> file;
  std::optional<RowOutputs> outputs;
  if (!diagnostics.has_errors())
    outputs.emplace(RowOutputs::Request{.columns = merger.columns(), .to_file = arguments.has("output")},
                    arguments, session, diagnostics);
  if (const auto name = arguments.text("output"); name && !diagnostics.has_errors())
    file = RowFile::create(*name, arguments.has("force"), diagnostics);
  if (!diagnostics.has_errors()) outputs->open(diagnostics);
  if (diagnostics.has_errors() || !arguments.has("quiet"))
    print_diagnostics(diagnostics.sorted(), arguments, session, "nothing was merged");
  if (diagnostics.has_errors()) return kWrongInput;
  if (const auto why = write_all(merger.rows(), file ? &*file : nullptr, *outputs)) {
    session.err << "stagecraft: error: " << *why << '\n';
    return kWrongInput;
  }
  outputs->print_table();
  return kDone;
}

}  // namespace stagecraft
