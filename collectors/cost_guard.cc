#include "collectors/cost_guard.h"

#include <algorithm>

namespace headrace::collectors {
namespace {

// Long enough that a burst of switches, or the symbols of one library, is not taken for the cost.
constexpr int64_t kWindowNs = 2'000'000'000;

}  // namespace

// eBPF programs run in the program's threads, at their switches: they take of the cores that these
// use. A program that uses less than one core waits, and what one of its threads loses is a share
// of the time that passed. The recorder runs beside it and takes of all cores alike: what it takes
// of idle ones slows nobody.
double CostGuard::CostBetween(const CostReading& from, const CostReading& to) const {
  const double passed_ns = static_cast<double>(to.at_ns - from.at_ns);
  const double used_ns = std::max(passed_ns, to.program_cpu_ns - from.program_cpu_ns);
  return (to.kernel_programs_ns - from.kernel_programs_ns) / used_ns +
         (to.recorder_cpu_ns - from.recorder_cpu_ns) / (passed_ns * std::max(1.0, num_cores_)) *
             CoresTaken(from, to);
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

std::optional<double> CostGuard::Add(const CostReading& reading) {
  if (!readings_.empty() && reading.at_ns <= readings_.back().at_ns) return std::nullopt;
  readings_.push_back(reading);
  while (readings_.size() > 2 && reading.at_ns - readings_[1].at_ns >= kWindowNs) {
    readings_.pop_front();
  }
  if (reading.at_ns - readings_.front().at_ns < kWindowNs) return std::nullopt;
  const double cost = CostBetween(readings_.front(), reading);
  if (!(cost > kMostCost)) return std::nullopt;
  readings_.assign({reading});
  return cost;
}

}  // namespace headrace::collectors
