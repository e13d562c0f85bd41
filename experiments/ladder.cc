#include "experiments/ladder.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/run/counter_sums.h"
#include "analysis/run/read_run.h"
#include "analysis/run/run_view.h"
#include "analysis/statistics/paired.h"
#include "analysis/statistics/statistics.h"
#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "experiments/ab_runner.h"
#include "experiments/edited_pipeline.h"
#include "experiments/interrupt.h"
#include "experiments/recorded_run.h"
#include "experiments/study_files.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"
#include "workloads/coread_log.h"
#include "workloads/rewrite.h"

namespace headrace::experiments {
namespace {

namespace fs = std::filesystem;
using analysis::Interval;
using analysis::Ladder;
using analysis::LadderStep;
using analysis::LadderTotal;
using analysis::RunView;

constexpr double kDiskBytesPerS = 150e6, kDiskSeekS = 8e-3;  // of preset "disk"
constexpr const char* kWindow = "1280KiB";
constexpr int kTrainingRows = 4096, kWorkerRows = 512;
constexpr uint64_t kLargeStripes = 4;  // times the rows
// Memory budget, as a share of what a worker takes without one.
constexpr double kMemoryShare = 0.5;
constexpr const char* kIsca = "ISCA'22, table 12 (secondary source)";
constexpr const char* kBlog = "Meta's blog, 2022";
constexpr const char* kRecd = "RecD, MLSys'23 (the most of three models)";

enum class Tier { kReader, kMemory, kStorage, kBytes, kTrainer };
const char* TierName(Tier tier) {
  return tier == Tier::kReader    ? "reader"
         : tier == Tier::kMemory  ? "memory"
         : tier == Tier::kStorage ? "storage"
         : tier == Tier::kBytes   ? "bytes"
                                  : "trainer";
}
const char* TierUnit(Tier tier) {
  return tier == Tier::kReader    ? "rows per CPU s"
         : tier == Tier::kMemory  ? "rows/s"
         : tier == Tier::kStorage ? "rows per disk s"
         : tier == Tier::kBytes   ? "bytes read a row"
                                  : "rows per CPU s";
}

struct PublishedFactor {
  double low, high;
  const char* source;
  const char* against;  // the rung that it is counted from; null: the one before
};

struct Rung {
  const char *name, *words;
  const char* table;  // folder of it, below the ladder's
  bool rowmap, coalesce, rebatch, dedup;
  std::map<Tier, PublishedFactor> published;
  // Against the first rung, where the study prints it.
  std::optional<double> reader_sum, storage_sum;
};

const std::vector<Rung>& Rungs() {
  static const std::vector<Rung> rungs = {
      {"base", "whole maps, a map per row", "map", false, false, false, false, {}, 1.0, 1.0},
      {"FF",
       "flattened maps",
       "flat",
       true,
       false,
       false,
       false,
       {{Tier::kReader, {2.0, 2.0, kIsca, nullptr}},
        {Tier::kStorage, {0.03, 0.03, kIsca, nullptr}}},
       2.0,
       0.03},
      {"FM",
       "columnar batches",
       "flat",
       false,
       false,
       false,
       false,
       {{Tier::kReader, {1.15, 1.15, kIsca, nullptr}},
        {Tier::kStorage, {1.0, 1.0, kIsca, nullptr}}},
       2.3,
       0.03},
      {"CR",
       "coalesced reads",
       "flat",
       false,
       true,
       false,
       false,
       {{Tier::kReader, {1.0, 1.0, kIsca, nullptr}},
        {Tier::kStorage, {0.99 / 0.03, 0.99 / 0.03, kIsca, nullptr}}},
       std::nullopt,
       0.99},
      {"FR",
       "features by popularity",
       "popular",
       false,
       true,
       false,
       false,
       {{Tier::kReader, {1.0, 1.0, kIsca, nullptr}},
        {Tier::kStorage, {1.84 / 0.99, 1.84 / 0.99, kIsca, nullptr}}},
       std::nullopt,
       1.84},
      {"LS",
       "large stripes",
       "large",
       false,
       true,
       false,
       false,
       {{Tier::kReader, {1.0, 1.0, kIsca, nullptr}},
        {Tier::kStorage, {2.41 / 1.84, 2.41 / 1.84, kIsca, nullptr}}},
       std::nullopt,
       2.41},
      {"RB",
       "rebatching at the client",
       "large",
       false,
       true,
       true,
       false,
       {{Tier::kMemory, {1.2, 1.4, kBlog, nullptr}}},
       std::nullopt,
       std::nullopt},
      {"CL",
       "rows clustered by session",
       "clustered",
       false,
       true,
       true,
       false,
       {{Tier::kBytes, {1 / 3.71, 1 / 3.71, kRecd, nullptr}}},
       std::nullopt,
       std::nullopt},
      {"DD",
       "deduplication",
       "clustered",
       false,
       true,
       true,
       true,
       {{Tier::kReader, {1.79, 1.79, kRecd, "RB"}}, {Tier::kTrainer, {2.48, 2.48, kRecd, "RB"}}},
       std::nullopt,
       std::nullopt}};
  return rungs;
}

size_t RungOf(const std::string& name) {
  for (size_t i = 0; i < Rungs().size(); ++i)
    if (Rungs()[i].name == name) return i;
  HR_CHECK(false, "no such rung");
  return 0;
}

size_t AgainstOf(size_t rung, Tier tier) {
  const auto found = Rungs()[rung].published.find(tier);
  if (found == Rungs()[rung].published.end() || found->second.against == nullptr) return rung - 1;
  return RungOf(found->second.against);
}

std::string FactorText(double factor) {
  return factor >= 20    ? fmt::format("{:.0f}", factor)
         : factor >= 0.1 ? fmt::format("{:.2f}", factor)
                         : fmt::format("{:.3f}", factor);
}

// The accounts of one recorded run, per row.
struct Accounts {
  double rows = 0, rate = 0;
  std::map<std::string, double> operators, trainer;  // CPU us
  double read_bytes = 0, wanted_bytes = 0, requests = 0, plain_bytes = 0;
  std::optional<double> dedup_factor, disk_s, peak_bytes, held_ratio;
  double reader_cpu_s = 0, trainer_cpu_s = 0;

