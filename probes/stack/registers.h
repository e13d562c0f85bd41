// What a stack is unwound from: the registers of a thread and a copy of the top of its stack.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace headrace::probes::stack {

inline constexpr int kNumRegisters = 33;  // DWARF numbers: x86-64 0-16, AArch64 0-31

// Values by DWARF register number, and the program counter.
struct Registers {
  std::array<uint64_t, kNumRegisters> value{};
  uint64_t known = 0;  // bit n: value[n] is known
  uint64_t pc = 0;

  void Set(int index, uint64_t v) {
    value[static_cast<size_t>(index)] = v;
    known |= 1ull << index;
  }
  std::optional<uint64_t> Get(uint64_t index) const {
    if (index >= kNumRegisters || (known >> index & 1) == 0) return std::nullopt;
    return value[index];
  }
};

// A copy of stack memory: `bytes` were at address `base` and up.
struct StackCopy {
  uint64_t base = 0;
  std::span<const uint8_t> bytes;

  std::optional<uint64_t> Word(uint64_t address) const;
};

}  // namespace headrace::probes::stack
