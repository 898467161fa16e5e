// The inside of a server: which vertices it has, how they are joined, and the ways between them.
//
//   NVSwitch      every GPU hangs on it. With a ceiling on what the chips pass it is two vertices, in and
//                 out, with one link between them. A domain of several servers shares one.
//   mesh          NVLinks from GPU to GPU: `nvlink` is shared equally by the links of the GPU that has most.
//                 Pairs without a link go over one GPU in between (NCCL's PATH_NVB), else over PCIe.
//   PCIe          GPUs of servers without NVSwitch hang on the root of their socket, on a PCIe switch below
//                 it where there are some. NICs hang on their GPUs, or on the PCIe switch of their first GPU.
//   source        nvlink of a V100 mesh and PATH_NVB: NCCL's documentation of NCCL_NVB_DISABLE and its
//                 topology classes; PCIe switches: NVIDIA DGX-1 and DGX A100 user guides, system topology.
#pragma once

#include <vector>

#include "base/ceil_div.hpp"
#include "topology/cluster_spec.hpp"
#include "topology/fabric_graph.hpp"
#include "topology/fabric_ways.hpp"

namespace stagecraft {

// The vertices of an NVSwitch; `out` is `in` where the chips have no ceiling.
struct NvSwitch {
  VertexId in{}, out{};
};

class ServerGraph {
 public:
  struct Place {
    int server = 0;
    int gpus = 0;  // number of used GPUs
    int nics = 0;  // vertices, of the GPUs that are used: at most one each
  };
  // `domain`: the NVSwitch that it shares with other servers, if any.
  ServerGraph(FabricGraph& graph, const NodeSpec& spec, Place place, const NvSwitch* domain);

  [[nodiscard]] VertexId gpu(int slot) const { return nth(gpu_, slot); }
  [[nodiscard]] VertexId nic(int nic) const { return nth(nic_, nic); }
  [[nodiscard]] int nic_of(int slot) const { return slot * place_.nics / place_.gpus; }
  [[nodiscard]] int first_slot_of(int nic) const { return ceil_div(nic * place_.gpus, place_.nics); }

  void walk(Ways& ways, int from, int to) const;  // between two GPUs
  void walk_out(Ways& ways, int slot, int nic) const;
  void walk_in(Ways& ways, int nic, int slot) const;
  // Between GPUs of two servers of the same domain.
  static void walk_across(Ways& ways, const ServerGraph& from, int slot, const ServerGraph& to, int to_slot);

 private:
  [[nodiscard]] static VertexId nth(VertexId first, int i) {
    return VertexId(first.value() + static_cast<std::uint32_t>(i));
  }
  VertexId add(FabricGraph& graph, VertexKind kind, int count, bool one = false) const;
  void add_pcie(FabricGraph& graph, const NodeSpec& spec);
  void add_mesh(FabricGraph& graph, const NodeSpec& spec) const;
  [[nodiscard]] int socket_of(int slot) const { return slot * sockets_ / node_gpus_; }
  // The vertices from below to the root.
  [[nodiscard]] std::vector<VertexId> climb(VertexId start, int slot) const;
  // Along the PCIe tree, between two ends that hang where GPUs `a` and `b` do.
  void walk_pcie(Ways& ways, const std::vector<VertexId>& up, const std::vector<VertexId>& down) const;
  [[nodiscard]] bool walk_mesh(Ways& ways, int from, int to) const;

  Place place_;
  bool has_switch_ = false, has_mesh_ = false;
  int per_pcie_switch_ = 0;          // GPUs; 0 = there are none
  int sockets_ = 1, node_gpus_ = 1;  // of the whole node, whose first GPUs are used
  VertexId gpu_{}, nic_{}, root_{}, pcie_switch_{};
  NvSwitch nvswitch_{};
};

// An NVSwitch of a server, or with server -1 that of NVLink domain `index`.
[[nodiscard]] NvSwitch add_nvswitch(FabricGraph& graph, const NodeSpec& spec, int server, int index);

}  // namespace stagecraft
