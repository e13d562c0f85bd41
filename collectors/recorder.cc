#include "collectors/recorder.h"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/units.h"
#include "collectors/account_tree.h"
#include "collectors/accounting_row.h"
#include "collectors/cost_guard.h"
#include "collectors/environment.h"
#include "collectors/flight_recorder.h"
#include "collectors/left_behind.h"
#include "collectors/measurement_sink.h"
#include "collectors/peer_cpu.h"
#include "collectors/probe_runner.h"
#include "collectors/process_tree.h"
#include "collectors/recorder_cost.h"
#include "collectors/recorder_target.h"
#include "collectors/store/exit_text.h"
#include "probes/host/fork_events.h"
#include "probes/process.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kPollNs = 20'000'000;  // how soon an appearing segment is noticed
constexpr int64_t kRollupNs = 60'000'000'000;
constexpr int64_t kFineNs = 5'000'000'000;   // histograms and stacks into the store
constexpr int64_t kScanNs = 1'000'000'000;   // for new processes, once the run is a while old
constexpr int64_t kYoungNs = 3'000'000'000;  // until then at every tick
constexpr int64_t kLookNs = 10'000'000'000;  // for children that the kernel should have told of
constexpr int64_t kMostDetailNs = 600'000'000'000;  // kept by the flight recorder, all ranges
constexpr int64_t kMostRingNs = 600'000'000'000;

RunInfo Describe(const RecorderOptions& options) {
  RunInfo info = DescribeRun(options.pid, options.run_name, options.pipeline_path, options.program);
  if (!options.command.empty()) info.command = options.command;
  info.level_asked = options.level;
  info.deep = options.deep;
  if (options.trigger) {
    info.ring_ns = options.ring_ns;
    info.trigger_text = options.trigger->text();
  }
  return info;
}

class RecorderLoop {
 public:
  explicit RecorderLoop(const RecorderOptions& options)
      : options_(options),
        store_(options.database),
        reserve_(options.database),
        pidfd_(static_cast<int>(syscall(SYS_pidfd_open, options.pid, 0))),
        sink_({[this](int64_t pid) { return tree_.ProcessId(pid); },
               [this](int64_t pid, uint32_t op) { return accounts_.OperatorId(pid, op); }}),
        runner_(host_, target_, &sink_),
        start_ns_(StartProbes()),
        tree_(options.pid, start_ns_),
        accounts_(start_ns_, level() >= 2),
        accounting_(options.program) {
    if (!options.command.empty()) tree_.SetRootCommand(options.program, options.command);
    if (options.trigger) flight_.emplace(options.ring_ns);
    result_.run_id = store_.BeginRun(Describe(options));
    result_.database = options.database;
  }
  ~RecorderLoop() {
    if (pidfd_ >= 0) close(pidfd_);
  }

  Recording Run() {
    try {
      Loop();
    } catch (const Error& error) {
      Abandon(error);
      SaveIfDisplaced();  // which may be what it failed by
      if (error.code() != ExitCode::kResources && result_.displaced.empty()) throw;
      return result_;
    }
    SaveIfDisplaced();
    return result_;
  }

 private:
  int level() const { return options_.level.value_or(kMostLevel); }

  // Probes first: what the accounts count in the run, the kernel's figures must cover. Returns the
  // instant at which the run begins.
  int64_t StartProbes() {
    target_.root_pid = options_.pid;
    target_.deep = options_.deep;
    target_.runs_pipeline = !options_.pipeline_path.empty();
    target_.root_held = options_.held;
    forks_status_ = forks_.Start(host_);
    target_.pids = ProcessTree(options_.pid, MonotonicNs()).live();
    runner_.Start(level(), options_.deep, options_.without, 0);
    // Starting takes a while, in which everything goes on counting: that is not of the run.
    peers_.emplace(options_.pid);
    runner_.ReadAtStart();
    sink_.MarkStart();
    parts_.End("start");
    cost_ = {};  // what comes from here on happens while the target runs
    return MonotonicNs();
  }

