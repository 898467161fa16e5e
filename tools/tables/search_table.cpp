#include "tools/tables/search_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/wrapped_text.hpp"
#include "sim/search/plan_figures.hpp"
#include "tools/tables/search_columns.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostRefusals = 6;  // named in the table; JSON has all
constexpr std::size_t kMostFront = 12;    // plans of the front that the table shows
constexpr const char* kMemory = "memory";
constexpr std::string_view kAnotherKey = "needs-another-key";

// Settings that save memory without more GPUs, with their most effective values.
constexpr std::array<std::pair<const char*, const char*>, 5> kRoom = {{{"training.recompute", "full"},
                                                                       {"parallelism.zero_stage", "3"},
                                                                       {"offload.optimizer", "1"},
                                                                       {"offload.activations", "1"},
                                                                       {"offload.weights", "1"}}};

std::string count_text(std::size_t n) {
  return with_thousands(static_cast<std::int64_t>(n));
}

// A text beside its label, "dropped          the scenario's …".
std::string labelled(std::string_view label, std::string_view text) {
  constexpr std::size_t kWidth = 17;
  return wrapped_text(fmt::format("{:<{}}", label, kWidth), std::string(kWidth, ' '), text);
}

std::string phrase_of(const SearchRefusal& refusal) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kPhrases = {
      {{"out-of-memory", "out of memory"},
       {"assertion-missed", "miss what the scenario promises"},
       {"not-divisible", "do not divide"},
       {"schedule-constraint", "the schedule does not take"},
       {"no-pipeline", "chunks without a pipeline"},
       {kAnotherKey, "need another key"},
       {"contradiction", "contradict themselves"},
       {"not-supported-yet", "are not supported yet"},
       {"not-supported", "are not supported"},
       {"not-supported-by-device", "need what the device has not"}}};
  const auto known = std::ranges::find(kPhrases, std::string_view(refusal.code),
                                       &std::pair<std::string_view, std::string_view>::first);
  if (known == kPhrases.end()) return fmt::format("{}: {}", refusal.path, refusal.message);
  std::string phrase(known->second);
  if (refusal.code != "out-of-memory") phrase += " (" + refusal.path + ")";
  if (refusal.code == "assertion-missed") phrase += fmt::format(", the nearest: {}", refusal.message);
  // The path is what the plan says; which other key it needs says the hint.
  if (refusal.code == kAnotherKey && !refusal.hint.empty()) phrase += ": " + refusal.hint;
  return phrase;
}

bool has_several_gpu_counts(const SearchAnswer& answer) {
  return best_by_gpus(answer.plans, answer.result.ranked).size() > 1;
}

class SearchText {
 public:
  explicit SearchText(const SearchAnswer& answer)
      : answer_(answer), plans_(answer), figures_(answer.plans, answer.space.price) {
    has_tokens_ = std::ranges::any_of(answer.result.ranked,
                                      [&](const RankedPlan& plan) { return figures_.has_tokens(plan); });
  }

  [[nodiscard]] std::string render() const {
    std::string out = printable(answer_.name) + "\n" + counts();
    if (answer_.result.ranked.empty()) return out + why_none();
    const bool scaled = has_several_gpu_counts(answer_);
    const std::vector<RankedPlan> best = first_plans(answer_.result.ranked, answer_.top);
    const std::vector<RankedPlan> listed = listed_plans(answer_);
    out += "\n" + table(best, scaled ? Rows::kRankedOfSeveral : Rows::kRanked);
    if (scaled)
      out += headroom(best) + "\nbest plan of each number of GPUs\n" + table(listed, Rows::kScaling);
    out += (scaled ? "" : headroom(listed)) + overlap_gain(listed, scaled) + (scaled ? speedups(listed) : "");
    const std::size_t front = answer_.result.pareto.size();
    const std::vector<RankedPlan> shown = shown_front();
    if (front > 1)
      out += fmt::format("\ntime against memory{}: nobody is better in {}", scaled ? " and GPUs" : "",
                         scaled ? "all" : "both") +
             (front > shown.size() ? fmt::format(" ({} of {}; --json has all)", shown.size(), front) : "") +
             "\n" + front_table(shown, scaled);
    return out;
  }

