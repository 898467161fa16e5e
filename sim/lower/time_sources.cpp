#include "sim/lower/time_sources.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "sim/lower/lowering.hpp"

namespace stagecraft {
namespace {

// `price(p)` for every price that is a task or several of its own, `size(n)` for every list of buckets.
template <class Price, class Size>
void for_each_price(const IterationPrices& prices, Price price, Size size) {
  for (const EdgePrice& edge : prices.edges) {
    price(edge.forward);
    price(edge.backward);
  }
  for (const RankPrice& rank : prices.ranks) {
    for (const auto* lists : {&rank.gradient_buckets, &rank.parameter_buckets})
      for (const std::vector<PassPrice>& chunk : *lists) size(chunk.size());
    stagecraft::for_each_price(rank, price);
  }
  price(prices.host);
}

Duration time_of_pass(const StagePrice& stage, const TimeSource& source) {
  const auto sum = [&](auto of) {
    Duration time{};
    for (const PassPrice* part : parts_of(stage, source.pass, source.recomputes)) time += of(*part);
    return time;
  };
  if (source.kind == TimeSource::Kind::kPass) return sum([](const PassPrice& part) { return part.total(); });
  Duration time{};
  for (std::size_t i = 0; i < kCategoryCount; ++i) {  // cut category by category, as the label's parts are
    const Duration whole = sum([&](const PassPrice& part) { return part.of(static_cast<Category>(i)); });
    if (whole > Duration::zero()) time += equal_part(whole, source.part, source.of);
  }
  return time;
}

}  // namespace

Duration equal_part(Duration whole, std::size_t index, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  const auto i = static_cast<std::int64_t>(index);
  const auto first = [&](std::int64_t parts) {  // whole * parts / n, whose product may not fit
    return whole / n * parts + whole % n * parts / n;
  };
  return first(i + 1) - first(i);
}

std::vector<std::uint32_t> shape_of(const IterationPrices& prices) {
  std::vector<std::uint32_t> shape;
  // Of the stages behind the first; 0: none is named.
  shape.push_back(static_cast<std::uint32_t>(prices.second_embedding.value_or(0)));
  for_each_price(
      prices, [&](const PassPrice& price) { shape.push_back(price.total() > Duration::zero() ? 1 : 0); },
      [&](std::size_t size) { shape.push_back(static_cast<std::uint32_t>(size)); });
  return shape;
}

bool is_traceable(const IterationPrices& prices, const LowerOptions& options) {
  const bool cut = std::ranges::any_of(prices.stages, [](const StagePrice& s) { return !s.units.empty(); });
  return options.network == nullptr && !prices.meets_at_own_links() && options.iterations == 1 &&
         options.replicas == 1 && options.speeds.empty() && options.rollback == Duration::zero() &&
         options.pairs.empty() && !cut;
}

TracedProgram lower_traced(const Schedule& schedule, const IterationPrices& prices,
                           const LowerOptions& options) {
  SC_CHECK(is_traceable(prices, options), "the times of the graph come from somewhere");
  PriceTrace trace;
  for_each_price(
      prices,
      [&](const PassPrice& price) {
        trace.numbers.emplace(&price, static_cast<std::uint32_t>(trace.numbers.size()));
      },
      [](std::size_t) {});
  Lowering lowering(schedule, prices, options);
  lowering.trace(&trace);
  TracedProgram traced{.program = std::move(lowering).lower(), .sources = {}};
  traced.sources = std::move(trace.sources);
  SC_CHECK(traced.sources.size() == traced.program.labels.size(), "every label has a source");
  return traced;
}

std::vector<Duration> label_times(std::span<const TimeSource> sources, const IterationPrices& prices) {
  std::vector<Duration> totals;
  for_each_price(
      prices, [&](const PassPrice& price) { totals.push_back(price.total()); }, [](std::size_t) {});
  std::vector<Duration> times;
  times.reserve(sources.size());
  for (const TimeSource& source : sources) {
    if (source.kind == TimeSource::Kind::kNothing)
      times.push_back(Duration::zero());
    else if (source.kind == TimeSource::Kind::kPrice)
      times.push_back(totals[source.number]);
    else
      times.push_back(time_of_pass(prices.stages[source.number], source));
  }
  return times;
}

}  // namespace stagecraft
