#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "sim/report/render_faults.hpp"
#include "sim/report/render_network.hpp"
#include "sim/report/report.hpp"
#include "sim/report/text_lines.hpp"

namespace stagecraft {
namespace {

// "forward 31.0 %   backward 52.1 %  ...": what is nonzero, largest first, wrapped to the width of a
// terminal.
std::string shares_line(std::string_view head,
                        const std::vector<std::pair<std::string_view, double>>& shares) {
  std::vector<std::pair<std::string_view, double>> sorted;
  for (const auto& item : shares) {
    if (item.second >= 0.0005) sorted.push_back(item);
  }
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out, row;
  for (const auto& [name, value] : sorted) {
    const std::string item = fmt::format("{} {}", name, percent(value));
    if (!row.empty() && row.size() + 3 + item.size() > kTextWidth) {
      out += headed_line(out.empty() ? head : "", row);
      row.clear();
    }
    row += (row.empty() ? "" : "   ") + item;
  }
  return row.empty() ? out : out + headed_line(out.empty() ? head : "", row);
}

std::string verdict_words(Bytes used, Bytes capacity) {
  const Bytes free = capacity - used;
  const std::string room =
      free >= Bytes(0) ? ", " + human(free) + " free" : " by " + human(Bytes(-free.count()));
  return std::string(name_of(verdict_of(used, capacity))) + room;
}

std::string memory_lines(const MemoryLedger& memory) {
  const StageMemory& heaviest = memory.heaviest();
  const Bytes peak = heaviest.peak();
  std::string out = memory.capacity == Bytes(0)
                        ? headed_line("memory", fmt::format("{} on stage {} (capacity not given)",
                                                            human(peak), heaviest.stage))
                        : headed_line("memory", fmt::format("{} of {} on stage {}     {}", human(peak),
                                                            human(memory.capacity), heaviest.stage,
                                                            verdict_words(peak, memory.capacity)));
  const HostMemory& host = memory.host;
  if (host.used == Bytes(0)) return out;
  if (host.capacity == Bytes(0))
    return out + headed_line("host", fmt::format("{} a node (capacity not given)", human(host.used)));
  return out +
         headed_line("host", fmt::format("{} of {} a node     {}", human(host.used), human(host.capacity),
                                         verdict_words(host.used, host.capacity)));
}

std::string throughput_lines(const Report& report) {
  if (!report.finishes())
    return headed_line("iteration",
                       fmt::format("does not finish: at rest from {} on", human(report.iteration_time)));
  std::string out =
      headed_line("iteration", fmt::format("{}   (90 %: {} – {})", human(report.iteration_time),
                                           human(report.interval_90[0]), human(report.interval_90[1])));
  if (report.tokens > 0) {
    out += headed_line(
        "throughput",
        fmt::format("{} tokens/s   {} tokens/s/GPU   {} samples/s",
                    with_thousands(static_cast<std::int64_t>(report.tokens_per_s() + 0.5)),
                    four_digits(report.tokens_per_s() / report.gpus), four_digits(report.samples_per_s())));
  } else {
    out += headed_line("throughput", fmt::format("{} samples/s", four_digits(report.samples_per_s())));
  }
  if (report.peak.count() > 0) {
    out += headed_line("model FLOP/s",
                       fmt::format("{:.4g} TFLOP/s per GPU   MFU {}", report.model_flops_per_gpu_s() * 1e-12,
                                   percent(report.mfu())));
    out += headed_line("hardware FLOP/s",
                       fmt::format("{:.4g} TFLOP/s per GPU   HFU {}",
                                   report.hardware_flops_per_gpu_s() * 1e-12, percent(report.hfu())));
  }
  return out;
}

std::string breakdown_line(const Report& report) {
  std::vector<std::pair<std::string_view, double>> shares;
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const std::string_view name = kCategoryNames[c];
    shares.emplace_back(name.substr(0, name.find("_comm")),
                        share_of(report.breakdown[c], report.iteration_time));
  }
  return shares_line("where it goes", shares);
}

// `other` time is host time, between iterations and for the launch of passes beyond the GPUs' own time; with
// offload, also the wait for copies.
std::string host_line(const Report& report) {
  constexpr double kNoteworthy = 0.1;
  const double share =
      share_of(report.breakdown[static_cast<std::size_t>(Category::kOther)], report.iteration_time);
  if (report.software.empty() || share < kNoteworthy) return "";
  if (report.offload.used())
    return wrapped_lines("host", fmt::format("GPUs wait for it, or for copies to it, {} of the time: less "
                                             "offload may help",
                                             percent(share)));
  return wrapped_lines(
      "host", fmt::format("GPUs wait for it {} of the time: larger micro-batches{} may help", percent(share),
                          report.graphs_may_help ? " or options.cuda_graphs" : ""));
}

// Software decides much and is seldom named, so it is said where it was taken from the profile.
std::string software_line(const Report& report) {
  if (report.software.empty()) return "";
  return headed_line(
      "software",
      report.software + (report.software_is_assumed ? ", assumed: options.software is not given" : ""));
}

std::string provenance_line(const Report& report) {
  std::vector<std::pair<std::string_view, double>> shares;
  for (std::size_t i = 0; i < report.provenance.size(); ++i)
    shares.emplace_back(kProvenanceNames[i], report.provenance[i]);
  return shares_line("based on", shares);
}

// "18 of GEMMs and attention: 4 measured, 13 interpolated, 1 analytic".
std::string shapes_line(const std::vector<ShapeReport>& shapes) {
  if (shapes.empty()) return "";
  std::string counts;
  for (std::size_t i = 0; i < kProvenanceCount; ++i) {
    const auto count = std::ranges::count(shapes, static_cast<Provenance>(i), &ShapeReport::provenance);
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, kProvenanceNames[i]);
  }
  return wrapped_lines("shapes", fmt::format("{} of GEMMs and attention: {}", shapes.size(), counts), ", ");
}

