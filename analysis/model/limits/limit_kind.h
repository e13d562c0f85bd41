// LimitKind: everything that is specific to one kind of row: which pipelines have it, how it is
// worded, and what relieving it means.
//
// A kind is one file that ends in HR_LIMIT(class). What it does not override keeps the default
// given here.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/model/limits/limit.h"
#include "analysis/model/scale.h"
#include "analysis/thresholds.h"
#include "base/quantity.h"
#include "base/registry.h"

namespace headrace::analysis {

// Where the trainer's step limits and no setting gains: that, and what is left. A page that knows
// more of the step says that instead.
inline constexpr std::string_view kPipelineKeepsUp = "Nothing in the pipeline: it keeps up.";
inline constexpr std::string_view kOnlyTheStep = "Only a cheaper training step is faster.";

// By how much a row is relieved.
enum class Step : uint8_t {
  kUnit,    // one thread, one core; locks, devices and the consumer a tenth faster
  kTenth,   // a tenth more threads and cores, one at least; the others a tenth faster
  kQuarter  // a quarter more threads and cores, one at least; the others take 0.8 of the time
};

// The pipeline with one row relieved, and how: "5 threads instead of 4".
struct Relief {
  Variant variant;
  std::string what;
};

// Relief by being faster. FactorOf: the share of the cost that is left. FasterText: that in words
// ("25 % faster"). Faster: the pipeline with `part` at that cost.
double FactorOf(Step step);
std::string FasterText(double factor);
// The rule about what a trainer's thread does for batches that workers made, if that is what
// `op` does: "R25" for starting workers, "R31" for the first batch of each epoch, "R26" for taking
// batches from them; else empty.
std::string RuleOfReceiving(const PipelineModel& model, std::optional<size_t> op);
// "R32" where `op` hands over results of a pool of Python's processes; else empty.
std::string RuleOfPool(const PipelineModel& model, std::optional<size_t> op);

// Whether much of the time of the trainer's thread goes into starting workers again and again.
bool StartsWorkersAgain(const PipelineModel& model);

Relief Faster(const Variant& at, Scaled part, size_t index, Step step);
// `number` raised by a tenth or a quarter of it, at least by one; by one for kUnit.
int More(double number, Step step);

// A row of the ladder for which the run has no bound: how much of it is in use, or why it has no
// rate.
struct UnboundedRow {
  std::string name;
  Quantity attainable;  // batches per second
  Quantity used_ratio;
  std::string note;
};

// Such a row of which nothing is known, for that reason.
inline UnboundedRow UnknownRow(const std::string& name, const std::string& reason) {
  return {name, Quantity::Unavailable(reason, headrace::Unit::kPerSecond),
          Quantity::Unavailable(reason, headrace::Unit::kRatio), ""};
}

class LimitKind {
 public:
  // `place`: kinds with a smaller place come first, and are blamed first where bounds are equal.
  LimitKind(std::string name, int place) : name_(std::move(name)), place_(place) {}
  virtual ~LimitKind() = default;

  // As stored and in JSON: "cores".
  const std::string& name() const { return name_; }
  int place() const { return place_; }

  virtual void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
                       std::vector<Limit>* rows) const = 0;

  // ---- Words

  // The subject of a sentence "... limits"; safe to print. Default: kind and name, "lock table".
  virtual std::string Describe(const Limit& limit) const;
  // The name on the first page: "CPU cores", "decode". Default: as Describe.
  virtual std::string ShortName(const Limit& limit) const { return Describe(limit); }
  // The name with its size: "stage decode (2 threads)". Default: kind and name.
  virtual std::string SizedName(const PipelineModel& model, const Limit& limit) const;
  // What allows the rate: "decode can deliver 12 batches/s with 2 threads". `used_ratio`: the
  // observed rate over the bound.
  virtual std::string Because(const PipelineModel& model, const Limit& limit,
                              double used_ratio) const;
  // What to do where no setting gains anything. `culprit`: the operator to blame, or empty.
  virtual std::string WithoutSetting(const PipelineModel& model, const Limit& limit,
                                     const std::string& culprit) const;
  // The rule that says by how much to relieve it where no plan does better ("R24"); empty: none.
  virtual std::string Recommended(const PipelineModel& /*model*/, const Limit& /*limit*/) const {
    return "";
  }
  // Why its bound is infinite. Default: nothing of it was used.
  virtual std::string WhyUnlimited(const PipelineModel& model) const;
  // The resource class in characterization tables: "storage", "nic_ingress".
  virtual std::string ResourceClass(const PipelineModel& model, const Limit& limit) const;

