// What is wrong with the options of a command, said at once and not by one try each.
#pragma once

#include <functional>
#include <optional>
#include <type_traits>

#include "base/diagnostic.hpp"
#include "tools/command_line/command_line.hpp"

namespace stagecraft {

class OptionChecks {
 public:
  // What `read` gives; nullopt where it throws UsageError or ScenarioError, which is kept.
  template <class Read>
  std::optional<std::invoke_result_t<Read>> read(Read read) {
    try {
      return std::invoke(read);
    } catch (const UsageError& error) {
      mistakes_.error({.code = "usage", .message = error.what(), .hint = error.hint()});
    } catch (const ScenarioError& error) {
      for (const Diagnostic& mistake : error.diagnostics()) mistakes_.add(mistake);
    }
    return std::nullopt;
  }

  [[nodiscard]] const Diagnostics& mistakes() const { return mistakes_; }
  // throws ScenarioError with all of them, where there are any.
  void done() const { mistakes_.throw_if_errors(); }

 private:
  Diagnostics mistakes_;
};

}  // namespace stagecraft
