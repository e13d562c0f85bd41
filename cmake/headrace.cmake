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

# hr_compile_together(TARGET COUNT FILE...): sources of one folder are compiled up to COUNT at a time as one, so that what they all
# include is read and instantiated once. In one folder, a name in an unnamed namespace therefore belongs to one file.
function(hr_compile_together TARGET COUNT)
  if(NOT HEADRACE_TOGETHER)
    return()
  endif()
  foreach(source ${ARGN})
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER ${folder} folder)
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR group "${count_${folder}} / ${COUNT}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
  endforeach()
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # All of them are main files, whatever the compiler sees: a class of one may have members of its unnamed namespace.
  target_compile_options(${TARGET} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
endfunction()

# hr_objects(TARGET SIZE FILE...): OBJECT library of these sources. SIZE: compiled for size, in three quarters of the time.
function(hr_objects TARGET SIZE)
  add_library(${TARGET} OBJECT ${ARGN})
  # The decoding kernels stay apart: each function has its own target attributes, and its code must not depend on neighbours. So do
  # files that are compiled for one instruction set as a whole.
  list(FILTER ARGN EXCLUDE REGEX "/dwrf/decode/|_avx[0-9]+\\.cc$")
  hr_compile_together(${TARGET} 24 ${ARGN})
  target_link_libraries(${TARGET} PUBLIC hr_flags Threads::Threads)
  # GCC frees no memory before the end of a file: some 7 % less time for a quarter more memory (docs/measurements.md).
  target_compile_options(${TARGET} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:--param=ggc-min-heapsize=4194304>)
  if(SIZE)
    # Where GCC inlines less it takes values of std::optional for uninitialised behind the check that there is one.
    target_compile_options(${TARGET} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Os>
      $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
  endif()
endfunction()

# hr_layer(NAME [ONCE] [FAST regex] [LIBS lib...] [SOURCES file...] [EXCLUDE regex]): OBJECT library hr_NAME of every .cc below the
# current folder. ONCE: code that a command runs through once, compiled for size: two thirds of the code. FAST: but not these.
function(hr_layer NAME)
  cmake_parse_arguments(ARG "ONCE" "EXCLUDE;FAST" "LIBS;SOURCES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ARG_EXCLUDE})
  endif()
  if(NOT sources AND NOT ARG_SOURCES)
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/empty.cc CONTENT "")
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty.cc)
  endif()
  if(ARG_FAST)
    set(fast ${sources})
    list(FILTER fast INCLUDE REGEX ${ARG_FAST})
    list(FILTER sources EXCLUDE REGEX ${ARG_FAST})
    hr_objects(hr_${NAME}_fast OFF ${fast})
    target_link_libraries(hr_${NAME}_fast PUBLIC ${ARG_LIBS})
  endif()
  hr_objects(hr_${NAME} ${ARG_ONCE} ${sources})
  target_sources(hr_${NAME} PRIVATE ${ARG_SOURCES})
  target_link_libraries(hr_${NAME} PUBLIC ${ARG_LIBS})
  if(ARG_FAST)
    target_sources(hr_${NAME} INTERFACE $<TARGET_OBJECTS:hr_${NAME}_fast>)
  endif()
endfunction()

# hr_executable(NAME LAYERS layer... SOURCES file... [LIBS lib...])
function(hr_executable NAME)
  cmake_parse_arguments(ARG "" "" "LAYERS;SOURCES;LIBS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  list(TRANSFORM ARG_LAYERS PREPEND hr_)
  target_link_libraries(${NAME} PRIVATE ${ARG_LAYERS} ${ARG_LIBS})
endfunction()
