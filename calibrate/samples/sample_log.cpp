#include "calibrate/samples/sample_log.hpp"

#include <filesystem>
#include <iostream>
#include <iterator>
#include <tuple>
#include <utility>

namespace stagecraft {
namespace {

constexpr const char* kStandardOutput = "-";

std::string contents(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path)) throw SampleLogError(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

SampleLog::SampleLog(std::string path) : path_(std::move(path)) {
  if (path_ == kStandardOutput) return;
  const std::string text = contents(path_);
  const SampleFile file = parse_samples(text);
  if (!file.errors.empty())
    throw SampleLogError(path_ + ":" + std::to_string(file.errors.front().line) + ": " +
                         file.errors.front().message +
                         "\n  hint: nothing was changed; mend the file or choose another with --out");
  complete_ = complete_size(text);
  int line = 0;
  for (const Sample& sample : file.samples) {
    ++line;
    if (!setup_) setup_ = sample.setup;
    if (const std::string difference = setup_difference(*setup_, sample.setup); !difference.empty())
      throw SampleLogError(path_ + ":" + std::to_string(line) + ": another setup than line 1 (" + difference +
                           ")\n  hint: samples that are fitted together come from one setup: split the file");
    keys_.insert(sample_key(sample));
  }
}

void SampleLog::open() {
  if (std::filesystem::exists(path_)) std::filesystem::resize_file(path_, complete_);
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!file_) throw SampleLogError(path_ + ": cannot be written");
}

void SampleLog::append(const Sample& sample) {
  if (!setup_) setup_ = sample.setup;
  if (const std::string difference = setup_difference(*setup_, sample.setup); !difference.empty())
    throw SampleLogError(path_ + ": holds samples of another setup (" + difference +
                         ")\n  hint: nothing was changed; choose another file with --out");
  const std::string line = to_json_line(sample) + "\n";
  const bool to_console = path_ == kStandardOutput;
  if (!to_console && !file_.is_open()) open();
  std::ostream& out = to_console ? std::cout : file_;
  out << line << std::flush;
  if (!out) throw SampleLogError(path_ + ": cannot be written");
  keys_.insert(sample_key(sample));
}

std::set<std::string> SampleLog::failed() const {
  std::set<std::string> keys;
  if (path_ == kStandardOutput) return keys;
  std::ifstream in(path_ + ".failed");
  for (std::string key; std::getline(in, key);) keys.insert(key);
  return keys;
}

void SampleLog::append_failed(const std::string& key) const {
  if (path_ == kStandardOutput) return;
  std::ofstream(path_ + ".failed", std::ios::app) << key << '\n' << std::flush;
}

std::string setup_difference(const SampleSetup& there, const SampleSetup& here) {
  const auto power = [](const SampleSetup& setup) { return std::to_string(setup.power_limit_w) + " W"; };
  const std::tuple<const char*, std::string, std::string> fields[] = {
      {"device", there.device, here.device},
      {"driver", there.driver, here.driver},
      {"cuda", there.cuda, here.cuda},
      {"cublas", there.cublas, here.cublas},
      {"cudnn", there.cudnn, here.cudnn},
      {"nccl", there.nccl, here.nccl},
      {"clock policy", there.clock_policy, here.clock_policy},
      {"power limit", power(there), power(here)},
  };
  std::string difference;
  for (const auto& [name, left, right] : fields)
    if (left != right) {
      if (!difference.empty()) difference += ", ";
      difference += std::string(name) + ": " + left + " there, " + right + " here";
    }
  return difference;
}

}  // namespace stagecraft
