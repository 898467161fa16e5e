#include "formats/megatron.hpp"

#include <fmt/format.h>

#include <numeric>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "calibrate/samples/statistics.hpp"
#include "formats/megatron_sections.hpp"

namespace stagecraft {

namespace {

void add_measurement(const MegatronArguments& arguments, std::optional<std::int64_t> batch,
                     std::vector<std::string>& head) {
  if (arguments.iterations.empty()) return;
  const std::vector<double> times = steady_iterations_ms(arguments, batch);
  if (times.empty()) {
    head.push_back(fmt::format("measured: {} iterations in the log, all of them warm-up or of another batch",
                               arguments.iterations.size()));
    return;
  }
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  std::set<int> runs;
  for (const MegatronIteration& iteration : arguments.iterations) runs.insert(iteration.run);
  const bool several = runs.size() > 1;
  head.push_back(fmt::format(
      "measured: median {:.1f} ms, mean {:.1f} ms over {} of {} iterations{} (the first two{} left out)",
      median(times), mean, times.size(), arguments.iterations.size(),
      several ? fmt::format(" in {} runs", runs.size()) : "", several ? " of each" : ""));
  head.push_back(
      fmt::format("compare: `stagecraft run` should say {:.4g} s, on the machine that was measured",
                  median(times) / 1000));
}

std::vector<std::string> assumptions(const MegatronReader& reader) {
  std::vector<std::string> lines = reader.notes();
  if (reader.assumed().empty()) return lines;
  const std::string title =
      reader.is_dump() ? "what the dump does not say: "
                       : fmt::format("defaults of Megatron-LM {}: ", megatron_era_name(reader.era()));
  const std::vector<std::string> defaults = wrapped(title, reader.assumed());
  lines.insert(lines.end(), defaults.begin(), defaults.end());
  return lines;
}

// In the words of `stagecraft check`, which would refuse the scenario.
void check_batch(MegatronReader& reader, const MegatronJob& job) {
  const auto batch = reader.integer("global_batch_size");
  const std::int64_t step = job.data * job.micro_batch_size;
  if (!batch || *batch % step == 0) return;
  const std::int64_t below = *batch / step * step;
  reader.error("global_batch_size", "not-divisible",
               fmt::format("{} samples do not split over data {} × micro_batch_size {} = {}", *batch,
                           job.data, job.micro_batch_size, step),
               (below > 0 ? fmt::format("{} or {}", below, below + step) : std::to_string(step)) + " would");
}

}  // namespace

std::optional<Fragment> import_megatron(const MegatronArguments& arguments, const ImportRequest& request,
                                        Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  MegatronReader reader(arguments, diagnostics);
  refuse_megatron_models(reader);
  MegatronJob job;
  read_megatron_degrees(reader, request, job);
  Entries model = read_megatron_model(reader, request, job);
  Entries training = read_megatron_training(reader, job);
  Entries cluster = read_megatron_cluster(reader, request, job);
  Entries parallelism = read_megatron_parallelism(reader, job);

  Fragment fragment;
  fragment.head.push_back(fmt::format("From {}: {} of Megatron-LM, {} arguments", arguments.file,
                                      reader.is_dump() ? "the argument dump" : "the options",
                                      arguments.items.size()));
  const bool complete = find_entry(model, "vocab") != nullptr;
  if (watch.clean()) check_batch(reader, job);
  if (complete && watch.clean()) {
    if (auto line = parameters_line(model, arguments.file, diagnostics))
      fragment.head.push_back(std::move(*line));
  }
  add_measurement(arguments, reader.integer("global_batch_size"), fragment.head);
  fragment.entries.push_back(entry("stagecraft", 1, {}));
  fragment.entries.push_back(
      text_entry("name", fmt::format("Megatron-LM, {} layers on {} GPUs", job.layers, job.gpus), {}));
  if (!complete) miss_vocabulary(reader, fragment);
  add_section(fragment, "model", std::move(model));
  add_section(fragment, "cluster", std::move(cluster));
  add_section(fragment, "parallelism", std::move(parallelism));
  fragment.entries.push_back(read_megatron_schedule(reader, job));
  add_section(fragment, "training", std::move(training));
  add_section(fragment, "overlap", read_megatron_overlap(reader, job));
  add_section(fragment, "options", read_megatron_options(reader, job));
  add_section(fragment, "offload", read_megatron_offload(reader, job));
  fragment.ignored = reader.finish();
  fragment.assumed = assumptions(reader);
  if (!watch.clean()) return std::nullopt;
  return fragment;
}

}  // namespace stagecraft
