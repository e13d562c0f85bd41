#include "probes/perf/cpu_id.h"

#include "probes/host/text.h"

namespace headrace::probes::perf {
namespace {

constexpr int kArmLimited = 0x41;

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// "6", "0x41": a small number, or nothing.
std::optional<int> Small(std::string_view text) {
  const bool hex = text.starts_with("0x");
  const auto number = Count(hex ? text.substr(2) : text, hex ? 16 : 10);
  if (!number || *number > 0xffff) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

CpuId ReadCpuId(const Host& host) {
  CpuId id;
  std::optional<int> variant, revision;
  bool has_part = false;
  // The first processor's block ends at an empty line; its lines are "key : value".
  const std::string text = host.Read("/proc/cpuinfo", 65536).value_or("");
  std::string_view rest = text, line;
  while (NextLine(&rest, &line)) {
    if (Trim(line).empty()) break;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = Trim(line.substr(0, colon)), value = Trim(line.substr(colon + 1));
    if (key == "vendor_id") {
      if (value == "GenuineIntel") id.vendor = CpuId::Vendor::kIntel;
      if (value == "AuthenticAMD") id.vendor = CpuId::Vendor::kAmd;
    } else if (key == "cpu family") {
      id.family = Small(value).value_or(0);
    } else if (key == "model") {
      id.model = Small(value).value_or(0);
    } else if (key == "stepping") {
      id.stepping = Small(value).value_or(0);
    } else if (key == "model name") {
      id.name = value;
    } else if (key == "CPU implementer") {
      id.implementer = Small(value).value_or(0);
    } else if (key == "CPU part") {
      const auto part = Small(value);
      has_part = part.has_value();
      id.part = part.value_or(0);
    } else if (key == "CPU variant") {
      variant = Small(value);
    } else if (key == "CPU revision") {
      revision = Small(value);
    }
  }
  if (id.vendor == CpuId::Vendor::kUnknown && !(id.implementer && has_part && variant)) {
    // MIDR_EL1: implementer 31-24, variant 23-20, architecture 19-16, part 15-4, revision 3-0.
    const auto word = ReadWord(host, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1");
    if (word && word->starts_with("0x")) {
      if (const auto midr = Count(std::string_view(*word).substr(2), 16)) {
        id.implementer = static_cast<int>(*midr >> 24 & 0xff);
        id.part = static_cast<int>(*midr >> 4 & 0xfff);
        variant = static_cast<int>(*midr >> 20 & 0xf);
        revision = static_cast<int>(*midr & 0xf);
      }
    }
  }
  if (id.implementer == kArmLimited) {
    id.vendor = CpuId::Vendor::kArm;
    id.stepping = variant.value_or(0) * 16 + revision.value_or(0);
  }
  return id;
}

}  // namespace headrace::probes::perf
