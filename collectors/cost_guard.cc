#include "collectors/cost_guard.h"

#include <algorithm>
#include <utility>

namespace headrace::collectors {
namespace {

// Long enough that a burst of switches is not taken for what recording costs; far too much is seen
// earlier. The kernel's programs are timed a tenth of the time, so that two seconds hold two short
// looks: of 90 recordings they held 10 % and more in seven, where the programs took 1 to 2 % in
// all.
constexpr int64_t kWindowNs = 6'000'000'000, kShortWindowNs = 4'000'000'000;
constexpr int64_t kLastNs = 2'000'000'000;
// A program that a recording starts reads its libraries first, and for its first six seconds its
// Python processes are looked for (probes/stack/python_stacks.h): both cost more than what comes
// then, and no more of it comes. In these seconds only far too much counts.
constexpr int64_t kBeginningNs = 8'000'000'000;
constexpr double kFarTooMuch = 4 * kMostCost;
// Up to this cost probes are given up one by one, as long as one is so much of it.
constexpr double kLittleTooMuch = 2 * kMostCost, kGoodPart = 0.1;

bool IsTooMuch(const TooMuchCost& cost) {
  return cost.share > kMostCost && cost.own() > kMostBesideAccounts;
}

// 0 for a probe that had none.
double ValueOf(const std::map<std::string, double>& values, const std::string& probe) {
  const auto found = values.find(probe);
  return found == values.end() ? 0 : found->second;
}

}  // namespace

// eBPF programs run in the program's threads, at their switches: they take of the cores that these
// use, as its accounts do. A program that uses less than one core waits, and what one of its
// threads loses is a share of the time that passed. The recorder runs beside it and takes of all
// cores alike: what it takes of idle ones slows nobody.
TooMuchCost CostGuard::CostBetween(const CostReading& from, const CostReading& to) const {
  const double passed_ns = static_cast<double>(to.at_ns - from.at_ns);
  const double used_ns = std::max(passed_ns, to.program_cpu_ns - from.program_cpu_ns);
  TooMuchCost cost;
  cost.accounts_share = (to.accounts_cpu_ns - from.accounts_cpu_ns) / used_ns;
  cost.share = cost.accounts_share;
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [probe, ns] : to.kernel_programs_ns) {
    const double share = (ns - ValueOf(from.kernel_programs_ns, probe)) / used_ns;
    cost.share += share;
    shares.emplace_back(share, probe);
  }
  const double per_recorder_ns = CoresTaken(from, to) / (passed_ns * std::max(1.0, num_cores_));
  cost.share += (to.recorder_cpu_ns - from.recorder_cpu_ns) * per_recorder_ns;
  for (const auto& [probe, ns] : to.helpers_cpu_ns) {
    shares.emplace_back((ns - ValueOf(from.helpers_cpu_ns, probe)) * per_recorder_ns, probe);
  }
  std::sort(shares.rbegin(), shares.rend());
  for (const auto& [share, probe] : shares) {
    const double own = cost.own();
    const bool is_enough = cost.share - share <= kMostCost || own - share <= kMostBesideAccounts;
    if ((share >= own / 2 && is_enough) || (own <= kLittleTooMuch && share >= own * kGoodPart)) {
      cost.probes.push_back(probe);
    }
  }
  return cost;
}

// How much of the cores is in use beside the recorder, 0 to 1: of the machine's by all, or of those
// that a quota leaves by the program. All of them where it is unknown.
double CostGuard::CoresTaken(const CostReading& from, const CostReading& to) const {
  if (!from.host_busy_ns || !to.host_busy_ns) return 1;
  const double passed_ns = static_cast<double>(to.at_ns - from.at_ns);
  const double recorder_ns = to.recorder_cpu_ns - from.recorder_cpu_ns;
  const double by_all =
      (*to.host_busy_ns - *from.host_busy_ns - recorder_ns) / (passed_ns * num_host_cores_);
  const double by_program =
      (to.program_cpu_ns - from.program_cpu_ns) / (passed_ns * std::max(1.0, num_cores_));
  return std::clamp(std::max(by_all, by_program), 0.0, 1.0);
}

// What was taken in the last `window_ns` and up to one reading more; empty: so much has not passed
// since then.
std::optional<TooMuchCost> CostGuard::CostWithin(int64_t window_ns, int64_t since_ns) const {
  const CostReading& now = readings_.back();
  for (size_t i = readings_.size(); i-- > 0;) {
    if (readings_[i].at_ns < since_ns) break;
    if (now.at_ns - readings_[i].at_ns >= window_ns) return CostBetween(readings_[i], now);
  }
  return std::nullopt;
}

std::optional<TooMuchCost> CostGuard::Add(const CostReading& reading) {
  if (!readings_.empty() && reading.at_ns <= readings_.back().at_ns) return std::nullopt;
  if (!begin_ns_) begin_ns_ = reading.at_ns;
  readings_.push_back(reading);
  while (readings_.size() > 2 && reading.at_ns - readings_[1].at_ns >= kWindowNs) {
    readings_.pop_front();
  }
  const std::optional<TooMuchCost> recent = CostWithin(kShortWindowNs, *begin_ns_);
  const std::optional<TooMuchCost> lasting = CostWithin(kWindowNs, *begin_ns_ + kBeginningNs);
  const bool is_far_too_much = recent && recent->own() > kFarTooMuch;
  // What has passed already is not mended by measuring less: a program that starts its workers.
  const std::optional<TooMuchCost> last = CostWithin(kLastNs, *begin_ns_);
  const bool lasts = lasting && IsTooMuch(*lasting) && IsTooMuch(*recent) && IsTooMuch(*last);
  if (!is_far_too_much && !lasts) return std::nullopt;
  readings_.assign({reading});
  return is_far_too_much ? recent : lasting;
}

}  // namespace headrace::collectors
