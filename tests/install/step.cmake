# step(TITLE what [OUTPUT variable] COMMAND …) : runs it in WORK_DIR; a command that fails ends the script with what it said.
function(step)
  cmake_parse_arguments(ARG "" "TITLE;OUTPUT" "COMMAND" ${ARGN})
  execute_process(COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${WORK_DIR}
    RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARG_TITLE}: exit ${code}\n${out}\n${err}")
  endif()
  if(ARG_OUTPUT)
    set(${ARG_OUTPUT} "${out}" PARENT_SCOPE)
  endif()
endfunction()
