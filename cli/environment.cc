#include "cli/environment.h"

#include <cstdlib>

namespace headrace::cli {

const std::vector<EnvironmentVariable>& EnvironmentVariables() {
  static const std::vector<EnvironmentVariable> variables = {
      {"HEADRACE_DB", "--db", "The database where no --db is given"},
      {"HEADRACE_CONFIG", "", "The configuration file; empty: none is read"},
      {"XDG_CONFIG_HOME", "", "The folder of headrace/config.toml, instead of ~/.config"},
      {"NO_COLOR", "--color", "Any value: no colours"},
      {"PAGER", "", "Shows pages longer than the screen; cat or empty: no pager"},
      {"COLUMNS", "", "The width of pages, instead of the terminal's"},
      {"HEADRACE_ACCOUNTS", "", "off: a program's instrumentation is off"},
      {"HEADRACE_ACCOUNT_LEVEL", "", "1: instrumentation never reads the thread's CPU clock"},
      {"HEADRACE_ACCOUNT_DIR", "", "Where instrumentation segments are, instead of /dev/shm"},
      {"HEADRACE_ACCOUNT_LIBRARY", "", "The library of the Python package (docs/python.md)"},
      {"HEADRACE_ISA", "",
       "scalar or avx2: decode without newer instructions of the processor, to compare"},
      {"HEADRACE_BPF_STATS", "", "Set: the kernel times its BPF programs (run --deep)"},
      {"HEADRACE_BPF_MAP_ENTRIES", "", "Entries of the largest BPF maps, 1 to 65536"},
      {"HEADRACE_BPF_RING_BYTES", "", "Bytes of the ring of BPF events, a power of two from 4096"},
      {"HEADRACE_BPF_VERBOSE", "", "Set: libbpf's messages on standard error"},
      {"HEADRACE_BPF_PLAIN", "", "Set: the BPF programs for kernels before 5.17"},
      {"HEADRACE_TOKEN_FILE", "--token-file", "The file of the token of a job of the service"},
      {"HEADRACE_TOKEN", "", "That token itself", true},
      {"AWS_ACCESS_KEY_ID", "", "With AWS_SECRET_ACCESS_KEY: credentials for s3:// places", true},
      {"AWS_SECRET_ACCESS_KEY", "", "Its secret", true},
      {"AWS_SESSION_TOKEN", "", "The session token of these credentials", true},
      {"OTEL_EXPORTER_OTLP_HEADERS", "", "Headers of export --format otlp --endpoint", true},
  };
  return variables;
}

std::string EnvironmentValue(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const EnvironmentVariable* VariableOf(const std::string& option) {
  for (const EnvironmentVariable& variable : EnvironmentVariables()) {
    if (option == variable.option && !EnvironmentValue(variable.name).empty()) return &variable;
  }
  return nullptr;
}

}  // namespace headrace::cli