  // The share of the disk's time in which it moves its head.
  double Seeking() const {
    return disk_s && *disk_s > 0 ? std::max(0.0, 1 - read_bytes / kDiskBytesPerS / *disk_s) : 0;
  }
  double OverRead() const { return read_bytes > 0 ? 1 - wanted_bytes / read_bytes : 0; }
  double Of(Tier tier) const {
    switch (tier) {
      case Tier::kReader:
        return 1 / reader_cpu_s;
      case Tier::kMemory:
        return rate;
      case Tier::kStorage:
        return 1 / disk_s.value_or(0);
      case Tier::kBytes:
        return read_bytes;
      case Tier::kTrainer:
        return 1 / trainer_cpu_s;
    }
    return 0;
  }
};

Accounts AccountsOf(const RunView& run) {
  Accounts all;
  all.rows = static_cast<double>(run.steps.rows_count);
  if (all.rows <= 0)
    throw Error(ExitCode::kInconclusive, "no row was recorded", "run " + run.run.name);
  if (run.steps.wall_ns > 0) all.rate = all.rows / (static_cast<double>(run.steps.wall_ns) * 1e-9);
  double lists_in = 0, lists_out = 0;
  const auto outside = [](const std::string& stage) {
    return stage == "client" || stage == "consumer";
  };
  for (const analysis::OperatorRow& op : run.operators) {
    const auto cpu_ns = analysis::LikelyCpuNs(op);
    if (!cpu_ns || op.source == "account")
      throw Error(ExitCode::kPrivilege, "the instrumentation has no thread CPU clock (level 2)",
                  "run " + run.run.name, "see 'headrace doctor'");
    const double cpu_us = static_cast<double>(*cpu_ns) / all.rows / 1e3;
    const double in = static_cast<double>(op.bytes_in_bytes) / all.rows;
    const double out = static_cast<double>(op.bytes_out_bytes) / all.rows;
    if (outside(op.stage)) {
      // The rest of its stage is the making of the model, once.
      if (op.kind == "trainer") all.trainer[op.name] = cpu_us;
      continue;
    }
    const std::string group = op.kind == "fetch" || op.kind == "io"          ? "fetch"
                              : op.kind == "dedup" || op.kind == "transform" ? op.kind
                                                                             : op.name;
    all.operators[group] += cpu_us;
    if (op.kind == "fetch") {
      all.read_bytes = in;
      all.wanted_bytes = out;
    }
    if (op.name == "fetch.io") all.requests = static_cast<double>(op.completions_count) / all.rows;
    if (op.name == "decompress") all.plain_bytes = out;
    if (op.kind == "dedup") {
      lists_in += in;
      lists_out += out;
    }
  }
  if (lists_out > 0) all.dedup_factor = lists_in / lists_out;
  for (const analysis::StageRow& stage : run.stages)
    if (!outside(stage.name) && stage.on_cpu_ns)
      all.reader_cpu_s += static_cast<double>(*stage.on_cpu_ns) / all.rows * 1e-9;
  for (const auto& [name, us] : all.trainer) all.trainer_cpu_s += us * 1e-6;
  for (const analysis::ResourceRow& resource : run.resources)
    if (resource.kind == "device")
      all.disk_s = static_cast<double>(resource.hold_ns) / all.rows * 1e-9;
  if (const analysis::HostRow* rss = run.FindHost("process_rss_bytes"); rss != nullptr)
    all.peak_bytes = rss->maximum_value;
  all.held_ratio = analysis::HeldForMemory(run);
  // Each is divided by.
  if (all.reader_cpu_s <= 0 || all.read_bytes <= 0)
    throw Error(ExitCode::kInconclusive, "no CPU time or no byte of the reader was counted",
                "run " + run.run.name);
  return all;
}

using Many = std::vector<Accounts>;

struct MemoryBudget {
  double bytes = 0, unbounded_bytes = 0;  // of the process
  std::string unbounded_rung;             // that takes so much without one
};

template <typename Value>
double Middle(const Many& runs, Value value) {
  std::vector<double> values;
  for (const Accounts& run : runs) values.push_back(value(run));
  return values.empty() ? 0 : analysis::Quantile(std::move(values), 0.5);
}

// --- why, from the accounts --------------------------------------------------------------------

using Parts = const std::map<std::string, double>& (*)(const Accounts&);

// What changed in the CPU time of a row, by operator.
std::string ExplainCpu(const Many& before, const Many& after, double ratio,
                       const PublishedFactor* published, Parts parts,
                       double (*whole)(const Accounts&)) {
  std::set<std::string> names;
  for (const Many* runs : {&before, &after})
    for (const Accounts& run : *runs)
      for (const auto& [name, us] : parts(run)) names.insert(name);
  const auto time_of = [&](const Many& runs, const std::string& name) {
    return Middle(runs, [&](const Accounts& run) {
      const auto found = parts(run).find(name);
      return found != parts(run).end() ? found->second : 0.0;
    });
  };
  std::vector<std::pair<double, std::string>> deltas;
  for (const std::string& name : names)
    deltas.emplace_back(time_of(after, name) - time_of(before, name), name);
  std::stable_sort(deltas.begin(), deltas.end(), [](const auto& a, const auto& b) {
    return std::abs(a.first) > std::abs(b.first);
  });
  const double was = Middle(before, whole) * 1e6, is = Middle(after, whole) * 1e6;
  std::string told;
  for (size_t i = 0; i < deltas.size() && i < 3; ++i) {
    if (std::abs(deltas[i].first) < 0.02 * was) continue;
    told += fmt::format("{}{} {:.1f} -> {:.1f}", told.empty() ? "" : ", ", deltas[i].second,
                        time_of(before, deltas[i].second), time_of(after, deltas[i].second));
  }
  std::string text = fmt::format("CPU a row {:.1f} -> {:.1f} us ({})", was, is,
                                 told.empty() ? "no operator by 2 % of it" : told);
  if (published == nullptr || (published->low * 0.9 <= ratio && ratio <= published->high * 1.1))
    return text;
  const double aim = ratio < published->low ? published->low : published->high;
  std::vector<std::string> untouched;
  double rest = 0;
  for (const auto& [delta, name] : deltas) {
    const double time = time_of(before, name);
    if (std::abs(delta) >= 0.05 * time) continue;
    untouched.push_back(name);
    rest += time;
  }
  std::sort(untouched.begin(), untouched.end());
  text += fmt::format("; x{} would be {:.1f} us", FactorText(aim), was / aim);
  if (!untouched.empty() && was - rest > 0 && is - rest > 0)
    text += fmt::format("; {} (each changed by less than 5 %) take {:.1f} us: without them x{}",
                        fmt::join(untouched, ", "), rest, FactorText((was - rest) / (is - rest)));
  return text;
}

// Bytes, requests and the head's moves.
std::string ExplainStorage(const Accounts& a, const Accounts& b, double ratio,
                           const PublishedFactor* published) {
  std::string text = fmt::format(
      "requests per 1000 rows {:.1f} -> {:.1f}, of {:.0f} -> {:.0f} KB; read {:.0f} -> {:.0f} B a "
      "row, over-read {} -> {} of it; head moves {} -> {} of the disk's time",
      a.requests * 1e3, b.requests * 1e3, a.read_bytes / a.requests / 1e3,
      b.read_bytes / b.requests / 1e3, a.read_bytes, b.read_bytes, FormatPercent(a.OverRead()),
      FormatPercent(b.OverRead()), FormatPercent(a.Seeking()), FormatPercent(b.Seeking()));
  if (published == nullptr || !a.disk_s || !b.disk_s ||
      (published->low * 0.9 <= ratio && ratio <= published->high / 0.9))
    return text;
  if (b.OverRead() > 0.01)
    text += fmt::format(
        "; with these moves and no over-read x{}",
        FactorText(*a.disk_s / (*b.disk_s - b.read_bytes * b.OverRead() / kDiskBytesPerS)));
  const double aim = published->low, left = *a.disk_s / aim - b.read_bytes / kDiskBytesPerS;
  if (left > 0)
    return text + fmt::format("; x{} would be {:.1f} moves per 1000 rows, not {:.1f}",
                              FactorText(aim), left / kDiskSeekS * 1e3,
                              *b.disk_s * b.Seeking() / kDiskSeekS * 1e3);
  return text + fmt::format(
                    "; x{} cannot be reached by fewer requests: the bytes alone take {:.1f} "
                    "us a row, x{}",
                    FactorText(aim), b.read_bytes / kDiskBytesPerS * 1e6,
                    FactorText(*a.disk_s * kDiskBytesPerS / b.read_bytes));
}

// What a memory budget does to each side.
std::string ExplainMemory(const Many& before, const Many& after, const MemoryBudget& budget,
                          int cores) {
  std::string text = fmt::format(
      "a worker on {} cores, batches of a stripe -> small ones that are joined elsewhere, within "
      "{}, {} of what {} takes where nothing bounds it",
      cores, FormatBytes(budget.bytes), FormatPercent(budget.bytes / budget.unbounded_bytes),
      budget.unbounded_rung);
  const auto both = [&](const char* what, std::optional<double> Accounts::*figure,
                        std::string (*words)(double)) {
    const auto known = [&](const Accounts& run) { return (run.*figure).has_value(); };
    if (!std::all_of(before.begin(), before.end(), known) ||
        !std::all_of(after.begin(), after.end(), known))
      return;
    const auto middle = [&](const Many& runs) {
      return words(Middle(runs, [&](const Accounts& run) { return *(run.*figure); }));
    };
    text += fmt::format("; {} {} -> {}", what, middle(before), middle(after));
  };
  both("the source waits for memory", &Accounts::held_ratio,
       [](double ratio) { return FormatPercent(ratio) + " of its time"; });
  both("most resident", &Accounts::peak_bytes, [](double bytes) { return FormatBytes(bytes); });
  return text;
}

std::string ExplainBytes(const Accounts& a, const Accounts& b) {
  return fmt::format(
      "the projected streams are {:.0f} -> {:.0f} B a row uncompressed, {:.0f} -> {:.0f} B stored "
      "(compression {:.2f} -> {:.2f}): without over-read x{}",
      a.plain_bytes, b.plain_bytes, a.wanted_bytes, b.wanted_bytes, a.plain_bytes / a.wanted_bytes,
      b.plain_bytes / b.wanted_bytes, FactorText(b.wanted_bytes / a.wanted_bytes));
}

// --- climbing ----------------------------------------------------------------------------------

// The calling thread, and what it starts, on one CPU for as long as this lives.
class OnOneCpu {
 public:
  explicit OnOneCpu(int cpu) {
    if (sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(cpu), &one);
    changed_ = sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  ~OnOneCpu() {
    if (changed_) sched_setaffinity(0, sizeof(before_), &before_);
  }
  OnOneCpu(const OnOneCpu&) = delete;
  OnOneCpu& operator=(const OnOneCpu&) = delete;

 private:
  cpu_set_t before_;
  bool changed_ = false;
};

class Climb {
 public:
  Climb(const LadderOptions& options, Ladder* out) : options_(options), out_(*out) {}

