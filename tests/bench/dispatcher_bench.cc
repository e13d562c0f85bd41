// A dispatcher under load: its process, and the workers and ranks of a large job as connections of
// this one. They make no batch: a worker says for whom a split is as soon as it has it, and the
// rank reports it admitted.
//
//   dispatcher_bench [WORKERS [RANKS [SPLITS [UNITS]]]]     default 1000 16 1000000 1
//
// UNITS: of a split, a divisor of 1000; with more than one no rank has a split whole, and states
// are lists of ranges.
//
// It prints splits handed out a second while all workers ask as fast as they can; how long an Ask
// waits for its first Lease at half of that, or at 20,000 a second if that is less; the memory of
// the dispatcher; how soon the splits of lost workers are with others; and how soon a new
// dispatcher hands out again after the first was killed with half of the job done.
//
// The dispatcher is a program of its own, so that none of its memory is this one's. All workers and
// ranks are one thread here, which sees a Lease late while it is at others. So the wait is given
// twice: until the Lease was read, and until this thread last looked and there was none. The
// dispatcher's part is between the two. How long both waited for a core is printed as well: on a
// busy machine that is most of it.
#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "reader/service/client.h"
#include "reader/service/control.h"
#include "reader/service/dispatcher_process.h"
#include "reader/service/job_folder.h"
#include "reader/service/worker.h"

using namespace headrace;
using namespace headrace::reader;
using namespace headrace::reader::service;

