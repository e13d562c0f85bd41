#include "analysis/study/characterization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/advice/statements.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/work_split.h"
#include "analysis/run/byte_flow.h"
#include "analysis/run/memory_bandwidth.h"
#include "analysis/run/reads.h"
#include "analysis/run/settings.h"
#include "analysis/study/sheet_reasons.h"
#include "analysis/thresholds.h"
#include "base/error.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr const char* kNoNic = "no NIC was modelled: the table is read from this machine";
constexpr double kLevel = 0.95;
constexpr size_t kStudyDraws = 2000;
constexpr uint64_t kStudySeed = 20261122;

Quantity None(const std::string& reason, headrace::Unit unit) {
  return Quantity::Unavailable(reason, unit);
}
Quantity Counted(double value, headrace::Unit unit) {
  return Quantity::Of(value, unit, Source::kCounter);
}
Quantity Estimated(double value, headrace::Unit unit) {
  return Quantity::Of(value, unit, Source::kEstimate);
}

Quantity Known(const std::optional<double>& value, headrace::Unit unit, const std::string& reason) {
  return value ? Counted(*value, unit) : None(reason, unit);
}

// a / b with the interval of whichever has one; the worse source of both.
Quantity Over(const Quantity& a, const Quantity& b, headrace::Unit unit) {
  const Quantity ratio = Divide(a, b, unit);
  if (!ratio.available()) return ratio;
  if (b.has_interval() && b.low() > 0)
    return ratio.WithInterval(a.value() / b.high(), a.value() / b.low(), b.level());
  if (a.has_interval())
    return ratio.WithInterval(a.low() / b.value(), a.high() / b.value(), a.level());
  return ratio;
}

Quantity Times(const Quantity& a, const Quantity& b, headrace::Unit unit) {
  if (!a.available()) return None(a.reason(), unit);
  if (!b.available()) return None(b.reason(), unit);
  const Quantity product =
      Quantity::Of(a.value() * b.value(), unit, std::max(a.source(), b.source()));
  if (a.has_interval())
    return product.WithInterval(a.low() * b.value(), a.high() * b.value(), a.level());
  return product;
}

// Collects the figures of one sheet. A figure is explained once all are there, as it is told by
// others (sheet_reasons.h).
class Maker {
 public:
  explicit Maker(const SheetInputs& inputs) : in_(inputs) {
    sheet_.name = inputs.name;
    sheet_.model = inputs.model;
    sheet_.conditions = inputs.conditions;
    if (!inputs.model.empty()) sheet_.published_limit = FindPublishedLimit(inputs.model);
  }

  Sheet Make() {
    if (in_.worker != nullptr) {
      worker_ = MakeStatements(*in_.worker);
      borders_ = ByteFlow(*in_.worker, worker_.doubts);
      sheet_.limit = FindWorkerLimit(*in_.worker);
      sheet_.worker_run = in_.worker->run.run_id;
      rate_ = RowRate(*in_.worker);
    } else {
      sheet_.limit.resource = "undecided";
      sheet_.limit.words = "not measured";
    }
    AddDataset();
    AddFeatures();
    AddSelectivity();
    AddReads();
    AddBytes();
    AddWorker();
    AddStall();
    AddTransforms();
    AddDuplication();
    AddCost();
    AddStages();
    for (FigurePart& part : sheet_.parts)
      for (SheetFigure& figure : part.figures) {
        figure.difference = DifferenceOf(in_, figure);
        if (!figure.difference.empty()) figure.why = ReasonOf(in_, sheet_, transforms_, figure);
      }
    return std::move(sheet_);
  }

 private:
  void Part(const char* key, const char* title) { sheet_.parts.push_back({key, title, {}}); }

  // `scale`: what makes a published value comparable; 0: nothing known does.
  void Add(const char* key, const std::string& name, Quantity here, const std::string& told_by,
           double scale = 1, const std::string& scaled_by = "") {
    SheetFigure figure{key, name, std::move(here), told_by, {}, scale > 0 ? scale : 1, "", "", ""};
    if (scale > 0 && scale != 1) figure.scaled_by = scaled_by;
    for (const char* model : kPublishedModels) {
      if (!in_.model.empty() && in_.model != model) continue;
      const PublishedValue* value = FindPublished(key, model);
      if (value == nullptr) continue;
      figure.published.push_back(
          {model, Quantity::Of(value->value, value->unit, Source::kEstimate),
           Quantity::Of(value->value * figure.scale, value->unit, Source::kEstimate), value->source,
           SurenessName(value->sureness)});
    }
    sheet_.parts.back().figures.push_back(std::move(figure));
  }

