# Installs BUILD_DIR into WORK_DIR/prefix, builds the consumer against it, runs both the consumer and the installed program.
# Any step that fails ends the script with its output.
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
set(prefix ${WORK_DIR}/prefix)
unset(ENV{STAGECRAFT_DATA})  # the program must find its data by itself

step(TITLE "install" COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
step(TITLE "configure the consumer" COMMAND ${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/consumer -G Ninja
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=Release)
step(TITLE "build the consumer" COMMAND ${CMAKE_COMMAND} --build ${WORK_DIR}/consumer)
step(TITLE "run the consumer" COMMAND ${WORK_DIR}/consumer/consumer OUTPUT said)
if(NOT said STREQUAL "2000000 ns\n")
  message(FATAL_ERROR "the consumer said '${said}', not '2000000 ns'")
endif()

# The examples of the documentation.
step(TITLE "take out the examples" COMMAND ${PYTHON} ${CMAKE_CURRENT_LIST_DIR}/take_examples.py ${EXAMPLES} ${WORK_DIR}/examples)
step(TITLE "configure the examples" COMMAND ${CMAKE_COMMAND} -S ${WORK_DIR}/examples -B ${WORK_DIR}/examples/build -G Ninja
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=Release)
step(TITLE "build the examples" COMMAND ${CMAKE_COMMAND} --build ${WORK_DIR}/examples/build)
step(TITLE "run the schedule" COMMAND ${WORK_DIR}/examples/build/schedule OUTPUT said)
if(NOT said STREQUAL "4 3 2 1 \n")
  message(FATAL_ERROR "the example of a schedule said '${said}', not '4 3 2 1'")
endif()
step(TITLE "run the prediction" OUTPUT said
  COMMAND ${CMAKE_COMMAND} -E env STAGECRAFT_DATA=${prefix}/share/stagecraft ${WORK_DIR}/examples/build/predict
          ${prefix}/share/stagecraft/scenarios/pipeline-4x8.yaml)
if(NOT said STREQUAL "33.0 ms, 37.5 % over ideal, fits\n")
  message(FATAL_ERROR "the example of a prediction said '${said}'")
endif()

step(TITLE "run an installed scenario" OUTPUT said
  COMMAND ${prefix}/bin/stagecraft run --json ${prefix}/share/stagecraft/scenarios/${SCENARIO})
string(JSON schema ERROR_VARIABLE problem GET "${said}" schema)
if(NOT schema STREQUAL "stagecraft.result/1")
  message(FATAL_ERROR "run --json said '${said}' (${problem})")
endif()
if(NOT EXISTS ${prefix}/share/bash-completion/completions/stagecraft)
  message(FATAL_ERROR "the completion was not installed")
endif()
file(REMOVE_RECURSE ${WORK_DIR})
