#include "sim/explain/why.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "sim/explain/changed_scenario.hpp"
#include "sim/explain/explain_passes.hpp"
#include "sim/explain/sensitivities.hpp"
#include "sim/explain/settings_for_memory.hpp"
#include "sim/explain/settings_to_try.hpp"
#include "sim/report/rank_passes.hpp"
#include "sim/simulate.hpp"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, kCategoryCount> kPartWords = {"forward passes",
                                                                     "backward passes",
                                                                     "recomputation",
                                                                     "tensor communication",
                                                                     "context communication",
                                                                     "expert communication",
                                                                     "pipeline communication",
                                                                     "data communication",
                                                                     "the optimizer",
                                                                     "the bubble",
                                                                     "the host"};

struct Part {
  Category category = Category::kForward;
  std::string_view words;
  Duration time{};
};

// Largest first.
std::vector<Part> parts_of(const Report& report) {
  std::array<std::string_view, kCategoryCount> words = kPartWords;
  if (report.offload.used()) words[static_cast<std::size_t>(Category::kOther)] = "the host and copies to it";
  std::vector<Part> parts;
  for (std::size_t c = 0; c < kCategoryCount; ++c)
    if (report.breakdown[c] > Duration::zero())
      parts.push_back({.category = Category(c), .words = words[c], .time = report.breakdown[c]});
  std::ranges::stable_sort(parts, std::greater<>(), &Part::time);
  return parts;
}

std::string share_words(const Part& part, Duration whole) {
  return fmt::format("{} ({})", part.words, percent(to_seconds(part.time) / to_seconds(whole)));
}

// "a, b and c"
std::string listed(std::vector<std::string> words) {
  if (words.size() < 2) return join(words, "");
  const std::string last = std::move(words.back());
  words.pop_back();
  return join(words, ", ") + " and " + last;
}

std::string bound_sentence(const std::vector<Part>& parts, Duration whole) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 3); ++i)
    words.push_back(share_words(parts[i], whole));
  return fmt::format("The critical path of {} is mostly {}.", human(whole), listed(std::move(words)));
}

bool is_useful(Category category) {
  return category == Category::kForward || category == Category::kBackward;
}

std::string lost_sentence(const std::vector<Part>& parts, Duration whole) {
  Duration lost{};
  std::vector<std::string> words;
  for (const Part& part : parts) {
    if (is_useful(part.category)) continue;
    lost += part.time;
    if (words.size() < 3) words.push_back(share_words(part, whole));
  }
  if (words.empty()) return "All of it is forward and backward passes: nothing waits.";
  return fmt::format("{} of it, {}, is neither forward nor backward: most of that is {}.", human(lost),
                     percent(to_seconds(lost) / to_seconds(whole)), listed(std::move(words)));
}

// Of a pipeline whose busiest rank works at least 5 % longer than the mean of its ranks.
std::string uneven_sentence(const Simulation& simulation) {
  const int pipeline = simulation.prepared.plan.pipeline;
  const std::vector<RankPasses> ranks = passes_by_rank(simulation.program, simulation.timeline);
  const std::size_t busiest = busiest_rank(ranks);
  Duration work{};
  for (const RankPasses& rank : ranks) work += rank.work;
  const double mean = to_seconds(work) / static_cast<double>(ranks.size());
  const double longer = mean > 0 ? to_seconds(ranks[busiest].work) / mean - 1 : 0;
  if (pipeline == 1 || longer < 0.05) return "";
  return fmt::format(
      "Pipeline rank {} works {} longer than the mean of the ranks, and the others wait for it.",
      busiest % static_cast<std::size_t>(pipeline), percent(longer));
}

