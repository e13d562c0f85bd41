#include "probes/stack/symbol_list.h"

#include <algorithm>
#include <charconv>

namespace headrace::probes::stack {
namespace {

constexpr size_t kMaxEntries = 1 << 20;
constexpr size_t kMaxListedBytes = 512;
constexpr size_t kMaxNames = 64 << 20;

bool TakeHex(std::string_view* line, uint64_t* value) {
  if (line->starts_with("0x")) line->remove_prefix(2);
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), *value, 16);
  if (error != std::errc() || end == line->data() + line->size() || *end != ' ') return false;
  line->remove_prefix(static_cast<size_t>(end - line->data()) + 1);
  return true;
}

template <typename F>
void ForEachLine(std::string_view text, F&& f) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

void SymbolList::Add(uint64_t start, uint64_t size, std::string_view name) {
  name = name.substr(0, kMaxListedBytes);
  if (entries_.size() >= kMaxEntries || names_.size() + name.size() > kMaxNames) return;
  entries_.push_back({start, static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX)),
                      static_cast<uint32_t>(names_.size()), static_cast<uint32_t>(name.size())});
  names_ += name;
}

void SymbolList::Sort() {
  // Later lines first among equals, so that of one address only the last line is kept.
  std::reverse(entries_.begin(), entries_.end());
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.start < b.start; });
  entries_.erase(std::unique(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.start == b.start; }),
                 entries_.end());
  entries_.shrink_to_fit();
  names_.shrink_to_fit();
}

SymbolList SymbolList::FromPerfMap(std::string_view text) {
  SymbolList list;
  ForEachLine(text, [&](std::string_view line) {
    uint64_t start, size;
    if (TakeHex(&line, &start) && TakeHex(&line, &size) && size > 0 && !line.empty()) {
      list.Add(start, size, line);
    }
  });
  list.Sort();
  return list;
}

SymbolList SymbolList::FromKallsyms(std::string_view text) {
  SymbolList list;
  ForEachLine(text, [&](std::string_view line) {
    uint64_t start;
    if (!TakeHex(&line, &start) || start == 0 || line.size() < 3 || line[1] != ' ') return;
    if (std::string_view("tTwW").find(line[0]) == std::string_view::npos) return;
    line.remove_prefix(2);
    line = line.substr(0, line.find('\t'));  // without the module
    list.Add(start, UINT32_MAX, line);
  });
  list.Sort();
  return list;
}

std::optional<std::string_view> SymbolList::Find(uint64_t address) const {
  auto it = std::upper_bound(entries_.begin(), entries_.end(), address,
                             [](uint64_t a, const Entry& e) { return a < e.start; });
  if (it == entries_.begin()) return std::nullopt;
  --it;
  if (it->size != UINT32_MAX && address - it->start >= it->size) return std::nullopt;
  return std::string_view(names_).substr(it->name, it->name_size);
}

std::optional<uint64_t> SymbolList::AddressOf(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (std::string_view(names_).substr(entry.name, entry.name_size) == name) return entry.start;
  }
  return std::nullopt;
}

}  // namespace headrace::probes::stack
