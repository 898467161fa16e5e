// Samples of one device from any number of files, checked before anything is fitted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "calibrate/samples/sample.hpp"

namespace stagecraft {

struct SampleText {
  std::string name;  // file name, for messages
  std::string text;
};

struct SampleSet {
  SampleSetup setup;                        // setup of all samples
  std::vector<Sample> samples;              // of repeated points the last one counts
  std::vector<SourceLocation> places = {};  // place of each sample
  std::size_t again = 0;                    // points that were measured before, and counted once
  std::string date;                         // date of the newest sample
};

// Errors, each with its file and line: everything that parse_sample() refuses, a truncated last line, samples
// of another device, driver, library or clock policy than the first, wrong results, GEMMs and attention
// without their extents, invalid dates, and files without samples. nullopt after an error. A file that does
// not begin with a JSON object gives one error, not one per line.
[[nodiscard]] std::optional<SampleSet> read_sample_set(const std::vector<SampleText>& files,
                                                       Diagnostics& diagnostics);

}  // namespace stagecraft
