# Less to compile.
#
# STAGECRAFT_PRECOMPILE: a precompiled header of other people's headers, as two thirds of a compilation are the parsing of
# GoogleTest, fmt and the standard library; and test programs, which are run once, without optimisation. That every file names
# the headers that it uses is checked by tests/architecture/check_headers.py; the presets `debug` and `dev` go without.
#
# STAGECRAFT_BATCHES: the sources of a library in batches (unity builds): two helpers of one name in one folder are refused
# there, and by tests/architecture/check_batches.py in every build. A source that changes is compiled again with nine others.
#
# STAGECRAFT_FAST_BUILD: both, for builds that only run tests (tools/test), and LLVM's linker where it is found: 200 programs
# with debug information, at a third of the time.
option(STAGECRAFT_FAST_BUILD "Compile faster, for builds that only run tests" OFF)
option(STAGECRAFT_BATCHES "Compile the sources of a library in batches" ${STAGECRAFT_FAST_BUILD})
option(STAGECRAFT_PRECOMPILE "Compile with a precompiled header, and tests without optimisation" ${STAGECRAFT_FAST_BUILD})

# stagecraft_precompiled(NAME OPTION…) : what targets with these options reuse.
function(stagecraft_precompiled name)
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(${name} PRIVATE stagecraft_options)
  # Clang writes into the header when its sources were last touched, so that no two clones had the same one, and a compiler
  # cache found nothing that was compiled with it.
  target_compile_options(${name} PRIVATE ${ARGN} "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  target_precompile_headers(${name} PRIVATE
    <algorithm> <array> <cmath> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <optional> <random> <set>
    <sstream> <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)
endfunction()

if(STAGECRAFT_PRECOMPILE)
  # The compiler takes a precompiled header only where the same macros are set, so all targets get what some of these want.
  target_compile_definitions(stagecraft_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:FMT_SHARED;BOOST_ALL_NO_LIB;GTEST_HAS_PTHREAD=1>)
  stagecraft_precompiled(stagecraft_precompiled_library)
endif()
if(STAGECRAFT_PRECOMPILE AND STAGECRAFT_TESTS)
  # Of programs, whose code is position independent in another way than that of libraries.
  stagecraft_precompiled(stagecraft_precompiled_test -O0 $<$<BOOL:${CMAKE_POSITION_INDEPENDENT_CODE}>:-fPIE>)
  set_target_properties(stagecraft_precompiled_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_precompile_headers(stagecraft_precompiled_test PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
endif()
if(STAGECRAFT_FAST_BUILD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld STAGECRAFT_LLD_LINKS)
  if(STAGECRAFT_LLD_LINKS)
    target_link_options(stagecraft_options INTERFACE -fuse-ld=lld)
  endif()
endif()

function(stagecraft_fast_library target)
  if(STAGECRAFT_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM stagecraft_precompiled_library)
  endif()
  if(STAGECRAFT_BATCHES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
    # A batch is no main file to GCC.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

function(stagecraft_fast_test target)
  if(STAGECRAFT_PRECOMPILE)
    target_compile_options(${target} PRIVATE -O0)
    target_precompile_headers(${target} REUSE_FROM stagecraft_precompiled_test)
  endif()
endfunction()
