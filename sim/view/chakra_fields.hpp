// Field numbers and values of mlcommons/chakra @21585d8, schema/protobuf/et_def.proto, as far as they are read or
// written; seen by chakra_*.cpp only.
#pragma once

#include <cstdint>

namespace stagecraft::chakra {

enum NodeField : std::uint32_t {
  kId = 1,
  kName = 2,
  kType = 3,
  kControlDeps = 4,
  kDataDeps = 5,
  kDurationMicros = 7,
  kAttribute = 10
};
enum AttributeField : std::uint32_t { kAttributeName = 1, kInt32 = 7, kInt64 = 9, kUint64 = 13, kBool = 27 };
enum NodeType : std::uint64_t { kCompute = 4, kSend = 5, kReceive = 6 };
inline constexpr std::uint32_t kVersion = 1;  // version in GlobalMetadata

}  // namespace stagecraft::chakra
