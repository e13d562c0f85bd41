#include "analysis/model/work_split.h"

#include <algorithm>
#include <functional>

#include "analysis/model/bottleneck.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

constexpr const char* kNotSplit = "CPU time was not split from waiting";

using Measure = std::function<double(const Demands&)>;

double CpuOf(const Demands& demands, const std::vector<size_t>& operators) {
  double cpu = 0;
  for (const size_t i : operators) cpu += demands.operators[i].cpu_s;
  return cpu;
}

// Shares of `whole`, which is taken once of each draw: there may be a thousand operators.
class Splitter {
 public:
  Splitter(const PipelineModel& model, const Measure& whole)
      : model_(model), draws_(model.Bootstrap()), whole_(whole(model.demands())) {
    for (const Demands& draw : draws_) whole_of_draws_.push_back(whole(draw));
  }

  WorkShare Share(std::string name, OperatorClass cls, const Measure& part, double busy_s) const {
    WorkShare share;
    share.name = std::move(name);
    share.cls = cls;
    const Demands& demands = model_.demands();
    const double rows = demands.rows;
    if (!model_.splits_cpu()) {
      share.cpu_per_row = Quantity::Unavailable(kNotSplit, Unit::kNanoseconds);
      share.cpu_share = Quantity::Unavailable(kNotSplit, Unit::kRatio);
    } else {
      share.cpu_per_row =
          rows > 0 ? Quantity::Of(part(demands) / rows * 1e9, Unit::kNanoseconds, Source::kAccount)
                   : Quantity::Unavailable("steps counted no rows", Unit::kNanoseconds);
      share.cpu_share = Ratio(part);
    }
    share.busy_per_row =
        rows > 0 ? Quantity::Of(busy_s / rows * 1e9, Unit::kNanoseconds, Source::kAccount)
                 : Quantity::Unavailable("steps counted no rows", Unit::kNanoseconds);
    return share;
  }

 private:
  Quantity Ratio(const Measure& part) const {
    if (whole_ <= 0) {
      return Quantity::Unavailable("no CPU time was used", Unit::kRatio);
    }
    std::vector<double> ratios;
    for (size_t i = 0; i < draws_.size(); ++i) {
      if (whole_of_draws_[i] > 0) ratios.push_back(part(draws_[i]) / whole_of_draws_[i]);
    }
    const Quantity ratio =
        Quantity::Of(part(model_.demands()) / whole_, Unit::kRatio, Source::kAccount);
    if (ratios.empty()) return ratio;
    const Interval interval = IntervalAround(ratio.value(), ratios, 0.9);
    return ratio.WithInterval(interval.low, std::max(std::min(interval.high, 1.0), ratio.value()));
  }

  const PipelineModel& model_;
  const std::vector<Demands>& draws_;
  double whole_;
  std::vector<double> whole_of_draws_;
};

std::vector<std::vector<size_t>> ByClass(const PipelineModel& model) {
  std::vector<std::vector<size_t>> classes(kNumOperatorClasses);
  for (size_t i = 0; i < model.operators().size(); ++i) {
    const OperatorModel& op = model.operators()[i];
    classes[static_cast<size_t>(ClassOf(op.kind, op.name))].push_back(i);
  }
  return classes;
}

double BusyOf(const PipelineModel& model, const std::vector<size_t>& operators) {
  double busy = 0;
  for (const size_t i : operators) busy += model.demands().operators[i].busy_s;
  return busy;
}

std::vector<size_t> AllTransforms(const PipelineModel& model) {
  std::vector<size_t> all;
  for (size_t i = 0; i < model.operators().size(); ++i) {
    const OperatorModel& op = model.operators()[i];
    if (IsTransformClass(ClassOf(op.kind, op.name))) all.push_back(i);
  }
  return all;
}

void DearestFirst(std::vector<WorkShare>* shares) {
  const auto key = [](const WorkShare& share) {
    return share.cpu_per_row.optional_value().value_or(
        share.busy_per_row.optional_value().value_or(0));
  };
  std::stable_sort(shares->begin(), shares->end(),
                   [&](const WorkShare& a, const WorkShare& b) { return key(a) > key(b); });
}

}  // namespace

