#include "formats/nccl_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "formats/import_entries.hpp"
#include "formats/input_text.hpp"
#include "formats/nccl_machine.hpp"
#include "formats/xml_reader.hpp"

namespace stagecraft {

namespace {

// NVLinks of one GPU by what they lead to.
struct LinkSum {
  std::int64_t to_switch = 0, to_self = 0, unknown = 0;
  std::map<std::string, std::int64_t> to_gpu = {};

  [[nodiscard]] std::int64_t direct() const {
    std::int64_t sum = 0;
    for (const auto& [bus, count] : to_gpu) sum += count;
    return sum;
  }
  [[nodiscard]] std::int64_t usable() const { return to_switch > 0 ? to_switch : direct(); }
};

class MachineImporter {
 public:
  MachineImporter(const NcclMachine& machine, std::string file, const TopologyRequest& request,
                  Diagnostics& diagnostics)
      : machine_(machine), file_(std::move(file)), request_(request), diagnostics_(diagnostics) {}

  std::optional<Fragment> import() {
    if (machine_.gpus.empty()) {
      diagnostics_.error({.code = "no-gpus",
                          .where = {file_, 0, 0},
                          .message = "has no GPU",
                          .hint = "a <gpu> element, or a <pci> of class 0x0302 or 0x0300"});
      return std::nullopt;
    }
    const ErrorWatch watch(diagnostics_);
    head();
    gpus();
    nvlinks();
    nics();
    pcie();
    pcie_switches();
    leftovers();
    if (!watch.clean()) return std::nullopt;
    return machine_fragment(facts_);
  }

 private:
  [[nodiscard]] const NcclGpu& first() const { return machine_.gpus.front(); }

  void warn(const SourceLocation& where, std::string code, std::string message, std::string hint = {}) {
    diagnostics_.warning(
        {.code = std::move(code), .where = where, .message = std::move(message), .hint = std::move(hint)});
  }

  void head() {
    facts_.notes.head.push_back(fmt::format("From {}: a machine as NCCL sees it: {} GPUs, {} NICs, {} CPUs",
                                            file_, machine_.gpus.size(), machine_.nics.size(),
                                            machine_.cpus));
    std::map<std::tuple<std::int64_t, std::string>, std::vector<std::string>> places;
    for (const NcclGpu& gpu : machine_.gpus)
      places[{gpu.cpu, gpu.bridge}].push_back(fmt::format("GPU {}", gpu.index));
    for (const NcclNic& nic : machine_.nics) places[{nic.cpu, nic.bridge}].push_back("NIC " + nic.name);
    for (const auto& [place, names] : places) {
      const auto& [cpu, bridge] = place;
      facts_.notes.head.push_back(fmt::format(
          "  CPU {}{}: {}", cpu, bridge.empty() ? "" : ", PCIe switch " + bridge, join(names, ", ")));
    }
  }

  void gpus() {
    const bool by_class = first().by_class;
    facts_.gpus = {.value = static_cast<std::int64_t>(machine_.gpus.size()),
                   .comment = by_class ? "PCI devices of class 0x0302 or 0x0300" : "gpu elements",
                   .where = first().where};
    const GpuModel* model = gpu_model_by_pci(first().device_id);
    if (model != nullptr)
      facts_.device = {.value = std::string(model->device),
                       .comment = "PCI device " + first().device_id,
                       .where = first().where};
    else if (request_.device)
      facts_.device = {.value = *request_.device, .comment = "--device", .where = first().where};
    if (request_.device && lower_case(*request_.device) != lower_case(facts_.device->value))
      diagnostics_.error(contradicted_option(
          "--device", *request_.device,
          fmt::format("{}, of {}", facts_.device->comment, facts_.device->value), first().where));
    const auto unlike = std::ranges::find_if(
        machine_.gpus, [&](const NcclGpu& g) { return g.device_id != first().device_id; });
    if (unlike != machine_.gpus.end())
      warn(unlike->where, "unlike-gpus",
           fmt::format("GPU {} is of device {}, and the first is of {}", unlike->index,
                       in_quotes(unlike->device_id), in_quotes(first().device_id)),
           "a node has GPUs of one device: the first is taken for all");
    if (machine_.hosts.size() > 1)
      warn({file_, 0, 0}, "several-hosts",
           fmt::format("{} hosts are fused into one NVLink domain: it becomes one node",
                       machine_.hosts.size()));
  }

