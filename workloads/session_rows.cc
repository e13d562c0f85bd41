#include "workloads/session_rows.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "workloads/distributions.h"

namespace headrace::workloads {
namespace {

constexpr int64_t kFirstDay = 1'700'006'400;  // a midnight, UTC; partition p is the p-th day
constexpr int64_t kDaySeconds = 86'400;
constexpr double kSizeSigma = 0.9;

// Each session has one row, and a share of the others as large as its draw: cumulative rounding
// makes the sum exact.
std::vector<uint32_t> SessionSizes(uint64_t num_rows, uint64_t num_sessions, uint64_t key) {
  static const std::vector<double> table = LogNormalTable(kSizeSigma);
  double total = 0;
  for (uint64_t i = 0; i < num_sessions; ++i) total += table[Mix(key, i) >> 52];
  const auto extra = static_cast<double>(num_rows - num_sessions);
  std::vector<uint32_t> sizes(num_sessions);
  double sum = 0;
  uint64_t given = 0;
  for (uint64_t i = 0; i < num_sessions; ++i) {
    sum += table[Mix(key, i) >> 52];
    uint64_t until = std::min(num_rows - num_sessions, static_cast<uint64_t>(extra * sum / total));
    if (i + 1 == num_sessions) until = num_rows - num_sessions;
    sizes[i] = static_cast<uint32_t>(1 + until - given);
    given = until;
  }
  return sizes;
}

}  // namespace

SessionRows MakeSessionRows(const WorkloadSpec& spec, uint64_t partition, uint64_t num_rows) {
  const uint64_t key = Mix(Mix(spec.seed, 0x5e5510), partition);
  const auto num_sessions = std::clamp<uint64_t>(
      static_cast<uint64_t>(std::llround(static_cast<double>(num_rows) / spec.rows_per_session)), 1,
      num_rows);
  SessionRows result;
  result.session_sizes = SessionSizes(num_rows, num_sessions, Mix(key, 1));
  result.session_keys.resize(num_sessions);
  result.rows.reserve(num_rows);
  const int64_t day = kFirstDay + static_cast<int64_t>(partition) * kDaySeconds;
  for (uint32_t session = 0; session < num_sessions; ++session) {
    result.session_keys[session] = Mix(Mix(key, 2), session);
    const size_t first = result.rows.size();
    for (uint32_t i = 0; i < result.session_sizes[session]; ++i) {
      const uint64_t random = Mix(result.session_keys[session], i) >> 32;
      result.rows.push_back({session, 0, day + static_cast<int64_t>(random * kDaySeconds >> 32)});
    }
    std::sort(result.rows.begin() + static_cast<int64_t>(first), result.rows.end(),
              [](const SessionRow& a, const SessionRow& b) { return a.time < b.time; });
    for (size_t i = first; i < result.rows.size(); ++i)
      result.rows[i].visit = static_cast<uint32_t>(i - first);
  }
  if (!spec.clustered) {
    std::sort(result.rows.begin(), result.rows.end(), [](const SessionRow& a, const SessionRow& b) {
      return std::tie(a.time, a.session, a.visit) < std::tie(b.time, b.session, b.visit);
    });
  }
  return result;
}

}  // namespace headrace::workloads
