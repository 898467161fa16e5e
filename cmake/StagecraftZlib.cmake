# Traces and files to import are read compressed (.gz) where zlib is found; else such a file is refused by name.
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  message(STATUS "zlib not found: files are read uncompressed only (zlib1g-dev)")
endif()