  void Loop() {
    Scan(start_ns_);
    Attach();
    Sample(false);  // first values of accounts and processes; a very short interval
    Commit(false);
    if (options_.ready) options_.ready(result_.run_id, accounts_.ever_attached());
    target_.root_held = false;
    int64_t next_tick = MonotonicNs() + options_.tick_ns;
    int64_t next_commit = start_ns_ + CommitNs();
    int64_t next_rollup = start_ns_ + kRollupNs;
    for (bool going = true; going;) {
      const bool alive = WaitUntil(next_tick);
      const int64_t now = MonotonicNs();
      const int64_t tick_ns = TickNs();
      if (now > next_tick + tick_ns) late_ticks_++;
      const bool over = options_.duration_ns > 0 && now - start_ns_ >= options_.duration_ns;
      going = alive && !over && !(options_.stop && options_.stop());
      if (!going || now >= next_scan_ns_) Scan(now);
      Attach();
      Sample(!going);
      if (!alive) result_.target_ended = true;
      SaveIfDisplaced();
      if (result_.database.empty()) break;
      if (now >= next_commit || !going) {
        Commit(!going);
        next_commit = now + CommitNs() - options_.tick_ns / 2;
      }
      if (now >= next_rollup) {
        store_.Rollup(result_.run_id, now - start_ns_);
        next_rollup = now + kRollupNs;
      }
      // After a long sleep of the machine the tick starts afresh instead of catching up.
      next_tick = std::max(next_tick + tick_ns, MonotonicNs() + tick_ns / 4);
    }
    runner_.Stop();
    const bool died = Died();
    if (!result_.database.empty()) {
      result_.state = died ? RunState::kInterrupted : RunState::kComplete;
      store_.FinishRun(result_.run_id, result_.state);
    }
    for (const auto& [pid, file] : accounts_.left_behind()) Remove(file);  // nobody else will
  }

  // Whether the target ended in disorder: it left its accounts behind, attached to or not, or a
  // signal killed it that nobody sends to ask for an end. Programs that end by _exit, as some do to
  // leave threads alone, close nothing, and their exit status says that all went well.
  bool Died() {
    if (!result_.target_ended) return false;
    const TreeProcess* root = tree_.Find(options_.pid);
    const bool in_order = root && root->row.exit_text == "exited 0";
    if (accounts_.left_behind().count(options_.pid)) return !in_order;
    std::optional<int64_t> began_ns;
    if (root && root->start_ticks != 0) began_ns = root->row.started_ns;
    if (level() > 0) {
      if (const auto overlooked = accounts_.Overlooked(options_.pid, began_ns)) {
        Remove(*overlooked);
        return !in_order;
      }
    }
    return root && !accounts_.closed(options_.pid) && IsCrash(root->row.exit_text);
  }

  // Goes on in a database of the run's own where the one asked for was taken away. What was stored
  // is still in the open file, which is gone when it is closed.
  void SaveIfDisplaced() {
    if (result_.database.empty() || !store_.IsDisplaced()) return;
    const bool gone = access(result_.database.c_str(), F_OK) != 0;
    const std::string what =
        fmt::format("{} while it was recorded into", gone ? "deleted or renamed" : "replaced");
    std::string saved;
    try {
      store_.MoveBeside(result_.run_id, &saved);
      result_.database = saved;
      result_.displaced = fmt::format("{}: run {} is saved in {}", what, result_.run_id, saved);
    } catch (const Error& error) {
      result_.database.clear();
      result_.state = RunState::kInterrupted;
      result_.displaced =
          saved.empty() ? fmt::format("{}: run {} is lost, as it could not be saved beside it ({})",
                                      what, result_.run_id, error.fact())
                        : fmt::format(
                              "{}: run {} is saved up to then in {}, which cannot be "
                              "written on ({})",
                              what, result_.run_id, saved, error.fact());
    }
  }

  int64_t CommitNs() const {
    return last_ns_ < kYoungRunNs ? options_.commit_ns / 2 : options_.commit_ns;
  }

  // Reading the accounts of many threads takes a while; the ticks are then further apart, so that
  // it costs about a third of a percent of a core.
  int64_t TickNs() const {
    return std::clamp(tick_cost_ns_ * 300, options_.tick_ns,
                      std::max(options_.tick_ns, options_.commit_ns));
  }

