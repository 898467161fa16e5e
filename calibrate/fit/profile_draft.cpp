#include "calibrate/fit/profile_draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace stagecraft {

ProfileDraft::ProfileDraft(const SampleSet& set, const HardwareProfile& base) : set_(set) {
  out_.profile = base;
  out_.remarks.table =
      base.gemm.table.rows.empty() ? Provenance::kPublished : base.gemm.table.rows.front().provenance;
}

bool ProfileDraft::speaks(const Sample& sample) const {
  return tag_of(sample, "load", "burst") != "training" ||
         std::ranges::none_of(set_.samples, [&](const Sample& other) {
           return other.family == sample.family && tag_of(other, "load", "burst") != "training";
         });
}

std::string ProfileDraft::origin(std::size_t samples) const {
  return fmt::format("{} samples on {}{}{}", samples, set_.setup.device, driver_text(set_.setup),
                     set_.date.empty() ? "" : ", newest of " + set_.date);
}

void ProfileDraft::tell(std::string family, std::string outcome, FitErrors errors) {
  out_.families.push_back(
      {.family = std::move(family), .outcome = std::move(outcome), .left_out = std::move(errors)});
}

void ProfileDraft::doubt(const Sample& sample, const RowError& left_out) {
  const auto at = static_cast<std::size_t>(&sample - set_.samples.data());
  out_.doubts.push_back(
      {.severity = Severity::kWarning,
       .code = "doubtful-sample",
       .where = at < set_.places.size() ? set_.places[at] : SourceLocation{},
       .message = fmt::format("{} took {:.2g} times what the other samples say", left_out.row,
                              1 / std::max(1 + left_out.error, 1e-9)),
       .hint = "it is a row of the fitted profile all the same: measure it again, or take its line out"});
}

FittedProfile ProfileDraft::finished() && {
  out_.unused = set_.samples.size() - used_.size();
  return std::move(out_);
}

std::string tag_of(const Sample& sample, const std::string& key, const std::string& fallback) {
  const auto found = sample.tags.find(key);
  return found == sample.tags.end() ? fallback : found->second;
}

std::int64_t extent_of(const Sample& sample, const std::string& key, std::int64_t fallback) {
  const auto found = sample.shape.find(key);
  return found == sample.shape.end() ? fallback : found->second;
}

std::string driver_text(const SampleSetup& setup) {
  return setup.driver.empty() ? "" : ", driver " + setup.driver;
}

// Steps below 1 divide 1, so that the file has 0.8713 and not 0.8713000000000001.
double rounded_to(double value, double step) {
  if (step >= 1) return std::round(value / step) * step;
  const double parts = std::round(1 / step);
  return std::round(value * parts) / parts;
}

}  // namespace stagecraft
