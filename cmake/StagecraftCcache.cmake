# Compile through ccache where it is installed and nobody chose another launcher.
find_program(STAGECRAFT_CCACHE ccache)
foreach(language IN ITEMS CXX CUDA)
  if(STAGECRAFT_CCACHE AND NOT CMAKE_${language}_COMPILER_LAUNCHER)
    # The sloppiness that it asks for where a precompiled header is in use.
    set(CMAKE_${language}_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${STAGECRAFT_CCACHE})
  endif()
endforeach()
