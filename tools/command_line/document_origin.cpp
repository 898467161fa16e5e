#include "tools/command_line/document_origin.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "sim/scenario/scenario_hash.hpp"

namespace stagecraft {
namespace {

void add_profiles(std::vector<std::string>& hashes, const Scenario& scenario) {
  for (const HardwareProfile& profile : scenario.group_profiles) hashes.push_back(profile.hash);
  if (scenario.group_profiles.empty() && scenario.profile) hashes.push_back(scenario.profile->hash);
  for (const OtherJob& job : scenario.jobs) add_profiles(hashes, job.scenario);
}

std::string origin(std::string_view scenario_hash, std::span<const std::string> profile_hashes) {
  std::vector<std::string> once;
  for (const std::string& hash : profile_hashes)
    if (std::ranges::find(once, hash) == once.end()) once.push_back(hash);
  JsonWriter json;
  json.begin_object().field("stagecraft_version", STAGECRAFT_VERSION);
  if (!scenario_hash.empty()) json.field("scenario_hash", scenario_hash);
  if (!once.empty()) json.field("profile_hash", join(once, ", "));
  return json.end_object().str();
}

}  // namespace

std::string with_keys(std::string document, std::string_view more) {
  SC_CHECK(document.ends_with('}') && more.starts_with('{'), "both are objects");
  document.back() = ',';
  return document.append(more.substr(1));
}

std::string with_origin(std::string document, const Scenario& scenario) {
  std::vector<std::string> profiles;
  add_profiles(profiles, scenario);
  return with_keys(std::move(document), origin(scenario_hash(scenario), profiles));
}

std::string with_origin(std::string document, std::span<const std::string> profile_hashes) {
  return with_keys(std::move(document), origin({}, profile_hashes));
}

}  // namespace stagecraft
