#include "formats/nvidia_smi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {

namespace {

constexpr std::size_t kMostDevices = 1'024;
constexpr std::array<std::string_view, 5> kPathClasses{"PIX", "PXB", "PHB", "NODE", "SYS"};  // nearest first
constexpr std::string_view kItself = "X";

// ESC [ … letter: colours and underlines.
std::string without_terminal_codes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
      continue;
    }
    if (i + 1 >= text.size() || text[i + 1] != '[') continue;
    for (i += 2; i < text.size() && (text[i] < '@' || text[i] > '~'); ++i) {
    }
  }
  return plain;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!(line = trimmed(line)).empty()) {
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

std::optional<std::int64_t> numbered(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix) || word.size() > prefix.size() + 6) return std::nullopt;
  word.remove_prefix(prefix.size());
  if (word.empty() || word.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  for (const char digit : word) number = 10 * number + (digit - '0');
  return number;
}

bool is_gpu(std::string_view word) {
  return numbered(word, "GPU").has_value();
}

// "GPU0 GPU1 … CPU Affinity", and not the row "GPU0 X …".
bool is_head(const std::vector<std::string>& words) {
  return !words.empty() && words.front() == "GPU0" && (words.size() < 2 || words[1] != kItself);
}

struct Matrix {
  std::vector<std::string> devices = {};  // GPUs first
  std::size_t gpus = 0;
  // A square: of kPathClasses, NV#, and kItself on the diagonal.
  std::vector<std::vector<std::string>> classes = {};
  std::map<std::string, std::string> legend = {};  // NIC0: mlx5_0
  std::vector<std::string> numa = {};              // of each GPU, as written; empty: not told
  SourceLocation where = {};
};

class MatrixReader {
 public:
  MatrixReader(std::string file, Diagnostics& diagnostics)
      : file_(std::move(file)), diagnostics_(diagnostics) {}

  std::optional<Matrix> read(std::string_view text) {
    const std::string plain = without_terminal_codes(text);
    int number = 0;
    for (const std::string_view line : lines_of(plain)) {
      line_ = ++number;
      const std::vector<std::string> words = words_of(line);
      if (matrix_.devices.empty()) {
        if (is_head(words)) head(words);
      } else if (matrix_.classes.size() < matrix_.devices.size()) {
        if (words.empty()) continue;
        if (!row(words)) return std::nullopt;
      } else {
        legend(words);
      }
    }
    if (!complete()) return std::nullopt;
    return std::move(matrix_);
  }

 private:
  bool refuse(std::string code, std::string message, std::string hint) {
    diagnostics_.error({.code = std::move(code),
                        .where = {file_, line_, 0},
                        .message = std::move(message),
                        .hint = std::move(hint)});
    return false;
  }

  void head(const std::vector<std::string>& words) {
    matrix_.where = {file_, line_, 1};
    for (const std::string& word : words) {
      if (word == "CPU" || word == "NUMA" || word == "GPU") break;
      if (matrix_.devices.size() < kMostDevices) matrix_.devices.push_back(word);
    }
    // CPU affinities hold blanks and commas, so what follows them is counted from the end.
    const auto says = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
    if (says("NUMA") && words.back() == "ID") numa_from_end_ = 2;
    if (says("NUMA") && words.back() == "Affinity") numa_from_end_ = 1;
    const auto first_nic = std::find_if_not(matrix_.devices.begin(), matrix_.devices.end(), is_gpu);
    matrix_.gpus = static_cast<std::size_t>(first_nic - matrix_.devices.begin());
  }

