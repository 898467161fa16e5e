# STAGECRAFT_SQLITE = AUTO | ON | OFF  ->  STAGECRAFT_SQLITE_FOUND
#
# `sweep --sqlite` and `merge --sqlite` need it; the rest of the program does not.
stagecraft_choice(SQLITE "Write sweeps as SQLite databases: AUTO (where SQLite is found), ON or OFF")

set(STAGECRAFT_SQLITE_FOUND OFF)
if(NOT STAGECRAFT_SQLITE STREQUAL OFF)
  find_package(SQLite3 QUIET)
  if(SQLite3_FOUND)
    set(STAGECRAFT_SQLITE_FOUND ON)
  elseif(STAGECRAFT_SQLITE STREQUAL ON)
    message(FATAL_ERROR "STAGECRAFT_SQLITE=ON, but SQLite was not found. Install libsqlite3-dev, or configure with "
                        "-DSTAGECRAFT_SQLITE=AUTO.")
  else()
    message(STATUS "SQLite not found: sweeps are written as JSON lines and CSV only")
  endif()
endif()
