# What `cmake --install` puts where, and what find_package(stagecraft) finds.
#
#   bin/                          the command line
#   lib/, include/stagecraft/     one static library a folder; headers as in the source tree
#   lib/cmake/stagecraft/         stagecraftConfig.cmake; targets stagecraft::base, stagecraft::engine, …
#   share/stagecraft/             scenarios/ and calibrate/profiles/, as in the source tree, so that one relative lookup serves both
#   share/bash-completion/        completion of commands and options
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY STAGECRAFT_LIBRARIES)
list(REMOVE_ITEM libraries stagecraft_cli)  # of the command line only: nothing includes tools, out there neither
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stagecraft)
install(TARGETS ${libraries} EXPORT stagecraftTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stagecraft)
install(EXPORT stagecraftTargets NAMESPACE stagecraft:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/stagecraftConfig.cmake.in
  ${PROJECT_BINARY_DIR}/stagecraftConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stagecraftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stagecraftConfig.cmake ${PROJECT_BINARY_DIR}/stagecraftConfigVersion.cmake
  DESTINATION ${package_dir})

install(TARGETS stagecraft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(STAGECRAFT_MPI_FOUND)
  install(TARGETS stagecraft-mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/stagecraft)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/calibrate/profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/stagecraft/calibrate)

# The program knows its commands and options; nobody else need.
set(completion ${PROJECT_BINARY_DIR}/completion/stagecraft)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/completion)
add_custom_command(OUTPUT ${completion} COMMAND stagecraft --print-completion bash > ${completion} DEPENDS stagecraft)
add_custom_target(completion ALL DEPENDS ${completion})
install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
