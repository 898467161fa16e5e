#include "tools/search_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/yaml_json.hpp"
#include "sim/search/frames.hpp"
#include "sim/search/plan_figures.hpp"
#include "tools/wrapped_text.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostRefusals = 6;  // named in the table; JSON has all
constexpr std::size_t kMostFront = 12;    // plans of the front that the table shows
constexpr const char* kMemory = "memory";
constexpr const char* kBatchPath = "training.global_batch_size";
constexpr const char* kLayersPath = "parallelism.stage_layers";
constexpr const char* kEven = "even";  // as many layers in each stage

// What makes room without more GPUs, and the value of it that does most.
constexpr std::array<std::pair<const char*, const char*>, 5> kRoom = {{{"training.recompute", "full"},
                                                                       {"parallelism.zero_stage", "3"},
                                                                       {"offload.optimizer", "1"},
                                                                       {"offload.activations", "1"},
                                                                       {"offload.weights", "1"}}};

std::string count_text(std::size_t n) {
  return with_thousands(static_cast<std::int64_t>(n));
}

// One entry of a plan: its path, what a column is called, its value.
struct PlanCell {
  std::string path, title, value;
  bool text = false;  // in JSON, a text
  Align align = Align::kRight;
  const YamlNode* node = nullptr;                      // of a value that somebody listed: in JSON, what it is
  const std::vector<std::int64_t>* numbers = nullptr;  // in JSON, these; null where there are none
};

std::vector<PlanCell> degrees_of(const SearchPoint& point, const SearchSpace& space) {
  std::vector<PlanCell> cells;
  const auto add = [&](const char* path, const char* title, std::int64_t value) {
    cells.push_back({.path = path, .title = title, .value = std::to_string(value)});
  };
  const auto by_divisors = [&](const char* path) {
    const SearchAxis* axis = space.find(path);
    return axis != nullptr && axis->all();
  };
  add("parallelism.tensor", "tp", point.tensor);
  add("parallelism.pipeline", "pp", point.pipeline);
  add("parallelism.data", "dp", point.data);
  add("parallelism.context", "cp", point.context);
  add("parallelism.expert", "ep", point.expert);
  if (by_divisors("parallelism.expert_tensor")) add("parallelism.expert_tensor", "etp", point.expert_tensor);
  add("parallelism.virtual_stages", "chunks", point.virtual_stages);
  add("training.micro_batch_size", "mb", point.micro_batch);
  add(kBatchPath, "batch", point.global_batch);
  add("parallelism.zero_stage", "zero", point.zero_stage);
  if (by_divisors("parallelism.zero_group"))
    add("parallelism.zero_group", "over", point.zero_group > 0 ? point.zero_group : point.replicas());
  return cells;
}

std::string switch_text(const PointSwitch& one, double value) {
  return one.share ? fmt::format("{}", value) : value != 0 ? "true" : "false";
}

std::string value_text(const YamlNode& node) {
  if (const YamlNode* name = node.find("name")) return name->text;
  if (node.kind == YamlNode::Kind::kScalar) return node.text;
  return node.kind == YamlNode::Kind::kNull ? "null" : "…";
}

// Layers of stages, runs of equal ones as one: "7 9x2 7".
std::string layers_text(const std::vector<std::int64_t>& layers) {
  std::vector<std::string> runs;
  for (auto at = layers.begin(); at != layers.end();) {
    const auto end = std::find_if(at, layers.end(), [&](std::int64_t n) { return n != *at; });
    runs.push_back(end - at == 1 ? std::to_string(*at) : fmt::format("{}x{}", *at, end - at));
    at = end;
  }
  return runs.empty() ? kEven : join(runs, " ");
}

class Plans {
 public:
  explicit Plans(const SearchAnswer& answer) : answer_(answer) {
    for (const SearchAxis& axis : answer.space.axes)
      if (is_other(axis)) others_.push_back(&axis);
    // A plan that is laid over the scenario would keep its split, so that plans without one say so.
    splits_ = answer.space.find(kLayersPath) == nullptr &&
              (!own_layers().empty() || std::ranges::any_of(answer.plans.points, [](const SearchPoint& at) {
                return !at.stage_layers.empty();
              }));
  }

  // The split that the scenario gives, where it is not one of several that are tried.
  [[nodiscard]] const std::vector<std::int64_t>& own_layers() const {
    return answer_.plans.frames.front().scenario.parallelism.stage_layers;
  }