  void MakeTables() {
    const auto stop = [](double, const std::string&) {
      if (Interrupted()) throw Error(ExitCode::kInterrupted, "interrupted");
    };
    const auto rewrite = [&](const std::string& from, const char* to,
                             const workloads::RewriteOptions& how) {
      workloads::RewriteTable(from, Place(to), how, stop, true);
    };
    std::error_code failed;
    fs::create_directories(options_.folder, failed);
    workloads::RewriteOptions map, popular, large, clustered;
    map.layout = workloads::MapLayout::kMap;
    rewrite(options_.table, "map", map);
    popular.order = workloads::FeatureOrder::kPopularity;
    popular.jobs = Jobs();
    rewrite(options_.table, "popular", popular);
    const reader::Table table = reader::OpenTable(options_.table);
    const uint64_t rows = table.splits.empty() ? 0 : table.splits[0].rows;
    large.stripe_rows = std::max<uint64_t>(1, kLargeStripes * rows);
    rewrite(Place("popular"), "large", large);
    clustered.cluster = "session_id";
    rewrite(Place("large"), "clustered", clustered);
  }

  // Pairs of runs of the rung and the one it is counted from.
  std::string RunPairsOf(size_t rung, Tier tier, size_t against) const {
    // Memory bounds how many threads have work: there must be cores for more than one.
    std::optional<OnOneCpu> one;
    if (tier != Tier::kMemory) one.emplace(options_.cpu);
    AbOptions ab;
    ab.a = Side(against, tier);
    ab.b = Side(rung, tier);
    RungPairs kept;
    if (tier == Tier::kMemory) {
      const double unbounded = UnboundedBytes(ab.a, against);
      const double bytes = std::floor(kMemoryShare * unbounded);
      for (AbSide* side : {&ab.a, &ab.b})
        side->settings.push_back(fmt::format("pipeline.memory={:.0f}", bytes));
      kept.memory_bytes = bytes;
      kept.unbounded_bytes = unbounded;
    }
    ab.a.label = Rungs()[against].name;
    ab.b.label = Rungs()[rung].name;
    ab.pairs = tier == Tier::kTrainer ? options_.trainer_pairs : options_.pairs;
    ab.a.settings.push_back(Epochs(against, tier));
    ab.b.settings.push_back(Epochs(rung, tier));
    ab.database = options_.database;
    ab.name = fmt::format("ladder-{}-{}", Rungs()[rung].name, TierName(tier));
    ab.seed = options_.seed + rung;
    ab.quiet = true;
    const AbResult result = RunPairs(ab);
    if (result.end == AbEnd::kInterrupted) throw Error(ExitCode::kInterrupted, "interrupted");
    for (const AbPair& pair : result.pairs) kept.runs.emplace_back(pair.a.run_id, pair.b.run_id);
    return PairsJson(kept);
  }

