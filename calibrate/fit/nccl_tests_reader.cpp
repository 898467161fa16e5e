#include "calibrate/fit/nccl_tests_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.hpp"

namespace stagecraft {

bool detail::NcclRanks::add(const std::string& group, std::int64_t rank, const std::string& host) {
  if (!seen_.emplace(group, rank).second) return false;
  ++ranks_[group];
  hosts_[group].insert(host);
  return true;
}

std::optional<std::string> detail::NcclRanks::close(NcclRun& run) const {
  for (const auto& [group, ranks] : ranks_) {
    if (run.ranks != 0 && run.ranks != ranks) return "groups of different sizes: one fit is of one size";
    run.ranks = ranks;
    run.nodes = std::max(run.nodes, static_cast<int>(hosts_.at(group).size()));
  }
  if (run.ranks < 2) return "fewer than two ranks are listed: there is nothing to communicate";
  return std::nullopt;
}

void detail::add_nccl_row(NcclRun& run, const NcclRow& row) {
  if (row.bytes > 0)
    run.rows.push_back(row);
  else
    run.launch_seconds = std::min(run.launch_seconds.value_or(row.seconds), row.seconds);
}

std::string detail::nccl_version_text(std::int64_t version) {
  const std::int64_t major = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

std::optional<NcclRun> read_nccl_tests(std::string_view text, const std::string& name,
                                       Diagnostics& diagnostics) {
  text = without_byte_order_mark(text);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '{';
  return json ? detail::read_nccl_json(text, name, diagnostics)
              : detail::read_nccl_text(text, name, diagnostics);
}

}  // namespace stagecraft
