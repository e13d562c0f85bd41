#include "experiments/study.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/advice/statements.h"
#include "analysis/model/row_cost.h"
#include "analysis/run/byte_flow.h"
#include "analysis/run/read_run.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "collectors/store/store.h"
#include "experiments/edited_pipeline.h"
#include "experiments/interrupt.h"
#include "experiments/ladder.h"
#include "experiments/recorded_run.h"
#include "experiments/study_folder.h"
#include "experiments/study_work.h"
#include "experiments/table_facts.h"
#include "reader/dwrf/file_reader.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"
#include "reader/source/open.h"
#include "workloads/generator.h"

namespace headrace::experiments {
namespace {

namespace fs = std::filesystem;
using analysis::RunView;

// The published rm2 held 1.20 GB/s at its NIC, where rm1, held by its cores, read 0.80 GB/s: the
// modelled NIC is so much of what rm1 reads here when the cores limit it.
constexpr double kNicOverRm1 = 1.20 / 0.80;

double HostCores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return std::max(1, CPU_COUNT(&allowed));
}

class Study {
 public:
  Study(const StudyOptions& options, std::string program)
      : options_(options),
        program_(std::move(program)),
        sizes_(SizesFor(options.quick)),
        cores_(HostCores()) {}

  analysis::Characterization Run() {
    InstallInterruptHandler();
    CheckOptions();
    works_ = ChooseWork(options_, sizes_, cores_);
    CheckSpace();
    folder_.emplace(options_.folder, InputsOf(works_, options_, cores_), options_.fresh);
    database_ = folder_->PathOf("runs.db");
    Plan();
    folder_->Run(steps_, options_.quiet);
    analysis::Characterization study = Describe();
    if (!options_.ladder_only)
      for (StudyWork& work : works_) study.sheets.push_back(SheetOf(&work));
    if (has_ladder_) study.ladder = std::move(ladder_);
    study.no_ladder = options_.no_ladder ? "left out: --no-ladder" : no_ladder_;
    study.minutes = folder_->seconds() / 60;
    return study;
  }

  const std::string& database() const { return database_; }

 private:
  // Before anything is written.
  void CheckOptions() const {
    if (!options_.duration.empty() && ParseDuration(options_.duration, "--duration") <= 0)
      throw Error(ExitCode::kUsage, "must be longer than 0", "--duration");
    if (!options_.nic_rate.empty() && RateOf(options_.nic_rate) <= 0)
      throw Error(ExitCode::kUsage, "must be above 0", "--nic-rate");
    if (!options_.memory.empty() && ParseBytes(options_.memory, "--memory") == 0)
      throw Error(ExitCode::kUsage, "must be above 0", "--memory");
    // CLI11's ranges let NaN through.
    for (const auto& [name, price] : {std::pair{"--core-hour-price", options_.prices.core_hour},
                                      {"--watts-per-core", options_.prices.watts_per_core},
                                      {"--kwh-price", options_.prices.energy_kwh}})
      if (price && !std::isfinite(*price)) throw Error(ExitCode::kUsage, "is not a number", name);
    for (const std::string& text : options_.set) reader::ParseSetting(text);
  }

  // Before the first byte is written.
  void CheckSpace() const {
    fs::path place = fs::absolute(options_.folder);
    std::error_code ignored;
    while (!fs::exists(place, ignored) && place.has_relative_path()) place = place.parent_path();
    CheckRoom(place.string(), BytesOf(works_, options_));
  }

  // --- steps -------------------------------------------------------------------------------------

  void Plan() {
    if (options_.ladder_only) {
      if (works_.front().spec) AddTableStep(works_.front().name, *works_.front().spec);
    } else {
      const bool generated = std::any_of(works_.begin(), works_.end(),
                                         [](const StudyWork& work) { return !!work.spec; });
      if (generated && options_.nic_rate.empty()) PlanReference();
      for (StudyWork& work : works_) PlanWork(&work);
    }
    if (!options_.no_ladder) PlanLadder();
  }

