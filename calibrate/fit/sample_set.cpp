#include "calibrate/fit/sample_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/utf8.hpp"

namespace stagecraft {

namespace {

std::string told(const SampleSetup& setup) {
  return fmt::format("{}, driver {}, CUDA {}, cuBLAS {}, cuDNN {}, NCCL {}, clocks {}, {} W", setup.device,
                     setup.driver, setup.cuda, setup.cublas, setup.cudnn, setup.nccl, setup.clock_policy,
                     setup.power_limit_w);
}

// Where the first line that is not empty stands, unless a JSON object begins there.
std::optional<int> line_of_no_sample(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] == '{') return std::nullopt;
  return 1 + static_cast<int>(std::ranges::count(text.substr(0, first), '\n'));
}

// Collects samples and remembers where each key stands.
class Collector {
 public:
  explicit Collector(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void read(const SampleText& file) {
    std::string_view rest = without_byte_order_mark(file.text);
    if (rest.find("\"traceEvents\"") != std::string_view::npos) return refuse_trace({file.name, 0, 0});
    if (const auto line = line_of_no_sample(rest)) return refuse_file({file.name, *line, 0});
    for (int line = 1; !rest.empty(); ++line) {
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos) {
        refuse({file.name, line, 0}, "cut-off", "the last line is cut off",
               "let the suite go on into this file, or delete the line");
        return;
      }
      take({file.name, line, 0}, rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
  }

  [[nodiscard]] SampleSet&& result() && { return std::move(set_); }

 private:
  // Of a file of another kind every line would be an error.
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
    } else {
      set_.samples[place->second] = std::move(sample);
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
  const std::size_t errors = diagnostics.error_count();
  Collector collector(diagnostics);
  for (const SampleText& file : files) {
    if (file.text.empty())
      diagnostics.error({.code = "no-samples", .where = {file.name, 0, 0}, .message = "holds no samples"});
    collector.read(file);
  }
  if (diagnostics.error_count() != errors) return std::nullopt;
  return std::move(collector).result();
}

}  // namespace stagecraft
