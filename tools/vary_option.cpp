#include "tools/vary_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace stagecraft {

std::vector<Vary> varied_by(const Arguments& arguments) {
  std::vector<Vary> varied;
  for (const std::string& text : arguments.all("vary")) {
    ParsedVary parsed = parse_vary(text);
    if (!parsed.mistake.empty())
      throw UsageError(fmt::format("--vary {}: {}", text, parsed.mistake), "--vary path.to.key=value,value");
    if (std::ranges::find(varied, parsed.vary.path, &Vary::path) != varied.end())
      throw UsageError(fmt::format("--vary: {} is varied twice", parsed.vary.path),
                       "give all its values at once");
    varied.push_back(std::move(parsed.vary));
  }
  return varied;
}

void refuse_standard_input(const Arguments& arguments) {
  if (std::ranges::find(arguments.words(), "-") != arguments.words().end())
    throw UsageError("standard input can be read only once, and every variant reads its scenario",
                     "write the path of a file");
}

}  // namespace stagecraft