  [[nodiscard]] int generation() const {
    if (first().sm > 0) return first().sm;
    const GpuModel* model = facts_.device ? gpu_model_by_name(facts_.device->value) : nullptr;
    return model == nullptr ? 0 : model->sm;
  }

  [[nodiscard]] LinkSum links_of(const NcclGpu& gpu, const std::set<std::string>& buses) const {
    LinkSum sum;
    for (const NcclNvlink& link : gpu.nvlinks) {
      // Virtual machines hide the switches behind a bus id that no device has.
      if (link.target_class.starts_with("0x0680") || link.target.starts_with("fffffff:"))
        sum.to_switch += link.count;
      else if (link.target == gpu.bus)
        sum.to_self += link.count;
      else if (buses.contains(link.target))
        sum.to_gpu[link.target] += link.count;
      else
        sum.unknown += link.count;
    }
    return sum;
  }

  // Every GPU linked to every other, as often each.
  [[nodiscard]] static bool is_full_mesh(const std::vector<LinkSum>& sums) {
    const std::int64_t each = sums.front().to_gpu.empty() ? 0 : sums.front().to_gpu.begin()->second;
    return each > 0 && std::ranges::all_of(sums, [&](const LinkSum& sum) {
             return sum.to_gpu.size() + 1 == sums.size() &&
                    std::ranges::all_of(sum.to_gpu, [&](const auto& peer) { return peer.second == each; });
           });
  }

  void nvlinks() {
    std::set<std::string> buses;
    for (const NcclGpu& gpu : machine_.gpus) buses.insert(gpu.bus);
    std::vector<LinkSum> sums;
    for (const NcclGpu& gpu : machine_.gpus) sums.push_back(links_of(gpu, buses));
    std::vector<std::int64_t> usable;
    for (const LinkSum& sum : sums) usable.push_back(sum.usable());
    warn_about_links(
        sums, [](const LinkSum& s) { return s.to_self; }, "nvlink-to-itself", "the GPU itself",
        "pairs are bridged, and the file does not tell which");
    warn_about_links(sums, [](const LinkSum& s) { return s.unknown; }, "nvlink-to-nobody",
                     "devices that are not in the file", {});
    const auto [least, most] = std::minmax_element(usable.begin(), usable.end());
    const bool on_switch = std::ranges::all_of(sums, [](const LinkSum& s) { return s.to_switch > 0; });
    const bool lost = std::ranges::any_of(sums, [](const LinkSum& s) { return s.to_self + s.unknown > 0; });
    if (first().by_class) return open_nvlink("the file leaves NVLinks to what NCCL finds");
    if (lost) return open_nvlink("the other end of the NVLinks is unknown");
    if (*most == 0) return;
    if (!on_switch && !is_full_mesh(sums)) {
      warn(first().where, "partial-nvlink", "the NVLinks do not join every GPU with every other alike",
           "a node's `nvlink` leads to all its GPUs: say what a GPU gets, or leave it out for PCIe alone");
      return open_nvlink("not every GPU is linked with every other");
    }
    if (*least != *most)
      warn(first().where, "unlike-nvlinks",
           fmt::format("GPUs have {} to {} NVLinks: the fewest are taken for all", *least, *most));
    if (!on_switch)
      facts_.notes.assumed.push_back(
          "nvlink: all NVLinks of a GPU together; they are direct, so a message between two GPUs gets only a "
          "part");
    set_nvlink(*least);
  }

  // Once for all GPUs that have such links.
  template <class Count>
  void warn_about_links(const std::vector<LinkSum>& sums, Count count, std::string code,
                        std::string_view what, std::string hint) {
    std::vector<std::int64_t> gpus;
    std::int64_t links = 0;
    const NcclGpu* where = nullptr;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (count(sums[i]) == 0) continue;
      if (where == nullptr) where = &machine_.gpus[i];
      links += count(sums[i]);
      gpus.push_back(machine_.gpus[i].index);
    }
    if (where == nullptr) return;
    std::ranges::sort(gpus);
    warn(where->nvlinks.front().where, std::move(code),
         fmt::format("{} NVLinks of GPU {} lead to {}", links, as_ranges(gpus), what), std::move(hint));
  }

