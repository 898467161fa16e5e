#include "sim/report/render_network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "sim/report/text_lines.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kShort = 5;  // of links, and of meetings

std::string row(const std::string& text) {
  return hanging_lines("", text);
}

// "node 0 nic 1 -> leaf 0 (x512)"
std::string name_of(const LinkReport& link) {
  return link.alike == 1 ? link.name : fmt::format("{} (x{})", link.name, with_thousands(link.alike));
}

std::string link_row(const LinkReport& link, Duration iteration) {
  return row(fmt::format("{:<38} {:>6} {:>7} {:>9}", name_of(link), percent(link.utilisation),
                         percent(share_of(link.saturated, iteration)),
                         link.delay > Duration::zero() ? human(link.delay) : "-"));
}

// Two kinds of traffic that met on several links: where they met longest.
struct Pair {
  const MeetingReport* longest = nullptr;
  int links = 0;
};

std::vector<Pair> pairs_of(const std::vector<MeetingReport>& meetings) {
  std::vector<Pair> pairs;
  for (const MeetingReport& meeting : meetings) {
    const auto known = std::ranges::find_if(pairs, [&](const Pair& pair) {
      return pair.longest->first == meeting.first && pair.longest->second == meeting.second;
    });
    if (known == pairs.end())
      pairs.push_back({.longest = &meeting, .links = 1});
    else
      ++known->links;
  }
  return pairs;
}

void write_jobs(JsonWriter& json, const NetworkReport& network) {
  json.field("alone_iteration_time_s", *network.alone_time).key("jobs").begin_array();
  for (const OtherJobReport& job : network.jobs) {
    json.begin_object().field("name", job.name).field("nodes", job.nodes);
    json.field("alone_iteration_time_s", job.alone_time).field("iterations", job.iterations);
    json.key("shared_iteration_time_s");
    job.iterations > 0 ? json.value(job.shared_time) : json.null();
    json.field("cost_s", job.cost).end_object();
  }
  json.end_array();
  if (!network.repeated) return;
  json.key("repeated").begin_object().field("iterations", network.repeated->iterations);
  json.field("mean_s", network.repeated->mean).field("least_s", network.repeated->least);
  json.field("most_s", network.repeated->most).end_object();
}

std::string job_row(const OtherJobReport& job) {
  std::string text = fmt::format("{} on {} costs {}; its own iteration {}", job.name, job.nodes,
                                 human(job.cost), human(job.alone_time));
  text +=
      job.iterations > 0 ? fmt::format(", here {}", human(job.shared_time)) : ", and none ends beside ours";
  return row(text);
}

std::string job_lines(const Report& report) {
  const NetworkReport& network = report.network;
  if (!network.alone_time) return "";
  const Duration cost = report.iteration_time - *network.alone_time;
  std::string out = headed_line(
      "other jobs", fmt::format("cost {} of the iteration ({}), alone {}", human(cost),
                                percent(share_of(cost, report.iteration_time)), human(*network.alone_time)));
  if (network.repeated)
    out += row(fmt::format("{} iterations in a row take {} on average, from {} to {}",
                           network.repeated->iterations, human(network.repeated->mean),
                           human(network.repeated->least), human(network.repeated->most)));
  for (const OtherJobReport& job : network.jobs) out += job_row(job);
  return out;
}

}  // namespace

void write_network(JsonWriter& json, const Report& report) {
  const NetworkReport& network = report.network;
  json.begin_object().field("mode", "flow").field("idle_iteration_time_s", network.idle_time);
  json.field("contention_s", report.iteration_time - network.idle_time);
  if (network.alone_time) write_jobs(json, network);
  json.key("links").begin_array();
  for (const LinkReport& link : network.links) {
    json.begin_object().field("name", link.name).field("alike", link.alike);
    json.field("capacity_bytes_per_s", link.capacity.count()).field("bytes", link.bytes);
    json.field("utilisation", link.utilisation).field("busy_s", link.busy);
    json.field("saturated_s", link.saturated).field("delay_s", link.delay).end_object();
  }
  json.end_array().key("meetings").begin_array();
  for (const MeetingReport& meeting : network.meetings) {
    json.begin_object().field("link", meeting.link);
    json.field("first", meeting.first).field("second", meeting.second);
    json.field("time_s", meeting.time).end_object();
  }
  json.end_array().end_object();
}

std::string network_lines(const Report& report, bool verbose) {
  const NetworkReport& network = report.network;
  if (!network.shared) return "";
  const Duration cost = report.iteration_time - network.idle_time;
  std::string out =
      headed_line("network", fmt::format("shared links cost {} of the iteration ({})", human(cost),
                                         percent(share_of(cost, report.iteration_time))));
  const auto most = [&](std::size_t count) { return verbose ? count : std::min(count, kShort); };
  if (!network.links.empty())
    out += row(fmt::format("{:<38} {:>6} {:>7} {:>9}", "link", "used", "full", "delay"));
  for (std::size_t i = 0; i < most(network.links.size()); ++i)
    out += link_row(network.links[i], report.iteration_time);
  // Above the iteration where many wait at once.
  if (!network.links.empty() && network.links.front().delay > Duration::zero())
    out += row("(delay: summed over the transfers that the link held up)");
  const std::vector<Pair> pairs = pairs_of(network.meetings);
  for (std::size_t i = 0; i < most(pairs.size()); ++i) {
    const MeetingReport& longest = *pairs[i].longest;
    out += row(fmt::format("{} meets {}: {}", longest.first, longest.second, human(longest.time)));
    if (verbose) out += row(fmt::format("  on {}, the longest of {}", longest.link, pairs[i].links));
  }
  out += job_lines(report);
  return out;
}

}  // namespace stagecraft
