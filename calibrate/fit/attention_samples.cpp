#include "calibrate/fit/attention_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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

// Grid of half blocks and half head sizes, tried where the samples can distinguish them.
constexpr double kHalfBlocksStep = 0.1, kMostHalfBlocks = 3;
constexpr double kHalfHeadSizeStep = 10, kMostHalfHeadSize = 100;
constexpr std::size_t kMinForOccupancy = 8;  // samples of a pass
constexpr std::size_t kMinLengths = 3;

// PyTorch's backends are kernels that profiles know by their own names.
constexpr std::pair<std::string_view, std::string_view> kBackends[] = {{"pytorch_flash", "fa2"},
                                                                       {"pytorch_cudnn", "cudnn"}};

bool in_a_burst(const Sample& sample) {
  return tag_of(sample, "load", "burst") != "sustained";
}

// The heads of all sequences of a batch: blocks of queries come from each.
std::int64_t heads_of(const Sample& sample) {
  return extent_of(sample, "batch", 1) * extent_of(sample, "heads", 1);
}

// Do samples of one length have different numbers of heads? With one number of heads, few blocks and short
// rows are the same samples: nothing tells half blocks and half length apart.
bool several_heads_at_a_length(const ProfileDraft::Samples& samples) {
  std::map<std::int64_t, std::set<std::int64_t>> heads;
  for (const Sample* sample : samples) heads[extent_of(*sample, "sequence", 1)].insert(heads_of(*sample));
  return std::ranges::any_of(heads, [](const auto& of_length) { return of_length.second.size() > 1; });
}

// Factor on a rate for few blocks and for another head size.
double share_of(const HardwareProfile& profile, double half_blocks, double half_head_size,
                const Sample& sample) {
  const double length = static_cast<double>(extent_of(sample, "sequence", 0));
  const auto heads = static_cast<double>(heads_of(sample));
  return flash_occupancy(half_blocks * profile.device.sms, heads * length / kFlashBlockQueries) *
         flash_head_share(half_head_size, static_cast<double>(extent_of(sample, "head_size", 0)));
}

// One pass of one kernel: its samples in short runs, and the fraction of their rate that it keeps in a long
// run.
class PassFit {
 public:
  PassFit(ProfileDraft& draft, std::string kernel, std::string op, FlashPass& pass,
          const ProfileDraft::Samples& of_kernel)
      : draft_(draft), kernel_(std::move(kernel)), op_(std::move(op)), pass_(pass) {
    for (const Sample* sample : of_kernel) {
      if (sample->op != op_ || attention_flops(*sample) <= 0) continue;
      if (!in_a_burst(*sample))
        long_runs_.push_back(sample);
      else
        (causal(*sample) ? causal_ : dense_).push_back(sample);
    }
  }

  // The half blocks that are nearest to the samples under this half head size, and the sum of relative errors
  // with them.
  struct Choice {
    double half_blocks = 0, error = 0;
  };
  [[nodiscard]] Choice best(double half_head_size) const {
    if (!knows_occupancy()) return {pass_.half_blocks.value, error(pass_.half_blocks.value, half_head_size)};
    Choice best{.half_blocks = 0, .error = std::numeric_limits<double>::infinity()};
    for (int step = 0; step * kHalfBlocksStep <= kMostHalfBlocks; ++step) {
      const double half_blocks = rounded_to(step * kHalfBlocksStep, kHalfBlocksStep);
      if (const double sum = error(half_blocks, half_head_size); sum < best.error) best = {half_blocks, sum};
    }
    return best;
  }

  void fit(double half_head_size) {
    ProfileDraft::Samples samples = causal_;
    samples.insert(samples.end(), dense_.begin(), dense_.end());
    if (knows_occupancy())
      draft_.measured(pass_.half_blocks, best(half_head_size).half_blocks, samples,
                      "nearest to samples of several numbers of heads");
    fit_curve(causal_, true, half_head_size, pass_.causal);
    fit_curve(dense_, false, half_head_size, pass_.dense);
  }

  [[nodiscard]] bool knows_head_sizes() const {
    std::set<std::int64_t> sizes;
    for (const Sample* sample : causal_) sizes.insert(extent_of(*sample, "head_size", 0));
    return sizes.size() > 1 && causal_.size() >= kMinForOccupancy;
  }