// Passes beside traffic run slower, and the breakdown has that as forward and backward: links would help them.
// Empty below a hundredth, and of iterations in a row, which may hold parts of passes.
std::string slowed_sentence(const Scenario& scenario, const Simulation& simulation) {
  if (scenario.schedule.iterations > 1) return "";
  const std::size_t rank = busiest_rank(passes_by_rank(simulation.program, simulation.timeline));
  Duration slowed{};
  for (const Category category : {Category::kForward, Category::kBackward, Category::kRecompute})
    slowed += longer_than_priced(simulation, {.rank = rank, .category = category});
  const double share = to_seconds(slowed) / to_seconds(simulation.report.iteration_time);
  if (share < 0.01) return "";
  return fmt::format("The passes include {}, {}, of slowdown by {}traffic beside them.", human(slowed),
                     percent(share), scenario.faults.empty() ? "" : "faults and ");
}

void measure(const Scenario& scenario, TriedChange& change) {
  try {
    const Report report = simulate(scenario);
    if (report.finishes()) change.iteration_time = report.iteration_time;
    change.verdict = report.memory.verdict();
  } catch (const ScenarioError& error) {
    change.refused = error.diagnostics().front().message;
  }
}

TriedChange tried(const std::vector<std::string>& set, const Scenario& scenario, const Reload& reload) {
  Diagnostics diagnostics;
  const ChangedScenario variant = changed_scenario(scenario, set, reload, diagnostics);
  TriedChange change{.words = join(variant.set, " "), .set = variant.set};
  if (variant.scenario) {
    measure(*variant.scenario, change);
    return change;
  }
  const std::vector<Diagnostic> sorted = diagnostics.sorted();
  if (const Diagnostic* error = first_error(sorted)) change.refused = one_line(*error);
  return change;
}

TriedChange doubled(const char* words, const Scenario& scenario, void (*scale)(ClusterSpec&, double)) {
  TriedChange change{.words = words, .set = {}};
  Scenario changed = scenario;
  for (std::optional<ClusterSpec>* cluster : {&changed.cluster, &changed.fabric})
    if (*cluster) scale(**cluster, 2);
  measure(changed, change);
  return change;
}

std::vector<TriedChange> hardware(const Scenario& scenario) {
  std::vector<TriedChange> changes;
  if (!scenario.cluster || !scenario.profile) return changes;
  if (has_nvlink(*scenario.cluster))
    changes.push_back(doubled("twice the NVLink bandwidth", scenario, &scale_nvlink));
  if (scenario.cluster->server_count() > 1)
    changes.push_back(doubled("twice the NIC bandwidth", scenario, &scale_network));
  return changes;
}

// Those that may make it faster, and of a job that does not fit those that may make room, each once.
std::vector<std::vector<std::string>> candidates(const Scenario& scenario, const Simulation& simulation) {
  std::vector<std::vector<std::string>> sets = settings_to_try(scenario, simulation);
  if (simulation.report.memory.verdict() != Verdict::kOutOfMemory) return sets;
  for (std::vector<std::string>& set : settings_for_memory(scenario, true))
    if (std::ranges::find(sets, set) == sets.end()) sets.push_back(std::move(set));
  return sets;
}

std::string gain_words(Duration now, Duration then) {
  return fmt::format("{} in place of {}, {:.1f} % less", human(then), human(now),
                     100 * (1 - to_seconds(then) / to_seconds(now)));
}

// The fastest of `changes` that is faster than `limit` and allowed.
template <class Allowed>
std::optional<TriedChange> fastest(const std::vector<TriedChange>& changes, Duration limit,
                                   const Allowed& allowed) {
  std::optional<TriedChange> best;
  for (const TriedChange& change : changes)
    if (change.iteration_time && *change.iteration_time < (best ? *best->iteration_time : limit) &&
        allowed(change))
      best = change;
  return best;
}

std::size_t settings_of(const Why& why) {
  return static_cast<std::size_t>(std::ranges::count_if(
      why.changes, [](const TriedChange& change) { return !change.set.empty() && change.refused.empty(); }));
}

