// Accelerators beside the trainer's waits: how long each was idle, and how much of that time the
// trainer waited for data.
//
// NVML says in which share of its last sample period, 1/6 to 1 s, a kernel ran on the device
// (https://docs.nvidia.com/deploy/nvml-api/structnvmlUtilization__t.html). It says neither when in
// that period nor how much of the device the kernel used. So both idle time and waits are shares of
// each stretch of time here, and what they have in common has bounds only: at least their sum less
// the whole stretch, at most the smaller of the two (Frechet). The bounds of all stretches together
// are the least and the most for any sample period that a device may have.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/phases.h"
#include "analysis/run/run_view.h"
#include "analysis/statistics/statistics.h"

namespace headrace::analysis {

// The share of a part of the run in which the trainer waited for data.
struct WaitRow {
  int64_t start_ns = 0, duration_ns = 0;  // since the run began
  double wait_ratio = 0;
};

struct DeviceUse {
  std::string device;  // "gpu0"
  double idle_ratio = 0;
  std::optional<Interval> idle_interval;  // 90 %; empty: too short for one
  double wait_ratio = 0;                  // of the trainer, in the same time
  Interval idle_waiting;      // bounds: share of all that time, idle while the trainer waits
  std::vector<int64_t> pids;  // processes of the run that compute on it; empty: none is known
  bool shared = false;        // programs outside the run compute on it, too

  double busy_ratio() const { return 1 - idle_ratio; }
};

// What the use of the devices adds to what is known of the trainer's waits.
enum class DeviceStory : uint8_t {
  kPlain,       // nothing beyond the figures
  kUnused,      // no kernel ran
  kBusyAnyway,  // the trainer waits for data, but the device hardly idles
  kHostWork,    // the trainer hardly waits for data, but the device idles
  kLimits       // it is what limits the run, whatever the trainer's thread waits for
};
const char* DeviceStoryName(
    DeviceStory story);  // "plain", "unused", "busy anyway", "host work", "limits"

struct Accelerators {
  std::vector<DeviceUse> devices;  // those that the run uses; all where that is not known
  DeviceUse mean;                  // of these devices
  DeviceStory story = DeviceStory::kPlain;
  double stretch_s = 0;  // length of the stretches

  // The rate times this is the most that faster loading gives, as the devices are busy already.
  // Empty: other programs' work on them may be part of that, or their waits for each other, or
  // nothing runs on them.
  Real MostGain() const;
  // Whether they are too busy for the trainer's waits to be what limits it.
  bool Contradict() const { return story == DeviceStory::kBusyAnyway && !mean.shared; }
};

// The trainer's waits in the part of a run that is judged.
struct TrainerWaits {
  std::vector<WaitRow> rows;  // by start
  double step_s = 0;          // how long its steps are; 0: unknown
  // Where several processes take batches: by pid, the share of its time in which it waited. A
  // device is then held against the waits of the process that computes on it.
  std::map<int64_t, double> by_rank;
};

// Empty: no device told of its use, or for less than a stretch.
std::optional<Accelerators> LookAtAccelerators(const RunView& run, const TrainerWaits& waits);
// Beside the trainer's waits in the steady windows of a run with instrumentation.
std::optional<Accelerators> AcceleratorsOf(const RunView& run, const Phases& phases);

// What would tell whether devices that contradict the waits are the limit.
std::string MeasureOfDevices(const Accelerators& accelerators);

}  // namespace headrace::analysis
