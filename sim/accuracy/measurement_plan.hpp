// Measurements needed for some scenarios: the shapes of GEMMs and attention that their profiles have to
// estimate. Rows of the table are included, because a fitted table replaces it, and shapes of fewer tokens
// where a scenario has too few for one.
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
  // Reports mistakes of the scenario. Stages with given times need nothing from a profile. With several
  // devices all are included.
  void add(const Scenario& scenario, Diagnostics& diagnostics);

  // Most valuable first; `value`: per cent of the estimated time, 0 of shapes that only a table needs.
  [[nodiscard]] std::vector<WantedPoint> points() const;

 private:
  // The points by sample key; `value`: seconds of an iteration of one GPU of each device.
  std::map<std::string, WantedPoint> wanted_;
};

}  // namespace stagecraft
