#include "topology/cluster_links.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace stagecraft {

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {  // the last star matches one more letter
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

LinkChoice choose_links(const FabricGraph& graph, const std::vector<LinkException>& exceptions) {
  LinkChoice choice{.by_link = std::vector<std::optional<std::size_t>>(graph.link_count()),
                    .count = std::vector<std::size_t>(exceptions.size()),
                    .clashes = {}};
  const auto choose = [&](EdgeId link, std::size_t index) {
    auto& chosen = choice.by_link[link.index()];
    if (chosen && *chosen != index &&
        std::ranges::none_of(choice.clashes, [&](const LinkChoice::Clash& clash) {
          return clash.first == *chosen && clash.second == index;
        }))
      choice.clashes.push_back({.first = *chosen, .second = index, .link = link});
    if (!chosen) chosen = index;
  };
  std::vector<std::string> names;
  if (!exceptions.empty())
    for (std::uint32_t i = 0; i < graph.link_count(); ++i) names.push_back(graph.name(EdgeId(i)));
  for (std::size_t index = 0; index < exceptions.size(); ++index)
    for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
      if (!matches(exceptions[index].name, names[i])) continue;
      ++choice.count[index];
      choose(EdgeId(i), index);
      if (!exceptions[index].both) continue;
      const auto back = graph.find(graph.link(EdgeId(i)).to, graph.link(EdgeId(i)).from);
      if (back) choose(*back, index);
    }
  return choice;
}

std::vector<VertexId> apply_links(FabricGraph& graph, const std::vector<LinkException>& exceptions) {
  const LinkChoice choice = choose_links(graph, exceptions);
  SC_CHECK(std::ranges::count(choice.count, 0U) == 0, "an exception means a link");
  SC_CHECK(choice.clashes.empty(), "a link has one exception");
  std::vector<VertexId> ends;
  std::vector<bool> gone(graph.link_count());
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    if (!choice.by_link[i]) continue;
    const LinkException& exception = exceptions[*choice.by_link[i]];
    Link& link = graph.link(EdgeId(i));
    link.capacity = exception.share * exception.bandwidth.value_or(link.capacity);
    link.latency = exception.latency.value_or(link.latency);
    gone[i] = exception.missing;
    if (exception.missing) ends.insert(ends.end(), {link.from, link.to});
  }
  if (!ends.empty()) graph.drop(gone);
  return ends;
}

}  // namespace stagecraft
