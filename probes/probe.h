// Probe: a source of measurements. It says whether it works here, and if not why and what would
// change it; it is started for a target, read at every tick, and stopped. Reading never blocks.
//
// A probe is one file (or one BPF program) that ends in HR_PROBE; a generic test runs over all.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "probes/host.h"
#include "probes/metric.h"

namespace headrace::probes {

// Whether a probe can measure, in words for people.
struct Availability {
  enum class State : uint8_t { kOk, kDegraded, kUnavailable };
  State state = State::kOk;
  std::string reason;  // what was found: the failing call and errno in words; "" if all is well
  std::string fix;     // what would change it: a capability, sysctl, kernel option, container flag

  static Availability Ok(std::string what = "") { return {State::kOk, std::move(what), ""}; }
  static Availability Degraded(std::string reason, std::string fix) {
    return {State::kDegraded, std::move(reason), std::move(fix)};
  }
  static Availability Unavailable(std::string reason, std::string fix) {
    return {State::kUnavailable, std::move(reason), std::move(fix)};
  }
  bool usable() const { return state != State::kUnavailable; }
};

// What a measurement is about. An empty field means "all".
struct Labels {
  int64_t pid = 0;                         // process; 0: the machine
  std::optional<uint32_t> operator_index;  // in the operator table of that process's accounts
  std::string thread;                      // name of a group of threads: digits at its end left out
  std::string subject;                     // device, interface, socket, counter, cgroup, ...
  std::string cause;                       // a word out of few: direction, cause, state
  std::optional<int64_t> bucket;           // histograms: lower bound of a power-of-two bucket

  auto operator<=>(const Labels&) const = default;
};

struct Measurement {
  std::string_view metric;  // of the list in metric.h; points to storage that outlives the probe
  double value = 0;         // counters: since Start, never falling; gauges: now
  Labels labels;
  std::optional<Source> source;         // if it differs from the metric's
  std::optional<double> running_ratio;  // share of the time in which the counter really counted
  bool course = true;      // false: only the total is kept (histograms and other fine detail)
  int64_t mean_of_ns = 0;  // gauges: `value` is the mean over the last so long, also the first time
};

// A folded stack: root first, frames separated by ';'.
struct StackSample {
  int64_t pid = 0;
  std::optional<uint32_t> operator_index;
  std::string thread;
  std::string_view kind;  // "cpu", "off_cpu" or "python"
  std::string folded;
  int64_t samples = 0;  // since Start
  int64_t time_ns = 0;  // what the samples stand for
};

// Takes what a probe read. Labels that come twice in one Read are added together.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Add(const Measurement& measurement) = 0;
  virtual void AddStack(const StackSample& stack) = 0;
  // Events that were lost since Start, and all of them, lost and kept, if that is known.
  virtual void Lost(std::string_view what, int64_t lost, std::optional<int64_t> total) = 0;
};

// A process with accounts among the target's.
struct AccountedProcess {
  int64_t pid = 0;
  uint64_t segment_address = 0;  // where the process itself has its segment mapped; 0 unknown
};

// The processes to measure: a root and all it started. The collector keeps it up to date; a probe
// looks at it in every Read.
struct Target {
  int64_t root_pid = 0;
  std::vector<int64_t> pids;  // live ones, the root first
  std::vector<AccountedProcess> accounts;
  // The root runs a pipeline file: its accounts tell all that it does. Those of other programs tell
  // a part, so that their threads are of interest as well.
  bool runs_pipeline = false;
  bool deep = false;  // costly detail was asked for
  // The root is still held back before it executes its command. The kernel programs do not measure
  // what it does until then: they begin at its exec, even if this is still set then.
  bool root_held = false;
  // This Read is the last one of the probe: what is still held back is to be given now.
  bool ending = false;
};

class Probe {
 public:
  virtual ~Probe() = default;
  // Begins to measure. Returns what it can do; an unavailable probe is neither read nor stopped.
  // `host` and `target` outlive the probe. Throws nothing: expected failure is an Availability.
  virtual Availability Start(const Host& host, const Target& target) = 0;
  virtual void Read(Sink& sink) = 0;
  // Ends measuring and frees what the kernel holds; also done by the destructor.
  virtual void Stop() = 0;
};

struct ProbeInfo {
  std::string summary;  // what it measures
  std::string affects;  // what the pages lack without it
  int level = 1;        // least accounting level at which it runs (0 outside, 1 accounts, ...)
  bool deep_only = false;
  bool starts_last = false;  // uses what another probe's programs note, if that runs as well
  int64_t period_ns = 0;     // at most one Read per period; 0: at every tick
  // While a run is young, if not 0: a short run's course would be a few intervals otherwise.
  int64_t young_period_ns = 0;
  // Tries what Start would need, as far as possible without a target, and undoes it.
  std::function<Availability(const Host&)> check;
  std::function<std::unique_ptr<Probe>()> make;
};

#define HR_PROBE(name, ...)                                              \
  [[maybe_unused]] static const bool HR_REGISTRAR =                      \
      ::headrace::Registry<::headrace::probes::ProbeInfo>::Global().Add( \
          name, ::headrace::probes::ProbeInfo __VA_ARGS__)

}  // namespace headrace::probes
