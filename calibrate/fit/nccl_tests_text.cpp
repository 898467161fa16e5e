#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "base/launcher_prefix.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "calibrate/fit/nccl_tests_reader.hpp"

namespace stagecraft {

namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Positions in a row: of the time out of place, and of the wrong results of both halves. Before 2022 there
// was no column `root`, and of some collectives none of the operation.
struct Columns {
  std::size_t time = 0;
  std::size_t fewest = 0;  // that a whole row has
  std::vector<std::size_t> wrong{};
};

class TextReader {
 public:
  TextReader(const std::string& name, Diagnostics& diagnostics) : name_(name), diagnostics_(diagnostics) {}

  void read(std::string_view text) {
    while (!text.empty() && !second_run_) {
      const std::size_t end = text.find('\n');
      ++line_;
      read_line(trimmed(without_launcher_prefix(text.substr(0, end)), "\r"));
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
  }

  NcclRun finish() && {
    if (second_run_) return std::move(run_);
    if (const auto mistake = ranks_.close(run_)) refuse(*mistake);
    if (run_.rows.empty()) refuse("no row of a table was found");
    if (!ended_) {
      diagnostics_.warning({.code = "run-without-end",
                            .where = {name_, line_, 0},
                            .message = "the run has no end: its rows are used as far as they go"});
    }
    return std::move(run_);
  }

 private:
  void read_line(std::string_view line) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) return;
    if (words[0] == "#") {
      read_heading(line, words);
    } else if (words.size() >= 3 && words[0] == "NCCL" && words[1] == "version") {
      run_.nccl_version = words[2];
    } else {
      read_row(words);
    }
  }

  void read_heading(std::string_view line, const std::vector<std::string>& words) {
    constexpr std::string_view kStarting = "Collective test starting: ", kBounds = "Out of bounds values";
    if (const std::size_t at = line.find(kStarting); at != std::string_view::npos)
      read_name(words_of(line.substr(at + kStarting.size())));
    if (line.find(kBounds) != std::string_view::npos && words.back() != "OK")
      refuse(fmt::format("{}: such times say nothing", in_quotes(line.substr(line.find(kBounds)))));
    if (line.find("Avg bus bandwidth") != std::string_view::npos) ended_ = true;
    if (words.size() > 2 && words[1] == "nccl-tests") read_version(words);
    if (words.size() > 9 && words[1] == "Rank" && (words[3] == "Group" || words[3] == "Pid"))
      read_rank(line, words);
    if (words.size() > 3 && words[1] == "size" && words[2] == "count") read_columns(words);
  }

  void read_name(const std::vector<std::string>& words) {
    if (words.empty()) return refuse("the heading names no collective");
    if (!run_.program.empty()) return refuse_second_run(words[0] + " starts");
    run_.program = words[0];
    run_.kind = nccl_collective(words[0]);
  }

  void read_version(const std::vector<std::string>& words) {
    constexpr std::string_view kLibrary = "nccl-library=";
    for (const std::string& word : words) {
      if (!word.starts_with(kLibrary)) continue;
      const std::string version = word.substr(kLibrary.size());
      const std::optional<std::int64_t> number = parse_integer(version);
      run_.nccl_version = number ? detail::nccl_version_text(*number) : version;
    }
  }

  // #  Rank  0 Group  0 Pid  28616 on nccl-gib-test-0 device  0 [0000:8f:00] NVIDIA B200; before 2022 without a
  // group, which was one.
  void read_rank(std::string_view line, const std::vector<std::string>& words) {
    const std::optional<std::int64_t> rank = parse_integer(words[2]);
    if (!rank) return refuse(fmt::format("{} is no rank", in_quotes(words[2])));
    const auto on = std::ranges::find(words, "on");
    const bool on_host = on != words.end() && on + 1 != words.end();
    if (!ranks_.add(words[3] == "Group" ? words[4] : "0", *rank, on_host ? *(on + 1) : ""))
      return refuse_second_run(fmt::format("rank {} is listed again", *rank));
    if (const std::size_t bus = line.find("] "); bus != std::string_view::npos)
      run_.device = join(words_of(line.substr(bus + 2)), " ");
  }

  void read_columns(const std::vector<std::string>& words) {
    std::optional<std::size_t> time;
    std::vector<std::size_t> wrong;
    for (std::size_t i = 1; i < words.size(); ++i) {  // words[0] is '#'
      if (words[i] == "cputime") {
        return refuse("these are host times (-C 1), which are no time of a collective");
      }
      if (words[i] == "time" && !time) time = i - 1;
      if (words[i] == "#wrong") wrong.push_back(i - 1);
    }
    if (!time) return refuse("a table without a column `time`");
    constexpr std::size_t kOfToday = 13;  // options add some behind
    columns_ =
        Columns{.time = *time, .fewest = std::min(words.size() - 1, kOfToday), .wrong = std::move(wrong)};
  }

  void read_row(const std::vector<std::string>& words) {
    const std::optional<std::int64_t> bytes = parse_integer(words[0]);
    if (!bytes || words.size() < 2 || !parse_integer(words[1])) return;  // something else between the rows
    if (!columns_) return refuse("a row before the header of its table");
    if (words.size() < std::max(columns_->fewest, columns_->time + 1)) return refuse("a row that is cut off");
    if (*bytes < 0 || *bytes > detail::kMaxNcclBytes)
      return refuse(fmt::format("{} bytes are no size of a message", *bytes));
    for (const std::size_t column : columns_->wrong) {
      if (column >= words.size() || words[column] == "N/A") continue;
      if (const auto wrong = parse_number(words[column]); !wrong || *wrong > 0)
        return refuse(fmt::format("{} wrong results: such a time says nothing", words[column]));
    }
    const std::optional<double> us = parse_number(words[columns_->time]);
    if (!us || !detail::is_nccl_time(*us))
      return refuse(fmt::format("'{}' is no time", words[columns_->time]));
    detail::add_nccl_row(run_, {.bytes = static_cast<double>(*bytes), .seconds = *us * 1e-6});
  }

  void refuse(std::string message) {
    diagnostics_.error({.code = "bad-nccl-tests", .where = {name_, line_, 0}, .message = std::move(message)});
  }

  void refuse_second_run(const std::string& sign) {
    second_run_ = true;
    diagnostics_.error({.code = "several-runs",
                        .where = {name_, line_, 0},
                        .message = fmt::format("{}: the file holds a second run from here on", sign),
                        .hint = "one run a file: split it where the second one begins"});
  }

  const std::string& name_;
  Diagnostics& diagnostics_;
  NcclRun run_;
  int line_ = 0;
  bool ended_ = false;
  bool second_run_ = false;
  std::optional<Columns> columns_;
  detail::NcclRanks ranks_;
};

}  // namespace

std::optional<NcclRun> detail::read_nccl_text(std::string_view text, const std::string& name,
                                              Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  TextReader reader(name, diagnostics);
  reader.read(text);
  NcclRun run = std::move(reader).finish();
  if (!watch.clean()) return std::nullopt;
  return run;
}

}  // namespace stagecraft
