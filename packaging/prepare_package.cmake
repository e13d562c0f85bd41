# Run by CPack between installing and packing. Of a Debian package: what policy asks of files. Of an archive: programs that run anywhere.
if(CPACK_GENERATOR STREQUAL "DEB")
  foreach(component tool library development)
    include(${CMAKE_CURRENT_LIST_DIR}/debian/policy.cmake)
  endforeach()
  return()
endif()

# An archive is for any later Linux: program and library are the portable ones (packaging/portable), each a file that needs the C
# library alone.
if(NOT EXISTS ${CPACK_HEADRACE_PORTABLE}/headrace)
  message(FATAL_ERROR "the archive needs the targets headrace_portable and headrace_account_portable; build them, or make packages with -G DEB")
endif()
file(GLOB tools ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/bin/headrace ${CPACK_TEMPORARY_DIRECTORY}/bin/headrace)
list(REMOVE_DUPLICATES tools)
foreach(tool ${tools})
  get_filename_component(bin ${tool} DIRECTORY)
  file(REMOVE_RECURSE ${bin}/.debug)
  file(GLOB library ${bin}/../lib/libheadrace_account.so.*.*)
  foreach(pair "headrace;${tool}" "libheadrace_account.so.1;${library}")
    list(GET pair 0 portable)
    list(GET pair 1 installed)
    # Names of functions stay, for sampled stacks.
    execute_process(COMMAND strip --strip-debug -o ${installed} ${CPACK_HEADRACE_PORTABLE}/${portable} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  # Of all that is linked into the program.
  execute_process(COMMAND python3 ${CPACK_HEADRACE_SOURCE}/packaging/wheel/make_wheel.py --licences
    ${bin}/../share/doc/headrace/licenses COMMAND_ERROR_IS_FATAL ANY)
endforeach()
