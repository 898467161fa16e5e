# Compile through ccache where it is installed and nobody chose another launcher.
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(STAGECRAFT_CCACHE ccache)
  if(STAGECRAFT_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${STAGECRAFT_CCACHE})
  endif()
endif()
