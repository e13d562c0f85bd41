#include "probes/stack/stack_folder.h"

#include <algorithm>

namespace headrace::probes::stack {
namespace {

constexpr size_t kMaxTextFrames = 160;  // of a text; deeper ones are recursion

}  // namespace

void StackFolder::Look(const std::vector<int64_t>& pids, int64_t now_ns) {
  symboliser_.SetNow(now_ns);
  for (const int64_t pid : pids) symboliser_.Look(pid);
  if (++looks_ % 64 == 0) symboliser_.Forget(pids);
}

RawStack StackFolder::Unwind(int64_t pid, const Registers& registers, const StackCopy& copy,
                             std::vector<uint64_t> chain, bool same_chain) {
  UnwoundStack unwound =
      unwinder_.Unwind(registers, copy, [&](uint64_t pc) { return symboliser_.Find(pid, pc); });
  RawStack stack;
  stack.complete = unwound.complete && !same_chain;
  if (stack.complete) {
    stack.user = std::move(unwound.addresses);
    return stack;
  }
  // Where the two meet, the chain goes on.
  for (size_t i = 1; i < unwound.addresses.size(); ++i) {
    const auto meet =
        std::find(chain.begin() + (chain.empty() ? 0 : 1), chain.end(), unwound.addresses[i]);
    if (meet == chain.end()) continue;
    stack.user.assign(unwound.addresses.begin(),
                      unwound.addresses.begin() + static_cast<ptrdiff_t>(i));
    stack.user.insert(stack.user.end(), meet, chain.end());
    return stack;
  }
  // The copy ends in a function whose frame is the one that the chain begins with.
  if (unwound.same_frame_pointer && chain.size() > 1) {
    stack.user = std::move(unwound.addresses);
    stack.user.insert(stack.user.end(), chain.begin() + 1, chain.end());
    return stack;
  }
  if (same_chain) {
    stack.user = std::move(chain);
    return stack;
  }
  // They do not: the chain is right if it leads to the thread's begin.
  const bool rooted = chain.size() > 1 && symboliser_.IsRoot(pid, chain.back() - 1);
  stack.user = rooted || chain.size() > unwound.addresses.size() ? std::move(chain)
                                                                 : std::move(unwound.addresses);
  return stack;
}

std::string StackFolder::Fold(int64_t pid, const RawStack& stack, bool* complete) {
  // Without frame pointers the chain goes on into data: cut it where it leaves the code.
  size_t num_user = stack.user.size();
  for (size_t i = 1; i < num_user; ++i) {
    if (!symboliser_.IsCode(pid, stack.user[i] - 1)) num_user = i;
  }
  const bool whole = num_user == 0 || (num_user == stack.user.size() && stack.complete) ||
                     (num_user > 1 && symboliser_.IsRoot(pid, stack.user[num_user - 1] - 1));
  if (complete) *complete = whole;
  std::string text = whole ? "" : "[truncated]";
  const auto add = [&](const std::string& frame) {
    if (!text.empty()) text += ';';
    text += frame;
  };
  const size_t first = std::min(num_user, kMaxTextFrames);
  for (size_t i = first; i-- > 0;) {
    add(symboliser_.Name(pid, stack.user[i] - (i == 0 ? 0 : 1)));
  }
  for (size_t i = std::min(stack.kernel.size(), kMaxTextFrames); i-- > 0;) {
    add(symboliser_.KernelName(stack.kernel[i]));
  }
  if (text.empty()) text = "[no stack]";
  return text;
}

std::pair<const StackFolder::Key, StackFolder::Total>& StackFolder::TotalOf(
    const SampleOrigin& origin, const RawStack& stack, int64_t samples, bool* complete) {
  Key key{origin, origin.thread};
  if (!origin.cause.empty()) key.folded += ";" + origin.cause;
  key.folded += ";" + Fold(origin.pid, stack, complete);
  auto it = totals_.find(key);
  if (it == totals_.end() &&
      (totals_.size() >= limits_.max_stacks || bytes_ + key.folded.size() > limits_.max_bytes)) {
    overflowed_ += samples;
    key.folded = origin.thread + ";[other stacks]";
    key.origin.cause.clear();
    it = totals_.find(key);
  }
  if (it == totals_.end()) {
    bytes_ += key.folded.size();
    it = totals_.emplace(std::move(key), Total{}).first;
  }
  it->second.changed = true;
  return *it;
}

bool StackFolder::Add(const SampleOrigin& origin, const RawStack& stack, int64_t samples,
                      int64_t time_ns) {
  bool complete = false;
  Total& total = TotalOf(origin, stack, samples, &complete).second;
  total.samples += samples;
  total.time_ns += time_ns;
  Counts& counts = by_pid_[origin.pid];
  counts.samples += samples;
  samples_ += samples;
  if (!complete) {
    counts.truncated += samples;
    truncated_ += samples;
  }
  return complete;
}

void StackFolder::AddOpen(const SampleOrigin& origin, const RawStack& stack, int64_t samples,
                          int64_t time_ns) {
  bool complete = false;
  auto& entry = TotalOf(origin, stack, 0, &complete);
  if (entry.second.open_samples == 0) open_.push_back(&entry);
  entry.second.open_samples += samples;
  entry.second.open_ns += time_ns;
}

std::optional<double> StackFolder::TruncatedShare(int64_t pid) const {
  const auto it = by_pid_.find(pid);
  if (it == by_pid_.end() || it->second.samples < 20) return std::nullopt;
  return static_cast<double>(it->second.truncated) / static_cast<double>(it->second.samples);
}

void StackFolder::Emit(Sink& sink) {
  const auto add = [&](std::string_view metric, int64_t value, const Labels& labels) {
    sink.Add({metric, static_cast<double>(value), labels, std::nullopt, std::nullopt, false});
  };
  for (auto& [key, total] : totals_) {
    if (!total.changed) continue;
    total.changed = false;
    total.emitted_samples = std::max(total.emitted_samples, total.samples + total.open_samples);
    total.emitted_ns = std::max(total.emitted_ns, total.time_ns + total.open_ns);
    sink.AddStack({key.origin.pid, key.origin.operator_index, key.origin.thread, kind_, key.folded,
                   total.emitted_samples, total.emitted_ns});
  }
  for (auto* entry : open_) entry->second.open_samples = entry->second.open_ns = 0;
  open_.clear();
  for (const auto& [pid, counts] : by_pid_) {
    Labels labels;
    labels.pid = pid;
    labels.cause = kind_;
    add("stack_samples_count", counts.samples, labels);
    add("stack_truncated_count", counts.truncated, labels);
  }
  Labels labels;
  labels.cause = kind_;
  add("stack_names_ns", symboliser_.cost().time_ns, labels);
  sink.Lost("distinct " + kind_ + " stacks", overflowed_, samples_);
}

}  // namespace headrace::probes::stack
