#include "sim/schedule/csv.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/notation.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostCsvProblems = 20;
constexpr std::int32_t kMostInCell = 1'000'000;  // stages and micro-batches: no order is so long
constexpr std::string_view kOverlap = "OVERLAP_F_B";
constexpr std::string_view kCellBlanks = " \t\r";

struct Cell {
  int number = 0;  // from 1
  int column = 0;  // of its first character in the row, from 1
  std::string_view text;
  std::vector<Action> actions;  // none, one, or a fused pair
  std::optional<PeerTransfer> message;
};

using Row = std::vector<Cell>;

std::optional<std::int32_t> whole_number(std::string_view text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size() && !text.starts_with('-');
  return whole ? std::optional(number) : std::nullopt;
}

// `<s>SEND_F<m>` and the like.
std::optional<PeerTransfer> message_of(std::string_view text) {
  constexpr std::array<std::string_view, 4> kWords = {"SEND_F", "RECV_F", "SEND_B", "RECV_B"};
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    const std::size_t at = text.find(kWords[i]);
    if (at == std::string_view::npos) continue;
    const auto stage = whole_number(text.substr(0, at));
    const auto micro_batch = whole_number(text.substr(at + kWords[i].size()));
    if (!stage || !micro_batch || *stage > kMostInCell || *micro_batch > kMostInCell) return std::nullopt;
    return PeerTransfer{.send = i % 2 == 0, .gradient = i >= 2, .stage = *stage, .micro_batch = *micro_batch};
  }
  return std::nullopt;
}

bool is_sharding(std::string_view text) {
  for (const std::string_view word : {"UNSHARD", "RESHARD", "REDUCE_GRAD"}) {
    const std::size_t at = text.find(word);
    if (at != std::string_view::npos && at + word.size() == text.size() && whole_number(text.substr(0, at)))
      return true;
  }
  return false;
}

ScheduleProblem bad_cell(std::string_view text) {
  const std::string quoted = "'" + std::string(text) + "'";
  const std::size_t behind = text.find("_s");
  if (behind != std::string_view::npos && !text.empty() && pass_of(text.front()) &&
      whole_number(text.substr(behind + 2))) {
    const std::string now = std::string(text.substr(behind + 2)) + std::string(text.substr(0, behind));
    return {.message = quoted + " is an action as PyTorch 2.4 wrote it, with the stage behind",
            .hint = "write " + now};
  }
  return {.message = quoted + " is no action",
          .hint = "write <stage><F|B|I|W><micro-batch>, for example 0F3, or (0F3;1B0)OVERLAP_F_B"};
}

// Parses a cell in place; returns the mistake if there is one.
std::optional<ScheduleProblem> read_cell(Cell& cell) {
  std::string_view text = cell.text;
  if (text.empty() || is_sharding(text)) return std::nullopt;
  cell.message = message_of(text);
  if (cell.message) return std::nullopt;
  if (text.starts_with('(')) {
    if (!text.ends_with(kOverlap)) return bad_cell(text);
    text.remove_suffix(kOverlap.size());
  }
  auto actions = parse_word(text);
  const auto recompute = [](const Action& a) { return a.pass == Pass::kRecompute; };
  if (!actions || std::ranges::any_of(*actions, recompute)) return bad_cell(text);
  const auto beyond = [](const Action& a) { return a.stage > kMostInCell || a.micro_batch > kMostInCell; };
  if (std::ranges::any_of(*actions, beyond))
    return ScheduleProblem{.message = "'" + std::string(text) + "' is beyond " + std::to_string(kMostInCell),
                           .hint = "number stages and micro-batches from 0"};
  cell.actions = *std::move(actions);
  return std::nullopt;
}

std::string place_of(std::size_t rank, const Cell& cell) {
  return "rank " + std::to_string(rank) + ", cell " + std::to_string(cell.number) + " (" +
         std::string(cell.text) + "): ";
}

CellProblem located(std::size_t rank, const Cell& cell, ScheduleProblem problem) {
  problem.message = place_of(rank, cell) + problem.message;
  return {.line = static_cast<int>(rank) + 1,
          .cell = cell.number,
          .column = cell.column,
          .problem = std::move(problem)};
}

