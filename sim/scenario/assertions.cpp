#include "sim/scenario/assertions.hpp"

#include <fmt/format.h>

#include <array>

#include "base/text.hpp"
#include "base/yaml_units.hpp"

namespace stagecraft {

namespace {

enum class Unit { kNone, kTime, kBytes };

struct Metric {
  std::string_view name;
  Unit unit = Unit::kNone;
  std::string_view example;
};

// Keys of the result, without the suffix that names the unit.
constexpr std::array kMetrics{Metric{"iteration_time", Unit::kTime, "<= 10 s"},
                              Metric{"samples_per_s", Unit::kNone, ">= 100"},
                              Metric{"tokens_per_s", Unit::kNone, ">= 300000"},
                              Metric{"tokens_per_s_per_gpu", Unit::kNone, ">= 300"},
                              Metric{"mfu", Unit::kNone, ">= 0.4"},
                              Metric{"hfu", Unit::kNone, ">= 0.4"},
                              Metric{"peak_memory", Unit::kBytes, "<= 72 GiB"},
                              Metric{"bubble_over_ideal", Unit::kNone, "<= 0.1"},
                              Metric{"bubble_fraction", Unit::kNone, "<= 0.1"}};

constexpr auto kNames = [] {
  std::array<std::string_view, kMetrics.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMetrics[i].name;
  return names;
}();

constexpr std::array<std::string_view, 5> kRelations{"<=", ">=", "==", "<", ">"};  // longer ones first

std::optional<double> parse_limit(Unit unit, std::string_view text) {
  switch (unit) {
    case Unit::kNone:
      return parse_number(text);
    case Unit::kTime: {
      const auto time = parse_duration(text);
      return time ? std::optional(to_seconds(*time)) : std::nullopt;
    }
    case Unit::kBytes: {
      const auto bytes = parse_bytes(text);
      return bytes ? std::optional(static_cast<double>(bytes->count())) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::string why_no_limit(Unit unit, std::string_view text) {
  if (unit == Unit::kNone) return in_quotes(text) + " is not a bare number";
  return explain_bad_quantity(unit == Unit::kTime ? QuantityKind::kDuration : QuantityKind::kBytes, text)
      .message;
}

std::optional<Assertion> load_assertion(YamlMap& map, const Metric& metric) {
  if (!map.has(metric.name)) return std::nullopt;
  const ErrorWatch watch(map.diagnostics());
  Assertion assertion{.metric = std::string(metric.name),
                      .relation = {},
                      .limit = 0,
                      .text = std::string(trimmed(map.text(metric.name))),
                      .where = map.where_of(metric.name)};
  if (!watch.clean()) return std::nullopt;
  const std::string hint = fmt::format("for instance {}: \"{}\"", metric.name, metric.example);
  for (const std::string_view relation : kRelations) {
    if (!assertion.text.starts_with(relation)) continue;
    assertion.relation = relation;
    const std::string_view rest = std::string_view(assertion.text).substr(relation.size());
    const auto first = rest.find_first_not_of(' ');
    const std::string_view limit = first == std::string_view::npos ? std::string_view{} : rest.substr(first);
    if (const auto value = parse_limit(metric.unit, limit)) {
      assertion.limit = *value;
      return assertion;
    }
    map.error(metric.name, "bad-assertion", why_no_limit(metric.unit, limit), hint);
    return std::nullopt;
  }
  map.error(metric.name, "bad-assertion",
            fmt::format("{} does not begin with <, <=, >, >= or ==", in_quotes(assertion.text)), hint);
  return std::nullopt;
}

}  // namespace

std::span<const std::string_view> assertion_metrics() {
  return kNames;
}

std::vector<Assertion> load_assertions(YamlMap& root) {
  YamlMap map = root.map("assert");
  std::vector<Assertion> assertions;
  for (const Metric& metric : kMetrics)
    if (auto assertion = load_assertion(map, metric)) assertions.push_back(*std::move(assertion));
  map.finish();
  return assertions;
}

}  // namespace stagecraft
