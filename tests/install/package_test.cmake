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
                      share/zsh/site-functions/_stagecraft share/fish/vendor_completions.d/stagecraft.fish
                      share/stagecraft/calibrate/profiles/a100-sxm4-80gb.yaml)
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

step(TITLE "list the library" COMMAND dpkg-deb --contents ${development} OUTPUT held)
foreach(path IN ITEMS libstagecraft_engine.a include/stagecraft/sim/simulate.hpp cmake/stagecraft/stagecraftConfig.cmake)
  if(NOT held MATCHES ${path})
    message(FATAL_ERROR "the library's package holds no ${path}")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK_DIR})
