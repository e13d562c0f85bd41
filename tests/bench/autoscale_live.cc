// The autoscaler over real jobs: ten demands of docs/autoscale.md, each three times side by side,
// with our autoscaler, with Cachew's rule and with the estimate of tf.data service.
//
//   autoscale_live [--intervals N] [--beside N] [--rounds N] [--shape TEXT]
//
// By default 120 intervals, 3 shapes at a time, 1 round. Of several rounds the means are shown and
// judged, as those of the simulation are means of 20; a reversal counts in any. 0 rounds: the
// simulation alone.
//
// With AUTOSCALE_DECISIONS=1 each decision and its reason is printed.
//
// A job is a dispatcher, its workers as processes, and a rank; what decides is told what
// `headrace service up` tells its autoscaler. A worker makes 10 batches a second: it sleeps, so
// that cores do not matter. Its rate varies from interval to interval, and it starts as late, as
// the simulated one does (fleet_world.h), which hands over as much before it goes. The rank's step
// follows the demand. An interval is 2 s and not 10 s, so demands, start-ups and failures are five
// times as fast; periods are such that one fits.
//
// Beside each figure stands that of the simulation. Asked are, for our autoscaler, waits and prices
// of at most those of the simulation and a fifth more (waits: or one point), never the worst price
// of the three, and no reversal where demand is constant.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <any>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "experiments/service_scaling.h"
#include "reader/pipeline/operators/synthetic.h"
#include "reader/service/dispatcher_process.h"
#include "reader/service/local_workers.h"
#include "reader/service/receive_job.h"
#include "reader/service/worker_process.h"
#include "tests/reader/service/fleet_world.h"
#include "workloads/generator.h"

using namespace headrace;
using namespace headrace::reader;
using namespace headrace::reader::service;