  // Likewise, of a rung that is left out where it cannot be measured.
  std::string TryPairsOf(size_t rung, Tier tier, size_t against) const {
    try {
      return RunPairsOf(rung, tier, against);
    } catch (const Error& error) {
      // Half of the memory may be too little for a split, or for the process at rest.
      constexpr ExitCode kTooSmall[] = {ExitCode::kResources, ExitCode::kUsage,
                                        ExitCode::kInconclusive};
      if (std::find(std::begin(kTooSmall), std::end(kTooSmall), error.code()) ==
          std::end(kTooSmall))
        throw;
      RungPairs none;
      none.left_out = fmt::format("{}, {}: {}", Rungs()[rung].name, TierName(tier), error.fact());
      return PairsJson(none);
    }
  }

  // The most resident bytes of that rung's process on all cores, without a budget.
  double UnboundedBytes(const AbSide& side, size_t rung) const {
    RecordedRun run{side.pipeline, options_.database,
                    fmt::format("ladder-{}-unbounded", Rungs()[rung].name), side.settings,
                    side.arguments};
    run.settings.push_back(Epochs(rung, Tier::kMemory));
    run.settings.push_back("pipeline.memory=0");
    const Accounts accounts = Load(RecordRun(run).run_id);
    if (!accounts.peak_bytes)
      throw Error(ExitCode::kInconclusive, "the process's memory was not recorded",
                  fmt::format("rung {}", Rungs()[rung].name));
    return *accounts.peak_bytes;
  }

