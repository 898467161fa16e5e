# STAGECRAFT_PCH: one precompiled header for all of ours, in builds that only run tests (tools/test's sanitizers).
#
# Two thirds of a compilation are the parsing of GoogleTest, fmt and the standard library. Release builds go
# without, so that every source file still names what it uses; who includes too little fails there.
option(STAGECRAFT_PCH "Compile faster with one precompiled header of other people's headers" OFF)

if(STAGECRAFT_PCH)
  # The compiler takes a precompiled header only where the same macros are set, so all targets get what some of these want.
  target_compile_definitions(stagecraft_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:FMT_SHARED;BOOST_ALL_NO_LIB;GTEST_HAS_PTHREAD=1>)
  add_library(stagecraft_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(stagecraft_precompiled PRIVATE stagecraft_options)
  target_precompile_headers(stagecraft_precompiled PRIVATE
    <algorithm> <array> <cmath> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <optional> <random> <set>
    <sstream> <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)
  if(STAGECRAFT_TESTS)
    target_precompile_headers(stagecraft_precompiled PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endif()

function(stagecraft_precompile target)
  if(STAGECRAFT_PCH)
    target_precompile_headers(${target} REUSE_FROM stagecraft_precompiled)
  endif()
endfunction()
