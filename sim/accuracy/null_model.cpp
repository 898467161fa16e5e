#include "sim/accuracy/null_model.hpp"

#include <algorithm>

#include "calibrate/samples/statistics.hpp"

namespace stagecraft {

double null_bubble(int stages, int micro_batches, int chunks, bool split_backward) {
  constexpr double kOfSplit = 1.0 / 3;
  const double idle = static_cast<double>(stages - 1) / (static_cast<double>(micro_batches) * chunks);
  return 1 + idle * (split_backward ? kOfSplit : 1);
}

NullModel fit_null_model(std::span<const NullRow> rows, bool with_bubble) {
  NullModel model;
  if (rows.empty() || std::ranges::any_of(rows, [](const NullRow& row) { return row.flops <= 0; }))
    return model;
  const auto work = [&](const NullRow& row) { return row.flops * (with_bubble ? row.bubble : 1); };
  std::vector<double> rates;
  for (const NullRow& row : rows) rates.push_back(work(row) / row.measured);
  model.rate = median(rates);
  for (const NullRow& row : rows) model.errors.push_back(work(row) / model.rate / row.measured - 1);
  return model;
}

}  // namespace stagecraft
