#include "formats/machine_fragment.hpp"

#include <fmt/format.h>

#include <utility>

#include "formats/import_entries.hpp"

namespace stagecraft {

namespace {

YamlNode bare(std::string text, const SourceLocation& where) {
  YamlNode node = fragment_number(0, where);
  node.text = std::move(text);
  return node;
}

// "370.8 GB/s"
std::string in_bytes(Bandwidth rate) {
  return fmt::format("{:.6g} GB/s", rate.count() / 1e9);
}

template <class T>
ImportSource source_of(const MachineFact<T>& fact) {
  return {.comment = fact.comment, .where = fact.where};
}

void add_rate(Entries& node, std::string key, const MachineFact<Bandwidth>& rate) {
  node.push_back(
      {.key = std::move(key), .value = bare(in_bytes(rate.value), rate.where), .comment = rate.comment});
}

// Under `cluster.node`, to be filled in.
std::string open_line(std::string_view key, std::string_view value, std::string_view why) {
  return fmt::format("{}: {}   # under cluster.node: {}", key, value, why);
}

void add_device(const MachineFacts& facts, Entries& node, Fragment& fragment) {
  if (!facts.device) {
    fragment.missing.push_back(open_line("device", "…", "which GPU it is; or import with --device NAME"));
    return;
  }
  const MachineFact<std::string>& device = *facts.device;
  node.push_back(text_entry("device", device.value, source_of(device)));
  const GpuModel* model = gpu_model_by_name(device.value);
  if (model != nullptr && !model->profile.empty())
    node.push_back(
        text_entry("profile", model->profile, {.comment = "made for this device", .where = device.where}));
  else
    fragment.missing.push_back("profile: NAME   # beside cluster: no profile is made for this device");
}

void add_nvlink(const MachineFacts& facts, Entries& node, Fragment& fragment) {
  if (facts.nvlink) {
    add_rate(node, "nvlink", *facts.nvlink);
    node.push_back({.key = "nvlink_latency",
                    .value = bare("1 us", facts.nvlink->where),
                    .comment = "assumed, as in the node presets"});
    fragment.assumed.push_back("nvlink_latency: half of the 1.5 to 3 us that a write to a peer takes");
  } else if (!facts.nvlink_open.empty()) {
    fragment.missing.push_back(facts.nvlink_open);
  }
}

void add_nics(const MachineFacts& facts, Entries& node, Fragment& fragment) {
  if (facts.nics)
    node.push_back(entry("nics", facts.nics->value, source_of(*facts.nics)));
  else
    fragment.missing.push_back(open_line("nics", "…", "the file has none"));
  if (facts.nic_bandwidth)
    node.push_back({.key = "nic_bandwidth",
                    .value = fragment_bit_rate(facts.nic_bandwidth->value, facts.nic_bandwidth->where),
                    .comment = facts.nic_bandwidth->comment});
  else
    fragment.missing.push_back(open_line("nic_bandwidth", "…", "or import with --link 400Gb/s"));
}

// The line rate of the device's generation, where that is known.
void add_pcie(const MachineFacts& facts, Entries& node, Fragment& fragment) {
  if (facts.pcie) return add_rate(node, "pcie", *facts.pcie);
  const GpuModel* model = facts.device ? gpu_model_by_name(facts.device->value) : nullptr;
  if (model == nullptr)
    return fragment.missing.push_back(
        open_line("pcie", "…", "of one GPU: 31.5 GB/s with PCIe 4.0 x16, 63 GB/s with 5.0"));
  const bool own = model->host_link > Bandwidth(0);
  const Bandwidth rate = own ? model->host_link : pcie_line_rate(model->sm);
  fragment.missing.push_back(
      open_line("pcie", in_bytes(rate),
                fmt::format("of one {}: {}", model->device, own ? "NVLink-C2C" : "x16 at line rate")));
}

}  // namespace

Fragment machine_fragment(const MachineFacts& facts) {
  Fragment fragment = facts.notes;
  Entries node;
  add_device(facts, node, fragment);
  node.push_back(entry("gpus", facts.gpus.value, source_of(facts.gpus)));
  add_nvlink(facts, node, fragment);
  add_nics(facts, node, fragment);
  add_pcie(facts, node, fragment);
  if (facts.gpus_per_pcie_switch)
    node.push_back(entry("gpus_per_pcie_switch", facts.gpus_per_pcie_switch->value,
                         source_of(*facts.gpus_per_pcie_switch)));
  fragment.missing.push_back(
      "nodes: 1   # under cluster: how many such machines, and `fabric:` where there are more than one");
  fragment.entries.push_back(entry("stagecraft", 1, {}));
  fragment.entries.push_back(map_entry("cluster", {map_entry("node", std::move(node))}));
  return fragment;
}

YamlNode fragment_bit_rate(Bandwidth rate, const SourceLocation& where) {
  return bare(fmt::format("{:.6g} Gb/s", rate.count() * 8 / 1e9), where);
}

std::string as_ranges(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? "," : "-", numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace stagecraft
