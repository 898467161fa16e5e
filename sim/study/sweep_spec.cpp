#include "sim/study/sweep_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/study/compare.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostChoices = 1'000'000;  // limit of one axis

// A number and its unit, with a space before it where there is one: "10 ms" is 10 and " ms".
struct Figure {
  double number = 0;
  std::string unit;
  bool whole = false;
};

std::optional<Figure> figure_of(const std::string& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789._+-eE"), text.size());
  for (std::size_t length = end; length > 0; --length) {  // "1e3", but also "1EB"
    const std::string_view digits = std::string_view(text).substr(0, length);
    const auto number = parse_number(digits);
    if (!number) continue;
    const bool whole = parse_integer(digits).has_value();
    return Figure{.number = *number, .unit = text.substr(length), .whole = whole};
  }
  return std::nullopt;
}

// "10 ms" and "20ms" have one unit.
bool is_one_unit(std::string_view one, std::string_view other) {
  return trimmed(one, " ") == trimmed(other, " ");
}

std::vector<std::string> split_paths(const std::string& key) {
  std::vector<std::string> paths;
  for (const std::string_view path : split(key, ',')) paths.emplace_back(trimmed(path, " "));
  return paths;
}

// One entry of `vary`.
class AxisReader {
 public:
  AxisReader(const YamlEntry& entry, bool sampled, Diagnostics& diagnostics)
      : entry_(entry), sampled_(sampled), diagnostics_(diagnostics) {}

  std::optional<SweepAxis> read() {
    const ErrorWatch watch(diagnostics_);
    axis_.where = entry_.where;
    axis_.paths = split_paths(entry_.key);
    if (std::ranges::find(axis_.paths, "") != axis_.paths.end())
      error(entry_.where, "bad-path", "a path is empty", "write path.to.key, or several with commas between");
    const YamlNode& value = entry_.value;
    switch (value.kind) {
      case YamlNode::Kind::kSequence:
        read_list(value);
        break;
      case YamlNode::Kind::kMap:
        read_range();
        break;
      case YamlNode::Kind::kScalar:
        error(value.where, "wrong-kind",
              fmt::format("expected a list of values, found {}", in_quotes(value.text)),
              "one value is written [value]");
        break;
      case YamlNode::Kind::kNull:
        error(value.where, "no-value", "has no values", "write a list: [1, 2, 4]");
        break;
    }
    if (!watch.clean()) return std::nullopt;
    return std::move(axis_);
  }

