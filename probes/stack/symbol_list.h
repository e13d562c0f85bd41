// SymbolList: names by address, from text: /proc/kallsyms, and the perf maps in which JIT compilers
// list their functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::probes::stack {

class SymbolList {
 public:
  // Lines "ADDRESS SIZE NAME" (hexadecimal), as in /tmp/perf-PID.map. If functions overlap, the
  // later line counts, because code memory is reused.
  static SymbolList FromPerfMap(std::string_view text);
  // Lines "ADDRESS TYPE NAME[\t[MODULE]]"; only code is kept. Empty if the kernel hides addresses.
  static SymbolList FromKallsyms(std::string_view text);

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  // The name of the symbol that contains `address`; the list owns its memory.
  std::optional<std::string_view> Find(uint64_t address) const;
  // Where the symbol of that name begins; looks at all of them.
  std::optional<uint64_t> AddressOf(std::string_view name) const;

 private:
  struct Entry {
    uint64_t start;
    uint32_t size;  // UINT32_MAX: up to the next one
    uint32_t name, name_size;
  };
  void Add(uint64_t start, uint64_t size, std::string_view name);
  void Sort();

  std::vector<Entry> entries_;  // by start
  std::string names_;
};

}  // namespace headrace::probes::stack
