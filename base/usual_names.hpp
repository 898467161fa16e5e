// What the field calls things for which our keys have other names: `tp` is `tensor`, `seq_length` is
// `sequence_length`. For hints alone: no reader takes them.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace stagecraft {

struct UsualName {
  std::string_view word, key;
  std::string_view section = {};  // of `key`, for words that people write in another
  std::string_view way = {};      // the hint, where the key alone does not say how
};
[[nodiscard]] std::span<const UsualName> usual_names();

// The key that people mean who write `word`, in any case, with - or _; nullopt where we know of none.
[[nodiscard]] std::optional<UsualName> key_called(std::string_view word);

}  // namespace stagecraft