  double Fraction() const { return in_.feature_fraction.value_or(0); }
  std::string FractionWords() const {
    return in_.feature_fraction ? fmt::format("{:.3g} of the features", *in_.feature_fraction) : "";
  }
  double CoreScale() const {
    return in_.conditions.cores > 0 ? in_.conditions.cores / kPublishedNodeCores : 0;
  }
  std::string CoreWords() const {
    return fmt::format("{:g} of {:g} cores", in_.conditions.cores, kPublishedNodeCores);
  }
  std::string NoWorker() const { return "no worker was run"; }

  Quantity Border(const std::string& key, bool per_second) const {
    const headrace::Unit unit =
        per_second ? headrace::Unit::kBytesPerSecond : headrace::Unit::kBytes;
    if (in_.worker == nullptr) return None(NoWorker(), unit);
    const ByteBorder* border = FindBorder(borders_, key);
    if (border == nullptr) return None("no operator counts this stage boundary", unit);
    return per_second ? border->per_second : border->per_row;
  }

  void AddDataset() {
    const TableFacts& t = in_.table;
    Part("dataset", "Dataset");
    Add("all_partitions_bytes", "all partitions", Counted(t.bytes, headrace::Unit::kBytes),
        "file sizes", 0);
    Add("partition_bytes", "one partition (file), mean",
        t.files > 0 ? Counted(t.bytes / static_cast<double>(t.files), headrace::Unit::kBytes)
                    : None("the table has no file", headrace::Unit::kBytes),
        "file sizes", 0);
    Add("used_partitions_bytes", "partitions that the pipeline reads",
        Counted(t.bytes, headrace::Unit::kBytes), "the pipeline names the table, all of it", 0);
    Add("partitions_count", "partitions (files)",
        Counted(static_cast<double>(t.files), headrace::Unit::kCount), "files");
    Add("rows_count", "rows", Counted(static_cast<double>(t.rows), headrace::Unit::kCount),
        "file footers");
    Add("stripe_rows_count", "rows of a stripe, mean",
        t.stripes > 0 ? Counted(static_cast<double>(t.rows) / static_cast<double>(t.stripes),
                                headrace::Unit::kCount)
                      : None("the table has no stripe", headrace::Unit::kCount),
        "file footers");
  }

  void AddFeatures() {
    const TableFacts& t = in_.table;
    const std::string sampled = fmt::format("a sample of {} rows", t.sampled_rows);
    Part("features", "Features");
    Add("stored_dense_features", "stored, dense", Counted(t.stored_dense, headrace::Unit::kCount),
        "stripe directories", Fraction(), FractionWords());
    Add("stored_sparse_features", "stored, sparse (weighted ones too)",
        Counted(t.stored_sparse, headrace::Unit::kCount), "stripe directories", Fraction(),
        FractionWords());
    Add("used_dense_features", "used, dense", Counted(t.used_dense, headrace::Unit::kCount),
        "the pipeline's projection", Fraction(), FractionWords());
    Add("used_sparse_features", "used, sparse", Counted(t.used_sparse, headrace::Unit::kCount),
        "the pipeline's projection", Fraction(), FractionWords());
    Add("derived_features", "derived", Counted(t.derived, headrace::Unit::kCount),
        "the pipeline's transforms", Fraction(), FractionWords());
    Add("coverage_ratio", "coverage, mean of the stored",
        Known(t.coverage, headrace::Unit::kRatio, t.sample_reason), sampled);
    Add("used_coverage_ratio", "coverage, mean of the used",
        Known(t.used_coverage, headrace::Unit::kRatio, t.sample_reason), sampled);
    Add("list_length_mean_count", "list length, mean of the stored",
        Known(t.list_length_mean, headrace::Unit::kCount, t.sample_reason), sampled);
    Add("list_length_p99_count", "list length, p99 of the stored",
        Known(t.list_length_p99, headrace::Unit::kCount, t.sample_reason), sampled);
    Add("used_list_length_mean_count", "list length, mean of the used",
        Known(t.used_list_length_mean, headrace::Unit::kCount, t.sample_reason), sampled);
    Add("used_list_length_p99_count", "list length, p99 of the used",
        Known(t.used_list_length_p99, headrace::Unit::kCount, t.sample_reason), sampled);
  }

