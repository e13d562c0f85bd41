// The tuner against a pipeline of arithmetic: two stages that block, a consumer, and what the
// recording does not show (a ceiling, a penalty for threads), all known exactly.
#include "analysis/tuning/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/statistics/statistics.h"
#include "base/error.h"

namespace headrace::analysis {
namespace {

constexpr double kWindowS = 0.2;
constexpr int64_t kElement = 1'000'000;  // bytes

int64_t Ns(double seconds) { return std::llround(seconds * 1e9); }

class FakePipeline : public TunedTarget {
 public:
  struct Stage {
    std::string name;
    double blocked_s = 0;
    int threads = 1, queue = 4;
  };
  std::vector<Stage> stages = {{"load", 0.002}, {"parse", 0.008}};
  double consumer_s = 0.001;
  double rest_bytes = 50e6, grown_bytes = 0;  // `grown`: leaked by nobody knows whom
  int64_t limit_bytes = int64_t{4} << 30;
  double ceiling = 1e9;  // of the rate, seen in no figure
  double penalty = 0;    // of the rate, for each thread beyond the start
  double noise = 0.002;  // of a window's rate
  int windows_left = 600;
  int idle_windows = 0;  // at the start
  std::string refuses;   // a knob
  bool runs_on = false;
  std::function<void(FakePipeline*)> before_window;

  std::vector<KnobValues> set;  // all that was in force
  double most_bytes = 0;        // with full queues, of those
  int windows = 0;

  KnobValues knobs() const override {
    KnobValues knobs;
    for (const Stage& stage : stages) {
      knobs[stage.name + ".parallelism"] = stage.threads;
      knobs[stage.name + ".queue"] = stage.queue;
    }
    return knobs;
  }
  int64_t Apply(const std::vector<Change>& changes) override {
    for (const Change& change : changes) {
      if (change.knob == refuses) throw Error(ExitCode::kUsage, "is refused", refuses);
      for (Stage& stage : stages) {
        if (change.knob == stage.name + ".parallelism") stage.threads = change.to;
        if (change.knob == stage.name + ".queue") stage.queue = change.to;
      }
    }
    set.push_back(knobs());
    most_bytes = std::max(most_bytes, FullBytes());
    unsettled_ = 1;
    return now_ns_;
  }
  std::optional<RunView> Observe(int64_t wait_ns) override {
    const int count = std::max(
        1, static_cast<int>(std::ceil(static_cast<double>(wait_ns) * 1e-9 / kWindowS - 0.01)));
    for (int i = 0; i < count; ++i) {
      if (windows_left-- <= 0) return std::nullopt;
      AddWindow();
    }
    return View();
  }

  bool RunsOn() override { return runs_on; }

  double Rate() const {
    double rate = std::min(ceiling, 1 / consumer_s);
    int threads = 0;
    for (const Stage& stage : stages) {
      rate = std::min(rate, stage.threads / stage.blocked_s);
      threads += stage.threads;
    }
    return rate * std::max(0.1, 1 - penalty * (threads - 2));
  }
  double FullBytes() const {
    double bytes = rest_bytes;
    for (const Stage& stage : stages) bytes += double(kElement) * (stage.threads + stage.queue);
    return bytes;
  }

 private:
  void AddWindow() {
    if (before_window) before_window(this);
    ++windows;
    WindowRow window;
    window.start_ns = now_ns_;
    window.duration_ns = Ns(kWindowS);
    now_ns_ += window.duration_ns;
    double rate = Rate() * (1 + noise * random_.Normal());
    // What is on its way when settings change says nothing of them.
    if (unsettled_ > 0) {
      rate *= 0.3;
      --unsettled_;
    }
    const bool idle = windows <= idle_windows;
    const int64_t steps = idle ? 0 : std::max<int64_t>(1, std::llround(rate * kWindowS));
    for (const Stage& stage : stages) {
      OperatorCounters op;
      op.completions_count = steps;
      op.rows_count = 10 * steps;
      op.bytes_in_bytes = op.bytes_out_bytes = kElement * steps;
      op.blocked_ns = op.busy_ns = Ns(static_cast<double>(steps) * stage.blocked_s);
      op.on_cpu_ns = op.runnable_ns = 0;
      op.wait_in_ns = std::max<int64_t>(0, Ns(stage.threads * kWindowS) - op.busy_ns);
      window.operators.push_back(op);
      StageCounters counters;
      counters.parallelism_count = stage.threads;
      counters.lifetime_ns = Ns(stage.threads * kWindowS);
      counters.on_cpu_ns = counters.runnable_ns = counters.unattributed_ns = 0;
      window.stages.push_back(counters);
      QueueCounters queue;
      queue.mean_occupancy_ratio = 0.5;
      queue.full_ratio = queue.empty_ratio = 0;
      queue.puts_count = queue.gets_count = steps;
      window.queues.push_back(queue);
    }
    const int64_t compute_ns = Ns(static_cast<double>(steps) * consumer_s);
    window.steps = {steps, 10 * steps, std::max<int64_t>(0, Ns(kWindowS) - compute_ns), compute_ns};
    windows_.push_back(window);
  }

