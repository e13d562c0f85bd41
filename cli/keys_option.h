// --keys: where the keys of encrypted columns are; one option of all commands that open tables.
#pragma once
#include <string>

#include "reader/dwrf/file_reader.h"

namespace headrace::cli {

class CommandLine;

void AddKeysOption(CommandLine* command_line, std::string* place);

// An empty place means no keys: encrypted columns stay locked.
reader::dwrf::OpenOptions OpenWithKeys(const std::string& place);

}  // namespace headrace::cli