  void AddSelectivity() {
    const TableFacts& t = in_.table;
    const double stored = t.stored_dense + t.stored_sparse;
    Part("selectivity", "Selectivity (features and bytes: never one alone)");
    Add("features_used_ratio", "features used",
        stored > 0 ? Counted((t.used_dense + t.used_sparse) / stored, headrace::Unit::kRatio)
                   : None("the table has no feature", headrace::Unit::kRatio),
        "stripe directories");
    Add("bytes_used_ratio", "bytes used, of the features' stored bytes",
        t.feature_bytes > 0 ? Counted(t.used_bytes / t.feature_bytes, headrace::Unit::kRatio)
                            : None("the table has no feature", headrace::Unit::kRatio),
        "stripe directories");
    Add("hot_bytes_ratio", "bytes that serve 80 % of the traffic",
        Known(t.hot_bytes_ratio, headrace::Unit::kRatio, t.hot_reason), t.hot_told_by);
  }

  void AddSizes(const std::string& prefix, const std::string& words, const SizeFigures& sizes,
                const std::string& told_by) {
    const std::pair<const char*, double> figures[] = {{"p5", sizes.p5},
                                                      {"p25", sizes.p25},
                                                      {"p50", sizes.p50},
                                                      {"p75", sizes.p75},
                                                      {"p95", sizes.p95},
                                                      {"mean", sizes.mean},
                                                      {"deviation", sizes.deviation}};
    for (const auto& [name, value] : figures) {
      Add((prefix + "_" + name + "_bytes").c_str(), fmt::format("{}, {}", words, name),
          sizes.count > 0 ? Counted(value, headrace::Unit::kBytes)
                          : None("the projection reads nothing", headrace::Unit::kBytes),
          told_by);
    }
  }

  void AddReads() {
    Part("reads", "IO sizes after projection");
    AddSizes("io", "a stream each", in_.table.streams,
             fmt::format("{} streams", in_.table.streams.count));
    AddSizes("coalesced", "joined", in_.table.reads,
             fmt::format("{} reads", in_.table.reads.count));
    Quantity over = None(NoWorker(), headrace::Unit::kRatio);
    if (in_.worker != nullptr) {
      const std::optional<Reads> reads = worker_.doubts.any() ? std::nullopt : ReadsOf(*in_.worker);
      over =
          reads ? Quantity::Of(reads->over_read_ratio, headrace::Unit::kRatio, Source::kAccount)
                : None("nothing counts requests to the storage (fetch.io)", headrace::Unit::kRatio);
    }
    Add("over_read_ratio", "over-read, of what is read", over, "counter fetch, in - out");
  }

  void AddBytes() {
    Part("bytes", "Bytes at each stage boundary");
    struct Row {
      const char *key, *border, *name, *told_by;
    };
    const Row rows[] = {
        {"stored_bytes_per_row", "stored", "stored (whole stripes), a row", "fetch.stored"},
        {"selected_bytes_per_row", "selected", "selected, a row", "fetch, out"},
        {"over_read_bytes_per_row", "over_read", "over-read, a row", "fetch, in - out"},
        {"storage_bytes_per_row", "read", "read from the storage, a row", "fetch.io"},
        {"decoded_bytes_per_row", "decode", "decoded, a row", "decode, out"},
        {"extracted_bytes_per_row", "extract", "extracted, a row", "extract, out"},
        {"transformed_bytes_per_row", "transform", "transformed, a row", "transform, out"},
        {"tensor_bytes_per_row", "tensorize", "tensors out, a row", "tensorize, out"}};
    for (const Row& row : rows)
      Add(row.key, row.name, Border(row.border, false), std::string("counter ") + row.told_by,
          Fraction(), FractionWords());
    const Row rates[] = {{"storage_bytes_per_s", "read", "read from the storage", "fetch.io"},
                         {"extracted_bytes_per_s", "extract", "extracted", "extract, out"},
                         {"tensor_bytes_per_s", "tensorize", "tensors out", "tensorize, out"}};
    for (const Row& row : rates) {
      Quantity value = Border(row.border, true);
      if (std::string(row.border) == "tensorize" && value.available() && rate_.has_interval())
        value = Times(rate_, Border("tensorize", false), headrace::Unit::kBytesPerSecond);
      Add(row.key, row.name, value, std::string("counter ") + row.told_by, CoreScale(),
          CoreWords());
    }
    Add("extracted_per_storage_ratio", "extracted / read from the storage",
        Divide(Border("extract", false), Border("read", false), headrace::Unit::kCount),
        "counters");
    Add("tensor_per_storage_ratio", "tensors out / read from the storage",
        Divide(Border("tensorize", false), Border("read", false), headrace::Unit::kCount),
        "counters");
  }

