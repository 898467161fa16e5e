#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "calibrate/fit/nccl_tests.hpp"

namespace stagecraft {

namespace {

using nlohmann::json;

// One half of a result; nullopt where it was not measured. throws json::exception on another shape.
std::optional<double> seconds_of(const json& half) {
  if (half.is_null()) return std::nullopt;
  const double us = half.at("time").get<double>();  // "nan" is a string and so an error
  return us > 0 ? std::optional(us * 1e-6) : std::nullopt;
}

// As the text form writes it: 22809 is 2.28.9.
std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

class JsonReader {
 public:
  JsonReader(const std::string& name, Diagnostics& diagnostics) : name_(name), diagnostics_(diagnostics) {}

  NcclRun read(const json& root) {
    NcclRun run;
    run.kind = nccl_collective(root.at("args").at(0).get<std::string>());
    run.nccl_version = version_text(root.at("nccl_version").get<int>());
    read_devices(root.at("config").at("devices"), run);
    for (const json& result : root.at("results")) read_result(result, run);
    if (run.ranks < 2) refuse("fewer than two ranks are listed: there is nothing to communicate");
    if (run.rows.empty()) refuse("no result");
    if (!root.contains("end_time")) {
      diagnostics_.warning({.code = "run-without-end",
                            .where = {name_, 0, 0},
                            .message = "the run has no end: its rows are used as far as they go"});
    }
    return run;
  }

  void refuse(std::string message) {
    diagnostics_.error({.code = "bad-nccl-tests", .where = {name_, 0, 0}, .message = std::move(message)});
  }

 private:
  void read_devices(const json& devices, NcclRun& run) {
    std::map<int, int> ranks;
    std::map<int, std::set<std::string>> hosts;
    for (const json& device : devices) {
      const int group = device.at("group").get<int>();
      ++ranks[group];
      hosts[group].insert(device.at("hostname").get<std::string>());
      run.device = device.at("device_info").get<std::string>();
    }
    for (const auto& [group, count] : ranks) {
      if (run.ranks != 0 && run.ranks != count) refuse("groups of different sizes: one fit is of one size");
      run.ranks = count;
      run.nodes = std::max(run.nodes, static_cast<int>(hosts[group].size()));
    }
  }

  void read_result(const json& result, NcclRun& run) {
    const json& half = result.at("out_of_place");
    if (half.is_object() && half.contains("cpu_time"))
      return refuse("these are host times (-C 1), which are no time of a collective");
    for (const char* side : {"out_of_place", "in_place"}) {
      const json& of_side = result.at(side);
      if (of_side.is_object() && of_side.at("nwrong").is_number() && of_side.at("nwrong").get<double>() > 0)
        return refuse(fmt::format("size {} has wrong results", result.at("size").get<std::int64_t>()));
    }
    const std::optional<double> seconds = seconds_of(half);
    if (!seconds) return;
    const auto bytes = result.at("size").get<double>();
    if (bytes == 0) {
      run.launch_seconds = std::min(run.launch_seconds.value_or(*seconds), *seconds);
      return;
    }
    run.rows.push_back({.bytes = bytes,
                        .seconds = *seconds,
                        .in_place_seconds = seconds_of(result.at("in_place")).value_or(0)});
  }

  const std::string& name_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<NcclRun> detail::read_nccl_json(std::string_view text, const std::string& name,
                                              Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  JsonReader reader(name, diagnostics);
  NcclRun run;
  try {
    run = reader.read(json::parse(text));
  } catch (const json::parse_error& error) {
    // Its text quotes what was read, which may be of the user's environment.
    reader.refuse(fmt::format("is no JSON from byte {} on", error.byte));
  } catch (const json::exception& error) {
    reader.refuse(fmt::format("is not what nccl-tests -J writes: {}", error.what()));
  }
  if (errors != diagnostics.error_count()) return std::nullopt;
  return run;
}

}  // namespace stagecraft
