#include "formats/topology_file.hpp"

#include "formats/input_text.hpp"
#include "formats/nccl_topology.hpp"
#include "formats/nvidia_smi.hpp"
#include "formats/slurm_topology.hpp"

namespace stagecraft {

namespace {
constexpr const char* kReadHere =
    "NCCL's topology XML, the matrix of `nvidia-smi topo -m`, or Slurm's topology.conf or topology.yaml";
}  // namespace

std::optional<Fragment> import_topology(std::string_view text, const std::string& name,
                                        const TopologyRequest& request, Diagnostics& diagnostics) {
  const std::optional<std::string_view> checked = checked_text(text, name, diagnostics);
  if (!checked) return std::nullopt;
  const std::size_t first = checked->find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    diagnostics.error(
        {.code = "empty-file", .where = {name, 0, 0}, .message = "the file is empty", .hint = kReadHere});
    return std::nullopt;
  }
  if ((*checked)[first] == '<') return import_nccl_topology(*checked, name, request, diagnostics);
  if (looks_like_nvidia_smi(*checked)) return import_nvidia_smi(*checked, name, request, diagnostics);
  if (looks_like_slurm_conf(*checked) || looks_like_slurm_yaml(*checked))
    return import_slurm_topology(*checked, name, request, diagnostics);
  diagnostics.error({.code = "not-a-topology",
                     .where = {name, 0, 0},
                     .message = "is no topology that is read here",
                     .hint = kReadHere});
  return std::nullopt;
}

}  // namespace stagecraft
