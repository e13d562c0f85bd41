// Shipper: the accounts of the calling process as Shipments, for whoever keeps them elsewhere: its
// totals and their course, in intervals of 1 s at first and of 10 s once it runs for long. What is
// not known to be kept waits, and is given again on every connection; while there is none,
// intervals become longer, so that nothing is lost and memory stays bounded.
//
// One thread.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/measurement_sink.h"
#include "collectors/sampler.h"
#include "collectors/shipment.h"
#include "probes/host.h"
#include "probes/probe.h"

namespace headrace::collectors {

struct ShipperOptions {
  std::string role;  // worker, rank
  std::optional<int64_t> rank;
  std::string program;  // as the run is called
  int64_t least_interval_ns = 1'000'000'000, most_interval_ns = 10'000'000'000;
};

class Shipper {
 public:
  // The measurements begin now.
  explicit Shipper(ShipperOptions options);
  ~Shipper();

  // To be called ten times a second: longer pauses are counted as time in which the process did not
  // run. The number, from 1, and the bytes of a Shipment that is to be sent now.
  struct Due {
    uint64_t number = 0;
    std::string bytes;
  };
  // `last`: measures up to now, and for the last time.
  std::optional<Due> Next(bool last);
  // What was given with this number, or a lower one, need not be given again.
  void Kept(uint64_t number);
  // What was given and not kept is due again. The time since the last call was a wait for the
  // connection, and no pause.
  void Connected();

  size_t num_waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    uint64_t number = 0;  // 0: not given yet, so that it may still grow
    bool is_due = true;
    Shipment shipment;
  };

  void NotePause();
  void Measure(bool last);
  bool TryAttach();
  void ReadProbes(int64_t now_ns);
  MeasurementBatch TakeMeasured(int64_t now_ns, bool last);
  void Add(Shipment&& shipment);

  const ShipperOptions options_;
  const int64_t pid_;
  const int64_t start_ns_;  // on the monotonic clock
  RunInfo info_;
  probes::Host host_;
  probes::Target target_;
  MeasurementSink sink_;
  std::vector<std::pair<std::string, std::unique_ptr<probes::Probe>>> probes_;
  std::optional<Sampler> sampler_;
  MeasurementBatch definitions_;  // all so far; no figures
  int64_t measured_ns_ = 0;       // since start_ns_: the end of the last interval
  int64_t called_ns_ = 0, absent_ns_ = 0;
  int64_t host_busy_ns_ = -1, host_busy_at_ns_ = 0;
  bool has_ended_ = false;
  uint64_t last_number_ = 0;
  std::deque<Waiting> waiting_;
};

}  // namespace headrace::collectors
