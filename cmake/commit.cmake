# Writes OUT, a header that names the commit of SOURCE_DIR: HEADRACE_COMMIT is its short name, with "+changes" where tracked
# files differ from it, and "unknown" outside a git checkout of headrace itself. OUT is only touched when that changes, and one
# source file includes it: a new commit compiles that file again and nothing else.
cmake_minimum_required(VERSION 3.25)
set(commit unknown)
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --show-toplevel WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  file(REAL_PATH ${SOURCE_DIR} source)
  if(NOT failed AND top STREQUAL source)  # a tarball unpacked in another project's checkout has no commit
    execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --exclude=* --abbrev=12 --dirty=+changes
      WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND said)
      set(commit ${said})
    endif()
  endif()
endif()
set(text "#define HEADRACE_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT text STREQUAL old)
  file(WRITE ${OUT} ${text})
endif()
