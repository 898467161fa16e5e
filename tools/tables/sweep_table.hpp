// A sweep for people: the best points first, why the others cannot be, and a chart where one number varies. Where
// no point can be, those that run.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "tools/tables/sweep_sinks.hpp"

namespace stagecraft {

class SweepTable : public RowSink {
 public:
  // `verbose`: all points, not the twenty best.
  explicit SweepTable(bool verbose) : verbose_(verbose) {}
  [[nodiscard]] std::optional<std::string> add(const RowDocument& row) override;
  [[nodiscard]] std::string str() const;

 private:
  struct Entry {
    std::vector<std::string> values;
    bool feasible = false;
    std::optional<double> seconds;  // of an iteration, where it ran
    double samples_per_s = 0, tokens_per_s = 0, mfu = 0, bubble = 0;
    std::optional<double> peak_bytes, goodput;  // samples/s that failures leave
    std::string verdict;
  };

  // A column behind those that vary.
  struct Figure {
    const char* title;
    Align align = Align::kRight;
    std::string (*cell)(const Entry& entry);
  };

  [[nodiscard]] std::vector<std::size_t> telling() const;
  [[nodiscard]] std::vector<std::string> titles(const std::vector<std::size_t>& columns) const;
  // Those that some of the points have.
  [[nodiscard]] static std::vector<Figure> figures(const std::vector<const Entry*>& best);
  // The values of a path, and what the column shows of each.
  [[nodiscard]] std::map<std::string, std::string> shown_values(std::size_t path) const;
  [[nodiscard]] std::vector<const Entry*> ranked() const;
  [[nodiscard]] bool any_feasible() const;
  [[nodiscard]] std::string rows(const std::vector<const Entry*>& best) const;
  [[nodiscard]] std::string refusals() const;
  [[nodiscard]] std::string chart() const;
  [[nodiscard]] double merit(const Entry& entry) const;

  bool verbose_;
  std::vector<std::string> paths_;
  std::vector<Entry> entries_;
  // By code: how many, the first's message.
  std::map<std::string, std::pair<std::size_t, std::string>> refused_;
};

}  // namespace stagecraft
