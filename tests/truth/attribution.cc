// Attribution against a program's own ledger. A child process runs 4 threads and 6 operators and
// writes down what it did: reads, bytes, sleeps, lock waits, throttled reads, time on a CPU. The
// parent watches it with our probes from outside and compares.
//
//   attribution_truth [--folder DIR] [--reads N] [--seconds S] [--cost PAIRS]
//
// Prints a table: what, expected, measured, error, bound. Exit code 0: all within their bounds; 1:
// not; 77: skipped, with the reason (no BPF here). --cost measures instead what the probes cost:
// reads per second with and without them, in interleaved pairs, and ns per run of each program.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/account/account_segment.h"
#include "probes/bpf/followed.h"
#include "probes/bpf/offcpu.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"
#include "tests/stolen_time.h"

namespace headrace::probes {
namespace {

constexpr int kThreads = 4, kOperators = 6;
constexpr double kSwitchNs = 20'000;
// An operator's c is compared from here on: two per cent of it are a millisecond, some thousand
// readings of the clocks.
constexpr double kLeastCpuNs = 50e6;
constexpr int64_t kBlock = 4096, kFileBytes = 64 << 20;
// What the operators do in the timed phases; in the reading phase each reads blocks of its own
// size.
enum Kind { kSleeps, kLocks, kHolds, kThrottled, kSpins, kCopies };
constexpr const char* kNames[] = {"sleep", "lock", "hold", "throttled", "spin", "copy"};

struct Options {
  std::string folder = ".";
  int reads = 3000, cost_pairs = 0;
  double seconds = 4;
};

// What the child knows of one operator; all threads add to it.
struct Row {
  std::atomic<int64_t> reads, bytes, direct_requests, direct_bytes;
  std::atomic<int64_t> wall_ns, cpu_ns;
  std::atomic<int64_t> runnable_ns, most_runnable_ns;  // read inside and outside of the others
  std::atomic<int64_t> missed_ns;  // on a CPU that the hypervisor gave to somebody else
};
struct Ledger {
  Row rows[kOperators];
  std::atomic<int64_t> runnable_known, failures, phase_ns;
  std::atomic<int64_t> thread_cpu_ns;  // of the threads of all phases, at their ends
};

[[noreturn]] void Die(const std::string& what) {
  fmt::print(stderr, "{}: {}\n", what, std::strerror(errno));
  _exit(2);
}

// Physical begin of each piece of a file, by its logical begin.
std::map<int64_t, int64_t> Extents(int fd) {
  std::vector<char> memory(sizeof(fiemap) + 4096 * sizeof(fiemap_extent));
  auto* request = reinterpret_cast<fiemap*>(memory.data());
  request->fm_length = FIEMAP_MAX_OFFSET;
  request->fm_extent_count = 4096;
  std::map<int64_t, int64_t> extents;
  if (ioctl(fd, FS_IOC_FIEMAP, request) != 0) return extents;
  int64_t end = -1;
  for (uint32_t i = 0; i < request->fm_mapped_extents; i++) {
    const fiemap_extent& e = request->fm_extents[i];
    const auto physical = static_cast<int64_t>(e.fe_physical);
    // Pieces that adjoin on the device are read by one request.
    if (physical != end) extents[static_cast<int64_t>(e.fe_logical)] = physical;
    end = physical + static_cast<int64_t>(e.fe_length);
  }
  return extents;
}

class Pipeline {
 public:
  Pipeline(Ledger* ledger, const Options& options) : ledger_(ledger), options_(options) {}

