#include "calibrate/fit/fit_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "calibrate/fit/attention_samples.hpp"
#include "calibrate/fit/curve_fits.hpp"
#include "calibrate/fit/gemm_fit.hpp"
#include "calibrate/fit/gemm_samples.hpp"
#include "calibrate/fit/nccl_tests.hpp"
#include "calibrate/fit/possible_samples.hpp"
#include "calibrate/fit/profile_draft.hpp"
#include "calibrate/samples/statistics.hpp"

namespace stagecraft {
namespace {

// Multiprocessors that collectives hold: between these lie the 20 that DeepSeek-V3 gives its exchanges
// (arXiv 2412.19437, section 3.2.2) and the 16 or 24 channels of an NCCL ring inside a node of eight.
constexpr std::int64_t kLeastCollectiveSms = 16, kMostCollectiveSms = 24;

constexpr double kMostSlowdown = 2;  // largest value in a profile

ProfileDraft::Samples empty_kernels(const ProfileDraft& draft, const std::string& stream) {
  return draft.pick([&](const Sample& s) {
    return s.family == "system" && s.op == "empty_kernel" && tag_of(s, "stream", "") == stream;
  });
}

double median_seconds(const ProfileDraft::Samples& samples) {
  std::vector<double> seconds;
  for (const Sample* sample : samples) seconds.push_back(sample->median_s);
  return median(seconds);
}

// Was an empty kernel timed both in a busy stream and alone?
bool launch_was_timed(const ProfileDraft& draft) {
  return !empty_kernels(draft, "busy").empty() && !empty_kernels(draft, "alone").empty();
}

// t0, the time subtracted from GEMMs in a burst, exceeds the time of an empty kernel: GEMMs fill and drain,
// and that part remains when the stream is busy.
void fit_kernel_gap(ProfileDraft& draft, std::optional<double> t0_seconds) {
  ProfileDraft::Samples samples = empty_kernels(draft, "busy");
  if (samples.empty()) return;
  const double busy = median_seconds(samples);
  std::string how = "an empty kernel in a busy stream, median";
  const ProfileDraft::Samples alone = empty_kernels(draft, "alone");
  const double fill = t0_seconds && !alone.empty() ? std::max(*t0_seconds - median_seconds(alone), 0.0) : 0;
  if (fill > 0) {
    how += fmt::format(
        " ({}), and what fills and drains in a product: {} of launch and drain less the {} of an "
        "empty kernel alone",
        human(from_seconds(busy)), human(from_seconds(*t0_seconds)),
        human(from_seconds(median_seconds(alone))));
    samples.insert(samples.end(), alone.begin(), alone.end());
  }
  const Duration gap = from_seconds(rounded_to(busy + fill, 1e-9));
  draft.measured(draft.profile().host.kernel_gap, gap, samples, how);
  draft.tell("system, kernel gap", human(gap));
}

// A collective is a kernel that copies and adds with this many multiprocessors. A GEMM beside it loses those
// multiprocessors and their memory traffic.
void fit_overlap_slowdown(ProfileDraft& draft) {
  const auto held = [](const Sample& s) { return s.shape.contains("sms") ? s.shape.at("sms") : -1; };
  const ProfileDraft::Samples beside = draft.pick([&](const Sample& s) {
    return s.family == "interference" && s.op == "gemm_beside_reduce" && held(s) >= kLeastCollectiveSms &&
           held(s) <= kMostCollectiveSms;
  });
  SampleRatios slowdowns;
  ProfileDraft::Samples undisturbed;
  for (const Sample* sample : beside) {
    std::map<std::string, std::int64_t> alone = sample->shape;
    alone["sms"] = 0;
    for (const Sample* other : draft.pick([&](const Sample& s) {
           return s.family == "interference" && s.shape == alone &&
                  tag_of(s, "layout", "") == tag_of(*sample, "layout", "");
         })) {
      slowdowns.add(*sample, sample->median_s / other->median_s);
      undisturbed.push_back(other);
    }
  }
  if (slowdowns.values.empty()) return;
  const double slowdown = rounded_to(std::max(median(slowdowns.values), 1.0), 1e-4);
  if (slowdown > kMostSlowdown)
    return draft.tell("interference, overlap slowdown",
                      fmt::format("{:.3f}, more than {:.0f}: the base's stays", slowdown, kMostSlowdown));
  draft.measured(
      draft.profile().gradient_overlap_slowdown, slowdown, slowdowns.samples,
      fmt::format("products beside a kernel that copies and adds with {} to {} multiprocessors, median",
                  kLeastCollectiveSms, kMostCollectiveSms));
  draft.use(undisturbed);
  draft.tell("interference, overlap slowdown", fmt::format("{:.3f}", slowdown));
}

void fit_memory_kernels(ProfileDraft& draft) {
  std::map<std::string, ProfileDraft::Samples> by_op;
  for (const Sample* sample : draft.pick([&](const Sample& s) {
         return s.family == "kernel" && draft.speaks(s) && s.bytes > 0 &&
                tag_of(s, "variant", "fused") == "fused" && tag_of(s, "cache", "cold") == "cold";
       }))
    by_op[sample->op].push_back(sample);
  std::vector<double> shares;
  ProfileDraft::Samples fitted;
  FitErrors errors;
  for (const auto& [op, samples] : by_op) {
    std::vector<CurvePoint> points;
    for (const Sample* sample : samples)
      points.push_back({.size = sample->bytes, .seconds = sample->median_s});
    if (points.size() < 3) continue;
    const std::optional<MemoryFit> fit = fit_memory(op, points);
    if (!fit) continue;
    shares.push_back(fit->bandwidth / draft.profile().device.memory_bandwidth);
    for (const RowError& row : fit->left_out.rows()) errors.add(row.row, 1 + row.error, 1);
    fitted.insert(fitted.end(), samples.begin(), samples.end());
  }
  if (shares.empty()) return;
  const double share = rounded_to(median(shares), 1e-4);
  if (share > kMostOfDataSheet)
    return draft.tell(
        "kernel", fmt::format("{} of the memory bandwidth cannot be: the base's share stays", percent(share)),
        errors);
  draft.measured(draft.profile().memory_efficiency, share, fitted,
                 fmt::format("median of {} fused kernels of t0 + bytes/B; each sample left out: {}",
                             shares.size(), errors.summary()));
  draft.tell("kernel", fmt::format("{} of the memory bandwidth", percent(share)), errors);
}

void fit_group(ProfileDraft& draft, const CollectiveGroup& group, const ProfileDraft::Samples& samples) {
  std::map<double, std::vector<double>> times;  // in place and not: the median
  for (const Sample* sample : samples)
    times[static_cast<double>(extent_of(*sample, "bytes", 1))].push_back(sample->median_s);
  std::vector<CurvePoint> points;
  for (const auto& [bytes, of_size] : times) points.push_back({.size = bytes, .seconds = median(of_size)});
  if (points.size() < kMinCollectivePoints) {
    return draft.tell(group_name(group),
                      fmt::format("{} sizes, {} are needed", points.size(), kMinCollectivePoints));
  }
  if (!shows_bus(points))
    return draft.tell(group_name(group), "launches are what was timed: no size is large enough");
  FittedCollective fitted = fit_collective(group, points);
  fitted.fit.provenance = Provenance::kMeasured;
  fitted.fit.source =
      fmt::format("{}; each size left out: {}", draft.origin(samples.size()), fitted.left_out.summary());
  std::erase_if(draft.profile().collectives,
                [&](const CollectiveFit& other) { return speak_for_same_calls(fitted.fit, other); });
  draft.profile().collectives.push_back(fitted.fit);
  draft.use(samples);
  draft.tell(group_name(group),
             fmt::format("{} + S*f / {}", human(fitted.fit.latency), human(fitted.fit.bus_bandwidth)),
             fitted.left_out);
}

using SamplesByGroup = std::map<CollectiveGroup, ProfileDraft::Samples>;

// A group uses NCCL's own choice of algorithm, as in training, and curves of named algorithms only where that
// was not timed. A profile has one or the other (speak_for_same_calls).
bool chosen_freely(CollectiveGroup group, const SamplesByGroup& groups) {
  if (group.algorithm == "any") return false;
  group.algorithm = "any";
  return groups.contains(group);
}

void fit_collectives(ProfileDraft& draft) {
  SamplesByGroup groups;
  for (const Sample* sample : draft.pick([](const Sample& s) { return s.family == "nccl"; })) {
    const std::optional<CollectiveKind> kind = nccl_collective(sample->op);
    const auto ranks = static_cast<int>(extent_of(*sample, "ranks", 0));
    const auto nodes = static_cast<int>(extent_of(*sample, "nodes", 1));
    if (!kind || ranks < 2 || nodes < 1 || ranks % nodes != 0) continue;
    if (extent_of(*sample, "bytes", 0) <= 0) continue;
    const std::string word = tag_of(*sample, "algorithm", "any");
    const bool known = std::ranges::find(kCollectiveAlgorithms, word) != std::end(kCollectiveAlgorithms);
    groups[{.kind = *kind, .ranks = ranks, .nodes = nodes, .algorithm = known ? word : "any"}].push_back(
        sample);
  }
  for (const auto& [group, samples] : groups) {
    if (chosen_freely(group, groups))
      draft.tell(group_name(group), "left out: what NCCL takes for itself was timed");
    else
      fit_group(draft, group, samples);
  }
}

// A family's constants may stand on those of a family before it.
FittedProfile fit_families(const SampleSet& samples, const HardwareProfile& base) {
  ProfileDraft draft(samples, base);
  if (samples.again > 0)
    draft.tell("points measured again", fmt::format("{}, the last of each counts", samples.again));
  tell_limited_gemms(draft);
  if (launch_was_timed(draft)) {
    fit_kernel_gap(draft, fit_gemm_samples(draft, true));
  } else {
    fit_kernel_gap(draft, std::nullopt);
    fit_gemm_samples(draft, false);
  }
  fit_overlap_slowdown(draft);
  fit_memory_kernels(draft);
  fit_attention_samples(draft);
  fit_collectives(draft);
  return std::move(draft).finished();
}

// Nobody scored the new profile: intervals are taken to be as wide as with its base.
void assume_residuals_of(const std::string& base, HardwareProfile& profile) {
  if (!profile.residuals) return;
  const auto assume = [&](Sourced<double>& item) {
    item.provenance = Provenance::kAssumed;
    item.source = fmt::format("of the base {}, this profile was not scored: {}", base, item.source);
  };
  for (Sourced<double>& family : profile.residuals->families) assume(family);
  assume(profile.residuals->run);
  assume(profile.residuals->correlation);
  for (Sourced<double>& unnamed : profile.residuals->unnamed) assume(unnamed);
}

}  // namespace

std::optional<FittedProfile> fit_profile(const SampleSet& samples, const HardwareProfile& base,
                                         const std::string& name, Diagnostics& diagnostics) {
  if (samples.setup.device != base.device.name) {
    diagnostics.error(
        {.code = "other-device",
         .message = fmt::format("the samples are of '{}', the base profile is of '{}'", samples.setup.device,
                                base.device.name),
         .hint = "copy the base and write the device section from the data sheet: its number of SMs, "
                 "memory and peaks are what efficiencies are shares of"});
    return std::nullopt;
  }
  if (!are_possible(samples, base, diagnostics)) return std::nullopt;
  FittedProfile fitted = fit_families(samples, base);
  for (const Diagnostic& doubt : fitted.doubts) diagnostics.warning(doubt);
  if (fitted.unused == samples.samples.size()) {
    std::string message =
        fmt::format("none of {} samples serves a constant of a profile", samples.samples.size());
    for (const FamilyFit& family : fitted.families)
      message += fmt::format("; {}: {}", family.family, family.outcome);
    diagnostics.error(
        {.code = "nothing-fitted",
         .message = std::move(message),
         .hint = fmt::format("a profile needs GEMMs of {} shapes, fused kernels, attention of 3 lengths or "
                             "collectives of {} sizes",
                             kMinGemmPoints, kMinCollectivePoints)});
    return std::nullopt;
  }
  assume_residuals_of(base.name, fitted.profile);
  fitted.profile.name = name;
  fitted.profile.date = std::max(samples.date.substr(0, 10), base.date);
  fitted.profile.made_by = "stagecraft calibrate fit, base " + base.name;
  fitted.remarks.heading =
      fmt::format("Fitted by stagecraft from {} samples on {}{}.", samples.samples.size() - fitted.unused,
                  samples.setup.device, driver_text(samples.setup));
  return fitted;
}

std::string to_yaml(const FittedProfile& fitted) {
  return write_profile(fitted.profile, fitted.remarks);
}

}  // namespace stagecraft