  void AddWorker() {
    Part("worker", "Worker and trainer");
    Add("worker_rows_per_s", "rows of one worker (this host)", rate_,
        "steps of the run, interval by its windows", CoreScale(), CoreWords());
    Quantity cores = None(NoWorker(), headrace::Unit::kCores);
    if (worker_.model && worker_.model->cores_used())
      cores = Quantity::Of(*worker_.model->cores_used(), headrace::Unit::kCores, Source::kCounter);
    else if (in_.worker != nullptr)
      cores = None("CPU time was not recorded", headrace::Unit::kCores);
    Add("worker_cores_used", "cores in use by it", cores, "the process's CPU clock");
    Add("nic_ingress_ratio", "NIC ingress in use", NicUse(), "counter fetch.io, of the NIC's rate");
    Add("memory_used_ratio", "memory in use, of what it may have", MemoryUse(),
        "most resident bytes of the process");
    AddDemand();
  }

  // Whether the worker read its table over a network.
  bool Network() const {
    if (!worker_.model) return false;
    const auto& resources = worker_.model->resources();
    return std::any_of(resources.begin(), resources.end(),
                       [](const auto& resource) { return resource.kind == kNetworkLimit; });
  }

  Quantity NicUse() const {
    if (!in_.conditions.nic_bytes_per_s)
      return None(Network() ? "the rate of the NIC is not known: --nic-rate" : kNoNic,
                  headrace::Unit::kRatio);
    return Divide(Border("read", true),
                  Counted(*in_.conditions.nic_bytes_per_s, headrace::Unit::kBytesPerSecond),
                  headrace::Unit::kRatio);
  }

  Quantity MemoryUse() const {
    if (in_.worker == nullptr) return None(NoWorker(), headrace::Unit::kRatio);
    const HostRow* rss = in_.worker->FindHost("process_rss_bytes");
    if (rss == nullptr || !rss->maximum_value)
      return None("the process's memory was not recorded", headrace::Unit::kRatio);
    const double limit = in_.conditions.memory_bytes.value_or(
        static_cast<double>(in_.worker->run.memory_bytes.value_or(0)));
    if (limit <= 0) return None("no memory limit was recorded", headrace::Unit::kRatio);
    return Counted(*rss->maximum_value / limit, headrace::Unit::kRatio);
  }

  void AddDemand() {
    // The published trainer's demand in bytes of tensors. As the ratio is bytes over bytes, the
    // size of a row cancels.
    const PublishedValue* demand =
        in_.model.empty() ? nullptr : FindPublished("trainer_bytes_per_s", in_.model);
    const Quantity tensors =
        Times(rate_, Border("tensorize", false), headrace::Unit::kBytesPerSecond);
    Add("trainer_bytes_per_s", "tensors that a trainer node wants",
        demand != nullptr
            ? Estimated(demand->value, headrace::Unit::kBytesPerSecond)
            : None("no published model of this name", headrace::Unit::kBytesPerSecond),
        demand != nullptr ? "taken from the study" : "");
    Add("workers_per_trainer_count", "workers for it: demand / measured tensors out",
        demand != nullptr ? Over(Estimated(demand->value, headrace::Unit::kBytesPerSecond), tensors,
                                 headrace::Unit::kCount)
                          : None("no published model of this name", headrace::Unit::kCount),
        "one worker is this host under the conditions above");
    const bool ceiling = in_.ceiling != nullptr;
    const Quantity own =
        ceiling ? RowRate(*in_.ceiling) : None(in_.no_ceiling, headrace::Unit::kRowsPerSecond);
    Add("own_trainer_rows_per_s", "rows that the trainer of this host wants", own,
        "the trainer with one batch repeated");
    Add("own_workers_per_trainer_count", "workers for it",
        own.available() && rate_.available()
            ? Over(own, rate_, headrace::Unit::kCount)
            : None(own.available() ? rate_.reason() : own.reason(), headrace::Unit::kCount),
        "that rate / rows of one worker");
  }