 private:
  [[nodiscard]] std::string why_none() const {
    if (answer_.result.fitting > 0) return "none of those that fit keeps what `assert` promises\n";
    if (answer_.result.placed > 0) return wrapped_text("", "  ", none_fits());
    const std::string hint = answer_.space.gpus.size() > 1 ? "" : other_batch(answer_.result.refusals);
    return "none can run: see the reasons, and what the space leaves open\n" +
           (hint.empty() ? "" : wrapped_text("", "  ", hint));
  }

  // Empty where the batch stands in the way of no plan, or already follows it.
  [[nodiscard]] std::string other_batch(const std::vector<SearchRefusal>& refusals) const {
    if (answer_.space.batch_at_most) return "";
    const bool divides = std::ranges::none_of(refusals, [](const SearchRefusal& refusal) {
      return refusal.code == "not-divisible" && refusal.path == kBatchPath;
    });
    return divides ? "" : "--set search.batch=at-most takes the largest batch that a plan divides";
  }

  // Of several numbers of GPUs those of which there is nothing in the tables.
  [[nodiscard]] std::string planless_lines() const {
    constexpr std::size_t kMost = 3;  // reasons of each
    std::string out;
    if (answer_.space.gpus.size() == 1) return out;  // the reasons are those of all plans
    for (const GpusWithoutPlan& without : planless(answer_)) {
      std::vector<std::string> parts;
      const std::size_t named = std::min(without.refusals.size(), kMost);
      for (const SearchRefusal& refusal : std::span(without.refusals).first(named))
        parts.push_back(count_text(refusal.count) + " " + phrase_of(refusal));
      if (parts.empty()) parts.emplace_back("its degrees or values make none");
      std::string text = fmt::format("of {} GPUs: {}", without.gpus, join(parts, ", "));
      const bool placed = std::ranges::any_of(without.refusals, [](const SearchRefusal& refusal) {
        return refusal.code == "out-of-memory" || refusal.code == "assertion-missed";
      });
      const std::string hint = placed ? "" : other_batch(without.refusals);
      out += labelled(out.empty() ? "no plan" : "", hint.empty() ? text : text + "; " + hint);
    }
    return out;
  }

  // Of several numbers of GPUs the fastest of each.
  [[nodiscard]] std::vector<RankedPlan> shown_front() const {
    const std::size_t counts = best_by_gpus(answer_.plans, answer_.result.pareto).size();
    const std::size_t most = std::max<std::size_t>(kMostFront / std::max<std::size_t>(counts, 1), 1);
    std::map<int, std::size_t> taken;
    std::vector<RankedPlan> shown;
    for (const RankedPlan& plan : answer_.result.pareto)
      if (taken[plans_.point(plan).gpus()]++ < most) shown.push_back(plan);
    return shown;
  }

  // Is the value among those that were tried?
  [[nodiscard]] bool tried(const char* path, std::string_view value) const {
    const SearchAxis* axis = answer_.space.find(path);
    return axis != nullptr && std::ranges::find(axis->values, value, &YamlNode::text) != axis->values.end();
  }

  [[nodiscard]] std::string none_fits() const {
    if (!std::holds_alternative<TransformerSpec>(answer_.plans.frames.front().scenario.model))
      return "none fits: what abstract stages hold is given";
    std::vector<std::string> open;
    for (const auto& [path, value] : kRoom)
      if (!tried(path, value)) open.push_back(fmt::format("{}={}", path, value));
    return "none fits: more GPUs make room" +
           (open.empty() ? "" : ", or what was not tried: " + join(open, ", "));
  }

  [[nodiscard]] static bool is_tight(const RankedPlan& plan) {
    return verdict_of(plan.memory.peak, plan.memory.capacity) == Verdict::kTight;
  }

