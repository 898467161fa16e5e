// A trace file as a stream: piece by piece, since traces are larger than memory is cheap, and compressed or
// not.
#pragma once

#include <functional>
#include <istream>
#include <string>

#include "base/diagnostic.hpp"

namespace stagecraft {

// Calls `read` with the text of the file; "-" is standard input. gzip is seen by its first two bytes.
// Missing, a directory, unreadable, damaged or cut off, and compressed in a program that was built without
// zlib: reported.
void with_trace_stream(const std::string& file, Diagnostics& diagnostics,
                       const std::function<void(std::istream&)>& read);

}  // namespace stagecraft
