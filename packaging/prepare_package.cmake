# Run by CPack between installing and packing. Of a Debian package: what policy asks of files. Of an archive: the libraries it needs.
file(GLOB tools ${CPACK_TEMPORARY_DIRECTORY}/*/usr/bin/headrace ${CPACK_TEMPORARY_DIRECTORY}/usr/bin/headrace
  ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/bin/headrace ${CPACK_TEMPORARY_DIRECTORY}/bin/headrace)
list(REMOVE_DUPLICATES tools)

if(CPACK_GENERATOR STREQUAL "DEB")
  foreach(component tool library development)
    include(${CMAKE_CURRENT_LIST_DIR}/debian/policy.cmake)
  endforeach()
  return()
endif()

# Everything but the C library's own, which fit the kernel and the loader of the machine.
foreach(tool ${tools})
  get_filename_component(bin ${tool} DIRECTORY)
  get_filename_component(root ${bin} DIRECTORY)
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${tool} RESOLVED_DEPENDENCIES_VAR libraries
    PRE_EXCLUDE_REGEXES "^(linux-vdso|ld-linux|libc|libm|libpthread|libdl|librt|libresolv|libutil|libanl)[.-]" POST_EXCLUDE_REGEXES)
  file(MAKE_DIRECTORY ${root}/lib/headrace)
  foreach(library ${libraries})
    file(REAL_PATH ${library} real)
    get_filename_component(name ${library} NAME)
    file(COPY_FILE ${real} ${root}/lib/headrace/${name})
  endforeach()
endforeach()
