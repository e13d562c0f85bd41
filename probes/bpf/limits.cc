#include "probes/bpf/limits.h"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"

namespace headrace::probes::bpf {
namespace {

std::optional<uint32_t> FromEnvironment(const char* name, uint32_t least, uint32_t most,
                                        bool power_of_two, const char* allowed) {
  const char* variable = std::getenv(name);
  const std::string_view text = variable ? variable : "";
  if (text.empty()) return std::nullopt;
  uint32_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (whole && value >= least && value <= most && !(power_of_two && (value & (value - 1)) != 0)) {
    return value;
  }
  throw Error(ExitCode::kUsage,
              "'" + Printable(std::string(text), 60) + "' is not allowed: it takes " + allowed,
              name, "correct it or unset it");
}

}  // namespace

std::optional<uint32_t> MapEntriesLimit() {
  return FromEnvironment("HEADRACE_BPF_MAP_ENTRIES", 1, 1u << 16, false,
                         "a whole number from 1 to 65536");
}

std::optional<uint32_t> RingBytesLimit() {
  return FromEnvironment("HEADRACE_BPF_RING_BYTES", 4096, 1u << 30, true,
                         "a power of two from 4096 to 1073741824");
}

bool PlainPrograms() {
  const char* variable = std::getenv("HEADRACE_BPF_PLAIN");
  return variable && *variable;
}

void CheckLimits() {
  MapEntriesLimit();
  RingBytesLimit();
}

}  // namespace headrace::probes::bpf