  // Whether the target lives: its descriptor becomes readable when it ends. Waits until `until_ns`.
  bool Alive(int64_t until_ns) {
    if (pidfd_ < 0) {  // an old kernel
      SleepUntilNs(until_ns);
      const TreeProcess* root = tree_.Find(options_.pid);
      return root && probes::IsAlive(options_.pid, root->start_ticks);
    }
    pollfd descriptor{pidfd_, POLLIN, 0};
    const int64_t left = std::max<int64_t>(0, until_ns - MonotonicNs());
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    return ppoll(&descriptor, 1, &timeout, nullptr) <= 0;
  }

  // Sleeps to the tick in short naps; returns whether the target lives. Ends early when it is to
  // stop, when the target ends, and at the end of the asked duration.
  bool WaitUntil(int64_t tick_ns) {
    if (options_.duration_ns > 0) tick_ns = std::min(tick_ns, start_ns_ + options_.duration_ns);
    while (true) {
      if (!Alive(0)) return false;
      const int64_t now = MonotonicNs();
      if (now >= tick_ns || (options_.stop && options_.stop())) return true;
      // A signal ends the sleep; only an appearing segment must be looked for: most programs make
      // theirs when they begin.
      int64_t until_ns = std::min(tick_ns, now + options_.tick_ns);
      if (level() > 0 && now - start_ns_ < kYoungNs && !accounts_.Has(options_.pid) &&
          !accounts_.closed(options_.pid)) {
        AttachTo(options_.pid);
        until_ns = std::min(until_ns, now + kPollNs);
      }
      Alive(until_ns);
    }
  }

  void Scan(int64_t now) {
    for (const probes::ForkEvent& event : forks_.Take()) tree_.Saw(event);
    const bool told = forks_status_.usable() && forks_.lost() == forks_lost_ && now < next_look_ns_;
    tree_.Update(now, told);
    if (!told) next_look_ns_ = now + kLookNs;
    forks_lost_ = forks_.lost();
    next_scan_ns_ =
        now + (now - start_ns_ < kYoungNs ? options_.tick_ns : kScanNs) - options_.tick_ns / 2;
    target_.pids = tree_.live();
    parts_.End("processes");
  }

  void AttachTo(int64_t pid) {
    TreeProcess* process = tree_.Find(pid);
    if (!process) return;
    if (images_[pid] != process->images) {
      images_[pid] = process->images;
      accounts_.ImageChanged(pid);
    }
    try {
      accounts_.TryAttach(pid, process->alive, process->row.started_ns);
    } catch (const Error& error) {
      // Anybody may leave such a file under the process's number: it must not prevent a recording.
      refused_ = error.what();
    }
    if (accounts_.Has(pid) && !process->row.has_accounts) {
      process->row.has_accounts = true;
      tree_.Touch(pid);
    }
  }

  void Attach() {
    if (level() == 0) return;
    for (const int64_t pid : tree_.live()) AttachTo(pid);
    accounts_.KeepSearches(tree_.live());
    target_.accounts = accounts_.Accounted();
  }

  void Sample(bool last) {
    int64_t cost = parts_.End("accounts");  // looking for them
    const int64_t now = MonotonicNs();
    target_.ending = last;
    runner_.Read(now - start_ns_, last);
    parts_.End("probes");
    IntervalSample sample = accounts_.Take(
        [this](int64_t pid) {
          if (pid == options_.pid && pidfd_ >= 0) return Alive(0);
          const TreeProcess* process = tree_.Find(pid);
          return process && probes::IsAlive(pid, process->start_ticks);
        },
        target_.accounts.empty() ? nullptr : runner_.ReadSplits());
    cost += parts_.End("accounts");
    tick_cost_ns_ = tick_cost_ns_ == 0 ? cost : (7 * tick_cost_ns_ + cost) / 8;
    result_.has_accounts = accounts_.ever_attached();
    result_.steps += sample.steps.steps;
    accounts_cost_.Add(sample);
    const int64_t end = MonotonicNs();
    sample.start_ns = last_ns_;
    sample.duration_ns = end - start_ns_ - last_ns_;
    last_ns_ = end - start_ns_;
    result_.duration_ns = last_ns_;
    if (last) {
      ReadPeers();
      runner_.ReadRest(last_ns_);
      parts_.End("probes");
    }
    if (flight_) {
      flight_->Add(sample, options_.trigger->Pulled(accounts_.moment(), sample.duration_ns));
    }
    // Ticks shorter than a stored interval are put together, except for the first.
    if (!pending_.empty() && pending_.back().start_ns > 0 &&
        pending_.back().duration_ns + sample.duration_ns / 2 < options_.store_ns) {
      Extend(&pending_.back(), sample);
    } else {
      pending_.push_back(std::move(sample));
    }
  }