std::vector<WorkShare> StageSplit(const PipelineModel& model) {
  const Splitter splitter(model, [](const Demands& demands) { return demands.cpu_s; });
  std::vector<WorkShare> shares;
  std::vector<size_t> consumer;
  const auto classes = ByClass(model);
  for (size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].empty()) continue;
    const auto cls = static_cast<OperatorClass>(c);
    for (const size_t i : classes[c]) {
      if (model.operators()[i].stage == kNoStage) consumer.push_back(i);
    }
    const auto add = [&](const std::string& name, const std::vector<size_t>& operators) {
      shares.push_back(splitter.Share(
          name, cls, [&](const Demands& demands) { return CpuOf(demands, operators); },
          BusyOf(model, operators)));
    };
    if (cls != OperatorClass::kOther) {
      add(OperatorClassName(cls), classes[c]);
      continue;
    }
    for (const size_t i : classes[c]) add(model.operators()[i].name, {i});
  }
  // The consumer's operators are a part of what no stage accounts for.
  if (model.splits_cpu()) {
    shares.push_back(splitter.Share(
        "outside every operator", OperatorClass::kOther,
        [&](const Demands& demands) {
          return std::max(0.0, demands.unattributed_cpu_s - CpuOf(demands, consumer));
        },
        0));
    shares.back().busy_per_row =
        Quantity::Unavailable("threads outside operators are not timed", Unit::kNanoseconds);
  }
  return shares;
}

std::vector<WorkShare> TransformClasses(const PipelineModel& model) {
  const std::vector<size_t> all = AllTransforms(model);
  if (all.empty()) return {};
  const Splitter splitter(model, [&](const Demands& demands) { return CpuOf(demands, all); });
  std::vector<WorkShare> shares;
  const auto classes = ByClass(model);
  for (size_t c = 0; c < classes.size(); ++c) {
    const auto cls = static_cast<OperatorClass>(c);
    if (classes[c].empty() || !IsTransformClass(cls)) continue;
    shares.push_back(splitter.Share(
        OperatorClassName(cls), cls,
        [&](const Demands& demands) { return CpuOf(demands, classes[c]); },
        BusyOf(model, classes[c])));
  }
  DearestFirst(&shares);
  return shares;
}

std::vector<WorkShare> Transforms(const PipelineModel& model) {
  const std::vector<size_t> all = AllTransforms(model);
  const Splitter splitter(model, [&](const Demands& demands) { return CpuOf(demands, all); });
  std::vector<WorkShare> shares;
  for (const size_t i : all) {
    const OperatorModel& op = model.operators()[i];
    const std::vector<size_t> one = {i};
    shares.push_back(splitter.Share(
        op.name, ClassOf(op.kind, op.name),
        [&](const Demands& demands) { return CpuOf(demands, one); }, BusyOf(model, one)));
  }
  DearestFirst(&shares);
  return shares;
}

CpuToConsumer CpuToConsumerOf(const PipelineModel& model) {
  CpuToConsumer cpu;
  const Demands& now = model.demands();
  if (!model.splits_cpu() || !model.cores_used()) {
    cpu.cores_used = cpu.cores_wanted = Quantity::Unavailable(kNotSplit, Unit::kCores);
    return cpu;
  }
  cpu.cores_used = Quantity::Of(*model.cores_used(), Unit::kCores, Source::kAccount);
  if (now.consumer_s * now.rate < kComputesNothing) {
    cpu.cores_wanted =
        Quantity::Unavailable("the trainer computes nothing, so it wants no rate", Unit::kCores);
    return cpu;
  }
  std::vector<double> wanted;
  for (const Demands& draw : model.Bootstrap()) {
    if (draw.consumer_s > 0) wanted.push_back(draw.cpu_s / draw.consumer_s);
  }
  cpu.cores_wanted = Quantity::Of(now.cpu_s / now.consumer_s, Unit::kCores, Source::kEstimate);
  if (!wanted.empty()) {
    const Interval interval = IntervalAround(cpu.cores_wanted.value(), wanted, 0.9);
    cpu.cores_wanted = cpu.cores_wanted.WithInterval(interval.low, interval.high);
  }
  return cpu;
}

}  // namespace headrace::analysis
