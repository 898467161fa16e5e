#include "sim/goodput/checkpointing.hpp"

namespace stagecraft {

Duration Checkpointing::slowed_by() const {
  if (mode == CheckpointMode::kSync) return {};
  return persist - scaled(persist, 1 / slowdown);
}

Duration Checkpointing::on_demand() const {
  return mode == CheckpointMode::kSync ? block : block + persist;
}

}  // namespace stagecraft
