#include "analysis/outside/native_place.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "analysis/thresholds.h"
#include "base/starts_with_any.h"

namespace headrace::analysis {
namespace {

struct Sampled {
  std::vector<std::string_view> frames;
  int64_t count = 0;
};

std::vector<std::string_view> Split(std::string_view folded) {
  std::vector<std::string_view> frames;
  while (!folded.empty()) {
    const size_t end = std::min(folded.find(';'), folded.size());
    frames.push_back(folded.substr(0, end));
    folded.remove_prefix(std::min(end + 1, folded.size()));
  }
  return frames;
}

bool HasFrame(const Sampled& stack, std::string_view name) {
  return std::any_of(stack.frames.begin(), stack.frames.end(),
                     [&](std::string_view frame) { return frame.starts_with(name); });
}

// Whether a program's first thread has it. Those of other threads begin in functions that may have
// no name.
bool IsOfFirstThread(const Sampled& stack) {
  return std::any_of(stack.frames.begin(), stack.frames.end(), [](std::string_view frame) {
    return frame == "main" || frame == "_start" || frame.starts_with("__libc_start");
  });
}

// "Parser::Next" of "Item Parser::Next<int>(char const*)", "crate::parse" of
// "crate::parse::h84cbfa0a6f9fad9b", "Decode" of "(anonymous namespace)::Decode".
std::string ShortName(std::string_view frame) {
  constexpr std::string_view kHash = "::h";
  constexpr size_t kHashDigits = 16;
  const size_t hash = frame.rfind(kHash);
  if (hash != std::string_view::npos && frame.size() == hash + kHash.size() + kHashDigits) {
    frame = frame.substr(0, hash);
  }
  std::string name(frame);
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  while (name.find(kUnnamed) != std::string::npos) {
    name.erase(name.find(kUnnamed), kUnnamed.size());
  }
  name.resize(std::min(name.size(), name.find_first_of("<({")));
  return name.substr(name.rfind(' ') + 1);
}

// Functions of the program or of a library that it calls by name: not those of the kernel, of a
// language's run-time, or without a name.
bool IsNamed(std::string_view frame) {
  constexpr std::string_view kNames[] = {
      "main",     "clone",    "clone3",         "start_thread", "thread_native_entry",
      "operator", "JavaMain", "ThreadJavaMain", "thread_entry"};
  constexpr std::string_view kRunTimes[] = {
      "_",      "std::",        "core::",     "alloc::", "runtime.", "boost::",
      "absl::", "JavaThread::", "JavaCalls:", "jni_",    "Thread::"};
  constexpr std::string_view kKernel = "_[k]";
  if (frame.starts_with('[') || frame.ends_with(kKernel)) return false;
  const std::string name = ShortName(frame);
  if (name.empty() || name.ends_with(':')) return false;
  return std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames) &&
         std::none_of(std::begin(kRunTimes), std::end(kRunTimes),
                      [&](std::string_view part) { return name.starts_with(part); });
}

bool IsOf(const StackRow& stack, const Outside& outside, const OutsideUnit& unit) {
  const std::vector<int64_t>& ids = outside.kinds[unit.kind].process_ids;
  if (stack.kind != "cpu" || !stack.process_id ||
      std::find(ids.begin(), ids.end(), *stack.process_id) == ids.end()) {
    return false;
  }
  return WithoutMain(outside.groups[unit.key_group].thread) == stack.thread;
}

// Whether a stack ends in the kernel for new memory: by the kernel's functions, or, where these
// have no names or do not tell, as a function that clears memory, or gives it back, calls it for
// little else. One that copies may touch a mapped file.
bool IsForMemory(const std::vector<std::string_view>& frames) {
  constexpr std::string_view kNew[] = {"do_anonymous_page", "clear_page",       "clear_huge_page",
                                       "clear_subpage",     "unmap_page_range", "zap_pte_range"};
  constexpr std::string_view kOthers[] = {"filemap_",     "do_fault",        "do_read_fault",
                                          "do_cow_fault", "do_shared_fault", "do_wp_page"};
  constexpr std::string_view kClears[] = {"__memset", "runtime.memclr"};
  constexpr std::string_view kAsks[] = {"memset", "munmap", "__munmap", "madvise", "__madvise",
                                        "brk",    "__brk",  "sbrk",     "__sbrk"};
  size_t kernel = frames.size();
  while (kernel > 0 && (frames[kernel - 1] == "[kernel]" || frames[kernel - 1].ends_with("_[k]"))) {
    --kernel;
    if (StartsWithAny(frames[kernel], kNew)) return true;
    if (StartsWithAny(frames[kernel], kOthers)) return false;
  }
  if (kernel == 0 || kernel == frames.size()) return false;
  const std::string_view caller = frames[kernel - 1];
  return StartsWithAny(caller, kClears) ||
         std::find(std::begin(kAsks), std::end(kAsks), caller) != std::end(kAsks);
}

// Whether the stack is of the first thread of its process, or is of none: those that keep the
// program's name differ by where they begin.
bool IsOfThreads(const Sampled& stack, bool are_first) {
  return !HasFrame(stack, "[truncated]") && IsOfFirstThread(stack) == are_first;
}

}  // namespace