std::vector<Row> read_rows(std::string_view text, std::vector<CellProblem>& problems) {
  std::vector<std::string_view> lines = split(text, '\n');
  while (!lines.empty() && trimmed(lines.back(), kCellBlanks).empty()) lines.pop_back();
  std::vector<Row> rows;
  for (const std::string_view line : lines) {
    Row row;
    for (const std::string_view part : split(line, ',')) {
      const std::string_view words = trimmed(part, kCellBlanks);
      const std::string_view shown = words.empty() ? part : words;
      Cell cell{.number = static_cast<int>(row.size()) + 1,
                .column = static_cast<int>(shown.data() - line.data()) + 1,
                .text = words,
                .actions = {},
                .message = {}};
      auto problem = read_cell(cell);
      if (problem && problems.size() < kMostCsvProblems) {
        const std::string where =
            "rank " + std::to_string(rows.size()) + ", cell " + std::to_string(cell.number) + ": ";
        problems.push_back({.line = static_cast<int>(rows.size()) + 1,
                            .cell = cell.number,
                            .column = cell.column,
                            .problem = {.message = where + problem->message, .hint = problem->hint}});
      }
      row.push_back(std::move(cell));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<CellProblem> first_of(std::vector<CellProblem> problems) {
  problems.resize(std::min(problems.size(), kMostCsvProblems));
  return problems;
}

// Home ranks of the stages in the rows: [stage] -> rank; adds problems.
std::map<int, std::size_t> homes_of(const std::vector<Row>& rows, std::vector<CellProblem>& problems) {
  std::map<int, std::size_t> homes;
  std::set<int> reported;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    for (const Cell& cell : rows[rank]) {
      for (const Action& action : cell.actions) {
        const auto [home, is_new] = homes.insert({action.stage, rank});
        if (home->second == rank || !reported.insert(action.stage).second) continue;
        problems.push_back(located(
            rank, cell,
            {.message = "stage " + std::to_string(action.stage) + " runs on rank " +
                        std::to_string(home->second) + " as well",
             .hint = "a stage lives on one rank; bidirectional orders cannot be written in this form"}));
      }
    }
  }
  return homes;
}

// A stage between those that the rows have, of which they have no action.
std::optional<CellProblem> refuse_gap(const std::vector<Row>& rows, const std::map<int, std::size_t>& homes) {
  int expected = 0;
  for (const auto& [stage, rank] : homes) {
    if (stage == expected++) continue;
    const auto is_behind_gap = [&, next = stage](const Cell& cell) {
      return std::ranges::find(cell.actions, next, &Action::stage) != cell.actions.end();
    };
    return located(rank, *std::ranges::find_if(rows[rank], is_behind_gap),
                   {.message = "no rank has an action of stage " + std::to_string(expected - 1),
                    .hint = "number the stages from 0, without a gap"});
  }
  return std::nullopt;
}

// The placement that has every stage where the file has it.
std::optional<Placement> placement_of(const PipelineShape& shape, const std::map<int, std::size_t>& homes) {
  for (const Placement placement : {Placement::kLoop, Placement::kV, Placement::kWave}) {
    if (placement == Placement::kV && shape.chunks != 2) continue;
    const bool fits = std::ranges::all_of(homes, [&](const auto& home) {
      return static_cast<std::size_t>(rank_of(placement, shape, home.first, 0)) == home.second;
    });
    if (fits) return placement;
  }
  return std::nullopt;
}

CellProblem about_the_file(std::string message, std::string hint) {
  return {.line = 1, .cell = 1, .problem = {.message = std::move(message), .hint = std::move(hint)}};
}

// The order of rows that parsed without problems, or the problems of the order.
std::variant<OrderFile, std::vector<CellProblem>> order_of(const std::vector<Row>& rows) {
  std::vector<CellProblem> problems;
  const std::map<int, std::size_t> homes = homes_of(rows, problems);
  if (!problems.empty()) return first_of(std::move(problems));
  if (homes.empty())
    return std::vector{about_the_file("no action is written here", "one row a rank, one action a cell")};
  if (const std::optional<CellProblem> gap = refuse_gap(rows, homes)) return std::vector{*gap};
  OrderFile file;
  Schedule& schedule = file.schedule;
  schedule.name = "custom";
  const auto p = static_cast<int>(rows.size());
  const int stages = homes.rbegin()->first + 1;
  schedule.shape = {.ranks = p, .micro_batches = 1, .chunks = std::max(1, stages / p)};
  if (stages % p != 0) {
    return std::vector{about_the_file(std::to_string(stages) + " stages on " + std::to_string(p) + " ranks",
                                      "every rank holds as many stages: write as many rows as ranks")};
  }
  const std::optional<Placement> placement = placement_of(schedule.shape, homes);
  if (!placement) {
    return std::vector{about_the_file("the stages lie neither on a loop nor on a V or wave",
                                      "stage s lives on rank s mod " + std::to_string(p) +
                                          ", or on the ranks down and back, chunk by chunk")};
  }
  schedule.placement = *placement;
  for (const Row& row : rows) {
    schedule.ranks.emplace_back();
    file.cells.emplace_back();
    for (const Cell& cell : row) {
      for (const Action& action : cell.actions) {
        schedule.ranks.back().push_back(action);
        file.cells.back().push_back({.cell = cell.number, .column = cell.column});
        schedule.shape.micro_batches = std::max(schedule.shape.micro_batches, action.micro_batch + 1);
      }
    }
  }
  return file;
}

// Ends of messages: rank and cell.
using Ends = std::map<MessageKey, std::pair<std::size_t, const Cell*>>;

// [gradient, stage, micro-batch] -> the cell of the pass that sends such messages, or needs them.
using PassCells = std::map<std::tuple<bool, int, int>, int>;

PassCells pass_cells(const Row& row) {
  PassCells cells;
  for (const Cell& cell : row) {
    for (const Action& action : cell.actions) {
      const bool gradient = gives_gradient(action.pass);
      if (gradient || action.pass == Pass::kForward)
        cells.insert({{gradient, action.stage, action.micro_batch}, cell.number});
    }
  }
  return cells;
}

// Does a SEND follow its pass, and a RECV precede it?
bool beside_its_pass(const PassCells& passes, const Cell& cell) {
  const PeerTransfer& message = *cell.message;
  const auto pass = passes.find({message.gradient, message.stage, message.micro_batch});
  if (pass == passes.end()) return false;
  return message.send ? pass->second < cell.number : pass->second > cell.number;
}

std::vector<CellProblem> check_messages(const std::vector<Row>& rows) {
  std::vector<CellProblem> problems;
  std::array<Ends, 2> ends;  // received, sent
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const PassCells passes = pass_cells(rows[rank]);
    for (const Cell& cell : rows[rank]) {
      if (!cell.message) continue;
      const auto [at, is_new] =
          ends[cell.message->send ? 1 : 0].insert({key_of(*cell.message), {rank, &cell}});
      if (!is_new)
        problems.push_back(located(rank, cell, {.message = "stands twice", .hint = "drop one of them"}));
      if (!beside_its_pass(passes, cell)) {
        problems.push_back(located(rank, cell,
                                   {.message = cell.message->send ? "sends what no pass before it makes"
                                                                  : "receives what no pass behind it needs",
                                    .hint = "a SEND stands behind its pass, a RECV in front of it"}));
      }
    }
  }
  for (const std::size_t sent : {std::size_t{0}, std::size_t{1}}) {
    for (const auto& [key, end] : ends[sent]) {
      if (ends[1 - sent].contains(key)) continue;
      problems.push_back(located(end.first, *end.second,
                                 {.message = sent == 1 ? "nobody receives it" : "nobody sends it",
                                  .hint = "a SEND and a RECV make a message"}));
    }
  }
  return first_of(std::move(problems));
}

}  // namespace

