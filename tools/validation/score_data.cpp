#include "tools/validation/score_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "base/yaml.hpp"
#include "sim/accuracy/constants.hpp"

namespace stagecraft {
namespace {

// Every mapping of a file whose keys are names of sets or profiles and whose values are lists of mappings.
template <class Read>
void read_lists(const std::filesystem::path& file, Diagnostics& diagnostics, Read read) {
  const std::optional<YamlNode> root = load_yaml_file(file, diagnostics);
  if (!root) return;
  for (const YamlEntry& entry : root->entries) {
    for (const YamlNode& item : entry.value.items) {
      YamlMap map(&item, entry.key, item.where, diagnostics);
      read(entry.key, map);
      map.finish();
    }
  }
}

PeerScore read_peer(YamlMap& map) {
  PeerScore peer{.tool = map.text("tool"),
                 .rows = 0,
                 .mean_absolute = map.number("mean_error", {.min = 0}),
                 .remark = map.text("remark", "")};
  (void)map.text("source");  // for whoever reads the file
  return peer;
}

void check_constant(YamlMap& map, std::string_view key, const std::string& name) {
  if (find_constant(name) != nullptr) return;
  std::vector<std::string> names;
  for (const ModelConstant& constant : model_constants()) names.emplace_back(constant.name);
  map.error(key, "unknown-constant", in_quotes(name) + " is no constant", suggest(name, names, names.size()));
}

FittedConstant read_constant(YamlMap& map) {
  FittedConstant constant{.name = map.text("name"),
                          .low = map.number("low"),
                          .high = map.number("high"),
                          .site = map.boolean("site", false),
                          .without = {},
                          .fitted_on = map.texts("fitted_on")};
  if (map.has("without"))
    constant.without = map.number("without", {.min = constant.low, .max = constant.high});
  check_constant(map, "name", constant.name);
  return constant;
}

Ablation read_ablation(YamlMap& map) {
  Ablation ablation{
      .effect = map.text("effect"), .set = map.texts("set"), .constants = {}, .note = map.text("note", "")};
  const YamlNode* constants = map.get("constants");
  if (constants == nullptr) return ablation;
  for (const YamlEntry& entry : constants->entries) {
    check_constant(map, "constants", entry.key);
    ablation.constants[entry.key] = parse_number(entry.value.text).value_or(0);
  }
  return ablation;
}

// A set that another kind has is a mistake: its rows would count twice.
JobKind read_kind(YamlMap& map, const std::vector<JobKind>& others) {
  JobKind kind{.title = map.text("title"), .sets = map.texts("sets")};
  for (const std::string& set : kind.sets) {
    const auto other = std::ranges::find_if(others, [&](const JobKind& known) { return known.has(set); });
    if (other != others.end())
      map.error("sets", "set-of-two-kinds",
                fmt::format("{} is of another kind, {}", in_quotes(set), in_quotes(other->title)));
  }
  return kind;
}

}  // namespace

std::vector<std::string> overrides_that_unname(const ScoreData& data) {
  const auto found = std::ranges::find(data.ablations, "names of what ran", &Ablation::effect);
  return found == data.ablations.end() ? std::vector<std::string>() : found->set;
}

ScoreData load_score_data(const DataDirectory& data, Diagnostics& diagnostics) {
  const std::filesystem::path folder = data.root / "calibrate/validation/scoring";
  ScoreData out;
  read_lists(folder / "peers.yaml", diagnostics,
             [&](const std::string& set, YamlMap& map) { out.peers[set].push_back(read_peer(map)); });
  read_lists(folder / "constants.yaml", diagnostics, [&](const std::string& profile, YamlMap& map) {
    out.constants[profile].push_back(read_constant(map));
  });
  read_lists(folder / "kin.yaml", diagnostics, [&](const std::string& profile, YamlMap& map) {
    out.kin.push_back({.profile = profile, .of = map.text("of"), .wider = map.number("wider", {.min = 1})});
  });
  read_lists(folder / "ablations.yaml", diagnostics, [&](const std::string& kind, YamlMap& map) {
    if (kind == "ablations") {
      out.ablations.push_back(read_ablation(map));
    } else {
      out.not_ablated.push_back(map.text("effect") + ": " + map.text("reason"));
    }
  });
  read_lists(folder / "kinds.yaml", diagnostics,
             [&](const std::string&, YamlMap& map) { out.kinds.push_back(read_kind(map, out.kinds)); });
  read_lists(folder / "biased.yaml", diagnostics, [&](const std::string&, YamlMap& map) {
    out.biased.push_back(map.text("set"));
    (void)map.text("note");  // for whoever reads the file
  });
  return out;
}

std::vector<PeerScore> peers_of(const SetScore& score, const ScoreData& data) {
  std::vector<PeerScore> peers = score.peers();
  const auto printed = data.peers.find(score.name);
  const auto proper_name = [&](const std::string& key) {  // rows name tools in small letters
    if (printed == data.peers.end()) return key;
    for (const PeerScore& peer : printed->second)
      if (edit_distance(peer.tool, key) == 0) return peer.tool;
    return key;
  };
  for (PeerScore& peer : peers) peer.tool = proper_name(peer.tool);
  if (printed != data.peers.end()) peers.insert(peers.end(), printed->second.begin(), printed->second.end());
  return peers;
}

FittedCount fitted_constants_of(const SetScore& score, const ScoreData& data) {
  FittedCount count{.of_its_base = !data.constants.contains(score.profile)};
  for (const auto& [profile, constants] : data.constants) {
    const bool own = profile == score.profile;
    for (const FittedConstant& constant : constants) {
      const bool here = constant.is_fitted_on(score.name);
      if (own && !constant.site) ++count.profile;
      if (own && constant.site && here) ++count.site;
      count.on_this_set = count.on_this_set || (here && (own || count.of_its_base));
    }
  }
  return count;
}

}  // namespace stagecraft
