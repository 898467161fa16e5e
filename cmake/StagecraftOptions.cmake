# The interface target that carries standard, warnings and determinism for every target of ours.
add_library(stagecraft_options INTERFACE)
target_compile_features(stagecraft_options INTERFACE cxx_std_20)
target_compile_options(stagecraft_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wpedantic
  -ffp-contract=off)                                  # the same bits in every build type
if(STAGECRAFT_WERROR)
  target_compile_options(stagecraft_options INTERFACE -Werror)
endif()
if(STAGECRAFT_SANITIZE)
  target_compile_options(stagecraft_options INTERFACE -fsanitize=${STAGECRAFT_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(stagecraft_options INTERFACE -fsanitize=${STAGECRAFT_SANITIZE})
endif()