  std::string RunDisk(size_t rung) const {
    const AbSide side = Side(rung, Tier::kStorage);
    RecordedRun run{side.pipeline, options_.database,
                    fmt::format("ladder-{}-storage", Rungs()[rung].name), side.settings,
                    side.arguments};
    run.settings.push_back("source.epochs=1");
    return RunJson(RecordRun(run).run_id);
  }

  void TakePairs(size_t rung, Tier tier, const std::string& result) {
    const RungPairs kept = ParsePairs(result);
    left_out_.erase({rung, tier});
    pairs_.erase({rung, tier});
    if (kept.runs.empty()) {
      left_out_[{rung, tier}] = kept.left_out;
      return;
    }
    if (tier == Tier::kMemory) {
      if (!kept.memory_bytes || !kept.unbounded_bytes)
        throw Error(ExitCode::kBadData, "lacks the budget of memory");
      budgets_[rung] = {*kept.memory_bytes, *kept.unbounded_bytes,
                        Rungs()[AgainstOf(rung, tier)].name};
    }
    std::vector<std::pair<Accounts, Accounts>> pairs;
    for (const auto& [a, b] : kept.runs) pairs.emplace_back(Load(a), Load(b));
    pairs_[{rung, tier}] = std::move(pairs);
  }

  void TakeDisk(size_t rung, const std::string& result) {
    Accounts accounts = Load(ParseRun(result));
    if (!accounts.disk_s || *accounts.disk_s <= 0)
      throw Error(ExitCode::kInconclusive, "no time of the modelled disk was recorded",
                  fmt::format("rung {}", Rungs()[rung].name));
    disk_[rung] = std::move(accounts);
  }

