#include "calibrate/profile/tile_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/ceil_div.hpp"
#include "base/check.hpp"

namespace stagecraft {

namespace {

// One way to cut a GEMM into tiles.
struct Cut {
  const GemmTile& tile;
  std::int64_t tiles = 0;  // of one slice
  std::int64_t slices = 1;
};

// Multiply-adds that the busiest SM is charged for, in units of the largest tile's rate.
double tile_cost(const GemmModel& model, int sms, const GemmSize& size, const Cut& cut, double prologue) {
  const auto& [tile, tiles, slices] = cut;
  const auto waves = static_cast<double>(ceil_div(tiles * slices, sms));
  double depth = static_cast<double>(size.k) / static_cast<double>(slices);
  double adding_up = 0;
  if (slices > 1) {
    depth = std::max(depth, static_cast<double>(model.split_k_min_depth));
    adding_up = prologue * static_cast<double>(size.m) * static_cast<double>(size.n) *
                static_cast<double>(slices) / sms;
  }
  return waves * static_cast<double>(tile.m * tile.n) * (depth + prologue) / tile.rate + adding_up;
}

double log_distance_squared(const GemmRow& row, const GemmSize& size) {
  const auto square = [](std::int64_t a, std::int64_t b) {
    const double ratio = std::log(static_cast<double>(a) / static_cast<double>(b));
    return ratio * ratio;
  };
  return square(row.m, size.m) + square(row.n, size.n) + square(row.k, size.k);
}

}  // namespace

double tile_quantisation(const GemmModel& model, int sms, const GemmSize& size, Precision precision) {
  SC_CHECK(size.m > 0 && size.n > 0 && size.k > 0 && size.batch > 0, "a GEMM has an empty dimension");
  SC_CHECK(sms > 0 && !model.tiles.empty(), "the tile model has nothing to choose from");
  const std::int64_t max_slices = size.batch > 1 ? 1 : std::max<std::int64_t>(model.split_k_max, 1);
  const double prologue = model.prologue(precision);
  double cheapest = std::numeric_limits<double>::infinity();
  for (const GemmTile& tile : model.tiles) {
    Cut cut{.tile = tile, .tiles = ceil_div(size.m, tile.m) * ceil_div(size.n, tile.n) * size.batch};
    for (; cut.slices <= max_slices; ++cut.slices)
      cheapest = std::min(cheapest, tile_cost(model, sms, size, cut, prologue));
  }
  const double useful = static_cast<double>(size.m) * static_cast<double>(size.n) *
                        static_cast<double>(size.k) * static_cast<double>(size.batch) / sms;
  return useful / cheapest;
}

double formula_efficiency(const GemmModel& model, int sms, GemmLayout layout, const GemmSize& size,
                          Precision precision) {
  const double formula = model.efficiency(layout).value * tile_quantisation(model, sms, size, precision);
  return precision == Precision::kFp8 ? formula * model.fp8_factor.value : formula;
}

void compare_with_formula(GemmModel& model, int sms) {
  const auto compare = [&](std::vector<GemmRow>& rows, Precision precision) {
    for (GemmRow& row : rows) {
      const GemmSize size{.m = row.m, .n = row.n, .k = row.k};
      row.log_ratio = std::log(row.efficiency / formula_efficiency(model, sms, row.layout, size, precision));
    }
  };
  compare(model.table.rows, Precision::kBf16);
  if (model.fp8_table) compare(model.fp8_table->rows, Precision::kFp8);
}

const GemmTable* table_of(const GemmModel& model, Precision precision) {
  if (std::ranges::find(model.table_precisions, precision) != model.table_precisions.end())
    return &model.table;
  return precision == Precision::kFp8 && model.fp8_table ? &*model.fp8_table : nullptr;
}

TablePull table_pull(const GemmTable& table, GemmLayout layout, const GemmSize& size) {
  if (table.radius <= 0) return {};
  double weight = 0;
  double pull = 0;
  for (const GemmRow& row : table.rows) {
    if (row.layout != layout) continue;
    const double distance = log_distance_squared(row, size);
    if (distance == 0) continue;
    const double w = std::exp(-distance / (table.radius * table.radius));
    weight += w;
    pull += w * row.log_ratio;
  }
  return {.weight = weight, .pull = pull};
}

double between_rows(const GemmTable& table, GemmLayout layout, const GemmSize& size, double efficiency) {
  const auto work = [](const auto& of) {
    return static_cast<double>(of.m) * static_cast<double>(of.n) * static_cast<double>(of.k);
  };
  const double time = work(size) / efficiency;
  double held = 0, holding = std::numeric_limits<double>::infinity();
  for (const GemmRow& row : table.rows) {
    if (row.layout != layout) continue;
    if (row.m <= size.m && row.n <= size.n && row.k <= size.k)
      held = std::max(held, work(row) / row.efficiency);
    if (row.m >= size.m && row.n >= size.n && row.k >= size.k)
      holding = std::min(holding, work(row) / row.efficiency);
  }
  const auto [least, most] = std::minmax(held, holding);
  return least <= time && time <= most ? efficiency : work(size) / std::clamp(time, least, most);
}

double TablePull::factor(double prior) const {
  return pull == 0 ? 1 : std::exp(pull / (weight + prior));
}

}  // namespace stagecraft
