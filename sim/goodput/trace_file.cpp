#include "sim/goodput/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "base/yaml.hpp"

namespace stagecraft {

namespace {

constexpr std::size_t kMostErrors = 100;
constexpr double kLongestSeconds = 9e9;  // close to the range of 64-bit nanoseconds

struct Header {
  std::string_view line;
  TraceForm form;
  std::size_t fields;
};
constexpr std::array<Header, 3> kHeaders{
    {{"time_s,event,node", TraceForm::kEvents, 3},
     {"time_s,available", TraceForm::kCounts, 2},
     {"time_s,event,node,level,class,description", TraceForm::kFaults, 6}}};

// Splits into at most `most` fields; the last one keeps its commas.
std::vector<std::string_view> split(std::string_view line, std::size_t most) {
  std::vector<std::string_view> fields;
  while (fields.size() + 1 < most) {
    const auto comma = line.find(',');
    if (comma == std::string_view::npos) break;
    fields.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  fields.push_back(line);
  return fields;
}

// Numbers of names in order of first appearance.
class Names {
 public:
  explicit Names(std::vector<std::string>& names) : names_(names) {}

  std::int32_t number(std::string_view name) {
    const auto [entry, added] =
        numbers_.try_emplace(std::string(name), static_cast<std::int32_t>(names_.size()));
    if (added) names_.emplace_back(name);
    return entry->second;
  }

 private:
  std::vector<std::string>& names_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
};

class Parser {
 public:
  Parser(const std::string& name, Diagnostics& diagnostics)
      : name_(name), diagnostics_(diagnostics), before_(diagnostics.error_count()) {}

  std::optional<Trace> parse(std::string_view text);

 private:
  using Fields = std::vector<std::string_view>;

  // `field` counts from 0; the place is where it begins in the line.
  void error(std::string code, std::string message, std::string hint, std::string_view field = {});
  [[nodiscard]] std::size_t errors() const { return diagnostics_.error_count() - before_; }

  void read_header(std::string_view line);
  void read_row(std::string_view line);
  std::optional<Duration> read_time(std::string_view field);
  void read_event(Duration time, const Fields& fields);
  void read_count(Duration time, const Fields& fields);
  void read_fault(Duration time, const Fields& fields);

  const std::string& name_;
  Diagnostics& diagnostics_;
  std::size_t before_;
  int line_ = 0;
  std::string_view text_;  // of the line
  const Header* header_ = nullptr;
  Trace trace_;
  Names nodes_{trace_.nodes}, causes_{trace_.causes};
  Duration last_{};
  std::vector<bool> there_;                                            // by node
  std::map<std::string, std::deque<std::int32_t>, std::less<>> open_;  // faults by all that names them
  std::int32_t faults_ = 0;
};

void Parser::error(std::string code, std::string message, std::string hint, std::string_view field) {
  const int column = field.data() == nullptr ? 1 : static_cast<int>(field.data() - text_.data()) + 1;
  diagnostics_.error({.code = std::move(code),
                      .where = {.file = name_, .line = line_, .column = column},
                      .message = std::move(message),
                      .hint = std::move(hint)});
}

void Parser::read_header(std::string_view line) {
  for (const Header& header : kHeaders)
    if (line == header.line) header_ = &header;
  if (header_ != nullptr) {
    trace_.form = header_->form;
    return;
  }
  error("not-a-trace", fmt::format("{} is not the header of a trace", in_quotes(line)),
        fmt::format("the first line but comments is one of {}; {}; {}", kHeaders[0].line, kHeaders[1].line,
                    kHeaders[2].line));
}

std::optional<Duration> Parser::read_time(std::string_view field) {
  const std::optional<double> seconds = parse_number(field);
  if (!seconds || *seconds < 0 || *seconds > kLongestSeconds) {
    error("bad-time", fmt::format("{} is not a time in seconds", in_quotes(field)),
          "write seconds since the start of the trace, as 336571.2", field);
    return std::nullopt;
  }
  const Duration time = from_seconds(*seconds);
  if (time < last_) {
    error("out-of-order",
          fmt::format("{} s is before {} s, the time of the row above", field, to_seconds(last_)),
          "sort the rows by time", field);
    return std::nullopt;
  }
  last_ = time;
  return time;
}

void Parser::read_event(Duration time, const Fields& fields) {
  const bool adds = fields[1] == "add";
  if (!adds && fields[1] != "remove")
    return error("unknown-event", fmt::format("{} is not an event", in_quotes(fields[1])),
                 "an event is add or remove", fields[1]);
  if (fields[2].empty()) return error("no-node", "the row names no node", "name the node", fields[2]);
  const std::int32_t node = nodes_.number(fields[2]);
  there_.resize(trace_.nodes.size());
  const auto index = static_cast<std::size_t>(node);
  if (there_[index] == adds)
    return error("unknown-node",
                 fmt::format("node {} is {}", in_quotes(fields[2]),
                             adds ? "there already" : "not there to be removed"),
                 adds ? "remove it first, or give the newcomer a name of its own"
                      : "a node is added before it is removed",
                 fields[2]);
  there_[index] = adds;
  trace_.rows.push_back({.time = time, .event = adds ? TraceEvent::kAdd : TraceEvent::kRemove, .node = node});
}

void Parser::read_count(Duration time, const Fields& fields) {
  const std::optional<std::int64_t> count = parse_integer(fields[1]);
  if (!count || *count < 0 || *count > std::numeric_limits<std::int32_t>::max())
    return error("bad-count", fmt::format("{} is not a number of nodes", in_quotes(fields[1])),
                 "write a whole number, 0 or more", fields[1]);
  trace_.counts.push_back({.time = time, .available = static_cast<int>(*count)});
}

void Parser::read_fault(Duration time, const Fields& fields) {
  const bool starts = fields[1] == "fault_start";
  if (!starts && fields[1] != "fault_end")
    return error("unknown-event", fmt::format("{} is not an event", in_quotes(fields[1])),
                 "an event is fault_start or fault_end", fields[1]);
  if (fields[2].empty()) return error("no-node", "the row names no node", "name the node", fields[2]);
  std::string what(text_.substr(static_cast<std::size_t>(fields[2].data() - text_.data())));
  std::deque<std::int32_t>& open = open_[std::move(what)];
  if (!starts && open.empty())
    return error("unknown-fault", fmt::format("no such fault of node {} is open", in_quotes(fields[2])),
                 "a fault_end repeats node, level, class and description of an earlier fault_start",
                 fields[2]);
  std::int32_t fault = faults_;
  if (starts) {
    open.push_back(faults_++);
  } else {
    fault = open.front();
    open.pop_front();
  }
  trace_.rows.push_back({.time = time,
                         .event = starts ? TraceEvent::kFaultStart : TraceEvent::kFaultEnd,
                         .node = nodes_.number(fields[2]),
                         .cause = causes_.number(fields[4].empty() ? "fault" : fields[4]),
                         .fault = fault});
}

void Parser::read_row(std::string_view line) {
  const Fields fields = split(line, header_->fields);
  // An extra comma shows as a field that is neither a number nor an event; in the last field it is part of a
  // name.
  const bool too_many =
      header_->form != TraceForm::kFaults && fields.back().find(',') != std::string_view::npos;
  if (fields.size() != header_->fields || too_many)
    return error(
        "wrong-fields",
        fmt::format("{} does not have the {} fields of the header", in_quotes(line), header_->fields),
        fmt::format("the header is {}", header_->line));
  const std::optional<Duration> time = read_time(fields[0]);
  if (!time) return;
  if (header_->form == TraceForm::kEvents) read_event(*time, fields);
  if (header_->form == TraceForm::kCounts) read_count(*time, fields);
  if (header_->form == TraceForm::kFaults) read_fault(*time, fields);
}

std::optional<Trace> Parser::parse(std::string_view text) {
  std::size_t rows = 0;
  while (!text.empty() && errors() < kMostErrors) {
    const auto newline = text.find('\n');
    text_ = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (text_.ends_with('\r')) text_.remove_suffix(1);
    ++line_;
    if (text_.empty() || text_.starts_with('#')) continue;
    if (header_ == nullptr) {
      read_header(text_);
      if (header_ == nullptr) return std::nullopt;
      continue;
    }
    if (++rows > kMaxTraceRows) {
      error("too-many-rows", fmt::format("a trace has at most {} rows", with_thousands(kMaxTraceRows)),
            "cut it, or thin it out");
      break;
    }
    read_row(text_);
  }
  text_ = {};
  if (header_ == nullptr || (rows == 0 && errors() == 0))
    error("empty-trace", header_ == nullptr ? "there is no header" : "there are no rows",
          "a trace says when something happens");
  return errors() == 0 ? std::optional(std::move(trace_)) : std::nullopt;
}

}  // namespace

std::optional<Trace> parse_trace(std::string_view text, const std::string& name, Diagnostics& diagnostics) {
  std::optional<Trace> trace = Parser(name, diagnostics).parse(without_byte_order_mark(text));
  if (trace) trace->hash = StableHash().add(text).hex();
  return trace;
}

std::vector<Duration> fault_durations(const Trace& trace) {
  SC_CHECK(trace.form == TraceForm::kFaults, "faults last, events do not");
  std::map<std::int32_t, Duration> started;
  std::vector<Duration> durations;
  for (const TraceRow& row : trace.rows) {
    if (row.event == TraceEvent::kFaultStart)
      started[row.fault] = row.time;
    else
      durations.push_back(row.time - started.at(row.fault));
  }
  std::ranges::sort(durations);
  return durations;
}

}  // namespace stagecraft
