// ProbeRunner: starts the registered probes a level allows, reads each when it is due, and stops
// them. A probe that does not work, or stops working, gets a status that says so; it never ends the
// recording.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectors/measurement_sink.h"
#include "collectors/sampler.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
class SplitSource;
}

namespace headrace::collectors {

// Until then a run is young: it may end soon, and what there is to see is recorded more finely.
inline constexpr int64_t kYoungRunNs = 30'000'000'000;

// A row of the run's probe list.
struct ProbeStatus {
  std::string probe, state, reason, fix, affects;
};

// Throws Error kUsage for a name that no probe has.
void CheckProbeNames(const std::vector<std::string>& names, const std::string& option);

class ProbeRunner {
 public:
  // `target` outlives the runner; its owner keeps it up to date.
  ProbeRunner(const probes::Host& host, const probes::Target& target, MeasurementSink* sink);
  ~ProbeRunner();

  // Starts all probes of level `level` and below, without those named in `without`. Probes that are
  // only for `deep` need `deep` as well. Times are since the run's start.
  void Start(int level, bool deep, const std::vector<std::string>& without, int64_t now_ns);
  // Reads all probes into the sink at the run's start. Probes of the machine come last, because
  // they count on whatever the target does.
  void ReadAtStart();
  // Reads the probes that are due. In the run's last reading it reads all that are quick, whatever
  // their period, so that their values are from one instant; ReadRest then reads the others. A
  // probe that is slow to read is read less often, down to every 10 s, so that it costs about 0.02
  // % of a core (0.1 % in a young run, for those that have a period of their own there).
  void Read(int64_t now_ns, bool last);
  void ReadRest(int64_t now_ns);
  // Stops that one, and says why in its status, after a last Read. False, and nothing is done,
  // where it is of level 1, does not work, or is the one that splits operators' times.
  bool GiveUp(const std::string& name, int64_t now_ns, const std::string& why);
  // Stops those of the highest level that a probe works at, if that is 2 or more, and says why in
  // their statuses, after a last Read. Returns the level that is left, 0 if nothing was stopped.
  int StepDown(int64_t now_ns, const std::string& why);
  void Stop();

  // Statuses that are new or changed since the last call.
  std::vector<ProbeStatus> TakeChanged();
  // The highest level of a probe that works; 0 if none does.
  int level_reached() const;
  bool has_splits() const;
  // Level 3: by pid, what the kernel has counted for the operators until now, including periods
  // that are still open. Null when no probe provides it.
  const std::map<int64_t, KernelSplits>* ReadSplits();
  int64_t num_active() const;

 private:
  struct Running;
  void ReadOne(Running* running, int64_t now_ns);
  void ReadOwnCost(int64_t now_ns);
  void Fail(Running* running, const std::string& why);
  void SetStatus(Running* running, const std::string& state, const std::string& reason,
                 const std::string& fix);
  const probes::Host& host_;
  const probes::Target& target_;
  MeasurementSink* sink_;
  std::vector<std::unique_ptr<Running>> running_;
  std::vector<ProbeStatus> changed_;
  probes::bpf::SplitSource* split_source_ = nullptr;
  Running* split_owner_ = nullptr;
  int64_t next_cost_ns_ = 0;
  std::map<int64_t, KernelSplits> splits_;
};

}  // namespace headrace::collectors
