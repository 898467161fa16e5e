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
  std::string name;  // of the file, for messages
  std::string text;
};

struct SampleSet {
  SampleSetup setup;                        // of all of them
  std::vector<Sample> samples;              // a point measured again: the last one counts
  std::vector<SourceLocation> places = {};  // of each of them
  std::size_t again = 0;                    // points that were measured before, and counted once
  std::string date;                         // of the newest
};

// Refused, each with its file and line: what parse_sample() refuses, a last line that is cut off, samples of
// another device, driver, library or clock policy than the first, results that are wrong, products and
// attention without their extents, dates that are none, and files without samples. nullopt if there was one. A
// file that does not begin with a JSON object is refused once, not in every line.
[[nodiscard]] std::optional<SampleSet> read_sample_set(const std::vector<SampleText>& files,
                                                       Diagnostics& diagnostics);

}  // namespace stagecraft