  // What /proc says of the run's processes together, of the machine, and of this program.
  void ReadHost() {
    sink_.BeginRead("recorder", last_ns_);
    const auto add = [this](const char* metric, std::optional<int64_t> value) {
      if (value) sink_.Add(Figure(metric, static_cast<double>(*value)));
    };
    tree_.ReadUsage();
    // What a parent has not waited for yet may be missing for a while after its child has ended.
    tree_cpu_ns_ = std::max(tree_cpu_ns_, tree_.cpu_ns());
    add("process_cpu_ns", tree_cpu_ns_);
    if (tree_.root_alive()) {
      add("process_rss_bytes", tree_.rss_bytes());
      add("process_threads_count", tree_.threads());
    }
    add("process_read_bytes", tree_.read_bytes());
    add("process_read_call_bytes", tree_.read_call_bytes());
    ReadHostCores();
    add("collector_ticks_late_count", late_ticks_);
    ReadRanksAndWorkers();
    cost_.Read(result_.database, &sink_);
    sink_.EndRead();
    if (last_ns_ >= peers_next_ns_) ReadPeers();
    WatchCost();
    parts_.End("processes");
  }

  // What is known of single processes of the job.
  void ReadRanksAndWorkers() {
    const auto add = [&](int64_t pid, const char* metric, int64_t value) {
      probes::Measurement figure = Figure(metric, static_cast<double>(value));
      figure.labels.pid = pid;
      figure.course = false;
      sink_.Add(figure);
    };
    for (const auto& [pid, rank] : accounts_.ranks()) {
      add(pid, "rank_steps_count", rank.steps);
      add(pid, "rank_wait_ns", rank.wait_ns);
      add(pid, "rank_compute_ns", rank.compute_ns);
    }
    for (const auto& [pid, worker] : accounts_.workers()) {
      add(pid, "worker_batches_count", worker.batches());
      add(pid, "worker_work_ns", worker.work_ns);
      add(pid, "worker_wait_ns", worker.wait_ns);
    }
  }

  // Measures less where recording takes too much of the program; not where the level was asked for,
  // nor at the end, which takes more and saves nothing.
  void WatchCost() {
    if (options_.level || target_.ending) return;
    std::map<std::string, double> helpers_ns;
    for (const auto& [probe, ns] : probes::LastingHelperCpuNs()) {
      helpers_ns[probe] = static_cast<double>(ns);
    }
    const auto cost =
        cost_guard_.Add({last_ns_, static_cast<double>(cost_.LastingCpuNs()),
                         sink_.TotalByProbe("bpf_run_time_ns"), static_cast<double>(tree_cpu_ns_),
                         host_busy_ns_, std::move(helpers_ns), accounts_cost_.CpuNs()});
    if (!cost) return;
    constexpr double kWorthTelling = 0.1;
    const std::string accounts =
        cost->accounts_share < kWorthTelling * cost->share
            ? ""
            : fmt::format(" ({:.1f} % by instrumentation in it, which stays)",
                          100 * cost->accounts_share);
    const std::string why = fmt::format(
        "after {:.0f} s recording took {:.1f} % of the program's speed{}, more than {:.0f} %; "
        "--level {} keeps it",
        static_cast<double>(last_ns_) / 1e9, 100 * cost->share, accounts, 100 * kMostCost,
        runner_.level_reached());
    target_.ending = true;  // for those that are given up
    const bool is_given_up =
        std::any_of(cost->probes.begin(), cost->probes.end(),
                    [&](const std::string& probe) { return runner_.GiveUp(probe, last_ns_, why); });
    if (!is_given_up) runner_.StepDown(last_ns_, why);
    target_.ending = false;
  }

  void ReadHostCores() {
    const auto cpu = probes::ReadHostCpu();
    if (!cpu) return;
    constexpr int64_t kTickNs = 10'000'000;  // the kernel counts in these
    const int64_t now = MonotonicNs(), over_ns = now - host_read_ns_;
    if (host_busy_ns_ && over_ns >= kTickNs) {
      const double busy_ns = static_cast<double>(cpu->busy_ns - *host_busy_ns_);
      probes::Measurement busy =
          Figure("host_busy_cores", std::max(0.0, busy_ns / static_cast<double>(over_ns)));
      busy.mean_of_ns = over_ns;
      sink_.Add(busy);
    }
    host_busy_ns_ = cpu->busy_ns;
    host_read_ns_ = now;
    sink_.Add(Figure("host_cores", static_cast<double>(cpu->num_cpus)));
  }

