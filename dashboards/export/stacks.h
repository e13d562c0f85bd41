// Sampled stacks of a run by stage and operator, the same for every format that shows stacks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "collectors/store/read_store.h"

namespace headrace::dashboards {

struct ExportedStack {
  std::string kind;  // a key of kStackKinds. off_cpu: blocked inside an operator; waiting: at a
                     // queue, or outside
  // Root first: "stage decode", "operator decompress", then functions; of a process without
  // operators "process python" first. An off-CPU stack has its cause, "[storage]", before
  // functions.
  std::vector<std::string> frames;
  std::string stage, operator_name, process, thread;
  int64_t pid = 0;            // 0: of no single process
  int64_t samples_count = 0;  // 0: it is no sample
  int64_t time_ns = 0;
};

// The last frame where a kind without stacks has its operators' totals instead: their time on a
// CPU, blocked, or waiting for input and for room.
inline constexpr const char* kOperatorTotal = "[total of the operator, no stacks recorded]";

// The stacks of view stack_summary. A kind that has none has the operators' totals instead, where
// they are known.
std::vector<ExportedStack> ReadStacks(collectors::ReadStore& store, int64_t run_id);

}  // namespace headrace::dashboards
