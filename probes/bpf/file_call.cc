// Read and write calls by operator, for --deep.
#include <algorithm>

#include "probes/bpf/ended.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
namespace {

class FileCallProbe final : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) override {
    target_ = &target;
    program_.Prefer({"on_io_start", "on_getrq"}, true);
    return program_.Load(host, target);
  }

  void Read(Sink& sink) override {
    program_.Follow(*target_);
    ended_.ForEach(program_, "totals", sink,
                   [&](const Record& key, const Record& value, Sink& out) {
                     Measurement m = OfOperator(key);
                     m.labels.subject = key.Word("call");
                     const bool writes = m.labels.subject.find("write") != std::string::npos;
                     const std::string kind = key.Word("kind");
                     const bool file = kind == "file";
                     m.labels.cause = file ? Service(key) : kind;
                     const auto add = [&](std::string_view metric, const char* member) {
                       m.metric = metric;
                       m.value = static_cast<double>(value.Number(member));
                       out.Add(m);
                     };
                     if (file && !writes) {
                       add("file_reads_count", "calls_count");
                       add("file_read_bytes", "bytes");
                       add("file_read_ns", "call_ns");
                     } else if (file) {
                       add("file_writes_count", "calls_count");
                       add("file_write_bytes", "bytes");
                       add("file_write_ns", "call_ns");
                     } else if (!writes) {
                       add("stream_reads_count", "calls_count");
                       add("stream_read_bytes", "bytes");
                       add("stream_read_ns", "call_ns");
                     } else {
                       add("stream_writes_count", "calls_count");
                       add("stream_write_bytes", "bytes");
                       add("stream_write_ns", "call_ns");
                     }
                     if (value.Number("failed_count") > 0)
                       add("failed_calls_count", "failed_count");
                   });
    ended_.ForEach(
        program_, "latencies", sink, [&](const Record& key, const Record& value, Sink& out) {
          Measurement m = OfOperator(key);
          m.course = false;
          m.metric = key.Number("writes") ? "file_write_latency_count" : "file_read_latency_count";
          m.labels.cause = Service(key);
          m.labels.bucket = int64_t{1} << std::min<uint64_t>(key.Number("bucket"), 62);
          m.value = static_cast<double>(value.Number("calls_count"));
          out.Add(m);
        });
    ended_.ForEach(program_, "pairs", sink, [&](const Record& key, const Record& value, Sink& out) {
      Measurement m = OfOperator(key);
      m.course = false;
      m.metric = "file_read_size_latency_count";
      m.labels.cause = Service(key);
      m.labels.bucket = SizeLatencyBucket(key);
      m.value = static_cast<double>(value.Number("calls_count"));
      out.Add(m);
    });
    program_.ReportLosses(sink);
  }

  void Stop() override { program_.Unload(); }

 private:
  static const char* Service(const Record& key) {
    return key.Number("device") ? "device" : "cache";
  }

  Program program_{"file_call"};
  const Target* target_ = nullptr;
  EndedFigures ended_;
};

HR_PROBE(
    "system calls",
    {.summary =
         "calls of the read and write families by operator: bytes, time, from memory or from a "
         "device (sys_enter, sys_exit); costs such a call some 0.5 us and every other system "
         "call of the machine some 0.1 us",
     .affects = "exact bytes and latency of reads by operator, cached ones included",
     .level = 3,
     .deep_only = true,
     .period_ns = 1'000'000'000,
     .check = [](const Host& host) { return CheckBpf(host); },
     .make = [] { return std::make_unique<FileCallProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
