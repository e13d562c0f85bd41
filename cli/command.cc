#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include "base/error.h"
#include "cli/configuration.h"
#include "cli/environment.h"

namespace headrace::cli {
namespace {

std::string program_name = "headrace";

}  // namespace

std::string ProgramName() { return program_name; }

void SetProgramName(std::string argv0) {
  if (argv0.find('/') != std::string::npos) program_name = std::move(argv0);
}

std::string DefaultDatabase() {
  const std::string path = EnvironmentValue("HEADRACE_DB");
  if (!path.empty()) return path;
  try {
    const ConfiguredOption* configured = FindConfigured(Configuration(), "", "--db");
    if (configured != nullptr) return configured->values[0];
  } catch (const Error&) {
    // Who applies the file says what is wrong with it; --help works all the same.
  }
  return "./headrace.db";
}

std::optional<Error> ErrorOf(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ExitCode::kResources, "out of memory");
  } catch (const std::exception& error) {
    return Error(ExitCode::kFailure,
                 fmt::format("internal error: {}", Printable(error.what(), 500)));
  }
}

std::string Positive(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && value > 0 && std::isfinite(value)) return "";
  return "'" + Printable(text, 60) + "' is not a number above 0";
}

}  // namespace headrace::cli
