# STAGECRAFT_PYTHON = AUTO | ON | OFF  ->  STAGECRAFT_PYTHON_FOUND
#
# The Python module `stagecraft` (python/), for the interpreter that find_package(Python3) finds. AUTO leaves it out under
# sanitizers, whose run-time would have to be loaded before Python.
stagecraft_choice(PYTHON "Build the Python module: AUTO (where pybind11 and Python's headers are found), ON or OFF")

set(STAGECRAFT_PYTHON_FOUND OFF)
if(STAGECRAFT_PYTHON STREQUAL ON OR (STAGECRAFT_PYTHON STREQUAL AUTO AND NOT STAGECRAFT_SANITIZE))
  find_package(Python3 3.9 QUIET COMPONENTS Interpreter Development.Module)
  if(Python3_FOUND)
    find_package(pybind11 2.10 QUIET CONFIG)
  endif()
  if(Python3_FOUND AND pybind11_FOUND)
    set(STAGECRAFT_PYTHON_FOUND ON)
    # The module is a shared object with all of our libraries in it. Hidden symbols cannot be replaced from outside, so that
    # the compiler may inline and call them as if there were no shared object.
    set(CMAKE_POSITION_INDEPENDENT_CODE ON)
    set(CMAKE_CXX_VISIBILITY_PRESET hidden)
    set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
  elseif(STAGECRAFT_PYTHON STREQUAL ON)
    message(FATAL_ERROR "STAGECRAFT_PYTHON=ON, but pybind11 or Python's headers were not found. Install pybind11-dev and "
                        "python3-dev, or configure with -DSTAGECRAFT_PYTHON=AUTO.")
  else()
    message(STATUS "pybind11 or Python's headers not found: the Python module is not built")
  endif()
endif()
