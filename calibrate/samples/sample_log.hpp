// A file of samples that is being added to.
//
// Each sample is on disk before the next is measured, and a file is taken up where it was left. What would
// spoil it is refused instead: lines that cannot be read, and samples of another device, driver or library.
#pragma once

#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "calibrate/samples/sample.hpp"

namespace stagecraft {

// Says file and line, and what to do.
struct SampleLogError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class SampleLog {
 public:
  // Reads what is there, and writes nothing. No file is an empty one. "-" is standard output, which holds
  // nothing. Throws SampleLogError on lines that cannot be read.
  explicit SampleLog(std::string path);

  [[nodiscard]] const std::set<std::string>& keys() const { return keys_; }
  // The setup that new samples must share; empty for an empty file.
  [[nodiscard]] const std::optional<SampleSetup>& setup() const { return setup_; }

  // Adds one line and hands it to the operating system. Before the first, cuts off a last line that was
  // interrupted. Throws SampleLogError if the sample is of another setup, or the file cannot be written.
  void append(const Sample& sample);

  // Points that took the process down; kept in a file beside (<path>.failed), one key a line.
  [[nodiscard]] std::set<std::string> failed() const;
  void append_failed(const std::string& key) const;

 private:
  void open();
  std::string path_;
  std::size_t complete_ = 0;  // bytes of whole lines
  std::set<std::string> keys_;
  std::optional<SampleSetup> setup_;
  std::ofstream file_;
};

// What differs, in words: "driver: 580.1 there, 590.2 here". Empty: nothing.
[[nodiscard]] std::string setup_difference(const SampleSetup& there, const SampleSetup& here);

}  // namespace stagecraft