  RunView View() const {
    RunView view;
    view.run.run_id = 1;
    view.run.name = "fake";
    view.run.accounting_level = 3;
    view.run.cores_count = 4;
    view.run.memory_bytes = limit_bytes;
    view.run.duration_ns = view.steps.wall_ns = now_ns_;
    view.windows = windows_;
    for (size_t s = 0; s < stages.size(); ++s) {
      StageRow stage;
      stage.name = stages[s].name;
      stage.stage_index = static_cast<int64_t>(s);
      stage.last_parallelism_count = stages[s].threads;
      stage.on_cpu_ns = 0;
      view.stages.push_back(stage);
      OperatorRow op;
      op.name = op.stage = stages[s].name;
      op.kind = "sleep";
      op.stage_index = static_cast<int64_t>(s);
      op.source = "ebpf";
      view.operators.push_back(op);
      QueueRow queue;
      queue.name = stages[s].name + ".out";
      queue.producer_stage = stages[s].name;
      if (s + 1 < stages.size()) queue.consumer_stage = stages[s + 1].name;
      queue.capacity_count = stages[s].queue;
      view.queues.push_back(queue);
    }
    for (const WindowRow& window : windows_) view.steps.steps_count += window.steps.steps_count;
    double held = 0;
    for (const Stage& stage : stages) held += double(kElement) * (0.5 * stage.queue + 1);
    const double resident = rest_bytes + grown_bytes + held;
    const auto host = [&](const char* metric, double value) {
      view.hosts.push_back({metric, "", "counter", value, value, value, value});
    };
    host("process_rss_bytes", resident);
    host("host_cores", 4);
    return view;
  }

