// StackFolder: turns raw samples (addresses) into folded, symbolised stacks by process, operator
// and thread group, ready for Sink::AddStack.
//
// Folded text is root first, frames separated by ';': "thread group;[cause];main;work;memcpy",
// kernel frames last and marked "_[k]". A stack that does not begin where a thread begins (a frame
// without frame pointer broke the chain, or it is too deep) has "[truncated]" before its outermost
// frame. At most `max_stacks` texts are kept; further ones are added to "[other stacks]" of their
// thread group, so that shares of operators stay right, and are counted.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probes/probe.h"
#include "probes/stack/symboliser.h"
#include "probes/stack/unwind.h"

namespace headrace::probes::stack {

// Code addresses, innermost first. `user` begins with the program counter, the others are return
// addresses.
struct RawStack {
  std::vector<uint64_t> kernel, user;
  // Known to reach the thread's beginning; if not set, the last symbol decides.
  bool complete = false;
};

struct SampleOrigin {
  int64_t pid = 0;
  std::optional<uint32_t> operator_index;
  std::string thread;  // group
  std::string cause;   // "" or a first frame: "[storage]"

  auto operator<=>(const SampleOrigin&) const = default;
};

struct FoldLimits {
  size_t max_stacks = 20'000;
  size_t max_bytes = 16 << 20;  // of folded text
};

class StackFolder {
 public:
  StackFolder(const Host& host, std::string_view kind, FoldLimits limits = {})
      : kind_(kind), limits_(limits), symboliser_(host) {}

  Symboliser& symboliser() { return symboliser_; }
  // Looks at processes while they live. Call it before samples are added, with every Read.
  void Look(const std::vector<int64_t>& pids, int64_t now_ns);

  // Adds samples of one stack. Returns false if it was truncated.
  bool Add(const SampleOrigin& origin, const RawStack& stack, int64_t samples, int64_t time_ns);
  // Adds the time so far of a period that is not over. It counts only for the next Emit: give it
  // again before the following one, or call Add once the period is over.
  void AddOpen(const SampleOrigin& origin, const RawStack& stack, int64_t samples, int64_t time_ns);
  // The user part of a stack, from the chain of frame pointers (innermost first) and a copy of the
  // top of the stack that is unwound by .eh_frame. A large copy gives the whole stack. A small one
  // gives the callers that the chain leaves out, because a function without a frame of its own
  // (most leaf functions, most of the C library) hides its caller. `same_chain`: the copy is from
  // another sample with the same chain. Then only callers that lead back to the chain are used: the
  // call site there shows which function was called.
  RawStack Unwind(int64_t pid, const Registers& registers, const StackCopy& copy,
                  std::vector<uint64_t> chain, bool same_chain = false);
  // Text of a stack, without the thread group; `complete` (may be null) says if it has its root.
  std::string Fold(int64_t pid, const RawStack& stack, bool* complete);

  // Passes to the sink every stack that changed since the last call, and the totals below.
  void Emit(Sink& sink);

  int64_t samples() const { return samples_; }
  int64_t truncated() const { return truncated_; }
  int64_t overflowed() const { return overflowed_; }  // samples in "[other stacks]"
  // Share of a process's samples that were truncated; absent below 20 samples.
  std::optional<double> TruncatedShare(int64_t pid) const;

 private:
  struct Key {
    SampleOrigin origin;
    std::string folded;
    auto operator<=>(const Key&) const = default;
  };
  struct Total {
    int64_t samples = 0, time_ns = 0;
    int64_t open_samples = 0, open_ns = 0;
    int64_t emitted_samples = 0, emitted_ns = 0;  // what the sink got; it never falls
    bool changed = false;
  };
  struct Counts {
    int64_t samples = 0, truncated = 0;
  };

  std::pair<const Key, Total>& TotalOf(const SampleOrigin& origin, const RawStack& stack,
                                       int64_t samples, bool* complete);

  std::string kind_;
  FoldLimits limits_;
  Symboliser symboliser_;
  Unwinder unwinder_;
  std::map<Key, Total> totals_;
  std::vector<std::pair<const Key, Total>*> open_;
  std::map<int64_t, Counts> by_pid_;
  size_t bytes_ = 0;
  int64_t looks_ = 0;
  int64_t samples_ = 0, truncated_ = 0, overflowed_ = 0;
};

}  // namespace headrace::probes::stack
