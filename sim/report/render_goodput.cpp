#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "base/wrapped_text.hpp"
#include "base/yaml_json.hpp"
#include "sim/report/goodput_report.hpp"
#include "sim/report/text_lines.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kBar = 28;

// Up to weeks: "12.3 min", "1.96 days".
std::string span_of(double seconds) {
  constexpr double kMinute = 60;
  if (seconds >= 2 * kSecondsPerDay) return fmt::format("{:.3g} days", seconds / kSecondsPerDay);
  if (seconds >= 2 * kSecondsPerHour) return fmt::format("{:.3g} h", seconds / kSecondsPerHour);
  if (seconds >= 2 * kMinute) return fmt::format("{:.3g} min", seconds / kMinute);
  return human(from_seconds(seconds));
}
std::string span_of(Duration time) {
  return span_of(to_seconds(time));
}

std::string of_percent(const MeanInterval& value) {
  std::string text = percent(value.mean, 2);
  if (value.ci95)
    text += fmt::format("   (95 %: {} – {})", percent((*value.ci95)[0], 2), percent((*value.ci95)[1], 2));
  return text;
}

std::size_t decimals_of(const std::string& number) {
  const std::size_t dot = number.find('.');
  return dot == std::string::npos ? 0 : number.size() - dot - 1;
}

// "148.7 – 149.0": both ends to the same decimal.
std::string interval_text(const std::array<double, 2>& ends) {
  const std::size_t decimals = std::max(decimals_of(four_digits(ends[0])), decimals_of(four_digits(ends[1])));
  const auto text = [decimals](double end) {
    const std::string digits = four_digits(end);
    return decimals_of(digits) == decimals ? digits : fmt::format("{:.{}f}", end, decimals);
  };
  return text(ends[0]) + " – " + text(ends[1]);
}

// 20 nodes, of which 2 are spares.
std::string machines_of(const GoodputReport& report) {
  std::string text = report.gpus > 0 ? fmt::format("{} GPUs on ", with_thousands(report.gpus)) : "";
  text += counted_thousands(report.nodes - report.spares, "node");
  if (report.spares > 0) text += " and " + counted(report.spares, "spare");
  return text;
}

std::string head_of(const GoodputReport& report) {
  const bool published = report.rules == "published";
  std::string out = printable(report.name) + "\n";
  out += wrapped_lines("layout", machines_of(report) + ": " + report.headline);
  out += headed_line("policy", report.policy + (published ? ", published rules" : ""));
  const MeanInterval& rate = report.samples_per_s;
  const std::string interval = rate.ci95 ? fmt::format("   (95 %: {})", interval_text(*rate.ci95)) : "";
  const std::string here = four_digits(rate.mean) + " samples/s" + interval;
  const std::string ideal = four_digits(report.ideal_samples_per_s) + " without failures";
  if (report.ideal_lacks.empty()) {
    out += headed_line("throughput", here + "   " + ideal);
  } else {
    out += headed_line("throughput", here);
    out += headed_line("", ideal + " and " + report.ideal_lacks);
  }
  out += headed_line("of ideal", of_percent(report.fraction_of_ideal));
  return out + headed_line("ETTR", of_percent(report.ettr));
}

std::string failures_of(const GoodputReport& report) {
  if (report.failures == 0)
    return headed_line("failures", "none that stopped the job in " + span_of(report.horizon));
  std::string text = fmt::format("{} in {}, one every {}", mean_count(report.failures),
                                 span_of(report.horizon), span_of(report.mean_time_between_failures_s));
  std::string out = headed_line("failures", text);
  if (report.restarts > 0)
    out += headed_line("restarts", fmt::format("{}, {} to recover in the mean", mean_count(report.restarts),
                                               span_of(report.mean_time_to_recover_s)));
  return out;
}

// Rounded so that what is there shows, and what is not does not.
std::string bar_of(double share) {
  const auto cells = static_cast<int>(std::lround(share * static_cast<double>(kBar)));
  std::string bar;
  for (int i = 0; i < cells; ++i) bar += "█";
  return cells == 0 && share > 0 ? "▏" : bar;
}

