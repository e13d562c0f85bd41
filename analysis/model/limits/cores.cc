// The cores: what a batch computes, on all threads, of the cores that this process gets.
#include <fmt/format.h>

#include <limits>

#include "analysis/model/cores_users.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

// The row's name where a quota is the number of cores.
constexpr const char* kQuotaName = "CPU quota";

// "the CPU quota of 0.60 cores"
std::string QuotaText(const CpuQuota& quota) {
  return fmt::format("the CPU quota of {:.2f} cores", quota.cores);
}

class Cores final : public LimitKind {
 public:
  Cores() : LimitKind(std::string(kCoresLimit), 20) {}

  void AddRows(const PipelineModel& model, const Demands& demands, const Settings& settings,
               std::vector<Limit>* rows) const override {
    rows->push_back({this, 0, model.cpu_quota() ? kQuotaName : name(),
                     model.cores_known()
                         ? BoundOf(model.SharedCores(settings, demands), demands.cpu_s)
                         : std::numeric_limits<double>::infinity()});
  }

  std::string Describe(const Limit& limit) const override {
    return limit.name == kQuotaName ? "the CPU quota" : "the number of cores";
  }
  std::string ShortName(const Limit& limit) const override {
    return limit.name == kQuotaName ? kQuotaName : "CPU cores";
  }
  std::string SizedName(const PipelineModel& model, const Limit& limit) const override {
    if (!model.cpu_quota()) return limit.name;
    return fmt::format("{} ({:.2f} cores)", kQuotaName, model.cpu_quota()->cores);
  }
  std::string Because(const PipelineModel& model, const Limit& limit,
                      double /*used_ratio*/) const override {
    const std::optional<CpuQuota>& quota = model.cpu_quota();
    std::string text = fmt::format(
        "{}: {:.2f} of {:.2f} cores are in use",
        quota ? fmt::format("{} allows {}", QuotaText(*quota), FormatRate(limit.bound, "batches"))
              : fmt::format("CPU cores allow {}", FormatRate(limit.bound, "batches")),
        model.cores_used().value_or(0), model.cores_available());
    const std::optional<size_t> culprit = Culprit(model, limit);
    if (culprit && model.demands().cpu_s > 0) {
      text += fmt::format(
          ", {} of it by {}",
          FormatPercent(model.demands().operators[*culprit].cpu_s / model.demands().cpu_s),
          model.operators()[*culprit].name);
    }
    if (model.cores_ahead() > 0) {
      text += fmt::format("; {:.2f} go to what runs ahead of the trainer", model.cores_ahead());
    }
    if (quota && quota->stopped_ratio) {
      text += fmt::format("; the kernel stopped it in {} of the quota's periods",
                          FormatPercent(*quota->stopped_ratio));
    }
    return text;
  }
  std::string WithoutSetting(const PipelineModel& model, const Limit& /*limit*/,
                             const std::string& /*culprit*/) const override {
    if (model.cpu_quota()) {
      return fmt::format("No setting is faster. Raise {}, or the container's CPU limit.",
                         QuotaText(*model.cpu_quota()));
    }
    const std::optional<UnseenUsers> users = FindUnseenUsers(model);
    if (!users) return "No setting is faster: threads do not add cores.";
    return fmt::format(
        "No setting is faster: most of the cores go to {}. {}", users->who,
        users->short_lived
            ? "Let each do more before it ends, or do its work with a library."
            : "Where training does not need them, run them elsewhere or give them less priority "
              "(nice). Where it does, make their work cheaper.");
  }
  std::string WhyUnlimited(const PipelineModel& model) const override {
    return model.splits_cpu() ? "the core budget was not recorded"
                              : "CPU time was not split from waiting";
  }

  std::optional<size_t> Culprit(const PipelineModel& model, const Limit& /*limit*/) const override {
    std::optional<size_t> most;
    const std::vector<Demands::Operator>& operators = model.demands().operators;
    for (size_t i = 0; i < operators.size(); ++i) {
      if (!most || operators[i].cpu_s > operators[*most].cpu_s) most = i;
    }
    return most;
  }

  Relief Relieve(const PipelineModel& /*model*/, const Variant& at, const Limit& /*limit*/,
                 Step step) const override {
    Relief relief{at, {}};
    const double cores = at.settings.cores;
    relief.variant.settings.cores += More(cores, step);
    relief.what =
        fmt::format("{:.3g} cores instead of {:.3g}", relief.variant.settings.cores, cores);
    return relief;
  }
  // A stage whose threads compute nearly all that is computed gains nothing by more of them; one
  // thread that loads and computes in turn and needs all the cores gains nothing by a worker, which
  // would take its time from it.
  bool Explains(const PipelineModel& model, const Demands& demands, const Limit& limit,
                const Limit& other) const override {
    if (limit.bound >= kCoresExplain * other.bound || model.others_hold_cores()) return false;
    if (other.Is(kThreadLimit)) {
      double cpu_s = model.ConsumerComputeCpu(demands);
      for (size_t s = 0; s < model.stages().size(); ++s) {
        if (model.stages()[s].on_consumer) cpu_s += demands.stage_cpu_s[s];
      }
      return cpu_s > kNearlyAllCpu * demands.cpu_s;
    }
    if (!other.Is(kStageLimit)) return false;
    const double stage_cpu_s = demands.stage_cpu_s[other.index];
    return stage_cpu_s > kNearlyAllCpu * demands.cpu_s &&
           stage_cpu_s > kStageDoesLittleElse * demands.stage_s[other.index];
  }
  // Others fill what a program leaves idle, so that nothing is free although it lacks next to
  // nothing.
  bool YieldsTo(const PipelineModel& model, const Limit& limit, const Limit& other) const override {
    return model.others_hold_cores() && other.bound < kOthersCostLittle * limit.bound;
  }
  // Full cores show as a stage that waits for one, or as the stage that computes most.
  bool ShowsAt(const PipelineModel& model, const Limit& /*limit*/, size_t stage) const override {
    return model.stages()[stage].runnable_ratio.value_or(1) > kStageLacksCores ||
           model.demands().stage_cpu_s[stage] > kStageFillsCores * model.demands().cpu_s;
  }
  std::string Recommended(const PipelineModel& model, const Limit& limit) const override {
    if (model.cores_ahead() > 0) return "R27";
    if (StartsWorkersAgain(model)) return "R25";
    const std::string of_pool = RuleOfPool(model, Culprit(model, limit));
    return of_pool.empty() ? RuleOfReceiving(model, Culprit(model, limit)) : of_pool;
  }
  double prediction_error() const override { return kCoresError; }
};

HR_LIMIT(Cores);

}  // namespace
}  // namespace headrace::analysis
