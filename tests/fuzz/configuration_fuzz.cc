// Fuzzes the parser of the configuration file: any bytes are options with their lines, or an Error
// with code 2 on one line that names the file.
//
// fuzz run: share=1 length=4096
// fuzz layers: base
// fuzz libs: fmt::fmt tomlplusplus::tomlplusplus
// fuzz sources: cli/configuration.cc cli/environment.cc
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "cli/configuration.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    for (const cli::ConfiguredOption& option :
         cli::ParseConfiguration({reinterpret_cast<const char*>(data), size}, "config.toml")) {
      HR_CHECK(option.line > 0, "a line");
      HR_CHECK(option.option.empty() == option.values.empty(), "an option has a value");
    }
  } catch (const Error& error) {
    const std::string line = error.what();
    HR_CHECK(error.code() == ExitCode::kUsage, line.c_str());
    HR_CHECK(line.find('\n') == std::string::npos, "one line");
    HR_CHECK(line.starts_with("config.toml:"), line.c_str());
  }
  return 0;
}
