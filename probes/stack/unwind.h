// Unwinding with a file's .eh_frame: from the registers and a copy of the top of a thread's stack
// to the return addresses, for code that was compiled without frame pointers.
//
// The rules come from .eh_frame_hdr's search table, found by binary search with small reads and
// kept in a cache, so that no table is ever held in memory. Everything read is untrusted: loops,
// expressions, stack depth and number of frames are limited.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "probes/stack/elf_image.h"

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

// The image at a program counter and what to subtract to get the file's address.
struct LoadedImage {
  std::shared_ptr<const ElfImage> image;  // null: not known
  uint64_t bias = 0;
};
using ImageFinder = std::function<LoadedImage(uint64_t pc)>;

struct UnwoundStack {
  std::vector<uint64_t> addresses;  // innermost first; each but the first a return address
  // Ended where the thread begins, not because bytes or rules were missing.
  bool complete = false;
  // Not complete, but the last function's frame is the one that the frame pointer had at the start,
  // so the chain of frame pointers continues from there.
  bool same_frame_pointer = false;
};

// Keeps rules by address. Not for use by several threads.
class Unwinder {
 public:
  explicit Unwinder(size_t cache_entries = 4096) : cache_(cache_entries) {}
  // At most `max_frames` addresses. Where an image has no rule (code made at run time), the frame
  // pointer is tried.
  UnwoundStack Unwind(Registers registers, const StackCopy& stack, const ImageFinder& find,
                      size_t max_frames = 127);

 private:
  struct Entry {
    std::shared_ptr<const ElfImage> image;  // held, so that another image cannot get its address
    uint64_t address = 0;
    std::optional<UnwindRule> rule;
  };
  const std::optional<UnwindRule>& Rule(const std::shared_ptr<const ElfImage>& image,
                                        uint64_t address);

  std::vector<Entry> cache_;  // by hash; a newer address takes the place of an older one
};

}  // namespace headrace::probes::stack
