#include "dashboards/terminal/top_verdict.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "analysis/advice/statements.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/read_run.h"
#include "base/clock.h"
#include "base/terminal_text.h"
#include "dashboards/render/safe_text.h"
#include "dashboards/report/limit_words.h"
#include "dashboards/report/make_report.h"
#include "dashboards/report/page_words.h"

namespace headrace::dashboards {
namespace {

using analysis::Bottleneck;
using analysis::Finding;
using analysis::PipelineModel;

void MarkLimit(const PipelineModel& model, const Finding& finding, TopVerdict* verdict) {
  verdict->trainer_limits = verdict->trainer_limits || finding.limit.kind->AtConsumer();
  for (const size_t stage : finding.limit.kind->StagesAt(model, finding.limit)) {
    verdict->limits.insert(model.stages()[stage].name);
  }
}

// The stages that the report's drawing of the pipeline marks.
void MarkLimits(const PipelineModel& model, const Bottleneck& bottleneck, TopVerdict* verdict) {
  if (bottleneck.verdict == analysis::Verdict::kUndecided || bottleneck.findings.empty()) return;
  MarkLimit(model, bottleneck.findings[0], verdict);
  if (bottleneck.verdict == analysis::Verdict::kBalanced && bottleneck.findings.size() > 1) {
    MarkLimit(model, bottleneck.findings[1], verdict);
  }
}

void AddBounds(const PipelineModel& model, const Bottleneck& bottleneck, TopVerdict* verdict) {
  const bool decided = bottleneck.verdict != analysis::Verdict::kUndecided;
  for (size_t i = 0; i < bottleneck.findings.size(); ++i) {
    const Finding& finding = bottleneck.findings[i];
    const analysis::Limit& limit = finding.limit;
    if (!std::isfinite(limit.bound)) continue;
    if (limit.Is(analysis::kConsumerLimit)) {
      if (HasTrainer(model)) verdict->trainer_allows = limit.bound;
    } else if (limit.Is(analysis::kStageLimit)) {
      verdict->allows[model.stages()[limit.index].name] = limit.bound;
    } else if (!finding.within_first) {
      std::string name = Printable(LimitWord(limit));
      if (name.starts_with("the ")) name.erase(0, 4);  // the column is narrow
      if (name == "trainer's own thread") name = "trainer's thread";
      verdict->resources.push_back(
          {std::move(name), finding.utilisation, limit.bound, decided && i == 0});
    }
  }
  std::stable_sort(verdict->resources.begin(), verdict->resources.end(),
                   [](const TopResource& a, const TopResource& b) { return a.allows < b.allows; });
}

void AddModel(const analysis::Statements& statements, TopVerdict* verdict) {
  const PipelineModel& model = *statements.model;
  verdict->steady = model.steady_windows();
  verdict->steady_first_ns = model.steady_first_ns();
  verdict->steady_last_ns = model.steady_last_ns();
  if (model.demands().rows > 0) verdict->rows_per_batch = model.demands().rows;
  for (const analysis::StageModel& stage : model.stages()) {
    if (stage.on_consumer) verdict->on_trainer.insert(stage.name);
  }
  if (!statements.bottleneck) return;
  MarkLimits(model, *statements.bottleneck, verdict);
  AddBounds(model, *statements.bottleneck, verdict);
}

void AddUnits(const analysis::Outside& outside, TopVerdict* verdict) {
  for (const analysis::OutsideUnit& unit : outside.units) {
    const analysis::UnitShares& shares = unit.shares;
    const bool trainer = unit.role == analysis::UnitRole::kConsumer;
    TopUnit row{Printable(unit.name),
                trainer ? outside.ConsumerName() : analysis::UnitRoleName(unit.role),
                shares.on_cpu,
                shares.runnable,
                "",
                0};
    const std::pair<std::string, double> waits[] = {{"storage", shares.storage},
                                                    {"network", shares.network},
                                                    {"sleep", shares.sleep},
                                                    {"a lock", shares.lock},
                                                    {outside.ConsumerWord(), shares.wait_consumer},
                                                    {"input", shares.wait_input},
                                                    {"stopped", shares.stopped},
                                                    {"unknown", shares.other}};
    for (const auto& [what, share] : waits) {
      if (share <= row.waits) continue;
      row.waits_for = what;
      row.waits = share;
    }
    verdict->units.push_back(std::move(row));
  }
}

void AddRecordingCost(const Report& report, TopVerdict* verdict) {
  for (const Section& section : report.sections) {
    if (section.key != "cost") continue;
    for (const Fact& fact : section.facts) {
      const Quantity* quantity = std::get_if<Quantity>(&fact.value);
      if (quantity == nullptr) continue;
      if (fact.key == "machine_ratio") verdict->cost_ratio = *quantity;
      if (fact.key == "events_lost_count") verdict->lost_count = *quantity;
    }
  }
}

}  // namespace

TopVerdict MakeTopVerdict(analysis::RunView run) {
  const int64_t begin_ns = MonotonicNs();
  TopVerdict verdict;
  verdict.run = std::move(run);
  const analysis::Statements statements = analysis::MakeStatements(verdict.run);
  Report report = SafeToPrint(MakeReport(verdict.run, statements));
  if (statements.model) AddModel(statements, &verdict);
  if (statements.outside) AddUnits(*statements.outside, &verdict);
  AddRecordingCost(report, &verdict);
  verdict.title = std::move(report.title);
  verdict.page = std::move(report.first);
  verdict.decided = report.decided;
  verdict.recorded_ns = verdict.run.run.duration_ns;
  verdict.took_ns = MonotonicNs() - begin_ns;
  return verdict;
}

TopVerdict MakeTopVerdict(const std::string& database, int64_t run_id, const std::string& program,
                          const std::string& database_option) {
  const int64_t begin_ns = MonotonicNs();
  analysis::RunView run = analysis::LoadRun(database, std::to_string(run_id));
  run.program = program;
  run.database_option = database_option;
  TopVerdict verdict = MakeTopVerdict(std::move(run));
  verdict.took_ns = MonotonicNs() - begin_ns;
  return verdict;
}

int64_t BetweenVerdictsNs(int64_t recorded_ns, int64_t cpu_ns) {
  constexpr int64_t kGrowth = 4, kLongestForGrowthNs = 60'000'000'000;
  constexpr int64_t kOfItsCost = 250, kLongestNs = 120'000'000'000;
  return std::max(std::min(recorded_ns / kGrowth, kLongestForGrowthNs),
                  std::min(kOfItsCost * cpu_ns, kLongestNs));
}

struct VerdictMaker::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool wanted = false, at_once = false, ending = false, working = false, ended = false;
  std::shared_ptr<const TopVerdict> latest;
  std::string failure;
  std::thread thread;

