// --keys: where the keys of encrypted columns are; one option of all commands that open tables.
#pragma once
#include <string>

namespace headrace::cli {

class CommandLine;

void AddKeysOption(CommandLine* command_line, std::string* place);

}  // namespace headrace::cli