  std::vector<WindowRow> windows_;
  int64_t now_ns_ = 0;
  int unsettled_ = 1;
  Random random_{7};
};

class Heard : public DecisionSink {
 public:
  void Take(const Decision& decision) override {
    all.push_back(decision);
    last[decision.index] = decision;
    if (last.size() > 1) {
      EXPECT_EQ(last.begin()->first, 0);
      EXPECT_EQ(last.rbegin()->first, static_cast<int>(last.size()) - 1) << "no index is left out";
    }
  }
  size_t Count(TuneAction action) const {
    return static_cast<size_t>(std::count_if(last.begin(), last.end(), [&](const auto& entry) {
      return entry.second.action == action;
    }));
  }
  std::vector<Decision> all;
  std::map<int, Decision> last;
};

struct Outcome {
  TuneResult result;
  Heard heard;
};

Outcome TuneIt(FakePipeline* pipeline, TunerOptions options = {}) {
  Outcome outcome;
  Tuner tuner(std::move(options), pipeline->knobs());
  outcome.result = Tune(&tuner, pipeline, {&outcome.heard});
  return outcome;
}

TEST(Tuner, GivesThreadsWhereTheyAreMissingAndProvesIt) {
  FakePipeline pipeline;
  const auto [result, heard] = TuneIt(&pipeline);
  EXPECT_GE(pipeline.Rate(), 0.95 * 1000) << "the consumer takes 1000 a second";
  EXPECT_TRUE(result.converged) << result.why;
  EXPECT_FALSE(result.why.empty());
  EXPECT_LE(result.applied, 3);
  ASSERT_TRUE(result.effect.has_value()) << result.effect_note;
  EXPECT_NEAR(*result.effect, pipeline.Rate() / 125 - 1, 0.2);
  EXPECT_LE(result.effect_interval.low, *result.effect);
  EXPECT_GE(result.effect_interval.high, *result.effect);
  EXPECT_GE(result.pairs, 3u);
  const Decision& first = heard.last.at(0);
  EXPECT_EQ(first.action, TuneAction::kApply);
  ASSERT_TRUE(first.limited_by.has_value());
  EXPECT_EQ(first.limited_by->name, "parse");
  EXPECT_EQ(first.verdict, TuneVerdict::kKept);
  EXPECT_NEAR(first.now.value_or(0), 125, 5);
  EXPECT_TRUE(first.applied_ns && first.judged_ns && *first.applied_ns < *first.judged_ns);
  EXPECT_EQ(heard.last.rbegin()->second.action, TuneAction::kStop);
  EXPECT_EQ(pipeline.knobs(), result.end) << "what runs on is what was decided";
}

TEST(Tuner, TellsOfADecisionBeforeAndAfter) {
  FakePipeline pipeline;
  const auto [result, heard] = TuneIt(&pipeline);
  std::vector<TuneVerdict> verdicts;
  for (const Decision& decision : heard.all) {
    if (decision.index == 0) verdicts.push_back(decision.verdict);
  }
  ASSERT_GE(verdicts.size(), 2u);
  EXPECT_EQ(verdicts.front(), TuneVerdict::kOpen);
  EXPECT_EQ(verdicts.back(), TuneVerdict::kKept);
  EXPECT_FALSE(heard.all.front().applied_ns.has_value());
}

TEST(Tuner, TakesBackWhatDoesNotHelp) {
  FakePipeline pipeline;
  pipeline.ceiling = 125;  // threads are not what is missing, whatever the accounts say
  const KnobValues start = pipeline.knobs();
  const auto [result, heard] = TuneIt(&pipeline);
  EXPECT_EQ(result.end, start);
  EXPECT_EQ(pipeline.knobs(), start);
  EXPECT_GE(heard.Count(TuneAction::kRevert), 1u);
  EXPECT_EQ(heard.last.at(0).verdict, TuneVerdict::kReverted);
  EXPECT_FALSE(result.effect.has_value());
  EXPECT_FALSE(result.effect_note.empty());
  // Nothing is proposed twice, and a smaller step follows.
  std::set<KnobValues> proposed;
  int before = 1 << 20;
  for (const auto& [index, decision] : heard.last) {
    if (decision.action != TuneAction::kApply) continue;
    EXPECT_TRUE(proposed.insert(decision.settings).second) << Describe(decision.changes);
    EXPECT_LT(decision.settings.at("parse.parallelism"), before);
    before = decision.settings.at("parse.parallelism");
  }
  EXPECT_LE(result.applied, 4);
}

// What is kept was shown to be faster by its own interval, and so is what is called verified.
TEST(Tuner, KeepsNothingThatItsIntervalDoesNotShow) {
  for (const double noise : {0.15, 0.3, 0.6}) {
    for (const double ceiling : {125.0, 131.0, 150.0}) {
      SCOPED_TRACE(testing::Message() << "noise " << noise << ", ceiling " << ceiling);
      FakePipeline pipeline;
      pipeline.noise = noise;
      pipeline.ceiling = ceiling;  // threads gain little or nothing
      const KnobValues start = pipeline.knobs();
      const auto [result, heard] = TuneIt(&pipeline);
      for (const auto& [index, decision] : heard.last) {
        if (decision.action != TuneAction::kApply || decision.verdict != TuneVerdict::kKept) {
          continue;
        }
        ASSERT_TRUE(decision.effect.has_value());
        EXPECT_GT(decision.effect_interval.low, 0) << Describe(decision.changes);
      }
      if (result.effect && !result.shown) {
        EXPECT_TRUE(result.end == start || result.effect_interval.low <= 0);
      }
      if (result.shown) {
        EXPECT_GT(result.effect_interval.low, -0.03);
      }
    }
  }
}

TEST(Tuner, SaysAtItsEndWhatTheProcessTakesTooMuch) {
  FakePipeline pipeline;
  pipeline.rest_bytes = 60e6;
  pipeline.limit_bytes = int64_t{1} << 30;
  TunerOptions options;
  options.memory_bytes = 80'000'000;
  options.continuous = true;
  pipeline.before_window = [](FakePipeline* p) {
    if (p->windows > 500) p->grown_bytes = 500e6;
  };
  const auto [result, heard] = TuneIt(&pipeline, options);
  ASSERT_TRUE(result.over_memory_bytes.has_value()) << result.why;
  EXPECT_GT(*result.over_memory_bytes, 400e6);
  FakePipeline fits;
  const auto [fine, decisions] = TuneIt(&fits, options);
  EXPECT_FALSE(fine.over_memory_bytes.has_value());
}

TEST(Tuner, TakesBackWhatMakesItSlower) {
  FakePipeline pipeline;
  pipeline.ceiling = 125;
  pipeline.penalty = 0.05;
  const KnobValues start = pipeline.knobs();
  const auto [result, heard] = TuneIt(&pipeline);
  EXPECT_EQ(pipeline.knobs(), start);
  const Decision& first = heard.last.at(0);
  ASSERT_TRUE(first.effect.has_value());
  EXPECT_LT(first.effect_interval.high, 0);
  EXPECT_NE(heard.last.at(1).reason.find("slower"), std::string::npos) << heard.last.at(1).reason;
}

TEST(Tuner, GivesThreadsBackWhereTheConsumerIsTheLimit) {
  FakePipeline pipeline;
  pipeline.consumer_s = 0.02;
  pipeline.stages[0].threads = 6;
  pipeline.stages[1].threads = 8;
  const double before = pipeline.Rate();
  const auto [result, heard] = TuneIt(&pipeline);
  EXPECT_EQ(heard.Count(TuneAction::kScaleDown), 1u);
  EXPECT_EQ(heard.last.at(0).verdict, TuneVerdict::kKept) << heard.last.at(0).reason;
  EXPECT_EQ(pipeline.stages[0].threads, 1);
  EXPECT_EQ(pipeline.stages[1].threads, 1);
  EXPECT_NEAR(pipeline.Rate(), before, 0.01 * before);
}

TEST(Tuner, StopsAtTheTarget) {
  FakePipeline pipeline;
  TunerOptions options;
  options.target = 240;
  const auto [result, heard] = TuneIt(&pipeline, options);
  EXPECT_GE(pipeline.Rate(), 240);
  EXPECT_LE(pipeline.stages[1].threads, 4) << "no more than is asked for, and some headroom";
}

// Far more than was asked for is given up, once and for all.
TEST(Tuner, GivesThreadsBackFarAboveTheTarget) {
  FakePipeline pipeline;
  pipeline.stages[0].threads = 4;
  pipeline.stages[1].threads = 8;
  TunerOptions options;
  options.target = 200;
  const auto [result, heard] = TuneIt(&pipeline, options);
  EXPECT_GE(pipeline.Rate(), 200) << result.why;
  EXPECT_LE(result.end.at("parse.parallelism"), 3);
  EXPECT_EQ(result.end.at("load.parallelism"), 1);
  EXPECT_EQ(heard.Count(TuneAction::kRevert), 0u);
  EXPECT_TRUE(result.converged);
}

TEST(Tuner, NamesTheBillWhereNoSettingsFit) {
  FakePipeline pipeline;
  TunerOptions options;
  options.memory_bytes = 20'000'000;
  try {
    TuneIt(&pipeline, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kInconclusive);
    EXPECT_NE(std::string(error.what()).find("the minimum is"), std::string::npos) << error.what();
  }
}

TEST(Tuner, NeverAppliesWhatIsOverTheMemory) {
  for (const int64_t budget : {61'000'000, 62'000'000, 65'000'000, 70'000'000, 90'000'000}) {
    FakePipeline pipeline;
    TunerOptions options;
    options.memory_bytes = static_cast<uint64_t>(budget);
    const auto [result, heard] = TuneIt(&pipeline, options);
    EXPECT_LE(pipeline.most_bytes, static_cast<double>(budget)) << budget;
    for (const auto& [index, decision] : heard.last) {
      double added = 0;
      for (const Change& change : decision.changes) added += change.memory_bytes.value_or(0);
      if (added <= 0) continue;  // no more than what runs already
      EXPECT_LE(decision.memory_bytes.value_or(0), static_cast<double>(budget));
    }
  }
}

// What a plan may use is small beside the rest of the process, and is used all the same.
TEST(Tuner, UsesASmallRoomBesideALargeProcess) {
  FakePipeline pipeline;
  pipeline.rest_bytes = 2e9;
  TunerOptions options;
  options.memory_bytes = 2'020'000'000;
  const auto [result, heard] = TuneIt(&pipeline, options);
  EXPECT_GT(result.end.at("parse.parallelism"), 1) << result.why;
  EXPECT_LE(pipeline.most_bytes, 2.02e9);
}

// In the room of what runs now a queue can give way to a thread, but nothing is added.
TEST(Tuner, HasAnAnswerWhereTheMemoryIsExactlyFull) {
  for (const double rest : {50e6, 50e6 + 0.3, 2e9 + 0.7}) {
    FakePipeline pipeline;
    pipeline.rest_bytes = rest;
    const double full = pipeline.FullBytes();
    TunerOptions options;
    options.memory_bytes = static_cast<uint64_t>(full);
    const auto [result, heard] = TuneIt(&pipeline, options);
    EXPECT_TRUE(result.converged) << result.why;
    EXPECT_EQ(result.why.find("no plan"), std::string::npos) << result.why;
    EXPECT_LE(pipeline.most_bytes, full);
  }
}

TEST(Tuner, CutsQueuesWhenTheProcessGrowsBeyondTheMemory) {
  FakePipeline pipeline;
  TunerOptions options;
  options.memory_bytes = 90'000'000;
  options.continuous = true;
  pipeline.windows_left = 300;
  pipeline.before_window = [](FakePipeline* p) { p->grown_bytes = p->windows > 150 ? 45e6 : 0; };
  const auto [result, heard] = TuneIt(&pipeline, options);
  bool cut = false;
  for (const auto& [index, decision] : heard.last) {
    cut = cut || (decision.action == TuneAction::kScaleDown &&
                  decision.reason.find("more than it may") != std::string::npos);
  }
  EXPECT_TRUE(cut);
}

TEST(Tuner, TurnsNothingWhileNothingChangesAndPlansAnewWhenItDoes) {
  FakePipeline pipeline;
  pipeline.windows_left = 400;
  size_t turned = 0;
  double after = 0;
  int changed_at = 0;
  pipeline.before_window = [&](FakePipeline* p) {
    if (p->windows == 249) turned = p->set.size();
    if (p->windows == 250) {
      p->stages[1].blocked_s *= 1.75;
      changed_at = p->windows;
    }
    if (p->windows == 270) after = p->Rate();
  };
  TunerOptions options;
  options.continuous = true;
  size_t at_hold = 0;
  class Counting : public Heard {
   public:
    explicit Counting(FakePipeline* p, size_t* at) : pipeline_(p), at_(at) {}
    void Take(const Decision& decision) override {
      Heard::Take(decision);
      if (decision.action == TuneAction::kHold && *at_ == 0) *at_ = pipeline_->set.size();
    }

   private:
    FakePipeline* pipeline_;
    size_t* at_;
  } heard(&pipeline, &at_hold);
  Tuner tuner(options, pipeline.knobs());
  const TuneResult result = Tune(&tuner, &pipeline, {&heard});
  ASSERT_GT(changed_at, 0);
  EXPECT_GE(after, 0.95 * 1000) << "20 windows after the change";
  ASSERT_GT(at_hold, 0u);
  EXPECT_LE(turned, at_hold + 1) << "the last turn is the way back from the comparison";
  EXPECT_EQ(heard.Count(TuneAction::kReplan), 1u);
  for (const auto& [index, decision] : heard.last) {
    if (decision.action != TuneAction::kReplan) continue;
    EXPECT_NE(decision.reason.find("parse is 1.7"), std::string::npos) << decision.reason;
  }
  EXPECT_GE(pipeline.Rate(), 0.95 * 1000);
}

// The old settings are tried again where the windows between a change and the new settings are too
// few, or too unlike each other, to show what these bring: it went back to the old ones then.
TEST(Tuner, AGainThatTheWindowsAfterAChangeDoNotShowIsCompared) {
  FakePipeline pipeline;
  pipeline.windows_left = 600;
  pipeline.before_window = [&](FakePipeline* p) {
    if (p->windows == 250) p->stages[1].blocked_s *= 3;
    const bool is_new = p->knobs().at("parse.parallelism") > 8;
    p->noise = p->windows < 250 ? 0.002 : p->windows < 262 && !is_new ? 0.9 : 0.05;
  };
  TunerOptions options;
  options.continuous = true;
  const Outcome outcome = TuneIt(&pipeline, options);
  ASSERT_EQ(outcome.heard.Count(TuneAction::kReplan), 1u);
  const auto last_plan =
      std::find_if(outcome.heard.last.rbegin(), outcome.heard.last.rend(),
                   [](const auto& entry) { return entry.second.action == TuneAction::kApply; });
  ASSERT_NE(last_plan, outcome.heard.last.rend());
  EXPECT_EQ(last_plan->second.verdict, TuneVerdict::kKept);
  EXPECT_GT(last_plan->second.pairs, 0u);
  EXPECT_GE(pipeline.Rate(), 600) << "the settings from before the change give 333";
}

TEST(Tuner, SaysWhyItStops) {
  TunerOptions one;
  one.max_decisions = 1;
  FakePipeline limited;
  limited.ceiling = 125;
  EXPECT_NE(TuneIt(&limited, one).result.why.find("most allowed"), std::string::npos);

  TunerOptions dry;
  dry.dry_run = true;
  FakePipeline untouched;
  const Outcome said = TuneIt(&untouched, dry);
  EXPECT_TRUE(untouched.set.empty());
  EXPECT_EQ(said.heard.Count(TuneAction::kApply), 1u);
  EXPECT_NE(said.result.why.find("dry-run"), std::string::npos);
  EXPECT_EQ(said.result.end, said.result.start);

  FakePipeline refusing;
  refusing.refuses = "parse.parallelism";
  const Outcome refused = TuneIt(&refusing);
  EXPECT_EQ(refused.heard.last.at(0).verdict, TuneVerdict::kFailed);
  EXPECT_NE(refused.result.why.find("is refused"), std::string::npos) << refused.result.why;
  EXPECT_EQ(refused.result.end, refused.result.start);

  FakePipeline ending;
  ending.windows_left = 25;
  const Outcome ended = TuneIt(&ending);
  EXPECT_NE(ended.result.why.find("the run ended"), std::string::npos);
  EXPECT_FALSE(ended.result.converged);
  EXPECT_EQ(ended.result.end, ended.result.start) << "what was not verified is not kept";
}

// Wherever the tuning ends, what runs on has settings that were kept.
TEST(Tuner, LeavesARunningPipelineAtVerifiedSettings) {
  int undone = 0;
  for (int windows = 1; windows < 60; ++windows) {
    FakePipeline pipeline;
    pipeline.runs_on = true;
    pipeline.windows_left = windows;
    const auto [result, heard] = TuneIt(&pipeline);
    EXPECT_EQ(pipeline.knobs(), result.end) << windows;
    EXPECT_TRUE(result.end != result.start || !result.effect) << windows;
    undone += pipeline.set.size() > 1 && result.end == result.start;
    for (const auto& [index, decision] : heard.last) {
      EXPECT_TRUE(decision.changes.empty() || decision.applied_ns) << windows;
      if (decision.action != TuneAction::kApply) continue;
      EXPECT_NE(decision.verdict, TuneVerdict::kOpen) << windows;
    }
  }
  EXPECT_GT(undone, 5);
}

TEST(Tuner, BacksOffFromSettingsThatCannotBeSetAndGoesOn) {
  FakePipeline pipeline;
  pipeline.refuses = "parse.parallelism";
  pipeline.before_window = [](FakePipeline* p) {
    if (p->windows == 120) p->refuses.clear();
  };
  TunerOptions options;
  options.continuous = true;
  const auto [result, heard] = TuneIt(&pipeline, options);
  EXPECT_EQ(heard.last.at(0).verdict, TuneVerdict::kFailed);
  EXPECT_GE(heard.Count(TuneAction::kApply), 2u);
  EXPECT_LE(heard.Count(TuneAction::kApply), 4u) << "it waits longer each time";
  EXPECT_GT(pipeline.Rate(), 900);
  EXPECT_TRUE(result.converged);
}

// A process that does nothing at first is not slow.
TEST(Tuner, RatesBeforeAreNotOfThePipelineThatHasNotBegun) {
  for (const bool interleave : {true, false}) {
    FakePipeline pipeline;
    pipeline.idle_windows = 25;
    TunerOptions options;
    options.interleave = interleave;
    const auto [result, heard] = TuneIt(&pipeline, options);
    ASSERT_TRUE(heard.last.at(0).effect);
    EXPECT_NEAR(*heard.last.at(0).now, 125, 5);
    EXPECT_NEAR(*heard.last.at(0).effect, *heard.last.at(0).observed / 125 - 1, 0.2);
  }
}

TEST(Tuner, WindowsInWhichItWorkedItselfDoNotCount) {
  FakePipeline pipeline;
  TunerOptions options;
  Tuner tuner(options, pipeline.knobs());
  // All of the first ten windows: a plan must wait for ten others.
  std::optional<RunView> run = pipeline.Observe(Ns(10 * kWindowS));
  tuner.Disturbed(0, Ns(10 * kWindowS));
  EXPECT_TRUE(tuner.Next(*run).set.empty());
  run = pipeline.Observe(Ns(11 * kWindowS));
  EXPECT_FALSE(tuner.Next(*run).set.empty());
}

}  // namespace
}  // namespace headrace::analysis