  void open_nvlink(std::string_view why) {
    const std::string example = nvlink_example(generation());
    facts_.nvlink_open =
        fmt::format("nvlink: {}   # under cluster.node, with nvlink_latency: {}", example, why);
  }

  void set_nvlink(std::int64_t links) {
    const int sm = generation();
    const NvlinkRates rates = nvlink_rates(sm);
    if (rates.planned <= Bandwidth(0)) {
      warn(first().where, "unknown-generation",
           fmt::format("the GPU's generation is not told: the rate of its {} NVLinks is unknown", links),
           "--device NAME");
      return open_nvlink(fmt::format("{} links a GPU, of unknown rate", links));
    }
    const auto count = static_cast<double>(links);
    facts_.nvlink = {.value = rates.planned * count,
                     .comment = fmt::format("{} NVLinks of {:g} GB/s, as NCCL plans on sm_{}", links,
                                            rates.planned.count() / 1e9, sm),
                     .where = first().where};
    if (rates.line > Bandwidth(0))
      facts_.notes.assumed.push_back(
          fmt::format("nvlink: what NCCL plans with; node presets give the line rate, {} x {:g} = {:g} GB/s",
                      links, rates.line.count() / 1e9, (rates.line * count).count() / 1e9));
  }

  void nics() {
    if (machine_.nics.empty()) return;
    const NcclNic& nic = machine_.nics.front();
    std::optional<Bandwidth> best;
    std::int64_t unknown = 0;
    for (const NcclNic& other : machine_.nics) {
      if (other.rate) best = std::max(best.value_or(Bandwidth(0)), *other.rate);
      unknown += other.rate ? 0 : 1;
    }
    std::int64_t count = 0;
    std::vector<std::string> slower;
    for (const NcclNic& other : machine_.nics) {
      if (!best || !other.rate || *other.rate == *best)
        ++count;
      else
        slower.push_back(other.name);
    }
    facts_.nics = {.value = count,
                   .comment = nic.by_class ? "PCI devices of class 0x0207 or 0x0200" : "net elements",
                   .where = nic.where};
    if (!slower.empty())
      warn(nic.where, "unlike-nics",
           fmt::format("{} of {} NICs are slower than the rest and left aside: {}", slower.size(),
                       machine_.nics.size(), in_quotes(join(slower, ", "))),
           "a node has NICs of one rate");
    if (unknown > 0 && !nic.by_class)
      warn(nic.where, "unknown-speed",
           fmt::format("{} of {} NICs do not tell their speed", unknown, machine_.nics.size()),
           "NCCL would take 10 Gb/s; --link gives it");
    if (best)
      facts_.nic_bandwidth = {.value = *best, .comment = "net speed", .where = nic.where};
    else if (request_.link)
      facts_.nic_bandwidth = {.value = *request_.link, .comment = "--link", .where = nic.where};
    if (request_.link && *request_.link != facts_.nic_bandwidth->value)
      diagnostics_.error(contradicted_option(
          "--link", fragment_bit_rate(*request_.link, {}).text,
          "net speed " + fragment_bit_rate(facts_.nic_bandwidth->value, {}).text, nic.where));
  }

  void pcie() {
    const auto narrowest = std::ranges::min_element(
        machine_.gpus, [](const NcclGpu& a, const NcclGpu& b) { return a.pci.rate < b.pci.rate; });
    const NcclPciLink& link = narrowest->pci;
    facts_.pcie = {
        .value = link.rate,
        .comment = fmt::format("{}{}, as NCCL counts it", link.assumed ? "assumed: " : "", link.text),
        .where = narrowest->where};
    if (link.assumed)
      warn(narrowest->where, "unknown-speed",
           fmt::format("the PCIe speed of GPU {} is not told: {} is assumed, as NCCL does", narrowest->index,
                       human(link.rate)),
           "virtual machines hide it");
    const bool unlike =
        std::ranges::any_of(machine_.gpus, [&](const NcclGpu& gpu) { return gpu.pci.rate != link.rate; });
    if (unlike)
      warn(narrowest->where, "unlike-pcie",
           fmt::format("GPU {} has a slower PCIe link than others: it is taken for all", narrowest->index));
    facts_.notes.assumed.push_back(
        "pcie: width x factor / 80 GB/s, as NCCL plans; node presets give line rates, 63 GB/s for Gen5 x16");
  }

