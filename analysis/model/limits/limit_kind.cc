#include "analysis/model/limits/limit_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/run/known_loaders.h"
#include "analysis/run/operator_class.h"
#include "analysis/thresholds.h"
#include "base/infinite.h"
#include "base/terminal_text.h"
#include "base/units.h"

namespace headrace::analysis {
const std::vector<const LimitKind*>& LimitKinds() {
  static const std::vector<const LimitKind*> kinds = [] {
    std::vector<const LimitKind*> all;
    for (const auto& [name, kind] :
         Registry<std::shared_ptr<const LimitKind>>::Global().entries()) {
      all.push_back(kind.get());
    }
    std::stable_sort(all.begin(), all.end(), [](const LimitKind* a, const LimitKind* b) {
      return a->place() < b->place();
    });
    return all;
  }();
  return kinds;
}

// ---------------------------------------------------------------- kinds

std::string LimitKind::Describe(const Limit& limit) const {
  return fmt::format("{} {}", name_, Printable(limit.name));
}

std::string LimitKind::SizedName(const PipelineModel& /*model*/, const Limit& limit) const {
  return fmt::format("{} {}", name_, limit.name);
}

std::string LimitKind::Because(const PipelineModel& /*model*/, const Limit& limit,
                               double used_ratio) const {
  return fmt::format("{} is held {} of the time: {} at most", ShortName(limit),
                     FormatPercent(std::min(1.0, used_ratio)), FormatRate(limit.bound, "batches"));
}

std::string LimitKind::WithoutSetting(const PipelineModel& /*model*/, const Limit& limit,
                                      const std::string& /*culprit*/) const {
  return fmt::format("No setting helps: use less of {}, or get more of it.", ShortName(limit));
}

std::string LimitKind::WhyUnlimited(const PipelineModel& /*model*/) const {
  return "nothing was held";
}

std::string LimitKind::ResourceClass(const PipelineModel& /*model*/, const Limit& /*limit*/) const {
  return name_;
}

std::vector<size_t> LimitKind::StagesAt(const PipelineModel& /*model*/, const Limit& limit) const {
  const std::optional<size_t> stage = StageOf(limit);
  return stage ? std::vector<size_t>{*stage} : std::vector<size_t>();
}

bool LimitKind::ShowsAt(const PipelineModel& /*model*/, const Limit& limit, size_t stage) const {
  const std::optional<size_t> own = StageOf(limit);
  return own && *own == stage;
}

namespace {

// What starting workers and ending them takes of the trainer's thread, a batch.
double StartSeconds(const PipelineModel& model) {
  double start_s = 0;
  for (size_t i = 0; i < model.operators().size(); ++i) {
    const Demands::Operator& cost = model.demands().operators[i];
    if (model.IsReceiving(i, kStartKind)) start_s += cost.cpu_s + cost.blocked_s;
  }
  return start_s;
}

}  // namespace

std::string RuleOfReceiving(const PipelineModel& model, std::optional<size_t> op) {
  if (!op) return "";
  const OperatorModel& blamed = model.operators()[*op];
  if (blamed.stage == kNoStage || !model.stages()[blamed.stage].stays_on_consumer) return "";
  if (blamed.kind == kStartKind) return "R25";
  if (blamed.kind == kFirstBatchKind) return "R31";
  const Demands::Operator& cost = model.demands().operators[*op];
  const bool asks = blamed.kind == kUnpickleKind && cost.blocked_s > kAsksItsWorker * cost.cpu_s;
  if (!asks) return "R26";
  const double kept_saves_s = (1 - kKeptWorkersStillCost) * StartSeconds(model);
  return kept_saves_s > (1 - kByNameCosts) * cost.blocked_s ? "R25" : "R30";
}

std::string RuleOfPool(const PipelineModel& model, std::optional<size_t> op) {
  if (!op) return "";
  const OperatorModel& blamed = model.operators()[*op];
  const bool sends =
      blamed.stage != kNoStage && ClassOf(blamed.kind, blamed.name) == OperatorClass::kSend;
  return sends && IsProcessPool(model.run(), model.stages()[blamed.stage].name) ? "R32" : "";
}

bool StartsWorkersAgain(const PipelineModel& model) {
  return StartSeconds(model) * model.demands().rate > kMuchStarting * model.consumers();
}

double FactorOf(Step step) { return step == Step::kQuarter ? 0.8 : 1 / 1.1; }

std::string FasterText(double factor) {
  return fmt::format("{:.0f} % faster", 100 * (1 / factor - 1));
}

Relief Faster(const Variant& at, Scaled part, size_t index, Step step) {
  const double factor = FactorOf(step);
  Relief relief{at, FasterText(factor)};
  relief.variant.scales.push_back({part, index, factor});
  return relief;
}

int More(double number, Step step) {
  if (step == Step::kUnit) return 1;
  const double share = step == Step::kQuarter ? 0.25 : 0.1;
  return std::max(1, static_cast<int>(std::lround(number * share)));
}

double BoundOf(double capacity, double demand) {
  return demand > 1e-12 ? capacity / demand : kInfinite;
}

std::optional<size_t> LargestOf(const std::vector<size_t>& members,
                                const std::vector<double>& values) {
  std::optional<size_t> best;
  for (size_t i : members) {
    if (!best || values[i] > values[*best]) best = i;
  }
  return best;
}

std::vector<double> OperatorSeconds(const Demands& demands) {
  std::vector<double> seconds;
  for (const Demands::Operator& op : demands.operators) {
    seconds.push_back(op.cpu_s + op.blocked_s + op.lock_wait_s);
  }
  return seconds;
}

// ---------------------------------------------------------------- rows

bool Limit::Is(std::string_view name_of_kind) const {
  return kind != nullptr && kind->name() == name_of_kind;
}

const std::string& Limit::kind_name() const {
  static const std::string none;
  return kind != nullptr ? kind->name() : none;
}

bool SameRow(const Limit& a, const Limit& b) { return a.kind == b.kind && a.index == b.index; }

std::string Describe(const Limit& limit) {
  return limit.kind != nullptr ? limit.kind->Describe(limit) : std::string("nothing");
}

}  // namespace headrace::analysis
