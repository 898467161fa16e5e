# Makes the Debian packages of BUILD_DIR, unpacks the program's into WORK_DIR/root and runs it there.
# Any step that fails ends the script with its output.
include(${CMAKE_CURRENT_LIST_DIR}/step.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
unset(ENV{STAGECRAFT_DATA})  # the program must find its data by itself

step(TITLE "make the packages" COMMAND ${CPACK} --config ${BUILD_DIR}/CPackConfig.cmake -B ${WORK_DIR})
file(GLOB program ${WORK_DIR}/stagecraft_*.deb)
file(GLOB development ${WORK_DIR}/libstagecraft-dev_*.deb)

step(TITLE "ask what the program needs" COMMAND dpkg-deb --field ${program} Depends OUTPUT needs)
foreach(library IN ITEMS libc6 libfmt libyaml-cpp libboost-program-options)
  if(NOT needs MATCHES ${library})
    message(FATAL_ERROR "the package depends on '${needs}', which has no ${library}")
  endif()
endforeach()

step(TITLE "unpack the program" COMMAND dpkg-deb --extract ${program} root)
foreach(path IN ITEMS bin/stagecraft share/man/man1/stagecraft.1 share/bash-completion/completions/stagecraft
                      share/doc/stagecraft/copyright share/zsh/site-functions/_stagecraft share/fish/vendor_completions.d/stagecraft.fish
                      share/stagecraft/calibrate/profiles/a100-sxm4-80gb.yaml share/stagecraft/schema/scenario.schema.json)
  if(NOT EXISTS ${WORK_DIR}/root/usr/${path})
    message(FATAL_ERROR "the package holds no ${path}")
  endif()
endforeach()
if(EXISTS ${WORK_DIR}/root/usr/include)
  message(FATAL_ERROR "the program's package holds headers")
endif()
step(TITLE "run the program" OUTPUT said
  COMMAND root/usr/bin/stagecraft run --json root/usr/share/stagecraft/scenarios/${SCENARIO})
string(JSON schema ERROR_VARIABLE problem GET "${said}" schema)
if(NOT schema STREQUAL "stagecraft.result/1")
  message(FATAL_ERROR "run --json said '${said}' (${problem})")
endif()

if(PYTHON)
  file(GLOB module ${WORK_DIR}/python3-stagecraft_*.deb)
  step(TITLE "ask what the module needs" COMMAND dpkg-deb --field ${module} Depends OUTPUT needs)
  if(NOT needs MATCHES "stagecraft \\(= .*python3 \\(>= 3.*libc6")
    message(FATAL_ERROR "the module's package depends on '${needs}'")
  endif()
  step(TITLE "unpack the module" COMMAND dpkg-deb --extract ${module} root)
  if(NOT EXISTS ${WORK_DIR}/root/usr/share/doc/python3-stagecraft/copyright)
    message(FATAL_ERROR "the module's package holds no licence")
  endif()
  step(TITLE "use the module" OUTPUT figure
    COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=root/usr/lib/python3/dist-packages ${PYTHON} -c
    "print(__import__('stagecraft').simulate('root/usr/share/stagecraft/scenarios/${SCENARIO}')['gpus'])")
  if(NOT figure STREQUAL "1024\n")
    message(FATAL_ERROR "the module said '${figure}', not 1024 GPUs")
  endif()
endif()

step(TITLE "list the library" COMMAND dpkg-deb --contents ${development} OUTPUT held)
foreach(path IN ITEMS libstagecraft_engine.a doc/libstagecraft-dev/copyright include/stagecraft/sim/simulate.hpp cmake/stagecraft/stagecraftConfig.cmake)
  if(NOT held MATCHES ${path})
    message(FATAL_ERROR "the library's package holds no ${path}")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK_DIR})
