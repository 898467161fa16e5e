#include "sim/search/check_section.hpp"

#include <array>
#include <optional>

#include "sim/search/search_space.hpp"
#include "sim/search/stage_axes.hpp"

namespace stagecraft {
namespace {

// A scenario with the first value of the axis asks for the key, or does not.
void check_path(const ScenarioTree& tree, const SearchAxis& axis, Library& library,
                Diagnostics& diagnostics) {
  if (axis.all()) return;  // known, as its numbers divide
  Diagnostics said;
  const std::array<Assignment, 1> one = {{{.path = axis.path, .value = axis.values.front()}}};
  (void)read_scenario(assigned(tree, one, library, said), library, said);
  for (const Diagnostic& mistake : said.items())
    if (mistake.code == "unknown-key" && mistake.where == axis.values.front().where) diagnostics.add(mistake);
}

}  // namespace

void check_search_section(const ScenarioTree& tree, Library& library, Diagnostics& diagnostics) {
  const YamlNode* section = tree.root.find("search");
  if (section == nullptr) return;
  auto space = load_search_space(library.data().root / kDefaultSpace, section, {}, diagnostics);
  if (!space) return;
  for (const SearchAxis& axis : space->axes)
    if (!axis.usual) check_path(tree, axis, library, diagnostics);
  keep_to_stages(tree, library, *space, diagnostics);
}

}  // namespace stagecraft