  // Written where every GPU shares its switch with as many others, neighbours by number.
  void pcie_switches() {
    std::map<std::string, std::vector<std::int64_t>> below;
    for (const NcclGpu& gpu : machine_.gpus)
      below[fmt::format("{} {}", gpu.cpu, gpu.bridge)].push_back(gpu.bridge.empty() ? -1 : gpu.index);
    const std::size_t each = below.begin()->second.size();
    bool alike = each > 1;
    for (auto& [bridge, gpus] : below) {
      std::ranges::sort(gpus);
      alike = alike && gpus.size() == each && gpus.front() >= 0 &&
              gpus.front() % static_cast<std::int64_t>(each) == 0 &&
              gpus.back() - gpus.front() + 1 == static_cast<std::int64_t>(each);
    }
    if (alike)
      facts_.gpus_per_pcie_switch = {.value = static_cast<std::int64_t>(each),
                                     .comment = fmt::format("{} PCIe switches", below.size()),
                                     .where = first().where};
    if (machine_.cpus > 1)
      facts_.notes.assumed.push_back(fmt::format(
          "sockets: 1: the file has {} CPUs and does not tell the rate between them (`socket_link`)",
          machine_.cpus));
  }

  void leftovers() {
    if (machine_.has_c2c)
      warn(first().where, "not-modelled",
           "NVLink-C2C between GPU and CPU is left aside: `pcie` is as written");
    if (!machine_.unread.empty())
      warn({file_, 0, 0}, "unknown-element",
           fmt::format("elements that are not read: {}", in_quotes(join(machine_.unread, ", "))));
    facts_.notes.ignored.emplace_back(
        "CPU affinities, families and models; ranks, GUIDs and connections of the job");
  }

  const NcclMachine& machine_;
  std::string file_;
  const TopologyRequest& request_;
  Diagnostics& diagnostics_;
  MachineFacts facts_;
};

bool check_root(const XmlElement& root, Diagnostics& diagnostics) {
  const auto refuse = [&](std::string code, std::string message, std::string hint) {
    diagnostics.error({.code = std::move(code),
                       .where = root.where,
                       .message = std::move(message),
                       .hint = std::move(hint)});
    return false;
  };
  if (root.name == "graphs")
    return refuse("graph-xml", "<graphs> holds the rings and trees that NCCL chose, not the machine",
                  "import the file of NCCL_TOPO_DUMP_FILE in place of NCCL_GRAPH_DUMP_FILE's");
  if (root.name != "system")
    return refuse("not-a-topology", fmt::format("the root is {}, not <system>", in_quotes(root.name)),
                  "import the file of NCCL_TOPO_DUMP_FILE");
  const std::string* version = root.attribute("version");
  if (version == nullptr) return refuse("no-version", "<system> has no version", "NCCL writes version=\"1\"");
  if (*version == "2")
    return refuse("rccl-version", "<system version=\"2\"> is of RCCL, AMD's library",
                  "version 1, NCCL's, is read");
  if (*version != "1")
    return refuse("unknown-version", fmt::format("<system> is of version {}, not 1", in_quotes(*version)),
                  {});
  return true;
}

}  // namespace

std::optional<Fragment> import_nccl_topology(std::string_view text, const std::string& name,
                                             const TopologyRequest& request, Diagnostics& diagnostics) {
  const std::optional<XmlElement> root = parse_xml(text, name, diagnostics);
  if (!root || !check_root(*root, diagnostics)) return std::nullopt;
  const std::optional<NcclMachine> machine = read_nccl_machine(*root, diagnostics);
  if (!machine) return std::nullopt;
  return MachineImporter(*machine, name, request, diagnostics).import();
}

}  // namespace stagecraft