  void Finish() {
    out_ = Ladder{};
    out_.table = options_.name;
    for (const auto& [step, reason] : left_out_) out_.left_out.push_back(reason);
    out_.conditions = fmt::format(
        "{}; from LS on stripes of {} times the rows; {} pairs of runs of about {:g} s of CPU time "
        "for the reader, {} for the trainer, on one core (of tier memory on all of them), in drawn "
        "ABBA order; the storage is a "
        "modelled disk "
        "(150 MB/s, 8 ms to move the head), whose time is the same in every run",
        options_.about, kLargeStripes, options_.pairs, options_.seconds, options_.trainer_pairs);
    for (size_t rung = 1; rung < Rungs().size(); ++rung) {
      AddPaired(rung, Tier::kReader);
      if (Rungs()[rung].published.count(Tier::kMemory) > 0) AddPaired(rung, Tier::kMemory);
      AddExact(rung, Tier::kStorage);
      if (Rungs()[rung].published.count(Tier::kBytes) > 0) AddExact(rung, Tier::kBytes);
      if (Rungs()[rung].published.count(Tier::kTrainer) > 0) AddPaired(rung, Tier::kTrainer);
    }
    AddTotals();
  }

 private:
  std::string Place(const char* name) const {
    return std::string(name) == "flat" ? options_.table
                                       : (fs::path(options_.folder) / name).string();
  }

  Accounts Load(int64_t run) const {
    return AccountsOf(analysis::LoadRun(options_.database, std::to_string(run)));
  }

  // A log of jobs drawn by the popularity of features that the table's own table.json tells.
  std::vector<workloads::CoreadJob> Jobs() const {
    if (!options_.coread.empty()) return workloads::LoadCoread(options_.coread);
    const std::string path = (fs::path(options_.table) / "table.json").string();
    const nlohmann::json json = nlohmann::json::parse(ReadWholeFile(path), nullptr, false);
    if (!json.is_object() || !json.contains("features") || !json["features"].is_array())
      throw Error(ExitCode::kBadData, "has no popularity of features", path,
                  "give a log of jobs: --coread FILE");
    analysis::Random random(options_.seed);
    std::vector<workloads::CoreadJob> jobs(options_.jobs);
    const auto popularity = [](const nlohmann::json& feature) {
      const auto found = feature.find("popularity");
      return found != feature.end() && found->is_number() ? found->get<double>() : 0.0;
    };
    for (workloads::CoreadJob& job : jobs)
      for (const nlohmann::json& feature : json["features"])
        if (feature.is_object() && feature.contains("feature") && feature["feature"].is_string() &&
            random.Uniform() < popularity(feature))
          job.features.push_back(feature["feature"].get<std::string>());
    return jobs;
  }

  // The pipeline file with this rung's table and operators, and its knobs.
  AbSide Side(size_t number, Tier tier) const {
    const Rung& rung = Rungs()[number];
    AbSide side;
    side.pipeline = (fs::path(options_.folder) / (std::string(rung.name) + ".toml")).string();
    PipelineEdit edit;
    edit.table = fs::absolute(Place(rung.table)).lexically_normal().string();
    edit.rowmap = rung.rowmap;
    // A worker whose memory is bounded does not join training batches: a client does that
    // elsewhere.
    const bool worker = tier == Tier::kMemory;
    edit.rebatch = rung.rebatch && !worker;
    WriteEdited(options_.pipeline, edit, side.pipeline);
    side.settings = {
        fmt::format("source.coalesce_gap={}", rung.coalesce ? kWindow : "0"),
        fmt::format("source.coalesce_max={}", kWindow),
        fmt::format("pipeline.batch_rows={}", worker ? WorkerRows(rung) : kTrainingRows),
        fmt::format("dedup.mode={}", rung.dedup ? "auto" : "off"),
        fmt::format("consumer.kind={}", tier == Tier::kTrainer ? "trainer" : "emulated"),
        "consumer.step=0"};
    if (edit.rebatch) side.settings.push_back(fmt::format("pipeline.worker_rows={}", kWorkerRows));
    if (worker) {
      for (const reader::StageSpec& stage : reader::LoadPipeline(side.pipeline).stages) {
        const auto cores = static_cast<uint32_t>(options_.cores);
        const uint32_t threads =
            stage.max_parallelism > 0 ? std::min(cores, stage.max_parallelism) : cores;
        side.settings.push_back(fmt::format("{}.parallelism={}", stage.name, threads));
      }
    }
    if (tier == Tier::kStorage) side.settings.push_back("source.throttle.preset=disk");
    side.arguments = {"--level", "2"};
    return side;
  }

