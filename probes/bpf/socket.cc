// Bytes through sockets by operator, TCP's troubles, softirq time.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <set>

#include "probes/bpf/ended.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
namespace {

class SocketProbe final : public Probe {
 public:
  Availability Start(const Host& host, const Target& target) override {
    target_ = &target;
    program_.Optional("on_send");
    program_.Optional("on_receive");
    program_.Optional("on_destroy");
    program_.Disable("on_taken_bytes");
    program_.Disable("on_connected");
    Availability loaded = program_.Load(host, target);
    if (!loaded.usable() || program_.absent().empty()) return loaded;
    // Linux before 6.3: received bytes of TCP from where its stream is.
    program_.Unload();
    old_program_ = true;
    old_.Optional("on_send");
    old_.Disable("on_receive");
    old_.Optional("on_destroy");
    old_.Optional("on_connected");
    old_.Disable("on_taken");
    loaded = old_.Load(host, target);
    if (!loaded.usable()) return loaded;
    return Availability::Degraded(
        "this kernel has no tracepoints sock_send_length and sock_recv_length: bytes sent, and "
        "bytes of sockets other than TCP, are not known",
        "Linux 6.3 or later");
  }

  void Read(Sink& sink) override {
    Program& program = Used();
    program.Follow(*target_);
    ended_.ForEach(program, "sockets", sink,
                   [&](const Record& key, const Record& value, Sink& out) {
                     Measurement m = OfOperator(key);
                     m.labels.subject = SubjectOf(m.labels.pid, key);
                     const auto add = [&](std::string_view metric, const char* member) {
                       m.metric = metric;
                       m.value = static_cast<double>(value.Number(member));
                       if (m.value > 0) out.Add(m);
                     };
                     add("socket_received_bytes", "received_bytes");
                     add("socket_sent_bytes", "sent_bytes");
                     add("socket_receives_count", "receives_count");
                     add("socket_sends_count", "sends_count");
                     add("tcp_retransmits_count", "retransmits_count");
                     add("tcp_receive_window_stalls_count", "window_stalls_count");
                     const uint64_t round_trip_us = value.Number("round_trip_us");
                     if (round_trip_us == 0) return;
                     m.metric = "tcp_round_trip_ns";
                     m.course = false;
                     m.value = static_cast<double>(round_trip_us) * 1e3;
                     round_trips_[m.labels.subject] = m;
                   });
    for (auto& [subject, m] : round_trips_) {
      m.labels.operator_index.reset();  // a property of the socket, not of who used it last
      sink.Add(m);
    }
    round_trips_.clear();
    program.ForEach("softirqs", [&](const Record& key, const Record& value) {
      Measurement m;
      m.labels.cause = key.Word("kind");
      m.metric = "softirq_ns";
      m.value = static_cast<double>(value.Number("run_ns"));
      sink.Add(m);
      m.metric = "softirq_count";
      m.value = static_cast<double>(value.Number("runs_count"));
      sink.Add(m);
    });
    program.ReportLosses(sink);
  }

  void Stop() override { Used().Unload(); }

 private:
  Program& Used() { return old_program_ ? old_ : program_; }

  // A process's first sockets are told apart, those after them are one: a connection per request
  // would fill the store with rows nobody reads.
  std::string SubjectOf(int64_t pid, const Record& key) {
    std::string name = NameOf(key);
    std::set<std::string>& names = names_[pid];
    if (names.size() < kMostNames) names.insert(name);
    return names.count(name) != 0 ? name : "other sockets";
  }

  // "10.0.0.1:443>10.0.0.2:5000", from this end to the other.
  static std::string NameOf(const Record& key) {
    const uint64_t family = key.Number("family");
    if (family == AF_UNIX) return "unix";
    if (family != AF_INET && family != AF_INET6) return fmt::format("family {}", family);
    const auto end = [&](const char* low, const char* high, const char* port) {
      const std::array<uint64_t, 2> address = {key.Number(low), key.Number(high)};
      char text[INET6_ADDRSTRLEN] = "";
      inet_ntop(static_cast<int>(family), address.data(), text, sizeof text);
      return fmt::format(fmt::runtime(family == AF_INET6 ? "[{}]:{}" : "{}:{}"), text,
                         key.Number(port));
    };
    return end("local_low", "local_high", "local_port") + ">" +
           end("remote_low", "remote_high", "remote_port");
  }

  static constexpr size_t kMostNames = 128;
  Program program_{"socket"}, old_{"socket"};
  bool old_program_ = false;
  const Target* target_ = nullptr;
  EndedFigures ended_;
  std::map<int64_t, std::set<std::string>> names_;
  std::map<std::string, Measurement> round_trips_;
};

HR_PROBE("sockets",
         {.summary = "bytes by socket and operator (sock_send_length, sock_recv_length), TCP "
                     "retransmissions, closed receive windows, round trips; softirq time by kind",
          .affects = "network bytes by operator and peer; who closes a TCP window",
          .level = 3,
          .period_ns = 1'000'000'000,
          .check =
              [](const Host& host) {
                const Target nobody;
                return SocketProbe().Start(host, nobody);
              },
          .make = [] { return std::make_unique<SocketProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
