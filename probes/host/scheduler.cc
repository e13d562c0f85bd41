// The scheduler's account of the target's threads, by process and thread name: on a CPU, runnable
// but not running, switches. The fallback of the off-CPU program, which knows the causes too.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "probes/host/host_probe.h"
#include "probes/host/process_age.h"
#include "probes/process.h"
#include "probes/process_identity.h"

namespace headrace::probes {
namespace {

constexpr size_t kMaxThreads = 16384;

// The name of a thread that does not run is read again after so many readings: others may rename
// it.
constexpr int kNameEvery = 16;
// A thread that was not read so many times in a row is gone.
constexpr int kForgottenAfter = 4;

// The files of the threads of one process.
class TaskFiles {
 public:
  TaskFiles(const Host& host, int64_t pid)
      : folder_(fmt::format("/proc/{}/task", pid)),
        fd_(open(host.Path(folder_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        tids_(ListProcesses(host.Path(folder_))) {}
  ~TaskFiles() {
    if (fd_ >= 0) close(fd_);
  }
  TaskFiles(const TaskFiles&) = delete;
  TaskFiles& operator=(const TaskFiles&) = delete;

  const std::vector<int64_t>& tids() const { return tids_; }
  std::string Path(int64_t tid, const char* file) const {
    return fmt::format("{}/{}/{}", folder_, tid, file);
  }
  // Its text, valid until the next call; nothing, with errno, if it cannot be read.
  std::optional<std::string_view> Read(int64_t tid, const char* file) {
    char path[64];
    *fmt::format_to_n(path, sizeof path - 1, "{}/{}", tid, file).out = 0;
    const int fd = openat(fd_, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return std::nullopt;
    const ssize_t n = read(fd, text_, sizeof text_);
    const int error = errno;
    close(fd);
    errno = error;
    if (n < 0) return std::nullopt;
    return std::string_view(text_, static_cast<size_t>(n));
  }
  std::optional<std::string_view> ReadLine(int64_t tid, const char* file) {
    auto text = Read(tid, file);
    std::string_view line;
    if (!text || !NextLine(&*text, &line)) return std::nullopt;
    return line;
  }

 private:
  std::string folder_;
  int fd_;
  std::vector<int64_t> tids_;
  char text_[16384];
};

class Scheduler : public HostProbe {
  void Sample(const Host& host, const Target& target, Reading& out) override {
    const std::string fix = "a kernel built with CONFIG_SCHED_INFO, and /proc mounted";
    if (starting()) age_.Begin(host);
    size_t threads = 0;
    sizes_.clear();
    reading_++;
    for (const int64_t pid : target.pids) {
      TaskFiles files(host, pid);
      // A process that is older than the start, but new to us, has done its past work before it.
      const bool known = pids_.contains(pid);
      const bool from_zero = known || (!starting() && !age_.IsOlder(host, pid));
      for (const int64_t tid : files.tids()) {
        if (++threads > kMaxThreads) continue;
        const Outcome outcome = SampleThread({pid, tid}, from_zero, &files);
        if (outcome == Outcome::kUnreadable && starting()) {
          out.MissingFile(files.Path(tid, "schedstat"), fix);
        }
      }
    }
    pids_ = std::set(target.pids.begin(), target.pids.end());
    // One that could not be read once has not begun anew: its past would be counted again.
    std::erase_if(last_, [&](const auto& thread) {
      return thread.second.reading + kForgottenAfter < reading_;
    });
    Report(out);
    if (threads > kMaxThreads) {
      out.Missing(
          fmt::format("the target has more than {} threads: the rest is not read", kMaxThreads),
          "level 3, which counts in the kernel");
    }
    if (out.empty()) out.Missing("no thread of the target could be read below /proc", fix);
  }

  struct Times {
    int64_t on_cpu_ns = 0, runnable_ns = 0, slices = 0, voluntary = 0, involuntary = 0;
    // Whether the thread has neither run nor been ready to in between.
    bool SameRun(const Times& other) const {
      return on_cpu_ns == other.on_cpu_ns && runnable_ns == other.runnable_ns &&
             slices == other.slices;
    }
    void AddGrowth(const Times& from, const Times& to) {
      const auto add = [](int64_t* sum, int64_t a, int64_t b) {
        *sum += b >= a ? b - a : b;  // smaller: another thread has got the number
      };
      add(&on_cpu_ns, from.on_cpu_ns, to.on_cpu_ns);
      add(&runnable_ns, from.runnable_ns, to.runnable_ns);
      add(&voluntary, from.voluntary, to.voluntary);
      add(&involuntary, from.involuntary, to.involuntary);
    }
  };
  using Thread = std::pair<int64_t, int64_t>;     // pid, tid
  using Group = std::pair<int64_t, std::string>;  // pid, name
  enum class Outcome { kCounted, kUnreadable, kLeftOut };

  struct Seen {
    Times times;
    std::string label;
    int64_t reading = 0, named = 0;  // the readings that saw it last, and that read its name
  };

  // `from_zero`: a thread not seen before has done all its work in the run.
  Outcome SampleThread(const Thread& thread, bool from_zero, TaskFiles* files) {
    const auto schedstat = files->ReadLine(thread.second, "schedstat");
    if (!schedstat) return Outcome::kUnreadable;
    auto times = ParseRun(*schedstat);
    if (!times) return Outcome::kLeftOut;
    const auto before = last_.find(thread);
    const bool known = before != last_.end();
    // What did not run has not switched either: two of three files need not be read.
    const bool idle = known && before->second.times.SameRun(*times);
    if (idle) {
      times->voluntary = before->second.times.voluntary;
      times->involuntary = before->second.times.involuntary;
    } else if (!ReadSwitches(thread.second, files, &*times)) {
      return Outcome::kLeftOut;
    }
    Seen now{*times, "", reading_, reading_};
    if (idle && reading_ - before->second.named < kNameEvery) {
      now.label = std::move(before->second.label);
      now.named = before->second.named;
    } else {
      const auto name = files->ReadLine(thread.second, "comm");
      if (!name) return Outcome::kLeftOut;
      now.label =
          ThreadGroupLabel(Printable(std::string(*name), 64), thread.second == thread.first);
    }
    const Group group{thread.first, now.label};
    totals_[group].AddGrowth(known ? before->second.times : from_zero ? Times{} : *times, *times);
    sizes_[group]++;
    last_.insert_or_assign(thread, std::move(now));
    return Outcome::kCounted;
  }

  // From "on-CPU ns, runnable ns, slices".
  static std::optional<Times> ParseRun(std::string_view line) {
    const auto fields = Fields(line);
    if (fields.size() < 3) return std::nullopt;
    const auto on_cpu = Count(fields[0]), runnable = Count(fields[1]), slices = Count(fields[2]);
    if (!on_cpu || !runnable || !slices) return std::nullopt;
    return Times{*on_cpu, *runnable, *slices, 0, 0};
  }

  // False if the thread has no counts of switches where others have.
  bool ReadSwitches(int64_t tid, TaskFiles* files, Times* times) {
    const auto status = files->Read(tid, "status");
    const auto voluntary = status ? KeyedCount(*status, "voluntary_ctxt_switches") : std::nullopt;
    const auto involuntary =
        status ? KeyedCount(*status, "nonvoluntary_ctxt_switches") : std::nullopt;
    if (!voluntary || !involuntary) return !has_switches_;
    has_switches_ = true;
    times->voluntary = *voluntary;
    times->involuntary = *involuntary;
    return true;
  }

  void Report(Reading& out) const {
    for (const auto& [group, total] : totals_) {
      Labels labels = OfProcess(group.first);
      labels.thread = group.second;
      out.Total("thread_on_cpu_ns", labels, static_cast<double>(total.on_cpu_ns));
      out.Total("thread_runnable_ns", labels, static_cast<double>(total.runnable_ns));
      if (has_switches_) {
        labels.cause = "voluntary";
        out.Total("thread_switches_count", labels, static_cast<double>(total.voluntary));
        labels.cause = "involuntary";
        out.Total("thread_switches_count", labels, static_cast<double>(total.involuntary));
        labels.cause.clear();
      }
      const auto size = sizes_.find(group);
      if (size != sizes_.end()) {
        out.Gauge("threads_count", labels, static_cast<double>(size->second));
      }
    }
  }

  ProcessAge age_;
  bool has_switches_ = false;
  int64_t reading_ = 0;
  std::map<Thread, Seen> last_;
  std::map<Group, Times> totals_;
  std::map<Group, int64_t> sizes_;  // in the present reading
  std::set<int64_t> pids_;          // of the last one
};

HR_PROBE("scheduler", {.summary = "on-CPU, run-queue time and switches of the target's threads",
                       .affects = "time runnable but not running is then counted as blocked",
                       .level = 1,
                       .period_ns = kSecondNs,
                       .check = CheckHostProbe<Scheduler>,
                       .make = MakeProbe<Scheduler>});

}  // namespace
}  // namespace headrace::probes
