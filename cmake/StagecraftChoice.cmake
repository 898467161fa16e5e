# stagecraft_choice(MPI "Build stagecraft-mpi: AUTO (where MPI is found), ON or OFF")  ->  STAGECRAFT_MPI = AUTO | ON | OFF
function(stagecraft_choice name help)
  set(STAGECRAFT_${name} AUTO CACHE STRING "${help}")
  set_property(CACHE STAGECRAFT_${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT STAGECRAFT_${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "STAGECRAFT_${name} is ${STAGECRAFT_${name}}: use AUTO, ON or OFF")
  endif()
endfunction()
