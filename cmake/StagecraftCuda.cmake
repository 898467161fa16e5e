# STAGECRAFT_CUDA = AUTO | ON | OFF  ->  STAGECRAFT_CUDA_FOUND
#
# Only calibrate/bench is ever compiled by nvcc. AUTO takes it where it is found, ON insists, OFF never looks.
stagecraft_choice(CUDA "Build what needs nvcc: AUTO (where nvcc is found), ON or OFF")

set(STAGECRAFT_CUDA_FOUND OFF)
if(NOT STAGECRAFT_CUDA STREQUAL OFF)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES OFF)  # the target names its own
    enable_language(CUDA)
    find_package(CUDAToolkit)
  endif()
  # cuBLASLt is not optional: a toolkit without its libraries (a compiler alone, in some containers) builds nothing here.
  if(CMAKE_CUDA_COMPILER AND TARGET CUDA::cublasLt AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.0)
    set(STAGECRAFT_CUDA_FOUND ON)
  elseif(STAGECRAFT_CUDA STREQUAL ON)
    message(FATAL_ERROR "STAGECRAFT_CUDA=ON, but no nvcc of version 12.0 or later with cuBLASLt was found. Put nvcc on "
                        "the PATH, set CUDACXX to it, or configure with -DSTAGECRAFT_CUDA=AUTO; everything but the "
                        "GPU benchmarks builds without.")
  else()
    message(STATUS "No nvcc (12.0 or later) with cuBLASLt: stagecraft-calibrate is not built")
  endif()
endif()
