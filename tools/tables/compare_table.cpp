#include "tools/tables/compare_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "sim/scenario/preset.hpp"

namespace stagecraft {
namespace {

constexpr const char* kNone = "–";

// "schedule: '2f2b' is not a known schedule (did you mean '1f1b'?)".
std::string words_of(const Diagnostic& error) {
  return one_line(error) + (error.hint.empty() ? "" : " (" + error.hint + ")");
}

// Empty where it is only the file that the variant is named by.
std::string place_words(const SourceLocation& where, const std::string& file) {
  if (where.line > 0) return fmt::format("{}:{}:{}: ", where.file, where.line, where.column);
  return where.file.empty() || where.file == file ? "" : where.file + ": ";
}

// All errors, each with its place.
std::string errors_of(const Outcome& outcome, const std::string& file) {
  std::vector<std::string> words;
  for (const Diagnostic& said : outcome.diagnostics)
    if (said.severity == Severity::kError) words.push_back(place_words(said.where, file) + words_of(said));
  SC_CHECK(!words.empty(), "what cannot run has a reason");
  return join(words, "; ");
}

std::string missed_words(const Outcome& outcome) {
  std::vector<std::string> words;
  for (const Diagnostic& missed : outcome.missed) words.push_back(words_of(missed));
  return join(words, "; ");
}

// "tensor" of "parallelism.tensor", unless two paths end alike.
std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) names.push_back(path.substr(path.rfind('.') + 1));
  return std::set<std::string>(names.begin(), names.end()).size() == names.size() ? names : paths;
}

// A name does ("1f1b", "dgx-h100"); a quantity, a list and a yes or no ("2", "80 GiB", "[2, 2]") do not.
bool speaks_for_itself(std::string_view value) {
  static constexpr std::string_view kMute[] = {"true", "false", "null", "none"};
  constexpr std::string_view kUnits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/% ";
  if (std::ranges::find(kMute, value) != std::end(kMute) || parse_number(value)) return false;
  const std::size_t digits = std::min(value.find_first_not_of("+-.0123456789"), value.size());
  if (digits > 0) return value.find_first_not_of(kUnits, digits) != std::string_view::npos;
  return !value.empty() && kUnits.find(value.front()) != std::string_view::npos;
}

std::vector<std::string> file_names(const std::vector<Variant>& variants) {
  std::set<std::string> files, stems;
  std::vector<std::string> names;
  for (const Variant& variant : variants) {
    const std::string stem = stem_of(variant.file);
    files.insert(variant.file);
    stems.insert(stem);
    names.push_back(stem);
  }
  if (files.size() == 1) return {};
  if (stems.size() == files.size()) return names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = variants[i].file;
  return names;
}

struct ComparedWords {
  const char *column, *ranked;
};
constexpr std::array<ComparedWords, 3> kComparedWords = {
    {{"relative", ""}, {"relative/token", " by tokens/s"}, {"relative/sample", " by samples/s"}}};

// In ns.
double compared_time(const Report& report, ComparedTime compared) {
  const std::int64_t parts = compared == ComparedTime::kToken    ? report.tokens
                             : compared == ComparedTime::kSample ? report.samples
                                                                 : 1;
  return static_cast<double>(report.iteration_time.count()) / static_cast<double>(parts);
}

// Two decimals, and three digits of what is less than a tenth.
std::string relative_words(double relative) {
  return relative > 0 && relative < 0.1 ? fmt::format("{:#.3g}", relative) : fmt::format("{:.2f}", relative);
}

struct Column {
  std::string title;
  Align align = Align::kRight;
  std::function<std::string(const Outcome&)> cell;
};

class Table {
 public:
  explicit Table(const Comparison& comparison) : comparison_(comparison), names_(comparison) {
    for (const Outcome& outcome : comparison.outcomes) {
      if (!outcome.report) continue;
      abstract_ = abstract_ && outcome.report->peak <= FlopRate(0);
      bytes_ = bytes_ || outcome.report->memory.heaviest().peak() > Bytes(0);
      missed_ = missed_ || !outcome.missed.empty();
      tokens_ = tokens_ && outcome.report->tokens > 0;
      gpus_.insert(outcome.report->gpus);
    }
  }

