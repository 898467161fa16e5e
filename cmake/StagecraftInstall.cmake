# What `cmake --install` puts where, and what find_package(stagecraft) finds.
#
#   bin/                          the command line
#   lib/, include/stagecraft/     one static library a folder; headers as in the source tree
#   lib/cmake/stagecraft/         stagecraftConfig.cmake; targets stagecraft::base, stagecraft::engine, …
#   share/stagecraft/             scenarios/, calibrate/profiles/ and calibrate/validation/, as in the source tree, so that one relative lookup serves both
#   share/stagecraft/schema/      JSON Schemas of scenarios, sweeps, models, nodes and fabrics, for editors
#   lib/python3/dist-packages/    the Python module, where it is built (python/)
#   share/man/man1/               the manual
#   share/{bash-completion,zsh,fish}/   completion of commands and options
#
# `cpack` makes Debian packages of it: stagecraft (program, data, manual, completions), libstagecraft-dev (libraries, headers) and
# python3-stagecraft.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY STAGECRAFT_LIBRARIES)
# Nothing includes tools, out there neither.
list(REMOVE_ITEM libraries stagecraft_cli stagecraft_command_line stagecraft_commands stagecraft_tables stagecraft_validation)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stagecraft)
install(TARGETS ${libraries} EXPORT stagecraftTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stagecraft COMPONENT development
  FILE_SET lone_headers DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stagecraft COMPONENT development)
install(EXPORT stagecraftTargets NAMESPACE stagecraft:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/stagecraftConfig.cmake.in
  ${PROJECT_BINARY_DIR}/stagecraftConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stagecraftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stagecraftConfig.cmake ${PROJECT_BINARY_DIR}/stagecraftConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)

install(TARGETS stagecraft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(STAGECRAFT_MPI_FOUND)
  install(TARGETS stagecraft-mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
# Every package has the licence, where Debian looks for it.
function(stagecraft_licence package component)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright COMPONENT ${component})
endfunction()
stagecraft_licence(stagecraft program)
stagecraft_licence(libstagecraft-dev development)
if(STAGECRAFT_PYTHON_FOUND)
  stagecraft_licence(python3-stagecraft python)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/stagecraft COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/calibrate/profiles ${PROJECT_SOURCE_DIR}/calibrate/validation
  DESTINATION ${CMAKE_INSTALL_DATADIR}/stagecraft/calibrate COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/stagecraft COMPONENT program)

# The program knows its commands and options; nobody else need.
function(stagecraft_printed file option form destination)
  set(path ${PROJECT_BINARY_DIR}/printed/${file})
  add_custom_command(OUTPUT ${path} COMMAND stagecraft ${option} ${form} > ${path} DEPENDS stagecraft VERBATIM)
  add_custom_target(printed_${form} ALL DEPENDS ${path})
  install(FILES ${path} DESTINATION ${destination} COMPONENT program)
endfunction()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/printed)
stagecraft_printed(stagecraft.1 --print-manual man ${CMAKE_INSTALL_MANDIR}/man1)
stagecraft_printed(stagecraft --print-completion bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
stagecraft_printed(_stagecraft --print-completion zsh ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
stagecraft_printed(stagecraft.fish --print-completion fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR Stagecraft)
set(CPACK_PACKAGE_CONTACT "The Stagecraft developers <maintainers@stagecraft.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME stagecraft)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)  # what the program is linked with, found by dpkg-shlibdeps
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libstagecraft-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS  # archives and headers want other -dev packages: those of stagecraftConfig.cmake
  "libfmt-dev, libyaml-cpp-dev, libeigen3-dev, nlohmann-json3-dev, libpugixml-dev, libboost-dev, libboost-program-options-dev")
if(STAGECRAFT_PYTHON_FOUND)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-stagecraft)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  math(EXPR next_python "${Python3_VERSION_MINOR} + 1")  # the module is for one minor version
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "stagecraft (= ${PROJECT_VERSION}), python3 (>= 3.${Python3_VERSION_MINOR}), python3 (<< 3.${next_python})")
endif()
include(CPack)