  // ---- What it is made of

  // The stage that the row is about, if it is about one.
  virtual std::optional<size_t> StageOf(const Limit& /*limit*/) const { return std::nullopt; }
  // The resource of the model that the row is about, if it is about one.
  virtual std::optional<size_t> ResourceOf(const Limit& /*limit*/) const { return std::nullopt; }
  // Stages whose work uses the limit; they are marked in drawings of the pipeline. Default: the
  // stage of StageOf.
  virtual std::vector<size_t> StagesAt(const PipelineModel& model, const Limit& limit) const;
  // Whether the limit is the consumer's thread, with or without other work on it.
  virtual bool AtConsumer() const { return false; }
  // Index of the operator to blame.
  virtual std::optional<size_t> Culprit(const PipelineModel& /*model*/,
                                        const Limit& /*limit*/) const {
    return std::nullopt;
  }
  virtual void AddLoads(const PipelineModel& /*model*/, const Demands& /*demands*/,
                        std::vector<SharedLoad>* /*loads*/) const {}
  // What the ladder shows where Bounds has no row of this kind.
  virtual std::optional<UnboundedRow> Unbounded(const PipelineModel& /*model*/) const {
    return std::nullopt;
  }

  // ---- What it means

  virtual Relief Relieve(const PipelineModel& model, const Variant& at, const Limit& limit,
                         Step step) const = 0;
  // Whether this row is the true reason for `other`, whose bound is a bit smaller.
  virtual bool Explains(const PipelineModel& /*model*/, const Demands& /*demands*/,
                        const Limit& /*limit*/, const Limit& /*other*/) const {
    return false;
  }
  // Whether `other`, whose bound is higher, is what limits all the same.
  virtual bool YieldsTo(const PipelineModel& /*model*/, const Limit& /*limit*/,
                        const Limit& /*other*/) const {
    return false;
  }
  // Whether this limit would make `stage` look like the busiest stage in the waits.
  virtual bool ShowsAt(const PipelineModel& model, const Limit& limit, size_t stage) const;
  // Whether its bound is an estimate by simulation, which a rate may exceed.
  virtual bool estimated() const { return false; }
  // Whether the simulated pipeline has it (PipelineModel::Simulated): then the simulated rate is
  // within its bound anyway.
  virtual bool simulated() const { return true; }
  // Standard deviation of log(predicted / observed) at settings other than the present where this
  // kind is the limit (analysis/thresholds.def).
  virtual double prediction_error() const { return kUsualError; }

 private:
  std::string name_;
  int place_;
};

// All kinds, by place.
const std::vector<const LimitKind*>& LimitKinds();

#define HR_LIMIT(Class)                                                                           \
  [[maybe_unused]] static const bool hr_limit_##Class =                                           \
      ::headrace::Registry<std::shared_ptr<const ::headrace::analysis::LimitKind>>::Global().Add( \
          Class().name(), std::make_shared<Class>())

// capacity / demand; infinite where next to nothing is asked for.
double BoundOf(double capacity, double demand);
// Index of the largest of `values` at these indices.
std::optional<size_t> LargestOf(const std::vector<size_t>& members,
                                const std::vector<double>& values);
// Seconds per batch of each operator: c + b and its waits for locks.
std::vector<double> OperatorSeconds(const Demands& demands);

}  // namespace headrace::analysis
