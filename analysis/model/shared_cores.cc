// PipelineModel: the cores, and what others leave of them.
#include <algorithm>
#include <cmath>

#include "analysis/model/pipeline_model.h"
#include "analysis/run/counter_sums.h"
#include "analysis/run/cpu_quota.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {

void PipelineModel::ReadCores() {
  if (splits_cpu_) cores_used_ = demands_.cpu_s * demands_.rate;
  const CoreBudget budget = CoreBudgetOf(*run_, cores_used_);
  cores_known_ = splits_cpu_ && budget.cores.has_value();
  cores_budget_ = budget.cores.value_or(1);
  cpu_quota_ = budget.quota;
  cores_available_ = cores_budget_;
  if (!splits_cpu_) return;
  const WindowRow& sum = steady_sum_;
  for (const StageModel& stage : stages_) {
    if (stage.taken_ratio == 1 || stage.row >= sum.stages.size() || sum.duration_ns <= 0) continue;
    cores_ahead_ += (1 - stage.taken_ratio) * Seconds(sum.stages[stage.row].on_cpu_ns) /
                    Seconds(sum.duration_ns);
  }
  cores_available_ = std::min(cores_budget_, std::max(*cores_used_, cores_budget_ - cores_ahead_));
  const HostRow* busy = run_->FindHost("host_busy_cores");
  const HostRow* total = run_->FindHost("host_cores");
  if (busy == nullptr || !busy->mean_value) return;
  // The machine's figure is of the whole run, with what the process used before its steady phase;
  // no less than in that, as a start that idles makes no others.
  double own = *cores_used_ + cores_ahead_;
  if (!run_->process_cpu.empty() && run_->run.duration_ns > 0) {
    own =
        std::max(own, run_->process_cpu.back().value / static_cast<double>(run_->run.duration_ns));
  }
  cores_other_ = std::max(0.0, *busy->mean_value - own);
  // The host counts by ticks; of the recording itself more is known.
  const HostRow* collector = run_->FindHost("collector_cpu_ns");
  if (collector != nullptr && collector->last_value && run_->run.duration_ns > 0) {
    cores_other_ = std::max(*cores_other_,
                            *collector->last_value / static_cast<double>(run_->run.duration_ns));
  }
  const HostRow* peers = run_->FindHost("host_peer_cpu_ns");
  others_are_peers_ =
      peers != nullptr && peers->last_value && run_->run.duration_ns > 0 &&
      *peers->last_value / static_cast<double>(run_->run.duration_ns) >= kPeers * *cores_other_;
  const double host = total != nullptr && total->mean_value ? *total->mean_value : cores_budget_;
  ReadContention(host);
  if (cores_contended()) {
    Settings present = current_;
    present.cores = cores_available_;
    const double shared = SharedCores(present, demands_);
    // What is in use is there: a stage whose threads get more than the mean share leaves less.
    const double left = contended_cores_ - shared;
    if (*cores_used_ > shared && left > 0) {
      others_keep_ = std::max(0.0, contended_cores_ - *cores_used_) / left;
    }
    cores_available_ = std::clamp(std::max(shared, *cores_used_), 1e-3, cores_budget_);
    cores_other_here_ = others_used_;
    return;
  }
  // On a host with more cores than our budget the others may run elsewhere.
  cores_available_ =
      std::min(cores_available_, std::max(host - *cores_other_ - cores_ahead_, *cores_used_));
  cores_other_here_ = host > cores_budget_ + kSameNumberOfCores
                          ? std::max(0.0, cores_budget_ - cores_ahead_ - cores_available_)
                          : *cores_other_;
}

