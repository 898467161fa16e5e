// The stages of a pipeline as a ring: Bamboo's nodes each also keep the state of the stage after their own.
//
// Place p·S + s is stage s of pipeline p, of S stages.
//
//   source  docs/resilience.md, sections 6 and 7.3; Bamboo, NSDI 2023 (arXiv 2204.12013).
#pragma once

namespace stagecraft {

// The place of the next stage of the same pipeline, after the last one that of the first.
[[nodiscard]] constexpr int place_after(int place, int stages) {
  const int first = place / stages * stages;
  return first + (place - first + 1) % stages;
}

// The place whose node shadows this one.
[[nodiscard]] constexpr int place_before(int place, int stages) {
  const int first = place / stages * stages;
  return first + (place - first + stages - 1) % stages;
}

}  // namespace stagecraft
