// PipelinePair: two recorded sides of one pipeline, A and B, as a list of what may differ between
// them (operators' costs, threads, queues, devices' speeds, cores, the consumer, how operators are
// put into stages), and the rate of every pipeline between them, in which each of these is taken
// from one side or the other.
//
// Costs are per unit: a row, or a batch where rows were not counted. Operators are matched by name.
// The rates are those of the model that predictions use (analysis/model/pipeline_model, simulate),
// in the shape of side A and in that of side B; where the shapes are alike, their mean.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/comparison/attribution_rows.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/pipeline_model.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Of one side: means over runs, or what one run, or some of its windows, say.
struct PairFigures {
  struct Operator {
    double cpu_s = 0;      // at the speed of the cores in the middle of both sides
    double blocked_s = 0;  // beyond what it is taken to hold devices for; may be below 0
    double bytes = 0;
  };
  struct Resource {
    double hold_s = 0;     // of a lock; of a device for a unit of work
    double limiter_s = 0;  // for a unit of work, of a limiter that books its time as waiting
    double work = 0;       // asked of a device: bytes, or requests
  };
  std::vector<Operator> operators;  // by PipelinePair::operators()
  std::vector<Resource> resources;  // by PipelinePair::resources()
  double unattributed_s = 0;        // CPU, the consumer's without
  double consumer_s = 0;            // computing
  double consumer_cpu_s = 0, consumer_operators_s = 0;
  double cores = 1;
  double slowness = 0;  // ln of CPU time over what it would be at that speed
  double rate = 0;      // units a second
};

// From where a part of a pipeline between the sides is taken.
enum class From : uint8_t { kA, kB, kMiddle };

struct PairOperator {
  std::string name, stage;
  bool in_a = false, in_b = false;
};

struct PairResource {
  std::string name;
  bool device = false;
  int servers_a = 1, servers_b = 1;  // 0: this side does not have it
  // Operators that use it, the part of its work that each is taken to ask for, over both sides, and
  // the part of the change of its hold time (of a lock) or work that each is taken to cause.
  std::vector<size_t> users = {};
  std::vector<double> shares = {}, weights = {};
};

// What may differ.
struct PairChange {
  AttributedTo what = AttributedTo::kOperator;
  size_t index = 0;  // of operators(), resources() or stages()
  std::string name;
  std::optional<double> a, b;  // the setting
  bool differs = false;        // more than runs of one side do
};

class PipelinePair {
 public:
  // The runs must outlive it. Throws Error kInconclusive as PipelineModel does, and where the sides
  // count different units.
  PipelinePair(std::span<const RunView> a, std::span<const RunView> b, uint64_t seed);

  const std::string& unit() const { return unit_; }
  bool paired() const { return a_.models.size() == b_.models.size(); }
  bool splits_cpu() const;
  const std::vector<PairOperator>& operators() const { return operators_; }
  const std::vector<PairResource>& resources() const { return resources_; }
  const std::vector<PairChange>& changes() const { return changes_; }
  // Sentences on what the sides do not have in common.
  const std::vector<std::string>& notes() const { return notes_; }

  struct Draw {
    PairFigures a, b;
  };
  const Draw& middle() const { return middle_; }
  double CpuOf(const PairFigures& figures, size_t i) const;
  // What operator `i` blocks, devices that it holds included.
  double BlockedOf(const PairFigures& figures, size_t i) const;
  // Per run, of one side: what each run's steady phase says.
  const std::vector<PairFigures>& runs_a() const { return a_.figures; }
  const std::vector<PairFigures>& runs_b() const { return b_.figures; }
  // Runs (pairs of them where both sides have as many) resampled, and windows within them.
  std::vector<Draw> Draws(size_t count, uint64_t seed) const;

  // ln of the rate (units a second) with changes()[i] taken `from[i]`. Simulated: by `steps` steps.
  // Bounded: of the figures drawn, by the bounds alone, the smallest softened: the smaller
  // `sharpness`, the more do rows count that only come close.
  double Simulated(const std::vector<From>& from, int64_t steps) const;
  double Bounded(const std::vector<From>& from, const Draw& draw, double sharpness) const;
  // Moves that one simulated step takes, about.
  double MovesPerStep() const;

 private:
  struct Side {
    std::vector<std::unique_ptr<PipelineModel>> models;
    std::vector<PairFigures> figures;             // by run
    std::vector<std::vector<PairFigures>> drawn;  // by run: of resampled windows
    double rows = 1;                              // units of a batch
    std::vector<size_t> places;  // by operators(): index in the first model, of a neighbour if
                                 // this side does not have it
    std::vector<size_t> links;   // by resources(): index in the first model, or kNoStage
  };
  void Match();
  void MatchResources();
  void Place(Side* side, bool is_a);
  void FindShape();
  void FindSpeed();
  void FindChanges();
  void FindDeviceChanges();
  void FindSettingChanges();
  PairChange& AddChange(AttributedTo what, size_t index, std::string name);
  void BlameUsers(size_t resource, bool differs);
  bool DifferBy(const std::function<double(const PairFigures&)>& value) const;
  bool Differ(const std::vector<double>& a, const std::vector<double>& b,
              const std::vector<std::vector<double>>& drawn_a,
              const std::vector<std::vector<double>>& drawn_b) const;
  PairFigures Read(const PipelineModel& model, const Demands& demands) const;
  PairFigures Between(const std::vector<From>& from, const Draw& draw) const;
  Demands DemandsOf(const Side& side, const PairFigures& figures) const;
  Settings SettingsOf(const Side& side, const std::vector<From>& from, double cores) const;
  // The shapes in which the pipeline is looked at.
  std::vector<const Side*> ShapesOf(const std::vector<From>& from) const;

  Side a_, b_;
  std::string unit_ = "row";
  std::vector<PairOperator> operators_;
  std::vector<PairResource> resources_;
  std::vector<PairChange> changes_;
  std::vector<std::string> notes_;
  std::optional<size_t> shape_change_, cores_change_, speed_change_, queues_change_,
      consumer_change_, unattributed_change_;
  std::vector<size_t> operator_changes_;               // by operators()
  std::vector<std::optional<size_t>> device_changes_;  // by resources()
  std::vector<std::optional<size_t>> thread_changes_;  // by stages of A's first model
  bool same_stages_ = true;
  Draw middle_;
};

}  // namespace headrace::analysis
