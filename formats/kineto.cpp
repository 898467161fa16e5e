#include "formats/kineto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "formats/kineto_events.hpp"

namespace stagecraft {
namespace {

using detail::DeviceSlice;
using detail::KinetoEvents;
using detail::LaunchSlice;
using detail::OpSlice;

// Links kernels to the operators and steps that launched them.
class Linker {
 public:
  explicit Linker(KinetoEvents& events) : events_(events) {
    std::ranges::stable_sort(events.launches, {}, &LaunchSlice::correlation);
    std::ranges::stable_sort(events.op_slices, {}, &OpSlice::external_id);
    std::ranges::stable_sort(events.optimizer_steps, {}, &detail::SpanSlice::start);
    std::ranges::stable_sort(events.trace.steps, {}, &KinetoStep::start);
  }

  void link(DeviceSlice& slice) const {
    const LaunchSlice* launch = launch_of(slice);
    KinetoKernel& kernel = slice.kernel;
    const Duration asked = launch != nullptr ? launch->start : kernel.start;
    if (const OpSlice* op = op_of(slice, launch)) {
      kernel.op = op->op;
      kernel.call = op - events_.op_slices.data();
      if (kernel.collective < 0) kernel.collective = op->collective;
      kernel.of_backward = events_.backward_threads.contains(op->thread);
    }
    kernel.step = static_cast<std::int32_t>(span_at(events_.trace.steps, asked));
    kernel.of_optimizer = span_at(events_.optimizer_steps, asked) >= 0;
  }

 private:
  [[nodiscard]] const LaunchSlice* launch_of(const DeviceSlice& slice) const {
    if (slice.correlation < 0) return nullptr;
    const auto at =
        std::ranges::lower_bound(events_.launches, slice.correlation, {}, &LaunchSlice::correlation);
    return at != events_.launches.end() && at->correlation == slice.correlation ? &*at : nullptr;
  }

  // An id of an operator whose thread was elsewhere when the call was made is none.
  [[nodiscard]] const OpSlice* op_of(const DeviceSlice& slice, const LaunchSlice* launch) const {
    const std::int64_t id =
        launch != nullptr && launch->external_id >= 0 ? launch->external_id : slice.external_id;
    if (id < 0) return nullptr;
    const std::vector<OpSlice>& ops = events_.op_slices;
    for (auto op = std::ranges::lower_bound(ops, id, {}, &OpSlice::external_id);
         op != ops.end() && op->external_id == id; ++op) {
      if (launch == nullptr || (op->thread == launch->thread && op->start <= launch->start &&
                                launch->start <= op->start + op->length))
        return &*op;
    }
    return nullptr;
  }

  // The last span that began before and has not ended; -1: none.
  template <class Span>
  [[nodiscard]] static std::ptrdiff_t span_at(const std::vector<Span>& spans, Duration time) {
    const auto next = std::ranges::upper_bound(spans, time, {}, &Span::start);
    if (next == spans.begin()) return -1;
    const Span& span = *(next - 1);
    return time < span.start + span.length ? (next - 1) - spans.begin() : -1;
  }

