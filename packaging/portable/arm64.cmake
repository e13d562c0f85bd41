# Toolchain for 64-bit ARM on another machine: Debian's cross compiler, and Debian's arm64 packages unpacked in the folder `root` of the
# build folder (arm64_root.sh). `make wheel ARCH=aarch64` uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEADRACE_ARM64_ROOT)
set(root ${HEADRACE_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_LIBDIR} ${root}/usr/lib/aarch64-linux-gnu/pkgconfig:${root}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
# The C library's headers are the cross compiler's own; root has none.
set(CMAKE_C_FLAGS_INIT "-isystem ${root}/usr/include/aarch64-linux-gnu")
# GCC for this processor takes std::optional's members for uninitialised where GCC for x86-64 does not, and tells of each std::pair<double,
# double> that GCC 10.1 changed how it is passed.
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -Wno-maybe-uninitialized -Wno-psabi")
# As in a system, but for LAPACK and BLAS, to which Debian's alternatives point there, and the compiler's own folder.
foreach(kind EXE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "")
  foreach(folder aarch64-linux-gnu aarch64-linux-gnu/lapack aarch64-linux-gnu/blas gcc/aarch64-linux-gnu/12)
    string(APPEND CMAKE_${kind}_LINKER_FLAGS_INIT " -L${root}/usr/lib/${folder}")
  endforeach()
endforeach()
