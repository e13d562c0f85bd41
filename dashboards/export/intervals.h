// Reading interval views in portions: a day at a hundred operators is a million rows, which are
// never in memory together.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "collectors/store/read_store.h"

namespace headrace::dashboards {

struct IntervalQuery {
  std::string view;           // a view with run_id and start_ns
  std::string columns = "*";  // SQL
  std::string where = "1";    // a further condition, SQL of ours
  std::string order = "start_ns";
};

// Rows of the run whose window begins in [since_ns, until_ns).
int64_t CountIntervals(collectors::ReadStore& store, const IntervalQuery& query, int64_t run_id,
                       int64_t since_ns, int64_t until_ns);

// Whether there are more than `count` of them in the whole run; counts no further.
bool HasMoreIntervals(collectors::ReadStore& store, const IntervalQuery& query, int64_t run_id,
                      int64_t count);

// Calls `visit` with these rows in order of their begin, about 20,000 at a time; rows of one begin
// are in one portion. Not called for a portion without rows.
void ForEachPortion(collectors::ReadStore& store, const IntervalQuery& query, int64_t run_id,
                    int64_t since_ns, int64_t until_ns,
                    const std::function<void(const collectors::SqlResult&)>& visit);

}  // namespace headrace::dashboards
