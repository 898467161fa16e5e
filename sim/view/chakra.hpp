// Chakra execution traces (MLCommons): a pipeline as ASTRA-sim and others read it, one file for each rank,
// and back.
//
//   file      a varint of its length and a message: GlobalMetadata, then Node after Node
//   nodes     passes are compute nodes; a message is a send on one rank and a receive, of the same tag, on
//             the other, whether it takes time or not; whatever else one rank waits for from another is a
//             message of one byte
//   time      whole microseconds, as the format has it: rounded with carry along each rank's compute stream,
//             so that its sum stays within half a microsecond; a message is rounded alone. Sends keep their
//             time in duration_micros, which ASTRA-sim does not read: it has a network of its own.
//   source    mlcommons/chakra @21585d8, schema/protobuf/et_def.proto
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "sim/engine/engine.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

struct ChakraExport {
  const Program& program;
  const Timeline& timeline;
  // Message bytes from a stage to the next, and back, by stage; a norm is one number of 4 bytes.
  std::vector<Bytes> messages;
};

// Why a timeline cannot be a trace, and a hint.
struct ChakraRefusal {
  std::string why, hint;
};
// Traffic of replicas that are not simulated, shared links, a timeline that stalls and the like. nullopt where
// nothing keeps it from being one.
[[nodiscard]] std::optional<ChakraRefusal> no_chakra_because(const Program& program,
                                                             const Timeline& timeline);

// The file of each simulated rank. requires that nothing keeps it from being one.
[[nodiscard]] std::vector<std::string> chakra_traces(const ChakraExport& exported);

struct ChakraFile {
  std::string name;  // for messages
  std::string bytes;
};
// Time of a send without a duration.
struct ChakraNetwork {
  Bandwidth link{};  // 0: every send must say
  Duration latency{};
};

// The program of such files, by rank. Compute nodes run one at a time in the order of the file, sends any
// number at once; a receive ends with its send. Reports damaged files, unknown node types and attributes
// (collectives, memory), messages without a size, times that add up to more than 35 years, dependencies on
// missing nodes, unmatched sends and receives, and nodes that wait for each other; nullopt then.
[[nodiscard]] std::optional<Program> chakra_program(std::span<const ChakraFile> files,
                                                    const ChakraNetwork& network, Diagnostics& diagnostics);

}  // namespace stagecraft
