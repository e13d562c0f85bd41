#include "cli/keys_option.h"

#include "cli/command_line.h"

namespace headrace::cli {

void AddKeysOption(CommandLine* command_line, std::string* place) {
  command_line
      ->AddOption("--keys", *place,
                  "Open encrypted columns with keys from this file (lines: id, key in hexadecimal; "
                  "mode 0600), or from env:NAME")
      ->TypeName("PLACE");
}

}  // namespace headrace::cli
