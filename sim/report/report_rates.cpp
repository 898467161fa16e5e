#include "sim/report/report.hpp"

namespace stagecraft {
namespace {

// An abstract pipeline may cost nothing; then nothing is done in no time, and JSON knows no infinity.
double per_second(double amount, Duration time) {
  return time > Duration::zero() ? amount / to_seconds(time) : 0;
}

}  // namespace

double Report::samples_per_s() const {
  return finishes() ? per_second(static_cast<double>(samples), iteration_time) : 0;
}
double Report::tokens_per_s() const {
  return finishes() ? per_second(static_cast<double>(tokens), iteration_time) : 0;
}
double Report::model_flops_per_gpu_s() const {
  return finishes() ? per_second(model_flops.count(), iteration_time) / gpus : 0;
}
double Report::hardware_flops_per_gpu_s() const {
  return finishes() ? per_second(hardware_flops.count(), iteration_time) / gpus : 0;
}
double Report::mfu() const {
  return peak.count() > 0 ? model_flops_per_gpu_s() / peak.count() : 0;
}
double Report::hfu() const {
  return peak.count() > 0 ? hardware_flops_per_gpu_s() / peak.count() : 0;
}

}  // namespace stagecraft
