#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "sim/lower/task_names.hpp"
#include "sim/report/measure.hpp"

namespace stagecraft {
namespace {

// The report calls passes by a word.
std::string word_of(const Label& label) {
  const std::optional<Pass> pass = pass_of(label);
  return pass ? std::string(word_of(*pass)) : label.name;
}

std::vector<MeetingReport> meetings_of(const Program& program, const Timeline& timeline) {
  std::map<std::tuple<LinkId, std::string, std::string>, Duration> sum;
  for (const Meeting& meeting : timeline.meetings) {
    std::string first = word_of(program.labels[meeting.first]),
                second = word_of(program.labels[meeting.second]);
    if (second < first) std::swap(first, second);
    sum[{meeting.link, std::move(first), std::move(second)}] += meeting.time;
  }
  std::vector<MeetingReport> meetings;
  for (const auto& [key, time] : sum) {
    const auto& [link, first, second] = key;
    meetings.push_back({.link = program.links[link].name, .first = first, .second = second, .time = time});
  }
  std::ranges::stable_sort(meetings, std::ranges::greater(), &MeetingReport::time);
  return meetings;
}

}  // namespace

NetworkReport measure_network(const Program& program, const Timeline& timeline, std::span<const int> alike,
                              Duration idle_time) {
  SC_CHECK(alike.size() == program.links.size() && timeline.links.size() == program.links.size(),
           "every link of the program stands for some");
  NetworkReport report;
  report.shared = true;
  report.idle_time = idle_time;
  const double seconds = to_seconds(timeline.makespan);
  for (std::uint32_t i = 0; i < alike.size(); ++i) {
    const SharedLink& link = program.links[LinkId(i)];
    const LinkUsage& usage = timeline.links[LinkId(i)];
    const double most = link.capacity.count() * seconds;
    report.links.push_back({.name = link.name,
                            .alike = alike[i],
                            .capacity = link.capacity,
                            .bytes = usage.bytes,
                            .utilisation = most > 0 ? usage.bytes / most : 0,
                            .busy = usage.busy,
                            .saturated = usage.saturated,
                            .delay = usage.delay});
  }
  std::ranges::stable_sort(report.links, [](const LinkReport& a, const LinkReport& b) {
    return std::pair(a.delay, a.utilisation) > std::pair(b.delay, b.utilisation);
  });
  report.meetings = meetings_of(program, timeline);
  return report;
}

}  // namespace stagecraft
