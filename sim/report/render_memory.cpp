#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {
namespace {

// In bars.
char mark_of(MemoryClass kind) {
  constexpr std::array<char, kMemoryClasses.size()> kMarks = {'W', 'G', 'O', 'A', 'b', 'o'};
  return kMarks.at(static_cast<std::size_t>(kind));
}

// One bar of the ledger: all its cells are the capacity, or the largest stage when that is more. What is
// beyond the capacity, or of one that is not given, is not free.
std::string bar(const StageMemory& stage, Bytes capacity, Bytes full) {
  constexpr std::size_t kCells = 40;
  const auto cells_of = [&](Bytes bytes) {
    return full > Bytes(0) ? static_cast<std::size_t>(bytes / full * static_cast<double>(kCells) + 0.5) : 0;
  };
  std::string out;
  Bytes sum{};
  const auto fill = [&](std::size_t until, char mark) {
    if (out.size() < until) out.append(until - out.size(), mark);
  };
  for (const MemoryClass kind : kMemoryClasses) fill(cells_of(sum += stage.of(kind)), mark_of(kind));
  fill(cells_of(capacity), '.');
  fill(kCells, ' ');
  return out;
}

std::string table_of(const MemoryLedger& memory) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kRight});
  std::vector<std::string> head = {"stage"};
  for (const MemoryClass kind : kMemoryClasses) head.emplace_back(name_of(kind));
  head.emplace_back("peak");
  table.row(std::move(head));
  const StageMemory& heaviest = memory.heaviest();
  for (const StageMemory& stage : memory.stages) {
    std::vector<std::string> row = {fmt::format("{:>3}{}", stage.stage, &stage == &heaviest ? " <" : "")};
    for (const MemoryClass kind : kMemoryClasses) row.push_back(human(stage.of(kind)));
    row.push_back(human(stage.peak()));
    table.row(std::move(row));
  }
  return table.str();  // 80 columns
}

std::string bars_of(const MemoryLedger& memory) {
  const StageMemory& heaviest = memory.heaviest();
  const Bytes full = std::max(memory.capacity, heaviest.peak());
  std::string bars;
  for (const StageMemory& stage : memory.stages) {
    bars += fmt::format("  stage {:>3} {} {}{}\n", stage.stage, bar(stage, memory.capacity, full),
                        human(stage.peak()), &stage == &heaviest ? " < heaviest" : "");
  }
  for (const MemoryClass kind : kMemoryClasses) bars += fmt::format("  {} {}", mark_of(kind), name_of(kind));
  return bars + (memory.capacity > Bytes(0) ? "  . free\n" : "\n");
}

std::string moment_of(const StageMemory& stage) {
  const PeakMoment& moment = stage.moment;
  if (!moment.action) return "in the optimizer step";
  std::string text = fmt::format("while {} runs", to_string(*moment.action));
  if (moment.time) text += " (from " + human(*moment.time) + " on)";
  return text + fmt::format(", {} in flight", moment.in_flight);
}

// Largest first; what is below a tenth of a percent of the peak is summed up.
std::string items_of(const StageMemory& stage) {
  std::vector<MemoryItem> items = stage.items;
  std::ranges::stable_sort(items, std::ranges::greater(), &MemoryItem::size);
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight});
  const double whole = static_cast<double>(stage.peak().count());
  Bytes small{};
  for (const MemoryItem& item : items) {
    const double share = static_cast<double>(item.size.count()) / whole;
    if (share < 0.001) {
      small += item.size;
      continue;
    }
    table.row({std::string(name_of(item.kind)), item.name, human(item.size), percent(share)});
  }
  if (small > Bytes(0)) table.row({"", "smaller items", human(small), ""});
  return table.str(2);
}

}  // namespace

std::string render_memory_text(const Report& report) {
  const MemoryLedger& memory = report.memory;
  const StageMemory& heaviest = memory.heaviest();
  std::string out = printable(report.name) + "\n";
  out += bars_of(memory) + "\n" + table_of(memory);
  out += fmt::format("\nstage {} holds most {}\n", heaviest.stage, moment_of(heaviest));
  if (heaviest.peak() > Bytes(0)) out += items_of(heaviest);
  out += fmt::format("\nallocated {}, reserved {}, on the device {}\n", human(heaviest.allocated()),
                     human(heaviest.reserved()), human(heaviest.peak()));
  if (memory.host.used > Bytes(0))
    out += fmt::format("offloaded to the memory of a node: {}{}\n", human(memory.host.used),
                       memory.host.capacity > Bytes(0) ? " of " + human(memory.host.capacity) : "");
  return out + fmt::format("verdict: {} ({})\n", name_of(memory.verdict()), memory.rule());
}

}  // namespace stagecraft