  void Work(const std::function<TopVerdict()>& make, int64_t least_ns);
};

void VerdictMaker::State::Work(const std::function<TopVerdict()>& make, int64_t least_ns) {
  constexpr int64_t kRest = 9;  // times as long as the last one took
  std::unique_lock lock(mutex);
  int64_t next_ns = 0, grown_ns = 0;
  while (true) {
    changed.wait(lock, [&] { return wanted || ending; });
    if (const int64_t rest_ns = next_ns - MonotonicNs(); rest_ns > 0) {
      changed.wait_for(lock, std::chrono::nanoseconds(rest_ns), [&] { return ending; });
    }
    if (const int64_t rest_ns = grown_ns - MonotonicNs(); rest_ns > 0) {
      changed.wait_for(lock, std::chrono::nanoseconds(rest_ns), [&] { return ending || at_once; });
    }
    if (ending) break;
    wanted = at_once = false;
    working = true;
    lock.unlock();
    const int64_t begin_ns = MonotonicNs(), begin_cpu_ns = ThreadCpuNs();
    std::shared_ptr<const TopVerdict> made;
    std::string why;
    try {
      made = std::make_shared<const TopVerdict>(make());
    } catch (const std::exception& error) {
      why = Printable(error.what(), 500);
    }
    const int64_t end_ns = MonotonicNs();
    next_ns = std::max(begin_ns + least_ns, end_ns + kRest * (end_ns - begin_ns));
    grown_ns =
        made ? begin_ns + BetweenVerdictsNs(made->recorded_ns, ThreadCpuNs() - begin_cpu_ns) : 0;
    lock.lock();
    working = false;
    if (made) latest = std::move(made);
    failure = std::move(why);
  }
  ended = true;
  changed.notify_all();
}

VerdictMaker::VerdictMaker(std::function<TopVerdict()> make, int64_t least_ns)
    : state_(std::make_shared<State>()) {
  state_->thread = std::thread(
      [state = state_, make = std::move(make), least_ns] { state->Work(make, least_ns); });
}

VerdictMaker::~VerdictMaker() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

void VerdictMaker::Want(bool at_once) {
  const std::lock_guard lock(state_->mutex);
  state_->wanted = true;
  state_->at_once = state_->at_once || at_once;
  state_->changed.notify_all();
}

std::shared_ptr<const TopVerdict> VerdictMaker::latest() const {
  const std::lock_guard lock(state_->mutex);
  return state_->latest;
}

std::string VerdictMaker::failure() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failure;
}

bool VerdictMaker::working() const {
  const std::lock_guard lock(state_->mutex);
  return state_->working || state_->wanted;
}

bool VerdictMaker::Finish(int64_t wait_ns) {
  bool ended = false;
  {
    std::unique_lock lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
    ended = state_->changed.wait_for(lock, std::chrono::nanoseconds(wait_ns),
                                     [&] { return state_->ended; });
  }
  if (!state_->thread.joinable()) return ended;
  if (ended) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
  return ended;
}

}  // namespace headrace::dashboards
