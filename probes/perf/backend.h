// PerfBackend: the few calls by which counters are opened and read. Implementations: the kernel's,
// one driven by a script (for tests of multiplexing, wrap-around, short reads, refusals), and one
// that plays back another machine's answers.
//
// Not thread safe; a backend outlives what was opened through it.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::probes::perf {

// What to count: the fields of perf_event_attr that name an event.
struct EventCode {
  uint32_t type = 0;  // PERF_TYPE_*, or a PMU's number from sysfs
  uint64_t config = 0, config1 = 0, config2 = 0;
  auto operator<=>(const EventCode&) const = default;
};

struct OpenRequest {
  EventCode code;
  int64_t tid = 0;            // thread; 0: the calling one; -1: all of `cpu`
  int cpu = -1;               // -1: wherever the thread runs
  int leader = -1;            // handle of the group's leader; -1: it leads a group
  bool pinned = false;        // leaders only: always on the PMU, or in error
  bool inherit = false;       // threads and processes started from now on are counted too
  bool threads_only = false;  // with inherit: threads only (Linux 5.13)
  bool exclude_kernel = true;
  bool uncore = false;  // a PMU that does not distinguish user and kernel
  bool disabled = true;
  uint64_t sample_period = 0;     // an interrupt every so many events, for a BPF program ...
  uint64_t sample_frequency = 0;  // ... or about so many a second
};

class PerfBackend {
 public:
  virtual ~PerfBackend() = default;
  // A handle (>= 0) or -errno. All events are read as a group with ids and times. Handles of the
  // kernel are file descriptors.
  virtual int Open(const OpenRequest& request) = 0;
  // The event's id within its group's readings; 0 if it cannot be told.
  virtual uint64_t Id(int handle) = 0;
  // As read(2) on a leader: bytes read, or -errno. A pinned group that lost its place gives 0.
  // words: number of events, time enabled, time running, then value and id of each.
  virtual int64_t Read(int handle, uint64_t* words, size_t num_words) = 0;
  // The whole group of a leader. Returns 0 or -errno.
  virtual int Enable(int handle) = 0;
  virtual int Disable(int handle) = 0;
  virtual void Close(int handle) = 0;
};

// The kernel's perf_event_open.
class KernelBackend final : public PerfBackend {
 public:
  int Open(const OpenRequest& request) override;
  uint64_t Id(int handle) override;
  int64_t Read(int handle, uint64_t* words, size_t num_words) override;
  int Enable(int handle) override;
  int Disable(int handle) override;
  void Close(int handle) override;
};

// Follows a script. Events are matched by their code, so a script describes which events a machine
// has.
class FakeBackend final : public PerfBackend {
 public:
  // One reading of an event, cumulative as the kernel gives it.
  struct Step {
    uint64_t value = 0, enabled_ns = 0, running_ns = 0;
  };
  struct Script {
    int open_errno = 0;          // as a leader
    int member_errno = 0;        // as a member of a group
    std::vector<Step> steps;     // of successive reads; the last one stays. Times count for leaders
    int64_t short_read_at = -1;  // from that read on, read() of the leader gives 0 bytes
  };
  std::map<EventCode, Script> scripts;
  Script otherwise{2 /* ENOENT */, 2, {}, -1};
  size_t most_members = 64;  // the most events of a group; one more is refused with EINVAL

  int Open(const OpenRequest& request) override;
  uint64_t Id(int handle) override { return static_cast<uint64_t>(handle) + 1000; }
  int64_t Read(int handle, uint64_t* words, size_t num_words) override;
  int Enable(int handle) override;
  int Disable(int handle) override;
  void Close(int handle) override;

  size_t num_open() const { return open_.size(); }
  size_t num_enabled() const;
  const std::vector<OpenRequest>& requests() const { return requests_; }

 private:
  struct Event {
    EventCode code;
    std::vector<int> members;  // of a leader, itself first
    int64_t reads = 0;
    bool enabled = false;
  };
  const Script& ScriptOf(const EventCode& code) const;
  std::map<int, Event> open_;
  int next_ = 3;
  std::vector<OpenRequest> requests_;
};

// Plays back a text of lines; '#' begins a comment. Numbers are decimal or 0x...:
//   event TYPE CONFIG ok|ERRNO             what opening it gives
//   read TYPE CONFIG VALUE ENABLED RUNNING the next reading of that event
// An event that no line names is refused with ENOENT. Lines that cannot be parsed are counted and
// left out.
class RecordedBackend final : public PerfBackend {
 public:
  explicit RecordedBackend(std::string_view text);
  int64_t damaged_lines() const { return damaged_; }

  int Open(const OpenRequest& request) override { return fake_.Open(request); }
  uint64_t Id(int handle) override { return fake_.Id(handle); }
  int64_t Read(int handle, uint64_t* words, size_t num_words) override {
    return fake_.Read(handle, words, num_words);
  }
  int Enable(int handle) override { return fake_.Enable(handle); }
  int Disable(int handle) override { return fake_.Disable(handle); }
  void Close(int handle) override { fake_.Close(handle); }

 private:
  FakeBackend fake_;
  int64_t damaged_ = 0;
};

}  // namespace headrace::probes::perf