std::string buckets_of(const GoodputReport& report) {
  const double horizon = to_seconds(report.horizon);
  std::string out;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    const double share = horizon > 0 ? report.buckets_s[b] / horizon : 0;
    if (share == 0) continue;
    const std::string bar = bar_of(share);
    const std::string blanks(kBar - std::min<std::size_t>(utf8_count(bar), kBar), ' ');
    out += headed_line(out.empty() ? "where it goes" : "",
                       fmt::format("{:<14} {:>8}  {}{} {:>9}", words_of(static_cast<Bucket>(b)),
                                   percent(share, 2), bar, blanks, span_of(report.buckets_s[b])));
  }
  return out + headed_line("", fmt::format("{:<14} {:>8}  {:<{}} {:>9}", "all", percent(1, 2), "", kBar,
                                           span_of(report.horizon)));
}

std::string checkpoint_of(const GoodputReport& report) {
  const GoodputCheckpoint& checkpoint = report.checkpoint;
  if (checkpoint.mode == "none" || checkpoint.mode.empty()) return headed_line("checkpoint", "none");
  std::string text = checkpoint.mode;
  if (checkpoint.bytes > Bytes(0)) text += " of " + human(checkpoint.bytes);
  const bool never =
      checkpoint.never || (report.horizon > Duration::zero() && checkpoint.interval > report.horizon);
  text += never ? fmt::format(", none within {}", span_of(report.horizon))
                : fmt::format(", every {}", span_of(checkpoint.interval));
  if (!never && checkpoint.steps > 0)
    text += fmt::format(" ({})", counted_thousands(checkpoint.steps, "step"));
  std::string out = headed_line("checkpoint", text);
  text = fmt::format("blocks {}", span_of(checkpoint.block));
  if (checkpoint.persist > Duration::zero()) {
    text += fmt::format(", in the background {}", span_of(checkpoint.persist));
    const double between = to_seconds(checkpoint.interval + checkpoint.block);
    const double share = between > 0 ? std::min(1.0, to_seconds(checkpoint.persist) / between) : 0;
    if (!never && share >= 0.01) text += fmt::format(" ({} of the time)", percent(share, 0));
  }
  return out + wrapped_lines("", text + fmt::format(", loads in {}", span_of(checkpoint.load)));
}

std::string advice_of(const GoodputReport& report) {
  const GoodputAdvice& advice = report.advice;
  std::string out;
  if (advice.interval) {
    std::string text = fmt::format("checkpoint every {}", span_of(*advice.interval));
    if (advice.interval_steps > 0)
      text += fmt::format(" ({})", counted_thousands(advice.interval_steps, "step"));
    out += wrapped_lines("advice", text + ": " + advice.interval_why);
  }
  if (advice.spares)
    out += wrapped_lines(out.empty() ? "advice" : "", advice.spares_how + ": " + advice.spares_why);
  return out;
}

std::string causes_of(const GoodputReport& report, bool all) {
  if (report.causes.empty()) return "";
  constexpr std::size_t kMost = 6;
  const std::size_t shown = all ? report.causes.size() : std::min(report.causes.size(), kMost);
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({"cause", "failures", "stopped", "undone", "of horizon"});
  const double horizon = to_seconds(report.horizon);
  const auto row = [&](const GoodputCause& cause) {
    table.row({cause.cause, mean_count(cause.failures), span_of(cause.stopped_s), span_of(cause.undone_s),
               percent((cause.stopped_s + cause.undone_s) / horizon, 2)});
  };
  for (std::size_t i = 0; i < shown; ++i) row(report.causes[i]);
  if (shown < report.causes.size()) {
    GoodputCause rest{.cause = fmt::format("{} others", report.causes.size() - shown)};
    for (std::size_t i = shown; i < report.causes.size(); ++i) {
      rest.failures += report.causes[i].failures;
      rest.stopped_s += report.causes[i].stopped_s;
      rest.undone_s += report.causes[i].undone_s;
    }
    row(rest);
  }
  return "\n" + table.str(2);
}

