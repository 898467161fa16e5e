# STAGECRAFT_CUDA = AUTO | ON | OFF  ->  STAGECRAFT_CUDA_FOUND
#
# Only calibrate/bench is ever compiled by nvcc. AUTO takes it where it is found, ON insists, OFF never looks.
set(STAGECRAFT_CUDA AUTO CACHE STRING "Build what needs nvcc: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE STAGECRAFT_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT STAGECRAFT_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "STAGECRAFT_CUDA is ${STAGECRAFT_CUDA}: use AUTO, ON or OFF")
endif()

set(STAGECRAFT_CUDA_FOUND OFF)
if(NOT STAGECRAFT_CUDA STREQUAL OFF)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(STAGECRAFT_CUDA_FOUND ON)
  elseif(STAGECRAFT_CUDA STREQUAL ON)
    message(FATAL_ERROR "STAGECRAFT_CUDA=ON, but no CUDA compiler was found. Put nvcc on the PATH, set CUDACXX to it, "
                        "or configure with -DSTAGECRAFT_CUDA=AUTO; everything but the GPU benchmarks builds without.")
  endif()
endif()