  void AddStall() {
    Part("stall", "Preprocessing on the trainer's host");
    const RunView* run = in_.fed;
    Quantity stall = None(in_.no_fed, headrace::Unit::kRatio),
             cpu = None(in_.no_fed, headrace::Unit::kRatio);
    Quantity memory = None(in_.no_fed, headrace::Unit::kRatio);
    if (run != nullptr) {
      const double all = static_cast<double>(run->steps.wait_ns + run->steps.compute_ns);
      stall = all > 0 ? Quantity::Of(static_cast<double>(run->steps.wait_ns) / all,
                                     headrace::Unit::kRatio, Source::kAccount)
                      : None("no step was recorded", headrace::Unit::kRatio);
      const HostRow* process = run->FindHost("process_cpu_ns");
      cpu = process != nullptr && process->last_value && in_.conditions.cores > 0 &&
                    run->run.duration_ns > 0
                ? Counted(*process->last_value / static_cast<double>(run->run.duration_ns) /
                              in_.conditions.cores,
                          headrace::Unit::kRatio)
                : None("the process's CPU time was not recorded", headrace::Unit::kRatio);
      memory = MemoryBandwidthUse(*run);
    }
    Add("stall_ratio", "the trainer waits for data", stall, "step records");
    Add("stall_cpu_ratio", "CPU in use meanwhile", cpu, "the process's CPU clock");
    Add("stall_memory_bandwidth_ratio", "memory bandwidth in use meanwhile", memory,
        "counters against the calibrated ceiling");
  }

  static Quantity MemoryBandwidthUse(const RunView& run) {
    const auto moved = MemoryBandwidthOf(run);
    if (!moved || !moved->bytes_per_s.available())
      return None("no byte was counted", headrace::Unit::kRatio);
    if (moved->told_by.starts_with("accounted"))
      return None("no hardware counter tells the traffic to memory on this machine",
                  headrace::Unit::kRatio);
    if (!moved->ceiling_bytes_per_s || *moved->ceiling_bytes_per_s <= 0)
      return None("this machine was not calibrated: headrace doctor --calibrate",
                  headrace::Unit::kRatio);
    return Divide(moved->bytes_per_s,
                  Counted(*moved->ceiling_bytes_per_s, headrace::Unit::kBytesPerSecond),
                  headrace::Unit::kRatio);
  }

  void AddTransforms() {
    Part("transforms", "Transform cycles by class");
    const std::pair<OperatorClass, const char*> classes[] = {
        {OperatorClass::kGeneration, "generation_ratio"},
        {OperatorClass::kSparseNormalisation, "sparse_normalisation_ratio"},
        {OperatorClass::kDenseNormalisation, "dense_normalisation_ratio"},
        {OperatorClass::kTransform, "other_transforms_ratio"}};
    std::vector<WorkShare> shares;
    if (worker_.model) {
      shares = TransformClasses(*worker_.model);
      transforms_ = Transforms(*worker_.model);
    }
    const std::string reason = worker_.model ? "no transform of this class ran"
                               : in_.worker  ? worker_.withheld
                                             : NoWorker();
    for (const auto& [cls, key] : classes) {
      Quantity share = None(reason, headrace::Unit::kRatio);
      for (const WorkShare& found : shares)
        if (found.cls == cls) share = found.cpu_share;
      Add(key, OperatorClassName(cls), share, "CPU of the transforms' operators");
    }
  }