  // The child's life: a phase for every command byte.
  void Run(int commands, int answers) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (hr_account_open("attribution_truth") != 0) Die("accounts");
    const uint32_t stage = hr_stage("stage", kThreads, 0);
    for (const char* name : kNames) hr_operator(name, "truth", stage);
    Prepare();
    Answer(answers);
    char command;
    while (read(commands, &command, 1) == 1 && command != 'q') {
      const int64_t begin = MonotonicNs();
      std::vector<std::thread> threads;
      for (int i = 0; i < kThreads; i++) {
        threads.emplace_back([=, this] {
          hr_thread_begin(stage);
          if (command == 'r') {
            Reads(i);
          } else {
            Times(i, begin + static_cast<int64_t>(options_.seconds * 1e9));
          }
          hr_thread_end();
          ledger_->thread_cpu_ns += ThreadCpuNs();
        });
      }
      for (auto& thread : threads) thread.join();
      ledger_->phase_ns = MonotonicNs() - begin;
      Answer(answers);
    }
  }

 private:
  static void Answer(int fd) {
    if (write(fd, "d", 1) != 1) Die("pipe");
  }

  void Prepare() {
    const std::string path = options_.folder + fmt::format("/attribution_truth.{}", getpid());
    cached_ = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (cached_ < 0) Die(path);
    std::vector<char> chunk(1 << 20, 'x');
    for (int64_t at = 0; at < kFileBytes; at += 1 << 20) {
      if (pwrite(cached_, chunk.data(), chunk.size(), at) != 1 << 20) Die("write " + path);
    }
    if (fsync(cached_) != 0) Die("fsync " + path);
    direct_ = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (direct_ < 0) Die("O_DIRECT " + path);
    unlink(path.c_str());
    extents_ = Extents(cached_);
    // Direct reads use the first half, the second stays in the page cache: it is mapped and locked.
    const void* half =
        mmap(nullptr, kFileBytes / 2, PROT_READ, MAP_SHARED, cached_, kFileBytes / 2);
    if (half == MAP_FAILED || mlock(half, kFileBytes / 2) != 0) {
      fmt::print("the file may leave the page cache: mlock: {}\n", std::strerror(errno));
    }
    for (int64_t at = kFileBytes / 2; at < kFileBytes; at += 1 << 20) {
      if (pread(cached_, chunk.data(), chunk.size(), at) < 0) Die("read " + path);
    }
  }

  int64_t PiecesOf(int64_t at, int64_t size) const {
    const auto first = extents_.upper_bound(at), last = extents_.lower_bound(at + size);
    return 1 + std::distance(first, last);
  }

  static char* Buffer() {
    void* memory = nullptr;
    if (posix_memalign(&memory, kBlock, 1 << 20) != 0) Die("memory");
    return static_cast<char*>(memory);
  }

  void Reads(int thread) {
    std::mt19937 random(static_cast<unsigned>(thread) * 7919 + 1);
    char* buffer = Buffer();
    for (int i = 0; i < options_.reads; i++) {
      const uint32_t op = random() % kOperators;
      const int64_t size = (op + 1) * kBlock;
      const bool direct = random() % 2 == 0;
      const int64_t half = kFileBytes / 2;
      const int64_t at =
          (direct ? 0 : half) + static_cast<int64_t>(random()) % ((half - size) / kBlock) * kBlock;
      hr_enter(op);
      const ssize_t n = pread(direct ? direct_ : cached_, buffer, static_cast<size_t>(size), at);
      hr_leave();
      if (n != size) {
        ++ledger_->failures;
        continue;
      }
      Row& row = ledger_->rows[op];
      ++row.reads;
      row.bytes += n;
      if (!direct) continue;
      row.direct_requests += PiecesOf(at, size);
      row.direct_bytes += n;
    }
    free(buffer);
  }

  static int64_t RunnableNs(Ledger* ledger, int schedstat) {
    char text[96] = "";
    long long on = 0, runnable = 0;
    if (pread(schedstat, text, sizeof text - 1, 0) <= 0) return 0;
    if (std::sscanf(text, "%lld %lld", &on, &runnable) != 2) return 0;
    ledger->runnable_known = 1;
    return runnable;
  }

