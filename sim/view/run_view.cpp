#include "sim/view/run_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/json.hpp"
#include "base/text.hpp"
#include "calibrate/profile/provenance.hpp"
#include "sim/scenario/scenario_hash.hpp"
#include "sim/view/base64.hpp"
#include "sim/view/label_view.hpp"
#include "sim/view/lanes.hpp"
#include "sim/view/link_use.hpp"
#include "sim/view/memory_steps.hpp"
#include "sim/view/pack.hpp"

namespace stagecraft {
namespace {

struct Viewed {
  const Scenario& scenario;
  const Simulation& simulation;
  const ParallelPlan& plan() const { return simulation.prepared.plan; }
};

std::string label_name(const PackedLabel& label, const Program& program) {
  if (label.kind == SliceKind::kBubble) return "bubble";
  const std::string& name = program.labels[label.label].name;
  return label.kind == SliceKind::kExposed ? "waits for " + name : name;
}

void write_label(JsonWriter& json, const PackedLabel& packed, const Viewed& viewed) {
  const Program& program = viewed.simulation.program;
  json.begin_object().field("name", label_name(packed, program));
  json.field("paint", static_cast<int>(paint_of(packed, program)));
  json.field("time_ns", packed.time.count()).field("micro_batches", packed.micro_batches);
  if (packed.kind == SliceKind::kTask) {
    const Label& label = program.labels[packed.label];
    if (label.stage >= 0) json.field("stage", label.stage);
    json.key("parts").begin_array();
    for (const TaskPart& part : label.parts)
      json.begin_array()
          .value(kCategoryNames[static_cast<std::size_t>(part.category)])
          .value(part.time.count())
          .end_array();
    json.end_array();
    const std::string holds = stage_text(label, viewed.scenario, viewed.plan());
    const std::string shape = shape_text(label, viewed.scenario, viewed.plan());
    if (!holds.empty()) json.field("holds", holds);
    if (!shape.empty()) json.field("shape", shape);
    const ByProvenance known = provenance_of(label, viewed.simulation.prices, viewed.plan());
    json.key("provenance").begin_array();
    for (std::size_t i = 0; i < known.size(); ++i)
      if (known[i] > 0) json.begin_array().value(kProvenanceNames[i]).value(known[i]).end_array();
    json.end_array();
  }
  json.end_object();
}

void write_timeline(JsonWriter& json, const Viewed& viewed, std::size_t room) {
  const PackedTimeline packed = pack_timeline(viewed.simulation.program, viewed.simulation.timeline, room);
  json.key("timeline").begin_object().field("end_ns", viewed.simulation.timeline.makespan.count());
  json.field("ranks", packed.ranks)
      .field("shown_ranks", packed.shown_ranks)
      .field("names", rank_names(viewed.simulation.program, viewed.plan().pipeline))
      .key("labels")
      .begin_array();
  for (const PackedLabel& label : packed.labels) write_label(json, label, viewed);
  json.end_array().key("lanes").begin_array();
  for (const PackedLane& lane : packed.lanes)
    json.begin_object()
        .field("rank", lane.rank)
        .field("name", lane.name)
        .field("compute", lane.compute)
        .field("slices", lane.slices)
        .field("offset", lane.offset)
        .end_object();
  json.end_array().field("slices", base64(packed.slices));
  json.field("path", base64(packed.path)).field("path_tasks", packed.path_tasks).end_object();
}

constexpr std::size_t kBins = 240;       // points of memory and links over time: pixels of a chart
constexpr std::size_t kMostCharts = 64;  // ranks
constexpr std::size_t kMostLinks = 12;   // number of the report's first links

// The most that is held in each of equal parts of the time.
std::vector<std::int64_t> highest(const std::vector<MemoryStep>& steps, Duration end) {
  std::vector<std::int64_t> bins(kBins);
  if (end == Duration::zero()) return bins;
  const auto bin_of = [&](Duration time) {
    const auto bin =
        static_cast<std::size_t>(to_seconds(time) / to_seconds(end) * static_cast<double>(kBins));
    return std::min(bin, kBins - 1);
  };
  std::size_t at = 0;
  std::int64_t held = 0;
  for (const MemoryStep& step : steps) {
    for (const std::size_t bin = bin_of(step.time); at < bin;) {
      bins[at] = std::max(bins[at], held);
      bins[++at] = held;
    }
    held = step.held.count();
    bins[at] = std::max(bins[at], held);
  }
  while (at + 1 < kBins) bins[++at] = held;
  return bins;
}

void write_sums(JsonWriter& json, const MemorySums& sums) {
  json.begin_object();
  for (const MemoryClass kind : kMemoryClasses)
    json.field(name_of(kind), sums[static_cast<std::size_t>(kind)]);
  json.end_object();
}

// When the passes have freed all that they held, and the optimizer step may begin; the end where they have not.
Duration end_of_passes(const std::vector<MemoryStep>& steps, Duration end) {
  return steps.empty() || steps.back().held > Bytes(0) ? end : steps.back().time;
}

void write_memory_over_time(JsonWriter& json, const Viewed& viewed) {
  const Timeline& timeline = viewed.simulation.timeline;
  const auto steps = memory_steps(viewed.simulation.program, timeline);
  const std::size_t ranks =
      std::min({steps.size(), viewed.simulation.report.memory.stages.size(), kMostCharts});
  json.key("held_bytes").begin_array();
  for (std::size_t rank = 0; rank < ranks; ++rank) json.value(highest(steps[rank], timeline.makespan));
  json.end_array().key("held_beside").begin_array();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const StageMemory& stage = viewed.simulation.report.memory.stages[rank];
    json.begin_object().field("passes_end_ns", end_of_passes(steps[rank], timeline.makespan).count());
    write_sums(json.key("passes"), stage.beside_passes);
    write_sums(json.key("step"), stage.in_step);
    json.end_object();
  }
  json.end_array();
}

// Writes the use of the first links of the report, in thousandths of the capacity.
void write_links_over_time(JsonWriter& json, const Viewed& viewed) {
  const Program& program = viewed.simulation.program;
  const std::vector<LinkReport>& reported = viewed.simulation.report.network.links;
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < std::min(reported.size(), kMostLinks); ++i) {
    const auto found = std::ranges::find(program.links, reported[i].name, &SharedLink::name);
    if (found == program.links.end()) break;  // the page ties charts to links by their order
    links.push_back(LinkId(static_cast<std::uint32_t>(found - program.links.begin())));
  }
  json.key("link_use").begin_array();
  for (const std::vector<double>& shares : link_use(program, viewed.simulation.timeline, links, kBins)) {
    json.begin_array();
    for (const double share : shares) json.value(static_cast<std::int64_t>(std::llround(1000 * share)));
    json.end_array();
  }
  json.end_array();
}