  // Rows of a batch of a worker whose memory is bounded: training batches hold a stripe, so that
  // they and not the stripe being decoded are what takes the memory; small ones a part of it.
  uint64_t WorkerRows(const Rung& rung) const {
    const reader::Table table = reader::OpenTable(Place("large"));
    const uint64_t stripe = table.splits.empty() ? 1 : table.splits[0].rows;
    return rung.rebatch ? std::clamp<uint64_t>(stripe / 2, 1, kWorkerRows) : stripe;
  }

  // Whole epochs, so many that the reader's CPU time of a run is about what was asked for: by the
  // clock a run on a busy machine might read nothing.
  std::string Epochs(size_t rung, Tier tier) const {
    const auto disk = disk_.find(rung);
    double epochs = 1;
    if ((tier == Tier::kReader || tier == Tier::kMemory) && disk != disk_.end()) {
      // On all cores, and by the clock: filling and draining must be a small part.
      const double cpu_s = options_.seconds * (tier == Tier::kMemory ? 3 * options_.cores : 1);
      epochs = std::ceil(cpu_s / (disk->second.reader_cpu_s * disk->second.rows));
    }
    return fmt::format("source.epochs={:.0f}", std::clamp(epochs, 1.0, 1000.0));
  }

  LadderStep Begin(size_t rung, Tier tier, size_t against) const {
    LadderStep step;
    step.rung = Rungs()[rung].name;
    step.words = Rungs()[rung].words;
    step.figure = TierName(tier);
    step.unit = TierUnit(tier);
    step.against = Rungs()[against].name;
    if (const PublishedFactor* published = PublishedOf(rung, tier)) {
      step.published = Interval{published->low, published->high};
      step.source = published->source;
    }
    return step;
  }

  const PublishedFactor* PublishedOf(size_t rung, Tier tier) const {
    const auto found = Rungs()[rung].published.find(tier);
    return found != Rungs()[rung].published.end() ? &found->second : nullptr;
  }

  void Add(LadderStep step) {
    step.sign = analysis::SignOf(step.published, step.interval);
    out_.opposite = out_.opposite || step.sign == "OPPOSITE";
    out_.steps.push_back(std::move(step));
  }

  void AddPaired(size_t rung, Tier tier) {
    const auto found = pairs_.find({rung, tier});
    if (found == pairs_.end() || found->second.empty()) return;
    LadderStep step = Begin(rung, tier, AgainstOf(rung, tier));
    std::vector<double> a, b;
    Many before, after;
    for (const auto& [first, second] : found->second) {
      a.push_back(first.Of(tier));
      b.push_back(second.Of(tier));
      before.push_back(first);
      after.push_back(second);
    }
    const analysis::RatioEstimate ratio = analysis::PairedLogRatio(a, b, 0.95, options_.seed);
    step.pairs = ratio.pairs;
    step.ratio = std::exp(ratio.log_ratio);
    step.interval = {std::exp(ratio.interval.low), std::exp(ratio.interval.high)};
    step.before = analysis::Quantile(a, 0.5);
    step.after = analysis::Quantile(b, 0.5);
    const PublishedFactor* published = PublishedOf(rung, tier);
    if (tier == Tier::kMemory) {
      step.why = ExplainMemory(before, after, budgets_.at(rung), options_.cores);
    } else if (tier == Tier::kReader) {
      step.why = ExplainCpu(
          before, after, step.ratio, published,
          [](const Accounts& run) -> const std::map<std::string, double>& { return run.operators; },
          [](const Accounts& run) { return run.reader_cpu_s; });
    } else {
      step.why = ExplainCpu(
          before, after, step.ratio, published,
          [](const Accounts& run) -> const std::map<std::string, double>& { return run.trainer; },
          [](const Accounts& run) { return run.trainer_cpu_s; });
      if (after[0].dedup_factor)
        step.why += fmt::format(
            "; the grouped lists are {:.2f} times as many bytes as their unique ones and the "
            "inverse",
            *after[0].dedup_factor);
    }
    Add(std::move(step));
  }

  void AddExact(size_t rung, Tier tier) {
    const size_t against = AgainstOf(rung, tier);
    const auto a = disk_.find(against), b = disk_.find(rung);
    if (a == disk_.end() || b == disk_.end()) return;
    LadderStep step = Begin(rung, tier, against);
    step.before = a->second.Of(tier);
    step.after = b->second.Of(tier);
    step.ratio = step.after / step.before;
    step.interval = {step.ratio, step.ratio};
    step.pairs = 1;
    step.why = tier == Tier::kBytes
                   ? ExplainBytes(a->second, b->second)
                   : ExplainStorage(a->second, b->second, step.ratio, PublishedOf(rung, tier));
    Add(std::move(step));
  }