  // Of every process: seldom, and the more seldom the more there are.
  void ReadPeers() {
    const int64_t begin_ns = ThreadCpuNs();
    Scan(MonotonicNs());  // its newest children are no peers
    const int64_t used_ns = peers_->ReadNs([this](int64_t pid, int64_t start_ticks) {
      const TreeProcess* process = tree_.Find(pid);
      return process != nullptr && process->start_ticks == start_ticks;
    });
    constexpr int64_t kSeldomNs = 5'000'000'000, kShare = 1000;
    peers_next_ns_ = last_ns_ + std::max(kSeldomNs, kShare * (ThreadCpuNs() - begin_ns));
    if (!peers_->known()) return;
    sink_.BeginRead("recorder", last_ns_);
    sink_.Add(Figure("host_peer_cpu_ns", static_cast<double>(used_ns)));
    sink_.EndRead();
  }

  void Commit(bool last) {
    const int64_t now = last_ns_;
    const bool fine = last || now >= next_fine_ns_;
    if (fine) next_fine_ns_ = now + kFineNs;
    ReadHost();
    if (fine) parts_.Read(now, &sink_);
    MeasurementBatch batch = sink_.Take(now, fine, last);
    batch.processes = tree_.TakeChanged();
    // The interval under way waits for the rest of it.
    std::vector<IntervalSample> rest;
    if (!last && pending_.size() > 1 && !flight_ &&
        pending_.back().duration_ns + options_.tick_ns / 2 < options_.store_ns) {
      rest.push_back(std::move(pending_.back()));
      pending_.pop_back();
    }
    store_.Append(result_.run_id, pending_, batch,
                  flight_ ? AppendPart::kTotals : AppendPart::kAll);
    pending_ = std::move(rest);
    if (flight_) StoreFlight(last);
    accounting_.Write(&store_,
                      {result_.run_id, options_.pid, level(), accounts_, tree_, runner_, refused_});
    for (const ProbeStatus& s : runner_.TakeChanged()) {
      store_.SetProbe(result_.run_id, s.probe, s.state, s.reason, s.fix, s.affects);
    }
    const int scheduler = probes::ReadTaskTime(getpid(), getpid()).has_value();
    if (scheduler != scheduler_times_) {
      scheduler_times_ = scheduler;
      store_.SetProbe(result_.run_id, "scheduler times", scheduler ? "active" : "unavailable",
                      scheduler ? "" : "/proc/PID/task/TID/schedstat cannot be read",
                      scheduler ? "" : "a kernel with CONFIG_SCHED_INFO");
    }
    if (!forks_told_) {
      forks_told_ = true;
      store_.SetProbe(result_.run_id, "fork events",
                      forks_status_.usable() ? "active" : "unavailable",
                      forks_status_.usable() ? "" : forks_status_.reason, forks_status_.fix,
                      "children that live for less than a tick");
    }
    StoreLosses();
#ifdef __GLIBC__
    if (fine) malloc_trim(256 << 10);
#endif
    parts_.End("store");
  }

  void StoreFlight(bool last) {
    if (last) flight_->Finish();
    store_.Append(result_.run_id, flight_->TakeCoarse(), {}, AppendPart::kCourse);
    store_.Append(result_.run_id, flight_->TakeDetail(), {}, AppendPart::kDetail);
    if (const auto range = flight_->TakeRange()) {
      store_.SetDetailRange(result_.run_id, *range);
      if (ranges_.empty() || ranges_.back().start_ns != range->start_ns) ranges_.push_back(*range);
      ranges_.back() = *range;
      int64_t sum = 0;
      for (const DetailRange& r : ranges_) sum += r.end_ns - r.start_ns;
      while (sum > kMostDetailNs && ranges_.size() > 1) {
        sum -= ranges_.front().end_ns - ranges_.front().start_ns;
        store_.ReleaseDetailRange(result_.run_id, ranges_.front());
        ranges_.erase(ranges_.begin());
        released_ranges_++;
      }
    }
    if (last && !accounts_.ever_attached()) {
      store_.SetProbe(result_.run_id, "flight recorder", "unavailable",
                      "the trigger needs steps and queues, which come with instrumentation", "",
                      "detail around stalls");
    }
  }