// Text about the memory of an advised change: it fits.
std::string memory_words(const TriedChange& change) {
  return change.verdict == Verdict::kTight ? "memory is tight" : "memory fits";
}

// Text for a job that does not fit: no faster link makes it run, so hardware is left out.
std::string fit_sentence(const Why& why, Duration now) {
  if (!why.best)
    return fmt::format(
        "First make it fit into memory: none of {} changes of settings does. `stagecraft memory` shows what "
        "takes it, `stagecraft search` finds other splits.",
        settings_of(why));
  return fmt::format(
      "First make it fit into memory: of {} changes of settings, {} is the fastest that fits: {} in place of "
      "{}, and {}.",
      settings_of(why), why.best->words, human(*why.best->iteration_time), human(now),
      memory_words(*why.best));
}

// The time that a change has to stay below to be worth a word: less is lost in the errors of the prices.
Duration worthwhile(Duration now) {
  return now - now / 200;
}

// Without a capacity the fit is unknown and left out.
std::string change_sentence(const Why& why, Duration now, bool has_capacity) {
  const std::size_t settings = settings_of(why);
  std::string text;
  if (why.best) {
    text = fmt::format("Of {} changes of settings, {} would help most: {}", settings, why.best->words,
                       gain_words(now, *why.best->iteration_time));
    if (has_capacity) text += ", and " + memory_words(*why.best);
  } else {
    text = fmt::format("None of {} changes of settings{} would save 0.5 %", settings,
                       has_capacity ? " that fit into memory" : "");
  }
  const auto faster =
      fastest(why.changes, worthwhile(now), [](const TriedChange& change) { return change.set.empty(); });
  if (faster)
    text += fmt::format("; {} would give {}", faster->words, gain_words(now, *faster->iteration_time));
  return text + ".";
}

void write(JsonWriter& json, const TriedChange& change) {
  json.begin_object().field("change", change.words).field("set", change.set);
  json.field("iteration_time_s", change.iteration_time).key("verdict");
  if (change.iteration_time)
    json.value(name_of(change.verdict));
  else
    json.null();
  json.key("refused");
  change.refused.empty() ? json.null() : json.value(change.refused);
  json.end_object();
}

}  // namespace

Why explain_why(const Scenario& scenario, const Simulation& simulation, const Reload& reload) {
  const Report& report = simulation.report;
  Why why;
  const std::vector<Part> parts = parts_of(report);
  if (parts.empty()) {
    why.sentences = {"Nothing takes time: there is nothing to shorten."};
    return why;
  }
  why.bound_by = kCategoryNames[static_cast<std::size_t>(parts.front().category)];
  const bool fits = report.memory.verdict() != Verdict::kOutOfMemory;
  for (const std::vector<std::string>& set : candidates(scenario, simulation))
    why.changes.push_back(tried(set, scenario, reload));
  for (TriedChange& change : hardware(scenario)) why.changes.push_back(std::move(change));
  const bool has_capacity = report.memory.capacity > Bytes(0);
  const Duration now = report.iteration_time;
  // A change that makes a job fit may be slower than the job would be if it ran.
  why.best = fastest(why.changes, fits ? worthwhile(now) : Duration::max(), [](const TriedChange& change) {
    return !change.set.empty() && change.verdict != Verdict::kOutOfMemory;
  });
  why.sentences = {bound_sentence(parts, now), lost_sentence(parts, now),
                   slowed_sentence(scenario, simulation), uneven_sentence(simulation),
                   fits ? change_sentence(why, now, has_capacity) : fit_sentence(why, now)};
  std::erase(why.sentences, "");
  return why;
}

void write(JsonWriter& json, const Why& why) {
  json.begin_object().field("bound_by", why.bound_by).field("sentences", why.sentences).key("best");
  why.best ? write(json, *why.best) : static_cast<void>(json.null());
  json.key("changes").begin_array();
  for (const TriedChange& change : why.changes) write(json, change);
  json.end_array().end_object();
}

}  // namespace stagecraft