  bool row(const std::vector<std::string>& words) {
    const std::size_t index = matrix_.classes.size();
    const std::string& device = matrix_.devices[index];
    if (words.front() != device)
      return refuse(
          "wrong-row",
          fmt::format("the row of {} stands where {} should", in_quotes(words.front()), in_quotes(device)),
          "the rows follow the columns");
    if (words.size() < 1 + matrix_.devices.size())
      return refuse(
          "short-row",
          fmt::format("{} of {} columns of {}", words.size() - 1, matrix_.devices.size(), in_quotes(device)),
          "was the line cut or folded?");
    const auto first = words.begin() + 1;
    const auto end = first + static_cast<std::ptrdiff_t>(matrix_.devices.size());
    std::vector<std::string> classes(first, end);
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const bool known = classes[i] == kItself ||
                         std::ranges::find(kPathClasses, classes[i]) != kPathClasses.end() ||
                         numbered(classes[i], "NV").has_value();
      if (!known || (classes[i] == kItself) != (i == index))
        return refuse("bad-class",
                      fmt::format("{} stands between {} and {}", in_quotes(classes[i]), in_quotes(device),
                                  in_quotes(matrix_.devices[i])),
                      "X on the diagonal, else NV#, PIX, PXB, PHB, NODE or SYS");
      if (i < index && matrix_.classes[i][index] != classes[i])
        return refuse("not-symmetric",
                      fmt::format("{} and {} are {} one way and {} the other", in_quotes(device),
                                  in_quotes(matrix_.devices[i]), classes[i], matrix_.classes[i][index]),
                      {});
    }
    matrix_.classes.push_back(std::move(classes));
    if (index < matrix_.gpus) {
      const bool told = numa_from_end_ > 0 && words.end() - end > numa_from_end_;
      matrix_.numa.push_back(told ? *(words.end() - numa_from_end_) : std::string());
    }
    return true;
  }

  void legend(const std::vector<std::string>& words) {
    if (words.size() != 2 || !words[0].ends_with(':')) return;
    const std::string device = words[0].substr(0, words[0].size() - 1);
    if (numbered(device, "NIC")) matrix_.legend.emplace(device, words[1]);
  }

  bool complete() {
    if (matrix_.devices.empty())
      return refuse("no-matrix", "has no matrix of `nvidia-smi topo -m`", "its head begins with GPU0");
    if (matrix_.classes.size() < matrix_.devices.size())
      return refuse("short-matrix",
                    fmt::format("{} of {} rows are there", matrix_.classes.size(), matrix_.devices.size()),
                    "was the output cut short?");
    return true;
  }

  std::string file_;
  Diagnostics& diagnostics_;
  int line_ = 0;
  std::ptrdiff_t numa_from_end_ = 0;  // which word of a row names the NUMA node; 0: none does
  Matrix matrix_;
};

class MatrixImporter {
 public:
  MatrixImporter(const Matrix& matrix, std::string file, const TopologyRequest& request,
                 Diagnostics& diagnostics)
      : matrix_(matrix), file_(std::move(file)), request_(request), diagnostics_(diagnostics) {}

  Fragment import() {
    const auto gpus = static_cast<std::int64_t>(matrix_.gpus);
    const std::int64_t nics = std::ssize(matrix_.devices) - gpus;
    facts_.notes.head.push_back(fmt::format("From {}: a machine as `nvidia-smi topo -m` sees it: {}, {}",
                                            file_, counted(gpus, "GPU"), counted(nics, "NIC")));
    for (std::size_t gpu = 0; gpu < matrix_.gpus; ++gpu) facts_.notes.head.push_back(place_of(gpu));
    facts_.gpus = {.value = gpus,
                   .comment = "columns GPU0 to GPU" + std::to_string(matrix_.gpus - 1),
                   .where = matrix_.where};
    device();
    nvlink();
    if (nics > 0) count_nics(nics);
    if (request_.link)
      facts_.nic_bandwidth = {.value = *request_.link, .comment = "--link", .where = matrix_.where};
    facts_.notes.ignored.emplace_back("CPU affinities");
    return machine_fragment(facts_);
  }

 private:
  void device() {
    if (!request_.device) return;
    model_ = gpu_model_by_name(*request_.device);
    facts_.device = {.value = model_ == nullptr ? *request_.device : std::string(model_->device),
                     .comment = "--device",
                     .where = matrix_.where};
    if (model_ == nullptr)
      diagnostics_.warning(
          {.code = "unknown-name",
           .where = matrix_.where,
           .message = fmt::format("--device: {} is no GPU whose NVLinks and profile are known",
                                  in_quotes(*request_.device)),
           .hint = near_gpu_models(*request_.device)});
  }

