# stagecraft_library(NAME base SOURCES a.cpp … HEADERS a.hpp … DEPS other … [LINK fmt::fmt …])
#
# One folder, one static library `stagecraft_<name>`, alias `stagecraft::<name>`, with its sources, headers and dependencies
# named one by one. Includes are written from the root of the source tree: #include "base/units.hpp".
function(stagecraft_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;HEADERS;DEPS;LINK;PRIVATE_LINK" ${ARGN})
  set(target stagecraft_${ARG_NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(stagecraft::${ARG_NAME} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  list(TRANSFORM ARG_DEPS PREPEND stagecraft::)
  target_link_libraries(${target} PUBLIC ${ARG_DEPS} ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK} $<BUILD_INTERFACE:stagecraft_options>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${ARG_NAME} VERIFY_INTERFACE_HEADER_SETS ON)
  set_property(GLOBAL APPEND PROPERTY STAGECRAFT_LIBRARIES ${target})
endfunction()

# stagecraft_test(NAME base_units_test SOURCES units_test.cpp DEPS base [LABELS unit])
#
# One GoogleTest program; each test of it becomes a ctest entry with the given labels (default: unit).
function(stagecraft_test)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPS;LABELS;LINK" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND stagecraft::)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} ${ARG_LINK} GTest::gmock_main stagecraft_options)
  target_compile_definitions(${ARG_NAME} PRIVATE STAGECRAFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${ARG_LABELS}")
endfunction()
