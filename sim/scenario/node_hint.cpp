#include "sim/scenario/node_hint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/text.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {
namespace {

// What clouds and others call nodes like ours, in lower case.
struct OtherName {
  std::string_view part, node;
};
//   source  instance types of Amazon EC2 (P3, P4, P5), Google Cloud (A2, A3, A4) and Azure (ND A100 v4)
constexpr OtherName kOtherNames[] = {{"p3dn.24xlarge", "dgx-1v"},
                                     {"p4d.24xlarge", "p4d"},
                                     {"p4de.24xlarge", "p4de"},
                                     {"p5.48xlarge", "p5"},
                                     {"p5e", "dgx-h200"},
                                     {"a2-highgpu-8g", "dgx-a100-40gb"},
                                     {"a2-ultragpu-8g", "dgx-a100-80gb"},
                                     {"a3-highgpu-8g", "dgx-h100"},
                                     {"a3-megagpu-8g", "dgx-h100"},
                                     {"a3-ultragpu-8g", "dgx-h200"},
                                     {"a4-highgpu-8g", "dgx-b200"},
                                     {"nd96asr", "dgx-a100-40gb"},
                                     {"nd96amsr", "dgx-a100-80gb"},
                                     {"v100", "dgx-1v"}};

// "h100", "gb200": a letter or two and three digits.
bool is_gpu(std::string_view word) {
  const std::size_t digits = std::min(word.find_first_of("0123456789"), word.size());
  return digits >= 1 && digits <= 2 && word.size() == digits + 3 &&
         std::ranges::all_of(word.substr(digits), is_digit);
}

// The names with the GPU that `name` says, which counts for more than letters alike.
std::vector<std::string> of_its_gpu(std::string name, const std::vector<std::string>& names) {
  std::ranges::replace(name, '_', '-');
  std::vector<std::string> found;
  for (const std::string_view word : split(name, '-'))
    for (const std::string& other : names)
      if (const auto words = split(other, '-'); is_gpu(word) && std::ranges::find(words, word) != words.end())
        found.push_back(other);
  return found;
}

}  // namespace

std::string node_hint(const std::string& name, const std::vector<std::string>& names) {
  const std::string said = lower_case(name);
  const auto* const called = std::ranges::find_if(
      kOtherNames, [&](const OtherName& other) { return said.find(other.part) != std::string::npos; });
  if (called != std::end(kOtherNames)) return in_quotes(called->node) + " is like it";
  std::vector<std::string> alike = of_its_gpu(said, names);
  const std::string nearest = suggest(name, alike, 0);
  if (alike.empty() || !nearest.empty()) return nearest;
  for (std::string& node : alike) node = in_quotes(node);
  return fmt::format("did you mean {}?", join(alike, " or "));
}

}  // namespace stagecraft
