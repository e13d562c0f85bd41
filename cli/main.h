// Entry point of the executable, apart from main() so that the layer of commands can be linked into
// tests.
#pragma once

namespace headrace::cli {

int Main(int argc, char** argv);

}  // namespace headrace::cli
