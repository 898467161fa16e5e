// `schedule search`: an order of our own for given costs, and how far from the best it can be.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/schedule/notation.hpp"
#include "sim/schedule/search.hpp"
#include "tools/commands/schedule_lab.hpp"

namespace stagecraft {
namespace {

constexpr const char* kExample =
    "stagecraft schedule search --stages 4 --micro-batches 16 --memory-limit 8 --weight-gradient 600ms";

constexpr std::string_view kTaken[] = {"stages",         "micro-batches",   "chunks",  "forward",
                                       "input-gradient", "weight-gradient", "message", "memory-limit",
                                       "goal",           "effort"};

SearchRequest request_of(const Arguments& arguments) {
  SearchRequest request;
  request.shape = {.ranks = arguments.integer("stages", {}, 1, 4'096),
                   .micro_batches = arguments.integer("micro-batches", {}, 1, 65'536),
                   .chunks = arguments.integer("chunks", 1, 1, 21)};
  request.costs = schedule_costs(arguments, false);
  request.costs.memory_limit = arguments.integer("memory-limit", 0, 0, 1'000'000);
  if (arguments.has("memory-limit") && request.costs.memory_limit == 0) {
    throw UsageError("--memory-limit: 0 activations hold no micro-batch", "leave it out for no limit");
  }
  if (arguments.text("goal") == "makespan") request.goal = SearchGoal::kMakespan;
  constexpr int kMillion = 1'000'000;
  request.effort = std::int64_t{kMillion} * arguments.integer("effort", 20, 0, 1'000'000);
  request.seed = seed_of(arguments);
  refuse_more_passes(3'000'000,
                     3LL * request.shape.ranks * request.shape.chunks * request.shape.micro_batches);
  return request;
}

double over(std::int64_t length, std::int64_t ideal) {
  return ideal == 0 ? 0 : static_cast<double>(length - ideal) / static_cast<double>(ideal);
}

std::int64_t ideal_of(const OrderSearchResult& result) {
  return std::ranges::max(result.evaluation.busy);
}

void print_json(const SearchRequest& request, const OrderSearchResult& result, Session& session) {
  JsonWriter json;
  const PipelineShape& shape = request.shape;
  json.begin_object().field("schema", "stagecraft.schedule-search/1");
  json.field("stages", shape.ranks).field("micro_batches", shape.micro_batches).field("chunks", shape.chunks);
  json.field("placement", result.schedule.placement == Placement::kV ? "v" : "loop");
  json.field("goal", request.goal == SearchGoal::kSpan ? "span" : "makespan");
  json.key("memory_limit");
  request.costs.memory_limit == 0 ? json.null() : json.value(request.costs.memory_limit);
  json.field("makespan_s", Duration(result.evaluation.makespan))
      .field("span_s", Duration(result.evaluation.span));
  json.field("ideal_s", Duration(ideal_of(result))).field("lower_bound_s", Duration(result.lower_bound));
  json.field("gap", over(result.length, result.lower_bound)).field("optimal", result.optimal());
  json.key("best_named");
  if (result.best_named.empty()) {
    json.null();
  } else {
    json.begin_object()
        .field("name", result.best_named)
        .field("length_s", Duration(result.best_named_length));
    json.end_object();
  }
  json.field("orders_played", result.plays).key("ranks").begin_array();
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    json.begin_object().field("rank", rank).key("actions").begin_array();
    for (const Action& action : result.schedule.ranks[r]) json.value(to_string(action));
    json.end_array().field("peak_in_flight", result.evaluation.peak_in_flight[r]);
    json.field("busy_s", Duration(result.evaluation.busy[r])).end_object();
  }
  session.out << json.end_array().end_object().str() << '\n';
}

void print_text(const SearchRequest& request, const OrderSearchResult& result, Session& session) {
  const PipelineShape& shape = request.shape;
  const std::string goal = request.goal == SearchGoal::kSpan ? "span" : "makespan";
  const auto seconds = [](std::int64_t time) { return fmt::format("{:.6g} s", to_seconds(Duration(time))); };
  const int peak = std::ranges::max(result.evaluation.peak_in_flight);
  auto& out = session.out;
  out << fmt::format("an order for {}, {}, {} a rank on a {}: shortest {}\n\n", counted(shape.ranks, "rank"),
                     counted(shape.micro_batches, "micro-batch"), counted(shape.chunks, "chunk"),
                     result.schedule.placement == Placement::kV ? "V" : "loop", goal);
  out << fmt::format("  span          {}, {:.2f} % over the work of the busiest rank\n",
                     seconds(result.evaluation.span), 100 * over(result.evaluation.span, ideal_of(result)));
  out << fmt::format("  makespan      {}, {:.2f} % over\n", seconds(result.evaluation.makespan),
                     100 * over(result.evaluation.makespan, ideal_of(result)));
  out << fmt::format("  lower bound   {} for the {}: {}\n", seconds(result.lower_bound), goal,
                     result.optimal() ? "no order is shorter"
                                      : fmt::format("at most {:.2f} % could be saved",
                                                    -100 * over(result.lower_bound, result.length)));
  out << fmt::format("  best named    {}\n",
                     result.best_named.empty()
                         ? "none stays within the memory"
                         : fmt::format("{}{}, {}", result.best_named,
                                       request.costs.memory_limit == 0 ? "" : " within the memory",
                                       seconds(result.best_named_length)));
  out << fmt::format(
      "  memory        at most {} a rank{}\n\n", counted(peak, "activation"),
      request.costs.memory_limit == 0 ? "" : fmt::format(" of {} allowed", request.costs.memory_limit));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    out << fmt::format("rank {}: {}\n", rank,
                       print_actions(result.schedule.ranks[static_cast<std::size_t>(rank)]));
  }
}

}  // namespace

int schedule_search(const Words& words, const Arguments& arguments, Session& session) {
  if (!words.empty()) {
    throw UsageError(fmt::format("`schedule search` takes options, not '{}'", words[0]), kExample);
  }
  refuse_without_effect(arguments, "search", kTaken, kExample);
  const SearchRequest request = request_of(arguments);
  if (const auto problem = search_constraint(request)) throw UsageError(problem->message, problem->hint);
  const OrderSearchResult result = search_placements(request);
  if (arguments.has("json")) {
    print_json(request, result, session);
  } else {
    print_text(request, result, session);
  }
  return kDone;
}

}  // namespace stagecraft
