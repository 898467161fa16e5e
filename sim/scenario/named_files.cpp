#include "sim/scenario/named_files.hpp"

#include <string>
#include <system_error>
#include <variant>

#include "sim/scenario/preset.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

class FileMover {
 public:
  FileMover(const fs::path& from, const fs::path& to) : from_(fs::current_path() / from), to_(to) {}

  void file(std::string& name) const {
    std::error_code ignored;  // an unreadable path cannot be read either
    if (name.empty() || fs::path(name).is_absolute() || !fs::is_regular_file(from_ / name, ignored)) return;
    name = fs::proximate(from_ / name, to_).string();
  }
  void preset(std::string& name) const {
    if (is_path(name)) file(name);
  }
  void nodes(std::optional<ClusterSpec>& cluster) const {
    if (!cluster) return;
    for (NodeGroup& group : cluster->groups) {
      preset(group.node.default_profile);
      preset(group.node.default_fabric);
    }
  }
  void failures(FailureSpec& failures) const {
    file(failures.repair.file);
    for (FailureProcess& process : failures.processes) {
      if (auto* replay = std::get_if<TraceReplay>(&process.law)) file(replay->file);
      for (Cause& cause : process.causes)
        if (cause.repair) file(cause.repair->file);
    }
  }

 private:
  fs::path from_, to_;
};

}  // namespace

void move_named_files(Scenario& scenario, const fs::path& from, const fs::path& to) {
  const FileMover move(from, to);
  move.nodes(scenario.cluster);
  move.nodes(scenario.fabric);
  if (scenario.profile) move.preset(scenario.profile->name);
  move.preset(scenario.options.software);
  if (scenario.order) move.file(scenario.order->file);
  for (OtherJob& job : scenario.jobs) move.file(job.file);
  if (scenario.failures) move.failures(*scenario.failures);
}

}  // namespace stagecraft
