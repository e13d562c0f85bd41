// headrace: finds the command, runs it, turns an Error into one line on stderr and its exit code.
#include "cli/main.h"

int main(int argc, char** argv) { return headrace::cli::Main(argc, argv); }
