#include "formats/nccl_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "formats/input_text.hpp"

namespace stagecraft {

namespace {

constexpr std::int64_t kMostLinks = 1'000;
constexpr double kFastestNic = 1e8;   // Mbit/s: 100 Tb/s
constexpr double kSpeedUnknown = -1;  // Linux of a link that is down

struct PciGeneration {
  double transfers;  // GT/s
  int factor;        // of NCCL: width * factor / 80 GB/s
};
constexpr std::array<PciGeneration, 6> kGenerations{
    {{2.5, 15}, {5, 30}, {8, 60}, {16, 120}, {32, 240}, {64, 480}}};
constexpr int kFactorOfUnknown = 60;
constexpr std::int64_t kWidthOfUnknown = 16;

bool is_gpu_class(std::string_view text) {
  return text.starts_with("0x0302") || text.starts_with("0x0300");
}
bool is_nic_class(std::string_view text) {
  return text.starts_with("0x0207") || text.starts_with("0x0200");
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

class Reader {
 public:
  explicit Reader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void system(const XmlElement& system) {
    for (const XmlElement& child : system.children) {
      if (child.name != "cpu") {
        add_once(machine_.unread, child.name);
        continue;
      }
      if (const std::string* host = child.attribute("host_hash")) add_once(machine_.hosts, *host);
      const Place place{.cpu = machine_.cpus++};
      for (const XmlElement& below : child.children) device(below, place);
    }
  }

  [[nodiscard]] NcclMachine take() {
    // A dump names the GPUs of its job; entries known only by class belong to none.
    const auto named = [](const auto& part) { return !part.by_class; };
    if (std::ranges::any_of(machine_.gpus, named))
      std::erase_if(machine_.gpus, [](const NcclGpu& gpu) { return gpu.by_class; });
    if (std::ranges::any_of(machine_.nics, named))
      std::erase_if(machine_.nics, [](const NcclNic& nic) { return nic.by_class; });
    for (std::size_t i = 0; i < machine_.gpus.size(); ++i)
      if (machine_.gpus[i].by_class) machine_.gpus[i].index = static_cast<std::int64_t>(i);
    return std::move(machine_);
  }

 private:
  struct Place {
    std::int64_t cpu = 0;
    std::string bridge = {};
    std::optional<NcclPciLink> link = {};  // the narrowest so far
  };

  void refuse(const XmlElement& element, std::string_view attribute, std::string message, std::string hint) {
    diagnostics_.error({.code = "bad-attribute",
                        .where = element.where,
                        .path = fmt::format("{}.{}", element.name, attribute),
                        .message = std::move(message),
                        .hint = std::move(hint)});
  }

  std::optional<std::int64_t> integer(const XmlElement& element, std::string_view attribute,
                                      std::int64_t most) {
    const std::string* text = element.attribute(attribute);
    if (text == nullptr) return std::nullopt;
    const std::optional<std::int64_t> number = parse_integer(*text);
    if (!number || *number < 0 || *number > most) {
      refuse(element, attribute, fmt::format("{} is no whole number from 0 to {}", in_quotes(*text), most),
             {});
      return std::nullopt;
    }
    return number;
  }

  // "32.0 GT/s PCIe" and "32 GT/s" are the same. Empty or unknown: NCCL takes 8 GT/s.
  NcclPciLink pci_link(const XmlElement& pci) {
    const std::string* speed = pci.attribute("link_speed");
    const std::int64_t given = integer(pci, "link_width", 1'024).value_or(0);
    const std::int64_t width = given == 0 ? kWidthOfUnknown : given;
    const std::string_view number =
        speed == nullptr ? std::string_view() : std::string_view(*speed).substr(0, speed->find(' '));
    const std::optional<double> transfers = parse_number(number);
    const auto* const known = std::ranges::find_if(
        kGenerations, [&](const PciGeneration& g) { return transfers && g.transfers == *transfers; });
    const bool assumed = known == kGenerations.end();
    const int factor = assumed ? kFactorOfUnknown : known->factor;
    return {.rate = Bandwidth(static_cast<double>(width * factor) / 80 * 1e9),
            .assumed = assumed,
            .text = fmt::format("x{} at {:g} GT/s", width, assumed ? 8.0 : known->transfers)};
  }

  // A pci or nic element below a cpu or a bridge.
  void device(const XmlElement& element, const Place& place) {
    if (element.name == "nic") return nic(element, place);
    if (element.name != "pci") return add_once(machine_.unread, element.name);
    const std::string* bus = element.attribute("busid");
    const std::string* type = element.attribute("class");
    if (bus == nullptr) refuse(element, "busid", "is missing", {});
    if (type == nullptr) refuse(element, "class", "is missing", "0x060400 is a bridge, 0x030200 a GPU");
    if (bus == nullptr || type == nullptr) return;
    Place here = place;
    const NcclPciLink link = pci_link(element);
    if (!here.link || link.rate < here.link->rate) here.link = link;
    bool holds_nic = false;
    const bool has_gpu =
        std::ranges::any_of(element.children, [](const XmlElement& child) { return child.name == "gpu"; });
    if (has_gpu || is_gpu_class(*type)) return gpu(element, here);
    Place below = here;
    if (!is_nic_class(*type)) below.bridge = *bus;
    for (const XmlElement& child : element.children) {
      holds_nic = holds_nic || child.name == "nic";
      device(child, below);
    }
    if (is_nic_class(*type) && !holds_nic)
      machine_.nics.push_back(
          {.name = *bus, .by_class = true, .cpu = here.cpu, .bridge = here.bridge, .where = element.where});
  }

  void gpu(const XmlElement& pci, const Place& place) {
    NcclGpu gpu{.by_class = true,
                .bus = lower_case(*pci.attribute("busid")),
                .pci = *place.link,
                .cpu = place.cpu,
                .bridge = place.bridge,
                .where = pci.where};
    const std::string* vendor = pci.attribute("vendor");
    const std::string* device_id = pci.attribute("device");
    if (device_id != nullptr && (vendor == nullptr || lower_case(*vendor) == "0x10de"))
      gpu.device_id = *device_id;
    for (const XmlElement& child : pci.children) {
      if (child.name != "gpu") {
        device(child, place);
        continue;
      }
      gpu.by_class = false;
      gpu.index = integer(child, "dev", 1'000'000).value_or(static_cast<std::int64_t>(machine_.gpus.size()));
      gpu.sm = static_cast<int>(integer(child, "sm", 10'000).value_or(0));
      for (const XmlElement& link : child.children) nvlink(link, gpu);
    }
    machine_.gpus.push_back(std::move(gpu));
  }

  void nvlink(const XmlElement& element, NcclGpu& gpu) {
    if (element.name == "c2c") {
      machine_.has_c2c = true;
      return;
    }
    if (element.name != "nvlink") return add_once(machine_.unread, element.name);
    const std::string* target = element.attribute("target");
    const std::string* target_class = element.attribute("tclass");
    const std::optional<std::int64_t> count = integer(element, "count", kMostLinks);
    if (target == nullptr) refuse(element, "target", "is missing", "the bus id of the other end");
    if (element.attribute("count") == nullptr) refuse(element, "count", "is missing", "how many NVLinks");
    if (target == nullptr || !count) return;
    gpu.nvlinks.push_back({.target = lower_case(*target),
                           .target_class = target_class == nullptr ? "" : *target_class,
                           .count = *count,
                           .where = element.where});
  }

  void nic(const XmlElement& element, const Place& place) {
    for (const XmlElement& child : element.children) {
      if (child.name != "net") {
        add_once(machine_.unread, child.name);
        continue;
      }
      const std::string* name = child.attribute("name");
      NcclNic nic{.name = name == nullptr ? fmt::format("net {}", machine_.nics.size()) : *name,
                  .cpu = place.cpu,
                  .bridge = place.bridge,
                  .where = child.where};
      if (const std::string* speed = child.attribute("speed")) {
        const std::optional<double> rate = parse_number(*speed);
        if (!rate || *rate > kFastestNic || (*rate < 0 && *rate != kSpeedUnknown))
          refuse(child, "speed", fmt::format("{} is no speed in Mbit/s", in_quotes(*speed)), {});
        else if (*rate > 0)
          nic.rate = Bandwidth(*rate / 8'000 * 1e9);
      }
      machine_.nics.push_back(std::move(nic));
    }
  }

  Diagnostics& diagnostics_;
  NcclMachine machine_;
};

}  // namespace

std::optional<NcclMachine> read_nccl_machine(const XmlElement& system, Diagnostics& diagnostics) {
  const ErrorWatch watch(diagnostics);
  Reader reader(diagnostics);
  reader.system(system);
  if (!watch.clean()) return std::nullopt;
  return reader.take();
}

}  // namespace stagecraft