void write_summary(JsonWriter& json, const Viewed& viewed) {
  const Report& report = viewed.simulation.report;
  json.field("name", report.name).field("headline", report.headline);
  json.field("profile", report.profile).field("software", report.software);
  json.field("timeline_hash", report.timeline_hash).field("finishes", report.finishes());
  json.field("scenario_hash", scenario_hash(viewed.scenario));
  json.field("yaml", to_yaml(viewed.scenario))
      .field("assumed", report.assumptions)
      .key("critical_path")
      .begin_array();
  for (const PathShare& share : report.critical_path)
    json.begin_array().value(share.name).value(share.time.count()).value(share.tasks).end_array();
  json.end_array().field("memory_rule", report.memory.rule());
}

}  // namespace

std::string run_view(const Scenario& scenario, const Simulation& simulation, const RunViewOptions& options) {
  const Viewed viewed{scenario, simulation};
  JsonWriter json;
  json.begin_object().field("title", options.title);
  write_summary(json, viewed);
  write_memory_over_time(json, viewed);
  write_links_over_time(json, viewed);
  write_timeline(json, viewed, options.room);
  json.end_object();
  return with_member(json, "result", render_json(simulation.report));
}

std::string html_page(const RunPage& page) {
  JsonWriter json;
  begin_page(json, "run", page.head);
  json.field("words", page.words).field("refused", page.refused).end_object();
  return html_page(PageContent{.title = page.head.title,
                               .json = with_member(json, "runs", "[" + join(page.runs, ",") + "]")});
}

}  // namespace stagecraft
