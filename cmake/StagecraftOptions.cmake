# The interface target that carries standard, warnings and determinism for every target of ours.
add_library(stagecraft_options INTERFACE)
target_compile_features(stagecraft_options INTERFACE cxx_std_20)
target_compile_options(stagecraft_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wpedantic
  -ffp-contract=off)                                  # the same bits in every build type
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in every optimised std::string::insert and operator+ (GCC bug 105651, fixed in 13), and
  # uninitialised strings where an aggregate that was just initialised is moved.
  target_compile_options(stagecraft_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(STAGECRAFT_WERROR)
  target_compile_options(stagecraft_options INTERFACE -Werror)
endif()
if(STAGECRAFT_SANITIZE)
  # no-sanitize-recover: without it UBSan prints its finding and the test passes.
  target_compile_options(stagecraft_options INTERFACE
    -fsanitize=${STAGECRAFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(stagecraft_options INTERFACE -fsanitize=${STAGECRAFT_SANITIZE})
endif()
if(STAGECRAFT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "STAGECRAFT_FUZZ needs clang for libFuzzer, the compiler is ${CMAKE_CXX_COMPILER_ID}. "
                        "Use: cmake --preset fuzz")
  endif()
  target_compile_options(stagecraft_options INTERFACE -fsanitize=fuzzer-no-link)  # coverage; the fuzzer itself is linked by its targets
endif()
