// Block requests by operator and device.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "probes/bpf/ended.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
namespace {

constexpr int64_t kExpireNs = 5'000'000'000;
constexpr int64_t kExpirePeriodNs = 1'000'000'000;

class BlockIoProbe final : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) override {
    host_ = &host;
    target_ = &target;
    program_.Prefer({"on_io_start", "on_getrq"});
    program_.Optional("on_merge");
    return program_.Load(host, target);
  }

  void Read(Sink& sink) override {
    program_.Follow(*target_);
    Expire(sink);
    ReadRequests(sink);
    ReadDevices(sink);
    program_.ReportLosses(sink);
  }

  void Stop() override { program_.Unload(); }

 private:
  Measurement About(const Record& key) {
    Measurement m = OfOperator(key);
    m.labels.subject = DeviceName(key.Number("device"));
    m.labels.cause = key.Word("direction");
    return m;
  }

  void ReadRequests(Sink& sink) {
    ended_.ForEach(program_, "requests", sink,
                   [&](const Record& key, const Record& value, Sink& out) {
                     Measurement m = About(key);
                     const auto add = [&](std::string_view metric, const char* member) {
                       m.metric = metric;
                       m.value = static_cast<double>(value.Number(member));
                       out.Add(m);
                     };
                     add("block_requests_count", "requests_count");
                     add("block_bytes", "bytes");
                     add("block_latency_ns", "latency_ns");
                     if (value.Number("merged_count") > 0)
                       add("block_merged_count", "merged_count");
                     if (m.labels.cause != "flush")
                       add("block_sequential_count", "sequential_count");
                   });
    ended_.ForEach(
        program_, "buckets", sink, [&](const Record& key, const Record& value, Sink& out) {
          Measurement m = About(key);
          m.course = false;
          m.labels.bucket = int64_t{1} << std::min<uint64_t>(key.Number("bucket"), 62);
          for (const auto& [metric, member] : {std::pair{"block_latency_count", "latency_count"},
                                               std::pair{"block_size_count", "size_count"}}) {
            m.metric = metric;
            m.value = static_cast<double>(value.Number(member));
            if (m.value > 0) out.Add(m);
          }
        });
    ended_.ForEach(program_, "pairs", sink, [&](const Record& key, const Record& value, Sink& out) {
      Measurement m = About(key);
      m.course = false;
      m.metric = "block_size_latency_count";
      m.labels.bucket = SizeLatencyBucket(key);
      m.value = static_cast<double>(value.Number("requests_count"));
      out.Add(m);
    });
  }

  void ReadDevices(Sink& sink) {
    program_.ForEach("devices", [&](const Record& key, const Record& value) {
      const uint64_t device = key.Number("device");
      Measurement m;
      m.labels.subject = DeviceName(device);
      m.metric = "block_queue_depth_count";
      // Two CPUs may be between their marks: the level is then one too low for a moment.
      m.value = static_cast<double>(std::max<int64_t>(
          0, static_cast<int64_t>(value.Number("in_flight_count")) - expired_[device]));
      sink.Add(m);
    });
    program_.ForEach("gaps", [&](const Record& key, const Record& value) {
      Measurement m;
      m.metric = "block_gap_count";
      m.course = false;
      m.labels.subject = DeviceName(key.Number("device"));
      m.labels.cause = key.Word("direction");
      m.labels.bucket = int64_t{1} << std::min<uint64_t>(key.Number("bucket"), 62);
      m.value = static_cast<double>(value.Number("gaps_count"));
      sink.Add(m);
    });
  }

  const std::string& DeviceName(uint64_t device) {
    auto [it, fresh] = names_.try_emplace(device);
    if (!fresh) return it->second;
    it->second = fmt::format("{}:{}", device >> 20, device & 0xfffff);
    const auto event = host_->Read(fmt::format("/sys/dev/block/{}/uevent", it->second), 4096);
    const size_t at = event ? event->find("DEVNAME=") : std::string::npos;
    if (at != std::string::npos) {
      it->second = event->substr(at + 8, event->find('\n', at) - at - 8);
    }
    return it->second;
  }

  // A start whose completion is never seen would be a request in flight for ever.
  void Expire(Sink& sink) {
    const int64_t now = MonotonicNs();
    if (now - expired_ns_ > kExpirePeriodNs) {
      expired_ns_ = now;
      program_.RemoveIf("pending", [&](const Record&, const Record& start) {
        const bool old = now - static_cast<int64_t>(start.Number("start_ns")) > kExpireNs;
        if (old) ++expired_[start.Number("device")];
        return old;
      });
    }
    int64_t lost = 0;
    for (const auto& [device, count] : expired_) lost += count;
    sink.Lost("block_io: completions within 5 s", lost, std::nullopt);
  }

  Program program_{"block_io"};
  const Host* host_ = nullptr;
  const Target* target_ = nullptr;
  EndedFigures ended_;
  std::map<uint64_t, std::string> names_;
  std::map<uint64_t, int64_t> expired_;
  int64_t expired_ns_ = 0;
};

HR_PROBE(
    "block IO",
    {.summary = "block requests: count, bytes, latency, size, order on the device, by operator "
                "(block_io_start or block_getrq, block_rq_complete)",
     .affects = "IO sizes and latencies by operator and device",
     .level = 3,
     .period_ns = 1'000'000'000,
     .check = [](const Host& host) { return CheckBpf(host); },
     .make = [] { return std::make_unique<BlockIoProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
