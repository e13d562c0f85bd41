// The probe "counters by operator", level 4: hardware counters of the CPUs. A BPF program
// (probes/bpf/counters.bpf.c) credits them exactly to groups of threads, at every switch; overflows
// of the same counters say how the operators of a group share in it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "probes/bpf/program.h"
#include "probes/perf/counter_set.h"
#include "probes/perf/counting.h"
#include "probes/probe.h"

namespace headrace::probes::perf {

struct OperatorCountersOptions {
  std::optional<CounterSet> set;  // else of this machine
  std::optional<EventPlan> plan;  // else what is proven
  // Overflows of each event, per second of a CPU ...
  uint64_t base_frequency = 499, set_frequency = 199;
  // ... or after so many of its events; 0: as above.
  uint64_t base_period = 0, set_period = 0;
  CountingOptions counting;
};

// An amount that is shared among operators as samples fall. What has no samples waits for some.
class Shares {
 public:
  void Add(double amount) { waiting_ += amount; }
  void Sample(uint32_t word, double events) { samples_[word] += events; }
  double waiting() const { return waiting_; }
  // Gives each word its part of all that waits, and forgets the samples.
  void Share(const std::function<void(uint32_t word, double part)>& give);

 private:
  double waiting_ = 0;
  std::map<uint32_t, double> samples_;
};

class OperatorCounters final : public Probe {
 public:
  using Options = OperatorCountersOptions;
  explicit OperatorCounters(Options options = {});
  ~OperatorCounters() override { Stop(); }

  static Availability Check(const Host& host);
  Availability Start(const Host& host, const Target& target) override;
  void Read(Sink& sink) override;
  void Stop() override;

 private:
  using Group = std::pair<int64_t, std::string>;  // pid and name of a group of threads
  // Whose counts they are: an operator's, or (word 0) a group's outside operators.
  struct Owner {
    int64_t pid;
    uint32_t word;
    std::string thread;
    auto operator<=>(const Owner&) const = default;
  };
  // An entry of a map of the kernel's, by its key, as it was last read.
  using EntryKey = std::tuple<int64_t, std::string, uint64_t, uint64_t, uint64_t, uint64_t>;
  using Entry = std::vector<uint64_t>;
  // What a group of threads counted, exactly, and what of it is not yet its operators'.
  struct Sums {
    Totals totals;
    std::vector<Turn> pending;
    std::vector<std::vector<double>> shared;  // of totals.scaled, by plan group and event
    std::vector<double> shared_enabled, shared_running;
    // By plan group and event: of the counts, of a turn's counts, of the base's in that turn.
    std::vector<std::vector<Shares>> counts, turn, turn_base;
    std::vector<Shares> enabled, running;
  };
  struct OwnerSums {
    Totals totals;
    double samples = 0;
  };

  Availability OpenCpus();
  void Rotate();
  void ForgetEnded();
  // What an entry grew by since it was last read; empty if not at all.
  Entry Grown(std::map<EntryKey, Entry>* last, const EntryKey& key, Entry now);
  void ReadKernel();
  Sums& SumsOf(const Group& group);
  OwnerSums& OwnerOf(const Group& group, uint32_t word);
  void ShareOut(const Group& group, Sums* sums);
  bool HasAccounts(int64_t pid) const;
  int events_fd() const { return program_->map_fd("events"); }

  Options options_;
  KernelBackend kernel_;
  EventPlan plan_;
  const Target* target_ = nullptr;
  std::unique_ptr<bpf::Program> program_;
  std::vector<int> handles_;                   // of all events, to be closed
  std::vector<std::vector<int>> set_leaders_;  // by set, of every CPU
  size_t active_ = 0;                          // set that counts, plus 1
  std::map<EntryKey, Entry> last_base_, last_sets_, last_samples_;
  std::map<Group, Sums> sums_;
  std::map<Owner, OwnerSums> owners_;
  std::set<int64_t> gone_before_;
  int64_t looked_ns_ = 0;
};

}  // namespace headrace::probes::perf
