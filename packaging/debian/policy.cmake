# What Debian's policy asks of the files of one component's package.
set(root ${CPACK_TEMPORARY_DIRECTORY}/${component})
if(NOT EXISTS ${root}/usr)
  return()
endif()
set(package_tool headrace)
set(package_library libheadrace-account1)
set(package_development libheadrace-account-dev)
set(package ${package_${component}})
set(doc ${root}/usr/share/doc/${package})
file(MAKE_DIRECTORY ${doc})

file(REMOVE_RECURSE ${root}/usr/bin/.debug)  # symbols are for those who build headrace
file(REMOVE ${doc}/LICENSE)                  # copyright names it
file(COPY_FILE ${CPACK_HEADRACE_SOURCE}/packaging/debian/copyright ${doc}/copyright)
string(TIMESTAMP when "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of $SOURCE_DATE_EPOCH, if that is set
file(WRITE ${doc}/changelog "headrace (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * The changes of this version are in CHANGELOG.md of the package headrace.

 -- ${CPACK_PACKAGE_CONTACT}  ${when}
")
file(GLOB_RECURSE pages ${root}/usr/share/man/*.1)
foreach(file ${doc}/changelog ${pages})
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
if(component STREQUAL library)
  file(GLOB library ${root}/usr/lib/*.so.*.*)
  execute_process(COMMAND strip --strip-unneeded ${library} COMMAND_ERROR_IS_FATAL ANY)
elseif(component STREQUAL development)
  # It says where things are in relation to itself, so that it is the same on all architectures.
  file(MAKE_DIRECTORY ${root}/usr/share/pkgconfig)
  file(RENAME ${root}/usr/lib/pkgconfig/headrace-account.pc ${root}/usr/share/pkgconfig/headrace-account.pc)
  file(REMOVE_RECURSE ${root}/usr/lib/pkgconfig)
endif()
file(GLOB overrides ${CPACK_HEADRACE_SOURCE}/packaging/debian/${package}.lintian-overrides)
if(overrides)
  file(MAKE_DIRECTORY ${root}/usr/share/lintian/overrides)
  file(COPY_FILE ${overrides} ${root}/usr/share/lintian/overrides/${package})
endif()
# A build with a strict umask, or a source tree that only its owner may read, makes the same package.
execute_process(COMMAND chmod -R u+rwX,go+rX,go-w ${root} COMMAND_ERROR_IS_FATAL ANY)