  // How to ask for headroom; empty where all of the plans have some.
  [[nodiscard]] static std::string headroom(const std::vector<RankedPlan>& plans) {
    std::optional<Bytes> least;
    for (const RankedPlan& plan : plans)
      if (is_tight(plan)) least = least ? std::min(*least, plan.memory.capacity) : plan.memory.capacity;
    if (!least) return "";
    const double gib = kTightShare * (*least / Bytes(1 << 30));
    return wrapped_text("", "  ",
                        fmt::format("tight is over {:.0f} % of {}: --set 'assert.peak_memory=<= {} GiB' asks "
                                    "for headroom",
                                    kTightShare * 100, human(*least), static_cast<std::int64_t>(gib)));
  }

  // Not every software has this overlap, so that the usual space leaves it out.
  [[nodiscard]] std::string overlap_gain(const std::vector<RankedPlan>& listed, bool scaled) const {
    if (answer_.overlaps.empty()) return "";
    constexpr const char* kAsk = "--vary overlap.tensor=false,true ranks all plans with it and without";
    const RankedPlan *without = nullptr, *with = nullptr;
    for (const OverlapTrial& trial : answer_.overlaps) {
      const auto plan = std::ranges::find(listed, trial.point, &RankedPlan::point);
      if (!trial.plan || plan == listed.end()) continue;
      const RankedPlan& best = with != nullptr ? *with : scaled ? *plan : listed.front();
      if (sample_time(answer_.plans, *trial.plan) >= sample_time(answer_.plans, best)) continue;
      without = &*plan;
      with = &*trial.plan;
    }
    if (with == nullptr)
      return wrapped_text("", "  ",
                          fmt::format("overlap.tensor would not shorten the best of these; {}", kAsk));
    const std::string which = scaled ? fmt::format("that of {} GPUs", plans_.point(*with).gpus())
                                     : fmt::format("plan {}", without - listed.data() + 1);
    return wrapped_text("", "  ",
                        fmt::format("overlap.tensor, where the software has it, would bring {} to {} ({} "
                                    "without); {}",
                                    which, human(with->time), human(without->time), kAsk));
  }

  [[nodiscard]] std::string counts() const {
    const SearchResult& result = answer_.result;
    std::string out = labelled(
        "plans", fmt::format("{}: {} fit, {} simulated", count_text(answer_.plans.points.size()),
                             count_text(result.fitting), count_text(result.fitting - result.bounded)));
    const std::size_t named = std::min(result.refusals.size(), kMostRefusals);
    for (std::size_t i = 0; i < named; ++i)
      out += labelled(i == 0 ? "rejected" : "",
                      count_text(result.refusals[i].count) + " " + phrase_of(result.refusals[i]));
    std::size_t rest = 0;
    for (const SearchRefusal& refusal : std::span(result.refusals).subspan(named)) rest += refusal.count;
    if (rest > 0)
      out += labelled("", fmt::format("{} for other reasons (--json lists them)", count_text(rest)));
    return out + left_out();
  }

  [[nodiscard]] std::string left_out() const {
    std::string out;
    if (answer_.result.bounded > 0)
      out = labelled("not simulated", fmt::format("{} that cannot be better, by a bound on their time",
                                                  count_text(answer_.result.bounded)));
    return out + planless_lines() + refused_lines() + left_aside_lines() + kept_lines() + dropped_lines() +
           unused_lines();
  }

  [[nodiscard]] std::string refused_lines() const {
    std::string out;
    for (const RefusedChoices& refused : answer_.plans.refused)
      out += labelled(out.empty() ? "refused" : "",
                      fmt::format("{} of values: {}",
                                  counted_thousands(static_cast<std::int64_t>(refused.count), "choice"),
                                  one_line(refused.reason)));
    return out;
  }