  // Computes until the thread's clock has gone on by so much. Where the machine is a virtual one,
  // that clock may stand still while the hypervisor runs somebody else, and that of the accounts
  // goes on. Of an operator that computes for little time a few such pauses are many per cent. So
  // the program's ledger holds them: time in which the thread was neither on a CPU by its clock nor
  // waiting for one by the scheduler's.
  class Computing {
   public:
    Computing(Ledger* ledger, uint32_t op, int schedstat, int64_t ns)
        : ledger_(ledger),
          op_(op),
          schedstat_(schedstat),
          runnable_(RunnableNs(ledger, schedstat)),
          wall_(MonotonicNs()),
          cpu_(ThreadCpuNs()),
          end_(cpu_ + ns) {}
    ~Computing() {
      const int64_t cpu = ThreadCpuNs() - cpu_, wall = MonotonicNs() - wall_;
      const int64_t runnable = RunnableNs(ledger_, schedstat_) - runnable_;
      ledger_->rows[op_].missed_ns += std::max<int64_t>(0, wall - cpu - runnable);
    }
    bool GoesOn() const { return ThreadCpuNs() < end_; }

   private:
    Ledger* ledger_;
    uint32_t op_;
    int schedstat_;
    int64_t runnable_, wall_, cpu_, end_;
  };

  // Wall, CPU and run-queue time of one action of the calling thread, inside its operator.
  class Watch {
   public:
    Watch(Ledger* ledger, uint32_t op, int schedstat)
        : ledger_(ledger), op_(op), schedstat_(schedstat) {
      most_runnable_ = RunnableNs();
      hr_enter(op);
      wall_ = MonotonicNs();
      cpu_ = ThreadCpuNs();
      runnable_ = RunnableNs();
    }
    ~Watch() {
      Row& row = ledger_->rows[op_];
      const int64_t runnable = RunnableNs(), cpu = ThreadCpuNs(), wall = MonotonicNs();
      hr_leave();
      row.most_runnable_ns += RunnableNs() - most_runnable_;
      row.cpu_ns += cpu - cpu_;
      row.runnable_ns += runnable - runnable_;
      row.wall_ns += wall - wall_;
    }

   private:
    int64_t RunnableNs() const { return Pipeline::RunnableNs(ledger_, schedstat_); }
    Ledger* ledger_;
    uint32_t op_;
    int schedstat_;
    int64_t most_runnable_, wall_, cpu_, runnable_;
  };

  void Times(int thread, int64_t until) {
    std::mt19937 random(static_cast<unsigned>(thread) * 104729 + 7);
    char* buffer = Buffer();
    const int schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    const auto spin = [=, this](uint32_t op, int64_t ns) {
      for (Computing computing(ledger_, op, schedstat, ns); computing.GoesOn();) {
      }
    };
    while (MonotonicNs() < until) {
      const uint32_t op = random() % kOperators;
      const int64_t ns = 500'000 + static_cast<int64_t>(random() % 2'500'000);
      switch (op) {
        case kSleeps: {
          Watch watch(ledger_, op, schedstat);
          SleepUntilNs(MonotonicNs() + ns);
          break;
        }
        case kLocks:
        case kHolds: {
          {
            Watch watch(ledger_, kLocks, schedstat);
            mutex_.lock();
          }
          {
            Watch watch(ledger_, kHolds, schedstat);
            spin(kHolds, ns / 4);
            SleepUntilNs(MonotonicNs() + ns / 4);
          }
          mutex_.unlock();
          break;
        }
        case kThrottled: {
          Watch watch(ledger_, op, schedstat);
          const int64_t at = static_cast<int64_t>(random()) % 2048 * 16384;
          if (pread(direct_, buffer, 16384, at) != 16384) ++ledger_->failures;
          break;
        }
        case kSpins: {
          Watch watch(ledger_, op, schedstat);
          spin(op, ns);
          break;
        }
        case kCopies: {
          Watch watch(ledger_, op, schedstat);
          // As long as the others: two per cent of a few ms would be less than the clocks differ
          // by.
          Computing computing(ledger_, op, schedstat, ns);
          for (int i = 0; computing.GoesOn(); i = (i + 1) % 8) {
            if (pread(cached_, buffer, 1 << 16, kFileBytes / 2 + i * (1 << 16)) < 0) {
              ++ledger_->failures;
            }
          }
          break;
        }
      }
    }
    close(schedstat);
    free(buffer);
  }