// Where every core is busy and others keep some of them so, the threads' own accounts say what
// share of a core one that wants it gets. Others' threads get as much each, so what they used tells
// how many of them want a core. A program that hardly waits gets nearly all of one: others fill
// what it leaves.
void PipelineModel::ReadContention(double host) {
  const WindowRow& sum = steady_sum_;
  const std::optional<double> share = ShareOfCores(sum);
  if (!share) return;
  // A quota stops threads on cores that are idle.
  if (cpu_quota_ && (*cores_used_ > kAtQuota * cores_budget_ ||
                     cpu_quota_->stopped_ratio.value_or(0) > kOftenStopped)) {
    return;
  }
  const double cores = cpu_quota_ ? host : std::min(host, cores_budget_);
  // On fewer cores than the machine has, how much of the others is on these is not known; the
  // threads that wait say that they are full.
  const bool part = cores < host - kSameNumberOfCores;
  if (part && *share > kGetsACore) return;
  const double others =
      part ? std::min(*cores_other_, std::max(0.0, cores - *cores_used_)) : *cores_other_;
  const double idle = cores - *cores_used_ - cores_ahead_ - others;
  if (others < kOthersContend * cores || idle > kIdleCores * cores) return;
  contended_cores_ = cores;
  others_used_ = others;
  others_runnable_ = others / *share;
}

// Whether the threads have the CPU time for `rate` batches per second if each gets that share of a
// core while it wants one.
bool PipelineModel::ThreadsSustain(const Settings& settings, const Demands& demands, double rate,
                                   double share) const {
  double consumer_s = demands.consumer_cpu_s;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const double cpu_s = demands.stage_cpu_s[s];
    if (settings.parallelism[s] <= 0) {
      consumer_s += cpu_s;
    } else if (rate * cpu_s > share * settings.parallelism[s]) {
      return false;
    }
  }
  return rate * consumer_s <= share * consumers_;
}

double PipelineModel::OthersYield() const { return others_are_peers_ ? kOthersYield : kApartYield; }

// Apart from the others threads may get nothing by being more, or a little less, as they switch
// more often: so in a sixth of the draws. Where the others weigh less, they yield more than a fair
// share.
double PipelineModel::OthersYield(double place) const {
  if (others_are_peers_) return kOthersYield - 0.5 + place;
  constexpr double kNothing = 1.0 / 6, kLeast = -0.1, kMost = 1.5;
  return place < kNothing ? kLeast * (1 - place / kNothing)
                          : kMost * (place - kNothing) / (1 - kNothing);
}

bool PipelineModel::others_hold_cores() const {
  return !cpu_quota_ && cores_other_here_.value_or(0) > kOthersMuch * cores_budget_;
}

// What a scheduler that is fair to threads would give. The more this program takes, the less is
// left to each thread of the others, and as little to each of its own.
double PipelineModel::FairCores(const Settings& settings, const Demands& demands) const {
  double low = 0, high = contended_cores_ / demands.cpu_s;
  constexpr int kHalvings = 30;
  for (int i = 0; i < kHalvings; ++i) {
    const double rate = (low + high) / 2;
    const double share =
        std::min(1.0, (contended_cores_ - rate * demands.cpu_s) / others_runnable_);
    (share > 0 && ThreadsSustain(settings, demands, rate, share) ? low : high) = rate;
  }
  return contended_cores_ - others_keep_ * (contended_cores_ - low * demands.cpu_s);
}

double PipelineModel::SharedCores(const Settings& settings, const Demands& demands) const {
  if (!cores_contended() || demands.cpu_s <= 0) return settings.cores;
  const double fair = FairCores(settings, demands);
  const double yield = demands.others_yield.value_or(OthersYield());
  double shared = fair;
  if (others_are_peers_) {
    // What the others leave now is there in any case.
    const double left = std::max(contended_cores_ - others_used_, cores_used_.value_or(0));
    if (fair > left) shared = left + yield * (fair - left);
  } else {
    // Present threads get what they ask for as before; only more of them may get no more.
    const double kept = FairCores(current_, demands);
    if (fair > kept) shared = yield < 0 ? kept * (1 + yield) : kept + yield * (fair - kept);
  }
  // Cores that are added come on top of what the present settings have; a budget of fewer holds.
  const double got = settings.cores < cores_available_ ? std::min(shared, settings.cores)
                                                       : shared + settings.cores - cores_available_;
  return std::max(1e-3, got);
}

}  // namespace headrace::analysis
