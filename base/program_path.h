// Where a command's program lies, as a shell finds it.
#pragma once
#include <string>

namespace headrace {

struct ProgramPath {
  std::string path;  // empty: not found
  int error = 0;     // errno, where it was not found: ENOENT, EACCES, ...
};

// `name` in the folders of $PATH (where that is not set: /usr/local/bin, /usr/bin, /bin); with a
// '/' in it `name` itself. Only files that may be executed are found. Throws nothing but bad_alloc.
ProgramPath FindProgram(const std::string& name);

}  // namespace headrace
