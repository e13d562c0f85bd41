// Time operators lose to memory being short.
#include "probes/bpf/ended.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
namespace {

class ThrottleProbe final : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) override {
    target_ = &target;
    program_.Optional("on_throttled");
    return program_.Load(host, target);
  }

  void Read(Sink& sink) override {
    program_.Follow(*target_);
    ended_.ForEach(program_, "stops", sink, [&](const Record& key, const Record& value, Sink& out) {
      Measurement m = OfOperator(key);
      const std::string cause = key.Word("cause");
      const bool sleep = cause == "sleep";
      m.labels.cause = sleep ? "memory" : cause;
      m.metric = sleep ? "throttled_ns" : "reclaim_ns";
      m.value = static_cast<double>(value.Number("stop_ns"));
      out.Add(m);
      m.metric = sleep ? "throttled_count" : "reclaim_count";
      m.value = static_cast<double>(value.Number("stops_count"));
      out.Add(m);
    });
    program_.ReportLosses(sink);
  }

  void Stop() override { program_.Unload(); }

 private:
  Program program_{"throttle"};
  const Target* target_ = nullptr;
  EndedFigures ended_;
};

HR_PROBE("memory reclaim",
         {.summary = "time operators reclaim memory themselves, for the machine or for their "
                     "control group's limit, or are made to sleep for it (mm_vmscan_*). Time "
                     "stopped by a CPU quota is within runnable_ns: the kernel has no event for it",
          .affects = "operators' time lost to memory being short",
          .level = 3,
          .period_ns = 1'000'000'000,
          .check = [](const Host& host) { return CheckBpf(host); },
          .make = [] { return std::make_unique<ThrottleProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
