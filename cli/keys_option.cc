#include "cli/keys_option.h"

#include <CLI/CLI.hpp>

namespace headrace::cli {

void AddKeysOption(CLI::App* app, std::string* place) {
  app->add_option("--keys", *place,
                  "Open encrypted columns with keys from this file (lines: id, key in hexadecimal; "
                  "mode 0600), or from env:NAME")
      ->type_name("PLACE");
}

reader::dwrf::OpenOptions OpenWithKeys(const std::string& place) {
  reader::dwrf::OpenOptions options;
  if (!place.empty()) options.keys = reader::dwrf::KeyRing::Load(place);
  return options;
}

}  // namespace headrace::cli