  [[nodiscard]] VariantCells cells() const {
    const std::vector<Column> more = columns();
    std::vector<std::string> titles = names_.titles;
    std::vector<Align> aligns(titles.size(), Align::kLeft);
    titles.insert(titles.end(), {"iteration", words().column});
    aligns.insert(aligns.end(), {Align::kRight, Align::kRight});
    for (const Column& column : more) {
      titles.push_back(column.title);
      aligns.push_back(column.align);
    }
    VariantCells cells{.aligns = std::move(aligns), .rows = {std::move(titles)}};
    for (std::size_t i = 0; i < comparison_.outcomes.size(); ++i) {
      const Outcome& outcome = comparison_.outcomes[i];
      std::vector<std::string> row = names_.columns[i];
      row.push_back(outcome.report ? human(outcome.report->iteration_time) : "cannot run");
      const std::optional<double> relative = comparison_.relative_time(i);
      row.push_back(relative ? relative_words(*relative) : kNone);
      for (const Column& column : more) row.push_back(outcome.report ? column.cell(outcome) : kNone);
      cells.rows.push_back(std::move(row));
    }
    return cells;
  }

  [[nodiscard]] std::vector<std::string> best() const {
    std::vector<std::size_t> ran, fit;
    for (std::size_t i = 0; i < comparison_.outcomes.size(); ++i) {
      if (!comparison_.outcomes[i].report) continue;
      ran.push_back(i);
      if (fits(i)) fit.push_back(i);
    }
    if (ran.size() < 2) return {};
    std::vector<std::string> out;
    if (unlike_gpus())
      out = {fmt::format("the variants run on {} to {} GPUs: {}/s/GPU compares them",
                         with_thousands(*gpus_.begin()), with_thousands(*gpus_.rbegin()), unit()),
             fastest(ran, fit), most_of_a_gpu(good(fit)), least_memory(ran)};
    else
      out = {fastest(ran, fit), least_memory(ran)};
    std::erase(out, "");
    return out;
  }

 private:
  [[nodiscard]] const ComparedWords& words() const {
    return kComparedWords[static_cast<std::size_t>(comparison_.compared())];
  }

  [[nodiscard]] bool unlike_gpus() const { return gpus_.size() > 1; }

  [[nodiscard]] const char* unit() const { return tokens_ ? "tokens" : "samples"; }

  [[nodiscard]] double rate_of_a_gpu(const Outcome& outcome) const {
    const Report& report = *outcome.report;
    return (tokens_ ? report.tokens_per_s() : report.samples_per_s()) / report.gpus;
  }

  [[nodiscard]] std::string on_gpus(std::size_t variant) const {
    const int gpus = comparison_.outcomes[variant].report->gpus;
    return unlike_gpus() ? " on " + counted_thousands(gpus, "GPU") : "";
  }

  [[nodiscard]] static std::string memory(const Outcome& outcome) {
    const MemoryLedger& memory = outcome.report->memory;
    if (memory.capacity <= Bytes(0)) return human(memory.heaviest().peak());
    return fmt::format("{} {}", human(memory.heaviest().peak()), name_of(memory.verdict()));
  }

  [[nodiscard]] static std::string asserted(const Outcome& outcome) {
    if (outcome.scenario->assertions.empty()) return kNone;
    return outcome.missed.empty() ? "met" : "missed";
  }

