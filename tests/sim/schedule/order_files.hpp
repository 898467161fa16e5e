// The published orders of tests/data/schedules, read for tests. The format is told in the README there.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "tests/sim/schedule/actions_of.hpp"

namespace stagecraft {

struct OrderText {
  std::map<std::string, std::string> head;  // "# key: value"
  std::vector<std::string> orders;          // [rank] -> the text after "rank: "

  // The value of "name=value" in a head line; empty when it is not there.
  [[nodiscard]] std::string field(const std::string& line, const std::string& name) const {
    std::istringstream in(head.at(line));
    for (std::string word; in >> word;) {
      if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
    }
    return {};
  }
  [[nodiscard]] int size(const std::string& name) const {
    const std::string text = field("sizes", name);
    return text.empty() ? 0 : std::stoi(text);
  }
  [[nodiscard]] std::int64_t uniform(const std::string& name) const {
    return std::stoll(field("uniform", name));
  }
  // [rank] -> chunks in flight, freed at W where the backward is split.
  [[nodiscard]] std::vector<int> peaks() const {
    std::string text = field("uniform", "peak_chunks_freed_at_W");
    if (text.empty()) text = field("uniform", "peak_chunks");
    std::vector<int> all;
    std::istringstream in(text);
    for (std::string number; std::getline(in, number, ',');) all.push_back(std::stoi(number));
    return all;
  }
};

inline OrderText read_order_text(const std::filesystem::path& path) {
  OrderText file;
  std::ifstream in(path);
  EXPECT_TRUE(in.is_open()) << path << " is missing";
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("# ")) {
      file.head[line.substr(2, colon - 2)] = line.substr(colon + 2);
    } else {
      file.orders.push_back(line.substr(colon + 2));
    }
  }
  return file;
}

inline Placement placement_of(const OrderText& file) {
  if (file.head.at("schedule") == "chimera") return Placement::kBidirectionalUnits;
  const std::string& text = file.head.at("placement");
  if (text.find("else 2p-1-s") != std::string::npos) return Placement::kV;
  return text.find("p-1-s") != std::string::npos ? Placement::kBidirectional : Placement::kLoop;
}

inline Schedule schedule_of(const OrderText& file) {
  Schedule schedule{
      .name = file.head.at("schedule"),
      .shape = {.ranks = file.size("p"), .micro_batches = file.size("m"), .chunks = file.size("v")},
      .placement = placement_of(file),
      .ranks = {}};
  for (const std::string& order : file.orders) schedule.ranks.push_back(actions_of(order));
  return schedule;
}

// Every order file below tests/data/schedules, sorted.
inline std::vector<std::string> all_order_files(const std::string& folder = "") {
  std::vector<std::string> all;
  const auto root = std::filesystem::path(STAGECRAFT_SOURCE_DIR) / "tests/data/schedules" / folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".txt") all.push_back(entry.path().string());
  }
  std::ranges::sort(all);
  return all;
}

inline std::string name_of_test(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, 'x');
  return name;
}

}  // namespace stagecraft