  [[nodiscard]] const SearchPoint& point(const RankedPlan& plan) const {
    return answer_.plans.points[plan.point];
  }

  [[nodiscard]] std::vector<PlanCell> cells(std::size_t index) const {
    const SearchPoint& at = answer_.plans.points[index];
    const SearchFrame& frame = answer_.plans.frames[at.frame];
    std::vector<PlanCell> cells = degrees_of(at, answer_.space);
    const auto words = [&](const char* path, const char* title, std::string value, bool text = true) {
      cells.push_back(
          {.path = path, .title = title, .value = std::move(value), .text = text, .align = Align::kLeft});
    };
    if (splits_)
      cells.push_back({.path = kLayersPath,
                       .title = "layers",
                       .value = layers_text(at.stage_layers),
                       .align = Align::kLeft,
                       .numbers = &at.stage_layers});
    words("parallelism.sequence_parallel", "sp", at.sequence_parallel ? "true" : "false", false);
    words("schedule", "schedule", frame.scenario.schedule.name);
    const Recompute again = at.own_recompute ? frame.scenario.training.recompute.granularity : at.recompute;
    words("training.recompute", "recompute", std::string(kRecomputeNames[static_cast<std::size_t>(again)]));
    for (std::size_t i = 0; i < kPointSwitches; ++i) {
      const PointSwitch& one = point_switches()[i];
      if (answer_.space.find(one.path) == nullptr) continue;
      const std::string path(one.path);
      cells.push_back({.path = path, .title = path, .value = switch_text(one, at.switches[i])});
    }
    for (std::size_t i = 0; i < others_.size(); ++i) {
      const YamlNode& value = others_[i]->values[frame_choice(answer_.space, *others_[i], at.frame)];
      words(others_[i]->path.c_str(), others_[i]->path.c_str(), value_text(value));
      cells.back().node = &value;
    }
    return cells;
  }

 private:
  // A key that frames differ in, beside those that every plan shows.
  [[nodiscard]] static bool is_other(const SearchAxis& axis) {
    return axis.path != "schedule" && axis.path != kBatchPath && !set_in_place(axis);
  }

  const SearchAnswer& answer_;
  std::vector<const SearchAxis*> others_;
  bool splits_ = false;  // do plans say what layers their stages have?
};

std::string phrase_of(const SearchRefusal& refusal) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kPhrases = {
      {{"out-of-memory", "out of memory"},
       {"assertion-missed", "miss what the scenario promises"},
       {"not-divisible", "do not divide"},
       {"schedule-constraint", "the schedule does not take"},
       {"no-pipeline", "chunks without a pipeline"},
       {"needs-another-key", "need another key"},
       {"contradiction", "contradict themselves"},
       {"not-supported-yet", "are not supported yet"},
       {"not-supported", "are not supported"}}};
  const auto known = std::ranges::find(kPhrases, std::string_view(refusal.code),
                                       &std::pair<std::string_view, std::string_view>::first);
  std::string phrase(known != kPhrases.end() ? known->second : std::string_view(refusal.code));
  if (!refusal.path.empty()) phrase += " (" + refusal.path + ")";
  return phrase;
}

class Text {
 public:
  explicit Text(const SearchAnswer& answer)
      : answer_(answer), plans_(answer), figures_(answer.plans, answer.space.price) {}

  [[nodiscard]] std::string render() const {
    std::string out = answer_.name + "\n" + counts();
    if (answer_.result.ranked.empty()) return out + why_none();
    const std::vector<RankedPlan> scaling = best_by_gpus(answer_.plans, answer_.result.ranked);
    std::vector<RankedPlan> best(
        answer_.result.ranked.begin(),
        answer_.result.ranked.begin() +
            static_cast<std::ptrdiff_t>(std::min(answer_.top, answer_.result.ranked.size())));
    if (scaling.size() == 1) out += "\n" + table(best, Rows::kRanked) + headroom(best);
    if (scaling.size() > 1)
      out += "\nbest plan of each number of GPUs\n" + table(scaling, Rows::kScaling) + headroom(scaling) +
             speedups(scaling);
    std::vector<RankedPlan> front = answer_.result.pareto;
    const std::size_t all = front.size();
    if (front.size() > kMostFront) front.resize(kMostFront);
    if (all > 1 && scaling.size() == 1)
      out += "\ntime against memory: nobody is better in both" +
             (all > front.size() ? fmt::format(" ({} of {})", front.size(), all) : std::string()) + "\n" +
             table(front, Rows::kFront);
    return out;
  }

