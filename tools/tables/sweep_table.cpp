#include "tools/tables/sweep_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "base/text.hpp"
#include "base/yaml.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kBest = 20;
constexpr std::size_t kMostBars = 40;
constexpr int kBarWidth = 40;

std::string short_name(const std::string& path) {
  return printable(path.substr(path.rfind('.') + 1));
}

std::string reading(const std::optional<double>& seconds) {
  return seconds ? human(from_seconds(*seconds)) : "cannot run";
}

// Six digits of a sampled number: the rows have all.
std::string short_value(const std::string& value) {
  constexpr std::size_t kDigits = 6;
  const std::size_t end = std::min(value.find(' '), value.size());  // of "2.154435 ms" the number
  const std::string digits = value.substr(0, end);
  const std::optional<double> number = parse_number(digits);
  const bool whole = digits.find_first_of(".e") == std::string::npos;
  if (!number || whole || digits.size() <= kDigits + 1) return value;
  return fmt::format("{:.{}g}", *number, kDigits) + value.substr(end);
}

// Displayed form of a column's values: all digits where fewer do not distinguish them.
std::map<std::string, std::string> shown_of(const std::set<std::string>& values) {
  std::map<std::string, std::string> shown;
  std::set<std::string> distinct;
  for (const std::string& value : values) distinct.insert(shown[value] = printable(short_value(value)));
  if (distinct.size() < values.size())
    for (auto& [value, text] : shown) text = printable(value);
  return shown;
}

}  // namespace

std::optional<std::string> SweepTable::add(const RowDocument& row) {
  if (paths_.empty()) paths_ = varied_paths(row);
  Entry entry;
  entry.feasible = row.feasible();
  entry.seconds = row.number("iteration_time_s");
  for (const std::string& path : paths_)
    entry.values.push_back(cell_of(row, {.name = path, .kind = RowColumn::Kind::kVaried}).text);
  entry.samples_per_s = row.number("samples_per_s").value_or(0);
  entry.tokens_per_s = row.number("tokens_per_s").value_or(0);
  entry.mfu = row.number("mfu").value_or(0);
  entry.bubble = row.number("bubble.over_ideal").value_or(0);
  entry.peak_bytes = row.number("memory.peak_bytes");
  entry.goodput = row.number("goodput.samples_per_s");
  // Without a capacity everything fits, which is no verdict.
  if (row.number("memory.capacity_bytes") != 0) entry.verdict = printable(row.text("memory.verdict"));
  entries_.push_back(std::move(entry));
  const std::optional<RowReason> reason = row.feasible() ? std::nullopt : first_reason(row);
  if (!reason) return std::nullopt;
  auto& [times, example] = refused_.try_emplace(reason->code, 0, reason->text).first->second;
  ++times;
  return std::nullopt;
}

// Merit of a point, larger is better: samples per second under failures where known, otherwise tokens,
// otherwise samples.
double SweepTable::merit(const Entry& entry) const {
  if (entry.goodput) return *entry.goodput;
  if (entry.tokens_per_s > 0) return entry.tokens_per_s;
  return entry.samples_per_s;
}

// Those that can be. Where none can, those that ran: they show how near they are.
std::vector<const SweepTable::Entry*> SweepTable::ranked() const {
  std::vector<const Entry*> best;
  std::set<std::vector<std::string>> seen;  // a sample may hold a point twice
  const bool any = any_feasible();
  for (const Entry& entry : entries_)
    if ((any ? entry.feasible : entry.seconds.has_value()) && seen.insert(entry.values).second)
      best.push_back(&entry);
  std::stable_sort(best.begin(), best.end(),
                   [&](const Entry* a, const Entry* b) { return merit(*a) > merit(*b); });
  return best;
}

bool SweepTable::any_feasible() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.feasible; });
}

std::map<std::string, std::string> SweepTable::shown_values(std::size_t path) const {
  std::set<std::string> values;
  for (const Entry& entry : entries_) values.insert(entry.values[path]);
  return shown_of(values);
}

// Paths with more than one value.
std::vector<std::size_t> SweepTable::telling() const {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < paths_.size(); ++i)
    if (std::any_of(entries_.begin(), entries_.end(),
                    [&](const Entry& entry) { return entry.values[i] != entries_[0].values[i]; }))
      columns.push_back(i);
  return columns;
}

// The last names of the paths, and the whole paths where two names are equal.
std::vector<std::string> SweepTable::titles(const std::vector<std::size_t>& columns) const {
  std::vector<std::string> names, whole;
  for (const std::size_t i : columns) {
    names.push_back(short_name(paths_[i]));
    whole.push_back(printable(paths_[i]));
  }
  return std::set<std::string>(names.begin(), names.end()).size() < names.size() ? whole : names;
}

