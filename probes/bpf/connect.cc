// TCP connections that operators open.
#include "probes/bpf/ended.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
namespace {

class ConnectProbe final : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) override {
    target_ = &target;
    return program_.Load(host, target);
  }

  void Read(Sink& sink) override {
    program_.Follow(*target_);
    ended_.ForEach(program_, "connects", sink,
                   [](const Record& key, const Record& value, Sink& out) {
                     Measurement m = OfOperator(key);
                     m.labels.cause = key.Word("outcome");
                     m.metric = "tcp_connects_count";
                     m.value = static_cast<double>(value.Number("connects_count"));
                     out.Add(m);
                     m.metric = "tcp_connect_ns";
                     m.value = static_cast<double>(value.Number("connect_ns"));
                     out.Add(m);
                   });
    program_.ReportLosses(sink);
  }

  void Stop() override { program_.Unload(); }

 private:
  Program program_{"connect"};
  const Target* target_ = nullptr;
  EndedFigures ended_;
};

HR_PROBE("connections",
         {.summary = "TCP connections that operators open, and how long until the other side "
                     "answered (inet_sock_set_state)",
          .affects = "whether a reader opens a connection for every request",
          .level = 3,
          .period_ns = 1'000'000'000,
          .check = [](const Host& host) { return CheckBpf(host); },
          .make = [] { return std::make_unique<ConnectProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
