# stagecraft_library(NAME base SOURCES a.cpp … HEADERS a.hpp … DEPS other … [LINK fmt::fmt …] [PRIVATE_LINK …])
#
# One folder, one static library `stagecraft_<name>`, alias `stagecraft::<name>`, with its sources, headers and dependencies
# named one by one. Includes are written from the root of the source tree: #include "base/units.hpp".
function(stagecraft_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;HEADERS;DEPS;LINK;PRIVATE_LINK" ${ARGN})
  set(target stagecraft_${ARG_NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(stagecraft::${ARG_NAME} ALIAS ${target})
  list(TRANSFORM ARG_SOURCES REPLACE "[.]cpp$" ".hpp" OUTPUT_VARIABLE headers_of_sources)
  set(lone_headers ${ARG_HEADERS})
  list(REMOVE_ITEM lone_headers ${headers_of_sources})
  list(REMOVE_ITEM ARG_HEADERS ${lone_headers})
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS}
    FILE_SET lone_headers TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${lone_headers})
  list(TRANSFORM ARG_DEPS PREPEND stagecraft::)
  target_link_libraries(${target} PUBLIC ${ARG_DEPS} ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK} $<BUILD_INTERFACE:stagecraft_options>)
  target_compile_features(${target} PUBLIC cxx_std_20)  # for who includes our headers: the options stay at home
  stagecraft_fast_library(${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${ARG_NAME}
    VERIFY_INTERFACE_HEADER_SETS ON INTERFACE_HEADER_SETS_TO_VERIFY lone_headers)
  set_property(GLOBAL APPEND PROPERTY STAGECRAFT_LIBRARIES ${target})
endfunction()

# stagecraft_test(NAME base_units_test SOURCES units_test.cpp DEPS base [LABELS unit] [LINK …] [SANITIZED FILTER])
#
# One GoogleTest program; each test of it becomes a ctest entry `<name>.<Suite>.<Test>` with the given labels (default:
# unit). Under a sanitizer, whose runtime takes longer to start than most tests run, the program is one entry, of the tests
# that the GoogleTest filter SANITIZED lets through (default: all): what it leaves out takes minutes there and runs nothing
# that the others do not. The target `tests_<label>` builds all programs of a label.
function(stagecraft_test)
  cmake_parse_arguments(ARG "" "NAME;SANITIZED" "SOURCES;DEPS;LABELS;LINK" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND stagecraft::)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} ${ARG_LINK} GTest::gmock_main stagecraft_options)
  target_compile_definitions(${ARG_NAME} PRIVATE STAGECRAFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  stagecraft_fast_test(${ARG_NAME})
  foreach(label IN LISTS ARG_LABELS)
    stagecraft_label_target(${label})
    add_dependencies(tests_${label} ${ARG_NAME})
  endforeach()
  if(STAGECRAFT_SANITIZE)
    add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} $<$<BOOL:${ARG_SANITIZED}>:--gtest_filter=${ARG_SANITIZED}> COMMAND_EXPAND_LISTS)
    set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${ARG_LABELS}")
    return()
  endif()
  gtest_discover_tests(${ARG_NAME}
    TEST_PREFIX "${ARG_NAME}."
    DISCOVERY_MODE PRE_TEST      # listed when ctest starts: building never runs anything
    DISCOVERY_TIMEOUT 60)
  # Its PROPERTIES would flatten a list of labels into one, so they are set on the list of tests that it leaves behind.
  set(label_file ${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}_labels.cmake)
  file(CONFIGURE OUTPUT ${label_file} @ONLY CONTENT [[
foreach(test IN LISTS @ARG_NAME@_TESTS)
  set_tests_properties("${test}" PROPERTIES LABELS "@ARG_LABELS@")
endforeach()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${label_file})
endfunction()

# The target `tests_<label>`, made when first asked for.
function(stagecraft_label_target label)
  if(NOT TARGET tests_${label})
    add_custom_target(tests_${label})
  endif()
endfunction()
if(STAGECRAFT_TESTS)
  include(GoogleTest)
  stagecraft_label_target(concurrency)  # the thread-sanitizer build asks for it by name
endif()
