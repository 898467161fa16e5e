# STAGECRAFT_MPI = AUTO | ON | OFF  ->  STAGECRAFT_MPI_FOUND
#
# Only the program stagecraft-mpi links MPI; any vendor's will do, for the C interface is all that is used.
stagecraft_choice(MPI "Build stagecraft-mpi: AUTO (where MPI is found), ON or OFF")

set(STAGECRAFT_MPI_FOUND OFF)
if(NOT STAGECRAFT_MPI STREQUAL OFF)
  enable_language(C)  # FindMPI asks the C wrapper
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    set(STAGECRAFT_MPI_FOUND ON)
  elseif(STAGECRAFT_MPI STREQUAL ON)
    message(FATAL_ERROR "STAGECRAFT_MPI=ON, but no MPI was found. Install libopenmpi-dev and openmpi-bin, or configure "
                        "with -DSTAGECRAFT_MPI=AUTO.")
  else()
    message(STATUS "MPI not found: stagecraft-mpi is not built")
  endif()
endif()
