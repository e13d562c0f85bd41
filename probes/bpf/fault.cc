// Page faults by operator. Huge pages have no event: the host probes read the machine's counters.
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "probes/bpf/ended.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes::bpf {
namespace {

class FaultProbe final : public Probe {
 public:
  ~FaultProbe() override { CloseEvents(); }

  Availability Start(const Host& host, const Target& target) override {
    target_ = &target;
    program_.Prefer({"on_fault"}, true);
    Availability loaded = program_.Load(host, target);
    if (!loaded.usable()) return loaded;
    by_hook_ = program_.absent().empty();
    // Without the hook, both kinds are counted by events, at their higher cost.
    std::string failure = OpenEvents(PERF_COUNT_SW_PAGE_FAULTS_MAJ, "on_major");
    if (failure.empty() && !by_hook_) {
      failure = OpenEvents(PERF_COUNT_SW_PAGE_FAULTS_MIN, "on_minor");
    }
    has_events_ = failure.empty();
    if (!has_events_) CloseEvents();
    if (!has_events_ && !by_hook_) {
      program_.Unload();
      return Availability::Unavailable(failure, "CAP_PERFMON");
    }
    if (!has_events_) {
      return Availability::Degraded(failure + ": faults that read a device are not separated",
                                    "CAP_PERFMON");
    }
    return Availability::Ok();
  }

  void Read(Sink& sink) override {
    program_.Follow(*target_);
    // Without those of processes that are gone: their numbers come again.
    const auto told = std::exchange(minor_, {});
    ended_.ForEach(
        program_, "faults", sink, [&](const Record& key, const Record& value, Sink& out) {
          Measurement m = OfOperator(key);
          m.metric = "page_faults_count";
          const uint64_t all = value.Number("all_count"), major = value.Number("major_count");
          const auto add = [&](const char* cause, uint64_t count) {
            m.labels.cause = cause;
            m.value = static_cast<double>(count);
            out.Add(m);
          };
          if (!has_events_) {
            add("any", all);
            return;
          }
          if (!by_hook_) {
            add("minor", value.Number("minor_count"));
          } else {
            // Of all faults some are asked, of major ones each: their difference may fall, what is
            // said of it does not.
            const std::pair<uint64_t, uint64_t> entry(key.Number("tgid"), key.Number("word"));
            const auto before = told.find(entry);
            const uint64_t minor =
                std::max(before == told.end() ? 0 : before->second, all - std::min(all, major));
            minor_[entry] = minor;
            add("minor", minor);
          }
          add("major", major);
        });
    program_.ReportLosses(sink);
  }

  void Stop() override {
    CloseEvents();
    program_.Unload();
  }

 private:
  // "" or why not.
  std::string OpenEvents(uint64_t config, const std::string& function) {
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    int opened = 0;
    for (int cpu = 0; cpu < cpus; cpu++) {
      perf_event_attr attr = {};
      attr.size = sizeof attr;
      attr.type = PERF_TYPE_SOFTWARE;
      attr.config = config;
      attr.sample_period = 1;
      const int fd =
          static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
      if (fd < 0) {
        if (errno == ENODEV) continue;  // a CPU that is off
        return fmt::format("perf_event_open(page faults) on CPU {}: {}", cpu, std::strerror(errno));
      }
      events_.push_back(fd);
      if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_.program_fd(function)) != 0) {
        return fmt::format("ioctl(PERF_EVENT_IOC_SET_BPF): {}", std::strerror(errno));
      }
      ++opened;
    }
    return opened > 0 ? "" : "no CPU is on";
  }

  void CloseEvents() {
    for (const int fd : events_) close(fd);
    events_.clear();
  }

  Program program_{"fault"};
  const Target* target_ = nullptr;
  EndedFigures ended_;
  bool by_hook_ = false, has_events_ = false;
  // Told by the last Read, by process and word.
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> minor_;
  std::vector<int> events_;
};

HR_PROBE("page faults",
         {.summary = "page faults by operator, those that read a device apart (page_fault_user, "
                     "software events)",
          .affects = "memory faults by operator",
          .level = 3,
          .period_ns = 1'000'000'000,
          .check = [](const Host& host) { return CheckBpf(host); },
          .make = [] { return std::make_unique<FaultProbe>(); }});

}  // namespace
}  // namespace headrace::probes::bpf
