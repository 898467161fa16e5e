#include "formats/kineto_arguments.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {

std::int64_t elements_of(const Extents& dims) {
  constexpr std::int64_t kMost = 1LL << 50;
  if (dims.empty()) return 0;
  std::int64_t all = 1;
  for (const std::int64_t extent : dims) {
    if (extent <= 0 || all > kMost / extent) return 0;
    all *= extent;
  }
  return all;
}

int type_size(std::string_view type) {
  constexpr std::pair<std::string_view, int> kSizes[] = {
      {"float", 4}, {"c10::BFloat16", 2}, {"c10::Half", 2},   {"double", 8},       {"long int", 8},
      {"int", 4},   {"bool", 1},          {"signed char", 1}, {"unsigned char", 1}};
  if (type.starts_with("c10::Float8")) return 1;
  const auto* const found = std::ranges::find(kSizes, type, &std::pair<std::string_view, int>::first);
  return found == std::end(kSizes) ? 0 : found->second;
}

std::string dtype_word(std::string_view type) {
  if (type == "c10::BFloat16") return "bf16";
  if (type == "c10::Half") return "fp16";
  if (type == "float") return "fp32";
  return std::string(type);
}

TensorArgument tensor_argument(const KinetoInputs& inputs, std::size_t at) {
  if (at >= inputs.dims.size() || at >= inputs.types.size()) return {};
  return {.dims = &inputs.dims[at], .type = inputs.types[at]};
}

namespace {

// Extents of the result of tensors that are spread over each other; empty where they do not fit.
Extents spread(const Extents& a, const Extents& b) {
  Extents out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) return {};
    out[out.size() - 1 - i] = std::max(of_a, of_b);
  }
  return out;
}

}  // namespace

std::optional<Broadcast> broadcast_of(const KinetoInputs& inputs) {
  Broadcast out;
  Extents result;
  int widest = 0;
  for (std::size_t i = 0; i < inputs.dims.size() && i < inputs.types.size(); ++i) {
    const std::int64_t elements = elements_of(inputs.dims[i]);
    if (elements == 0) continue;  // a number
    const int size = type_size(inputs.types[i]);
    if (size == 0) return std::nullopt;
    out.bytes += static_cast<double>(elements) * size;
    if (size > widest) {
      widest = size;
      out.type = inputs.types[i];
    }
    result = result.empty() ? inputs.dims[i] : spread(result, inputs.dims[i]);
    if (result.empty()) return std::nullopt;
  }
  out.elements = elements_of(result);
  out.bytes += static_cast<double>(out.elements) * widest;
  return out.elements > 0 ? std::optional(out) : std::nullopt;
}

}  // namespace stagecraft