  // Plans the ladder on the first workload. Its table will be written five more times, so it must
  // be small and local.
  void PlanLadder() {
    const StudyWork& work = works_.front();
    constexpr double kMostBytes = 512 << 20;
    climb_.name = work.name;
    climb_.folder = folder_->PathOf("ladder");
    climb_.database = database_;
    climb_.coread = options_.coread;
    climb_.seed = options_.seed;
    climb_.pairs = options_.pairs.value_or(options_.quick ? 3 : 6);
    climb_.trainer_pairs = std::max<size_t>(2, climb_.pairs / 2);
    climb_.seconds = options_.quick ? 0.4 : 1.0;
    climb_.cpu = LastCpu();
    climb_.cores = std::max(1, static_cast<int>(cores_));
    climb_.table =
        work.spec ? folder_->PathOf(work.name) : reader::ParseSetting(work.settings[0]).second;
    climb_.pipeline = work.spec ? folder_->PathOf(work.name + "/pipeline.toml") : work.pipeline;
    if (work.spec) {
      climb_.about =
          fmt::format("{} rows, {:g} of the features, stripes of {} rows", work.spec->rows,
                      work.spec->feature_fraction, work.spec->stripe_rows);
    } else {
      no_ladder_ = WhyNoLadder(kMostBytes);
      climb_.about = "the table as it is";
      if (!no_ladder_.empty()) return;
    }
    for (StudyStep& step : LadderSteps(climb_, &ladder_)) AddStep(std::move(step));
    has_ladder_ = true;
  }

  std::string WhyNoLadder(double most_bytes) const {
    if (reader::IsRemote(climb_.table))
      return "its rungs are copies of the table in other layouts, and this one is far away";
    const reader::Table table = reader::OpenTable(climb_.table);
    double bytes = 0;
    for (const auto& file : table.files) bytes += static_cast<double>(file->source().size());
    if (bytes > most_bytes)
      return fmt::format(
          "its rungs are copies of the table in other layouts, and this one has {} "
          "(at most {}): cut a part of it out",
          FormatBytes(bytes), FormatBytes(most_bytes));
    if (!table.files[0]->schema().FindColumn("session_id"))
      return "the table has no column session_id to cluster it by";
    std::error_code ignored;
    if (options_.coread.empty() && !fs::exists(fs::path(climb_.table) / "table.json", ignored))
      return "no log tells what other jobs read, for the order of features: --coread FILE";
    return "";
  }

