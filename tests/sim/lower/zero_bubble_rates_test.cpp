// The bubble rates that the Zero Bubble paper prints (Table 5), from the stage times that it prints (Table
// 9).
//
// Source: Qi et al., arXiv 2401.10241; rate = (cost - m (F+B+W)) / cost, cost = the longest stage from first
// start to last end.
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "base/yaml.hpp"
#include "sim/engine/engine.hpp"
#include "sim/report/measure.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/sim/lower/uniform_prices.hpp"

namespace stagecraft {
namespace {

struct Profiled {
  int stages = 0, micro_batches = 0;
  double forward = 0, input = 0, weight = 0, message = 0;  // ms of one stage
};

double value(const YamlNode& row, const char* key) {
  return *parse_number(row.find(key)->text);
}

Profiled read(const YamlNode& row) {
  return {.stages = static_cast<int>(value(row, "stages")),
          .micro_batches = static_cast<int>(value(row, "micro_batches")),
          .forward = value(row, "forward_ms"),
          .input = value(row, "input_gradient_ms"),
          .weight = value(row, "weight_gradient_ms"),
          .message = value(row, "message_ms")};
}

double rate(const char* schedule, const Profiled& times, int chunks) {
  const auto ns = [](double ms) { return static_cast<std::int64_t>(ms * 1e6 + 0.5); };
  const PipelineShape shape{.ranks = times.stages, .micro_batches = times.micro_batches, .chunks = chunks};
  const UniformCosts costs{.forward = ns(times.forward / chunks),
                           .input_gradient = ns(times.input / chunks),
                           .weight_gradient = ns(times.weight / chunks),
                           .message = ns(times.message),
                           .unit = Duration(1)};
  const Program program = lower(generate(*find_schedule(schedule), shape), uniform_prices(shape, costs), {});
  const Bubble bubble = measure_bubble(program, run(program));
  return to_seconds(bubble.span - bubble.ideal) / to_seconds(bubble.span);
}

TEST(ZeroBubbleTable5, PrintedBubbleRatesComeOutOfThePrintedStageTimes) {
  Diagnostics diagnostics;
  const auto file =
      load_yaml_file(STAGECRAFT_SOURCE_DIR "/calibrate/validation/zero_bubble.yaml", diagnostics);
  ASSERT_TRUE(file.has_value());
  const YamlNode* tables = file->find("tables");
  ASSERT_NE(tables, nullptr);
  int compared = 0;
  for (const YamlNode& printed : tables->find("bubble_rates")->items) {
    for (const YamlNode& row : tables->find("profiled_times")->items) {
      if (row.find("id")->text.substr(6) != printed.find("id")->text.substr(6)) continue;
      SCOPED_TRACE(printed.find("id")->text);
      const Profiled times = read(row);
      EXPECT_NEAR(rate("1f1b", times, 1), value(printed, "1f1b"), 0.00005);
      EXPECT_NEAR(rate("zb-h1", times, 1), value(printed, "zb-h1"), 0.00005);
      EXPECT_NEAR(rate("interleaved-1f1b", times, 3), value(printed, "interleaved-1f1b"), 0.005);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6);
}

}  // namespace
}  // namespace stagecraft
