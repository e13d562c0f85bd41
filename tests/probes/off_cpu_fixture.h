// The off-CPU probe on this process, and what it gave.
#pragma once
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "probes/account/account_segment.h"
#include "probes/bpf/followed.h"
#include "probes/bpf/offcpu.h"
#include "probes/probe.h"
#include "tests/stolen_time.h"

namespace headrace::probes::bpf {

struct CollectedWaits final : Sink {
  std::map<std::pair<std::string, Labels>, double> values;
  std::map<std::string, int64_t> lost;
  void Add(const Measurement& m) override { values[{std::string(m.metric), m.labels}] += m.value; }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view what, int64_t count, std::optional<int64_t>) override {
    lost[std::string(what)] += count;
  }
  // Sum over everything that matches.
  double Sum(const std::string& metric, std::optional<uint32_t> operator_index,
             const std::string& cause, int64_t pid = 0) const {
    double sum = 0;
    for (const auto& [key, value] : values) {
      if (key.first != metric || key.second.operator_index != operator_index) continue;
      if (!cause.empty() && key.second.cause != cause) continue;
      if (pid != 0 && key.second.pid != pid) continue;
      sum += value;
    }
    return sum;
  }
};

inline int64_t ThreadCpuNs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}
inline void Spin(int64_t ns) {
  for (const int64_t begin = ThreadCpuNs(); ThreadCpuNs() - begin < ns;) {
  }
}

class OffCpu : public testing::Test {
 protected:
  void SetUp() override {
    const ProbeInfo* info = Registry<ProbeInfo>::Global().Find("off-CPU time");
    ASSERT_NE(info, nullptr);
    probe_ = info->make();
    target_.root_pid = getpid();
    target_.pids = {getpid()};
  }
  void Start() {
    target_.accounts = {{getpid(), FindSegmentAddress(host_, getpid())}};
    const Availability available = probe_->Start(host_, target_);
    if (!available.usable()) GTEST_SKIP() << "no BPF here: " << available.reason;
  }
  // What has ended by now. Once is not enough: this process is measured itself, and a period that
  // ends while the maps are read is in neither of them until the next time.
  CollectedWaits Read() {
    CollectedWaits first, sink;
    probe_->Read(first);
    sink.lost = first.lost;
    probe_->Read(sink);
    return sink;
  }

  // On the CPU to our programs, and not to a thread's clock.
  double StolenNsMeanwhile() const { return StolenNsSince(stolen_ns_); }

  Host host_;
  Target target_;
  std::unique_ptr<Probe> probe_;
  double stolen_ns_ = StolenNs();
};

}  // namespace headrace::probes::bpf
