#include "collectors/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/environment.h"
#include "collectors/sampler.h"
#include "probes/process.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kPollNs = 20'000'000;  // how soon an appearing segment or a stop is noticed
constexpr int64_t kRollupNs = 60'000'000'000;

std::string UserName(uint32_t uid) {
  const passwd* user = getpwuid(uid);
  return user ? user->pw_name : fmt::format("user {}", uid);
}

void CheckTarget(int64_t pid) {
  if (!probes::IsAlive(pid)) {
    std::string candidates;
    for (const int64_t other : account::AccountSegment::FindAll()) {
      if (!probes::IsAlive(other)) continue;
      const auto stat = probes::ReadProcessStat(other);
      candidates += fmt::format("{}{} {}", candidates.empty() ? "" : ", ", other,
                                stat ? Printable(stat->name) : "?");
    }
    throw Error(ExitCode::kBadData, fmt::format("no process {}", pid), "",
                candidates.empty() ? "no process with operator accounts runs here"
                                   : "running with operator accounts: " + candidates);
  }
  const auto owner = probes::ReadOwner(pid);
  if (owner && geteuid() != 0 && *owner != geteuid()) {
    throw Error(ExitCode::kPrivilege,
                fmt::format("not allowed to read process {} (owner: {}, you: {})", pid,
                            UserName(*owner), UserName(geteuid())),
                "", "needs the same user or root; in a container: --cap-add SYS_PTRACE");
  }
}

// Room on the database's disk that can be given back when it is full, so that the end of the run
// can still be written. The file has no name: it goes with the process.
class Reserve {
 public:
  explicit Reserve(const std::string& database) {
    const std::filesystem::path folder = std::filesystem::absolute(database).parent_path();
    fd_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd_ >= 0 && posix_fallocate(fd_, 0, 512 << 10) != 0) Release();
  }
  ~Reserve() { Release(); }
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;
  void Release() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

struct OwnCost {
  int64_t cpu_begin_ns = ProcessCpuNs();

  void AddTo(const std::string& database, IntervalSample* sample) const {
    sample->hosts.push_back({"collector_cpu_ns", "ns", MetricKind::kCounter, "counter",
                             static_cast<double>(ProcessCpuNs() - cpu_begin_ns)});
    if (const auto self = probes::ReadProcessStat(getpid())) {
      sample->hosts.push_back({"collector_rss_bytes", "bytes", MetricKind::kGauge, "counter",
                               static_cast<double>(self->rss_bytes)});
    }
    double bytes = 0;
    for (const char* end : {"", "-wal"}) {
      struct stat info;
      if (stat((database + end).c_str(), &info) == 0) bytes += static_cast<double>(info.st_size);
    }
    sample->hosts.push_back({"store_bytes", "bytes", MetricKind::kGauge, "counter", bytes});
  }
};

class RecorderLoop {
 public:
  explicit RecorderLoop(const RecorderOptions& options)
      : options_(options),
        target_(probes::ReadProcessStat(options.pid)),
        store_(options.database),
        reserve_(options.database),
        start_ns_(MonotonicNs()),
        sampler_(options.pid, start_ns_) {
    result_.run_id =
        store_.BeginRun(DescribeRun(options.pid, options.run_name, options.pipeline_path));
  }

  Recording Run() {
    try {
      Loop();
    } catch (const Error& error) {
      Abandon(error);
      if (error.code() != ExitCode::kResources) throw;
    }
    return result_;
  }

 private:
  bool Alive() const { return target_ && probes::IsAlive(options_.pid, target_->start_ticks); }

  void Loop() {
    Attach();
    sampler_.TryAttach(true);
    pending_.push_back(sampler_.Take(true));  // first values of counters; a very short interval
    Commit();
    if (options_.ready) options_.ready(result_.run_id, result_.has_accounts);
    int64_t next_tick = MonotonicNs() + options_.tick_ns;
    int64_t next_commit = start_ns_ + options_.commit_ns;
    int64_t next_rollup = start_ns_ + kRollupNs;
    for (bool going = true; going;) {
      const bool alive = WaitUntil(next_tick);
      Attach();
      const int64_t now = MonotonicNs();
      const bool over = options_.duration_ns > 0 && now - start_ns_ >= options_.duration_ns;
      going = alive && !over && !(options_.stop && options_.stop());
      IntervalSample sample = sampler_.Take(alive);
      cost_.AddTo(options_.database, &sample);
      result_.duration_ns = sample.start_ns + sample.duration_ns;
      pending_.push_back(std::move(sample));
      if (!alive) result_.target_ended = true;
      if (now >= next_commit || !going) {
        Commit();
        next_commit = now + options_.commit_ns - options_.tick_ns / 2;
      }
      if (now >= next_rollup) {
        store_.Rollup(result_.run_id, now - start_ns_);
        next_rollup = now + kRollupNs;
      }
      // After a long sleep of the machine the tick starts afresh instead of catching up.
      next_tick = std::max(next_tick + options_.tick_ns, MonotonicNs() + options_.tick_ns / 4);
    }
    const bool died = result_.target_ended && result_.has_accounts && !sampler_.closed();
    result_.state = died ? RunState::kInterrupted : RunState::kComplete;
    store_.FinishRun(result_.run_id, result_.state);
    if (died) unlink(sampler_.segment()->path().c_str());  // nobody else will
  }