 private:
  [[nodiscard]] std::string why_none() const {
    if (answer_.result.fitting > 0) return "none of those that fit keeps what `assert` promises\n";
    return answer_.result.placed > 0 ? wrapped_text("", "  ", none_fits())
                                     : "none can run: see the reasons, and what the space leaves open\n";
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

  [[nodiscard]] std::string counts() const {
    const SearchResult& result = answer_.result;
    std::string out =
        fmt::format("plans            {}: {} fit, {} simulated\n", count_text(answer_.plans.points.size()),
                    count_text(result.fitting), count_text(result.ranked.size()));
    const char* label = "rejected         ";
    for (std::size_t i = 0; i < result.refusals.size(); ++i) {
      if (i == kMostRefusals) {
        std::size_t rest = 0;
        for (std::size_t j = i; j < result.refusals.size(); ++j) rest += result.refusals[j].count;
        return out +
               fmt::format("                 {} for other reasons (--json lists them)\n", count_text(rest)) +
               left_out();
      }
      out += fmt::format("{}{} {}\n", label, count_text(result.refusals[i].count),
                         phrase_of(result.refusals[i]));
      label = "                 ";
    }
    return out + left_out();
  }

  [[nodiscard]] std::string left_out() const {
    std::string out;
    if (answer_.result.bounded > 0)
      out = fmt::format("not simulated    {} that cannot be better, by a bound on their time\n",
                        count_text(answer_.result.bounded));
    return out + left_aside_lines() + kept_lines() + dropped_lines();
  }

  [[nodiscard]] std::string dropped_lines() const {
    if (answer_.plans.without_own_layers == 0) return {};
    const std::vector<std::int64_t>& layers = plans_.own_layers();
    return wrapped_text(
        "dropped          ", std::string(17, ' '),
        fmt::format("the scenario's stage_layers, in {} plans of other stages than its {}; "
                    "--fix {} refuses them",
                    count_text(answer_.plans.without_own_layers), layers.size(), kLayersPath));
  }

  // Of abstract stages.
  [[nodiscard]] std::string kept_lines() const {
    if (answer_.space.kept.empty()) return {};
    std::vector<std::string> names;
    for (const std::string& path : answer_.space.kept) names.push_back(short_title(path));
    return wrapped_text("kept             ", std::string(17, ' '),
                        "the scenario's " + join(names, ", ") + ": abstract stages have costs for no other");
  }

  [[nodiscard]] std::string left_aside_lines() const {
    const std::string indent(17, ' ');
    std::string out;
    for (const LeftAside& aside : orders_left_aside(answer_.plans)) {
      const std::string plans =
          fmt::format("{} plan{}", count_text(aside.plans), aside.plans == 1 ? "" : "s");
      const std::string what = aside.has_any
                                   ? fmt::format("{} of orders that {} does not run: {}", plans,
                                                 aside.software, join(aside.orders, ", "))
                                   : fmt::format("{} with pipelines: {} has none", plans, aside.software);
      out += wrapped_text(out.empty() ? "left aside       " : indent, indent, what);
    }
    return out;
  }

  // Columns that all rows share go into one line.
  enum class Rows { kRanked, kScaling, kFront };

  [[nodiscard]] std::string table(const std::vector<RankedPlan>& rows, Rows kind) const {
    const bool numbered = kind == Rows::kRanked, scaled = kind == Rows::kScaling;
    std::vector<std::vector<PlanCell>> cells;
    for (const RankedPlan& plan : rows) cells.push_back(plans_.cells(plan.point));
    std::vector<std::size_t> shown;
    std::vector<std::string> same;
    for (std::size_t c = 0; c < cells.front().size(); ++c) {
      const bool differs =
          std::ranges::any_of(cells, [&](const auto& row) { return row[c].value != cells.front()[c].value; });
      const bool uneven = std::ranges::any_of(
          cells, [&](const auto& row) { return row[c].numbers != nullptr && row[c].value != kEven; });
      if (differs || uneven || c < 3)
        shown.push_back(c);
      else if (is_worth_saying(cells.front()[c]))
        same.push_back(cells.front()[c].title + " " + cells.front()[c].value);
    }
    std::vector<Align> aligns;
    std::vector<std::string> head;
    if (numbered || scaled) aligns.push_back(Align::kRight), head.emplace_back(numbered ? "#" : "GPUs");
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
      if (numbered) row.push_back(std::to_string(i + 1));
      if (scaled) row.push_back(std::to_string(plans_.point(rows[i]).gpus()));
      for (const std::size_t c : shown) row.push_back(cells[i][c].value);
      for (std::string& figure : figure_cells(rows[i])) row.push_back(std::move(figure));
      text.row(std::move(row));
    }
    return text.str() +
           (same.empty() || kind == Rows::kFront ? "" : "in all of them: " + join(same, ", ") + "\n");
  }

