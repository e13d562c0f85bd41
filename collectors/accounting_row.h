// AccountingRow: what the row of a run says of how the time of its operators was split, and why
// there are no accounts where there are none. Written when it changes.
#pragma once
#include <cstdint>
#include <string>

#include "collectors/account_tree.h"
#include "collectors/probe_runner.h"
#include "collectors/process_tree.h"
#include "collectors/segment_search.h"
#include "collectors/store/store.h"

namespace headrace::collectors {

struct AccountingState {
  int64_t run_id, pid;  // of the run and its target
  int level;
  const AccountTree& accounts;
  ProcessTree& tree;
  const ProbeRunner& runner;
  const std::string& refused;  // why accounts that are there are not read; "" for none
};

class AccountingRow {
 public:
  explicit AccountingRow(std::string program) : program_(std::move(program)) {}
  void Write(RunStore* store, const AccountingState& now);

 private:
  // Why there are no accounts, as far as the processes' folder for them tells.
  void FindObstacle(const AccountingState& now);

  std::string program_, described_;
  SegmentSearch::Obstacle obstacle_;
  int64_t next_obstacle_ns_ = 0;
  int64_t account_level_ = 1;
  bool described_clock_ = false;
};

}  // namespace headrace::collectors