 private:
  // Samples enough, and several numbers of heads under a mask that gets a curve.
  [[nodiscard]] bool knows_occupancy() const {
    if (causal_.size() + dense_.size() < kMinForOccupancy) return false;
    return std::ranges::any_of(std::array{&causal_, &dense_}, [](const ProfileDraft::Samples* samples) {
      return lengths(*samples) >= kMinLengths && several_heads_at_a_length(*samples);
    });
  }
  // The fixed part and the gap belong to the profile. The curve is fitted to the rest, so that the price of a
  // sample equals the sample.
  [[nodiscard]] double constant() const {
    return to_seconds(draft_.profile().attention.fixed.value) +
           to_seconds(draft_.profile().host.kernel_gap.value);
  }
  [[nodiscard]] static std::size_t lengths(const ProfileDraft::Samples& samples) {
    std::set<std::int64_t> seen;
    for (const Sample* sample : samples) seen.insert(extent_of(*sample, "sequence", 1));
    return seen.size();
  }
  [[nodiscard]] std::vector<AttentionPoint> points(const ProfileDraft::Samples& samples, double half_blocks,
                                                   double half_head_size) const {
    std::vector<AttentionPoint> points;
    for (const Sample* sample : samples) {
      const double seconds = std::max(sample->median_s - constant(), 0.5 * sample->median_s);
      const double share = share_of(draft_.profile(), half_blocks, half_head_size, *sample);
      points.push_back({.length = static_cast<double>(extent_of(*sample, "sequence", 1)),
                        .rate = FlopRate(attention_flops(*sample) / (seconds * share))});
    }
    return points;
  }
  // Sum of errors over the samples of both masks, where they make a curve.
  [[nodiscard]] double error(double half_blocks, double half_head_size) const {
    double sum = 0;
    for (const ProfileDraft::Samples* samples : {&causal_, &dense_}) {
      if (lengths(*samples) < kMinLengths) continue;
      const std::vector<AttentionPoint> of_mask = points(*samples, half_blocks, half_head_size);
      const std::optional<AttentionFit> curve = attention_curve(of_mask);
      if (!curve) return std::numeric_limits<double>::infinity();
      for (const AttentionPoint& point : of_mask) sum += std::abs(point.rate / curve->at(point.length) - 1);
    }
    return sum;
  }
  // Rate in a long run over that of a burst of the same shape; empty where no long run was measured.
  [[nodiscard]] SampleRatios under_load() const {
    SampleRatios ratios;
    for (const Sample* loaded : long_runs_)
      for (const ProfileDraft::Samples* bursts : {&causal_, &dense_})
        for (const Sample* burst : *bursts)
          if (burst->shape == loaded->shape && causal(*burst) == causal(*loaded))
            ratios.add(*loaded, burst->median_s / loaded->median_s);
    return ratios;
  }
  void fit_curve(const ProfileDraft::Samples& samples, bool masked, double half_head_size,
                 FlashCurve& curve) {
    const std::string family = fmt::format("{}, {}, {}", kernel_, op_, masked ? "causal" : "dense");
    if (lengths(samples) < kMinLengths) {
      if (!samples.empty())
        draft_.tell(family, fmt::format("{} lengths, {} are needed: the base's curve stays", lengths(samples),
                                        kMinLengths));
      return;
    }
    const std::optional<AttentionFit> fit =
        fit_attention(family, points(samples, pass_.half_blocks.value, half_head_size));
    if (!fit) return draft_.tell(family, "the rate shows no limit: the base's curve stays");
    const SampleRatios loaded = under_load();
    const double held = loaded.values.empty() ? 1 : median(loaded.values);
    curve = {
        .rate = FlopRate(rounded_to(fit->rate.count() * held, 1e9)),
        .half_length = rounded_to(fit->half_length, 1),
        .provenance = Provenance::kMeasured,
        .source = fmt::format("R L/(L + L_half) over {} lengths, each sample left out: {}{}; {}",
                              lengths(samples), fit->left_out.summary(),
                              loaded.values.empty() ? "" : fmt::format("; {:.3f} of it in a long run", held),
                              draft_.origin(samples.size()))};
    draft_.use(samples);
    draft_.use(loaded.samples);
    draft_.tell(family, fmt::format("{}, half of it at {:.0f}", human(curve.rate), curve.half_length),
                fit->left_out);
  }

  ProfileDraft& draft_;
  std::string kernel_, op_;
  FlashPass& pass_;
  ProfileDraft::Samples causal_{}, dense_{}, long_runs_{};
};

double nearest_half_head_size(const PassFit& forward, const PassFit& backward) {
  double nearest = 0, least = std::numeric_limits<double>::infinity();
  for (int step = 0; step * kHalfHeadSizeStep <= kMostHalfHeadSize; ++step) {
    const double tried = step * kHalfHeadSizeStep;
    const double error = forward.best(tried).error + backward.best(tried).error;
    if (error >= least) continue;
    least = error;
    nearest = tried;
  }
  return nearest;
}

// The profile's name of the kernel that a sample ran.
std::string kernel_of(const Sample& sample, const AttentionModel& model) {
  const std::string word = tag_of(sample, "implementation", model.kernel().name);
  for (const auto& [backend, kernel] : kBackends)
    if (word == backend) return std::string(kernel);
  return word;
}

// Samples by kernel. A PyTorch backend stands for its kernel where the kernel was not measured itself.
std::map<std::string, ProfileDraft::Samples> samples_by_kernel(const ProfileDraft& draft) {
  const AttentionModel& model = draft.profile().attention;
  std::map<std::string, ProfileDraft::Samples> by_word, by_kernel;
  for (const Sample* sample :
       draft.pick([&](const Sample& s) { return s.family == "attention" && draft.speaks(s); }))
    by_word[tag_of(*sample, "implementation", model.kernel().name)].push_back(sample);
  for (const auto& [word, samples] : by_word) {
    const std::string kernel = kernel_of(*samples.front(), model);
    if (kernel == word || !by_word.contains(kernel)) by_kernel[kernel] = samples;
  }
  return by_kernel;
}

// The kernel of this name. A new one starts as a copy of the one in use and keeps its values where nothing
// was measured.
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
  const auto by_kernel = samples_by_kernel(draft);
  for (const auto& [name, samples] : by_kernel) {
    FlashKernel& kernel = kernel_called(model, name);
    PassFit forward(draft, name, "flash_forward", kernel.forward, samples);
    PassFit backward(draft, name, "flash_backward", kernel.backward, samples);
    double half_head_size = kernel.half_head_size.value_or(model.half_head_size).value;
    if (forward.knows_head_sizes() && backward.knows_head_sizes()) {
      half_head_size = nearest_half_head_size(forward, backward);
      kernel.half_head_size = Sourced<double>{
          .value = half_head_size,
          .provenance = Provenance::kMeasured,
          .source = "nearest to samples of several head sizes; " + draft.origin(samples.size())};
    }
    forward.fit(half_head_size);
    backward.fit(half_head_size);
    if (by_kernel.size() == 1) model.in_use = static_cast<std::size_t>(&kernel - model.kernels.data());
  }
}

}  // namespace stagecraft
