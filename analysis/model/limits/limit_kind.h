// LimitKind: all that is particular to one kind of row: what has it, its words, and what relieving
// it means.
//
// A kind is one file that ends in HR_LIMIT(class). Where it has nothing to say, the defaults do.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/model/limits/limit.h"
#include "analysis/model/scale.h"
#include "base/quantity.h"
#include "base/registry.h"

namespace headrace::analysis {

// How much more of something.
enum class Step : uint8_t {
  kUnit,    // one thread, one core; locks, devices and the consumer a tenth faster
  kTenth,   // a tenth more threads and cores, one at least; the others a tenth faster
  kQuarter  // a quarter more threads and cores, one at least; the others in 0.8 of the time
};

// The pipeline with one row relieved, and how: "5 threads instead of 4".
struct Relief {
  Variant variant;
  std::string what;
};

// Relief by being faster: the share of its cost that is left, that in words ("25 % faster"), and
// the pipeline with that part at that cost.
double FactorOf(Step step);
std::string FasterText(double factor);
Relief Faster(const Variant& at, Scaled part, size_t index, Step step);
// A tenth or a quarter of `number` more, one at least; one more by kUnit.
int More(double number, Step step);

// A row that is not one of this run, for the ladder: what is in use of it, or why it has no rate.
struct UnboundedRow {
  std::string name;
  Quantity attainable;  // batches per second
  Quantity used_ratio;
  std::string note;
};

class LimitKind {
 public:
  // `place`: rows of kinds with smaller ones come first, and are blamed first where bounds are
  // equal.
  LimitKind(std::string name, int place) : name_(std::move(name)), place_(place) {}
  virtual ~LimitKind() = default;

  // As stored and in JSON: "cores".
  const std::string& name() const { return name_; }
  int place() const { return place_; }

  virtual void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
                       std::vector<Limit>* rows) const = 0;

  // ---- Words

  // The subject of "... limits"; safe to print. As it is: "lock table".
  virtual std::string Describe(const Limit& limit) const;
  // On the first page: "CPU cores", "decode". As it is: as Describe.
  virtual std::string ShortName(const Limit& limit) const { return Describe(limit); }
  // With its size: "stage decode (2 threads)". As it is: kind and name.
  virtual std::string SizedName(const PipelineModel& model, const Limit& limit) const;
  // What allows the rate: "decode can deliver 12 batches/s with 2 threads". `used_ratio`: the
  // observed rate over the bound.
  virtual std::string Because(const PipelineModel& model, const Limit& limit,
                              double used_ratio) const;
  // What to do where no setting gains. `culprit`: the operator to blame, or empty.
  virtual std::string WithoutSetting(const PipelineModel& model, const Limit& limit,
                                     const std::string& culprit) const;
  // Why its bound is infinite. As it is: nothing of it was used.
  virtual std::string WhyUnlimited(const PipelineModel& model) const;
  // The class of what is used up in tables of characterization: "storage", "nic_ingress".
  virtual std::string ResourceClass(const PipelineModel& model, const Limit& limit) const;

  // ---- What it is made of

  // The stage that it is a row of, if of one.
  virtual std::optional<size_t> StageOf(const Limit& /*limit*/) const { return std::nullopt; }
  // The resource of the model that it is a row of, if of one.
  virtual std::optional<size_t> ResourceOf(const Limit& /*limit*/) const { return std::nullopt; }
  // Stages whose work is done on what limits: marked where the pipeline is drawn. As it is: that of
  // StageOf.
  virtual std::vector<size_t> StagesAt(const PipelineModel& model, const Limit& limit) const;
  // Whether the consumer's thread is what limits, with or without other work on it.
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
  // Whether it is what limits `other`, whose bound is a bit smaller.
  virtual bool Explains(const PipelineModel& /*model*/, const Demands& /*demands*/,
                        const Limit& /*limit*/, const Limit& /*other*/) const {
    return false;
  }
  // Whether a stage that is busiest by its waits is what one would see of it.
  virtual bool ShowsAt(const PipelineModel& model, const Limit& limit, size_t stage) const;
  // Its bound is an estimate by simulation, which a rate may exceed.
  virtual bool estimated() const { return false; }
  // Deviation of log(predicted / observed) at other settings where it limits: from the fitting
  // seeds of the validation bench (tests/validation).
  virtual double prediction_error() const { return 0.05; }

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
// What each operator costs a batch: c + b and what it waits for locks.
std::vector<double> OperatorSeconds(const Demands& demands);

}  // namespace headrace::analysis
