# Flags shared by all targets, and the two functions by which folders declare themselves.
#
# Every layer is an OBJECT library over a globbed source list and every executable links the objects
# directly: registries fill themselves by static registrars, which a STATIC library would drop.

add_library(hr_flags INTERFACE)
target_include_directories(hr_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_definitions(hr_flags INTERFACE HEADRACE_VERSION="${PROJECT_VERSION}")
target_compile_options(hr_flags INTERFACE -Wall -Wextra -Werror -fno-omit-frame-pointer
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>)
if(HEADRACE_SANITIZE)
  # GCC sees uninitialised members of std::regex and std::optional behind the sanitizers' checks.
  target_compile_options(hr_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE} -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(hr_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE})
endif()
if(HEADRACE_FUZZ)
  target_compile_options(hr_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Headers that most files include and that take longer to parse than the file: once for all. What a file needs it includes all the
# same. Only GCC: the fuzzers, which clang builds, are few.
set(precompiled <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <functional> <limits> <map> <memory>
  <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector> <fmt/format.h>)
if(HEADRACE_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
  add_library(hr_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(hr_precompiled PRIVATE hr_flags Threads::Threads fmt::fmt)
  target_precompile_headers(hr_precompiled PRIVATE ${precompiled})
  # GCC 12 inlines std::string otherwise then, and sees copies beyond short strings that never are (GCC bug 105329): which depends on
  # the length of literals, folders' names included. So this is not the default, and builds without it keep the warnings.
  target_compile_options(hr_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict>)
endif()

# hr_precompile(TARGET [FROM]): as above, for a target whose flags are the shared ones.
function(hr_precompile TARGET)
  set(from hr_precompiled ${ARGN})
  list(GET from -1 from)
  if(TARGET ${from})
    target_precompile_headers(${TARGET} REUSE_FROM ${from})
  endif()
endfunction()

# hr_layer(NAME [LIBS lib...] [EXCLUDE regex] [OWN_FLAGS]): OBJECT library hr_NAME of every .cc below the current folder.
function(hr_layer NAME)
  cmake_parse_arguments(ARG "OWN_FLAGS" "EXCLUDE" "LIBS;SOURCES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  if(NOT sources AND NOT ARG_SOURCES)
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/empty.cc CONTENT "")
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty.cc)
  endif()
  add_library(hr_${NAME} OBJECT ${sources} ${ARG_SOURCES})
  target_link_libraries(hr_${NAME} PUBLIC hr_flags Threads::Threads ${ARG_LIBS})
  if(NOT ARG_OWN_FLAGS)
    hr_precompile(hr_${NAME})
  endif()
endfunction()

# hr_executable(NAME LAYERS layer... SOURCES file... [LIBS lib...])
function(hr_executable NAME)
  cmake_parse_arguments(ARG "" "" "LAYERS;SOURCES;LIBS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  list(TRANSFORM ARG_LAYERS PREPEND hr_)
  target_link_libraries(${NAME} PRIVATE ${ARG_LAYERS} ${ARG_LIBS})
endfunction()
