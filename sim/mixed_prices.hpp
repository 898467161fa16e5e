// Prices on a cluster of several kinds of devices, and other quantities that depend on all of them.
//
// All replicas of a pipeline rank step together, and one pipeline is simulated for all of them: a rank takes
// as long as its slowest device. This is exact where the replicas of a rank are equal, or where one replica
// is the slowest on every rank; otherwise it is an upper bound.
//
//   passes, end   of a rank: the prices of the slowest kind among its GPUs, the first of equals; what traffic
//                 beside a pass costs is that kind's as well
//   messages      the slower of both ends
//   offload       each figure as the worst of the kinds has it
//   memory        every device is asked to hold what the smallest one can
#pragma once

#include "calibrate/profile/hardware_profile.hpp"
#include "sim/lower/prices.hpp"
#include "sim/scenario/scenario.hpp"

namespace stagecraft {

// The device with the least room beside its CUDA context and a communicator. requires a profile.
[[nodiscard]] const HardwareProfile& smallest_device(const Scenario& scenario);

// requires a transformer, group profiles, and a request without shared links.
[[nodiscard]] IterationPrices price_on_several_devices(const Scenario& scenario, const Cluster& cluster,
                                                       const PricingRequest& request);

}  // namespace stagecraft
