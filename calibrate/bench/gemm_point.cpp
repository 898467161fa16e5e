#include <algorithm>
#include <charconv>

#include "calibrate/bench/gemm.hpp"

namespace stagecraft {
namespace {

bool fp8(const GemmPoint& point) {
  return point.dtype == "e4m3" || point.dtype == "e5m2";
}
double operand_bytes(const GemmPoint& point) {
  return point.dtype == "tf32" ? 4 : fp8(point) ? 1 : 2;
}
bool result_in_fp32(const GemmPoint& point) {
  return point.accumulate || point.dtype == "tf32";
}

const char* layout_name(GemmLayout layout) {
  return layout == GemmLayout::kTN ? "TN" : layout == GemmLayout::kNN ? "NN" : "NT";
}

std::string output_name(const GemmPoint& point) {
  if (point.accumulate) return "fp32_accumulate";
  if (point.dtype == "tf32") return "fp32";
  return point.dtype == "fp16" ? "fp16" : "bf16";
}

}  // namespace

double gemm_flops(const GemmPoint& point) {
  return 2.0 * static_cast<double>(point.m) * static_cast<double>(point.n) * static_cast<double>(point.k) *
         static_cast<double>(point.batch);
}

double gemm_bytes(const GemmPoint& point) {
  const auto m = static_cast<double>(point.m), n = static_cast<double>(point.n),
             k = static_cast<double>(point.k);
  const double result = (result_in_fp32(point) ? 4 : 2) * (point.accumulate ? 2 : 1);
  return static_cast<double>(point.batch) * (operand_bytes(point) * (m * k + k * n) + result * m * n);
}

double gemm_seconds_guess(const GemmPoint& point, const Device& device) {
  const double rate = device.dense_flops_per_s * (fp8(point) ? 2 : point.dtype == "tf32" ? 0.5 : 1);
  return 5e-6 * point.chunks +
         std::max(gemm_flops(point) / rate, gemm_bytes(point) / device.copy_bytes_per_s);
}

Sample gemm_prototype(const GemmPoint& point) {
  Sample sample;
  sample.family = "gemm";
  sample.op = "gemm";
  sample.shape = {{"m", point.m}, {"n", point.n}, {"k", point.k}, {"batch", point.batch}};
  sample.tags = {{"dtype", point.dtype},
                 {"layout", layout_name(point.layout)},
                 {"output", output_name(point)},
                 {"load", "burst"},
                 {"cache", point.hot ? "hot" : "cold"}};
  if (point.chunks > 1) sample.tags["chunks"] = std::to_string(point.chunks);
  if (point.grouped) sample.tags["grouped"] = "strided";
  sample.flops = gemm_flops(point);
  sample.bytes = gemm_bytes(point);
  return sample;
}

std::optional<GemmPoint> gemm_point_of(const Sample& wanted) {
  const auto extent = [&](const char* name, std::int64_t fallback) {
    const auto found = wanted.shape.find(name);
    return found == wanted.shape.end() ? fallback : found->second;
  };
  const auto tag = [&](const char* name, const std::string& fallback) {
    const auto found = wanted.tags.find(name);
    return found == wanted.tags.end() ? fallback : found->second;
  };
  const std::string layout = tag("layout", "TN"), chunks = tag("chunks", "1");
  GemmPoint point{.m = extent("m", 0), .n = extent("n", 0), .k = extent("k", 0), .batch = extent("batch", 1)};
  point.dtype = tag("dtype", "bf16");
  point.layout = layout == "NN" ? GemmLayout::kNN : layout == "NT" ? GemmLayout::kNT : GemmLayout::kTN;
  point.accumulate = layout == "NT" && point.batch == 1;
  point.accumulate = tag("output", output_name(point)) == "fp32_accumulate";
  point.hot = tag("cache", "cold") == "hot";
  (void)std::from_chars(chunks.data(), chunks.data() + chunks.size(), point.chunks);
  point.grouped = wanted.tags.contains("grouped");

  const bool known_dtype =
      fp8(point) || point.dtype == "bf16" || point.dtype == "fp16" || point.dtype == "tf32";
  const bool sized = point.m > 0 && point.n > 0 && point.k > 0 && point.batch > 0 && point.chunks > 0;
  const bool cut = point.chunks == 1 || (point.m % std::max(1, point.chunks) == 0 && point.batch == 1 &&
                                         point.layout != GemmLayout::kNT);
  if (!known_dtype || !sized || !cut) return {};
  // What was said and what would be measured must be the same point.
  Sample measured = gemm_prototype(point);
  measured.tags.try_emplace("chunks", "1");
  const bool same = wanted.family == measured.family && wanted.op == measured.op &&
                    std::ranges::includes(measured.shape, wanted.shape) &&
                    std::ranges::includes(measured.tags, wanted.tags);
  return same ? std::optional(point) : std::nullopt;
}

}  // namespace stagecraft
