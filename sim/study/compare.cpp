#include "sim/study/compare.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/for_each_index.hpp"
#include "base/text.hpp"
#include "sim/scenario/library.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/simulate.hpp"
#include "sim/study/reasons.hpp"

namespace stagecraft {

namespace {

// Position of the next comma outside brackets, braces and quotes; npos where there is none.
std::size_t next_comma(std::string_view text) {
  int open = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      if (c == '\\' && quote == '"') ++i;  // "a \" b, c"
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++open;
    } else if (c == ']' || c == '}') {
      --open;
    } else if (c == ',' && open <= 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

Outcome simulate_variant(const Variant& variant, Library& library) {
  Outcome outcome;
  Diagnostics diagnostics;
  outcome.scenario = load_scenario(variant.file, variant.overrides, library, diagnostics);
  outcome.diagnostics = diagnostics.sorted();
  if (!outcome.scenario || diagnostics.has_errors()) return outcome;
  try {
    Simulation simulation = simulate_in_full(*outcome.scenario);
    const Schedule& schedule = simulation.prepared.schedule;
    const std::vector<int> live = peak_in_flight(schedule);
    outcome.live_chunks = live.empty() ? 0 : *std::ranges::max_element(live);
    if (simulation.report.finishes()) {
      outcome.report = std::move(simulation.report);
      outcome.missed = missed_assertions(*outcome.scenario, *outcome.report);
    } else {
      outcome.stopped = true;
      outcome.diagnostics.push_back(never_ends(*outcome.scenario));
    }
  } catch (const ScenarioError& error) {
    outcome.diagnostics = error.diagnostics();
  }
  return outcome;
}

}  // namespace

ParsedVary parse_vary(std::string_view text) {
  ParsedVary parsed;
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {.vary = {}, .mistake = "there is no '=' in it"};
  parsed.vary.path = std::string(text.substr(0, equals));
  if (parsed.vary.path.empty()) return {.vary = {}, .mistake = "the path is empty"};
  text.remove_prefix(equals + 1);
  for (;;) {
    const std::size_t comma = next_comma(text);
    const std::string_view value = trimmed(text.substr(0, comma), " ");
    if (value.empty()) return {.vary = {}, .mistake = "a value is empty"};
    parsed.vary.values.emplace_back(value);
    if (comma == std::string_view::npos) return parsed;
    text.remove_prefix(comma + 1);
  }
}

std::optional<VariedTwice> varied_twice(std::string_view one, std::string_view other) {
  const std::string whole(one.size() < other.size() ? one : other);
  const std::string part(one.size() < other.size() ? other : one);
  if (whole == part)
    return VariedTwice{.path = part, .message = "is varied twice", .hint = "give all its values at once"};
  if (!part.starts_with(whole + ".")) return std::nullopt;
  return VariedTwice{.path = part,
                     .message = "is varied twice, by " + whole + " as well",
                     .hint = "vary " + whole + " alone: its values may be mappings"};
}

std::vector<Variant> variants_of(const std::vector<std::string>& files,
                                 const std::vector<std::string>& overrides, const std::vector<Vary>& varied) {
  std::vector<Variant> variants;
  for (const std::string& file : files)
    variants.push_back({.file = file, .overrides = overrides, .values = {}});
  for (const Vary& vary : varied) {
    std::vector<Variant> finer;
    for (const Variant& variant : variants) {
      for (const std::string& value : vary.values) {
        Variant& next = finer.emplace_back(variant);
        next.overrides.push_back(vary.path + "=" + value);
        next.values.push_back(value);
      }
    }
    variants = std::move(finer);
  }
  return variants;
}

std::vector<Outcome> simulate_variants(const std::vector<Variant>& variants, const DataDirectory& data,
                                       int threads) {
  std::vector<Outcome> outcomes(variants.size());
  // Files of models and profiles are read once a thread.
  std::vector<Library> libraries(static_cast<std::size_t>(std::max(threads, 1)), Library(data));
  for_each_index({.count = variants.size(), .threads = threads}, [&](std::size_t thread, std::size_t i) {
    outcomes[i] = simulate_variant(variants[i], libraries[thread]);
  });
  return outcomes;
}

std::vector<MovedPart> moved_parts(const Report& first, const Report& here) {
  std::vector<MovedPart> parts;
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    if (first.breakdown[c] != here.breakdown[c])
      parts.push_back({.part = Category(c), .first = first.breakdown[c], .here = here.breakdown[c]});
  std::ranges::stable_sort(parts, [](const MovedPart& a, const MovedPart& b) {
    return std::chrono::abs(a.difference()) > std::chrono::abs(b.difference());
  });
  return parts;
}

}  // namespace stagecraft
