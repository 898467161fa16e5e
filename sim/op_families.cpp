#include "sim/op_families.hpp"

#include <numeric>

#include "base/check.hpp"

namespace stagecraft {

OpFamily family_of(Category category) {
  switch (category) {
    case Category::kForward:
    case Category::kBackward:
    case Category::kRecompute:
      return OpFamily::kCompute;
    case Category::kTensorComm:
      return OpFamily::kTensor;
    case Category::kContextComm:
      return OpFamily::kContext;
    case Category::kExpertComm:
      return OpFamily::kExperts;
    case Category::kPipelineComm:
    case Category::kBubble:
      return OpFamily::kPipeline;
    case Category::kDataComm:
      return OpFamily::kData;
    case Category::kOptimizer:
    case Category::kOther:
      return OpFamily::kTail;
  }
  SC_CHECK(false, "every category belongs to a family");
  return OpFamily::kTail;
}

FamilyShares family_shares(const std::array<Duration, kCategoryCount>& breakdown) {
  FamilyShares shares{};
  const double total = to_seconds(std::accumulate(breakdown.begin(), breakdown.end(), Duration{}));
  if (total <= 0) return shares;
  for (std::size_t i = 0; i < breakdown.size(); ++i)
    shares[static_cast<std::size_t>(family_of(static_cast<Category>(i)))] += to_seconds(breakdown[i]) / total;
  return shares;
}

}  // namespace stagecraft
