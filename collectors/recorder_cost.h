// What recording itself costs, stored like any other figure, and the room on the disk that the end
// of a run needs.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/cpu.h"
#include "collectors/measurement_sink.h"
#include "collectors/store/samples.h"
#include "probes/helper_cpu.h"

namespace headrace::collectors {

// One without labels: of the machine, of all processes together, or of this program.
probes::Measurement Figure(const char* metric, double value);

// Of this program, since this was made.
struct OwnCost {
  int64_t cpu_begin_ns = ProcessCpuNs() + probes::HelperCpuNs();
  int64_t once_begin_ns = probes::OnceCpuNs();
  int64_t written_begin_bytes = Written();

  static int64_t Written();

  int64_t CpuNs() const { return ProcessCpuNs() + probes::HelperCpuNs() - cpu_begin_ns; }
  // Without what is done once for each file or process (probes/helper_cpu.h).
  int64_t LastingCpuNs() const { return CpuNs() - (probes::OnceCpuNs() - once_begin_ns); }

  void Read(const std::string& database, MeasurementSink* sink) const;
};

// What accounts took in the program's threads, estimated from what they counted.
class AccountsCost {
 public:
  void Add(const IntervalSample& sample);  // one after the other
  double CpuNs() const;                    // in all; never less than before

 private:
  double visits_ = 0, hooked_batches_ = 0;
  std::map<int64_t, std::string> stages_;  // names, by id
};

// CPU time of the parts of the loop.
class PartCosts {
 public:
  // Adds what the calling thread used since the last call to a part; returns it.
  int64_t End(const char* part) {
    const int64_t now = ThreadCpuNs();
    const int64_t spent = now - last_ns_;
    spent_ns_[part] += spent;
    last_ns_ = now;
    return spent;
  }
  void Read(int64_t now_ns, MeasurementSink* sink) const;

 private:
  int64_t last_ns_ = ThreadCpuNs();
  std::map<std::string, int64_t> spent_ns_;
};

// Room on the database's disk that can be given back when it is full, so that the end of the run
// can still be written. The file has no name: it goes with the process.
class Reserve {
 public:
  explicit Reserve(const std::string& database);
  ~Reserve() { Release(); }
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;
  void Release();

 private:
  int fd_;
};

}  // namespace headrace::collectors
