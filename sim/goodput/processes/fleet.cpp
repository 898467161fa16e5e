#include "sim/goodput/processes/fleet.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/processes/laws.hpp"

namespace stagecraft {

namespace {

// At equal times additions precede removals, so a node with an instant repair would return before it left.
constexpr Duration kShortestRepair{1};

}  // namespace

Fleet::Fleet(const FailureSpec& spec, const FleetSize& size, const RepeatKey& key)
    : spec_(spec), key_(key), spares_(size.spares) {
  const int nodes = size.nodes;
  SC_CHECK(nodes >= 1, "a cluster has nodes");
  const bool empty = std::ranges::any_of(
      spec.processes, [](const FailureProcess& process) { return says_who_is_there(process.law); });
  states_.assign(as_index(nodes), NodeState{});
  for (NodeState& state : states_) state.absent = empty;
  up_count_ = empty ? 0 : nodes;
  history_.nodes = nodes;
  history_.all_up_at_start = !empty;
  name_causes();
  for (int i = 0; i < static_cast<int>(spec.processes.size()); ++i)
    processes_.push_back(make_process(spec, i, *this));
}

// A cause that two processes share is one cause of the job.
void Fleet::name_causes() {
  for (const FailureProcess& process : spec_.processes) {
    SC_CHECK(!process.causes.empty(), "a failure has a cause");
    std::vector<std::int32_t>& numbers = cause_numbers_.emplace_back();
    for (const Cause& cause : process.causes) {
      const auto known = std::ranges::find(history_.causes, cause.name);
      numbers.push_back(static_cast<std::int32_t>(known - history_.causes.begin()));
      if (known == history_.causes.end()) history_.causes.push_back(cause.name);
    }
  }
}

const Cause& Fleet::cause(int process, int cause) const {
  return spec_.processes[as_index(process)].causes[as_index(cause)];
}

IncidentKind Fleet::kind_of(int process, int number) const {
  return cause(process, number).severity == FailureSeverity::kNode ? IncidentKind::kRemove
                                                                   : IncidentKind::kFault;
}

// Drawn again until an up node is met: two nodes out of a hundred are down at a time.
int Fleet::choose_up(Stream& stream) const {
  SC_CHECK(up_count_ > 0, "somebody is up");
  for (;;) {
    const int node = stream.below(nodes());
    if (up(node)) return node;
  }
}

StreamKey Fleet::key(int process) const {
  return {.seed = key_.seed, .repeat = key_.repeat, .process = static_cast<std::uint16_t>(process)};
}

Stream Fleet::stream(int process, std::uint32_t entity, Purpose purpose, std::uint32_t first_draw) const {
  StreamKey of = key(process);
  of.entity = entity;
  of.purpose = purpose;
  return Stream(of, first_draw);
}

int Fleet::choose_cause(int process, std::uint32_t entity, std::uint32_t number) const {
  const std::vector<Cause>& causes = spec_.processes[as_index(process)].causes;
  const int last = static_cast<int>(causes.size()) - 1;
  if (last == 0) return 0;
  double rest = stream(process, entity, Purpose::kCause, number).uniform();
  for (int i = 0; i < last; ++i) {
    rest -= causes[as_index(i)].share;
    if (rest < 0) return i;
  }
  return last;
}

void Fleet::schedule(const Event& event) {
  if (event.time < spec_.horizon) agenda_.push(event);
}

Incident Fleet::incident_of(const Failure& failure, IncidentKind kind) const {
  const auto process = as_index(failure.process), number = as_index(failure.cause);
  const bool announced = is_announced(spec_.processes[process].law);
  return {
      .time = failure.time,
      .kind = kind,
      .id = failure.id,
      .node = failure.node,
      .cause = cause_numbers_[process][number],
      .detect = announced ? Duration(0) : spec_.detect.value_or(cause(failure.process, failure.cause).detect),
      .due = failure.time,
      .onset = failure.time};
}

// nullopt: never.
std::optional<Duration> Fleet::repair_time(const Failure& failure) const {
  const std::optional<RepairSpec>& own = cause(failure.process, failure.cause).repair;
  const RepairSpec& repair = own ? *own : spec_.repair;
  if (repair.kind == RepairKind::kNone) return std::nullopt;
  if (repair.kind == RepairKind::kConstant) return std::max(repair.time, kShortestRepair);
  SC_CHECK(!repair.times.empty(), "an empirical law has samples");
  Stream draws = stream(failure.process, failure.entity, Purpose::kRepair, failure.number);
  const int chosen = draws.below(static_cast<int>(repair.times.size()));
  return std::max(repair.times[as_index(chosen)], kShortestRepair);
}

void Fleet::count_incident(int node, Duration now) {
  ++state(node).incidents;
  for (const auto& process : processes_) process->failed(node, now);
}

void Fleet::fail(const Failure& failure) {
  SC_CHECK(up(failure.node), "an up node fails");
  if (kind_of(failure.process, failure.cause) == IncidentKind::kFault) {
    history_.incidents.push_back(incident_of(failure, IncidentKind::kFault));
    return count_incident(failure.node, failure.time);
  }
  const std::optional<Duration> repair = repair_time(failure);
  const std::uint32_t life = break_down(failure);
  count_incident(failure.node, failure.time);
  if (!repair || *repair >= horizon() - failure.time) return;
  schedule({.time = failure.time + *repair,
            .kind = IncidentKind::kAdd,
            .id = failure.node,
            .process = kRepairShop,
            .node = failure.node,
            .number = life});
}

void Fleet::went_down(const Failure& failure) {
  history_.incidents.push_back(incident_of(failure, IncidentKind::kRemove));
  state(failure.node).slow.clear();
  --up_count_;
}

void Fleet::came_up(int node, Duration now, std::int32_t id, Duration due) {
  history_.incidents.push_back(
      {.time = now, .kind = IncidentKind::kAdd, .id = id, .node = node, .due = due, .onset = now});
  ++up_count_;
  for (const auto& process : processes_) process->back(node, now);
}

std::uint32_t Fleet::break_down(const Failure& failure) {
  NodeState& broken = state(failure.node);
  if (broken.up()) went_down(failure);
  ++broken.broken;
  return broken.life;
}

void Fleet::mend(const Event& event, std::uint32_t life) {
  NodeState& mended = state(event.node);
  if (mended.life != life) return;
  SC_CHECK(mended.broken > 0, "what is mended was broken");
  --mended.broken;
  if (mended.up()) came_up(event.node, event.time, event.id, event.time);
}

void Fleet::join(int node, Duration now, std::int32_t id, Duration due) {
  SC_CHECK(absent(node), "who joins was not there");
  state(node).absent = false;
  if (up(node)) came_up(node, now, id, due);
}

void Fleet::leave(const Failure& failure) {
  NodeState& gone = state(failure.node);
  SC_CHECK(!gone.absent, "who leaves was there");
  if (gone.up()) went_down(failure);
  gone.absent = true;
  gone.broken = 0;
  gone.incidents = 0;
  ++gone.life;
}

void Fleet::slow(int process, const Event& event, SlowPart part, double factor) {
  std::vector<Slowness>& slow = state(event.node).slow;
  std::erase_if(slow, [&](const Slowness& one) { return one.process == process; });
  if (factor > 1) slow.push_back({.process = process, .part = part, .factor = factor});
  double slowest = 1;
  for (const Slowness& one : slow)
    if (one.part == part) slowest = std::max(slowest, one.factor);
  const Failure failure{.time = event.time, .process = process, .node = event.node, .id = event.id};
  Incident incident = incident_of(failure, slowest > 1 ? IncidentKind::kSlow : IncidentKind::kNormal);
  incident.part = part;
  incident.factor = slowest;
  history_.incidents.push_back(incident);
}

void Fleet::corrupt(const Failure& failure, Duration onset) {
  Incident incident = incident_of(failure, IncidentKind::kCorruption);
  incident.onset = onset;
  history_.incidents.push_back(incident);
}

void Fleet::announce(const Failure& failure, Duration due) {
  Incident incident = incident_of(failure, IncidentKind::kAnnounced);
  incident.due = due;
  history_.incidents.push_back(incident);
}

History Fleet::run() {
  for (const auto& process : processes_) {
    process->start();
    for (int node = 0; node < nodes(); ++node)
      if (up(node)) process->back(node, Duration(0));
  }
  while (!agenda_.empty()) {
    const Event event = agenda_.top();
    agenda_.pop();
    if (event.process != kRepairShop)
      processes_[as_index(event.process)]->fire(event);
    else
      mend(event, event.number);
  }
  const auto order = [](const Incident& i) { return std::tuple(i.time, i.kind, i.id); };
  std::ranges::stable_sort(history_.incidents, {}, order);
  return std::move(history_);
}

}  // namespace stagecraft