  [[nodiscard]] std::string unused_lines() const {
    if (answer_.plans.unused.empty()) return {};
    std::vector<std::string> degrees;
    for (const UnusedDegree& unused : answer_.plans.unused)
      degrees.push_back(fmt::format("{} {}", short_title(unused.path), unused.value));
    return labelled("in no plan", join(degrees, ", ") + ": the degrees of a plan multiply to its GPUs");
  }

  [[nodiscard]] std::string dropped_lines() const {
    if (answer_.plans.without_own_layers == 0) return {};
    const std::vector<std::int64_t>& layers = plans_.own_layers();
    const auto plans = static_cast<std::int64_t>(answer_.plans.without_own_layers);
    return labelled("dropped",
                    fmt::format("the scenario's stage_layers, in {} of other stages than its {}; --fix {} "
                                "refuses them",
                                counted_thousands(plans, "plan"), layers.size(), kLayersPath));
  }

  // Keys that abstract stages keep from the scenario.
  [[nodiscard]] std::string kept_lines() const {
    if (answer_.space.kept.empty()) return {};
    std::vector<std::string> names;
    for (const std::string& path : answer_.space.kept) names.push_back(short_title(path));
    return labelled("kept",
                    "the scenario's " + join(names, ", ") + ": abstract stages have costs for no other");
  }

  [[nodiscard]] std::string left_aside_lines() const {
    std::string out;
    for (const LeftAside& aside : orders_left_aside(answer_.plans)) {
      const std::string plans = counted_thousands(static_cast<std::int64_t>(aside.plans), "plan");
      const std::string what = aside.has_any
                                   ? fmt::format("{} of orders that {} does not run: {}", plans,
                                                 aside.software, join(aside.orders, ", "))
                                   : fmt::format("{} with pipelines: {} has none", plans, aside.software);
      out += labelled(out.empty() ? "left aside" : "", what);
    }
    return out;
  }

  using Cells = std::vector<std::vector<PlanCell>>;  // of each row

  // With whole values in a column where short ones are the same of values that differ.
  [[nodiscard]] Cells cells_of(const std::vector<RankedPlan>& rows) const {
    Cells cells;
    for (const RankedPlan& plan : rows) cells.push_back(plans_.cells(plan.point));
    for (std::size_t c = 0; c < cells.front().size(); ++c) {
      std::map<std::string, std::string> wholes;  // by the short value
      const bool tells_apart = std::ranges::all_of(cells, [&](const std::vector<PlanCell>& row) {
        const std::string whole = row[c].whole();
        return wholes.emplace(row[c].value, whole).first->second == whole;
      });
      if (tells_apart) continue;
      for (std::vector<PlanCell>& row : cells) row[c].value = row[c].whole();
    }
    return cells;
  }

  // Columns in which rows differ, and those that a plan is known by.
  [[nodiscard]] static bool is_shown(const Cells& cells, std::size_t column) {
    const std::string& first = cells.front()[column].value;
    return column < 3 || std::ranges::any_of(cells, [&](const std::vector<PlanCell>& row) {
             const PlanCell& cell = row[column];
             return cell.value != first || (cell.numbers != nullptr && cell.value != kEvenLayers);
           });
  }

  // A switch is said in fewer letters than in JSON.
  [[nodiscard]] static std::string shown_value(const PlanCell& cell) {
    const bool is_switch = !cell.text && cell.node == nullptr;
    return is_switch && cell.value == "true" ? "yes" : is_switch && cell.value == "false" ? "no" : cell.value;
  }

  // Columns that all rows share go into one line.
  enum class Rows { kRanked, kRankedOfSeveral, kScaling };

