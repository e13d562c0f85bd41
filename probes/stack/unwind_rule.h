// UnwindRule: how to get the caller's registers at one address, from a file's .eh_frame.
//
// The rule is found by the search table of .eh_frame_hdr, with small reads, so that no table is
// ever held in memory. Everything read is untrusted: sizes, loops and remembered states are
// limited.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "probes/stack/elf_image.h"

namespace headrace::probes::stack {

// How to get the caller's registers at one address.
struct UnwindRule {
  enum class Kind : uint8_t {
    kSame,          // keeps its value
    kUndefined,     // has no value; for the return address: the end of the stack
    kAtCfa,         // saved at CFA + offset
    kCfaPlus,       // is CFA + offset
    kRegister,      // is in register `offset`
    kAtExpression,  // saved at the expression's value
    kExpression     // is the expression's value
  };
  struct Register {
    uint8_t index = 0;
    Kind kind = Kind::kSame;
    int64_t offset = 0;  // expressions: file offset of the operations
    uint32_t size = 0;   // expressions: bytes
  };
  bool cfa_is_expression = false;
  uint8_t cfa_register = 0;
  int64_t cfa_offset = 0;  // expressions: file offset of the operations
  uint32_t cfa_size = 0;
  uint8_t return_register = 16;
  bool signal_frame = false;
  std::vector<Register> registers;  // those that are not kSame
};

// The rule for an address (the file's own) of an image; absent if it has none.
std::optional<UnwindRule> FindUnwindRule(const ElfImage& image, uint64_t address);

}  // namespace headrace::probes::stack