std::vector<SweepTable::Figure> SweepTable::figures(const std::vector<const Entry*>& best) {
  const auto any = [&](bool (*has)(const Entry&)) {
    return std::any_of(best.begin(), best.end(), [&](const Entry* entry) { return has(*entry); });
  };
  std::vector<Figure> all{{.title = "iteration", .cell = [](const Entry& e) { return reading(e.seconds); }}};
  if (any([](const Entry& e) { return e.goodput.has_value(); }))
    all.push_back({.title = "goodput", .cell = [](const Entry& e) -> std::string {
                     return e.goodput ? four_digits(*e.goodput) + "/s" : "–";
                   }});
  if (any([](const Entry& e) { return e.tokens_per_s > 0 && e.mfu > 0; })) {
    all.push_back({.title = "tokens/s",
                   .cell = [](const Entry& e) { return with_thousands(std::llround(e.tokens_per_s)); }});
    all.push_back({.title = "MFU", .cell = [](const Entry& e) { return percent(e.mfu); }});
  }
  all.push_back({.title = "bubble", .cell = [](const Entry& e) { return percent(e.bubble); }});
  if (any([](const Entry& e) { return e.peak_bytes.value_or(0) > 0; }))
    all.push_back({.title = "memory", .align = Align::kLeft, .cell = [](const Entry& e) {
                     const Bytes peak(static_cast<std::int64_t>(e.peak_bytes.value_or(0)));
                     return e.verdict.empty() ? human(peak) : fmt::format("{} {}", human(peak), e.verdict);
                   }});
  return all;
}

std::string SweepTable::rows(const std::vector<const Entry*>& best) const {
  const std::vector<std::size_t> columns = telling();
  const std::vector<Figure> behind = figures(best);
  std::vector<std::string> head = titles(columns);
  std::vector<Align> aligns(head.size(), Align::kLeft);
  for (const Figure& figure : behind) {
    head.emplace_back(figure.title);
    aligns.push_back(figure.align);
  }
  TextTable table(aligns);
  table.row(std::move(head));
  std::vector<std::map<std::string, std::string>> values;
  for (const std::size_t i : columns) values.push_back(shown_values(i));
  const std::size_t shown = verbose_ ? best.size() : std::min(best.size(), kBest);
  for (const Entry* entry : std::span(best).first(shown)) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < columns.size(); ++i) cells.push_back(values[i].at(entry->values[columns[i]]));
    for (const Figure& figure : behind) cells.push_back(figure.cell(*entry));
    table.row(std::move(cells));
  }
  std::string out = table.str();
  if (shown < best.size())
    out += fmt::format("… {} more; --verbose shows all\n",
                       with_thousands(static_cast<std::int64_t>(best.size() - shown)));
  return out;
}

std::string SweepTable::refusals() const {
  std::string out;
  for (const auto& [code, what] : refused_)
    out += printable(fmt::format("{}: {}, first: {}", code,
                                 counted_thousands(static_cast<std::int64_t>(what.first), "point"),
                                 what.second)) +
           "\n";
  return out;
}

// One bar a value, where one number varies.
std::string SweepTable::chart() const {
  const std::vector<std::size_t> columns = telling();
  if (columns.size() != 1 || entries_.size() < 3 || entries_.size() > kMostBars) return {};
  const std::size_t at = columns[0];
  double most = 0;
  for (const Entry& entry : entries_) {
    const std::size_t digits = std::min(entry.values[at].find(' '), entry.values[at].size());
    if (!parse_number(entry.values[at].substr(0, digits))) return {};
    if (entry.seconds) most = std::max(most, merit(entry));
  }
  if (most <= 0) return {};
  TextTable table({Align::kRight, Align::kLeft});
  const bool goodput = entries_[0].goodput.has_value(), tokens = entries_[0].tokens_per_s > 0;
  table.row({short_name(paths_[at]), goodput  ? "samples/s after failures"
                                     : tokens ? "tokens/s"
                                              : "samples/s"});
  const std::map<std::string, std::string> values = shown_values(at);
  for (const Entry& entry : entries_) {
    std::string bar = "–";
    if (entry.seconds) {
      const auto eighths = static_cast<int>(std::lround(merit(entry) / most * kBarWidth * 8));
      static constexpr std::string_view kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
      bar.clear();
      for (int i = 0; i < eighths / 8; ++i) bar += "█";
      bar += kParts[eighths % 8];
      bar += fmt::format(" {}{}", four_digits(merit(entry)),
                         entry.feasible || entry.verdict.empty() ? "" : " " + entry.verdict);
    }
    table.row({values.at(entry.values[at]), bar});
  }
  return "\n" + table.str();
}

std::string SweepTable::str() const {
  if (entries_.empty()) return "no point: the shard has none\n";
  const std::vector<const Entry*> best = ranked();
  std::string out = best.empty() ? "" : rows(best);
  out += refusals();
  return out + (any_feasible() ? chart() : "no point can run and fits\n");
}

}  // namespace stagecraft
