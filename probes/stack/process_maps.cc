#include "probes/stack/process_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace headrace::probes::stack {
namespace {

constexpr size_t kMaxMappings = 65536;
constexpr std::string_view kDeleted = " (deleted)";

// Takes a number off the front of `text`, and the one character behind it.
bool TakeNumber(std::string_view* text, int base, char behind, uint64_t* value) {
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), *value, base);
  if (error != std::errc() || end == text->data() + text->size() || *end != behind) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()) + 1);
  return true;
}

bool ParseLine(std::string_view line, Mapping* mapping) {
  uint64_t device;
  if (!TakeNumber(&line, 16, '-', &mapping->start) || !TakeNumber(&line, 16, ' ', &mapping->end) ||
      mapping->end <= mapping->start || line.size() < 5 || line[2] != 'x') {
    return false;
  }
  line.remove_prefix(5);
  if (!TakeNumber(&line, 16, ' ', &mapping->offset) || !TakeNumber(&line, 16, ':', &device) ||
      !TakeNumber(&line, 16, ' ', &device)) {
    return false;
  }
  const auto [end, error] =
      std::from_chars(line.data(), line.data() + line.size(), mapping->inode, 10);
  if (error != std::errc()) return false;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.ends_with(kDeleted)) {
    mapping->deleted = true;
    line.remove_suffix(kDeleted.size());
  }
  mapping->path = std::string(line.substr(0, 4096));
  return true;
}

}  // namespace

std::vector<Mapping> ParseMaps(std::string_view text) {
  std::vector<Mapping> maps;
  while (!text.empty() && maps.size() < kMaxMappings) {
    const size_t end = std::min(text.find('\n'), text.size());
    Mapping mapping;
    if (ParseLine(text.substr(0, end), &mapping)) maps.push_back(std::move(mapping));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::sort(maps.begin(), maps.end(),
            [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
  return maps;
}

std::vector<Mapping> ReadMaps(const Host& host, int64_t pid) {
  return ParseMaps(host.Read(fmt::format("/proc/{}/maps", pid), 16 << 20).value_or(""));
}

const Mapping* FindMapping(const std::vector<Mapping>& maps, uint64_t address) {
  auto it = std::upper_bound(maps.begin(), maps.end(), address,
                             [](uint64_t a, const Mapping& m) { return a < m.start; });
  if (it == maps.begin()) return nullptr;
  --it;
  return address < it->end ? &*it : nullptr;
}

}  // namespace headrace::probes::stack
