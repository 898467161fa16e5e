#include "calibrate/fit/sample_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace stagecraft {

namespace {

std::string told(const SampleSetup& setup) {
  return fmt::format("{}, driver {}, CUDA {}, cuBLAS {}, cuDNN {}, NCCL {}, clocks {}, {} W", setup.device,
                     setup.driver, setup.cuda, setup.cublas, setup.cudnn, setup.nccl, setup.clock_policy,
                     setup.power_limit_w);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Number of the first nonempty line, unless a JSON object begins there.
std::optional<int> line_of_no_sample(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] == '{' || text.substr(first).starts_with(kYamlItem))
    return std::nullopt;
  return 1 + static_cast<int>(std::ranges::count(text.substr(0, first), '\n'));
}

// Checks an extent `name` of a sample: from 1 to 2^30, the range of a profile's tables.
std::optional<std::string> why_not_extent(const Sample& sample, const std::string& name, bool required) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  const auto found = sample.shape.find(name);
  if (found == sample.shape.end())
    return required
               ? std::optional(fmt::format("a sample of {} has no \"{}\" in its shape", sample.family, name))
               : std::nullopt;
  if (found->second >= 1 && found->second <= kMost) return std::nullopt;
  return fmt::format("\"{}\" is {}, from 1 to {} is right", name, found->second, kMost);
}

std::optional<std::string> why_no_shape(const Sample& sample) {
  std::vector<std::string> required, known = {"batch"};
  // Single GEMMs only, not a mix.
  if (sample.family == "gemm" && sample.op == "gemm") required = {"m", "n", "k"};
  if (sample.family == "attention") {
    required = {"sequence", "heads", "head_size"};
    known.emplace_back("kv_heads");
  }
  if (required.empty()) return std::nullopt;
  for (const std::string& name : required)
    if (auto why = why_not_extent(sample, name, true)) return why;
  for (const std::string& name : known)
    if (auto why = why_not_extent(sample, name, false)) return why;
  return std::nullopt;
}

// 2026-11-20, alone or before a time; empty where it is not known.
bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (text.empty()) return true;
  if (text.size() < kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != kForm[i]) return false;
  const auto two = [&](std::size_t at) { return (text[at] - '0') * 10 + text[at + 1] - '0'; };
  const auto unsigned_two = [&](std::size_t at) { return static_cast<unsigned>(two(at)); };
  return std::chrono::year_month_day(std::chrono::year(two(0) * 100 + two(2)),
                                     std::chrono::month(unsigned_two(5)), std::chrono::day(unsigned_two(8)))
      .ok();
}

// Why a sample that reads well says nothing that a profile could stand on.
std::optional<std::string> why_unusable(const Sample& sample) {
  if (sample.max_error > 1)
    return fmt::format("its result is wrong: \"max_error\" is {} times what its precision allows",
                       sample.max_error);
  if (!is_date(sample.date))
    return fmt::format("\"date\" is {}, 2026-11-20 is how one is written", in_quotes(sample.date));
  return why_no_shape(sample);
}

// Collects samples and remembers where each key stands.
class Collector {
 public:
  explicit Collector(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void read(const SampleText& file) {
    std::string_view rest = without_byte_order_mark(file.text);
    if (rest.find("\"traceEvents\"") != std::string_view::npos) return refuse_trace({file.name, 0, 0});
    if (const auto line = line_of_no_sample(rest)) return refuse_file({file.name, *line, 0});
    if (is_blank(rest)) return refuse({file.name, 0, 0}, "no-samples", "holds no samples", {});
    for (int line = 1; !is_blank(rest); ++line) {
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos) {
        refuse({file.name, line, 0}, "cut-off", "the last line is cut off",
               "let the suite go on into this file, or delete the line");
        return;
      }
      const std::string_view sample = rest.substr(0, end);
      if (!is_blank(sample)) take({file.name, line, 0}, sample);
      rest.remove_prefix(end + 1);
    }
  }

  [[nodiscard]] SampleSet&& result() && { return std::move(set_); }

 private:
  // Refuses a file of another kind as a whole: every line of it would be an error.
  void refuse_file(SourceLocation where) {
    refuse(
        std::move(where), "bad-sample", "is no file of samples, which has a JSON object on each line",
        "output of nccl-tests goes through `stagecraft import nccl-tests`; the entry that it prints belongs "
        "under `collectives:` of a profile file");
  }

  void refuse_trace(SourceLocation where) {
    refuse(std::move(where), "bad-sample", "is a profiler's trace, no file of samples",
           "`stagecraft import kineto` makes samples of it");
  }

  void take(const SourceLocation& where, std::string_view line) {
    auto read = parse_sample(line);
    if (auto* problem = std::get_if<std::string>(&read)) return refuse(where, "bad-sample", *problem, {});
    Sample sample = std::get<Sample>(std::move(read));
    if (const auto why = why_unusable(sample)) return refuse(where, "bad-sample", *why, {});
    if (set_.samples.empty()) {
      set_.setup = sample.setup;
      first_ = where;
    } else if (sample.setup != set_.setup) {
      return refuse(where, "mixed-setups",
                    fmt::format("measured on {}; {}:{} on {}", told(sample.setup), first_.file, first_.line,
                                told(set_.setup)),
                    "one profile is of one device with one software: fit the files apart");
    }
    set_.date = std::max(set_.date, sample.date);
    const auto [place, is_new] = places_.emplace(sample_key(sample), set_.samples.size());
    if (is_new) {
      set_.samples.push_back(std::move(sample));
      set_.places.push_back(where);
    } else {
      ++set_.again;
      set_.samples[place->second] = std::move(sample);
      set_.places[place->second] = where;
    }
  }

  void refuse(SourceLocation where, std::string code, std::string message, std::string hint) {
    diagnostics_.error({.code = std::move(code),
                        .where = std::move(where),
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  Diagnostics& diagnostics_;
  SampleSet set_;
  SourceLocation first_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace

std::optional<SampleSet> read_sample_set(const std::vector<SampleText>& files, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  Collector collector(diagnostics);
  for (const SampleText& file : files) collector.read(file);
  if (!watch.clean()) return std::nullopt;
  return std::move(collector).result();
}

}  // namespace stagecraft
