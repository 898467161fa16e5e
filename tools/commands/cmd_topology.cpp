#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/simulate_parts.hpp"
#include "tools/command_line/scenarios.hpp"
#include "tools/commands/commands.hpp"
#include "tools/tables/topology_view.hpp"

namespace stagecraft {
namespace {

constexpr const char* kExample = "stagecraft topology show scenarios/gpt3-175b-1024xA100.yaml";
constexpr std::size_t kMostNamed = 20;  // degraded links

// throws ScenarioError.
void refuse_without_cluster(const Scenario& scenario) {
  Diagnostics diagnostics;
  require_cluster(scenario, diagnostics);
  diagnostics.throw_if_errors();
}

// Warns where the job has no plan on its cluster. throws ScenarioError where some GPUs do not reach others.
std::optional<ParallelPlan> plan_of(const Scenario& scenario, const Cluster& cluster,
                                    const Arguments& arguments, Session& session) {
  Diagnostics diagnostics;
  std::optional<ParallelPlan> plan = place(scenario, diagnostics);
  if (cluster.unreachable()) diagnostics.throw_if_errors();
  std::vector<Diagnostic> said = diagnostics.sorted();
  for (Diagnostic& diagnostic : said) diagnostic.severity = Severity::kWarning;
  print_warnings(said, arguments, session);
  return plan;
}

int show(const Scenario& scenario, const Arguments& arguments, Session& session) {
  refuse_without_cluster(scenario);
  const Cluster cluster(whole_cluster(scenario));
  const std::optional<ParallelPlan> plan = plan_of(scenario, cluster, arguments, session);
  std::optional<Cluster> part;
  if (scenario.fabric) part.emplace(cluster.part(scenario.network.placement));
  const TopologyView view{.scenario = scenario,
                          .cluster = cluster,
                          .job = part ? *part : cluster,
                          .plan = plan ? &*plan : nullptr};
  if (arguments.has("graphviz"))
    session.out << render_topology_dot(cluster, arguments.has("full"));
  else if (arguments.has("json"))
    session.out << render_topology_json(view) << '\n';
  else
    session.out << render_topology_text(view, wants_color(arguments, session));
  return kDone;
}

void write_health(const Scenario& scenario, const Cluster& cluster, const ClusterHealth& health,
                  std::ostream& out) {
  JsonWriter json;
  json.begin_object()
      .field("schema", "stagecraft.topology-check/1")
      .field("scenario", scenario.source)
      .field("connected", !health.unreachable)
      .field("gpus", cluster.gpu_count());
  json.key("degraded").begin_array();
  for (const DegradedLink& link : health.degraded)
    json.begin_object()
        .field("link", link.name)
        .field("bandwidth_bytes_per_s", link.capacity.count())
        .field("usual_bytes_per_s", link.usual.count())
        .end_object();
  out << json.end_array().end_object().str() << '\n';
}

int check(const Scenario& scenario, const Arguments& arguments, Session& session) {
  refuse_without_cluster(scenario);
  const Cluster cluster(whole_cluster(scenario));
  const ClusterHealth health = health_of(cluster);
  const int code = !health.unreachable ? kDone : kAnswerIsNo;
  if (arguments.has("json")) {
    write_health(scenario, cluster, health, session.out);
    return code;
  }
  if (!health.unreachable)
    session.out << fmt::format("{}: ok: {}, every one reaches every other\n", scenario.source,
                               counted_thousands(cluster.gpu_count(), "GPU"));
  else
    session.out << fmt::format("{}: no: {} does not reach {}\n", scenario.source,
                               cluster.name_of(health.unreachable->first),
                               cluster.name_of(health.unreachable->second));
  for (std::size_t i = 0; i < std::min(kMostNamed, health.degraded.size()); ++i) {
    const DegradedLink& link = health.degraded[i];
    session.out << fmt::format("  degraded: {}: {} of {}\n", link.name, human(link.capacity),
                               human(link.usual));
  }
  if (health.degraded.size() > kMostNamed)
    session.out << fmt::format("  and {} more, all of them with --json\n",
                               health.degraded.size() - kMostNamed);
  return code;
}

}  // namespace

int topology_command(const Arguments& arguments, Session& session) {
  const std::vector<std::string>& words = arguments.words();
  if (words.empty() || (words[0] != "show" && words[0] != "check"))
    throw UsageError(words.empty()
                         ? std::string("`topology` takes `show` or `check`")
                         : fmt::format("`topology` takes `show` or `check`, not {}", in_quotes(words[0])),
                     kExample);
  const bool shows = words[0] == "show";
  for (const char* option : {"graphviz", "full"})
    if (arguments.has(option) && !shows)
      throw UsageError(fmt::format("--{} is of `topology show`", option), kExample);
  if (arguments.has("full") && !arguments.has("graphviz"))
    throw UsageError("--full expands what --graphviz writes", "--graphviz --full");
  refuse_two_forms(arguments);
  return for_each_scenario({words.begin() + 1, words.end()}, arguments, session,
                           [&](const Scenario& scenario, Session& own) {
                             return shows ? show(scenario, arguments, own) : check(scenario, arguments, own);
                           },
                           {.warnings = LoadWarnings::kOnStandardError, .needs_profile = false});
}

}  // namespace stagecraft
