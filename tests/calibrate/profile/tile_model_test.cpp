#include "calibrate/profile/tile_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/check.hpp"

namespace stagecraft {
namespace {

// One tile and no prologue: Q is the share of full waves, as with pencil and paper.
GemmModel one_tile(std::int64_t m, std::int64_t n) {
  GemmModel model;
  model.tiles = {{.m = m, .n = n, .rate = 1}};
  model.prologue_k = 0;
  model.split_k_max = 1;
  return model;
}

constexpr int kSms = 108;  // of an A100

// 16 x 12 = 192 tiles in 2 waves of 108 SMs.
TEST(TileQuantisation, IsTheShareOfTheWavesThatTilesFill) {
  EXPECT_DOUBLE_EQ(tile_quantisation(one_tile(128, 256), kSms, {.m = 2048, .n = 3072, .k = 4096}),
                   192.0 / 216);
  EXPECT_DOUBLE_EQ(tile_quantisation(one_tile(128, 256), 132, {.m = 2048, .n = 3072, .k = 4096}),
                   192.0 / 264);
}

TEST(TileQuantisation, IsOneWhenTilesFillEveryWave) {
  EXPECT_DOUBLE_EQ(tile_quantisation(one_tile(128, 128), kSms, {.m = 128 * 12, .n = 128 * 9, .k = 512}), 1);
}

TEST(TileQuantisation, PaysForThePaddingOfEdgeTiles) {
  EXPECT_DOUBLE_EQ(tile_quantisation(one_tile(128, 128), 1, {.m = 64, .n = 128, .k = 512}), 0.5);
  EXPECT_DOUBLE_EQ(tile_quantisation(one_tile(128, 128), 1, {.m = 129, .n = 128, .k = 512}), 129.0 / 256);
}

TEST(TileQuantisation, PaysThePrologueOncePerTile) {
  GemmModel model = one_tile(128, 128);
  model.prologue_k = 50;
  EXPECT_DOUBLE_EQ(tile_quantisation(model, 1, {.m = 128, .n = 128, .k = 450}), 450.0 / 500);
}

// 50 tiles on 100 SMs: the big tile leaves half of them idle, tiles of half the size at rate 0.8 fill them.
TEST(TileQuantisation, TakesTheCheapestTile) {
  GemmModel model = one_tile(128, 256);
  const GemmSize size{.m = 128 * 50, .n = 256, .k = 4096};
  EXPECT_DOUBLE_EQ(tile_quantisation(model, 100, size), 0.5);
  model.tiles.push_back({.m = 128, .n = 128, .rate = 0.8});
  EXPECT_DOUBLE_EQ(tile_quantisation(model, 100, size), 0.8);
}

TEST(TileQuantisation, CutsTheSumWhereTilesAreFew) {
  GemmModel model = one_tile(128, 128);
  const GemmSize size{.m = 128 * 50, .n = 128, .k = 4096};
  EXPECT_DOUBLE_EQ(tile_quantisation(model, 100, size), 0.5);
  model.split_k_max = 2;
  EXPECT_DOUBLE_EQ(tile_quantisation(model, 100, size), 1);
}

// k = 1024 in two slices: each is charged the minimum depth of 1024, so nothing is gained.
TEST(TileQuantisation, ChargesAShallowSliceTheMinimumDepth) {
  GemmModel model = one_tile(128, 128);
  model.split_k_max = 2;
  EXPECT_DOUBLE_EQ(tile_quantisation(model, 100, {.m = 128 * 50, .n = 128, .k = 1024}), 0.5);
  EXPECT_DOUBLE_EQ(tile_quantisation(model, 100, {.m = 128 * 50, .n = 128, .k = 1536}), 0.75);
}

TEST(TileQuantisation, NeverCutsTheSumOfABatch) {
  GemmModel model = one_tile(128, 128);
  model.split_k_max = 4;
  EXPECT_DOUBLE_EQ(tile_quantisation(model, 100, {.m = 128, .n = 128, .k = 4096, .batch = 50}), 0.5);
}

TEST(TileQuantisation, RefusesAnEmptyShape) {
  EXPECT_THROW(static_cast<void>(tile_quantisation(one_tile(128, 128), kSms, {.m = 0, .n = 1, .k = 1})),
               InternalError);
  EXPECT_THROW(static_cast<void>(tile_quantisation(GemmModel{}, kSms, {.m = 1, .n = 1, .k = 1})),
               InternalError);
}

// Half of the waves idle, layout efficiency 0.8: the formula says 0.4; the row says 0.5.
TEST(CompareWithFormula, KeepsTheLogarithmOfRowOverFormula) {
  GemmModel model = one_tile(128, 128);
  model.efficiency_tn.value = 0.8;
  model.table.rows = {{.m = 128 * 50, .n = 128, .k = 4096, .layout = GemmLayout::kTN, .efficiency = 0.5}};
  compare_with_formula(model, 100);
  EXPECT_DOUBLE_EQ(model.table.rows[0].log_ratio, std::log(0.5 / 0.4));
}

}  // namespace
}  // namespace stagecraft
