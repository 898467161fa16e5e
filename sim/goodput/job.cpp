#include "sim/goodput/job.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "sim/goodput/checkpoint_store.hpp"
#include "sim/goodput/machines.hpp"
#include "sim/goodput/never.hpp"

namespace stagecraft {
namespace {

__extension__ using Wide = __int128;  // samples × nanoseconds pass 2^63

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

bool has_corruption(const History& history) {
  return std::ranges::any_of(
      history.incidents, [](const Incident& incident) { return incident.kind == IncidentKind::kCorruption; });
}

class Job {
 public:
  Job(const JobSpec& spec, const History& history, Policy& policy)
      : spec_(spec),
        history_(history),
        policy_(policy),
        machines_(history.nodes, history.all_up_at_start),
        store_(spec.checkpointing, has_corruption(history)),
        place_(as_index(history.nodes), -1),
        trained_until_(as_index(history.nodes), Duration::min()) {
    account_.horizon = spec.horizon;
    account_.causes.resize(history.causes.size());
  }

  Account run();

 private:
  enum class State : std::uint8_t {
    kTraining,
    kCheckpoint,
    kWaiting,    // for an announced removal
    kDetecting,  // a failure that ends in a plan
    kHanging,    // training or a stall, which go on without the lost once the job knows
    kChanging,
    kStopped,
  };
  // An announced removal.
  struct Removal {
    Duration due{};
    int node = 0;
  };
  // Next state after a checkpoint.
  enum class Then : std::uint8_t { kTrain, kWait, kPlan };

  // Time passes.
  void spend(Phase phase, Duration time);
  void draw(Phase phase, Duration time);
  [[nodiscard]] int training_nodes() const;
  void train(Duration until, bool inclusive);
  void pass(Duration until);
  void commit(std::int64_t steps);
  void persisted();
  void close();

  // Handlers of events.
  void hear(const Incident& incident);
  [[nodiscard]] bool corrupts(const Incident& incident) const;
  void halt(const Incident& incident, const Response& response);
  void stand_still(const Incident& incident, Duration detect);
  void hang();
  void blame(const Incident& incident);
  void count_failure(const Incident& incident);
  [[nodiscard]] CauseAccount& blamed() { return account_.causes[as_index(cause_)]; }
  void ask_soon(const Response& response);

  // Transitions of the job.
  void leave_state();
  void at_step_end();
  void make_plan(Occasion occasion);
  void put_in_force(StepPlan step);
  void go_back(const CheckpointStore::Source& source);
  void begin_part();
  void begin_training();
  void go_on();
  void begin_checkpoint(Then then);
  [[nodiscard]] bool is_on_demand() const { return then_ != Then::kTrain; }
  void finish_checkpoint();
  void enter(State state, Duration end) { state_ = state, state_end_ = end; }
  void check(const StepPlan& step) const;

  // Number of steps until an action is due at a step end.
  [[nodiscard]] std::int64_t steps_to_action(Duration first_end) const;
  [[nodiscard]] std::int64_t steps_to_checkpoint() const;
  [[nodiscard]] std::optional<Duration> next_removal() const;  // of a node that the job uses
  [[nodiscard]] bool room_before_removal() const;

  [[nodiscard]] double slowed() const;
  [[nodiscard]] double stretch() const;
  void set_speed();
  [[nodiscard]] Phase phase() const;
  [[nodiscard]] bool persisting() const { return persist_end_ != kNever; }

  const JobSpec& spec_;
  const History& history_;
  Policy& policy_;
  Machines machines_;
  CheckpointStore store_;
  Account account_;

  Duration now_{};
  std::size_t heard_ = 0;  // incidents
  State state_ = State::kStopped;
  Duration state_end_ = kNever;

  // The plan in force, and the one that a stall leads to.
  StepPlan step_;
  std::vector<int> place_;  // place in the plan, by node; -1: none
  // By node: the end of the steps that it has trained and that count, if any; kNever: it is in the plan in
  // force.
  std::vector<Duration> trained_until_;
  std::array<Duration, 3> parts_{};  // of a stall: wait, reconfigure, state transfer
  std::size_t part_ = 0;
  std::optional<Duration> review_after_;
  Duration review_at_ = kNever;
  double policy_factor_ = 1;