  [[nodiscard]] std::vector<Column> columns() const {
    const auto tokens = [](const Outcome& o) {
      const double rate = o.report->tokens_per_s();
      return rate > 0 ? with_thousands(std::llround(rate)) : kNone;
    };
    const auto mfu = [](const Outcome& o) {
      return o.report->peak > FlopRate(0) ? percent(o.report->mfu()) : kNone;
    };
    const auto gpus = [](const Outcome& o) { return with_thousands(o.report->gpus); };
    const auto of_a_gpu = [this](const Outcome& o) { return four_digits(rate_of_a_gpu(o)); };
    std::vector<Column> columns;
    if (unlike_gpus()) columns.push_back({.title = "GPUs", .cell = gpus});
    if (!abstract_) columns.push_back({.title = "tokens/s", .cell = tokens});
    if (unlike_gpus()) columns.push_back({.title = fmt::format("{}/s/GPU", unit()), .cell = of_a_gpu});
    if (!abstract_) {
      columns.push_back({.title = "MFU", .cell = mfu});
    }
    columns.push_back({.title = "bubble/ideal",
                       .cell = [](const Outcome& o) { return percent(o.report->bubble.over_ideal); }});
    if (abstract_) {
      columns.push_back({.title = "live chunks", .cell = live_chunks});
    }
    if (bytes_) columns.push_back({.title = "memory", .align = Align::kLeft, .cell = memory});
    if (missed_) columns.push_back({.title = "assert", .align = Align::kLeft, .cell = asserted});
    return columns;
  }

  // "4", or "11 of half the size" where a rank has two chunks.
  static std::string live_chunks(const Outcome& outcome) {
    const int chunks = outcome.scenario->parallelism.virtual_stages;
    if (chunks == 1) return fmt::format("{}", outcome.live_chunks);
    if (chunks == 2) return fmt::format("{} of half the size", outcome.live_chunks);
    return fmt::format("{} of 1/{} the size", outcome.live_chunks, chunks);
  }

  // Memory for the comparison: bytes of the heaviest rank, or activations of a whole rank where no stage has bytes.
  [[nodiscard]] double held(const Outcome& outcome) const {
    if (bytes_) return static_cast<double>(outcome.report->memory.heaviest().peak().count());
    return static_cast<double>(outcome.live_chunks) / outcome.scenario->parallelism.virtual_stages;
  }

  [[nodiscard]] bool fits(std::size_t variant) const {
    return comparison_.outcomes[variant].report->memory.verdict() != Verdict::kOutOfMemory;
  }

  // The variants that fit and meet their assertions.
  [[nodiscard]] std::vector<std::size_t> good(std::vector<std::size_t> fit) const {
    std::erase_if(fit, [&](std::size_t i) { return !comparison_.outcomes[i].missed.empty(); });
    return fit;
  }

  // The fastest variant that fits and meets its assertions; one that runs out of memory does not count.
  [[nodiscard]] std::string fastest(const std::vector<std::size_t>& ran,
                                    const std::vector<std::size_t>& fit) const {
    if (fit.empty()) return "none fits into memory";
    const std::vector<std::size_t> meet = good(fit);
    std::vector<std::string> asked;
    if (fit.size() < ran.size()) asked.emplace_back("fits");
    if (meet.size() < fit.size()) asked.emplace_back("meets its assert");
    const std::string which = join(asked, " and ");
    if (meet.empty()) return "none " + which;
    const auto time = [&](std::size_t i) {
      return compared_time(*comparison_.outcomes[i].report, comparison_.compared());
    };
    const std::size_t best = *std::min_element(
        meet.begin(), meet.end(), [&](std::size_t a, std::size_t b) { return time(a) < time(b); });
    std::vector<std::string> equals;
    for (const std::size_t i : meet)
      if (time(i) == time(best)) equals.push_back(names_.spoken(i) + on_gpus(i));
    const bool all = which.empty() && equals.size() > 1 && equals.size() == meet.size();
    std::string out = fmt::format("fastest{}{}{}: {}", which.empty() ? "" : " that ", which, words().ranked,
                                  all ? "all are as fast" : listed(std::move(equals)));
    const std::optional<double> relative = comparison_.relative_time(best);
    if (relative && *relative > 0 && *relative < 1)
      out += fmt::format(", {:.2f}x over {}", 1 / *relative, names_.spoken(0));
    return out;
  }

  [[nodiscard]] std::string most_of_a_gpu(const std::vector<std::size_t>& meet) const {
    if (meet.empty()) return "";
    const auto rate = [&](std::size_t i) { return rate_of_a_gpu(comparison_.outcomes[i]); };
    const std::size_t best = *std::max_element(
        meet.begin(), meet.end(), [&](std::size_t a, std::size_t b) { return rate(a) < rate(b); });
    std::string out = fmt::format("most {}/s/GPU: {}{}", unit(), names_.spoken(best), on_gpus(best));
    if (comparison_.outcomes.front().report && rate(0) > 0 && rate(best) > rate(0))
      out += fmt::format(", {:.2f}x over {}", rate(best) / rate(0), names_.spoken(0));
    return out;
  }

