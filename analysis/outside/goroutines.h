// What the goroutines of a Go program compute, and which wait for storage, by native stacks
// (docs/stacks.md). Go moves them from thread to thread, so that threads' times show neither who
// computes nor who waits. One that waits for storage keeps its thread; other waits have no stack.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Of all goroutines that began in one function, the time in which they wait for storage.
struct StorageWaits {
  double goroutines = 0;  // that wait at a time
  std::string entry;      // that function
  bool is_main = false;   // it is the main goroutine's
  double cores = 0;       // that they use
  std::string place;      // in which they do so half of that time: "main.save, os.(*File).Sync"
};

struct Goroutines {
  double main_cores = 0;     // that the main goroutine used
  double busiest_cores = 0;  // that all those used which began in `busiest`
  std::string busiest;       // of the others' first functions the one that used most: "main.decode"
  // The innermost function that it is in for half of its time, but no inner part of Go's library:
  // "encoding/json.Unmarshal", "os.(*File).Read"; empty: none but `busiest`.
  std::string place;
  StorageWaits storage;  // of those that wait for it longest

  // Whether one waits for storage most of the time, while the others do little. One that is not the
  // main one has to be at that, or at work, all the time: else it may be done beside what limits.
  bool WaitsForStorage() const;
};

// Of these processes; nothing where none of their samples is of a goroutine.
std::optional<Goroutines> LookAtGoroutines(const RunView& run,
                                           const std::vector<int64_t>& process_ids);

}  // namespace headrace::analysis
