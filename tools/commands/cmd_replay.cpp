#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "sim/engine/engine.hpp"
#include "sim/view/chakra.hpp"
#include "tools/command_line/files.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"

namespace stagecraft {
namespace {

ChakraNetwork network_of(const Arguments& arguments) {
  ChakraNetwork network{.link = {}, .latency = arguments.duration("latency", Duration::zero())};
  if (const auto text = arguments.text("link")) {
    const std::optional<Bandwidth> rate = parse_bandwidth(*text);
    if (!rate || *rate <= Bandwidth(0))
      throw UsageError(fmt::format("--link {}: is no bandwidth", *text), "--link 50GB/s, --link 400Gb/s");
    network.link = *rate;
  } else if (arguments.has("latency")) {
    throw UsageError("--latency is of messages over --link", "add --link, or leave --latency out");
  }
  return network;
}

// Compute time of each rank.
std::vector<Duration> work_of(const Program& program, const Timeline& timeline) {
  std::vector<Duration> work;
  for (std::uint32_t r = 0; r < program.resources.size(); ++r) {
    const Resource& resource = program.resources[ResourceId(r)];
    if (resource.kind != ResourceKind::kStream) continue;
    work.emplace_back();
    for (std::uint32_t t = program.resource_begin[r]; t < program.resource_begin[r + 1]; ++t)
      work.back() += timeline.end[TaskId(t)] - timeline.start[TaskId(t)];
  }
  return work;
}

std::string in_json(const Program& program, const Timeline& timeline, const std::vector<Duration>& work) {
  JsonWriter json;
  json.begin_object().field("schema", "stagecraft.replay/1").field("makespan_s", timeline.makespan);
  json.field("tasks", program.task_count()).field("ranks", work.size()).field("busy_s", work).end_object();
  return json.str() + "\n";
}

std::string in_words(const Program& program, const Timeline& timeline, const std::vector<Duration>& work) {
  Duration all{};
  for (const Duration busy : work) all += busy;
  const Duration most = *std::max_element(work.begin(), work.end());
  const double of_ranks =
      to_seconds(all) / (to_seconds(timeline.makespan) * static_cast<double>(work.size()));
  std::string out = fmt::format("makespan         {}\n", human(timeline.makespan));
  if (timeline.makespan > Duration::zero())
    out +=
        fmt::format("busiest rank     {}   ranks compute {} of the time\n", human(most), percent(of_ranks));
  return out + fmt::format("simulated        {} on {}\n",
                           counted_thousands(static_cast<std::int64_t>(program.task_count()), "node"),
                           counted(std::ssize(work), "rank"));
}

}  // namespace

int replay_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string>& words = arguments.words();
  if (words.empty()) throw UsageError("no trace is named", "one file for each rank, in their order");
  Diagnostics diagnostics;
  std::vector<ChakraFile> files;
  for (const std::string& name : words)
    if (auto bytes = read_text_file(name, diagnostics))
      files.push_back({.name = name, .bytes = *std::move(bytes)});
  std::optional<Program> program;
  if (!diagnostics.has_errors()) program = chakra_program(files, network_of(arguments), diagnostics);
  if (!program) {
    print_diagnostics(diagnostics.sorted(), arguments, session, kNothingSimulated);
    return kWrongInput;
  }
  const Timeline timeline = run(*program);
  const std::vector<Duration> work = work_of(*program, timeline);
  session.out << (arguments.has("json") ? in_json(*program, timeline, work)
                                        : in_words(*program, timeline, work));
  return kDone;
}

}  // namespace stagecraft
