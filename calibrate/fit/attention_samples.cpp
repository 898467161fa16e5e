#include "calibrate/fit/attention_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "calibrate/fit/curve_fits.hpp"
#include "calibrate/samples/statistics.hpp"

namespace stagecraft {
namespace {

bool causal(const Sample& sample) {
  const std::string word = tag_of(sample, "causal", "false");
  return word == "true" || word == "yes" || word == "1";
}

// What a profile adds or takes off beside the curve: gap and fixed part, occupancy, head size. A curve is
// fitted to what is left, so that the price of a sample is the sample.
double curve_seconds(const HardwareProfile& profile, const FlashPass& pass, const Sample& sample) {
  const double length = static_cast<double>(extent_of(sample, "sequence", 0));
  const double heads =
      static_cast<double>(extent_of(sample, "batch", 1)) * static_cast<double>(extent_of(sample, "heads", 1));
  const double constant =
      to_seconds(profile.attention.fixed.value) + to_seconds(profile.host.kernel_gap.value);
  const double share = flash_occupancy(pass.half_blocks.value * profile.device.sms,
                                       heads * std::ceil(length / kFlashBlockQueries)) *
                       flash_head_share(profile.attention.half_head_size.value,
                                        static_cast<double>(extent_of(sample, "head_size", 0)));
  return std::max(sample.median_s - constant, 0.5 * sample.median_s) * share;
}

void fit_attention_curve(ProfileDraft& draft, const std::string& kernel, const std::string& op, bool masked,
                         FlashPass& pass) {
  FlashCurve& curve = masked ? pass.causal : pass.dense;
  const ProfileDraft::Samples samples = draft.pick([&](const Sample& s) {
    return s.family == "attention" && draft.speaks(s) && s.op == op && attention_flops(s) > 0 &&
           causal(s) == masked && tag_of(s, "implementation", kernel) == kernel;
  });
  std::map<double, std::vector<double>> rates;  // by length; of several head counts and sizes the median
  for (const Sample* sample : samples)
    rates[static_cast<double>(extent_of(*sample, "sequence", 1))].push_back(
        attention_flops(*sample) / curve_seconds(draft.profile(), pass, *sample));
  std::vector<AttentionPoint> points;
  for (const auto& [length, of_length] : rates)
    points.push_back({.length = length, .rate = FlopRate(median(of_length))});
  const std::string family = fmt::format("{}, {}, {}", kernel, op, masked ? "causal" : "dense");
  if (points.size() < 3) {
    if (!points.empty())
      draft.tell(family, fmt::format("{} lengths, 3 are needed: the base's curve stays", points.size()));
    return;
  }
  const std::optional<AttentionFit> fit = fit_attention(family, points);
  if (!fit) return draft.tell(family, "the rate shows no limit: the base's curve stays");
  curve = {.rate = FlopRate(rounded_to(fit->rate.count(), 1e9)),
           .half_length = rounded_to(fit->half_length, 1),
           .provenance = Provenance::kMeasured,
           .source = fmt::format("R L/(L + L_half) over {} lengths, each left out: {}; {}", points.size(),
                                 fit->left_out.summary(), draft.origin(samples.size()))};
  draft.use(samples.size());
  draft.tell(family, fmt::format("{}, half of it at {:.0f}", human(curve.rate), curve.half_length),
             fit->left_out);
}

// The kernel called so; a new one starts as the one in use, of which it keeps what was not measured.
FlashKernel& kernel_called(AttentionModel& model, const std::string& name) {
  const auto found = std::ranges::find(model.kernels, name, &FlashKernel::name);
  if (found != model.kernels.end()) return *found;
  FlashKernel fresh = model.kernel();
  fresh.name = name;
  return model.kernels.emplace_back(std::move(fresh));
}

}  // namespace

double attention_flops(const Sample& sample) {
  const auto length = static_cast<double>(extent_of(sample, "sequence", 0));
  const double forward = 4 * length * length * static_cast<double>(extent_of(sample, "batch", 1)) *
                         static_cast<double>(extent_of(sample, "heads", 1)) *
                         static_cast<double>(extent_of(sample, "head_size", 0));
  return (sample.op == "flash_backward" ? 2.5 : 1) * (causal(sample) ? 0.5 : 1) * forward;
}

void fit_attention_samples(ProfileDraft& draft) {
  AttentionModel& model = draft.profile().attention;
  std::set<std::string> names;
  for (const Sample* sample :
       draft.pick([&](const Sample& s) { return s.family == "attention" && draft.speaks(s); }))
    names.insert(tag_of(*sample, "implementation", model.kernel().name));
  for (const std::string& name : names) {
    FlashKernel& kernel = kernel_called(model, name);
    for (const bool masked : {true, false}) {
      fit_attention_curve(draft, name, "flash_forward", masked, kernel.forward);
      fit_attention_curve(draft, name, "flash_backward", masked, kernel.backward);
    }
    if (names.size() == 1) model.in_use = static_cast<std::size_t>(&kernel - model.kernels.data());
  }
}

}  // namespace stagecraft