std::string shape_lines(const std::vector<ShapeReport>& shapes) {
  std::string out;
  for (const ShapeReport& shape : shapes)
    out += wrapped_lines(
        "shape", fmt::format("{:>6}  {:<12}  {}", percent(shape.share), name(shape.provenance), shape.shape));
  return out;
}

std::string critical_path_line(const Report& report) {
  std::vector<std::pair<std::string_view, double>> shares;
  for (const PathShare& step : report.critical_path) {
    shares.emplace_back(step.name, share_of(step.time, report.iteration_time));
  }
  return shares_line("critical path", shares);
}

// The bandwidth that would hide every copy, next to the available one.
std::string offload_lines(const OffloadPrice& offload) {
  if (!offload.used()) return "";
  const auto rate = [](Bandwidth value) { return fmt::format("{:.4g} GB/s", value.count() * 1e-9); };
  return wrapped_lines("offload", fmt::format("{} of a GPU to host memory; activations need {}, weights {} "
                                              "not to wait; host step {}, stalls {}",
                                              rate(offload.available), rate(offload.required_activations),
                                              rate(offload.required_weights), human(offload.optimizer_step),
                                              human(offload.stall)));
}

bool has_utilization(const Report& report) {
  return report.finishes() && report.peak.count() > 0;
}

// A rank without a pipeline has no bubble; what it is idle, it waits for traffic.
bool has_pipeline(const Report& report) {
  return report.memory.stages.size() != 1;
}

std::string bubble_lines(const Report& report) {
  const Bubble& bubble = report.bubble;
  const bool waits = !has_pipeline(report) && bubble.over_ideal > 0;
  return headed_line(has_pipeline(report) ? "bubble" : "idle",
                     fmt::format("{} over ideal, {} of rank time{}", percent(bubble.over_ideal),
                                 percent(bubble.fraction), waits ? ", waiting for traffic" : "")) +
         headed_line("", fmt::format("makespan {}, span {}", human(bubble.makespan), human(bubble.span)));
}

std::string formula_lines(const Report& report) {
  const std::string_view utilization =
      has_utilization(report)
          ? "MFU = model FLOPs / (time x GPUs x peak), attention counted dense; model FLOPs = 3 x forward; "
            "HFU adds what is recomputed; "
          : "";
  return wrapped_lines("formulas", fmt::format("{}{} over ideal = (makespan - ideal) / ideal of the passes",
                                               utilization, has_pipeline(report) ? "bubble" : "idle"));
}

std::string verbose_lines(const Report& report) {
  std::string out = shape_lines(report.shapes) + critical_path_line(report) + offload_lines(report.offload);
  out += formula_lines(report);
  out +=
      headed_line("simulated", fmt::format("{} on {}, timeline {}", counted_thousands(report.tasks, "task"),
                                           counted(report.simulated_ranks, "rank"), report.timeline_hash));
  for (const std::string& assumption : report.assumptions) out += wrapped_lines("assumed", assumption);
  return out;
}

}  // namespace

std::string render_text(const Report& report, bool verbose) {
  std::string out = printable(report.name) + "\n";
  out += wrapped_lines("layout", counted_thousands(report.gpus, "GPU") + ": " + report.headline, " · ");
  out += throughput_lines(report);
  out += memory_lines(report.memory);
  out += breakdown_line(report);
  out += host_line(report);
  out += bubble_lines(report);
  out += network_lines(report, verbose);
  out += fault_lines(report, verbose);
  out += provenance_line(report);
  out += shapes_line(report.shapes);
  if (!report.profile.empty()) out += headed_line("profile", report.profile);
  out += software_line(report);
  for (const std::string& warning : report.warnings)
    out += wrapped_lines(&warning == &report.warnings.front() ? "notes" : "", warning);
  if (verbose) out += verbose_lines(report);
  return out;
}

}  // namespace stagecraft
