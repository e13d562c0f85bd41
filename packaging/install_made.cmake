# Run while installing: what the installed headrace prints of itself, and the unit that names it.
# A package is put together elsewhere than where it will lie: CMAKE_INSTALL_PREFIX is where, $DESTDIR stands before it.
set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
set(bindir "${CMAKE_INSTALL_PREFIX}/bin")
if(CMAKE_INSTALL_PREFIX MATCHES "_CPack_Packages")  # an archive, which is unpacked anywhere
  set(bindir /usr/local/bin)
endif()
set(CMAKE_INSTALL_FULL_BINDIR ${bindir})
configure_file(${unit} ${root}/lib/systemd/system/headrace-collect.service @ONLY)

function(of_headrace)
  # Defaults in the pages are those of headrace, not of who installs it.
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=HEADRACE_DB HEADRACE_CONFIG= ${root}/bin/headrace ${ARGN}
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()
if(NOT CMAKE_CROSSCOMPILING)
  of_headrace(man -o ${root}/share/man/man1)
  of_headrace(completion --into ${root})
endif()
