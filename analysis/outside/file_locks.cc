#include "analysis/outside/file_locks.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/run/database_locks.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

// Whether a thread with that stack is in the C library's call that locks a file. Its flockfile and
// lockfile lock a stream between threads.
bool LocksAFile(std::string_view folded) {
  const std::string_view innermost = folded.substr(folded.rfind(';') + 1);
  const auto has = [&](std::string_view part) {
    return innermost.find(part) != std::string_view::npos;
  };
  return (has("flock") || has("fcntl") || has("lockf")) && !has("lockfile");
}

}  // namespace

std::vector<FileLockPart> FileLockParts(const RunView& run, const SeenThreads& seen) {
  std::map<int64_t, size_t> kind_of;
  for (size_t k = 0; k < seen.kinds.size(); ++k) {
    for (const int64_t id : seen.kinds[k].process_ids) kind_of[id] = k;
  }
  struct Part {
    double locked_ns = 0, on_files_ns = 0;
    SqliteSleeps sleeps;
  };
  std::map<std::pair<size_t, std::string>, Part> parts_of;  // by kind and thread
  for (const StackRow& stack : run.stacks) {
    if (stack.kind != "off_cpu" || !stack.process_id) continue;
    const auto kind = kind_of.find(*stack.process_id);
    if (kind == kind_of.end()) continue;
    Part& part = parts_of[{kind->second, stack.thread}];
    part.sleeps.Add(stack);
    if (stack.folded.find(";[lock];") == std::string::npos) continue;
    const auto ns = static_cast<double>(stack.time_ns);
    part.locked_ns += ns;
    if (LocksAFile(stack.folded)) part.on_files_ns += ns;
  }
  std::vector<FileLockPart> parts;
  for (const ThreadGroup& group : seen.groups) {
    const Part& part = parts_of[{group.kind, WithoutMain(group.thread)}];
    parts.push_back(
        {part.locked_ns > 0 ? part.on_files_ns / part.locked_ns : 0, part.sleeps.ratio()});
  }
  return parts;
}

bool StandsAtAFileLock(const UnitShares& shares) {
  return shares.file_lock > kLockWaits && shares.file_lock > shares.work() - shares.lock;
}

bool StandsAtADatabase(const UnitShares& shares) {
  return StandsAtAFileLock(shares) && shares.database_lock > shares.file_lock / 2;
}

}  // namespace headrace::analysis