  // The rung's own runs of that tier: as the later side of its pairs, or the earlier of others'.
  Many RunsOf(size_t rung, Tier tier) const {
    Many runs;
    for (const auto& [key, pairs] : pairs_) {
      if (key.second != tier) continue;
      for (const auto& [first, second] : pairs) {
        if (key.first == rung) runs.push_back(second);
        if (AgainstOf(key.first, tier) == rung) runs.push_back(first);
      }
    }
    return runs;
  }

  void AddTotals() {
    const auto reader_cpu = [](const Accounts& run) { return run.reader_cpu_s; };
    const auto base = disk_.find(0);
    const double base_cpu = Middle(RunsOf(0, Tier::kReader), reader_cpu);
    for (size_t rung = 0; rung < Rungs().size(); ++rung) {
      const auto disk = disk_.find(rung);
      if (disk == disk_.end()) continue;
      LadderTotal total;
      total.rung = Rungs()[rung].name;
      const Many runs = RunsOf(rung, Tier::kReader), trained = RunsOf(rung, Tier::kTrainer);
      if (!runs.empty() && base_cpu > 0) total.reader = base_cpu / Middle(runs, reader_cpu);
      if (base != disk_.end())
        total.storage = disk->second.Of(Tier::kStorage) / base->second.Of(Tier::kStorage);
      total.published_reader = Rungs()[rung].reader_sum;
      total.published_storage = Rungs()[rung].storage_sum;
      total.storage_rows_per_s = disk->second.rate;
      total.read_bytes_per_row = disk->second.read_bytes;
      total.requests_per_row = disk->second.requests;
      total.over_read_ratio = disk->second.OverRead();
      if (!trained.empty())
        total.trainer_rows_per_cpu_s =
            Middle(trained, [](const Accounts& run) { return 1 / run.trainer_cpu_s; });
      std::vector<double> peaks;
      for (const Accounts& run : runs)
        if (run.peak_bytes) peaks.push_back(*run.peak_bytes);
      if (!peaks.empty()) total.peak_bytes = analysis::Quantile(std::move(peaks), 0.5);
      out_.totals.push_back(total);
    }
  }

  const LadderOptions& options_;
  Ladder& out_;
  std::map<std::pair<size_t, Tier>, std::vector<std::pair<Accounts, Accounts>>> pairs_;
  std::map<size_t, Accounts> disk_;
  std::map<size_t, MemoryBudget> budgets_;
  std::map<std::pair<size_t, Tier>, std::string> left_out_;
};

}  // namespace

std::vector<StudyStep> LadderSteps(const LadderOptions& options, Ladder* out) {
  const auto climb = std::make_shared<Climb>(options, out);  // by all steps
  const std::string name = "ladder of " + options.name;
  std::vector<StudyStep> steps;
  steps.push_back({"ladder.tables", name + ": writes the tables of its rungs", 12,
                   [climb] {
                     climb->MakeTables();
                     return std::string("{}\n");
                   },
                   [](const std::string&) {},
                   [&options](const std::string&) {
                     std::error_code ignored;
                     return fs::exists(fs::path(options.folder) / "clustered", ignored);
                   }});
  const double each = options.seconds + 0.5;
  const auto add = [&](size_t rung, Tier tier, size_t pairs) {
    const size_t against = AgainstOf(rung, tier);
    steps.push_back(
        {fmt::format("ladder.{}.{}", Rungs()[rung].name, TierName(tier)),
         fmt::format("{}: {} against {}, {}", name, Rungs()[rung].name, Rungs()[against].name,
                     TierName(tier)),
         2 * static_cast<double>(pairs) * each,
         [climb, rung, tier, against] {
           return tier == Tier::kMemory ? climb->TryPairsOf(rung, tier, against)
                                        : climb->RunPairsOf(rung, tier, against);
         },
         [climb, rung, tier](const std::string& result) { climb->TakePairs(rung, tier, result); }});
  };
  for (size_t rung = 0; rung < Rungs().size(); ++rung) {
    steps.push_back({fmt::format("ladder.{}.storage", Rungs()[rung].name),
                     fmt::format("{}: {} behind a modelled disk", name, Rungs()[rung].name), 3,
                     [climb, rung] { return climb->RunDisk(rung); },
                     [climb, rung](const std::string& result) { climb->TakeDisk(rung, result); }});
    if (rung == 0) continue;
    add(rung, Tier::kReader, options.pairs);
    if (Rungs()[rung].published.count(Tier::kMemory) > 0) add(rung, Tier::kMemory, options.pairs);
    if (Rungs()[rung].published.count(Tier::kTrainer) > 0)
      add(rung, Tier::kTrainer, options.trainer_pairs);
  }
  // Not a measurement: it is done anew in every run of the command.
  const auto last = steps.back().take;
  steps.back().take = [climb, last](const std::string& result) {
    last(result);
    climb->Finish();
  };
  return steps;
}

}  // namespace headrace::experiments