  // Sleeps to the tick in short naps; returns whether the target lives. Ends early when it is to
  // stop, when the target ends, and at the end of the asked duration.
  bool WaitUntil(int64_t tick_ns) {
    if (options_.duration_ns > 0) tick_ns = std::min(tick_ns, start_ns_ + options_.duration_ns);
    while (true) {
      const bool alive = Alive();
      const int64_t now = MonotonicNs();
      if (!alive || now >= tick_ns || (options_.stop && options_.stop()) || sampler_.closed()) {
        if (alive && sampler_.closed() && now < tick_ns) {
          SleepUntilNs(std::min(tick_ns, now + kPollNs));
          continue;
        }
        return alive;
      }
      if (!sampler_.segment()) Attach();
      SleepUntilNs(std::min(tick_ns, now + kPollNs));
    }
  }

  void Attach() {
    const bool had = sampler_.segment() != nullptr;
    const bool has = sampler_.TryAttach(true);
    if (had == has && described_) return;
    described_ = true;
    result_.has_accounts = has;
    if (!has) {
      const auto stat = probes::ReadProcessStat(options_.pid);
      store_.SetAccounting(result_.run_id, stat ? Printable(stat->name) : "", 0,
                           "seen from outside: the process keeps no operator accounts");
      store_.SetProbe(result_.run_id, "operator accounts", "unavailable", "the process keeps none",
                      "write them with headrace/account.h");
      return;
    }
    const account::AccountSegment& segment = *sampler_.segment();
    const bool level2 = segment.level() >= 2;
    store_.SetAccounting(result_.run_id, segment.program(), segment.level(),
                         level2 ? "c by the thread CPU clock, q by the scheduler, b the rest"
                                : "c, b and q in one figure");
    store_.SetProbe(result_.run_id, "operator accounts", "active", "", "");
    store_.SetProbe(result_.run_id, "account clock", segment.uses_tsc() ? "active" : "degraded",
                    segment.uses_tsc() ? "" : "no invariant time-stamp counter: clock_gettime", "");
    store_.SetProbe(result_.run_id, "thread CPU clock", level2 ? "active" : "unavailable",
                    level2 ? "" : "HEADRACE_ACCOUNT_LEVEL=1",
                    level2 ? "" : "leave HEADRACE_ACCOUNT_LEVEL unset");
  }

  void Commit() {
    store_.Append(result_.run_id, pending_);
    pending_.clear();
    const bool readable = probes::ReadTaskTime(getpid(), getpid()).has_value();
    store_.SetProbe(result_.run_id, "scheduler times", readable ? "active" : "unavailable",
                    readable ? "" : "/proc/PID/task/TID/schedstat cannot be read",
                    readable ? "" : "a kernel with CONFIG_SCHED_INFO");
    const Sampler::Losses& losses = sampler_.losses();
    store_.SetLoss(result_.run_id, "step details", losses.step_details, losses.steps);
    for (const auto& [what, count] : losses.over_limit) {
      if (count > 0) store_.SetLoss(result_.run_id, what + " over the limit", count, std::nullopt);
    }
  }

  void Abandon(const Error& error) {
    reserve_.Release();
    const bool full = error.code() == ExitCode::kResources;
    result_.state = full ? RunState::kTruncated : RunState::kInterrupted;
    try {
      store_.FinishRun(result_.run_id, result_.state);
    } catch (const Error&) {
      // The next one to open the store marks the run as interrupted.
    }
  }

  const RecorderOptions& options_;
  std::optional<probes::ProcessStat> target_;
  RunStore store_;
  Reserve reserve_;
  int64_t start_ns_;
  Sampler sampler_;
  OwnCost cost_;
  Recording result_;
  std::vector<IntervalSample> pending_;
  bool described_ = false;
};

}  // namespace

Recording Record(const RecorderOptions& options) {
  CheckTarget(options.pid);
  return RecorderLoop(options).Run();
}

}  // namespace headrace::collectors
