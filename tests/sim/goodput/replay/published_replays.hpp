// The files of published replays as values for the tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "base/text_file.hpp"
#include "sim/goodput/replay/bamboo.hpp"
#include "sim/goodput/replay/oobleck_varuna.hpp"
#include "sim/goodput/trace_file.hpp"
#include "tests/published_data.hpp"

namespace stagecraft::published {

inline Duration seconds(const YamlNode& node) {
  return from_seconds(number(node));
}

inline const YamlNode& named(const YamlNode& list, std::string_view name) {
  for (const YamlNode& item : list.items)
    if (at(item, "name").text == name) return item;
  SC_CHECK(false, "a published table lacks a name");
  return list;
}

inline Trace trace(const std::string& name) {
  const std::string file = STAGECRAFT_SOURCE_DIR "/scenarios/traces/" + name + ".csv";
  Diagnostics diagnostics;
  const std::optional<std::string> text = load_text_file(file, diagnostics);
  SC_CHECK(text.has_value(), "a trace is missing");
  std::optional<Trace> trace = parse_trace(*text, file, diagnostics);
  SC_CHECK(trace.has_value(), "a trace cannot be read");
  return *std::move(trace);
}

inline std::vector<NodeChange> changes_of(const Trace& trace, Duration creation) {
  SC_CHECK(trace.form == TraceForm::kEvents, "a replay wants nodes that come and go");
  std::vector<NodeChange> changes;
  for (const TraceRow& row : trace.rows)
    changes.push_back({.time = row.time,
                       .joins = row.event == TraceEvent::kAdd,
                       .node = row.node,
                       .ready = row.time + creation});
  return changes;
}

// The small cases of the results file: nodes a, b, c, … join at 0, then the events of the case; usable 45 s
// later.
inline std::vector<NodeChange> hand_made_changes(const YamlNode& events, int initial_nodes) {
  const Duration creation = std::chrono::seconds(45);
  std::vector<NodeChange> changes;
  for (int node = 0; node < initial_nodes; ++node) changes.push_back({.node = node, .ready = creation});
  for (const YamlNode& event : events.items) {
    const Duration time = seconds(event.items[0]);
    changes.push_back({.time = time,
                       .joins = event.items[1].text == "add",
                       .node = event.items[2].text.at(0) - 'a',
                       .ready = time + creation});
  }
  return changes;
}

inline std::vector<Duration> step_ends(const YamlNode& list) {
  std::vector<Duration> ends;
  for (const YamlNode& item : list.items) ends.push_back(seconds(item));
  return ends;
}

inline std::vector<Duration> step_ends(const Replay& replay) {
  std::vector<Duration> ends;
  for (const ReplayStep& step : replay.steps) ends.push_back(step.end);
  return ends;
}

// Mean rate from the first training to the end of the last completed step (published: a dead tail is free) or
// to the end of the replay (corrected). 0 without training.
inline double samples_per_second(const Replay& replay, Rules rules, std::int64_t samples_per_step) {
  if (!replay.start) return 0;
  const Duration last = replay.steps.empty() ? Duration{} : replay.steps.back().end;
  const Duration end = rules == Rules::kPublished ? last : replay.end;
  if (end <= *replay.start) return 0;
  return static_cast<double>(replay.kept_steps() * samples_per_step) / to_seconds(end - *replay.start);
}

// The values of the files carry six decimals.
inline void expect_published(double value, double expected) {
  EXPECT_NEAR(value, expected, 1e-6 * expected);
}

}  // namespace stagecraft::published
