// The environment variables that headrace and the programs it measures read: the one list, for
// `headrace config`, the manual and docs/cli.md.
#pragma once
#include <string>
#include <vector>

namespace headrace::cli {

struct EnvironmentVariable {
  const char* name;
  const char* option;  // it is the default of this option, over the configuration file; "": none
  const char* meaning;
  bool secret = false;  // its value is never shown
};
const std::vector<EnvironmentVariable>& EnvironmentVariables();

// Its value; "" where it is not set.
std::string EnvironmentValue(const char* name);

// The variable that is set and decides this option ("--db"), or null.
const EnvironmentVariable* VariableOf(const std::string& option);

}  // namespace headrace::cli
