// Every number of a result, by its path in `run --json`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/explain/amount.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {

struct Figure {
  std::string path;  // "memory.stages.0.peak_bytes"
  Amount value;
};

// All figures, in the order of the document. Texts and flags are no figures.
[[nodiscard]] std::vector<Figure> figures_of(const Report& report);

// The figures at the path, or below it where it names a part of the document ("bubble").
[[nodiscard]] std::vector<Figure> figures_at(std::span<const Figure> figures, std::string_view path);

[[nodiscard]] std::optional<Figure> figure_at(std::span<const Figure> figures, std::string_view path);

}  // namespace stagecraft
