// A profile under construction: a copy of the base, which each family of samples overwrites where it has
// measurements.
//
// A family's own file (gemm_samples, attention_samples) selects its samples, fits them and sets constants.
// The common parts are here: the list of samples, the source of a measured constant, and the result of each
// family.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "calibrate/fit/fit_errors.hpp"
#include "calibrate/fit/fit_profile.hpp"
#include "calibrate/fit/sample_set.hpp"
#include "calibrate/profile/hardware_profile.hpp"

namespace stagecraft {

class ProfileDraft {
 public:
  using Samples = std::vector<const Sample*>;

  // `set` outlives the draft.
  ProfileDraft(const SampleSet& set, const HardwareProfile& base);

  // The samples that are `wanted`, in their order.
  template <class Wanted>
  [[nodiscard]] Samples pick(const Wanted& wanted) const {
    Samples found;
    for (const Sample& sample : set_.samples)
      if (wanted(sample)) found.push_back(&sample);
    return found;
  }
  // Samples of a training run speak where their family has none of a benchmark.
  [[nodiscard]] bool speaks(const Sample& sample) const;
  // "183 samples on NVIDIA H200, driver 580.159.04, newest of 2026-11-21"
  [[nodiscard]] std::string origin(std::size_t samples) const;

  [[nodiscard]] const HardwareProfile& profile() const { return out_.profile; }
  [[nodiscard]] HardwareProfile& profile() { return out_.profile; }
  [[nodiscard]] ProfileRemarks& remarks() { return out_.remarks; }

  // A constant fitted on these samples, and the method.
  template <class T>
  void measured(Sourced<T>& constant, T value, const Samples& samples, const std::string& how) {
    constant = {
        .value = value, .provenance = Provenance::kMeasured, .source = how + "; " + origin(samples.size())};
    use(samples);
  }
  // A sample may serve several constants.
  void use(const Samples& samples) { used_.insert(samples.begin(), samples.end()); }
  void tell(std::string family, std::string outcome, FitErrors errors = {});
  // A sample that is used, though neither its neighbours nor the fit of all understand it.
  void doubt(const Sample& sample, const RowError& left_out);

  [[nodiscard]] FittedProfile finished() &&;

 private:
  const SampleSet& set_;
  FittedProfile out_;
  std::set<const Sample*> used_;
};

// Ratios between the times of two samples each, and of each pair the one that the ratio is of.
struct SampleRatios {
  std::vector<double> values{};
  ProfileDraft::Samples samples{};
  void add(const Sample& of, double value) {
    values.push_back(value);
    samples.push_back(&of);
  }
};

[[nodiscard]] std::string tag_of(const Sample& sample, const std::string& key, const std::string& fallback);
[[nodiscard]] std::int64_t extent_of(const Sample& sample, const std::string& key, std::int64_t fallback);
// ", driver 580.159.04"; a trace of a training run does not say its driver.
[[nodiscard]] std::string driver_text(const SampleSetup& setup);
// The nearest multiple of the step: a constant has no more digits than its samples give it.
[[nodiscard]] double rounded_to(double value, double step);

}  // namespace stagecraft
