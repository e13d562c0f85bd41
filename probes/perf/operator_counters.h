// The probe "counters by operator", level 4: hardware counters of the CPUs. A BPF program
// (probes/bpf/counters.bpf.c) attributes them exactly to groups of threads at every context switch;
// overflows of the same counters tell how to divide a group's counts among its operators.
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
  // Overflow samples of each event per second of a CPU ...
  uint64_t base_frequency = 499, set_frequency = 199;
  // ... or the number of events between two samples; 0: use the frequency above.
  uint64_t base_period = 0, set_period = 0;
  CountingOptions counting;
};

// An amount that is divided among operators in proportion to samples. It waits while there are no
// samples.
class Shares {
 public:
  void Add(double amount) { waiting_ += amount; }
  void Sample(uint32_t word, double events) { samples_[word] += events; }
  double waiting() const { return waiting_; }
  // Gives each operator word its part of the waiting amount, and clears the samples.
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
  // The owner of counts: an operator, or (word 0) a group's time outside operators.
  struct Owner {
    int64_t pid;
    uint32_t word;
    std::string thread;
    auto operator<=>(const Owner&) const = default;
  };
  // Key and last values of an entry in one of the kernel's maps.
  using EntryKey = std::tuple<int64_t, std::string, uint64_t, uint64_t, uint64_t, uint64_t>;
  using Entry = std::vector<uint64_t>;
  // What a group of threads counted, exactly, and how much of it is not yet divided among its
  // operators.
  struct Sums {
    Totals totals;
    std::vector<Turn> pending;
    // Part of totals.scaled already divided, by plan group and event.
    std::vector<std::vector<double>> shared;
    std::vector<double> shared_enabled, shared_running;
    // By plan group and event: amounts to divide of the counts, of a turn's counts, and of the base
    // group's counts in that turn.
    std::vector<std::vector<Shares>> counts, turn, turn_base;
    std::vector<Shares> enabled, running;
  };
  struct OwnerSums {
    Totals totals;
    double samples = 0;
  };

  Availability OpenCpus();
  // An event of a group on a CPU, attached to the program. Its handle, or the kernel's error
  // (negative); where another step fails, `failure` says which.
  int OpenEvent(int cpu, size_t group, size_t event, int leader, Availability* failure);
  void Rotate();
  void ForgetEnded();
  // The growth of an entry since it was last read; empty if it did not grow.
  Entry Grown(std::map<EntryKey, Entry>* last, const EntryKey& key, Entry now);
  void ReadKernel();
  void ReadSamples();
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
  std::vector<int> handles_;                   // handles of all events, to be closed
  std::vector<std::vector<int>> set_leaders_;  // by set, of every CPU
  size_t active_ = 0;                          // index of the set that counts, plus 1
  std::map<EntryKey, Entry> last_base_, last_sets_, last_samples_;
  std::map<Group, Sums> sums_;
  std::map<Owner, OwnerSums> owners_;
  std::set<int64_t> gone_before_;
  int64_t looked_ns_ = 0;
};

}  // namespace headrace::probes::perf
