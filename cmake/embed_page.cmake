# The style and the scripts of a page as C++ strings: a file in the binary, since #embed does not exist.
#
# usage: cmake -DOUTPUT=page_files.cpp -DSTYLE=page.css -DSCRIPTS=a.js,b.js -P embed_page.cmake
function(literal file result)
  file(READ "${file}" content)
  string(FIND "${content}" ")page\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${file} holds the end of the literal that it is to be")
  endif()
  set(${result} "R\"page(${content})page\"" PARENT_SCOPE)
endfunction()

literal("${STYLE}" style)
string(REPLACE "," ";" files "${SCRIPTS}")
set(scripts "")
foreach(file IN LISTS files)
  literal("${file}" script)
  string(APPEND scripts "    ${script},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made by cmake/embed_page.cmake from sim/view/page.
#include \"sim/view/page_files.hpp\"

namespace stagecraft {
namespace {

constexpr std::string_view kStyle = ${style};

constexpr std::string_view kScripts[] = {
${scripts}};

}  // namespace

std::string_view page_style() {
  return kStyle;
}

std::span<const std::string_view> page_scripts() {
  return kScripts;
}

}  // namespace stagecraft
")