CellProblem OrderFile::at(int rank, std::size_t position, ScheduleProblem problem) const {
  const auto r = static_cast<std::size_t>(rank);
  const CellPlace place = cells[r][position];
  problem.message = "rank " + std::to_string(rank) + ", cell " + std::to_string(place.cell) + " (" +
                    to_string(schedule.ranks[r][position]) + "): " + problem.message;
  return {.line = rank + 1, .cell = place.cell, .column = place.column, .problem = std::move(problem)};
}

std::variant<OrderFile, std::vector<CellProblem>> parse_csv(std::string_view text) {
  std::vector<CellProblem> problems;
  const std::vector<Row> rows = read_rows(without_byte_order_mark(text), problems);
  if (!problems.empty()) return problems;
  auto order = order_of(rows);
  if (std::holds_alternative<std::vector<CellProblem>>(order)) return order;
  const auto& file = std::get<OrderFile>(order);
  for (const PlacedProblem& found : check_placed(file.schedule)) {
    if (found.place) {
      ScheduleProblem problem = found.problem;
      constexpr std::string_view kRing = "deadlock: ";
      if (problem.message.starts_with(kRing)) problem.message.replace(0, kRing.size(), "blocked: ");
      problems.push_back(file.at(found.place->rank, found.place->position, std::move(problem)));
    } else {
      problems.push_back({.problem = found.problem});
    }
  }
  if (problems.empty()) problems = check_messages(rows);
  if (!problems.empty()) return problems;
  return order;
}

std::vector<CellProblem> over_limit(const OrderFile& file, int limit) {
  std::vector<CellProblem> problems;
  for (std::size_t rank = 0; rank < file.schedule.ranks.size(); ++rank) {
    const std::vector<int> held = in_flight(file.schedule.ranks[rank]);
    const auto above = std::ranges::find_if(held, [limit](int live) { return live > limit; });
    if (above == held.end()) continue;
    problems.push_back(
        file.at(static_cast<int>(rank), static_cast<std::size_t>(above - held.begin()),
                {.message = "the rank holds " + std::to_string(std::ranges::max(held)) +
                            " chunk activations at most, the limit is " + std::to_string(limit),
                 .hint = "run a backward in front of this pass"}));
  }
  return problems;
}

}  // namespace stagecraft
