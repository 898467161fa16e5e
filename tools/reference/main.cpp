// stagecraft-reference: docs/scenario.md and the JSON Schemas of docs/schema/, from the readers themselves.
//
//   usage: stagecraft-reference SOURCE_DIR markdown|scenario|sweep|model|node|fabric|gaps|keys
//   `gaps` prints what no document reaches or no help explains, and exits 1 where there is any; `keys` every
//   path.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tools/reference/key_help.hpp"
#include "tools/reference/render.hpp"

namespace {

using namespace stagecraft;

int print_gaps(const References& references) {
  std::vector<std::string> all = problems_of(references.scenario);
  for (const std::string& gap : problems_of(references.sweep)) all.push_back(gap);
  for (const std::string& gap : gaps_of(DocumentKind::kScenario, references.scenario)) all.push_back(gap);
  for (const std::string& gap : gaps_of(DocumentKind::kSweep, references.sweep)) all.push_back(gap);
  for (const std::string& gap : all) fmt::print("{}\n", gap);
  return all.empty() ? 0 : 1;
}

int print(const References& references, const std::string& what) {
  if (what == "gaps") return print_gaps(references);
  if (what == "markdown") return fmt::print("{}", render_markdown(references)), 0;
  if (what != "keys") return fmt::print("{}", render_schema(references, what)), 0;
  for (const Reference* reference : {&references.scenario, &references.sweep})
    for (const ReferenceKey& key : reference->keys) fmt::print("{}\n", key.path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(
        stderr,
        "usage: stagecraft-reference SOURCE_DIR markdown|scenario|sweep|model|node|fabric|gaps|keys\n");
    return 2;
  }
  try {
    const References references{.scenario = survey(DocumentKind::kScenario, argv[1]),
                                .sweep = survey(DocumentKind::kSweep, argv[1])};
    return print(references, argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "stagecraft-reference: {}\n", error.what());
    return 2;
  }
}