  [[nodiscard]] std::string table(const std::vector<RankedPlan>& rows, Rows kind) const {
    const Cells cells = cells_of(rows);
    std::vector<std::size_t> shown;
    std::vector<std::string> same;
    for (std::size_t c = 0; c < cells.front().size(); ++c) {
      if (is_shown(cells, c))
        shown.push_back(c);
      else if (is_worth_saying(cells.front()[c]))
        same.push_back(cells.front()[c].title + " " + shown_value(cells.front()[c]));
    }
    std::vector<std::string> head;
    if (kind != Rows::kScaling) head.emplace_back("#");
    if (kind != Rows::kRanked) head.emplace_back("GPUs");
    std::vector<Align> aligns(head.size(), Align::kRight);
    for (const std::size_t c : shown)
      aligns.push_back(cells.front()[c].align), head.push_back(short_title(cells.front()[c].title));
    for (std::string& title : figure_titles()) {
      aligns.push_back(title == kMemory ? Align::kLeft : Align::kRight);
      head.push_back(std::move(title));
    }
    TextTable text(aligns);
    text.row(std::move(head));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<std::string> row;
      if (kind != Rows::kScaling) row.push_back(std::to_string(i + 1));
      if (kind != Rows::kRanked) row.push_back(std::to_string(plans_.point(rows[i]).gpus()));
      for (const std::size_t c : shown) row.push_back(shown_value(cells[i][c]));
      for (std::string& figure : figure_cells(rows[i])) row.push_back(std::move(figure));
      text.row(std::move(row));
    }
    return text.str() + (same.empty() ? "" : wrapped_text("in all of them: ", "  ", join(same, ", ")));
  }

  // Plans of the front differ in nearly everything, so that each is said in words.
  [[nodiscard]] std::string front_table(const std::vector<RankedPlan>& rows, bool scaled) const {
    const Cells cells = cells_of(rows);
    TextTable figures(scaled ? std::vector{Align::kRight, Align::kRight, Align::kLeft}
                             : std::vector{Align::kRight, Align::kLeft});
    figures.row(scaled ? std::vector<std::string>{"GPUs", "time", kMemory}
                       : std::vector<std::string>{"time", kMemory});
    for (const RankedPlan& plan : rows) {
      std::vector<std::string> row = {human(plan.time), memory(plan)};
      if (scaled) row.insert(row.begin(), std::to_string(plans_.point(plan).gpus()));
      figures.row(std::move(row));
    }
    const std::string text = figures.str();
    const std::vector<std::string_view> lines = split(text, '\n');
    std::size_t width = 0;
    for (const std::string_view line : lines) width = std::max(width, line.size() + 2);
    const auto padded = [&](std::size_t line) { return fmt::format("{:<{}}", lines[line], width); };
    std::string out = padded(0) + "plan\n";
    for (std::size_t i = 0; i < rows.size(); ++i) out += beside(padded(i + 1), parts_of(cells, i));
    return out;
  }

  // The parts behind a head, on further lines where they pass a terminal.
  [[nodiscard]] static std::string beside(std::string head, const std::vector<std::string>& parts) {
    const std::string indent(head.size(), ' ');
    std::string out, line = std::move(head) + parts.front();
    for (const std::string& part : std::span(parts).subspan(1)) {
      if (line.size() + part.size() + 3 > kTerminalWidth) {  // and another comma
        out += line + ",\n";
        line = indent + part;
      } else {
        line += ", " + part;
      }
    }
    return out + line + "\n";
  }

  // "tp 4", "dp 16", "sp", "interleaved-1f1b"; a degree of one, no recompute and what is off are left out.
  [[nodiscard]] static std::vector<std::string> parts_of(const Cells& cells, std::size_t row) {
    std::vector<std::string> parts;
    for (std::size_t c = 0; c < cells[row].size(); ++c) {
      const PlanCell& cell = cells[row][c];
      if (!is_shown(cells, c) || cell.value == "false" || cell.value == "none") continue;
      const bool counts = cell.path == "training.micro_batch_size" || cell.path.starts_with("parallelism.");
      if (counts && cell.value == (cell.path == "parallelism.zero_stage" ? "0" : "1")) continue;
      const std::string title = short_title(cell.title);
      const bool alone = cell.path == "schedule";
      parts.push_back(alone ? cell.value : cell.value == "true" ? title : title + " " + cell.value);
    }
    if (parts.empty()) parts.emplace_back("–");
    return parts;
  }

  [[nodiscard]] static std::string short_title(const std::string& title) {
    return title.substr(title.rfind('.') + 1);
  }

  // The batch is the scenario's unless it follows the plan.
  [[nodiscard]] bool is_worth_saying(const PlanCell& cell) const {
    if (cell.title == "cp" || cell.title == "ep" || cell.title == "vp") return cell.value != "1";
    if (cell.numbers != nullptr) return false;  // even in all of them
    return cell.title != "batch" || answer_.space.batch_at_most || answer_.space.find(kBatchPath) != nullptr;
  }

  [[nodiscard]] std::vector<std::string> figure_titles() const {
    std::vector<std::string> titles = {"iteration"};
    if (has_tokens_)
      titles.insert(titles.end(), {"tok/s/GPU", "MFU"});
    else
      titles.emplace_back("samples/s");
    titles.emplace_back(kMemory);
    if (answer_.space.price) titles.push_back(answer_.space.price->currency + "/Mtok");
    return titles;
  }

  [[nodiscard]] static std::string memory(const RankedPlan& plan) {
    const std::string peak = human(plan.memory.peak);
    if (plan.memory.capacity <= Bytes(0)) return peak;
    return fmt::format("{} {}", peak, name_of(plan.memory.verdict()));
  }

  [[nodiscard]] std::vector<std::string> figure_cells(const RankedPlan& plan) const {
    std::vector<std::string> cells = {human(plan.time)};
    if (has_tokens_) {
      const double rate = figures_.tokens_per_s(plan) / plans_.point(plan).gpus();
      cells.insert(cells.end(), {four_digits(rate), percent(figures_.mfu(plan))});
    } else {
      cells.push_back(four_digits(figures_.samples_per_s(plan)));
    }
    cells.push_back(memory(plan));
    if (!answer_.space.price) return cells;
    const auto cost = figures_.cost_per_million_tokens(plan);
    cells.push_back(cost ? fmt::format("{:.3g}", *cost) : "–");
    return cells;
  }

  [[nodiscard]] std::string speedups(const std::vector<RankedPlan>& scaling) const {
    TextTable text({Align::kRight, Align::kRight, Align::kRight});
    text.row({"GPUs", "speed-up", "efficiency"});
    const double first = figures_.samples_per_s(scaling.front());
    const int least = plans_.point(scaling.front()).gpus();
    for (const RankedPlan& plan : scaling) {
      const double speedup = first > 0 ? figures_.samples_per_s(plan) / first : 0;
      const int gpus = plans_.point(plan).gpus();
      text.row({std::to_string(gpus), fmt::format("{:.2f}", speedup), percent(speedup * least / gpus)});
    }
    return text.str();
  }

  const SearchAnswer& answer_;
  PlanColumns plans_;
  PlanFigures figures_;
  bool has_tokens_ = true;  // abstract stages may have none
};

}  // namespace

std::vector<RankedPlan> first_plans(std::vector<RankedPlan> plans, std::size_t most) {
  if (plans.size() > most) plans.resize(most);
  return plans;
}

std::vector<GpusWithoutPlan> planless(const SearchAnswer& answer) {
  std::vector<GpusWithoutPlan> all;
  for (const int gpus : answer.space.gpus) {
    const auto& known = answer.result.without_plan;
    const auto found = std::ranges::find(known, gpus, &GpusWithoutPlan::gpus);
    if (found != known.end())
      all.push_back(*found);
    else if (std::ranges::find(answer.plans.frames, gpus, &SearchFrame::gpus) == answer.plans.frames.end())
      all.push_back({.gpus = gpus, .refusals = {}});  // no scenario: `refused` has the reason
  }
  return all;
}

std::vector<RankedPlan> listed_plans(const SearchAnswer& answer) {
  if (has_several_gpu_counts(answer)) return best_by_gpus(answer.plans, answer.result.ranked);
  return first_plans(answer.result.ranked, answer.top);
}

std::string render_text(const SearchAnswer& answer) {
  return SearchText(answer).render();
}

}  // namespace stagecraft
