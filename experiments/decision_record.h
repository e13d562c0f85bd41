// A tuner's decision as a row of the store and as JSON.
#pragma once
#include <string>

#include "analysis/run/read_run.h"
#include "analysis/tuning/tuned_target.h"
#include "collectors/store/store.h"

namespace headrace::experiments {

// One line without its end: schema headrace.decision/1 (docs/schema/decision.schema.json).
std::string DecisionJson(const analysis::Decision& decision);
collectors::DecisionRow DecisionRowOf(const analysis::Decision& decision);

// Stores decisions of a run as they come. A database that cannot be written must not end the
// pipeline: after the first failure, which failure() returns, decisions are not stored.
class StoredDecisions : public analysis::DecisionSink {
 public:
  StoredDecisions(std::string database, int64_t run_id)
      : database_(std::move(database)), run_id_(run_id) {}
  void Take(const analysis::Decision& decision) override;
  const std::string& failure() const { return failure_; }  // "": none

 private:
  std::string database_;
  int64_t run_id_;
  std::string failure_;
};

}  // namespace headrace::experiments