namespace {

namespace fs = std::filesystem;

constexpr double kSpeed = 5;                           // simulated seconds in one of ours
constexpr int64_t kIntervalNs = 2'000'000'000;         // kSteps simulated seconds
constexpr double kBatchNs = 100'000'000;               // of a worker: 10 a second
constexpr uint64_t kBatchRows = 20, kSplitRows = 100;  // five units a split
constexpr int kMost = 64;                              // workers
// What of a worker's batches waits at it and on the way to the rank (send_lanes.cc), in its own
// batch times.
constexpr double kRoomBatches = 26;
// What a worker that drains still hands over: that, and the rest of the split that it is at.
constexpr double kHeldBatches = kRoomBatches + kSplitRows / kBatchRows / 2.0;
constexpr double kNoCeiling = 1e18;
constexpr int kSimulations = 20;
// Prices of Pecan's evaluation (ATC 2024): a consumer and a worker an hour.
constexpr double kConsumerPrice = 4.96, kWorkerPrice = 0.427;
constexpr double kMore = 1.2, kPoint = 0.01, kSame = 0.02;

constexpr const char* kPolicies[] = {"headrace", "Cachew, +-1", "tf.data service"};

struct Shape {
  World world;
  bool is_constant = false;
};

std::function<double(double)> Always(double value) {
  return [value](double) { return value; };
}

// Of `seconds` simulated ones.
std::vector<Shape> Shapes(double seconds) {
  std::vector<Shape> shapes;
  const auto add = [&](const char* name, bool is_constant, std::function<double(double)> demand,
                       int workers) {
    World world;
    world.name = name;
    world.demand = std::move(demand);
    world.ceiling = Always(kNoCeiling);
    world.workers = workers;
    world.cv = 0.3;
    world.demand_cv = 0;
    world.room_s = kRoomBatches / world.rate * kSpeed;
    world.held_batches = kHeldBatches * kSpeed;
    shapes.push_back({world, is_constant});
    return &shapes.back().world;
  };
  add("80/s, quiet", true, Always(80), 4)->cv = 0.05;
  add("80/s, cv 0.3", true, Always(80), 4);
  add("300/s, cv 0.5", true, Always(300), 4)->cv = 0.5;
  add("80/s, from 40 workers", true, Always(80), 40);
  add(
      "50, 200, 50/s", false,
      [seconds](double t) { return t > 0.28 * seconds && t < 0.63 * seconds ? 200.0 : 50.0; }, 6);
  add(
      "100 or 50/s, half each", false,
      [seconds](double t) { return t < seconds / 2 ? 100.0 : 50.0; }, 6);
  add(
      "100 +- 50/s, a period", false,
      [seconds](double t) { return 100 + 50 * std::sin(t / seconds * 2 * M_PI); }, 6);
  add("200/s, storage lets 60", false, Always(200), 4)->ceiling = Always(60);
  add("100/s, workers fail", false, Always(100), 4)->failures_per_hour = 1;
  add("100/s, a third unseen", false, Always(100), 4)->missing = 0.33;
  return shapes;
}

// Demand over the mean rate of a worker; at most four times the workers there are
// (tensorflow/core/data/service/auto_scaler.cc). What its consumers and workers measure follows
// here from the same observation.
Scaler TfDataEstimate(int workers) {
  auto last = std::make_shared<int>(workers);
  return [last](const FleetObservation& seen, double) {
    if (!seen.batches || *seen.batches <= 0 || !seen.starved_ratio || !seen.waste_ratio ||
        seen.serving <= 0)
      return *last;
    const double demand = *seen.batches / seen.seconds / std::max(0.02, 1 - *seen.starved_ratio);
    const double each =
        *seen.batches / seen.seconds / (seen.serving * std::max(0.02, 1 - *seen.waste_ratio));
    const int now = std::max(1, seen.ready + seen.starting);
    return *last = std::clamp(static_cast<int>(std::ceil(std::min(demand / each, 1e5))), 1,
                              std::min(4 * now, kMost));
  };
}

// Of the simulation; of the jobs: ours is ServiceScaling's own.
Scaler PolicyOf(int which, int workers) {
  AutoscaleOptions options;
  options.most = kMost;
  options.startup_s = 2 * kSpeed;
  return which == 0   ? Ours(workers, options)
         : which == 1 ? CachewRule(workers)
                      : TfDataEstimate(workers);
}

struct Result {
  double starved = 0, workers = 0, price = 0, changes = 0, reversals = 0;
};

double PriceOf(double workers, double starved) {
  return (kConsumerPrice + kWorkerPrice * workers) / std::max(0.02, 1 - starved);
}

Result MeanOf(const std::vector<Result>& results) {
  Result mean;
  const auto count = static_cast<double>(results.size());
  for (const Result& one : results) {
    mean.starved += one.starved / count;
    mean.workers += one.workers / count;
    mean.price += one.price / count;
    mean.changes += one.changes / count;
    mean.reversals += one.reversals / count;
  }
  return mean;
}

Result Simulate(const World& world, int which, int intervals) {
  std::vector<Result> results;
  for (uint64_t seed = 1; seed <= kSimulations; ++seed) {
    const Judged judged = Live(world, PolicyOf(which, world.workers), intervals, seed);
    results.push_back({judged.starved, judged.workers, PriceOf(judged.workers, judged.starved),
                       static_cast<double>(Changes(judged.wanted)),
                       static_cast<double>(Reversals(judged.wanted, 0))});
  }
  return MeanOf(results);
}

// What the processes of a job share.
struct Shared {
  std::atomic<int64_t> next_ns{0};  // when storage lets through the next batch
  std::atomic<int64_t> gap_ns{0};   // between two
  std::atomic<int> at_once{0};      // workers that start without delay
  double cv = 0, startup_s = 0;
};
Shared* shared = nullptr;

Shared* MapShared(const std::string& folder) {
  const int fd = open((folder + "/shared").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) throw Error(ExitCode::kFailure, "no memory");
  void* const at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) throw Error(ExitCode::kFailure, "no memory");
  return static_cast<Shared*>(at);
}

// Sleeps as long as a batch takes at the worker's present rate, then until storage lets it through.
class PacedOperator final : public SyntheticOperator {
 public:
  PacedOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SyntheticOperator(std::any_cast<const Cost&>(plan.spec.keys), plan, context),
        random_(std::random_device{}()) {}

