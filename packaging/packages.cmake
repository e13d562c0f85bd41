# CPack: three Debian packages, and an archive for any Linux.
set(CPACK_PACKAGE_NAME headrace)
set(CPACK_PACKAGE_VENDOR headrace)
set(CPACK_PACKAGE_CONTACT "headrace maintainers <headrace@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "shows why training pipelines wait for data")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME headrace-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_COMPONENTS_ALL tool library development)
set(CPACK_STRIP_FILES OFF)  # the executable's symbols were taken apart; the library has few
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_SOURCE_DIR}/package_config.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/prepare_package.cmake)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_HEADRACE_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_HEADRACE_PORTABLE ${CMAKE_CURRENT_BINARY_DIR}/portable/bin)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_TOOL_PACKAGE_NAME headrace)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION devel)
set(CPACK_COMPONENT_TOOL_DESCRIPTION
"finds out why machine-learning training waits for data
It records a training pipeline and says what limits it, how sure that
is, what to change, and what the change gains. An instrumented pipeline
is measured operator by operator. Any other program is judged from
outside by its threads, waits, reads and connections. Runs are kept in
one SQLite file.

A service records every instrumented pipeline of a machine. Installing
the package does not enable it: systemctl enable --now headrace-collect")
set(CPACK_DEBIAN_TOOL_PACKAGE_RECOMMENDS "libheadrace-account1, python3, less")
set(CPACK_DEBIAN_TOOL_PACKAGE_SUGGESTS "xdg-utils")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libheadrace-account1)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
"instrumentation of data pipelines for headrace, as a library
Programs that cannot include a C header are instrumented with this
library. What it counts lies in shared memory, where headrace reads it
while the program runs.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libheadrace-account-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libheadrace-account1 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
"instrumentation of data pipelines for headrace, C and C++ headers
One header is all that a C or C++ data loader needs to be measured
operator by operator. The package has the header, scopes for C++, a
CMake package and a pkg-config file.")

# Purging leaves nothing: what the service has recorded goes with it.
set(CPACK_DEBIAN_TOOL_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_SOURCE_DIR}/debian/postinst"
  "${CMAKE_CURRENT_SOURCE_DIR}/debian/prerm" "${CMAKE_CURRENT_SOURCE_DIR}/debian/postrm")
# The dynamic loader's cache, and which package others need that link the library.
file(CONFIGURE OUTPUT shlibs CONTENT "libheadrace_account 1 libheadrace-account1 (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_SOURCE_DIR}/debian/triggers"
  "${CMAKE_CURRENT_BINARY_DIR}/shlibs")
include(CPack)
