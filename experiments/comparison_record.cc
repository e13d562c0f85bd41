#include "experiments/comparison_record.h"

#include "base/error.h"

namespace headrace::experiments {

ComparisonRecord::ComparisonRecord(const std::string& database, const std::string& name,
                                   const std::string& a_what, const std::string& b_what,
                                   uint64_t seed)
    : store_(database) {
  collectors::ComparisonRow row;
  row.name = name;
  row.a_label = a_what;
  row.b_label = b_what;
  row.seed = std::to_string(seed);
  row.started_realtime_ns = RealtimeNs();
  id_ = store_.BeginComparison(row);
}

ComparisonRecord::~ComparisonRecord() {
  if (finished_) return;
  try {
    store_.FinishComparison(id_, collectors::ComparisonState::kFailed, MonotonicNs() - start_ns_,
                            "", "");
  } catch (const Error&) {
    // The error on its way out says more.
  }
}

void ComparisonRecord::Add(const AbPair& pair) {
  const auto order = static_cast<int64_t>(2 * pair.index);
  const auto index = static_cast<int64_t>(pair.index);
  store_.SetComparisonRun(id_, {order + (pair.b_first ? 1 : 0), index, 'a', pair.a.run_id, ""});
  store_.SetComparisonRun(id_, {order + (pair.b_first ? 0 : 1), index, 'b', pair.b.run_id, ""});
}

void ComparisonRecord::LeaveOut(const AbPair& pair, const std::string& why) {
  const auto order = static_cast<int64_t>(2 * pair.index);
  const auto index = static_cast<int64_t>(pair.index);
  store_.SetComparisonRun(id_, {order + (pair.b_first ? 1 : 0), index, 'a', pair.a.run_id, why});
  store_.SetComparisonRun(id_, {order + (pair.b_first ? 0 : 1), index, 'b', pair.b.run_id, why});
}

void ComparisonRecord::Finish(collectors::ComparisonState state, const std::string& verdict,
                              const std::string& json) {
  store_.FinishComparison(id_, state, MonotonicNs() - start_ns_, verdict, json);
  finished_ = true;
}

}  // namespace headrace::experiments
