// Columns of a plan in the tables and the JSON of a search: its keys, their titles, their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "sim/search/plan_search.hpp"
#include "tools/tables/search_table.hpp"

namespace stagecraft {

inline constexpr const char* kBatchPath = "training.global_batch_size";
inline constexpr const char* kLayersPath = "parallelism.stage_layers";
inline constexpr const char* kEvenLayers = "even";  // as many in each stage

// One entry of a plan: its path, what a column is called, its value in short.
struct PlanCell {
  std::string path, title, value;
  bool text = false;  // in JSON, a text
  Align align = Align::kRight;
  const YamlNode* node = nullptr;                      // of a value as somebody wrote it: in JSON, what it is
  const std::vector<std::int64_t>* numbers = nullptr;  // in JSON, these; null where there are none

  // All of the value: "{name: 1f1b, global_step: false}", which is 1f1b in short.
  [[nodiscard]] std::string whole() const;
};

// Keeps a reference to the answer.
class PlanColumns {
 public:
  explicit PlanColumns(const SearchAnswer& answer);

  // The split that the scenario gives, where it is not one of several that are tried.
  [[nodiscard]] const std::vector<std::int64_t>& own_layers() const {
    return answer_.plans.frames.front().scenario.parallelism.stage_layers;
  }

  [[nodiscard]] const SearchPoint& point(const RankedPlan& plan) const {
    return answer_.plans.points[plan.point];
  }

  // The cells of the point with this index.
  [[nodiscard]] std::vector<PlanCell> cells(std::size_t index) const;

 private:
  const SearchAnswer& answer_;
  std::vector<const SearchAxis*> others_;
  bool splits_ = false;  // do plans say what layers their stages have?
};

}  // namespace stagecraft
