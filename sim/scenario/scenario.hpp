// A scenario: plain specs, every default filled in, and where each given value was written.
//
//   throws nothing: loaders report to Diagnostics and return nullopt when there was an error.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"
#include "calibrate/profile/hardware_profile.hpp"
#include "models/model_spec.hpp"
#include "sim/goodput/failure_spec.hpp"
#include "sim/plan/fault_spec.hpp"
#include "sim/plan/network_spec.hpp"
#include "sim/plan/specs.hpp"
#include "sim/schedule/schedule.hpp"
#include "topology/cluster_spec.hpp"

namespace stagecraft {

// `assert: {mfu: ">= 0.4"}`: checked after a run.
struct Assertion {
  std::string metric;    // a name of assertion_metrics()
  std::string relation;  // "<", "<=", ">", ">=", "=="
  double limit = 0;      // in the metric's base unit: seconds, bytes, share, per second
  std::string text;      // as written
  SourceLocation where;

  friend bool operator==(const Assertion&, const Assertion&) = default;
};

// `schedule: {file: …}`: an order of passes from a file.
struct PipelineOrder {
  std::string file;  // as written
  Schedule schedule;
  std::string hash = {};  // of the file's text

  friend bool operator==(const PipelineOrder&, const PipelineOrder&) = default;
};

// A default of `failures:` in use, with its basis.
struct AssumedInput {
  std::string path;       // "failures.process.rate_per_node_day"
  std::string value;      // "0.0038", "600 s"
  std::string low, high;  // published range; empty where none is known
  std::string source;
};

struct OtherJob;

struct Scenario {
  std::string source;  // the path as it was given
  std::string name;    // free text; the file's stem when absent
  ModelSpec model;
  std::optional<ClusterSpec> cluster;      // cluster of the job; absent only for abstract stages
  std::optional<HardwareProfile> profile;  // absent only for abstract stages; of the first node group
  // The profile of each node group, where their devices differ; else empty.
  std::vector<HardwareProfile> group_profiles;
  // Set where it is a part of a job and waits for the rest; no key of a file.
  std::optional<int> job_gpus = {};
  ParallelSpec parallelism;
  ScheduleSpec schedule;               // its name is "custom" with a custom order
  std::optional<PipelineOrder> order;  // custom order in place of a named schedule
  TrainingSpec training;
  OverlapSpec overlap;
  OptionsSpec options;
  NetworkSpec network;
  std::optional<ClusterSpec> fabric;  // the whole cluster, where network.placement is a part of it
  std::vector<OtherJob> jobs;         // `network.jobs`: who else runs on it
  std::vector<FaultSpec> faults;      // faults in this iteration
  OffloadSpec offload;
  std::optional<FailureSpec> failures;  // only `goodput` reads them
  std::vector<AssumedInput> assumed;    // defaults of `failures` in use
  std::vector<Assertion> assertions;
  Origins origins;
  // Keys without effect, read but doubtful values, and the warnings that were reported while it was loaded.
  std::vector<Diagnostic> warnings;
  std::vector<std::string> model_assumptions = {};  // of the config.json that is named as its model
};

// An iteration of another scenario, over and over, on nodes of the same fabric.
struct OtherJob {
  std::string name;        // no two of a scenario are the same
  std::string file;        // as written
  std::vector<int> nodes;  // nodes of the fabric, in the order of the job's ranks
  Duration start{};        // start of its first iteration
  Scenario scenario;       // its `cluster` is that of its file: number and kinds of nodes
};

// Place of the key; the file where it was not given.
[[nodiscard]] SourceLocation place_of(const Scenario& scenario, const std::string& path);

// The fabric of all jobs if there are others, otherwise `cluster`. requires a cluster.
[[nodiscard]] const ClusterSpec& whole_cluster(const Scenario& scenario);

// Ranks over which gradients are reduced, data × context: as given, or derived from the GPUs.
[[nodiscard]] std::int64_t replicas_of(const Scenario& scenario);

// Does more than one rank hold the same weights? In a mixture this must hold for experts and for dense
// weights.
[[nodiscard]] bool has_replicas(const Scenario& scenario);
// The ZeRO stage that has an effect: 0 where no two ranks share a state, as one replica or `zero_group: 1`
// have it.
[[nodiscard]] int zero_stage_in_effect(const Scenario& scenario);

// The options that the software decides where they are not given (OptionsSpec::keeps_whole), as they are with
// the degrees of the scenario: options.reshard_after_forward and options.memory.whole_gradients.
[[nodiscard]] bool reshards_after_forward(const Scenario& scenario);
[[nodiscard]] bool keeps_gradients_whole(const Scenario& scenario);
// The options as to_yaml() prints them: with these two given.
[[nodiscard]] OptionsSpec options_in_effect(const Scenario& scenario);

// Is the software the scenario's, not its profile's default?
[[nodiscard]] bool names_software(const Scenario& scenario);
[[nodiscard]] WhatRan what_ran(const Scenario& scenario);

// Samples processed when every replica runs one micro-batch.
[[nodiscard]] std::int64_t samples_at_once(const Scenario& scenario);

// Do forwards and backwards of its schedule run in fused pairs?
[[nodiscard]] bool runs_fused_pairs(const Scenario& scenario);

// Has overlap.expert exchanges to hide, and another micro-batch to hide them?
[[nodiscard]] bool overlaps_expert_exchanges(const Scenario& scenario);

// Directory of named models, nodes, fabrics and profiles.
struct DataDirectory {
  std::filesystem::path root;  // holds scenarios/{models,nodes,fabrics}/ and calibrate/profiles/
  // Texts that a caller gives in place of files, by the names that stand for them; relative paths in them are
  // relative to the working directory.
  std::map<std::string, std::string> texts = {};

