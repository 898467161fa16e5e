// Small spaces of plans for tests: a scenario as text, with its `search` part.
#pragma once

#include <string>

#include "sim/search/enumerate.hpp"
#include "sim/search/search_space.hpp"

namespace stagecraft::testing_spaces {

struct SmallSpace {
  SearchSpace space;
  SearchPlans plans;
};

// Fails the test where it does not load. `words`: as of the command line.
SmallSpace load(const std::string& yaml, const SearchWords& words = {});
// The text of all mistakes of a space that does not load.
std::string mistakes_of(const std::string& yaml, const SearchWords& words = {});

// 8 layers, 16 heads, hidden 1,024 on one DGX A100 of 8 GPUs, 16 samples; `more` is added.
std::string small_gpt(const std::string& more = "");
// small_gpt() with 4 experts in each layer.
std::string small_experts(const std::string& more = "");
// Abstract stages of `forward`, a third of their work, 4 in a row on the same 8 GPUs; `parallelism` is added
// to the pipeline.
std::string small_stages(const std::string& forward = "1 ms", const std::string& parallelism = "",
                         const std::string& more = "");

}  // namespace stagecraft::testing_spaces
