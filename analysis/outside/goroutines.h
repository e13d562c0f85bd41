// What the goroutines of a Go program compute, by sampled native stacks (docs/stacks.md). Go moves
// them from thread to thread, so that threads' times show neither who computes nor who waits.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_view.h"

namespace headrace::analysis {

struct Goroutines {
  double main_cores = 0;     // that the main goroutine used
  double busiest_cores = 0;  // that all those used which began in `busiest`
  std::string busiest;       // of the others' first functions the one that used most: "main.decode"
  // The innermost function that it is in for half of its time, but no inner part of Go's library:
  // "encoding/json.Unmarshal", "os.(*File).Read"; empty: none but `busiest`.
  std::string place;
};

// Of these processes; nothing where none of their samples is of a goroutine.
std::optional<Goroutines> LookAtGoroutines(const RunView& run,
                                           const std::vector<int64_t>& process_ids);

}  // namespace headrace::analysis
