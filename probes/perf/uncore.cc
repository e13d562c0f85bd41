#include "probes/perf/uncore.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>

#include "probes/host/text.h"

namespace headrace::probes::perf {
namespace {

constexpr const char* kDevices = "/sys/bus/event_source/devices";
constexpr size_t kMaxPmus = 1024, kMaxFields = 64, kMaxEvents = 512;
constexpr int kMaxCpus = 8192;
constexpr size_t kMaxText = 4096;

template <typename T>
std::optional<T> Whole(std::string_view text, int base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> HexOrDecimal(std::string_view text) {
  return text.starts_with("0x") ? Whole<uint64_t>(text.substr(2), 16) : Whole<uint64_t>(text, 10);
}

// Takes the part before the next comma off the front.
bool NextPart(std::string_view* text, std::string_view* part) {
  if (text->empty()) return false;
  const size_t comma = text->find(',');
  *part = text->substr(0, comma);
  *text = comma == std::string_view::npos ? "" : text->substr(comma + 1);
  return true;
}

// A file of one line, which some drivers end in a newline and some do not.
std::optional<std::string> ReadPlain(const Host& host, const std::string& path) {
  auto text = host.Read(path, kMaxText);
  if (!text || text->size() >= kMaxText) return std::nullopt;
  if (text->ends_with('\n')) text->pop_back();
  if (text->empty() || text->find('\n') != std::string::npos) return std::nullopt;
  return text;
}

struct Range {
  int first, last;
};
std::optional<Range> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = Whole<int>(text.substr(0, dash), 10);
  const auto last = dash == std::string_view::npos ? first : Whole<int>(text.substr(dash + 1), 10);
  if (!first || !last || *first < 0 || *last < *first) return std::nullopt;
  return Range{*first, *last};
}

// Puts `value` into the bits that `format` names, lowest first.
bool Pack(std::string_view format, uint64_t value, EventCode* code) {
  const size_t colon = format.find(':');
  const std::string_view word = format.substr(0, colon);
  uint64_t* target = word == "config"    ? &code->config
                     : word == "config1" ? &code->config1
                     : word == "config2" ? &code->config2
                                         : nullptr;
  if (!target || colon == std::string_view::npos) return false;
  std::string_view ranges = format.substr(colon + 1), part;
  if (ranges.empty()) return false;
  while (NextPart(&ranges, &part)) {
    const auto range = ParseRange(part);
    if (!range || range->last > 63) return false;
    for (int bit = range->first; bit <= range->last; bit++) {
      *target |= (value & 1) << bit;
      value >>= 1;
    }
  }
  return value == 0;
}

}  // namespace

std::vector<std::string> PmuNames(const Host& host) {
  auto names = host.List(kDevices);
  if (names.size() > kMaxPmus) names.resize(kMaxPmus);
  return names;
}

std::optional<SysfsPmu> ReadPmu(const Host& host, const std::string& name) {
  const std::string path = fmt::format("{}/{}", kDevices, name);
  const auto type = ReadCount(host, path + "/type");
  if (!type || *type > UINT32_MAX) return std::nullopt;
  SysfsPmu pmu;
  pmu.name = name;
  pmu.type = static_cast<uint32_t>(*type);
  if (const auto mask = ReadWord(host, path + "/cpumask")) {
    pmu.cpus = ParseCpuList(*mask).value_or(std::vector<int>());
  }
  for (const std::string& field : host.List(path + "/format")) {
    if (pmu.formats.size() >= kMaxFields) break;
    if (const auto format = ReadPlain(host, path + "/format/" + field)) {
      pmu.formats[field] = *format;
    }
  }
  for (const std::string& event : host.List(path + "/events")) {
    if (pmu.events.size() >= kMaxEvents) break;
    if (event.find('.') != std::string::npos) continue;  // x.scale, x.unit, x.snapshot, ...
    const std::string file = path + "/events/" + event;
    SysfsEvent described;
    const auto terms = ReadPlain(host, file);
    if (!terms) continue;
    described.terms = *terms;
    if (const auto digits = ReadPlain(host, file + ".scale")) {
      // A damaged scale makes the event useless.
      double scale = 0;
      const auto [end, error] =
          std::from_chars(digits->data(), digits->data() + digits->size(), scale);
      if (error != std::errc() || end != digits->data() + digits->size()) continue;
      if (!std::isfinite(scale) || scale <= 0 || scale > 1e12) continue;
      described.scale = scale;
    }
    if (const auto unit = ReadPlain(host, file + ".unit")) described.unit = *unit;
    pmu.events[event] = std::move(described);
  }
  return pmu;
}

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  std::string_view part;
  if (text.empty() || text.back() == ',') return std::nullopt;
  while (NextPart(&text, &part)) {
    const auto range = ParseRange(part);
    if (!range || range->last >= kMaxCpus) return std::nullopt;
    for (int cpu = range->first; cpu <= range->last; cpu++) {
      if (cpus.size() >= kMaxCpus) return std::nullopt;
      cpus.push_back(cpu);
    }
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::optional<EventCode> Encode(const SysfsPmu& pmu, std::string_view terms) {
  EventCode code{pmu.type, 0, 0, 0};
  std::string_view term;
  if (terms.empty()) return std::nullopt;
  while (NextPart(&terms, &term)) {
    const size_t equals = term.find('=');
    const std::string_view field = term.substr(0, equals);
    const auto value = equals == std::string_view::npos ? std::optional<uint64_t>(1)
                                                        : HexOrDecimal(term.substr(equals + 1));
    const auto format = pmu.formats.find(field);
    if (!value || format == pmu.formats.end() || !Pack(format->second, *value, &code)) {
      return std::nullopt;
    }
  }
  return code;
}

std::optional<double> BytesOfCount(const SysfsEvent& event) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {{"Bytes", 1}, {"bytes", 1},     {"B", 1},    {"KiB", 1024},
                             {"KB", 1e3},  {"MiB", 1048576}, {"MB", 1e6}, {"GiB", 1073741824}};
  for (const Unit& unit : kUnits) {
    if (unit.name == event.unit) return event.scale * unit.bytes;
  }
  return std::nullopt;
}

std::string SocketOfCpu(const Host& host, int cpu) {
  const auto package = ReadCount(
      host, fmt::format("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu));
  return package ? fmt::format("socket {}", *package) : fmt::format("CPU {}", cpu);
}

UncoreCounters::UncoreCounters(PerfBackend& backend, int cpu, bool uncore,
                               std::vector<EventCode> codes)
    : backend_(&backend), codes_(std::move(codes)) {
  where_.tid = -1;
  where_.cpu = cpu;
  where_.uncore = uncore;
  where_.exclude_kernel = false;
  where_.disabled = false;
  counts_.resize(codes_.size());
  known_.resize(codes_.size());
}

int UncoreCounters::Open() {
  groups_.clear();
  CounterGroup together(*backend_);
  const auto all = together.Open(where_, codes_);
  if (all.ok()) {
    groups_.push_back({std::move(together), 0});
    return 0;
  }
  if (all.refused == 0) return all.error;  // the first event, by itself
  for (size_t i = 0; i < codes_.size(); i++) {
    CounterGroup alone(*backend_);
    const auto one = alone.Open(where_, std::span(&codes_[i], 1));
    if (!one.ok()) {
      groups_.clear();
      return one.error;
    }
    groups_.push_back({std::move(alone), i});
  }
  return 0;
}

void UncoreCounters::Read() {
  for (Group& group : groups_) {
    const GroupDelta delta = group.group.Read();
    switch (delta.status) {
      case GroupDelta::Status::kCounted: {
        const auto running = static_cast<double>(delta.running_ns);
        enabled_ns_ += static_cast<double>(delta.enabled_ns);
        running_ns_ += running;
        const double scale = (group.waiting_ns + static_cast<double>(delta.enabled_ns)) / running;
        group.waiting_ns = 0;
        for (size_t i = 0; i < delta.counts.size(); i++) {
          counts_[group.first + i] += static_cast<double>(delta.counts[i]) * scale;
          known_[group.first + i] = true;
        }
        break;
      }
      case GroupDelta::Status::kNotScheduled:
        enabled_ns_ += static_cast<double>(delta.enabled_ns);
        group.waiting_ns += static_cast<double>(delta.enabled_ns);
        break;
      case GroupDelta::Status::kDamaged:
        break;  // this reading tells nothing
      case GroupDelta::Status::kLost:
      case GroupDelta::Status::kFailed:
        failed_ = true;
    }
  }
}

std::optional<double> UncoreCounters::count(size_t event) const {
  if (!known_[event]) return std::nullopt;
  return counts_[event];
}

}  // namespace headrace::probes::perf