  [[nodiscard]] bool all_far() const {
    for (std::size_t gpu = 0; gpu < matrix_.gpus; ++gpu)
      for (std::size_t nic = matrix_.gpus; nic < matrix_.devices.size(); ++nic)
        if (matrix_.classes[gpu][nic] != "SYS") return false;
    return true;
  }

  // Under the same PCIe switch as a GPU, which those of storage and management seldom are.
  [[nodiscard]] bool is_near(std::size_t gpu, std::size_t nic) const {
    return matrix_.classes[gpu][nic] == "PIX" || matrix_.classes[gpu][nic] == "PXB";
  }

  [[nodiscard]] bool every_gpu_has_a_near_nic() const {
    for (std::size_t gpu = 0; gpu < matrix_.gpus; ++gpu) {
      bool found = false;
      for (std::size_t nic = matrix_.gpus; nic < matrix_.devices.size(); ++nic)
        found = found || is_near(gpu, nic);
      if (!found) return false;
    }
    return matrix_.gpus > 0;
  }

  [[nodiscard]] std::vector<std::string> nics_near_no_gpu() const {
    std::vector<std::string> names;
    for (std::size_t nic = matrix_.gpus; nic < matrix_.devices.size(); ++nic) {
      bool found = false;
      for (std::size_t gpu = 0; gpu < matrix_.gpus; ++gpu) found = found || is_near(gpu, nic);
      if (!found) names.push_back(nic_name(nic));
    }
    return names;
  }

  // The GPUs' alone where all have one of their own.
  void count_nics(std::int64_t nics) {
    const bool told_apart = every_gpu_has_a_near_nic();
    const std::vector<std::string> far = told_apart ? nics_near_no_gpu() : std::vector<std::string>{};
    facts_.nics = {.value = nics - std::ssize(far),
                   .comment = far.empty() ? "columns after the GPUs"
                                          : "those that are PIX or PXB to a GPU; not " + join(far, ", "),
                   .where = matrix_.where};
    if (!far.empty())
      return facts_.notes.assumed.push_back(
          fmt::format("nics: {} under no GPU's PCIe switch are of storage or management",
                      counted(std::ssize(far), "NIC")));
    facts_.notes.assumed.emplace_back(
        "nics: every NIC of the matrix; take away those of storage and management");
    if (told_apart || nics <= static_cast<std::int64_t>(matrix_.gpus)) return;
    diagnostics_.warning({.code = "assumed",
                          .where = matrix_.where,
                          .message = fmt::format("all {} NICs are counted for {} GPUs: which of them are of "
                                                 "storage or management does not show",
                                                 nics, matrix_.gpus),
                          .hint = "take those away from `nics`, else the network is too fast"});
  }

  // "  GPU0: NUMA node 0, nearest NIC0 mlx5_0, NIC1 mlx5_1 (PIX)"
  [[nodiscard]] std::string place_of(std::size_t gpu) const {
    std::string line = fmt::format("  {}", matrix_.devices[gpu]);
    std::vector<std::string> parts;
    if (!matrix_.numa[gpu].empty() && matrix_.numa[gpu] != "N/A")
      parts.push_back("NUMA node " + matrix_.numa[gpu]);
    if (!all_far()) {
      std::size_t nearest = kPathClasses.size();
      for (std::size_t nic = matrix_.gpus; nic < matrix_.devices.size(); ++nic)
        nearest = std::min(nearest, path_length(gpu, nic));
      std::vector<std::string> names;
      for (std::size_t nic = matrix_.gpus; nic < matrix_.devices.size(); ++nic)
        if (path_length(gpu, nic) == nearest) names.push_back(nic_name(nic));
      if (!names.empty())
        parts.push_back(fmt::format("nearest {} ({})", join(names, ", "), kPathClasses.at(nearest)));
    }
    return parts.empty() ? line : line + ": " + join(parts, ", ");
  }

  // Index into kPathClasses; NVLinks to a NIC, which no machine has, count as the longest.
  [[nodiscard]] std::size_t path_length(std::size_t gpu, std::size_t nic) const {
    const auto* const found = std::ranges::find(kPathClasses, matrix_.classes[gpu][nic]);
    return found == kPathClasses.end() ? kPathClasses.size() - 1
                                       : static_cast<std::size_t>(found - kPathClasses.begin());
  }