std::optional<double> NewMemoryRatio(const RunView& run, const Outside& outside) {
  const OutsideUnit& unit = outside.units[outside.culprit];
  // Of what unpacks batches its functions say more.
  constexpr OutsideLimit kLimits[] = {OutsideLimit::kProducers, OutsideLimit::kCores,
                                      OutsideLimit::kConsumer, OutsideLimit::kAlone};
  const OutsideLimit limit = outside.findings[0].limit;
  const bool may_be = std::find(std::begin(kLimits), std::end(kLimits), limit) != std::end(kLimits);
  if (!may_be || unit.shares.on_cpu < kMostlyComputes) return std::nullopt;
  const bool is_main = outside.groups[unit.key_group].main;
  int64_t all = 0, of_memory = 0;
  for (const StackRow& row : run.stacks) {
    if (!IsOf(row, outside, unit)) continue;
    const Sampled stack = {Split(row.folded), row.samples_count};
    if (!IsOfThreads(stack, is_main)) continue;
    all += stack.count;
    if (IsForMemory(stack.frames)) of_memory += stack.count;
  }
  const double ratio =
      static_cast<double>(of_memory) / static_cast<double>(std::max<int64_t>(all, 1));
  const bool is_seen = all >= kFewestSamples && ratio >= kNewMemory;
  return is_seen ? std::optional(ratio) : std::nullopt;
}

std::optional<std::string> PlaceOnCpu(const RunView& run, const Outside& outside,
                                      const OutsideUnit& unit) {
  const bool is_main = outside.groups[unit.key_group].main;
  std::vector<Sampled> stacks;
  int64_t all = 0;
  for (const StackRow& row : run.stacks) {
    if (!IsOf(row, outside, unit)) continue;
    Sampled stack = {Split(row.folded), row.samples_count};
    if (HasFrame(stack, "_PyEval_EvalFrame")) return std::nullopt;
    // Threads of Go run whatever is due.
    if (HasFrame(stack, "runtime.goexit")) return std::nullopt;
    if (!IsOfThreads(stack, is_main)) continue;
    all += stack.count;
    stacks.push_back(std::move(stack));
  }
  if (all < kFewestSamples) return std::nullopt;
  // From the root towards the callee that holds most, as long as it holds half of all.
  std::string_view place;
  for (size_t depth = 0; !stacks.empty(); ++depth) {
    std::map<std::string_view, int64_t> counts;
    for (const Sampled& stack : stacks) {
      if (depth < stack.frames.size()) counts[stack.frames[depth]] += stack.count;
    }
    const auto most =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == counts.end() || 2 * most->second < all) break;
    if (depth > 0 && IsNamed(most->first)) place = most->first;
    const std::string_view frame = most->first;
    std::erase_if(stacks, [&](const Sampled& stack) {
      return depth >= stack.frames.size() || stack.frames[depth] != frame;
    });
  }
  if (place.empty()) return std::nullopt;
  return ShortName(place);
}

}  // namespace headrace::analysis
