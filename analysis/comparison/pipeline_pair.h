// PipelinePair: two recorded sides of one pipeline, A and B, as a list of what may differ between
// them (operators' costs, threads, queues, devices' speeds, cores, the consumer, how operators are
// put into stages), and the rate of every pipeline between them, in which each of these is taken
// from one side or the other.
//
// Costs are per unit: a row, or a batch where rows were not counted. Operators are matched by name.
// The model that predictions use (analysis/model/pipeline_model, simulate) gives the rates, once in
// the shape of side A and once in that of side B; where the shapes are alike, the rate is their
// mean.
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
#include "analysis/comparison/pair_figures.h"
#include "analysis/model/bottleneck.h"
#include "analysis/model/pipeline_model.h"
#include "analysis/run/run_view.h"

namespace headrace::analysis {

// Which side a part of a pipeline is taken from; kMiddle: half-way between both.
enum class From : uint8_t { kA, kB, kMiddle };

struct PairOperator {
  std::string name, stage;
  bool in_a = false, in_b = false;
};

struct PairResource {
  std::string name;
  bool device = false;
  int servers_a = 1, servers_b = 1;  // 0: this side does not have it
  // Operators that use it (`users`), and by user: the share of its work that this user is assumed
  // to ask for, over both sides (`shares`), and the share of the change in its hold time (a lock)
  // or work (a device) that this user is assumed to cause (`weights`).
  std::vector<size_t> users = {};
  std::vector<double> shares = {}, weights = {};
};

// One thing that may differ between the sides.
struct PairChange {
  AttributedTo what = AttributedTo::kOperator;
  size_t index = 0;  // into operators(), resources() or stages()
  std::string name;
  std::optional<double> a, b;  // the setting
  bool differs = false;        // by more than runs of one side differ among themselves
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
  // Blocked time of operator `i`, including the time for which it holds devices.
  double BlockedOf(const PairFigures& figures, size_t i) const;
  // Figures of each run of one side, from its steady phase.
  const std::vector<PairFigures>& runs_a() const { return a_.figures; }
  const std::vector<PairFigures>& runs_b() const { return b_.figures; }
  // Bootstrap draws: runs are resampled (as pairs where both sides have the same number), and
  // windows within them.
  std::vector<Draw> Draws(size_t count, uint64_t seed) const;

  // ln of the rate (units a second) of the pipeline that takes changes()[i] from side `from[i]`.
  // Simulated: by a simulation of `steps` steps. Bounded: by the bounds alone, for the figures of
  // `draw`, with a softened minimum: the smaller `sharpness`, the more do rows count that only come
  // close to the smallest bound.
  double Simulated(const std::vector<From>& from, int64_t steps) const;
  double Bounded(const std::vector<From>& from, const Draw& draw, double sharpness) const;
  // About how many moves of the simulator one step takes.
  double MovesPerStep() const;

 private:
  struct Side {
    std::vector<std::unique_ptr<PipelineModel>> models;
    std::vector<PairFigures> figures;             // by run
    std::vector<std::vector<PairFigures>> drawn;  // by run, then by draw of resampled windows
    double rows = 1;                              // units per batch
    // By operators(): its index in the first model, or a neighbour's if this side lacks it.
    std::vector<size_t> places;
    std::vector<size_t> links;  // by resources(): index in the first model, or kNoStage
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
  // The sides whose shapes the rate is computed in.
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
