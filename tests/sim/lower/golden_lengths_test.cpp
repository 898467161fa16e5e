// Makespan, span and bubble of every published order at unit costs, as an independent checker computed them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "sim/engine/engine.hpp"
#include "sim/report/measure.hpp"
#include "sim/schedule/notation.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/lower/uniform_prices.hpp"

namespace stagecraft {
namespace {

struct OrderFile {
  std::string kind;
  PipelineShape shape;
  std::map<std::string, std::string> uniform;  // "makespan" -> "33", "bubble_over_ideal" -> "3/8"
};

std::map<std::string, std::string> fields(const std::string& text) {
  std::map<std::string, std::string> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (const auto at = word.find('='); at != std::string::npos)
      out[word.substr(0, at)] = word.substr(at + 1);
  }
  return out;
}

OrderFile read(const std::filesystem::path& path) {
  OrderFile file;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto value = [&](const std::string& head) { return line.substr(head.size()); };
    if (line.starts_with("# schedule: ")) file.kind = value("# schedule: ");
    if (line.starts_with("# uniform: ")) file.uniform = fields(value("# uniform: "));
    if (!line.starts_with("# sizes: ")) continue;
    const auto sizes = fields(line);
    file.shape = {.ranks = std::stoi(sizes.at("p")),
                  .micro_batches = std::stoi(sizes.at("m")),
                  .chunks = std::stoi(sizes.at("v"))};
    if (sizes.contains("group")) file.shape.group = std::stoi(sizes.at("group"));
  }
  return file;
}

double ratio(const std::string& text) {  // "3/8" or "1"
  const auto slash = text.find('/');
  return slash == std::string::npos ? std::stod(text)
                                    : std::stod(text.substr(0, slash)) / std::stod(text.substr(slash + 1));
}

// nullptr for a schedule that is not lowered into task graphs: on a V, bidirectional, fused or recomputing.
const ScheduleKind* kind_of(const std::string& published) {
  static const std::map<std::string, std::string> kNames = {{"gpipe", "gpipe"},
                                                            {"1f1b", "1f1b"},
                                                            {"interleaved", "interleaved-1f1b"},
                                                            {"interleaved_group", "interleaved-group"},
                                                            {"interleaved_pytorch", "interleaved-pytorch"},
                                                            {"looped_bfs", "looped-bfs"},
                                                            {"zb_h1", "zb-h1"},
                                                            {"interleaved_zb", "interleaved-zb"}};
  const auto known = kNames.find(published);
  return known == kNames.end() ? nullptr : find_schedule(known->second);
}

TEST(GoldenLengths, MakespanSpanAndBubbleOfEveryPublishedOrderThatIsLoweredAreExact) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(STAGECRAFT_SOURCE_DIR "/tests/data/schedules")) {
    if (entry.path().extension() != ".txt") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const OrderFile file = read(entry.path());
    const ScheduleKind* kind = kind_of(file.kind);
    if (kind == nullptr) continue;
    ++files;
    // B = 2 = I + W: a whole backward costs its two halves.
    const Program program = lower(generate(*kind, file.shape), uniform_prices(file.shape, {}), {});
    const Bubble bubble = measure_bubble(program, run(program));
    EXPECT_EQ(bubble.makespan, std::chrono::seconds(std::stoll(file.uniform.at("makespan"))));
    EXPECT_EQ(bubble.span, std::chrono::seconds(std::stoll(file.uniform.at("span"))));
    EXPECT_EQ(bubble.ideal, std::chrono::seconds(std::stoll(file.uniform.at("ideal"))));
    EXPECT_DOUBLE_EQ(bubble.over_ideal, ratio(file.uniform.at("bubble_over_ideal")));
    EXPECT_NEAR(bubble.fraction, ratio(file.uniform.at("bubble_fraction")), 1e-12);
  }
  EXPECT_EQ(files, 171) << "an order file is missing or new";
}

}  // namespace
}  // namespace stagecraft
