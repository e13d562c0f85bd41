// ComparisonRecord: a comparison in the database, beside the runs that are made for it: its runs as
// they come, its verdict at the end.
#pragma once
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "collectors/store/store.h"
#include "experiments/ab_runner.h"

namespace headrace::experiments {

class ComparisonRecord {
 public:
  // Begins the comparison `name` of two sides, named as the page names them. Throws Error as
  // RunStore does, here and below.
  ComparisonRecord(const std::string& database, const std::string& name, const std::string& a_what,
                   const std::string& b_what, uint64_t seed);
  // Whatever ended this before it was finished: the comparison has failed.
  ~ComparisonRecord();
  ComparisonRecord(const ComparisonRecord&) = delete;
  ComparisonRecord& operator=(const ComparisonRecord&) = delete;

  int64_t id() const { return id_; }
  // Adds the two runs of a pair.
  void Add(const AbPair& pair);
  // Keeps a pair that was added, with the reason why it does not count.
  void LeaveOut(const AbPair& pair, const std::string& why);
  // `json`: the page, as dashboards::ComparisonJson writes it; empty where there is none.
  void Finish(collectors::ComparisonState state, const std::string& verdict,
              const std::string& json);

 private:
  collectors::RunStore store_;
  int64_t id_ = 0;
  int64_t start_ns_ = MonotonicNs();
  bool finished_ = false;
};

}  // namespace headrace::experiments