  [[nodiscard]] std::string least_memory(const std::vector<std::size_t>& ran) const {
    double least = held(comparison_.outcomes[ran.front()]);
    for (const std::size_t i : ran) least = std::min(least, held(comparison_.outcomes[i]));
    std::vector<std::string> equals;
    for (const std::size_t i : ran)
      if (held(comparison_.outcomes[i]) == least) equals.push_back(names_.spoken(i));
    if (equals.size() == ran.size()) return "least memory: all hold the same";
    return "least memory: " + listed(std::move(equals));
  }

  // "1f1b, zb-h1, zb-h2, 4 more".
  [[nodiscard]] static std::string listed(std::vector<std::string> equals) {
    constexpr std::size_t kNamed = 3;
    if (equals.size() > kNamed) {
      equals[kNamed] = fmt::format("{} more", equals.size() - kNamed);
      equals.resize(kNamed + 1);
    }
    return join(equals, ", ");
  }

  const Comparison& comparison_;
  VariantNames names_;
  bool abstract_ = true;  // no variant has hardware
  bool bytes_ = false;    // some variant says what it holds
  bool missed_ = false;   // some variant misses an assertion
  bool tokens_ = true;    // all variants train on tokens
  std::set<int> gpus_;    // that variants run on
};

}  // namespace

ComparedTime Comparison::compared() const {
  std::set<std::int64_t> tokens, samples;
  for (const Outcome& outcome : outcomes) {
    if (!outcome.report) continue;
    tokens.insert(outcome.report->tokens);
    samples.insert(outcome.report->samples);
  }
  if (!tokens.contains(0)) return tokens.size() > 1 ? ComparedTime::kToken : ComparedTime::kIteration;
  return samples.size() > 1 ? ComparedTime::kSample : ComparedTime::kIteration;
}

std::optional<double> Comparison::relative_time(std::size_t variant) const {
  const std::optional<Report>& first = outcomes.front().report;
  const std::optional<Report>& report = outcomes.at(variant).report;
  if (!first || !report || first->iteration_time <= Duration::zero()) return std::nullopt;
  return compared_time(*report, compared()) / compared_time(*first, compared());
}

VariantNames::VariantNames(const Comparison& comparison)
    : titles(short_names(comparison.paths)), keys(comparison.paths.size()) {
  const std::vector<std::string> files = file_names(comparison.variants);
  if (!files.empty() || titles.empty()) titles.insert(titles.begin(), "scenario");
  for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
    std::vector<std::string>& names = columns.emplace_back();
    if (!files.empty()) names.push_back(files[i]);
    const std::vector<std::string>& values = comparison.variants[i].values;
    names.insert(names.end(), values.begin(), values.end());
    if (names.empty()) names.push_back(comparison.variants[i].file);
  }
}

std::string VariantNames::spoken(std::size_t variant) const {
  const std::vector<std::string>& words = columns.at(variant);
  const bool one_key = keys == 1 && words.size() == 1;
  return one_key && !speaks_for_itself(words[0]) ? titles[0] + " " + words[0] : join(words, " ");
}

VariantCells cells_of(const Comparison& comparison) {
  return Table(comparison).cells();
}

std::vector<std::string> best_of(const Comparison& comparison) {
  return Table(comparison).best();
}

std::vector<std::string> reasons_of(const Comparison& comparison) {
  const VariantNames names(comparison);
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < comparison.outcomes.size(); ++i) {
    const Outcome& outcome = comparison.outcomes[i];
    const std::string name = names.spoken(i);
    if (outcome.report)
      reasons.push_back(outcome.missed.empty() ? "" : name + " misses " + missed_words(outcome));
    else
      reasons.push_back(name + " cannot run: " + errors_of(outcome, comparison.variants[i].file));
  }
  return reasons;
}

}  // namespace stagecraft
