// Unwinding with a file's .eh_frame: from the registers and a copy of the top of a thread's stack
// to the return addresses, for code that was compiled without frame pointers.
//
// Rules (unwind_rule.h) are kept in a cache by address. Everything read is untrusted: loops, stack
// depth and number of frames are limited.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "probes/stack/elf_image.h"
#include "probes/stack/registers.h"
#include "probes/stack/unwind_rule.h"

namespace headrace::probes::stack {

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