  static int LastCpu() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
    for (int cpu = CPU_SETSIZE - 1; cpu > 0; --cpu)
      if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) return cpu;
    return 0;
  }

  double WorkerSeconds() const {
    return options_.duration.empty()
               ? sizes_.worker_s
               : static_cast<double>(ParseDuration(options_.duration, "--duration")) * 1e-9;
  }

  void AddStep(StudyStep step) { steps_.push_back(std::move(step)); }

  void AddTableStep(const std::string& name, const workloads::WorkloadSpec& spec) {
    AddStep({name + ".table", name + ": writes the table",
             1 + 1.2e-7 * static_cast<double>(spec.rows) * 400 * spec.feature_fraction,
             [this, name, spec] {
               const auto table = workloads::GenerateTable(
                   spec, folder_->PathOf(name),
                   [](double, const std::string&) {
                     if (Interrupted()) throw Error(ExitCode::kInterrupted, "interrupted");
                   },
                   true);
               return nlohmann::json{{"bytes", table.file_bytes}}.dump() + "\n";
             },
             [](const std::string&) {},
             [this, name](const std::string&) {
               std::error_code ignored;
               return fs::exists(folder_->PathOf(name + "/table.json"), ignored);
             }});
  }

  void AddRunStep(const std::string& step, const std::string& words, double seconds,
                  const std::function<RecordedRun()>& what, std::optional<int64_t>* run) {
    AddStep({step, words, seconds + 1.2, [what] { return RunJson(RecordRun(what()).run_id); },
             [run](const std::string& result) { *run = ParseRun(result); },
             [this](const std::string& result) {
               analysis::LoadRun(database_, std::to_string(ParseRun(result)));  // throws: not there
               return true;
             }});
  }

  std::string PipelineOf(const StudyWork& work) const {
    if (!work.pipeline.empty()) return work.pipeline;
    const std::string made = folder_->PathOf(work.name + "/pipeline.toml");
    if (work.one_stage_threads <= 0) return made;
    PipelineEdit edit;
    edit.table = fs::absolute(folder_->PathOf(work.name)).lexically_normal().string();
    edit.one_stage_threads = work.one_stage_threads;
    const std::string edited = folder_->PathOf(work.name + ".worker.toml");
    WriteEdited(made, edit, edited);
    return edited;
  }

  RecordedRun RunOf(const StudyWork& work, const std::string& name, double seconds) const {
    RecordedRun run{PipelineOf(work),
                    database_,
                    name,
                    work.settings,
                    {"--duration", fmt::format("{}ms", std::llround(1e3 * seconds))}};
    run.settings.insert(run.settings.end(), options_.set.begin(), options_.set.end());
    return run;
  }

  // What rm1 reads when the cores limit it: the NIC that all generated workloads get is scaled by
  // it, as published nodes had one NIC for all.
  void PlanReference() {
    const auto rm1 = std::find_if(works_.begin(), works_.end(),
                                  [](const StudyWork& work) { return work.model == "rm1"; });
    reference_ = rm1 != works_.end() ? *rm1 : ReferenceWork(options_, sizes_, cores_);
    AddTableStep("rm1", *reference_.spec);
    AddRunStep(
        "rm1.reference", "rm1: what it reads when CPU cores are the limit", WorkerSeconds() / 2,
        [this] { return RunOf(reference_, "rm1 reference", WorkerSeconds() / 2); },
        &reference_.worker);
  }

  // 1.5 times the bytes that rm1 reads in a second of all cores' CPU time: by CPU time and not by
  // the clock, as other programs on the machine change that least.
  double NicRate() const {
    if (!options_.nic_rate.empty()) return RateOf(options_.nic_rate);
    const RunView run = analysis::LoadRun(database_, std::to_string(*reference_.worker));
    const analysis::PipelineModel model(run);
    const analysis::RowCost cost = analysis::RowCostOf(model);
    if (!cost.figures.stored_bytes || cost.figures.cpu_s() <= 0)
      throw Error(ExitCode::kInconclusive, "the run of rm1 does not say what it reads or computes",
                  "rm1 reference", "give the NIC's rate: --nic-rate 400MB/s");
    return kNicOverRm1 * cores_ * *cost.figures.stored_bytes / cost.figures.cpu_s();
  }

  static double RateOf(std::string text) {
    if (text.ends_with("/s")) text.resize(text.size() - 2);
    return static_cast<double>(ParseBytes(text, "--nic-rate"));
  }

  double GivenMemory() const {
    return static_cast<double>(ParseBytes(options_.memory, "--memory"));
  }

  // The conditions that are known once earlier steps are.
  std::vector<std::string> Limits(StudyWork* work) {
    std::vector<std::string> settings;
    analysis::WorkerConditions& conditions = work->inputs.conditions;
    if (work->spec || !options_.nic_rate.empty()) {
      const bool first = !conditions.nic_bytes_per_s;
      if (first) conditions.nic_bytes_per_s = NicRate();
      settings.push_back(
          fmt::format("source.throttle.bandwidth={:.0f}B/s", *conditions.nic_bytes_per_s));
      if (first) {
        conditions.words.push_back(fmt::format(
            "a modelled NIC of {}{}", FormatBytesRate(*conditions.nic_bytes_per_s),
            options_.nic_rate.empty()
                ? fmt::format(": {:g} times what rm1 reads in a second of these cores' CPU time",
                              kNicOverRm1)
                : ", as given"));
      }
    }
    if (!options_.memory.empty()) {
      const bool first = conditions.memory_bytes != GivenMemory();
      conditions.memory_bytes = GivenMemory();
      if (first)
        conditions.words.push_back(fmt::format("a memory budget of {}, as given", options_.memory));
      settings.push_back("pipeline.memory=" + options_.memory);
    }
    return settings;
  }

  void PlanWork(StudyWork* work) {
    if (work->spec) AddTableStep(work->name, *work->spec);
    AddStep({work->name + ".facts", work->name + ": reads its directories and a sample of rows",
             options_.quick ? 1.5 : 3.0,
             [this, work] {
               StudyWork read = *work;
               read.pipeline = PipelineOf(*work);
               FactsOptions facts;
               facts.coread = options_.coread;
               facts.sample_rows = options_.quick ? 4096 : 16'384;
               return FactsJson(
                   ReadTableFacts(LoadSpecOf(read, options_), facts, [] { return Interrupted(); }));
             },
             [work](const std::string& result) {
               work->inputs.table = ParseFacts(result, work->name + ".facts");
             }});
    const double seconds = WorkerSeconds();
    AddRunStep(
        work->name + ".worker", work->name + ": one worker under its conditions", seconds,
        [this, work, seconds] {
          RecordedRun run = RunOf(*work, work->name + " worker", seconds);
          for (std::string& setting : Limits(work)) run.settings.push_back(std::move(setting));
          if (!work->spec) run.settings.push_back("consumer.kind=none");
          return run;
        },
        &work->worker);
    PlanFed(work);
    PlanCeiling(work);
  }

  // With a consumer that wants what the published trainer wants, scaled by cores; a user's own
  // pipeline has its own.
  void PlanFed(StudyWork* work) {
    if (work->spec && work->model.empty()) {
      work->inputs.no_fed = "what a trainer of this workload wants was not published";
      return;
    }
    const double seconds = options_.duration.empty() ? sizes_.fed_s : WorkerSeconds();
    AddRunStep(
        work->name + ".fed", work->name + ": a trainer fed by this host's cores", seconds,
        [this, work, seconds] {
          RecordedRun run = RunOf(*work, work->name + " fed", seconds);
          if (!work->spec) return run;
          const RunView worker = analysis::LoadRun(database_, std::to_string(work->worker.value()));
          const auto borders = analysis::ByteFlow(worker, analysis::FindDoubts(worker));
          const analysis::ByteBorder* tensors = analysis::FindBorder(borders, "tensorize");
          const double bytes =
              tensors != nullptr ? tensors->per_row.optional_value().value_or(0) : 0;
          const auto step =
              analysis::ScaledStepSeconds(work->model, bytes * work->spec->batch_rows, cores_);
          if (!step)
            throw Error(ExitCode::kInconclusive, "the worker's run counted no tensor bytes",
                        work->name);
          run.settings.push_back(
              fmt::format("consumer.step={}ns", std::max<int64_t>(1, std::llround(1e9 * *step))));
          return run;
        },
        &work->fed);
  }

  void PlanCeiling(StudyWork* work) {
    if (!work->spec) {
      const reader::PipelineSpec spec = LoadSpecOf(*work, options_);
      const bool trains = spec.consumer.kind == reader::ConsumerKind::kTrainer;
      if (!trains &&
          (spec.consumer.kind == reader::ConsumerKind::kNone || spec.consumer.step.mean <= 0)) {
        work->inputs.no_ceiling = "the pipeline's trainer takes batches as fast as they come";
        return;
      }
    }
    const double seconds = sizes_.ceiling_s;
    AddRunStep(
        work->name + ".ceiling", work->name + ": the trainer without input", seconds,
        [this, work, seconds] {
          RecordedRun run = RunOf(*work, work->name + " ceiling", seconds);
          run.arguments.push_back("--ceiling");
          if (work->spec) run.settings.push_back("consumer.kind=trainer");
          return run;
        },
        &work->ceiling);
  }

  // --- the study ---------------------------------------------------------------------------------

  const RunView* Load(const std::optional<int64_t>& run) {
    if (!run) return nullptr;
    views_.push_back(analysis::LoadRun(database_, std::to_string(*run)));
    views_.back().program = program_;
    return &views_.back();
  }

  analysis::Sheet SheetOf(StudyWork* work) {
    Limits(work);  // also where the run was there already
    analysis::SheetInputs& inputs = work->inputs;
    inputs.name = work->name;
    inputs.model = work->model;
    inputs.prices = options_.prices;
    inputs.worker = Load(work->worker);
    inputs.fed = Load(work->fed);
    inputs.ceiling = Load(work->ceiling);
    return analysis::MakeSheet(inputs);
  }

  // The options that change what is found; places of files are the user's own.
  std::string OptionWords() const {
    std::string words;
    const auto add = [&](const char* option, const auto& value) {
      words += fmt::format(" {} {}", option, ShellWord(fmt::format("{}", value)));
    };
    if (!options_.coread.empty()) add("--coread", "FILE");
    if (options_.quick) words += " --quick";
    if (options_.ladder_only) words += " --ladder-only";
    if (options_.no_ladder) words += " --no-ladder";
    if (options_.pairs) add("--pairs", *options_.pairs);
    if (options_.rows) add("--rows", *options_.rows);
    if (options_.features) add("--features", *options_.features);
    if (options_.seed != 1) add("--seed", options_.seed);
    if (!options_.duration.empty()) add("--duration", options_.duration);
    if (!options_.nic_rate.empty()) add("--nic-rate", options_.nic_rate);
    if (!options_.memory.empty()) add("--memory", options_.memory);
    for (const std::string& setting : options_.set) add("--set", setting);
    const analysis::Prices& prices = options_.prices;
    if (prices.core_hour) add("--core-hour-price", *prices.core_hour);
    if (prices.watts_per_core) add("--watts-per-core", *prices.watts_per_core);
    if (prices.energy_kwh) add("--kwh-price", *prices.energy_kwh);
    return words;
  }

  analysis::Characterization Describe() const {
    analysis::Characterization study;
    study.version = HEADRACE_VERSION;
    study.command = "headrace characterize";
    for (const StudyWork& work : works_)
      study.command += " " + (work.spec ? ShellWord(work.asked) : "TABLE --pipeline FILE");
    study.command += OptionWords();
    study.quick = options_.quick;
    study.cores = cores_;
    utsname names = {};
    if (uname(&names) == 0) {
      study.hostname = names.nodename;
      study.kernel = names.release;
    }
    double loads[1] = {0};
    if (getloadavg(loads, 1) == 1) study.load = loads[0];
    for (const StudyWork& work : works_) {
      if (!work.worker) continue;
      study.cpu_model = analysis::LoadRun(database_, std::to_string(*work.worker)).run.cpu_model;
      break;
    }
    return study;
  }

  const StudyOptions& options_;
  const std::string program_;  // as a word of a shell
  const StudySizes sizes_;
  const double cores_;
  std::list<StudyWork> works_;
  StudyWork reference_;
  std::optional<StudyFolder> folder_;
  std::string database_;
  std::vector<StudyStep> steps_;
  std::list<RunView> views_;
  LadderOptions climb_;
  analysis::Ladder ladder_;
  std::string no_ladder_;
  bool has_ladder_ = false;
};

}  // namespace

StudyEnd RunStudy(const StudyOptions& options, const std::string& program) {
  Study study(options, program);
  StudyEnd end;
  end.found = study.Run();
  end.database = study.database();
  return end;
}

}  // namespace headrace::experiments