  void AddDuplication() {
    const TableFacts& t = in_.table;
    Part("duplication", "Duplication (bytes of lists for each that is kept)");
    Add("duplication_now_ratio", "as rows lie",
        Known(t.duplication_now, headrace::Unit::kCount, t.duplication_reason),
        "a sample of rows, by batch");
    Add("duplication_clustered_ratio", "if clustered by session",
        Known(t.duplication_clustered, headrace::Unit::kCount, t.duplication_reason),
        "a sample of rows, by batch");
  }

  void AddCost() {
    Part("cost", "Energy and cost of a million rows");
    Quantity cpu = None(NoWorker(), headrace::Unit::kNanoseconds),
             joules = None(NoWorker(), headrace::Unit::kCount);
    if (in_.worker != nullptr) {
      const double millions = static_cast<double>(in_.worker->steps.rows_count) / 1e6;
      const HostRow* process = in_.worker->FindHost("process_cpu_ns");
      cpu = process != nullptr && process->last_value && millions > 0
                ? Counted(*process->last_value / millions, headrace::Unit::kNanoseconds)
                : None("the process's CPU time was not recorded", headrace::Unit::kNanoseconds);
      joules = Joules(*in_.worker, millions, cpu);
    }
    Add("cpu_per_million_rows", "CPU", cpu, "the process's CPU clock");
    const bool estimated = joules.available() && joules.source() == Source::kEstimate;
    Add("joules_per_million_rows", "energy, J", joules,
        estimated ? fmt::format("CPU time at {:g} W a core", *in_.prices.watts_per_core)
                  : "RAPL, all that ran on the machine");
    Add("core_price_per_million_rows", "price of the cores",
        !in_.prices.core_hour
            ? None("no price was given: --core-hour-price P", headrace::Unit::kCount)
            : Times(Over(Counted(1e6 * in_.conditions.cores / 3600, headrace::Unit::kCount), rate_,
                         headrace::Unit::kCount),
                    Estimated(*in_.prices.core_hour, headrace::Unit::kCount),
                    headrace::Unit::kCount),
        in_.prices.core_hour
            ? fmt::format("{:g} an hour for each core of the worker", *in_.prices.core_hour)
            : "");
    Add("energy_price_per_million_rows", "price of the energy",
        !in_.prices.energy_kwh
            ? None("no price was given: --kwh-price P", headrace::Unit::kCount)
            : Times(joules, Estimated(*in_.prices.energy_kwh / 3.6e6, headrace::Unit::kCount),
                    headrace::Unit::kCount),
        in_.prices.energy_kwh ? fmt::format("{:g} for a kWh", *in_.prices.energy_kwh) : "");
  }

  Quantity Joules(const RunView& run, double millions, const Quantity& cpu) const {
    std::optional<double> joules;
    for (const MeasurementRow& row : run.measurements) {
      if (row.metric != "energy_joules" || row.process_id || !row.value) continue;
      if (row.subject.find("package") == std::string::npos) continue;
      joules = joules.value_or(0) + *row.value;
    }
    if (joules && millions > 0) return Counted(*joules / millions, headrace::Unit::kCount);
    if (in_.prices.watts_per_core && cpu.available())
      return Estimated(cpu.value() * 1e-9 * *in_.prices.watts_per_core, headrace::Unit::kCount);
    return None("no energy counter can be read here, and no power was given: --watts-per-core W",
                headrace::Unit::kCount);
  }

  void AddStages() {
    if (!worker_.model) return;
    const PipelineModel& model = *worker_.model;
    const RunView& run = *in_.worker;
    const double seconds = static_cast<double>(run.run.duration_ns) * 1e-9;
    for (const WorkShare& share : StageSplit(model)) {
      StageUse use{share.name, share.cpu_share, {}, share.cpu_per_row, {}, {}};
      use.cores = Times(
          Divide(share.cpu_per_row, Counted(1e9, headrace::Unit::kNone), headrace::Unit::kCores),
          rate_, headrace::Unit::kCores);
      double bytes = 0;
      bool any = false;
      for (const OperatorRow& row : run.operators) {
        if (row.kind == "stored" || ClassOf(row.kind, row.name) != share.cls) continue;
        if (share.cls == OperatorClass::kOther && row.name != share.name) continue;
        bytes += static_cast<double>(row.bytes_in_bytes + row.bytes_out_bytes);
        any = true;
      }
      use.memory_bytes_per_s =
          any && seconds > 0 && bytes > 0
              ? Estimated(bytes / seconds, headrace::Unit::kBytesPerSecond)
              : None("no operator counts its bytes", headrace::Unit::kBytesPerSecond);
      use.nic_bytes_per_s = None("moves nothing over a NIC", headrace::Unit::kBytesPerSecond);
      if (share.cls == OperatorClass::kFetch)
        use.nic_bytes_per_s = in_.conditions.nic_bytes_per_s || Network()
                                  ? Border("read", true)
                                  : None(kNoNic, headrace::Unit::kBytesPerSecond);
      sheet_.stages.push_back(std::move(use));
    }
  }

