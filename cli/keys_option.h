// --keys: where the keys of encrypted columns are; one option of all commands that open tables.
#pragma once
#include <string>

#include "reader/dwrf/file_reader.h"

namespace CLI {
class App;
}

namespace headrace::cli {

void AddKeysOption(CLI::App* app, std::string* place);

// An empty place means no keys: encrypted columns stay locked.
reader::dwrf::OpenOptions OpenWithKeys(const std::string& place);

}  // namespace headrace::cli