namespace {

constexpr uint64_t kSplitRows = 1000;
constexpr int64_t kReportNs = 50'000'000;  // as ranks do

struct Size {
  uint64_t workers = 1000, splits = 1'000'000, units = 1;
  uint32_t ranks = 16;
};

constexpr const char* kDispatcher = "--dispatcher";

pid_t StartDispatcher(const std::string& folder, const Size& size) {
  const std::string ranks = std::to_string(size.ranks), splits = std::to_string(size.splits);
  const std::string units = std::to_string(size.units);
  const pid_t child = fork();
  if (child != 0) return child;
  execl("/proc/self/exe", "dispatcher_bench", kDispatcher, folder.c_str(), ranks.c_str(),
        splits.c_str(), units.c_str(), nullptr);
  _exit(1);
}

int RunDispatcher(const std::string& folder, const Size& size) {
  try {
    DispatcherOptions job;
    job.job.ranks = size.ranks;
    for (uint64_t split = 0; split < size.splits; ++split)
      job.job.splits.push_back({split * kSplitRows, kSplitRows});
    using namespace std::chrono;
    job.job.first_term = static_cast<Term>(
        duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count());
    job.board.ranks = size.ranks;
    job.board.unit_rows = job.batch_rows = kSplitRows / size.units;
    DispatcherProcessOptions options;
    options.pipeline = "the benchmark's";
    options.folder = folder;
    DispatcherProcess process(std::move(options), std::move(job));
    process.Run();
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

// A process's time on a CPU, and ready for one that others had.
struct CpuTime {
  double on_s = 0, waited_s = 0;
  CpuTime operator-(const CpuTime& before) const {
    return {on_s - before.on_s, waited_s - before.waited_s};
  }
};
CpuTime CpuTimeOf(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/schedstat", pid));  // of its main thread, the only one
  double on_ns = 0, waited_ns = 0;
  stat >> on_ns >> waited_ns;
  return {on_ns / 1e9, waited_ns / 1e9};
}

// VmHWM: at most; VmRSS: now.
double ResidentMiB(pid_t pid, const std::string& which) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(which + ":"))
      return std::strtod(line.c_str() + which.size() + 1, nullptr) / 1024;
  return -1;
}

double QuantileOf(std::vector<double> values, double q) {
  if (values.empty()) return -1;
  const auto at = static_cast<size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

class Load {
 public:
  Load(std::string folder, const Size& size) : folder_(std::move(folder)), size_(size) {
    for (uint64_t k = 0; k < size.workers; ++k) {
      Member& worker = workers_.emplace_back();
      worker.worker = std::make_unique<Worker>(WorkerOptions{.instance = k + 1, .pid = 1});
    }
    for (uint32_t rank = 0; rank < size.ranks; ++rank) {
      Rank& one = ranks_.emplace_back();
      one.client = std::make_unique<Client>(ClientOptions{
          .rank = rank, .ranks = size.ranks, .instance = size.workers + rank + 1, .address = "x"});
    }
  }
  ~Load() { close(polled_); }

  // Goes on until `granted` splits were leased in all, from the first lease of this call on.
  void Drive(uint64_t granted) {
    while (granted_ < granted) Turn();
  }
  // Looks once at all connections, and reads those that have something.
  void Turn() {
    // One that never sleeps would take all of a core, and a real-time process that does (chrt) is
    // stopped for 50 ms of every second. What it asks for after that comes all at once.
    constexpr useconds_t kPauseUs = 200;
    constexpr int kTurnMs = 1, kMostReady = 256;
    if (pace_ > 0) usleep(kPauseUs);
    const int64_t begin_ns = MonotonicNs();
    std::array<epoll_event, kMostReady> ready;
    const int num_ready = epoll_wait(polled_, ready.data(), kMostReady, kTurnMs);
    for (int i = 0; i < num_ready; ++i) {  // all at once: few wait for what is done with them
      const uint64_t member = ready[static_cast<size_t>(i)].data.u64;
      if (member >= workers_.size()) {
        ranks_[member - workers_.size()].has_said = true;
      } else if (workers_[member].control) {
        Read(&workers_[member]);
        workers_[member].read_ns = begin_ns;
      }
    }
    for (Rank& rank : ranks_) Talk(&rank);
    for (Member& worker : workers_) {
      if (num_ready < kMostReady && worker.read_ns != begin_ns) worker.silent_ns = begin_ns;
      Talk(&worker);
    }
  }
  void LoseWorkers(uint64_t count) {
    for (uint64_t k = 0; k < count; ++k) {
      for (const Lease& lease : workers_[k].held) lost_.insert(lease.split);
      workers_[k].control.reset();
      workers_[k].is_lost = true;
      workers_[k].held.clear();
    }
  }
  // Of all workers together, from now on; 0: as fast as they can.
  void AskFor(double splits_a_second) {
    pace_ = splits_a_second;
    paced_since_ns_ = MonotonicNs();
    paced_ = 0;
    waits_ms_.clear();
    least_waits_ms_.clear();
  }
  void HoldBack(bool holds) { holds_ = holds; }
  void Forget() {  // the dispatcher was killed
    for (Member& worker : workers_) worker.control.reset();
    for (Rank& rank : ranks_) {
      rank.control.reset();
      Settle(&rank);
    }
    granted_ = 0;
    begin_ns_ = 0;
  }

  uint64_t granted() const { return granted_; }
  size_t lost_left() const { return lost_.size(); }
  int64_t begin_ns() const { return begin_ns_; }
  // Of Asks: until the Lease was read, and until there was none yet.
  const std::vector<double>& waits_ms() const { return waits_ms_; }
  const std::vector<double>& least_waits_ms() const { return least_waits_ms_; }

 private:
  struct Member {
    std::unique_ptr<ControlConnection> control;
    std::unique_ptr<Worker> worker;
    std::vector<Message> heard;  // in this turn
    int64_t asked_ns = 0, said_ns = 0;
    // Looks at its connection that began then: found something, and did not.
    int64_t read_ns = 0, silent_ns = 0;
    bool is_lost = false;
    std::vector<Lease> held;  // while units are held back
  };
  struct Rank {
    std::unique_ptr<ControlConnection> control;
    std::unique_ptr<Client> client;
    std::vector<RowSpan> unsaid, said;  // admitted; the client is told before it joins again
    bool has_said = false;              // something, in this turn
    int64_t said_ns = 0;
  };

  // `member`: a worker, or a rank behind them.
  std::unique_ptr<ControlConnection> Connect(uint64_t member) const {
    auto control = ControlConnection::Connect(DispatcherSocket(folder_));
    if (!control) return nullptr;
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = member;
    if (epoll_ctl(polled_, EPOLL_CTL_ADD, control->fd(), &event) != 0)
      throw Error(ExitCode::kResources, "cannot wait for another connection");
    return control;
  }

  // What a rank's ledger costs is not the dispatcher's: it is kept up to date only for Joins.
  static void Settle(Rank* rank) {
    rank->said.insert(rank->said.end(), rank->unsaid.begin(), rank->unsaid.end());
    for (const RowSpan& span : rank->said) rank->client->Admit(rank->client->term(), {&span, 1});
    rank->said.clear();
    rank->unsaid.clear();
  }

  void Read(Member* member) {
    member->heard = member->control->Receive(0);
    const int64_t now = MonotonicNs();
    for (const Message& message : member->heard) {
      if (!std::holds_alternative<Lease>(message)) continue;
      if (begin_ns_ == 0) begin_ns_ = now;
      ++granted_;
      lost_.erase(std::get<Lease>(message).split);
      if (member->asked_ns > 0) {
        const auto ms = [&](int64_t until) {
          return static_cast<double>(until - member->asked_ns) / 1e6;
        };
        waits_ms_.push_back(ms(now));
        least_waits_ms_.push_back(ms(std::max(member->silent_ns, member->asked_ns)));
      }
      member->asked_ns = 0;
    }
  }

  void Talk(Rank* rank) {
    const bool has_said = std::exchange(rank->has_said, false);
    if (!rank->control) {
      rank->control = Connect(workers_.size() + static_cast<uint64_t>(rank - ranks_.data()));
      if (!rank->control) return;
      rank->control->Send(rank->client->Connected());
    }
    if (has_said || rank->control->has_more())
      for (const Message& message : rank->control->Receive(0))
        if (const auto answer = rank->client->Handle(message)) rank->control->Send(*answer);
    if (rank->control->unsent_bytes() > 0) rank->control->Flush();
    const int64_t now = MonotonicNs();
    if (now - rank->said_ns > kReportNs) {
      rank->said_ns = now;
      if (auto report = rank->client->TakeReport()) {
        report->admitted = std::exchange(rank->unsaid, {});
        rank->control->Send(*report);
        rank->said.insert(rank->said.end(), report->admitted.begin(), report->admitted.end());
      }
    }
  }

  void Talk(Member* member) {
    if (member->is_lost) return;
    Worker& worker = *member->worker;
    if (!member->control) {
      member->control = Connect(static_cast<uint64_t>(member - workers_.data()));
      if (!member->control) return;
      member->control->Send(worker.Connected());
      member->asked_ns = 0;
    }
    if (member->control->has_more()) Read(member);
    if (member->control->unsent_bytes() > 0) member->control->Flush();
    for (const Message& message : std::exchange(member->heard, {})) worker.Handle(message);
    const int64_t now = MonotonicNs();
    while (!holds_) {
      const auto taken = worker.Take();
      if (!taken) break;
      const uint64_t unit_rows = kSplitRows / size_.units;
      for (const RowRange& range : taken->lease.wanted) {
        for (uint64_t at = range.first; at < range.first + range.count; at += unit_rows)
          Admit(taken->lease, {at, unit_rows},
                worker.Place(taken->local, at % kSplitRows / unit_rows, unit_rows));
      }
    }
    if (holds_)
      while (const auto taken = worker.Take()) member->held.push_back(taken->lease);
    const double due = static_cast<double>(now - paced_since_ns_) / 1e9 * pace_;
    if (pace_ > 0 && static_cast<double>(paced_) >= due) return;
    if (const auto ask = worker.TakeAsk()) {
      paced_ += ask->count;
      member->control->Send(*ask);
      if (member->asked_ns == 0) member->asked_ns = now;
    }
    if (now - member->said_ns > 1'000'000'000) {
      member->said_ns = now;
      member->control->Send(Alive{});
    }
  }

  void Admit(const Lease& lease, const RowRange& unit, const std::optional<Worker::Route>& route) {
    if (!route) return;
    ranks_[route->rank].unsaid.push_back(
        {lease.epoch, lease.split, unit.first, unit.count, unit.count});
  }

  const std::string folder_;
  const Size size_;
  const int polled_ = epoll_create1(EPOLL_CLOEXEC);  // connections
  std::vector<Member> workers_;
  std::vector<Rank> ranks_;
  uint64_t granted_ = 0;
  int64_t begin_ns_ = 0;  // of the first lease
  bool holds_ = false;
  double pace_ = 0;
  int64_t paced_since_ns_ = 0;
  uint64_t paced_ = 0;
  std::set<uint64_t> lost_;
  std::vector<double> waits_ms_, least_waits_ms_;
};

void Judge(const char* what, double value, const char* unit, double goal, bool at_least) {
  fmt::print("{:48} {:10.1f} {:4} goal {} {:g}: {}\n", what, value, unit,
             at_least ? ">=" : "<=", goal,
             (at_least ? value >= goal : value <= goal) ? "reached" : "missed");
}

double SecondsSince(int64_t ns) { return static_cast<double>(MonotonicNs() - ns) / 1e9; }

void Measure(const std::string& folder, const Size& size) {
  pid_t dispatcher = StartDispatcher(folder, size);
  Load load(folder, size);
  load.Drive(1);
  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  load.Drive(size.splits / 4);
  const double seconds = SecondsSince(load.begin_ns());
  getrusage(RUSAGE_SELF, &after);
  const auto spent = static_cast<double>(after.ru_utime.tv_sec - before.ru_utime.tv_sec +
                                         after.ru_stime.tv_sec - before.ru_stime.tv_sec);
  const double rate = static_cast<double>(load.granted()) / seconds;
  Judge("splits handed out a second", rate, "", 20'000, true);
  fmt::print("  over {:.1f} s, of which this load itself took {:.0f} s of a core\n", seconds,
             spent);
  load.AskFor(std::min(rate / 2, 20'000.0));
  for (const int64_t until = MonotonicNs() + 1'000'000'000; MonotonicNs() < until;) load.Turn();
  load.AskFor(std::min(rate / 2, 20'000.0));  // what was asked before is answered
  const CpuTime paced_there = CpuTimeOf(dispatcher), paced_here = CpuTimeOf(getpid());
  const int64_t paced = MonotonicNs();
  load.Drive(size.splits / 2);
  fmt::print("now {:.0f} a second, for {:.1f} s\n", std::min(rate / 2, 20'000.0),
             SecondsSince(paced));
  const auto print = [](const char* who, const CpuTime& time) {
    fmt::print("  {}: {:.2f} s on a core, ready {:.2f} s while others had them\n", who, time.on_s,
               time.waited_s);
  };
  print("the dispatcher", CpuTimeOf(dispatcher) - paced_there);
  print("this load", CpuTimeOf(getpid()) - paced_here);
  Judge("an Ask waits for its Lease: median", QuantileOf(load.waits_ms(), 0.5), "ms", 5, false);
  Judge("an Ask waits for its Lease: 99th percentile", QuantileOf(load.waits_ms(), 0.99), "ms", 5,
        false);
  Judge("  until this load last saw none: median", QuantileOf(load.least_waits_ms(), 0.5), "ms", 5,
        false);
  Judge("  until this load last saw none: 99th percentile", QuantileOf(load.least_waits_ms(), 0.99),
        "ms", 5, false);

  load.AskFor(0);
  load.HoldBack(true);
  for (const int64_t until = MonotonicNs() + 1'000'000'000; MonotonicNs() < until;) load.Turn();
  load.LoseWorkers(size.workers / 10);
  load.HoldBack(false);
  const int64_t lost = MonotonicNs();
  while (load.lost_left() > 0 && SecondsSince(lost) < 60) load.Turn();
  Judge("a tenth of the workers lost: all leased again", SecondsSince(lost), "s", 1, false);
  Judge("the dispatcher's memory, at most", ResidentMiB(dispatcher, "VmHWM"), "MiB", 200, false);

  kill(dispatcher, SIGKILL);
  waitpid(dispatcher, nullptr, 0);
  load.Forget();
  const int64_t killed = MonotonicNs();
  dispatcher = StartDispatcher(folder, size);
  load.Drive(1);
  Judge("killed; a new dispatcher hands out after", SecondsSince(killed), "s", 2, false);
  Judge("the new dispatcher's memory, at most", ResidentMiB(dispatcher, "VmHWM"), "MiB", 200,
        false);
  fmt::print("  and once all ranks have joined {:.0f} MiB\n", ResidentMiB(dispatcher, "VmRSS"));
  kill(dispatcher, SIGKILL);
  waitpid(dispatcher, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  Size size;
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (argc == 6 && std::strcmp(argv[1], kDispatcher) == 0) {
    size.ranks = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
    size.splits = std::strtoull(argv[4], nullptr, 10);
    size.units = std::strtoull(argv[5], nullptr, 10);
    return RunDispatcher(argv[2], size);
  }
  if (argc > 1) size.workers = std::strtoull(argv[1], nullptr, 10);
  if (argc > 2) size.ranks = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  if (argc > 3) size.splits = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) size.units = std::strtoull(argv[4], nullptr, 10);
  if (size.units == 0 || kSplitRows % size.units != 0) {
    fmt::print(stderr, "dispatcher_bench: {} units do not divide {} rows\n", size.units,
               kSplitRows);
    return 2;
  }
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("hrd{}", getpid())).string();
  std::filesystem::create_directory(folder);
  fmt::print("{} workers, {} ranks, {} splits of {} units\n", size.workers, size.ranks, size.splits,
             size.units);
  int result = 0;
  try {
    Measure(folder, size);
  } catch (const Error& error) {
    fmt::print(stderr, "dispatcher_bench: {}\n", error.what());
    result = 1;
  }
  std::filesystem::remove_all(folder);
  return result;
}