std::string shapes_of(const GoodputReport& report, bool all) {
  if (report.shapes.empty()) return "";
  constexpr std::size_t kMost = 4;
  const std::size_t shown = all ? report.shapes.size() : std::min(report.shapes.size(), kMost);
  TextTable table({Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.row({"nodes", "shape", "iteration", "samples/s", "of ideal"});
  for (std::size_t i = 0; i < shown; ++i) {
    const GoodputShape& shape = report.shapes[i];
    table.row(
        {with_thousands(shape.nodes), shape.text, shape.samples > 0 ? human(shape.iteration) : "cannot train",
         four_digits(shape.samples_per_s()),
         percent(report.ideal_samples_per_s > 0 ? shape.samples_per_s() / report.ideal_samples_per_s : 0)});
  }
  std::string out = "\n" + table.str(2);
  if (shown < report.shapes.size())
    out += fmt::format("  and {} more (--verbose)\n", report.shapes.size() - shown);
  return out;
}

std::string change(double relative) {
  return std::abs(relative) < 5e-5 ? "–" : fmt::format("{:+.2f} %", relative * 100);
}

// Where a rate or a restart time is from decides how much the answer is worth.
std::string inputs_of(const GoodputReport& report) {
  if (report.inputs.empty()) return "";
  const bool tried = std::ranges::any_of(
      report.inputs, [](const GoodputInput& input) { return input.half != 0 || input.twice != 0; });
  std::string out = fmt::format("\n  inputs that dominate, {}and where they are from\n",
                                tried ? "how samples/s would change, " : "");
  for (const GoodputInput& input : report.inputs) {
    std::string line = fmt::format("{} = {}", input.name, input.value);
    if (tried) line += fmt::format("; half of it {}, twice {}", change(input.half), change(input.twice));
    out += wrapped_text("  ", "    ", line);
    out += wrapped_text("    ", "    ", input.source);
  }
  return out;
}

std::string timeline_of(const GoodputReport& report) {
  if (report.timeline.empty()) return "";
  std::string out = "\n  the first repeat\n";
  for (const GoodputEvent& event : report.timeline) {
    const std::int64_t seconds = event.time.count() / 1'000'000'000;
    out += fmt::format("  {:>4} d {:02}:{:02}:{:02}  {}\n", seconds / 86'400, seconds / 3'600 % 24,
                       seconds / 60 % 60, seconds % 60, event.what);
  }
  return out;
}

}  // namespace

std::string render_text(const GoodputReport& report, const GoodputTextOptions& options) {
  std::string out = head_of(report) + failures_of(report) + buckets_of(report) + checkpoint_of(report);
  out += advice_of(report);
  out += causes_of(report, options.verbose) + shapes_of(report, options.verbose) + inputs_of(report);
  if (!report.plan.empty()) out += "\n" + report.plan;
  out += timeline_of(report);
  if (options.quiet || report.notes.empty()) return out;
  out += "\n";
  for (const std::string& note : report.notes) out += wrapped_lines("note", note);
  return out;
}

namespace {

// Two numbers in any case, for those who read them: of one repeat the mean twice.
void write_interval(JsonWriter& json, std::string_view name, const MeanInterval& value) {
  const std::array<double, 2> ends = value.ci95.value_or(std::array{value.mean, value.mean});
  json.key(name).begin_array().value(ends[0]).value(ends[1]).end_array();
}

void write_causes(JsonWriter& json, const GoodputReport& report) {
  json.key("causes").begin_array();
  for (const GoodputCause& cause : report.causes)
    json.begin_object()
        .field("cause", cause.cause)
        .field("failures", cause.failures)
        .field("stopped_s", cause.stopped_s)
        .field("undone_s", cause.undone_s)
        .end_object();
  json.end_array();
}

void write_shapes(JsonWriter& json, const GoodputReport& report) {
  json.key("shapes").begin_array();
  for (const GoodputShape& shape : report.shapes)
    json.begin_object()
        .field("nodes", shape.nodes)
        .field("shape", shape.text)
        .field("iteration_time_s", shape.iteration)
        .field("samples", shape.samples)
        .field("samples_per_s", shape.samples_per_s())
        .end_object();
  json.end_array();
}

void write_checkpoint(JsonWriter& json, const GoodputReport& report) {
  const GoodputCheckpoint& checkpoint = report.checkpoint;
  json.key("checkpoint").begin_object().field("mode", checkpoint.mode);
  if (checkpoint.never)
    json.key("interval_s").null().key("steps").null();
  else
    json.field("interval_s", checkpoint.interval).field("steps", checkpoint.steps);
  json.field("block_s", checkpoint.block)
      .field("persist_s", checkpoint.persist)
      .field("load_s", checkpoint.load)
      .field("size_bytes", checkpoint.bytes)
      .end_object();
  const GoodputAdvice& advice = report.advice;
  json.key("advice").begin_object();
  if (advice.interval)
    json.field("interval_s", *advice.interval)
        .field("interval_steps", advice.interval_steps)
        .field("interval_why", advice.interval_why);
  if (advice.spares)
    json.field("spares", *advice.spares)
        .field("spares_how", advice.spares_how)
        .field("spares_why", advice.spares_why);
  json.end_object();
}

void write_inputs(JsonWriter& json, const GoodputReport& report) {
  json.key("inputs").begin_array();
  for (const GoodputInput& input : report.inputs)
    json.begin_object()
        .field("name", input.name)
        .field("value", input.value)
        .field("source", input.source)
        .field("half", input.half)
        .field("twice", input.twice)
        .end_object();
  json.end_array();
}

void write_timeline(JsonWriter& json, const GoodputReport& report) {
  if (report.timeline.empty()) return;
  json.key("timeline").begin_array();
  for (const GoodputEvent& event : report.timeline)
    json.begin_object().field("time_s", event.time).field("what", event.what).end_object();
  json.end_array();
}

// The schema, the policy and the main figures, which every document begins with.
void write_main_figures(JsonWriter& json, const GoodputReport& report) {
  json.field("schema", "stagecraft.goodput/1")
      .field("policy", report.policy)
      .field("samples_per_s", report.samples_per_s.mean)
      .field("fraction_of_ideal", report.fraction_of_ideal.mean)
      .field("ettr", report.ettr.mean);
  write_interval(json, "ci95", report.samples_per_s);
  json.field("failures", report.failures).field("restarts", report.restarts);
  json.key("buckets_s").begin_object();
  for (std::size_t b = 0; b < kBuckets; ++b) json.field(kBucketNames[b], report.buckets_s[b]);
  json.end_object();
}

}  // namespace

std::string render_json(const GoodputReport& report, const GoodputJsonOptions& options) {
  JsonWriter json;
  json.begin_object();
  write_main_figures(json, report);
  json.field("scenario", report.scenario).field("name", report.name);
  if (!report.varied.empty()) {
    json.key("vary").begin_object();
    for (const auto& [path, value] : report.varied) write_json_of_yaml(json.key(path), value);
    json.end_object();
  }
  json.field("rules", report.rules)
      .field("gpus", report.gpus)
      .field("nodes", report.nodes)
      .field("spares", report.spares)
      .field("horizon_s", report.horizon)
      .field("repeats", report.repeats)
      .field("seed", static_cast<std::int64_t>(report.seed))
      .field("iteration_time_s", report.iteration_time)
      .field("ideal_samples_per_s", report.ideal_samples_per_s);
  write_interval(json, "fraction_of_ideal_ci95", report.fraction_of_ideal);
  write_interval(json, "ettr_ci95", report.ettr);
  json.field("mean_time_to_recover_s", report.mean_time_to_recover_s)
      .field("mean_time_between_failures_s", report.mean_time_between_failures_s);
  write_causes(json, report);
  write_checkpoint(json, report);
  write_shapes(json, report);
  if (options.inputs) write_inputs(json, report);
  if (!report.plan.empty()) json.field("plan", report.plan);
  write_timeline(json, report);
  json.field("notes", report.notes);
  json.end_object();
  return json.str();
}

}  // namespace stagecraft
