// CostGuard: watches what recording takes of the recorded program, so that the recorder can measure
// less before that is too much.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace headrace::collectors {

// More than this share of the program's speed is too much, what accounts take in the program's
// threads included; so much may be taken beside these in any case.
inline constexpr double kMostCost = 0.02, kMostBesideAccounts = 0.01;

// Cumulative figures at one instant; nanoseconds.
struct CostReading {
  int64_t at_ns = 0;
  double recorder_cpu_ns = 0;  // without what is done only once
  // Run time of our eBPF programs, by the probe that they are of.
  std::map<std::string, double> kernel_programs_ns;
  double program_cpu_ns = 0;  // of all processes of the run
  // CPU time that all processes of the machine used; empty: unknown
  std::optional<double> host_busy_ns;
  // Of the recorder's, what programs took that probes run beside it, by the probe.
  std::map<std::string, double> helpers_cpu_ns = {};
  double accounts_cpu_ns = 0;  // estimated (base/instrumentation_cost.h)
};

// What recording took, where that is too much.
struct TooMuchCost {
  double share = 0;           // of the program's speed
  double accounts_share = 0;  // of it, what no step down takes away
  double own() const { return share - accounts_share; }
  // Those of which giving up one helps, the costliest first: any that is a good part of a cost that
  // is a little too much; of one that is far too much only what is most of it, and without which it
  // is little. Empty: no single one helps.
  std::vector<std::string> probes;
};

class CostGuard {
 public:
  // `num_cores`: what this process may use, a quota included. `num_host_cores`: of the machine.
  CostGuard(double num_cores, double num_host_cores)
      : num_cores_(num_cores), num_host_cores_(num_host_cores) {}

  // Adds a reading; they are to come about once a second. Returns the share of the program's speed
  // that recording took in the last six to seven seconds, if that was too much and still is in the
  // last two to three, or in the last four to five, if it was more than four times kMostCost
  // without the accounts; the recorder is then to step down, and the next answer comes after as
  // long again. The first eight seconds after the first reading are in no such six.
  std::optional<TooMuchCost> Add(const CostReading& reading);

 private:
  TooMuchCost CostBetween(const CostReading& from, const CostReading& to) const;
  std::optional<TooMuchCost> CostWithin(int64_t window_ns, int64_t since_ns) const;
  double CoresTaken(const CostReading& from, const CostReading& to) const;
  double num_cores_, num_host_cores_;
  std::optional<int64_t> begin_ns_;   // the first reading
  std::deque<CostReading> readings_;  // since the last answer
};

}  // namespace headrace::collectors