  [[nodiscard]] std::string nic_name(std::size_t nic) const {
    const auto known = matrix_.legend.find(matrix_.devices[nic]);
    return known == matrix_.legend.end() ? matrix_.devices[nic]
                                         : fmt::format("{} {}", matrix_.devices[nic], known->second);
  }

  // NVLinks between each pair of GPUs; nullopt when pairs differ.
  [[nodiscard]] std::optional<std::int64_t> links_per_pair() const {
    std::optional<std::int64_t> each;
    for (std::size_t a = 0; a < matrix_.gpus; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const std::int64_t links = numbered(matrix_.classes[a][b], "NV").value_or(0);
        if (each.value_or(links) != links) return std::nullopt;
        each = links;
      }
    }
    return each.value_or(0);
  }

  void nvlink() {
    const std::optional<std::int64_t> each = links_per_pair();
    if (!each) {
      diagnostics_.warning(
          {.code = "partial-nvlink",
           .where = matrix_.where,
           .message = "the NVLinks do not join every GPU with every other alike",
           .hint = "`nvlink_pairs: [[0, 1, 2], …]` under cluster.node says which GPUs have how "
                   "many links between them (docs/scenario.md); without `nvlink` it is PCIe alone"});
      facts_.nvlink_open = fmt::format(
          "nvlink: {}   # under cluster.node, with nvlink_latency: not every GPU is linked with every other",
          nvlink_example(model_ == nullptr ? 0 : model_->sm));
      return;
    }
    if (*each == 0) return;
    // A GPU has so many links; where the matrix shows more, they are the same ones, through a switch.
    const std::int64_t direct = *each * static_cast<std::int64_t>(matrix_.gpus - 1);
    const bool on_switch = matrix_.gpus > 2 && direct > kMostNvlinksOfAGpu;
    const std::int64_t links = on_switch ? *each : direct;
    const NvlinkRates rates = model_ == nullptr ? NvlinkRates{} : nvlink_rates(model_->sm);
    if (rates.line > Bandwidth(0)) {
      facts_.nvlink = {.value = rates.line * static_cast<double>(links),
                       .comment = fmt::format("NV{}: {} links of {:g} GB/s a GPU, line rate of --device",
                                              *each, links, rates.line.count() / 1e9),
                       .where = matrix_.where};
    } else {
      facts_.nvlink_open = fmt::format(
          "nvlink: …   # under cluster.node, with nvlink_latency: {} links a GPU (NV{}), of 25 GB/s on V100 "
          "to "
          "H200 and 50 GB/s on B200; or import with --device NAME",
          links, *each);
    }
    if (!on_switch && matrix_.gpus > 2)
      facts_.notes.assumed.push_back(
          fmt::format("nvlink: {} links between each pair are no more than a GPU has, so there is no switch, "
                      "and a message between "
                      "two GPUs gets only a part",
                      *each));
  }

  const Matrix& matrix_;
  std::string file_;
  const TopologyRequest& request_;
  Diagnostics& diagnostics_;
  MachineFacts facts_;
  const GpuModel* model_ = nullptr;  // of --device
};

}  // namespace

bool looks_like_nvidia_smi(std::string_view text) {
  constexpr std::size_t kFirstLines = 100;  // what a shell may have printed before
  const std::string plain = without_terminal_codes(text);
  const std::vector<std::string_view> lines = lines_of(plain);
  return std::any_of(lines.begin(),
                     lines.begin() + static_cast<std::ptrdiff_t>(std::min(kFirstLines, lines.size())),
                     [](std::string_view line) { return is_head(words_of(line)); });
}

std::optional<Fragment> import_nvidia_smi(std::string_view text, const std::string& name,
                                          const TopologyRequest& request, Diagnostics& diagnostics) {
  const std::optional<Matrix> matrix = MatrixReader(name, diagnostics).read(text);
  if (!matrix) return std::nullopt;
  return MatrixImporter(*matrix, name, request, diagnostics).import();
}

}  // namespace stagecraft
