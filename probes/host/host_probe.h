// HostProbe: base class of the probes in this folder. Such a probe reads small files, and reports
// to a Reading the raw figures it found and what it missed. This class does the rest: growth since
// the start, and the probe's availability, which is that of its first reading.
//
//   class Softnet : public HostProbe {
//     void Sample(const Host& host, const Target& target, Reading& out) override;
//   };
//   HR_PROBE("softnet", {..., .check = CheckHostProbe<Softnet>, .make = MakeProbe<Softnet>});
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "probes/host/text.h"
#include "probes/probe.h"

namespace headrace::probes {

// Growth of cumulative figures since a probe's start.
class Growth {
 public:
  // Growth of a counter since the start, given its present value `now`. A counter first seen after
  // Begin() is assumed to have begun at 0. One that falls below half of its last value has
  // restarted from 0 (device re-plugged), and its new value is added. A smaller fall is jitter, and
  // growth pauses until the counter has caught up.
  double Since(std::string_view metric, const Labels& labels, double now);
  void Begin() { begun_ = true; }

 private:
  struct Entry {
    double last = 0, grown = 0;
  };
  std::map<std::pair<std::string_view, Labels>, Entry> entries_;
  bool begun_ = false;
};

// One pass over the files. Metrics are string literals of the list in metric.h.
class Reading {
 public:
  // `sink` may be null: then figures only set the base of growth.
  Reading(Growth* growth, Sink* sink) : growth_(growth), sink_(sink) {}

  // A cumulative figure as the kernel gives it.
  void Counter(std::string_view metric, const Labels& labels, double now);
  // A figure that already counts from the start.
  void Total(std::string_view metric, const Labels& labels, double since_start, bool course = true);
  void Gauge(std::string_view metric, const Labels& labels, double now);
  // A part that cannot be read; only the first is reported.
  void Missing(std::string reason, std::string fix);
  // The same with errno's reason for `path`.
  void MissingFile(const std::string& path, const std::string& fix);

  bool empty() const { return figures_ == 0; }
  // Ok if all was read, degraded if a part was missing, unavailable if nothing was found.
  Availability availability() const;

 private:
  Growth* growth_;
  Sink* sink_;
  int64_t figures_ = 0;
  std::string reason_, fix_;
};

class HostProbe : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) final;
  void Read(Sink& sink) final;
  void Stop() override {}

 protected:
  virtual void Sample(const Host& host, const Target& target, Reading& out) = 0;
  // True in the reading that Start makes.
  bool starting() const { return starting_; }

 private:
  const Host* host_ = nullptr;
  const Target* target_ = nullptr;
  Growth growth_;
  bool starting_ = true;
};

// A target that consists of this process (with a fixture: the process of its /proc/self).
Target SelfTarget(const Host& host);

// Starts a probe for this process to find its availability.
template <typename T>
Availability CheckHostProbe(const Host& host) {
  const Target target = SelfTarget(host);
  T probe;
  Availability availability = probe.Start(host, target);
  if (availability.usable()) probe.Stop();
  return availability;
}

template <typename T>
std::unique_ptr<Probe> MakeProbe() {
  return std::make_unique<T>();
}

inline Labels Subject(std::string subject, std::string cause = "") {
  Labels labels;
  labels.subject = std::move(subject);
  labels.cause = std::move(cause);
  return labels;
}
inline Labels Cause(std::string cause) { return Subject("", std::move(cause)); }
inline Labels OfProcess(int64_t pid, std::string cause = "") {
  Labels labels;
  labels.pid = pid;
  labels.cause = std::move(cause);
  return labels;
}

constexpr int64_t kSecondNs = 1'000'000'000;

}  // namespace headrace::probes