 private:
  void Work(double amount, Element*) override {
    if (const int64_t now = MonotonicNs() / kIntervalNs; now != interval_) {
      interval_ = now;
      const double sigma = std::sqrt(std::log(1 + shared->cv * shared->cv));
      std::normal_distribution<double> normal(0, 1);
      rate_ = std::exp(sigma * normal(random_) - sigma * sigma / 2);
    }
    stop()->SleepFor(static_cast<int64_t>(amount / rate_));
    const int64_t gap = shared->gap_ns;
    if (gap == 0) return;
    const int64_t now = MonotonicNs();
    int64_t next = shared->next_ns;
    while (!shared->next_ns.compare_exchange_weak(next, std::max(next, now) + gap)) {
    }
    stop()->SleepFor(std::max(next, now) - now);
  }

  std::mt19937_64 random_;
  int64_t interval_ = -1;
  double rate_ = 1;
};

HR_OPERATOR("paced", PacedOperator,
            {.order = 1011,
             .keys = {},
             .needs = "a time: write { paced = \"...\" }",
             .parse = [](const SpecValue& table, const std::string& kind) -> std::any {
               return ParseTime(table, kind);
             }});

int RunWorkerProcess(const std::string& folder) {
  shared = MapShared(folder);
  if (shared->at_once.fetch_sub(1) <= 0) {
    std::mt19937_64 random(std::random_device{}());
    const double drawn = std::uniform_real_distribution<double>(0, 1)(random);
    usleep(static_cast<useconds_t>(1e6 * shared->startup_s * (0.5 - 0.5 * std::log(1 - drawn))));
  }
  return RunWorker({.place = std::make_shared<JobPlace>(folder, SecretFiles{}, false)}) ? 0 : 1;
}

// A step as long as the demand of the moment allows.
class DemandConsumer final : public Consumer {
 public:
  DemandConsumer(std::function<double(double)> demand, std::atomic<int64_t>* begin_ns)
      : demand_(std::move(demand)), begin_ns_(begin_ns) {}
  void Step(Element&&, StopSignal* stop) override {
    const int64_t now = MonotonicNs();
    int64_t none = 0;
    begin_ns_->compare_exchange_strong(none, now);
    const double passed_s = static_cast<double>(now - *begin_ns_) / 1e9;
    stop->SleepFor(static_cast<int64_t>(1e9 / demand_(passed_s * kSpeed)));
  }

 private:
  const std::function<double(double)> demand_;
  std::atomic<int64_t>* const begin_ns_;
};

// One job, in a process of its own.
class LiveJob {
 public:
  LiveJob(const World& world, int which, int intervals, std::string table, std::string folder)
      : world_(world),
        length_ns_(intervals * kIntervalNs),
        table_(std::move(table)),
        folder_(std::move(folder)),
        random_(std::random_device{}()),
        local_({"/proc/self/exe", "--worker", folder_}),
        scaling_(1, kMost, true, kBatchRows, RulesOf(which, world.workers)) {
    shared = MapShared(folder_);
    shared->cv = world.cv;
    shared->startup_s = world.startup_s / kSpeed;
    shared->at_once = world.workers;
    if (world.ceiling(0) < kNoCeiling)
      shared->gap_ns = static_cast<int64_t>(1e9 / world.ceiling(0));
  }

