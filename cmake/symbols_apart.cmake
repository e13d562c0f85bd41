# Run while installing: moves the symbols of bin/headrace to bin/.debug/headrace.debug.
set(program "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/headrace")
get_filename_component(folder ${program} DIRECTORY)
file(MAKE_DIRECTORY ${folder}/.debug)
foreach(arguments "--only-keep-debug;${program};.debug/headrace.debug" "--strip-all;--add-gnu-debuglink=.debug/headrace.debug;${program}")
  execute_process(COMMAND ${objcopy} ${arguments} WORKING_DIRECTORY ${folder} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