  Ledger* ledger_;
  const Options& options_;
  int cached_ = -1, direct_ = -1;
  std::map<int64_t, int64_t> extents_;
  std::mutex mutex_;
};

// A control group that limits the child's reads from one device; nothing where there is none.
class Throttle {
 public:
  Throttle(pid_t pid, const std::string& folder) {
    struct stat info;
    if (stat(folder.c_str(), &info) != 0) return;
    std::string device = fmt::format("{}:{}", major(info.st_dev), minor(info.st_dev));
    char real[4096];
    const std::string link = "/sys/dev/block/" + device;
    if (access((link + "/partition").c_str(), F_OK) == 0 && realpath(link.c_str(), real)) {
      std::ifstream whole(std::string(real) + "/../dev");
      std::getline(whole, device);
    }
    for (const bool second : {false, true}) {
      for (const std::string& root :
           second ? std::vector<std::string>{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}
                  : std::vector<std::string>{"/sys/fs/cgroup/blkio"}) {
        const std::string group = root + fmt::format("/attribution_truth.{}", pid);
        if (mkdir(group.c_str(), 0755) != 0) continue;
        const bool set =
            second ? Write(group + "/io.max", device + " rbps=1048576")
                   : Write(group + "/blkio.throttle.read_bps_device", device + " 1048576");
        if (set && Write(group + "/cgroup.procs", std::to_string(pid))) {
          group_ = group;
          return;
        }
        rmdir(group.c_str());
      }
    }
  }
  ~Throttle() {
    for (int i = 0; i < 100 && !group_.empty() && rmdir(group_.c_str()) != 0; i++) usleep(10'000);
  }
  bool active() const { return !group_.empty(); }

 private:
  static bool Write(const std::string& path, const std::string& text) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
    return written;
  }
  std::string group_;
};

// Processes outside the target that want every CPU `times` over.
class Competitors {
 public:
  explicit Competitors(int times) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < times * CPU_COUNT(&set); i++) {
      const pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (std::atomic<uint64_t> n = 0;;) ++n;
      }
      if (pid > 0) pids_.push_back(pid);
    }
  }
  ~Competitors() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
  }

 private:
  std::vector<pid_t> pids_;
};

struct Reading final : Sink {
  std::map<std::tuple<std::string, int64_t, std::string>, double>
      values;  // metric, op or -1, cause
  std::map<std::string, int64_t> lost;
  pid_t pid = 0;
  void Add(const Measurement& m) override {
    if (m.labels.pid != 0 && m.labels.pid != pid) return;
    const int64_t op =
        m.labels.operator_index ? static_cast<int64_t>(*m.labels.operator_index) : -1;
    values[{std::string(m.metric), op, m.labels.cause}] += m.value;
  }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view what, int64_t count, std::optional<int64_t>) override {
    lost[std::string(what)] += count;
  }
  double Sum(const std::string& metric, int64_t op, const std::string& cause = "") const {
    double sum = 0;
    for (const auto& [key, value] : values) {
      if (std::get<0>(key) != metric || std::get<1>(key) != op) continue;
      if (cause.empty() || std::get<2>(key) == cause) sum += value;
    }
    return sum;
  }
};

class Truth {
 public:
  explicit Truth(const Options& options) : options_(options) {}