  [[nodiscard]] static std::string short_title(const std::string& title) {
    return title.substr(title.rfind('.') + 1);
  }

  // The batch is the scenario's unless it follows the plan.
  [[nodiscard]] bool is_worth_saying(const PlanCell& cell) const {
    if (cell.title == "cp" || cell.title == "ep" || cell.title == "chunks") return cell.value != "1";
    if (cell.numbers != nullptr) return false;  // even in all of them
    return cell.title != "batch" || answer_.space.batch_at_most || answer_.space.find(kBatchPath) != nullptr;
  }

  [[nodiscard]] std::vector<std::string> figure_titles() const {
    std::vector<std::string> titles = {"iteration", "tok/s/GPU", "MFU", kMemory};
    if (answer_.space.price) titles.push_back(answer_.space.price->currency + "/Mtok");
    return titles;
  }

  [[nodiscard]] static std::string memory(const RankedPlan& plan) {
    const std::string peak = human(plan.memory.peak);
    if (plan.memory.capacity <= Bytes(0)) return peak;
    return fmt::format("{} {}", peak, kVerdictNames[static_cast<std::size_t>(plan.memory.verdict())]);
  }

  [[nodiscard]] std::vector<std::string> figure_cells(const RankedPlan& plan) const {
    const double rate = figures_.tokens_per_s(plan) / plans_.point(plan).gpus();
    std::vector<std::string> cells = {human(plan.time), fmt::format("{:.4g}", rate),
                                      percent(figures_.mfu(plan)), memory(plan)};
    if (const auto cost = figures_.cost_per_million_tokens(plan))
      cells.push_back(fmt::format("{:.3g}", *cost));
    return cells;
  }

  [[nodiscard]] std::string speedups(const std::vector<RankedPlan>& scaling) const {
    TextTable text({Align::kRight, Align::kRight, Align::kRight});
    text.row({"GPUs", "speed-up", "efficiency"});
    const double first = figures_.tokens_per_s(scaling.front());
    const int least = plans_.point(scaling.front()).gpus();
    for (const RankedPlan& plan : scaling) {
      const double speedup = first > 0 ? figures_.tokens_per_s(plan) / first : 0;
      const int gpus = plans_.point(plan).gpus();
      text.row({std::to_string(gpus), fmt::format("{:.2f}", speedup), percent(speedup * least / gpus)});
    }
    return text.str();
  }

  const SearchAnswer& answer_;
  Plans plans_;
  PlanFigures figures_;
};

class Json {
 public:
  explicit Json(const SearchAnswer& answer)
      : answer_(answer), plans_(answer), figures_(answer.plans, answer.space.price) {}

  [[nodiscard]] std::string render() {
    const SearchResult& result = answer_.result;
    json_.begin_object()
        .field("schema", "stagecraft.search/1")
        .field("scenario", std::string_view(answer_.file));
    json_.field("plans", answer_.plans.points.size()).field("placed", result.placed);
    json_.field("fitting", result.fitting).field("bounded", result.bounded);
    json_.field("simulated", result.ranked.size()).field("exhaustive", answer_.exhaustive);
    write_space();
    write_refusals();
    write_left_aside();
    json_.key("kept").begin_array();
    for (const std::string& path : answer_.space.kept) json_.value(std::string_view(path));
    json_.end_array();
    write_dropped();
    std::vector<RankedPlan> best = result.ranked;
    if (best.size() > answer_.top) best.resize(answer_.top);
    write_plans("ranked", best);
    write_plans("pareto", result.pareto);
    write_plans("scaling", best_by_gpus(answer_.plans, answer_.result.ranked));
    json_.end_object();
    return json_.str();
  }

