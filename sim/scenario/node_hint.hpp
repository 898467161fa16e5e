// What to say to who names a node that is none of ours.
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

// The node like the machine of a cloud, or those of the GPU that the name says: dgx-h800 is nearer to hgx-h800 than
// to dgx-h100. Empty where the name says neither.
[[nodiscard]] std::string node_hint(const std::string& name, const std::vector<std::string>& names);

}  // namespace stagecraft