  int Run() {
    void* memory =
        mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || pipe(commands_) != 0 || pipe(answers_) != 0) Die("setup");
    ledger_ = new (memory) Ledger();
    child_ = fork();
    if (child_ < 0) Die("fork");
    if (child_ == 0) {
      close(commands_[1]);
      close(answers_[0]);
      Pipeline(ledger_, options_).Run(commands_[0], answers_[1]);
      exit(0);  // removes its accounts
    }
    close(commands_[0]);
    close(answers_[1]);
    WaitForAnswer();
    target_.root_pid = child_;
    target_.pids = {child_};
    target_.accounts = {{child_, bpf::FindSegmentAddress(host_, child_)}};
    target_.deep = true;
    const int result = options_.cost_pairs > 0 ? Cost() : Compare();
    probes_.clear();
    if (write(commands_[1], "q", 1) != 1) Die("pipe");
    waitpid(child_, nullptr, 0);
    return result;
  }

 private:
  void WaitForAnswer() {
    char answer;
    if (read(answers_[0], &answer, 1) != 1) Die("the measured process ended early");
  }

  // False, and a line, if the probe that everything needs cannot work.
  bool StartProbes(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const ProbeInfo* info = Registry<ProbeInfo>::Global().Find(name);
      if (!info) {
        fmt::print("{}: not in this build\n", name);
        continue;
      }
      auto probe = info->make();
      const Availability available = probe->Start(host_, target_);
      if (!available.usable()) {
        fmt::print("{}: {} ({})\n", name, available.reason, available.fix);
        if (name == "off-CPU time") return false;
        continue;
      }
      probes_[name] = std::move(probe);
    }
    return true;
  }

  Reading ReadAll() {
    Reading reading;
    reading.pid = child_;
    for (auto& [name, probe] : probes_) probe->Read(reading);
    return reading;
  }

  void Phase(char command) {
    for (Row& row : ledger_->rows) {
      for (auto* value :
           {&row.reads, &row.bytes, &row.direct_requests, &row.direct_bytes, &row.wall_ns,
            &row.cpu_ns, &row.runnable_ns, &row.most_runnable_ns, &row.missed_ns}) {
        *value = 0;
      }
    }
    if (write(commands_[1], &command, 1) != 1) Die("pipe");
    WaitForAnswer();
  }

  void Line(const std::string& what, double expected, double measured, const char* unit,
            double bound_percent, double slack = 0) {
    const double difference = std::abs(measured - expected);
    const double error =
        expected != 0 ? difference / std::abs(expected) * 100 : (measured != 0 ? 100 : 0);
    const bool ok = error <= bound_percent || difference <= slack;
    failures_ += !ok;
    fmt::print("{:34} {:>14.6g} {:>14.6g} {:5} {:>8.3f} % {:>7.1f} %  {}\n", what, expected,
               measured, unit, error, bound_percent, ok ? "ok" : "FAILED");
  }

  int Compare() {
    if (!StartProbes({"off-CPU time", "block IO", "system calls"})) {
      fmt::print("skipped: no attribution can be measured here\n");
      return 77;
    }
    fmt::print("{:34} {:>14} {:>14} {:5} {:>10} {:>9}\n", "", "expected", "measured", "", "error",
               "bound");
    fmt::print("(times may also differ by {:.0f} us a switch)\n", kSwitchNs / 1e3);
    CompareReads();
    Throttle throttle(child_, options_.folder);
    if (!throttle.active())
      fmt::print("reads are not throttled: no control group may do it here\n");
    for (const int times : {1, 2, 4}) CompareTimes(times);
    if (ledger_->failures != 0) {
      fmt::print("{} reads of the pipeline failed\n", ledger_->failures.load());
      ++failures_;
    }
    fmt::print("{}\n", failures_ == 0 ? "all within their bounds"
                                      : fmt::format("{} outside their bounds", failures_));
    return failures_ == 0 ? 0 : 1;
  }

  void CompareLosses(const Reading& reading) {
    for (const auto& [what, count] : reading.lost) {
      // What is lost shows in the figures above; that it is counted is what matters here.
      if (count != 0) fmt::print("  counted as lost: {} {}\n", count, what);
    }
  }

  void CompareReads() {
    const Reading before = ReadAll();
    Phase('r');
    const Reading after = ReadAll();
    fmt::print("reads: {} threads, {} operators, another one at every read\n", kThreads,
               kOperators);
    const auto grown = [&](const std::string& metric, int64_t op, const std::string& cause = "") {
      return after.Sum(metric, op, cause) - before.Sum(metric, op, cause);
    };
    for (int i = 0; i < kOperators; i++) {
      const Row& row = ledger_->rows[i];
      const std::string name = fmt::format("  operator {}: ", i + 1);
      if (probes_.count("system calls")) {
        Line(name + "reads", static_cast<double>(row.reads), grown("file_reads_count", i), "", 0);
        Line(name + "bytes read", static_cast<double>(row.bytes), grown("file_read_bytes", i), "B",
             0);
      }
      if (probes_.count("block IO")) {
        Line(name + "block requests", static_cast<double>(row.direct_requests),
             grown("block_requests_count", i, "read"), "", 0.1);
        Line(name + "block bytes", static_cast<double>(row.direct_bytes),
             grown("block_bytes", i, "read"), "B", 0.1);
      }
    }
    CompareLosses(after);
  }

  void CompareTimes(int times) {
    const auto splits = [&] {
      std::map<uint32_t, bpf::OperatorSplit> result;
      auto& source = dynamic_cast<bpf::SplitSource&>(*probes_.at("off-CPU time"));
      for (const bpf::OperatorSplit& split : source.Splits()) {
        if (split.pid == child_) result[split.operator_index] = split;
      }
      return result;
    };
    const int64_t thread_cpu_before = ledger_->thread_cpu_ns;
    const double stolen_before = StolenNs();
    auto segment = account::AccountSegment::Attach(child_);
    if (!segment) Die("the pipeline's accounts");
    const Reading before = ReadAll();
    auto splits_before = splits();
    const auto accounts_before = segment->Read(true, {});
    {
      Competitors competitors(times - 1);
      Phase('t');
    }
    const Reading after = ReadAll();
    const double taken_ms = StolenNsSince(stolen_before) * 1e-6;
    auto splits_after = splits();
    const auto accounts_after = segment->Read(true, {});

    fmt::print(
        "time at {}x oversubscription: {} threads of the pipeline, {} other busy threads a "
        "CPU\n",
        times, kThreads, times - 1);
    // Whose it was is not known, nor whether that thread's clock stood still or it waited longer.
    if (taken_ms > 0)
      fmt::print("  the hypervisor took {:.0f} ms: times may differ by as much\n", taken_ms);
    constexpr const char* kCauses[] = {"sleep", "lock", "sleep", "storage", "", ""};
    double all_slack = taken_ms, all_busy = 0, all_cpu = 0, all_c = 0, all_residual = 0,
           all_missed = 0;
    for (uint32_t i = 0; i < kOperators; i++) {
      const Row& row = ledger_->rows[i];
      const std::string name = fmt::format("  {}: ", kNames[i]);
      const auto blocked =
          static_cast<double>(splits_after[i].blocked_ns - splits_before[i].blocked_ns);
      const auto runnable =
          static_cast<double>(splits_after[i].runnable_ns - splits_before[i].runnable_ns);
      const auto off = static_cast<double>(row.wall_ns - row.cpu_ns);
      const auto cpu = static_cast<double>(row.cpu_ns);
      const auto wall = static_cast<double>(row.wall_ns);
      // Clocks of the program and of the kernel begin and end a switch at different instants.
      const double switches_ms =
          kSwitchNs * (after.Sum("runnable_count", i) - before.Sum("runnable_count", i)) / 1e6;
      const double slack = switches_ms + taken_ms;
      if (*kCauses[i])
        Line(name + "off-CPU", off / 1e6, (blocked + runnable) / 1e6, "ms", 2, slack);
      if (ledger_->runnable_known != 0) {
        // What comes between two readings is in one of them only: the truth is between both.
        const double expected = std::clamp(runnable, static_cast<double>(row.runnable_ns),
                                           static_cast<double>(row.most_runnable_ns));
        Line(name + "runnable", expected / 1e6, runnable / 1e6, "ms", 2, slack);
        if (*kCauses[i]) {
          const double cause =
              after.Sum("off_cpu_ns", i, kCauses[i]) - before.Sum("off_cpu_ns", i, kCauses[i]);
          Line(name + "blocked by " + kCauses[i], (off - expected) / 1e6, cause / 1e6, "ms", 2,
               slack);
        }
      }
      const auto busy = static_cast<double>(accounts_after.operators.at(i).busy_ns -
                                            accounts_before.operators.at(i).busy_ns);
      const double c = busy - blocked - runnable;
      const auto missed = static_cast<double>(row.missed_ns);
      if (cpu > 0.1 * wall && cpu >= kLeastCpuNs) {
        Line(name + "c", (cpu + missed) / 1e6, c / 1e6, "ms", 2, slack);
      }
      all_slack += switches_ms;
      all_busy += busy;
      all_cpu += cpu + missed;
      all_missed += missed;
      all_c += c;
      all_residual += std::abs(busy - cpu - blocked - runnable);
    }
    Line("  on_cpu_ns of the threads",
         static_cast<double>(ledger_->thread_cpu_ns - thread_cpu_before) / 1e6,
         (after.Sum("on_cpu_ns", -1) - before.Sum("on_cpu_ns", -1)) / 1e6, "ms", 2, all_slack);
    fmt::print("  c: the thread clock and {:.3f} ms that it missed\n", all_missed / 1e6);
    Line("  all operators: c", all_cpu / 1e6, all_c / 1e6, "ms", 2, all_slack);
    Line("  identity residual of busy", all_busy / 1e6, (all_busy + all_residual) / 1e6, "ms", 5);
    CompareLosses(after);
  }

  int Cost() {
    const std::vector<std::string> names = {"off-CPU time", "block IO", "system calls"};
    target_.deep = false;
    std::vector<double> losses;
    for (int pair = 0; pair < options_.cost_pairs; pair++) {
      double ns[2];
      for (const bool on : {pair % 2 == 0, pair % 2 != 0}) {
        if (on && !StartProbes({names[0], names[1]})) return 77;
        Phase('r');
        ns[on] = static_cast<double>(ledger_->phase_ns);
        probes_.clear();
      }
      losses.push_back(1 - ns[0] / ns[1]);
    }
    std::sort(losses.begin(), losses.end());
    fmt::print(
        "reads a second lost with level 3: median {:+.2f} %, quartiles {:+.2f} to {:+.2f} %, "
        "{} pairs\n",
        losses[losses.size() / 2] * 100, losses[losses.size() / 4] * 100,
        losses[losses.size() * 3 / 4] * 100, losses.size());
    target_.deep = true;
    if (!StartProbes(names)) return 77;
    ReadAll();
    Phase('r');
    const Reading costs = ReadAll();
    for (const auto& [key, ns] : costs.values) {
      if (std::get<0>(key) != "bpf_run_time_ns") continue;
      const double runs = costs.Sum("bpf_runs_count", -1, std::get<2>(key));
      if (runs > 0)
        fmt::print("{:28} {:>10.0f} runs {:>8.0f} ns\n", std::get<2>(key), runs, ns / runs);
    }
    return 0;
  }

  const Options& options_;
  Ledger* ledger_ = nullptr;
  pid_t child_ = -1;
  int commands_[2], answers_[2];
  Host host_;
  Target target_;
  std::map<std::string, std::unique_ptr<Probe>> probes_;
  int failures_ = 0;
};

}  // namespace
}  // namespace headrace::probes

int main(int argc, char** argv) {
  headrace::probes::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--folder") options.folder = argv[i + 1];
    if (name == "--reads") options.reads = std::max(1, std::atoi(argv[i + 1]));
    if (name == "--seconds") options.seconds = std::max(0.1, std::atof(argv[i + 1]));
    if (name == "--cost") options.cost_pairs = std::max(1, std::atoi(argv[i + 1]));
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return headrace::probes::Truth(options).Run();
}