  Result Run() {
    std::thread handing([this] { Hand(); });
    while (!are_there_) usleep(10'000);  // as in the simulation; they start beside each other
    ReceiveJobOptions options;
    options.place = std::make_shared<JobPlace>(folder_, SecretFiles{}, false);
    options.interrupted = [this] {
      const int64_t begin = begin_ns_;
      return begin > 0 && MonotonicNs() - begin > length_ns_;
    };
    ReceiveJob rank(options, std::make_unique<DemandConsumer>(world_.demand, &begin_ns_));
    rank.Run();
    is_over_ = true;
    handing.join();
    const PipelineProgress progress = rank.progress();
    const auto waited = static_cast<double>(progress.wait_ns);
    Result result;
    result.starved = waited / (waited + static_cast<double>(progress.compute_ns));
    result.workers = worker_ns_ / static_cast<double>(length_ns_);
    result.price = PriceOf(result.workers, result.starved);
    result.changes = Changes(wanted_);
    result.reversals = Reversals(wanted_, 0);
    return result;
  }

 private:
  static experiments::ScalingRules RulesOf(int which, int workers) {
    experiments::ScalingRules rules;
    rules.observe_ns = kIntervalNs;
    rules.at_first = static_cast<uint32_t>(workers);
    if (which > 0)
      rules.policy = [policy = PolicyOf(which, workers)](const FleetObservation& seen) {
        return policy(seen, 0);
      };
    return rules;
  }

  void Hand() {
    DispatcherProcessOptions options;
    options.pipeline = table_ + "/paced.toml";
    options.settings = {{"source.epochs", "0"},
                        {"pipeline.batch_rows", std::to_string(kBatchRows)},
                        {"batch.queue", "1"}};
    options.folder = folder_;
    options.interrupted = [this] { return is_over_.load(); };
    options.watch = [this](Dispatcher* dispatcher) { return Watch(dispatcher); };
    try {
      DispatcherProcess(std::move(options)).Run();
    } catch (const Error& error) {
      fmt::print(stderr, "dispatcher: {}\n", error.what());
      _exit(1);
    }
  }

  // As `headrace service up` scales.
  std::vector<Addressed> Watch(Dispatcher* dispatcher) {
    std::vector<Addressed> say;
    const int64_t now = MonotonicNs();
    DispatcherStatus status = dispatcher->status();
    if (!has_begun_) {
      local_.ScaleTo(scaling_.wanted());
      are_there_ = are_there_ || status.workers.size() >= scaling_.wanted();
      has_begun_ = begin_ns_ > 0;
      local_.Turn(now);
      last_ns_ = now;
      return say;
    }
    worker_ns_ += static_cast<double>(status.workers.size()) * static_cast<double>(now - last_ns_);
    Fail(status, static_cast<double>(now - last_ns_) / 1e9);
    last_ns_ = now;
    Hide(now, &status);
    scaling_.Bound(local_.most());
    const auto decision = scaling_.Watch(status, now);
    local_.ScaleTo(scaling_.wanted() + experiments::DrainingWorkers(status));
    local_.Turn(now);
    if (const auto passed = (now - begin_ns_) / kIntervalNs;
        passed > static_cast<int64_t>(wanted_.size()))
      wanted_.push_back(static_cast<int>(scaling_.wanted()));
    if (!decision) return say;
    if (std::getenv("AUTOSCALE_DECISIONS") != nullptr)
      fmt::print(stderr, "{} {:.0f} s: {} -> {} ({}): {}\n", folder_,
                 static_cast<double>(now - begin_ns_) / 1e9, decision->from, decision->to,
                 decision->limit, decision->reason);
    for (const uint64_t peer : experiments::WorkersToDrain(status, *decision))
      dispatcher->Drain(peer, &say);
    return say;
  }

  void Fail(const DispatcherStatus& status, double passed_s) {
    const double chance = world_.failures_per_hour / 3600 * kSpeed * passed_s;
    for (const WorkerStatus& one : status.workers)
      if (std::uniform_real_distribution<double>(0, 1)(random_) < chance)
        kill(static_cast<pid_t>(one.pid), SIGKILL);
  }

  // An interval is unseen if the rank said nothing at its beginning or at its end.
  void Hide(int64_t now, DispatcherStatus* status) {
    if (world_.missing == 0) return;
    if (const int64_t interval = now / kIntervalNs; interval != hidden_at_) {
      hidden_at_ = interval;
      is_hidden_ =
          std::uniform_real_distribution<double>(0, 1)(random_) < 1 - std::sqrt(1 - world_.missing);
    }
    if (!is_hidden_) return;
    for (RankStatus& rank : status->ranks) rank.has_reported = false;
  }

  const World world_;
  const int64_t length_ns_;
  const std::string table_, folder_;
  std::mt19937_64 random_;
  LocalWorkers local_;
  experiments::ServiceScaling scaling_;
  std::atomic<int64_t> begin_ns_{0};
  std::atomic<bool> is_over_{false}, are_there_{false};
  // The dispatcher's thread alone.
  bool has_begun_ = false, is_hidden_ = false;
  int64_t last_ns_ = 0, hidden_at_ = 0;
  double worker_ns_ = 0;
  std::vector<int> wanted_;
};

int RunJobProcess(char** words) {
  const int intervals = std::atoi(words[3]);
  const Shape shape =
      Shapes(double(intervals) * kSteps).at(static_cast<size_t>(std::atoi(words[1])));
  const Result got = LiveJob(shape.world, std::atoi(words[2]), intervals, words[4], words[5]).Run();
  std::ofstream(std::string(words[5]) + "/result")
      << got.starved << ' ' << got.workers << ' ' << got.price << ' ' << got.changes << ' '
      << got.reversals;
  return 0;
}

std::string MakePacedTable(const std::string& scratch) {
  workloads::WorkloadSpec spec = workloads::ForModel("rm1", 0.002, 10'000, 1);
  spec.stripe_rows = kSplitRows;
  const std::string table = scratch + "/t";
  workloads::GenerateTable(spec, table);
  std::ifstream file(table + "/pipeline.toml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string before = R"(operators = ["batch")";
  const size_t at = text.find(before);
  if (at == std::string::npos) throw Error(ExitCode::kFailure, "the pipeline has no batch");
  text.insert(at + before.size(),
              fmt::format(", {{ paced = \"{}ms\" }}", std::lround(kBatchNs / 1e6)));
  std::ofstream(table + "/paced.toml") << text;
  return table;
}

// The three jobs of each shape that is given, at the same time.
std::map<size_t, std::vector<std::optional<Result>>> PlayTogether(const std::vector<size_t>& some,
                                                                  int intervals,
                                                                  const std::string& table,
                                                                  const std::string& scratch) {
  std::map<pid_t, std::string> jobs;
  std::map<size_t, std::vector<std::optional<Result>>> results;
  const auto folder_of = [&](size_t shape, int which) {
    return fmt::format("{}/{}-{}", scratch, shape, which);
  };
  for (const size_t shape : some) {
    for (int which = 0; which < 3; ++which) {
      const std::string folder = folder_of(shape, which);
      fs::create_directory(folder);
      fs::permissions(folder, fs::perms::owner_all);
      const pid_t pid = fork();
      if (pid == 0) {
        execl("/proc/self/exe", "autoscale_live", "--job", std::to_string(shape).c_str(),
              std::to_string(which).c_str(), std::to_string(intervals).c_str(), table.c_str(),
              folder.c_str(), nullptr);
        _exit(127);
      }
      jobs[pid] = folder;
    }
  }
  for (const auto& [pid, folder] : jobs) {
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0) fmt::print(stderr, "the job in {} ended with status {}\n", folder, status);
  }
  for (const size_t shape : some) {
    for (int which = 0; which < 3; ++which) {
      std::ifstream file(folder_of(shape, which) + "/result");
      Result got;
      const bool is_there =
          bool(file >> got.starved >> got.workers >> got.price >> got.changes >> got.reversals);
      results[shape].push_back(is_there ? std::optional(got) : std::nullopt);
      fs::remove_all(folder_of(shape, which));
    }
  }
  return results;
}

// What is asked for and does not hold.
std::vector<std::string> FaultsOf(const Shape& shape,
                                  const std::vector<std::optional<Result>>& live,
                                  const Result& simulated) {
  std::vector<std::string> faults;
  for (const auto& one : live)
    if (!one) return {"a job ended early"};
  const Result& ours = *live[0];
  if (ours.starved > std::max(kMore * simulated.starved, simulated.starved + kPoint))
    faults.push_back("waits more than simulated");
  if (ours.price > kMore * simulated.price) faults.push_back("costs more than simulated");
  const double others = std::max(live[1]->price, live[2]->price);
  if (ours.price > (1 + kSame) * others) faults.push_back("the worst of the three");
  if (shape.is_constant && ours.reversals > 0) faults.push_back("a reversal");
  return faults;
}

// Of each policy the mean of the rounds; empty where a job of it ended early.
std::vector<std::optional<Result>> MeansOf(
    const std::vector<std::vector<std::optional<Result>>>& rounds) {
  std::vector<std::optional<Result>> means;
  for (size_t which = 0; which < std::size(kPolicies); ++which) {
    std::vector<Result> results;
    for (const auto& round : rounds)
      if (round[which]) results.push_back(*round[which]);
    means.push_back(!rounds.empty() && results.size() == rounds.size()
                        ? std::optional(MeanOf(results))
                        : std::nullopt);
  }
  return means;
}

int Main(int intervals, size_t beside, int rounds, const std::string& only) {
  std::string scratch = (fs::temp_directory_path() / "autoscale_live.XXXXXX").string();
  if (mkdtemp(scratch.data()) == nullptr) throw Error(ExitCode::kFailure, "no scratch folder");
  const std::string table = MakePacedTable(scratch);
  const std::vector<Shape> shapes = Shapes(double(intervals) * kSteps);
  fmt::print(
      "{} intervals of {} s, {} shapes at a time, means of {} round{}; each: wait (simulated), "
      "workers, price (simulated), changes/reversals (simulated)\n{:26}",
      intervals, kIntervalNs / 1'000'000'000, beside, rounds, rounds == 1 ? "" : "s", "");
  for (const char* name : kPolicies) fmt::print("{:46}", name);
  fmt::print("\n");
  std::vector<size_t> wanted;
  for (size_t i = 0; i < shapes.size(); ++i)
    if (shapes[i].world.name.find(only) != std::string::npos) wanted.push_back(i);
  size_t wrong = 0;
  for (size_t first = 0; first < wanted.size(); first += beside) {
    const std::vector<size_t> some(
        wanted.begin() + static_cast<std::ptrdiff_t>(first),
        wanted.begin() + static_cast<std::ptrdiff_t>(std::min(first + beside, wanted.size())));
    std::map<size_t, std::vector<std::vector<std::optional<Result>>>> played;
    if (rounds == 0)
      for (const size_t at : some) played[at];
    for (int round = 0; round < rounds; ++round)
      for (auto& [at, results] : PlayTogether(some, intervals, table, scratch))
        played[at].push_back(std::move(results));
    for (const auto& [at, of_rounds] : played) {
      const std::vector<std::optional<Result>> live = MeansOf(of_rounds);
      fmt::print("{:26}", shapes[at].world.name);
      Result ours;
      for (int which = 0; which < 3; ++which) {
        const Result made = Simulate(shapes[at].world, which, intervals);
        if (which == 0) ours = made;
        const Result got = live[static_cast<size_t>(which)].value_or(Result{});
        fmt::print(
            "{:46}",
            fmt::format("{:4.1f} % ({:4.1f}) {:4.1f} {:6.2f} ({:5.2f}) {:2.0f}/{:.1f} ({:.1f})",
                        100 * got.starved, 100 * made.starved, got.workers, got.price, made.price,
                        got.changes, got.reversals, made.reversals));
      }
      const auto faults =
          rounds > 0 ? FaultsOf(shapes[at], live, ours) : std::vector<std::string>{};
      wrong += !faults.empty();
      fmt::print("{}\n", fmt::join(faults, ", "));
      std::fflush(stdout);
    }
  }
  fs::remove_all(scratch);
  fmt::print(
      "price: of an hour's demand, consumers {} and a worker {} an hour; {} of {} shapes as "
      "asked for\n",
      kConsumerPrice, kWorkerPrice, wanted.size() - wrong, wanted.size());
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    const std::string first = count > 1 ? words[1] : "";
    if (first == "--worker" && count == 3) return RunWorkerProcess(words[2]);
    if (first == "--job" && count == 7) return RunJobProcess(words + 1);
    int intervals = 120;
    size_t beside = 3;
    int rounds = 1;
    std::string only;
    for (int i = 1; i + 1 < count; i += 2) {
      const std::string name = words[i];
      if (name == "--intervals") intervals = std::max(10, std::atoi(words[i + 1]));
      if (name == "--beside") beside = static_cast<size_t>(std::max(1, std::atoi(words[i + 1])));
      if (name == "--rounds") rounds = std::max(0, std::atoi(words[i + 1]));
      if (name == "--shape") only = words[i + 1];
    }
    return Main(intervals, beside, rounds, only);
  } catch (const Error& error) {
    fmt::print(stderr, "autoscale_live: {}\n", error.what());
    return 1;
  }
}