  // The step in flight: time spent, time left; duration of a whole step.
  Duration spent_{}, left_{}, whole_{};
  double stretch_ = 1;
  Progress progress_;

  // Checkpoints.
  Duration work_since_{};  // work done since the last snapshot for storage
  std::int64_t steps_since_ = 0;
  Progress snapshot_, persist_;
  Duration persist_end_ = kNever;
  Then then_ = Then::kTrain;
  Duration awaited_removal_{};  // until which the job waits in kWaiting
  // Announced, by time: a checkpoint is to be usable before each that hits the job.
  std::vector<Removal> removals_;

  bool plan_soon_ = false;             // asked for at the next step end
  Duration checkpoint_from_ = kNever;  // then at the next step end, with a plan behind it

  // Lost nodes that the job goes on without, and the time from which it knows.
  Duration known_at_{};
  const Incident* waited_for_ = nullptr;

  // The failure that the job suffers from.
  std::optional<Duration> down_since_;
  std::optional<Duration> corrupted_since_;
  std::int32_t cause_ = -1, node_ = -1;
  const Incident* borne_ = nullptr;  // the first loss that training went on with, until it stops for it
};

Account Job::run() {
  const auto& incidents = history_.incidents;
  const auto at_start = [](const Incident& incident) {
    return incident.time == Duration::zero() &&
           (incident.kind == IncidentKind::kAdd || incident.kind == IncidentKind::kRemove);
  };
  while (heard_ < incidents.size() && at_start(incidents[heard_])) machines_.apply(incidents[heard_++]);
  make_plan(Occasion::kStart);
  while (true) {
    while (heard_ < incidents.size() && incidents[heard_].time <= now_) hear(incidents[heard_++]);
    if (now_ >= spec_.horizon) break;
    // Nodes that arrive at the same time cause one plan.
    if (plan_soon_ && (state_ == State::kStopped || state_ == State::kChanging))
      make_plan(Occasion::kStepEnd);
    const bool last = heard_ == incidents.size() || incidents[heard_].time >= spec_.horizon;
    Duration until = last ? spec_.horizon : incidents[heard_].time;
    // A step that ends with a persist or with the horizon counts; one that ends with an incident waits for
    // it.
    const bool persist_first = persisting() && persist_end_ < until;
    if (persist_first) until = persist_end_;
    if (state_ == State::kTraining)
      train(until, persist_first || last);
    else
      pass(until);
    if (persisting() && persist_end_ == now_ && (persist_first || last)) persisted();
  }
  close();
  return std::move(account_);
}

Phase Job::phase() const {
  switch (state_) {
    case State::kTraining:
      return Phase::kTraining;
    case State::kCheckpoint:
      return Phase::kCheckpoint;
    case State::kDetecting:
    case State::kHanging:
      return Phase::kDetect;
    case State::kChanging:
      return part_ == 0 ? Phase::kIdle : part_ == 1 ? Phase::kReconfigure : Phase::kStateTransfer;
    case State::kWaiting:
    case State::kStopped:
      return Phase::kIdle;
  }
  SC_CHECK(false, "a state has a phase");
}

// A lost node whose work another has taken over does not train, although the plan names it.
int Job::training_nodes() const {
  return static_cast<int>(std::ranges::count_if(step_.nodes, [&](int node) { return machines_.up(node); }));
}

// Training enters no bucket yet: only later it is known whether it counts.
void Job::spend(Phase phase, Duration time) {
  if (time == Duration::zero()) return;
  if (phase != Phase::kTraining) {
    account_[bucket_of(phase)] += time;
    if (down_since_) blamed().down += time;
  }
  now_ += time;
  if (spec_.timeline) draw(phase, time);
}

// Appends the time before now to the timeline.
void Job::draw(Phase phase, Duration time) {
  const bool failed = down_since_.has_value();
  const TimelineRow row = {.phase = phase,
                           .start = now_ - time,
                           .end = now_,
                           .nodes = phase == Phase::kTraining ? training_nodes() : machines_.up_count(),
                           .samples = progress_.samples,
                           .cause = failed ? cause_ : -1,
                           .node = failed ? node_ : -1};
  auto& rows = account_.timeline;
  if (!rows.empty() && rows.back().phase == phase && rows.back().nodes == row.nodes &&
      rows.back().cause == row.cause && rows.back().node == row.node)
    rows.back().end = now_;
  else
    rows.push_back(row);
}

// Advances whole steps arithmetically while no action is due at a step end.
void Job::train(Duration until, bool inclusive) {
  while (state_ == State::kTraining) {
    const Duration first_end = now_ + left_;
    if (inclusive ? first_end > until : first_end >= until) {
      const Duration part = until - now_;
      spend(Phase::kTraining, part);
      spent_ += part;
      left_ -= part;
      return;
    }
    const Duration room = until - first_end - Duration(inclusive ? 0 : 1);
    commit(std::min(1 + room / whole_, steps_to_action(first_end)));
    at_step_end();
  }
}

void Job::commit(std::int64_t steps) {
  const Duration wall = left_ + (steps - 1) * whole_;
  progress_.steps += steps;
  progress_.samples += steps * step_.samples;
  progress_.trained += spent_ + wall;
  work_since_ += spent_ + wall;
  steps_since_ += steps;
  spend(Phase::kTraining, wall);
  if (spec_.timeline && !account_.timeline.empty()) account_.timeline.back().samples = progress_.samples;
  progress_.at = now_;
  spent_ = {};
  left_ = whole_;
  store_.trained(progress_, steps, step_.samples, whole_);
}

// A state that ends with an incident waits for it.
void Job::pass(Duration until) {
  spend(phase(), std::min(state_end_, until) - now_);
  if (state_end_ < until) leave_state();
}

void Job::leave_state() {
  switch (state_) {
    case State::kCheckpoint:
      return finish_checkpoint();
    case State::kWaiting:  // the announced removal has not come
      return go_on();
    case State::kDetecting:
      return make_plan(Occasion::kFailure);
    case State::kHanging:
      return part_ < parts_.size() ? make_plan(Occasion::kStepEnd) : go_on();
    case State::kChanging:
      ++part_;
      return begin_part();
    case State::kTraining:
    case State::kStopped:
      break;
  }
  SC_CHECK(false, "training and stopping end by what happens, not by the clock");
}

void Job::hear(const Incident& incident) {
  SC_CHECK(incident.time == now_, "incidents come in order of time, from 0");
  machines_.apply(incident);
  Response response = policy_.on(incident, machines_);
  if (response.answer != Answer::kHalt && corrupts(incident)) response = {.answer = Answer::kHalt};
  set_speed();
  const bool borne = response.answer != Answer::kNothing && response.answer != Answer::kHalt;
  if (borne && is_loss(incident) && state_ != State::kDetecting && borne_ == nullptr) borne_ = &incident;
  switch (response.answer) {
    case Answer::kNothing:
      return;
    case Answer::kHalt:
      return halt(incident, response);
    case Answer::kAtStepEnd:
    case Answer::kCheckpointAndPlan:
      ask_soon(response);
      [[fallthrough]];
    case Answer::kSlowDown:
      if (response.factor) policy_factor_ = *response.factor;
      if (response.detect) stand_still(incident, *response.detect);
      return set_speed();
    case Answer::kCheckpoint:
      removals_.push_back({.due = incident.due, .node = incident.node});
      std::ranges::stable_sort(removals_, {}, &Removal::due);
      return;
  }
}

// Do steps count that the node has trained since the onset? It may have left since, and the job may be stopped.
bool Job::corrupts(const Incident& incident) const {
  return incident.kind == IncidentKind::kCorruption &&
         trained_until_[as_index(incident.node)] > incident.onset;
}

void Job::halt(const Incident& incident, const Response& response) {
  if (incident.kind == IncidentKind::kCorruption)
    corrupted_since_ = std::min(incident.onset, corrupted_since_.value_or(kNever));
  if (state_ == State::kDetecting) return;  // the plan after it is made for both
  count_failure(incident);
  blamed().lost_work += spent_;
  account_[Bucket::kLostWork] += spent_;
  spent_ = {};
  persist_end_ = kNever;
  plan_soon_ = false;
  checkpoint_from_ = kNever;
  enter(State::kDetecting, now_ + response.detect.value_or(incident.detect));
}

// Everybody waits for a lost node until the job knows; the step in flight is kept.
void Job::stand_still(const Incident& incident, Duration detect) {
  if (detect == Duration::zero() || state_ == State::kDetecting || state_ == State::kStopped) return;
  known_at_ = std::max(known_at_, now_ + detect);
  waited_for_ = &incident;
  if (state_ != State::kCheckpoint && state_ != State::kWaiting) hang();
}

void Job::hang() {
  if (state_ != State::kHanging) blame(*waited_for_);
  enter(State::kHanging, known_at_);
}

void Job::blame(const Incident& incident) {
  SC_CHECK(incident.cause >= 0 && as_index(incident.cause) < account_.causes.size(),
           "a failure has a cause that the history names");
  cause_ = incident.cause;
  node_ = incident.node;
  if (!down_since_) down_since_ = now_;
}

// The job stops for it.
void Job::count_failure(const Incident& incident) {
  blame(incident);
  ++account_.failures;
  ++blamed().failures;
  borne_ = nullptr;
}

void Job::ask_soon(const Response& response) {
  if (state_ == State::kDetecting) return;
  const bool stands = state_ == State::kChanging || state_ == State::kStopped;  // nothing to checkpoint
  if (response.answer == Answer::kAtStepEnd || stands)
    plan_soon_ = true;
  else
    checkpoint_from_ = std::min(checkpoint_from_, response.not_before);
}

void Job::at_step_end() {
  std::erase_if(removals_, [&](const Removal& removal) { return removal.due <= now_; });
  if (now_ >= checkpoint_from_) {
    checkpoint_from_ = kNever;
    return spec_.checkpointing ? begin_checkpoint(Then::kPlan) : make_plan(Occasion::kCheckpointed);
  }
  if (plan_soon_) return make_plan(Occasion::kStepEnd);
  if (now_ >= review_at_) return make_plan(Occasion::kReview);
  if (!spec_.checkpointing) return;
  if (const std::optional<Duration> removal = next_removal()) {
    const Duration end = now_ + spec_.checkpointing->on_demand();
    if (end < *removal && end + whole_ >= *removal) {
      awaited_removal_ = *removal;
      return begin_checkpoint(Then::kWait);
    }
    if (end >= *removal)  // too late
      std::erase_if(removals_, [&](const Removal& announced) { return announced.due <= *removal; });
  }
  if (!persisting() && steps_to_checkpoint() == 0 && room_before_removal()) begin_checkpoint(Then::kTrain);
}

std::optional<Duration> Job::next_removal() const {
  const auto hit =
      std::ranges::find_if(removals_, [&](const Removal& removal) { return policy_.uses(removal.node); });
  return hit == removals_.end() ? std::nullopt : std::optional(hit->due);
}

// Does a regular checkpoint, a step and the checkpoint on demand end before the removal?
bool Job::room_before_removal() const {
  const Checkpointing& how = *spec_.checkpointing;
  const std::optional<Duration> removal = next_removal();
  return !removal || now_ + how.block + whole_ + how.on_demand() < *removal;
}

std::int64_t Job::steps_to_action(Duration first_end) const {
  if (plan_soon_) return 1;
  std::int64_t steps = kUnlimited;
  if (const Duration next = std::min(review_at_, checkpoint_from_); next != kNever)
    steps = next <= first_end ? 1 : 1 + (next - first_end + whole_ - Duration(1)) / whole_;
  if (!spec_.checkpointing) return steps;
  if (const std::optional<Duration> removal = next_removal()) {
    const Duration last_start = *removal - spec_.checkpointing->on_demand() - Duration(1);
    steps = std::min(steps, last_start <= first_end ? 1 : 1 + (last_start - first_end) / whole_);
  }
  // While a persist runs, the time until it ends bounds the steps.
  if (!persisting()) steps = std::min(steps, std::max<std::int64_t>(1, steps_to_checkpoint()));
  return steps;
}

// Rounded to the nearest whole number of steps as long as the present one; 0: due.
std::int64_t Job::steps_to_checkpoint() const {
  const Checkpointing& how = *spec_.checkpointing;
  if (how.interval == Duration::zero()) {
    if (how.every_steps == 0) return kUnlimited;  // on demand only
    return std::max<std::int64_t>(0, how.every_steps - steps_since_);
  }
  if (how.interval > spec_.horizon) return kUnlimited;
  return std::max<std::int64_t>(0, (2 * (how.interval - work_since_) + whole_) / (2 * whole_));
}

void Job::begin_checkpoint(Then then) {
  const Checkpointing& how = *spec_.checkpointing;
  snapshot_ = progress_;
  snapshot_.at = now_;
  steps_since_ = 0;
  then_ = then;
  work_since_ = is_on_demand() ? Duration{} : -how.slowed_by();
  enter(State::kCheckpoint, now_ + (is_on_demand() ? how.on_demand() : how.block));
}

void Job::finish_checkpoint() {
  const Checkpointing& how = *spec_.checkpointing;
  if (is_on_demand() || how.mode == CheckpointMode::kSync || how.persist == Duration::zero()) {
    persist_end_ = kNever;  // an older one on its way is of no use any more
    store_.written(snapshot_);
    ++account_.checkpoints;
  } else {
    persist_ = snapshot_;
    persist_end_ = now_ + how.persist;
  }
  if (then_ == Then::kPlan) return make_plan(Occasion::kCheckpointed);
  if (then_ == Then::kWait)
    enter(State::kWaiting, awaited_removal_);
  else
    go_on();
  set_speed();
}

void Job::persisted() {
  persist_end_ = kNever;
  store_.written(persist_);
  ++account_.checkpoints;
  set_speed();
}

void Job::make_plan(Occasion occasion) {
  const CheckpointStore::Source source = store_.source(machines_, corrupted_since_);
  const Situation situation = {.occasion = occasion,
                               .now = now_,
                               .machines = machines_,
                               .load = source.load,
                               .corrupted = corrupted_since_.has_value()};
  Plan plan = policy_.plan(situation);
  policy_factor_ = 1;
  const bool stops = !plan.step || plan.stall.total() > Duration::zero() || state_ == State::kHanging;
  if (stops && borne_ != nullptr) count_failure(*borne_);
  if (plan.undo == Undo::kToCheckpoint || corrupted_since_) go_back(source);
  plan_soon_ = false;
  checkpoint_from_ = kNever;
  known_at_ = {};
  if (occasion != Occasion::kStart && !down_since_) ++account_.changes;
  for (Duration& trained : trained_until_) trained = std::min(trained, progress_.at);
  if (!plan.step) return enter(State::kStopped, kNever);
  check(*plan.step);
  corrupted_since_.reset();  // a job that stops first loads a checkpoint when it goes on
  put_in_force(*std::move(plan.step));
  review_after_ = plan.review;
  parts_ = {plan.stall.wait, plan.stall.reconfigure, plan.stall.state_transfer};
  part_ = 0;
  begin_part();
}

void Job::put_in_force(StepPlan step) {
  for (const int node : step_.nodes) place_[as_index(node)] = -1;
  step_ = std::move(step);
  for (std::size_t place = 0; place < step_.nodes.size(); ++place) {
    const auto node = as_index(step_.nodes[place]);
    place_[node] = static_cast<int>(place);
    trained_until_[node] = kNever;
  }
}

void Job::check(const StepPlan& step) const {
  SC_CHECK(step.duration > Duration::zero() && step.samples >= 1, "a step takes time and trains a sample");
  const double rate = static_cast<double>(step.samples) * static_cast<double>(spec_.ideal.duration.count());
  const double ideal = static_cast<double>(spec_.ideal.samples) * static_cast<double>(step.duration.count());
  SC_CHECK(rate <= ideal * (1 + 1e-9), "no plan trains faster than the ideal");
  for (const int node : step.nodes) SC_CHECK(machines_.up(node), "a plan uses nodes that are up");
}

void Job::go_back(const CheckpointStore::Source& source) {
  const Duration undone = progress_.trained - source.progress.trained;
  account_[Bucket::kLostWork] += undone;
  if (down_since_) blamed().lost_work += undone;
  account_.undone_steps += progress_.steps - source.progress.steps;
  if (undone > Duration::zero() && source.only_storage) ++account_.went_back;
  progress_ = source.progress;
  store_.went_back(source.progress, corrupted_since_);
  persist_end_ = kNever;
  const Progress stored = store_.in_storage();
  work_since_ = progress_.trained - stored.trained;
  steps_since_ = progress_.steps - stored.steps;
}

// Starts the next part of the stall with a nonzero time, or training.
void Job::begin_part() {
  while (part_ < parts_.size() && parts_[part_] == Duration::zero()) ++part_;
  if (part_ == parts_.size()) return begin_training();
  enter(State::kChanging, now_ + parts_[part_]);
}

void Job::begin_training() {
  if (down_since_) {
    ++account_.restarts;
    account_.recovering += now_ - *down_since_;
    down_since_.reset();
  }
  review_at_ = review_after_ ? now_ + *review_after_ : kNever;
  enter(State::kTraining, kNever);
  spent_ = {};
  stretch_ = 0;  // of no step
  set_speed();
  Progress here = progress_;
  here.at = now_;
  store_.begin(here, step_.nodes, machines_);
}

// Continues the step in flight.
void Job::go_on() {
  if (known_at_ > now_) return hang();
  if (down_since_) account_.recovering += now_ - *down_since_;
  down_since_.reset();
  enter(State::kTraining, kNever);
}

// Slowdown by the slow nodes of the plan.
double Job::slowed() const {
  if (step_.slowness_priced) return 1;
  const std::vector<SlowPlace> slow =
      slow_places(machines_, [this](int node) { return place_[as_index(node)]; });
  if (slow.empty() || !spec_.slow_replicas) return slowest_factor(slow);
  return std::ranges::max(spec_.slow_replicas(static_cast<int>(step_.nodes.size()), slow));
}

double Job::stretch() const {
  double factor = slowed();
  if (persisting()) factor *= spec_.checkpointing->slowdown;
  return factor * policy_factor_;
}

void Job::set_speed() {
  const double now = stretch();
  if (now == stretch_) return;
  whole_ = std::max(Duration(1), scaled(step_.duration, now));
  left_ = spent_ == Duration::zero() ? whole_ : scaled(left_, now / stretch_);
  stretch_ = now;
}

// Committed steps become productive and degraded time; the step in flight is lost.
void Job::close() {
  if (state_ == State::kTraining && left_ == Duration::zero()) commit(1);
  account_[Bucket::kLostWork] += spent_;
  const Wide ideal =
      static_cast<Wide>(progress_.samples) * spec_.ideal.duration.count() / spec_.ideal.samples;
  const Duration productive = std::min(Duration(static_cast<std::int64_t>(ideal)), progress_.trained);
  account_[Bucket::kProductive] = productive;
  account_[Bucket::kDegraded] = progress_.trained - productive;
  account_.samples = progress_.samples;
  account_.steps = progress_.steps;
  SC_CHECK(account_.total() == spec_.horizon, "every instant of the horizon is in one bucket");
}

}  // namespace

Account run_job(const JobSpec& spec, const History& history, Policy& policy) {
  SC_CHECK(
      spec.horizon >= Duration::zero() && spec.ideal.samples >= 1 && spec.ideal.duration > Duration::zero(),
      "a job has a horizon and an ideal rate");
  if (spec.checkpointing)
    SC_CHECK(spec.checkpointing->slowdown >= 1 && spec.checkpointing->copies >= 1 &&
                 spec.checkpointing->copy_every >= 1,
             "checkpoints do not speed training up and copies are at least one");
  return Job(spec, history, policy).run();
}

}  // namespace stagecraft