  const KinetoEvents& events_;
};

// "2024-05-23T01:35:21Z" of nanoseconds since 1970; empty before 2001, when a file counts from elsewhere.
std::string date_of(std::int64_t ns) {
  constexpr std::int64_t kEarliest = 1'000'000'000;
  const std::time_t seconds = ns / 1'000'000'000;
  std::tm parts{};
  if (seconds < kEarliest || gmtime_r(&seconds, &parts) == nullptr) return {};
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// The first slice that is kept is at 0.
void shift(KinetoEvents& events) {
  Duration first = Duration::max();
  for (const DeviceSlice& slice : events.device_slices) first = std::min(first, slice.kernel.start);
  for (const KinetoStep& step : events.trace.steps) first = std::min(first, step.start);
  if (first == Duration::max()) return;
  events.trace.date = date_of(events.base_ns + first.count());
  for (DeviceSlice& slice : events.device_slices) slice.kernel.start -= first;
  for (KinetoStep& step : events.trace.steps) step.start -= first;
}

// Operators and collectives that no kernel has are left out.
template <class Item>
void keep_used(std::vector<Item>& items, std::vector<KinetoKernel>& kernels,
               std::int32_t KinetoKernel::*index) {
  std::vector<std::int32_t> renumbered(items.size(), -1);
  std::vector<Item> used;
  for (KinetoKernel& kernel : kernels) {
    if (kernel.*index < 0) continue;
    std::int32_t& number = renumbered[static_cast<std::size_t>(kernel.*index)];
    if (number < 0) {
      number = static_cast<std::int32_t>(used.size());
      used.push_back(std::move(items[static_cast<std::size_t>(kernel.*index)]));
    }
    kernel.*index = number;
  }
  items = std::move(used);
}

void name_device(const KinetoEvents& events, KinetoTrace& trace) {
  trace.visible_devices = static_cast<int>(events.device_names.size());
  if (trace.kernels.empty()) return;
  const auto known = events.device_names.find(trace.kernels.front().device);
  if (known != events.device_names.end()) trace.device = known->second;
}

}  // namespace

std::optional<KinetoTrace> read_kineto(std::istream& in, const std::string& name, Diagnostics& diagnostics) {
  std::optional<KinetoEvents> events = detail::read_kineto_events(in, name, diagnostics);
  if (!events) return std::nullopt;
  const Linker linker(*events);
  for (DeviceSlice& slice : events->device_slices) linker.link(slice);
  shift(*events);
  KinetoTrace trace = std::move(events->trace);
  trace.kernels.reserve(events->device_slices.size());
  for (const DeviceSlice& slice : events->device_slices) trace.kernels.push_back(slice.kernel);
  std::ranges::stable_sort(trace.kernels, {}, [](const KinetoKernel& kernel) {
    return std::tuple(kernel.start, kernel.device, kernel.stream);
  });
  trace.has_shapes =
      std::ranges::any_of(trace.ops, [](const KinetoOp& op) { return !op.inputs.dims.empty(); });
  keep_used(trace.ops, trace.kernels, &KinetoKernel::op);
  keep_used(trace.collectives, trace.kernels, &KinetoKernel::collective);
  for (KinetoCollective& collective : trace.collectives) {
    const auto known = events->ranks_of_group.find(collective.group);
    if (collective.ranks.empty() && known != events->ranks_of_group.end()) collective.ranks = known->second;
  }
  name_device(*events, trace);
  if (events->without_duration > 0)
    diagnostics.warning(
        {.code = "no-duration",
         .where = {name, 0, 0},
         .message = fmt::format("{} slices have no `dur` and count as instants", events->without_duration)});
  return trace;
}

namespace {

// Adds one step over all kernels, for traces without steps.
void add_whole_step(KinetoTrace& trace) {
  Duration end{};
  for (KinetoKernel& kernel : trace.kernels) {
    end = std::max(end, kernel.start + kernel.length);
    kernel.step = 0;
  }
  const Duration start = trace.kernels.front().start;
  trace.steps = {{.number = -1, .start = start, .length = end - start}};
}

std::vector<std::int32_t> steps_with_kernels(const KinetoTrace& trace) {
  std::vector<bool> has(trace.steps.size(), false);
  for (const KinetoKernel& kernel : trace.kernels)
    if (kernel.step >= 0) has[static_cast<std::size_t>(kernel.step)] = true;
  std::vector<std::int32_t> steps;
  for (std::size_t i = 0; i < has.size(); ++i)
    if (has[i]) steps.push_back(static_cast<std::int32_t>(i));
  return steps;
}

std::optional<std::vector<std::int32_t>> asked_steps(const KinetoTrace& trace,
                                                     const std::vector<std::int64_t>& asked,
                                                     const std::vector<std::int32_t>& known,
                                                     const std::string& name, Diagnostics& diagnostics) {
  std::vector<std::int32_t> chosen;
  std::vector<std::int64_t> numbers;
  for (const std::int32_t step : known) {
    const std::int64_t number = trace.steps[static_cast<std::size_t>(step)].number;
    numbers.push_back(number);
    if (std::ranges::find(asked, number) != asked.end()) chosen.push_back(step);
  }
  for (const std::int64_t number : asked) {
    if (std::ranges::find(numbers, number) != numbers.end()) continue;
    diagnostics.error({.code = "no-such-step",
                       .where = {name, 0, 0},
                       .message = fmt::format("has no kernels of ProfilerStep#{}", number),
                       .hint = numbers.empty() ? std::string("it has no steps")
                                               : fmt::format("it has {}", fmt::join(numbers, ", "))});
    return std::nullopt;
  }
  return chosen;
}

}  // namespace

std::optional<std::vector<std::int32_t>> measured_steps(KinetoTrace& trace,
                                                        const std::vector<std::int64_t>& asked,
                                                        const std::string& name, Diagnostics& diagnostics) {
  const auto warn = [&](std::string code, std::string message, std::string hint) {
    diagnostics.warning({.code = std::move(code),
                         .where = {name, 0, 0},
                         .message = std::move(message),
                         .hint = std::move(hint)});
  };
  if (trace.kernels.empty()) {
    diagnostics.error({.code = "no-kernels",
                       .where = {name, 0, 0},
                       .message = "holds no work of a GPU",
                       .hint = "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"});
    return std::nullopt;
  }
  std::vector<std::int32_t> known = steps_with_kernels(trace);
  if (!asked.empty()) return asked_steps(trace, asked, known, name, diagnostics);
  if (known.empty()) {
    warn("no-steps", "has no ProfilerStep with kernels: all of it counts as one step",
         "call prof.step() after each iteration");
    add_whole_step(trace);
    return std::vector<std::int32_t>{0};
  }
  if (known.size() == 1) {
    warn("one-step", "has a single step with kernels, which may hold what only happens once",
         "profile three steps or more: the first is left out");
    return known;
  }
  known.erase(known.begin());
  return known;
}

}  // namespace stagecraft
