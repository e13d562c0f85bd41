// DWARF expressions, as .eh_frame uses them: no branches, no calls, no memory but the stack's copy.
#pragma once
#include <cstdint>
#include <optional>

#include "probes/stack/elf_image.h"
#include "probes/stack/registers.h"

namespace headrace::probes::stack {

// Evaluates the `size` bytes of operations at `offset` of the image's file, with the registers of
// the frame, and its canonical frame address on the stack of operands if one is given. Absent where
// the operations are damaged, or use an unknown register or memory that was not copied.
std::optional<uint64_t> EvaluateExpression(const ElfImage& image, uint64_t offset, uint32_t size,
                                           const Registers& registers, const StackCopy& memory,
                                           std::optional<uint64_t> cfa);

}  // namespace headrace::probes::stack