  void StoreLosses() {
    const auto set = [this](const std::string& what, int64_t lost, std::optional<int64_t> total,
                            bool always = false) {
      if (lost == 0 && !always) return;
      const auto [it, first] = stored_losses_.emplace(what, std::pair(lost, total.value_or(-1)));
      if (!first && it->second == std::pair(lost, total.value_or(-1))) return;
      it->second = {lost, total.value_or(-1)};
      store_.SetLoss(result_.run_id, what, lost, total);
    };
    const Sampler::Losses own = accounts_.losses();
    set("step details", own.step_details, own.steps, true);
    for (const auto& [what, count] : own.over_limit) set(what + " over the limit", count, {});
    for (const auto& [what, loss] : sink_.losses()) set(what, loss.lost, loss.total, true);
    set("fork events", forks_.lost(), {});
    set("processes over the limit", tree_.over_limit(), {});
    if (flight_) set("ring seconds beyond its memory", flight_->intervals_cut() / 10, {});
    set("ranges of detail released", released_ranges_, {});
  }

  void Abandon(const Error& error) {
    reserve_.Release();
    const bool full = error.code() == ExitCode::kResources;
    result_.state = full ? RunState::kTruncated : RunState::kInterrupted;
    try {
      if (!result_.database.empty()) store_.FinishRun(result_.run_id, result_.state);
    } catch (const Error&) {
      result_.marked = false;  // the next one to open the store marks the run as interrupted
    }
  }

  const RecorderOptions& options_;
  RunStore store_;
  Reserve reserve_;
  int pidfd_;
  probes::Host host_;
  probes::ForkEvents forks_;
  probes::Availability forks_status_;
  bool forks_told_ = false;
  probes::Target target_;
  std::optional<PeerCpu> peers_;
  int64_t peers_next_ns_ = 1'000'000'000;
  OwnCost cost_;
  CostGuard cost_guard_{ReadCoreBudget().cores,
                        static_cast<double>(std::thread::hardware_concurrency())};
  AccountsCost accounts_cost_;
  PartCosts parts_;
  MeasurementSink sink_;
  ProbeRunner runner_;
  int64_t start_ns_;
  ProcessTree tree_;
  AccountTree accounts_;
  std::optional<FlightRecorder> flight_;
  Recording result_;
  std::vector<IntervalSample> pending_;
  int64_t last_ns_ = 0;  // end of the last interval, since the run began
  int64_t next_scan_ns_ = 0, next_look_ns_ = 0, next_fine_ns_ = 0;
  int64_t forks_lost_ = 0;
  int64_t tick_cost_ns_ = 0;
  int64_t late_ticks_ = 0, released_ranges_ = 0;
  std::map<int64_t, int64_t> images_;
  int64_t tree_cpu_ns_ = 0;
  std::optional<int64_t> host_busy_ns_;
  int64_t host_read_ns_ = 0;
  std::string refused_;
  AccountingRow accounting_;
  int scheduler_times_ = -1;
  std::vector<DetailRange> ranges_;
  std::map<std::string, std::pair<int64_t, int64_t>> stored_losses_;
};

}  // namespace

void SetFlightRecorder(const std::string& ring, const std::string& trigger,
                       RecorderOptions* options) {
  if (ring.empty() && trigger.empty()) return;
  options->ring_ns = ParseDuration(ring.empty() ? "30s" : ring, "--ring");
  if (options->ring_ns < 1'000'000'000 || options->ring_ns > kMostRingNs) {
    throw Error(ExitCode::kUsage, "must be between 1s and 10m", "--ring", "try 30s");
  }
  options->trigger = Trigger::Parse(trigger.empty() ? "stall > 200ms" : trigger);
}

Recording Record(const RecorderOptions& options) {
  CheckTarget(options.pid);
  RemoveLeftBehind();
#ifdef __GLIBC__
  // Reading symbols takes much memory for a moment. Without these the allocator would keep it.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
  return RecorderLoop(options).Run();
}

}  // namespace headrace::collectors