  // STAGECRAFT_DATA if set; otherwise relative to the executable: the nearest parent with scenarios/models,
  // or its share/stagecraft.
  [[nodiscard]] static std::optional<DataDirectory> find(const std::filesystem::path& executable);
  // Why find() finds none for `who` ("the program"), and the way out.
  [[nodiscard]] static Diagnostic missing(std::string_view who);
  // Stems of the YAML files in `folder` ("scenarios/models"), sorted.
  [[nodiscard]] std::vector<std::string> names(const std::string& folder) const;
  // The text of this name, else of the file, as parse_flawed_yaml has it.
  [[nodiscard]] std::optional<YamlNode> load(const std::filesystem::path& file,
                                             Diagnostics& diagnostics) const;
};

class Library;

// `overrides`: "parallelism.tensor=4", as of --set, applied in order before reading.
[[nodiscard]] std::optional<Scenario> load_scenario(const std::filesystem::path& file,
                                                    std::span<const std::string> overrides,
                                                    const DataDirectory& data, Diagnostics& diagnostics);
// Reads a parsed tree; relative paths in it are relative to `folder`.
[[nodiscard]] std::optional<Scenario> read_scenario(const YamlNode& root, const std::string& source,
                                                    const std::filesystem::path& folder,
                                                    const DataDirectory& data, Diagnostics& diagnostics);

// Loads one of many scenarios: files of models, nodes, fabrics and profiles are read once
// (sim/scenario/library.hpp).
[[nodiscard]] std::optional<Scenario> load_scenario(const std::filesystem::path& file,
                                                    std::span<const std::string> overrides, Library& library,
                                                    Diagnostics& diagnostics);

// Every key with its value, defaults included but for the software, which stays open where it is; loading it
// gives an equal scenario (but for origins, assumed inputs and warnings, and options_in_effect() for its
// options).
[[nodiscard]] std::string to_yaml(const Scenario& scenario);

// Names that `assert:` knows, with the JSON keys that they mean.
[[nodiscard]] std::span<const std::string_view> assertion_metrics();

}  // namespace stagecraft