 private:
  void error(const SourceLocation& where, std::string code, std::string message, std::string hint = {}) {
    diagnostics_.error({.code = std::move(code),
                        .where = where,
                        .path = "vary." + entry_.key,
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  void read_list(const YamlNode& list) {
    if (list.items.empty()) error(list.where, "no-value", "the list is empty", "write [1, 2, 4]");
    const std::size_t width = axis_.paths.size();
    for (const YamlNode& item : list.items) {
      if (width == 1) {
        axis_.choices.push_back({item});
      } else if (item.kind != YamlNode::Kind::kSequence || item.items.size() != width) {
        error(item.where, "wrong-kind",
              item.kind == YamlNode::Kind::kSequence
                  ? fmt::format("{} values for {} paths", item.items.size(), width)
                  : fmt::format("expected a list of {} values, one for each path", width),
              "each entry gives a value to each path: [[64, 768], [128, 1536]]");
      } else {
        axis_.choices.push_back(item.items);
      }
    }
  }

  void read_range() {
    if (axis_.paths.size() > 1)
      return error(entry_.value.where, "wrong-kind", "a range is of one path", "write a list of lists");
    YamlMap map(&entry_.value, "vary." + entry_.key, entry_.value.where, diagnostics_);
    const std::array<std::string, 2> kScales{"linear", "log"};
    const ErrorWatch watch(diagnostics_);
    const std::string from = map.text("from"), to = map.text("to");
    const bool logarithmic = map.choice("scale", kScales, 0) == 1;
    const Limits<std::int64_t> count{.min = 1, .max = kMostChoices, .fallback = 0};
    const std::int64_t points = map.integer("points", count);
    const Figure step = read_step(map);
    const double factor = map.number("factor", {.fallback = 0});
    map.finish();
    if (!watch.clean()) return;
    const std::optional<SweepRange> range = make_range(map, from, to, logarithmic || map.has("factor"));
    if (!range) return;
    const int ways = static_cast<int>(map.has("points")) + static_cast<int>(map.has("step")) +
                     static_cast<int>(map.has("factor"));
    if (ways > 1) return map.error("", "contradictory", "has several of points, step and factor", "keep one");
    if (ways == 0) return take_whole(map, *range);
    if (map.has("points")) return add_points(*range, points);
    if (map.has("step")) return add_steps(map, *range, step);
    add_factors(map, *range, factor);
  }

  Figure read_step(YamlMap& map) {
    const std::string text = map.text("step", "");
    const std::optional<Figure> step = figure_of(text);
    if (!step && map.has("step"))
      map.error("step", "bad-number", fmt::format("{} is not a number", in_quotes(text)));
    return step.value_or(Figure());
  }

  std::optional<SweepRange> make_range(YamlMap& map, const std::string& from, const std::string& to,
                                       bool logarithmic) {
    const std::optional<Figure> low = figure_of(from), high = figure_of(to);
    if (!low) map.error("from", "bad-number", fmt::format("{} is not a number", in_quotes(from)));
    if (!high) map.error("to", "bad-number", fmt::format("{} is not a number", in_quotes(to)));
    if (!low || !high) return std::nullopt;
    if (!is_one_unit(low->unit, high->unit)) {
      map.error("to", "bad-unit",
                fmt::format("{} and {} have different units", in_quotes(from), in_quotes(to)),
                "write both in one unit");
      return std::nullopt;
    }
    if (logarithmic && (low->number <= 0 || high->number <= 0)) {
      map.error("from", "out-of-range", "a logarithmic range has ends above 0");
      return std::nullopt;
    }
    if (low->number > high->number) {
      map.error("to", "out-of-range", fmt::format("{} is less than {}", to, from),
                "from the smaller to the larger");
      return std::nullopt;
    }
    return SweepRange{.from = low->number,
                      .to = high->number,
                      .logarithmic = logarithmic,
                      .whole = low->whole && high->whole,
                      .unit = low->unit};
  }

  void take_whole(YamlMap& map, const SweepRange& range) {
    if (!sampled_)
      return map.error("", "missing-key", "does not say which values of the range",
                       "add points: 7, step: 1 or factor: 2; or `sample:`, which draws from it");
    axis_.range = range;
  }

  void add(const std::string& text) { axis_.choices.push_back({yaml_scalar(text, entry_.value.where)}); }

  void add_points(SweepRange range, std::int64_t points) {
    // Points of a linear range of whole ends may fall between whole numbers, and then they are meant to.
    range.whole = range.whole && (range.logarithmic || points < 2 ||
                                  std::fmod(range.to - range.from, static_cast<double>(points - 1)) == 0);
    std::string last;
    for (std::int64_t i = 0; i < points; ++i) {
      const double share = points == 1 ? 0 : static_cast<double>(i) / static_cast<double>(points - 1);
      std::string text = range.at(share);
      if (text != last) add(text);  // whole numbers of a narrow range meet
      last = std::move(text);
    }
  }

  // A step without a unit is in that of the ends.
  void add_steps(YamlMap& map, const SweepRange& range, const Figure& step) {
    if (range.logarithmic)
      return map.error("step", "contradictory", "a logarithmic range has a factor, not a step");
    if (!step.unit.empty() && !is_one_unit(step.unit, range.unit))
      return map.error("step", "bad-unit", "has another unit than the ends of the range",
                       "write all three in one unit");
    if (!(step.number > 0)) return map.error("step", "out-of-range", "a step is more than 0");
    const double steps = std::floor((range.to - range.from) / step.number + 1e-9);
    if (steps >= static_cast<double>(kMostChoices)) return too_many(map, "step");
    for (std::int64_t i = 0; i <= static_cast<std::int64_t>(steps); ++i) {
      const double value = range.from + static_cast<double>(i) * step.number;
      add(fmt::format("{:.12g}{}", value, range.unit));
    }
  }

  void add_factors(YamlMap& map, const SweepRange& range, double factor) {
    if (!(factor > 1)) return map.error("factor", "out-of-range", "a factor is more than 1");
    std::int64_t count = 0;
    for (double value = range.from; value <= range.to * (1 + 1e-9); value *= factor) {
      if (++count > kMostChoices) return too_many(map, "factor");
      add(fmt::format("{:.12g}{}", value, range.unit));
    }
  }

  void too_many(YamlMap& map, std::string_view key) {
    map.error(key, "too-many", fmt::format("gives more than {} values", with_thousands(kMostChoices)));
  }

  const YamlEntry& entry_;
  bool sampled_;
  Diagnostics& diagnostics_;
  SweepAxis axis_;
};

class SweepReader {
 public:
  SweepReader(const YamlNode& root, const fs::path& file, Library& library, Diagnostics& diagnostics)
      : file_(file), library_(library), diagnostics_(diagnostics), root_(&root, "", root.where, diagnostics) {
    spec_.source = file.string();
  }

  std::optional<SweepSpec> read(std::span<const std::string> overrides, std::uint64_t seed) {
    const ErrorWatch watch(diagnostics_);
    const std::int64_t schema = root_.integer("stagecraft");
    if (watch.clean() && schema != 1)
      root_.error("stagecraft", "unknown-schema", fmt::format("schema {} is not known", schema),
                  "this program reads schema 1");
    spec_.name = root_.name("name", file_.stem().string());
    read_base();
    read_sample(static_cast<std::int64_t>(seed));
    read_axes();
    read_where();
    root_.finish();
    if (!watch.clean()) return std::nullopt;
    apply_overrides(spec_.base, overrides, library_, diagnostics_);
    if (!watch.clean()) return std::nullopt;
    return std::move(spec_);
  }

 private:
  void read_base() {
    const YamlNode* base = root_.get("base");
    root_.accepts("base", {});
    if (base == nullptr) {
      root_.error("base", "missing-key", "is required, but not given",
                  "the scenario that the sweep is about");
    } else if (base->kind == YamlNode::Kind::kMap) {
      spec_.base = {.root = *base, .source = spec_.source, .folder = file_.parent_path()};
    } else if (base->kind != YamlNode::Kind::kScalar || base->text.empty()) {
      root_.error("base", "wrong-kind", "expected the path of a scenario, or a scenario");
    } else {
      read_base_file(base->text);
    }
  }

  void read_base_file(const std::string& name) {
    const fs::path beside = (file_.parent_path() / name).lexically_normal();
    std::error_code ignored;
    const fs::path file =
        fs::exists(beside, ignored) ? beside : installed_scenario(name, library_.data()).value_or(beside);
    Diagnostics mistakes;
    std::optional<YamlNode> tree = load_yaml_file(file, mistakes);
    for (Diagnostic mistake : mistakes.items()) {
      if (mistake.where.line == 0) {  // about the file as a whole: the sweep named it
        mistake.message = fmt::format("{}: {}", in_quotes(file.string()), mistake.message);
        mistake.where = root_.where_of("base");
        mistake.path = "base";
      }
      diagnostics_.add(std::move(mistake));
    }
    if (tree && looks_like_sweep(*tree))
      return root_.error("base", "not-a-scenario",
                         fmt::format("{} is a sweep, not a scenario", in_quotes(file.string())),
                         "the base is the scenario that its own `base` names");
    if (tree) spec_.base = {.root = *std::move(tree), .source = file.string(), .folder = file.parent_path()};
  }

  void read_sample(std::int64_t seed) {
    if (!root_.has("sample")) return;
    const std::array<std::string, 2> kMethods{"random", "latin-hypercube"};
    YamlMap map = root_.map("sample");
    Sampling sampling;
    sampling.method =
        map.choice("method", kMethods) == 0 ? SampleMethod::kRandom : SampleMethod::kLatinHypercube;
    sampling.points = map.integer("points", {.min = 1, .max = kMostChoices});
    sampling.seed = static_cast<std::uint64_t>(map.integer("seed", {.min = 0, .fallback = seed}));
    map.finish();
    spec_.sampling = sampling;
  }

  void read_axes() {
    const YamlNode* vary = root_.get("vary");
    root_.accepts("vary", {});
    if (vary == nullptr)
      return root_.error("vary", "missing-key", "is required, but not given", "path.to.key: [value, value]");
    if (vary->kind != YamlNode::Kind::kMap || vary->entries.empty())
      return root_.error("vary", "not-a-mapping", "expected paths with their values",
                         "path.to.key: [value, value]");
    std::vector<std::string> seen;
    for (const YamlEntry& entry : vary->entries) {
      std::optional<SweepAxis> axis = AxisReader(entry, spec_.sampling.has_value(), diagnostics_).read();
      for (const std::string& path : axis ? axis->paths : std::vector<std::string>()) {
        refuse_varied(path, seen, entry);
        seen.push_back(path);
      }
      if (axis) spec_.axes.push_back(*std::move(axis));
    }
  }

  void refuse_varied(const std::string& path, const std::vector<std::string>& seen, const YamlEntry& entry) {
    for (const std::string& other : seen)
      if (const auto twice = varied_twice(path, other))
        return diagnostics_.error({.code = "contradictory",
                                   .where = entry.where,
                                   .path = "vary." + entry.key,
                                   .message = twice->path + " " + twice->message,
                                   .hint = twice->hint});
  }

  void read_where() {
    const YamlNode* where = root_.get("where");
    root_.accepts("where", {});
    if (where == nullptr) return;
    const bool list = where->kind == YamlNode::Kind::kSequence;
    const std::vector<YamlNode> items = list ? where->items : std::vector<YamlNode>{*where};
    for (const YamlNode& item : items) {
      if (item.kind != YamlNode::Kind::kScalar) {
        diagnostics_.error({.code = "wrong-kind",
                            .where = item.where,
                            .path = "where",
                            .message = "expected an expression",
                            .hint = "such as \"tensor * pipeline <= 64\""});
        continue;
      }
      if (auto constraint = Constraint::parse(item.text, item.where, diagnostics_))
        spec_.where.push_back(*std::move(constraint));
    }
  }

  fs::path file_;
  Library& library_;
  Diagnostics& diagnostics_;
  YamlMap root_;
  SweepSpec spec_;
};

}  // namespace

std::string SweepRange::at(double share) const {
  return text(share >= 1 ? to : between(from, to, share));
}

std::string SweepRange::drawn(double share) const {
  return text(whole ? between(from - 0.5, to + 0.5, share) : between(from, to, share));
}

double SweepRange::between(double low, double high, double share) const {
  return logarithmic ? low * std::pow(high / low, share) : low + (high - low) * share;
}

std::string SweepRange::text(double value) const {
  return fmt::format("{:.12g}{}", std::clamp(whole ? std::round(value) : value, from, to), unit);
}

std::vector<std::string> SweepSpec::paths() const {
  std::vector<std::string> all;
  for (const SweepAxis& axis : axes) all.insert(all.end(), axis.paths.begin(), axis.paths.end());
  return all;
}

std::optional<SweepSpec> load_sweep(const std::filesystem::path& word, std::span<const std::string> overrides,
                                    Library& library, Diagnostics& diagnostics, std::uint64_t seed) {
  const ErrorWatch watch(diagnostics);
  const std::optional<fs::path> file = find_scenario(word, library, diagnostics);
  const std::optional<YamlNode> root = file ? library.data().load(*file, diagnostics) : std::nullopt;
  if (!root) return std::nullopt;
  if (root->find("vary") == nullptr && root->find("base") == nullptr && root->find("model") != nullptr) {
    diagnostics.error({.code = "not-a-sweep",
                       .where = {.file = file->string(), .line = 1, .column = 1},
                       .message = "this is a scenario, not a sweep: it has no `base` and no `vary`",
                       .hint = "a sweep has base: SCENARIO.yaml and vary: {path.to.key: [value, value]}"});
    return std::nullopt;
  }
  auto spec = SweepReader(*root, *file, library, diagnostics).read(overrides, seed);
  return watch.clean() ? std::move(spec) : std::nullopt;
}

}  // namespace stagecraft
