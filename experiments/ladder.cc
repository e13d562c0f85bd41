#include "experiments/ladder.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/run/read_run.h"
#include "analysis/statistics/paired.h"
#include "analysis/statistics/statistics.h"
#include "base/error.h"
#include "base/file.h"
#include "experiments/ab_runner.h"
#include "experiments/edited_pipeline.h"
#include "experiments/interrupt.h"
#include "experiments/ladder_accounts.h"
#include "experiments/ladder_reasons.h"
#include "experiments/ladder_rungs.h"
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

constexpr const char* kWindow = "1280KiB";
constexpr int kTrainingRows = 4096, kWorkerRows = 512;
constexpr uint64_t kLargeStripes = 4;  // times the rows
// Memory budget, as a share of what a worker takes without one.
constexpr double kMemoryShare = 0.5;

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
    const RowAccounts accounts = Load(RecordRun(run).run_id);
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
    std::vector<std::pair<RowAccounts, RowAccounts>> pairs;
    for (const auto& [a, b] : kept.runs) pairs.emplace_back(Load(a), Load(b));
    pairs_[{rung, tier}] = std::move(pairs);
  }

  void TakeDisk(size_t rung, const std::string& result) {
    RowAccounts accounts = Load(ParseRun(result));
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

  RowAccounts Load(int64_t run) const {
    return RowAccountsOf(analysis::LoadRun(options_.database, std::to_string(run)));
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
    RungRuns before, after;
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
      step.why = ExplainReaderCpu(before, after, step.ratio, published);
    } else {
      step.why = ExplainTrainerCpu(before, after, step.ratio, published);
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
  RungRuns RunsOf(size_t rung, Tier tier) const {
    RungRuns runs;
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
    const auto reader_cpu = [](const RowAccounts& run) { return run.reader_cpu_s; };
    const auto base = disk_.find(0);
    const double base_cpu = MedianOf(RunsOf(0, Tier::kReader), reader_cpu);
    for (size_t rung = 0; rung < Rungs().size(); ++rung) {
      const auto disk = disk_.find(rung);
      if (disk == disk_.end()) continue;
      LadderTotal total;
      total.rung = Rungs()[rung].name;
      const RungRuns runs = RunsOf(rung, Tier::kReader), trained = RunsOf(rung, Tier::kTrainer);
      if (!runs.empty() && base_cpu > 0) total.reader = base_cpu / MedianOf(runs, reader_cpu);
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
            MedianOf(trained, [](const RowAccounts& run) { return 1 / run.trainer_cpu_s; });
      std::vector<double> peaks;
      for (const RowAccounts& run : runs)
        if (run.peak_bytes) peaks.push_back(*run.peak_bytes);
      if (!peaks.empty()) total.peak_bytes = analysis::Quantile(std::move(peaks), 0.5);
      out_.totals.push_back(total);
    }
  }

  const LadderOptions& options_;
  Ladder& out_;
  std::map<std::pair<size_t, Tier>, std::vector<std::pair<RowAccounts, RowAccounts>>> pairs_;
  std::map<size_t, RowAccounts> disk_;
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