  const SheetInputs& in_;
  Sheet sheet_;
  Statements worker_;
  std::vector<ByteBorder> borders_;
  std::vector<WorkShare> transforms_;
  Quantity rate_ = Quantity::Unavailable("no worker was run", headrace::Unit::kRowsPerSecond);
};

}  // namespace

Sheet MakeSheet(const SheetInputs& inputs) { return Maker(inputs).Make(); }

Quantity RowRate(const RunView& run) {
  const double seconds = run.run.kind == "ceiling"
                             ? static_cast<double>(run.steps.compute_ns) * 1e-9
                             : static_cast<double>(run.steps.wall_ns) * 1e-9;
  if (seconds <= 0 || run.steps.rows_count <= 0)
    return None("no rows were recorded", headrace::Unit::kRowsPerSecond);
  std::vector<double> rows, times;
  const size_t first = run.windows.size() > 3 ? 1 : 0;  // it begins to run there
  for (size_t i = first; i < run.windows.size(); ++i) {
    const WindowRow& window = run.windows[i];
    const double time = run.run.kind == "ceiling" ? static_cast<double>(window.steps.compute_ns)
                                                  : static_cast<double>(window.duration_ns);
    if (time <= 0) continue;
    rows.push_back(static_cast<double>(window.steps.rows_count));
    times.push_back(time * 1e-9);
  }
  const auto whole = Quantity::Of(static_cast<double>(run.steps.rows_count) / seconds,
                                  headrace::Unit::kRowsPerSecond, Source::kAccount);
  if (rows.size() < 3) return whole;
  Random random(kStudySeed);
  std::vector<double> rates;
  const size_t block = std::max<size_t>(1, static_cast<size_t>(std::cbrt(rows.size())));
  for (size_t d = 0; d < kStudyDraws; ++d) {
    double sum = 0, time = 0;
    for (const size_t i : BlockResample(rows.size(), block, random)) {
      sum += rows[i];
      time += times[i];
    }
    rates.push_back(sum / time);
  }
  double sum = 0, time = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    sum += rows[i];
    time += times[i];
  }
  if (sum <= 0) return whole;
  const Interval interval = IntervalAround(sum / time, rates, kLevel);
  return Quantity::Of(sum / time, headrace::Unit::kRowsPerSecond, Source::kAccount)
      .WithInterval(interval.low, interval.high, kLevel);
}

std::optional<double> ScaledStepSeconds(const std::string& model, double tensor_bytes_per_batch,
                                        double cores) {
  const PublishedValue* demand = FindPublished("trainer_bytes_per_s", model);
  if (demand == nullptr || tensor_bytes_per_batch <= 0 || cores <= 0) return std::nullopt;
  return tensor_bytes_per_batch / (demand->value * cores / kPublishedTrainerHostCores);
}

std::string SignOf(const std::optional<Interval>& published, const Interval& interval) {
  if (!published) return "";
  if (published->low <= 1 + kPublishedNoChange && published->high >= 1 - kPublishedNoChange) {
    if (interval.low >= 1 - kMeasuredNoChange && interval.high <= 1 + kMeasuredNoChange)
      return "same (none)";
    return interval.low > 1 + kMeasuredNoChange || interval.high < 1 - kMeasuredNoChange
               ? "differs: none published"
               : "not resolved";
  }
  if (interval.low >= 1 - kExactlyNoChange && interval.high <= 1 + kExactlyNoChange)
    return "no change";
  if (interval.low <= 1 && interval.high >= 1) return "not resolved";
  return (published->low > 1) == (interval.low > 1) ? "same" : "OPPOSITE";
}

}  // namespace headrace::analysis
