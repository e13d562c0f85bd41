#include "probes/stack/registers.h"

#include <cstring>

namespace headrace::probes::stack {

std::optional<uint64_t> StackCopy::Word(uint64_t address) const {
  if (address < base || bytes.size() < 8 || address - base > bytes.size() - 8) return std::nullopt;
  uint64_t word;
  std::memcpy(&word, bytes.data() + (address - base), sizeof word);
  return word;
}

}  // namespace headrace::probes::stack
