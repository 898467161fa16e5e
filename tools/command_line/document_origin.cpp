#include "tools/command_line/document_origin.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace stagecraft {
namespace {

std::vector<std::string> profile_hashes(const Scenario& scenario) {
  std::vector<std::string> hashes;
  for (const HardwareProfile& profile : scenario.group_profiles) hashes.push_back(profile.hash);
  if (hashes.empty() && scenario.profile) hashes.push_back(scenario.profile->hash);
  return hashes;
}

}  // namespace

std::string with_keys(std::string document, std::string_view more) {
  SC_CHECK(document.ends_with('}') && more.starts_with('{'), "both are objects");
  document.back() = ',';
  return document.append(more.substr(1));
}

std::string with_origin(std::string document, const Scenario& scenario) {
  JsonWriter json;
  json.begin_object().field("stagecraft_version", STAGECRAFT_VERSION);
  json.field("scenario_hash", std::string_view(StableHash().add(std::string_view(to_yaml(scenario))).hex()));
  const std::vector<std::string> hashes = profile_hashes(scenario);
  if (!hashes.empty()) json.field("profile_hash", std::string_view(join(hashes, ", ")));
  return with_keys(std::move(document), json.end_object().str());
}

}  // namespace stagecraft