 private:
  void write_space() {
    json_.key("space").begin_object();
    for (const SearchAxis& axis : answer_.space.axes) {
      json_.key(axis.path);
      if (axis.all()) {
        json_.begin_object().field("all", true).field("at_most", axis.at_most);
        json_.field("tokens_each", axis.tokens_each).end_object();
        continue;
      }
      json_.begin_array();
      for (const YamlNode& value : axis.values) write_json(json_, value);
      json_.end_array();
    }
    json_.end_object();
  }

  void write_refusals() {
    json_.key("rejected").begin_array();
    for (const SearchRefusal& refusal : answer_.result.refusals) {
      json_.begin_object().field("code", std::string_view(refusal.code));
      json_.field("path", std::string_view(refusal.path)).field("count", refusal.count);
      json_.field("example", std::string_view(refusal.message)).field("hint", std::string_view(refusal.hint));
      write_plan("plan", refusal.point);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_left_aside() {
    json_.key("left_aside").begin_array();
    for (const LeftAside& aside : orders_left_aside(answer_.plans)) {
      json_.begin_object().field("software", std::string_view(aside.software));
      json_.key("schedules").begin_array();
      for (const std::string& order : aside.orders) json_.value(std::string_view(order));
      json_.end_array().field("plans", aside.plans).end_object();
    }
    json_.end_array();
  }

  void write_dropped() {
    json_.key("dropped").begin_array();
    if (answer_.plans.without_own_layers > 0) {
      json_.begin_object().field("path", kLayersPath).key("value");
      write_numbers(plans_.own_layers());
      json_.field("plans", answer_.plans.without_own_layers).end_object();
    }
    json_.end_array();
  }

  void write_numbers(const std::vector<std::int64_t>& numbers) {
    if (numbers.empty()) {
      json_.null();
      return;
    }
    json_.begin_array();
    for (const std::int64_t number : numbers) json_.value(number);
    json_.end_array();
  }

  void write_plan(const char* key, std::size_t point) {
    json_.key(key).begin_object();
    for (const PlanCell& cell : plans_.cells(point)) {
      json_.key(cell.path);
      const auto number = parse_number(cell.value);
      if (cell.node != nullptr)
        write_json(json_, *cell.node);
      else if (cell.numbers != nullptr)
        write_numbers(*cell.numbers);
      else if (cell.text || (!number && cell.value != "true" && cell.value != "false"))
        json_.value(std::string_view(cell.value));
      else if (!number)
        json_.value(cell.value == "true");
      else if (const auto whole = parse_integer(cell.value))
        json_.value(*whole);
      else
        json_.value(*number);
    }
    json_.end_object();
  }

  void write_plans(const char* key, const std::vector<RankedPlan>& plans) {
    json_.key(key).begin_array();
    for (const RankedPlan& plan : plans) {
      const int gpus = plans_.point(plan).gpus();
      json_.begin_object().field("gpus", gpus);
      write_plan("plan", plan.point);
      json_.field("iteration_time_s", plan.time);
      json_.field("samples_per_s", plan.time > Duration::zero() ? 1 / sample_time(answer_.plans, plan) : 0.0);
      json_.field("tokens_per_s", figures_.tokens_per_s(plan));
      json_.field("tokens_per_s_per_gpu", figures_.tokens_per_s(plan) / gpus)
          .field("mfu", figures_.mfu(plan));
      json_.field("peak_bytes", plan.memory.peak).field("peak_stage", plan.memory.rank);
      json_.field("verdict", kVerdictNames[static_cast<std::size_t>(plan.memory.verdict())]);
      if (const auto cost = figures_.cost_per_million_tokens(plan)) {
        json_.field("cost_per_million_tokens", *cost);
        json_.field("currency", std::string_view(answer_.space.price->currency));
      }
      json_.end_object();
    }
    json_.end_array();
  }

  const SearchAnswer& answer_;
  Plans plans_;
  PlanFigures figures_;
  JsonWriter json_;
};

}  // namespace

std::string render_text(const SearchAnswer& answer) {
  return Text(answer).render();
}

std::string render_json(const SearchAnswer& answer) {
  return Json(answer).render();
}

}  // namespace stagecraft
