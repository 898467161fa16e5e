// What to measure for some scenarios: the shapes of products and attention whose time their profiles have to guess
// at. Published rows are asked for as well, as a table that is fitted takes the place of the one before.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "calibrate/samples/sample.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

class MeasurementPlan {
 public:
  // Reports what is wrong with the scenario. Stages with given times ask nothing of a profile; of several
  // devices all are asked.
  void add(const Scenario& scenario, Diagnostics& diagnostics);

  // Most valuable first; `value`: per cent of what has to be guessed at.
  [[nodiscard]] std::vector<WantedPoint> points() const;

 private:
  // The points by sample key; `value`: seconds of an iteration of one GPU of each device.
  std::map<std::string, WantedPoint> wanted_;
};

}  // namespace stagecraft
