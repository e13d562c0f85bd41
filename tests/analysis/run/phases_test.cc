// Phases: what is found in runs whose course is known, and that nothing is found where nothing is.
#include "analysis/run/phases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "analysis/advice/statements.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/seed.h"

namespace headrace::analysis {
namespace {

uint64_t Seed() {
  const uint64_t seed = TestSeed(17);
  printf("HEADRACE_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

SimulatedPipeline Chain(double decode_s) {
  SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0005, 0.002, 0, 0, 0.2, -1}}},
                     {"decode", 1, 4, {{"decode", decode_s, 0, 0, 0, 0.2, -1}}}};
  pipeline.consumer_s = 0.002;
  return pipeline;
}

// One run, then the other, as one.
RunView Joined(const RunView& a, const RunView& b) {
  RunView run = a;
  for (WindowRow window : b.windows) {
    window.start_ns += a.run.duration_ns;
    run.windows.push_back(std::move(window));
  }
  run.run.duration_ns += b.run.duration_ns;
  for (size_t i = 0; i < run.operators.size(); ++i) {
    run.operators[i].completions_count += b.operators[i].completions_count;
    run.operators[i].rows_count += b.operators[i].rows_count;
    run.operators[i].busy_ns += b.operators[i].busy_ns;
    *run.operators[i].on_cpu_ns += *b.operators[i].on_cpu_ns;
    run.operators[i].bytes_out_bytes += b.operators[i].bytes_out_bytes;
    run.operators[i].bytes_in_bytes += b.operators[i].bytes_in_bytes;
  }
  for (size_t i = 0; i < run.queues.size(); ++i) {
    run.queues[i].puts_count += b.queues[i].puts_count;
    run.queues[i].gets_count += b.queues[i].gets_count;
  }
  run.steps.steps_count += b.steps.steps_count;
  run.steps.rows_count += b.steps.rows_count;
  run.steps.wait_ns += b.steps.wait_ns;
  run.steps.compute_ns += b.steps.compute_ns;
  run.steps.wall_ns += b.steps.wall_ns;
  return run;
}

int64_t TimeIn(const Phases& phases, PhaseKind kind) {
  for (const Phase& phase : phases.phases) {
    if (phase.kind == kind) return phase.time_ns;
  }
  return 0;
}

// `seconds` windows of 0.2 s at 10 steps a second, after first steps that took so long.
RunView Starting(const std::vector<double>& first_steps_s, int seconds = 10) {
  RunView run;
  const auto add = [&](double wait_s, double compute_s, int64_t steps) {
    WindowRow& window = run.windows.emplace_back();
    window.start_ns = run.run.duration_ns;
    window.duration_ns = 200'000'000;
    window.steps = {steps, 16 * steps, static_cast<int64_t>(wait_s * 1e9),
                    static_cast<int64_t>(compute_s * 1e9)};
    run.run.duration_ns += window.duration_ns;
  };
  for (int i = 0; i < 20; ++i) add(0, 0, 0);
  for (const double s : first_steps_s) {
    for (double left = s; left > 0.2; left -= 0.2) add(0, 0, 0);
    add(0.1, s - 0.1, 1);
  }
  for (int i = 0; i < 5 * seconds; ++i) add(0.16, 0.04, 2);
  add(0, 0, 0);
  return run;
}

TEST(Phases, TheFirstStepsOfATrainerAreLeftOut) {
  for (const std::vector<double>& first :
       {std::vector<double>{3}, {3, 0.8}, {0.3, 3, 1.4}, {8, 0.1, 0.1, 1}}) {
    const RunView run = Starting(first);
    const Phases phases = FindPhases(run);
    double first_s = 0;
    for (const double s : first) first_s += s;
    EXPECT_NEAR(static_cast<double>(TimeIn(phases, PhaseKind::kFirstSteps)) * 1e-9, first_s, 0.5);
    for (const size_t w : phases.steady) EXPECT_EQ(run.windows[w].steps.steps_count, 2);
    ASSERT_TRUE(phases.slower);
    EXPECT_EQ(phases.slower->kind, PhaseKind::kFirstSteps);
    EXPECT_NE(Words(phases.slower).find("left out"), std::string::npos);
  }
}

// Waiting is loading: a slow first batch is none of the trainer's doing.
TEST(Phases, SlowLoadingAtTheBeginningIsNoFirstStep) {
  RunView run = Starting({6, 3});
  for (WindowRow& window : run.windows) std::swap(window.steps.wait_ns, window.steps.compute_ns);
  EXPECT_EQ(TimeIn(FindPhases(run), PhaseKind::kFirstSteps), 0);
}

TEST(Phases, UsualStepsAreNoFirstSteps) {
  EXPECT_EQ(TimeIn(FindPhases(Starting({})), PhaseKind::kFirstSteps), 0);
  // Long steps that come again and again, as one batch in ten that takes longer, are the
  // pipeline's.
  RunView run = Starting({});
  for (size_t w = 20; w < run.windows.size(); w += 5) run.windows[w].steps.compute_ns *= 20;
  EXPECT_EQ(TimeIn(FindPhases(run), PhaseKind::kFirstSteps), 0);
}

TEST(FindShift, FindsAStepAndItsPlace) {
  Random random(Seed());
  for (const double by : {1.3, 2.0, 0.5}) {
    std::vector<double> values;
    for (int i = 0; i < 60; ++i) values.push_back((i < 40 ? 1 : by) * random.LogNormal(1, 0.05));
    const auto shift = FindShift(values, 0.15, 5);
    ASSERT_TRUE(shift.has_value()) << by;
    EXPECT_NEAR(static_cast<double>(shift->at), 40, 1);
    EXPECT_NEAR(shift->after / shift->before, by, 0.06 * by);
  }
}

TEST(FindShift, FindsNothingInNoiseWavesAndShortSpells) {
  Random random(Seed() + 1);
  int found = 0;
  for (int run = 0; run < 300; ++run) {
    std::vector<double> values;
    double level = 0;
    // Neighbours resemble each other, as windows do; spread of 20 %.
    for (int i = 0; i < 80; ++i) {
      level = 0.6 * level + 0.16 * random.Normal();
      values.push_back(std::exp(level));
    }
    found += FindShift(values, 0.15, 5).has_value();
  }
  EXPECT_LE(found, 3) << "of 300";
  std::vector<double> wave, spell;
  for (int i = 0; i < 80; ++i) {
    wave.push_back(1 + 0.5 * std::sin(i / 5.0));
    spell.push_back(i >= 40 && i < 50 ? 3 : 1 + 0.01 * (i % 2));
  }
  EXPECT_FALSE(FindShift(wave, 0.15, 5).has_value());
  EXPECT_FALSE(FindShift(spell, 0.15, 5).has_value());
  EXPECT_FALSE(FindShift({1, 1, 1, 2, 2, 2}, 0.15, 5).has_value()) << "too short";
  EXPECT_FALSE(FindShift({1, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2}, 0.15, 5).has_value());
}

// An epoch's batches come at once, after a pause in which its workers start.
TEST(Phases, BurstsCountWithThePausesBeforeThem) {
  using Range = std::pair<size_t, size_t>;
  EXPECT_EQ(SteadyRange({0, 0, 200, 0, 0, 0, 0, 0, 190, 0, 0}), Range(3, 9));
  EXPECT_EQ(SteadyRange({100, 90, 0, 0, 0, 0, 100, 90}), Range(2, 8)) << "over two windows";
  EXPECT_EQ(SteadyRange({1e-9, 99, 1e-9, 1e-9, 1e-9, 98, 1e-9}), Range(2, 6)) << "as tune has them";
  EXPECT_EQ(SteadyRange({0, 0, 0, 100, 0, 0, 0}), Range(3, 4)) << "one alone";
  EXPECT_EQ(SteadyRange({90, 95, 99, 0, 0, 0, 0, 0, 0, 0, 5}), Range(0, 11)) << "the second begins";
  EXPECT_EQ(SteadyRange({0, 9, 10, 11, 10, 9, 10, 11, 0}), Range(2, 7)) << "no bursts";
}

TEST(Phases, ASteadyRunHasStartSteadyAndEndAndNoChange) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const RunView run = Record(Chain(0.004 + 0.0005 * static_cast<double>(seed)), 12, seed);
    const Phases phases = FindPhases(run);
    EXPECT_FALSE(phases.drift.has_value()) << seed;
    EXPECT_GE(TimeIn(phases, PhaseKind::kSteady), Ns(10)) << seed;
    EXPECT_EQ(TimeIn(phases, PhaseKind::kEarlier), 0);
    int64_t all = 0, steps = 0;
    for (const Phase& phase : phases.phases) {
      all += phase.time_ns;
      steps += phase.steps_count;
    }
    EXPECT_EQ(all, run.run.duration_ns) << "every window is in one phase";
    EXPECT_EQ(steps, run.steps.steps_count);
  }
}

TEST(Phases, WhileMoreThreadsWereTriedIsNoSteadyWork) {
  RunView run = Record(Chain(0.004), 12, 3);
  run.store_probes.push_back({Ns(5), Ns(1), "fetch", 1, 2, 1, 2, 1, 1});
  const Phases phases = FindPhases(run);
  int64_t probed_ns = 0;
  for (const Phase& phase : phases.phases) {
    if (phase.kind == PhaseKind::kProbe) probed_ns += phase.time_ns;
  }
  EXPECT_GE(probed_ns, Ns(1));
  EXPECT_LE(probed_ns, Ns(2));
  for (const size_t w : phases.steady) {
    const WindowRow& window = run.windows[w];
    EXPECT_FALSE(window.start_ns < Ns(6) && window.start_ns + window.duration_ns > Ns(5)) << w;
  }
}

TEST(Phases, ALastingChangeOfAStageFeedsTheModelFromThenOn) {
  const RunView run = Joined(Record(Chain(0.004), 10, 3), Record(Chain(0.008), 10, 4));
  const Phases phases = FindPhases(run);
  ASSERT_TRUE(phases.drift && phases.drift->cost);
  EXPECT_TRUE(phases.drift->used);
  EXPECT_EQ(phases.drift->cost->stage, "decode");
  EXPECT_NEAR(phases.drift->cost->after / phases.drift->cost->before, 2, 0.1);
  EXPECT_NEAR(static_cast<double>(phases.drift->at_ns), 10e9, 0.6e9);
  EXPECT_FALSE(phases.drift->bytes.has_value());
  EXPECT_GT(TimeIn(phases, PhaseKind::kEarlier), Ns(8));
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.model && statements.bottleneck);
  EXPECT_NEAR(statements.model->demands().stage_s[1], 0.008, 0.0004);
  EXPECT_NEAR(statements.model->demands().rate, 125, 6);
}

TEST(Phases, AStageThatHardlyWorksMayChangeWithoutCuttingTheRun) {
  const auto with_pack = [](double pack_s) {
    SimulatedPipeline pipeline = Chain(0.004);
    pipeline.stages.push_back({"pack", 1, 4, {{"pack", pack_s, 0, 0, 0, 0.2, -1}}});
    return pipeline;
  };
  struct Case {
    double before_s, after_s;
    bool told;  // beside the 4 ms of decode, which limits
  };
  for (const Case& c : {Case{0.0001, 0.00016, false}, Case{0.00016, 0.0001, false},
                        Case{0.0001, 0.003, true}, Case{0.003, 0.0001, true}}) {
    const RunView run =
        Joined(Record(with_pack(c.before_s), 10, 3), Record(with_pack(c.after_s), 10, 4));
    const Phases phases = FindPhases(run);
    EXPECT_EQ(phases.drift.has_value(), c.told) << c.before_s << " to " << c.after_s;
    EXPECT_EQ(TimeIn(phases, PhaseKind::kEarlier) > 0, c.told) << c.before_s << " to " << c.after_s;
  }
}

TEST(Phases, LargerRecordsAreAChangeToo) {
  RunView run = Record(Chain(0.004), 20, 3);
  for (WindowRow& window : run.windows) {
    if (window.start_ns < Ns(8)) continue;
    for (OperatorCounters& op : window.operators) op.bytes_out_bytes *= 2;
  }
  const Phases phases = FindPhases(run);
  ASSERT_TRUE(phases.drift && phases.drift->bytes);
  EXPECT_NEAR(phases.drift->bytes->after / phases.drift->bytes->before, 2, 0.05);
  EXPECT_NEAR(static_cast<double>(phases.drift->at_ns), 8e9, 0.6e9);
  EXPECT_FALSE(phases.drift->cost.has_value());
}

TEST(Phases, AChangeJustBeforeTheEndIsToldAndNotUsed) {
  const RunView run = Joined(Record(Chain(0.004), 20, 3), Record(Chain(0.012), 3.5, 4));
  const Phases phases = FindPhases(run);
  if (phases.drift) {
    EXPECT_EQ(phases.drift->used, phases.steady.size() < 10);
  }
  RunView shorter = run;
  shorter.windows.resize(shorter.windows.size() -
                         4);  // 1.5 s of it are left, 2 windows of them steady
  const Phases less = FindPhases(shorter);
  EXPECT_FALSE(less.drift && less.drift->used);
}

// The consumer was the limit and the queues were full; then the source becomes the limit, and they
// run empty. In a whole run that is the look of queues that filled; of one that is known to be
// under way it is a change.
TEST(FindDrift, ASourceThatBecameSlowerIsNoStart) {
  SimulatedPipeline fast = Chain(0.001), slow = fast;
  for (SimulatedPipeline* pipeline : {&fast, &slow}) pipeline->consumer_s = 0.004;
  slow.stages[0].operators[0].blocked_s = 0.010;
  const RunView before = Record(fast, 10, 3), after = Record(slow, 10, 4);
  ASSERT_GT(before.windows[10].queues[0].mean_occupancy_ratio.value_or(0), 0.5);
  ASSERT_LT(after.windows[10].queues[0].mean_occupancy_ratio.value_or(1), 0.5);
  const auto drift = FindDrift(Joined(before, after));
  ASSERT_TRUE(drift && drift->cost);
  EXPECT_TRUE(drift->used);
  EXPECT_EQ(drift->cost->stage, "fetch");
  EXPECT_NEAR(static_cast<double>(drift->at_ns), 10e9, 0.6e9);
  EXPECT_FALSE(FindDrift(Record(fast, 20, 5)).has_value());
  EXPECT_FALSE(FindDrift(Record(slow, 20, 6)).has_value());
}

// The consumer gets nothing for the first half second of each epoch of four seconds.
RunView WithEpochs(bool gaps) {
  RunView run = Record(Chain(0.004), 24, 3);
  int64_t per_epoch = 0;
  for (const WindowRow& window : run.windows) {
    if (window.start_ns < Ns(4)) per_epoch += window.operators[0].completions_count;
  }
  run.run.epoch_splits_count = per_epoch;
  for (size_t w = 0; gaps && w < run.windows.size(); ++w) {
    if (w % 8 == 0 && w > 0) run.windows[w].steps.steps_count /= 10;
  }
  return run;
}

TEST(Phases, EndsOfEpochsAreSetApartWithWhatTheyCost) {
  const Phases phases = FindPhases(WithEpochs(true));
  ASSERT_EQ(phases.edges.unknown, "");
  EXPECT_NEAR(static_cast<double>(phases.edges.edges), 5, 1);
  EXPECT_TRUE(phases.edges.separated);
  // 0.45 s of some 245 steps a second, 64 rows each.
  EXPECT_NEAR(phases.edges.lost_rows, 0.45 * 245 * 64, 1500);
  EXPECT_LT(phases.edges.lost_interval.low, phases.edges.lost_rows);
  EXPECT_GT(TimeIn(phases, PhaseKind::kEdge), Ns(5));
  EXPECT_NEAR(phases.edges.lost_ratio, 0.45 / 4, 0.04);
}

TEST(Phases, EndsOfEpochsThatCostNothingStayInThePhase) {
  const Phases phases = FindPhases(WithEpochs(false));
  ASSERT_EQ(phases.edges.unknown, "");
  EXPECT_FALSE(phases.edges.separated);
  EXPECT_EQ(TimeIn(phases, PhaseKind::kEdge), 0);
  EXPECT_LT(std::abs(phases.edges.lost_rows), 0.25 * 0.5 * 245 * 64) << "a quarter of a window";
}

TEST(Phases, SaysWhyEndsOfEpochsAreNotKnown) {
  RunView run = WithEpochs(false);
  run.run.epoch_splits_count.reset();
  EXPECT_NE(FindPhases(run).edges.unknown, "");
  run.run.epoch_splits_count = 20;  // a tenth of a second
  EXPECT_NE(FindPhases(run).edges.unknown, "");
  run.run.epoch_splits_count = 1'000'000;
  EXPECT_NE(FindPhases(run).edges.unknown, "");
  run.windows.clear();
  EXPECT_NE(FindPhases(run).edges.unknown, "");
  // What a damaged store may say: it ends, whatever it finds.
  for (const int64_t count : {int64_t{9'000'000'000'000'000'000}, int64_t{1} << 53}) {
    RunView damaged = WithEpochs(false);
    damaged.run.epoch_splits_count = 1;
    for (WindowRow& window : damaged.windows) window.operators[0].completions_count = count;
    EXPECT_NE(FindPhases(damaged).edges.unknown, "");
  }
}

TEST(Phases, AColdFirstPassIsNotMixedWithWhatFollows) {
  RunView run = Record(Chain(0.004), 20, 3);
  for (OperatorRow& op : run.operators) {
    if (op.name == "fetch") op.kind = "io";
  }
  int64_t device = 0;
  for (int second = 0; second < 6; ++second) {
    double bytes = 0;
    for (const WindowRow& window : run.windows) {
      if (window.start_ns / 1'000'000'000 == second) {
        bytes += static_cast<double>(window.operators[0].bytes_out_bytes);
      }
    }
    run.device_reads.push_back({Ns(second), Ns(1), bytes});
    device += static_cast<int64_t>(bytes);
  }
  run.device_bytes = device;
  run.fetched_bytes = run.operators[0].bytes_out_bytes;
  Phases phases = FindPhases(run);
  EXPECT_NEAR(static_cast<double>(TimeIn(phases, PhaseKind::kCold)), 5.5e9, 1.1e9);
  ASSERT_TRUE(phases.warm_device_ratio.has_value());
  EXPECT_LT(*phases.warm_device_ratio, 0.05);
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.differential.has_value()) << statements.withheld;
  EXPECT_EQ(statements.differential->state, ReadState::kWarm);
  // One slice that was cold is no pass, nor is what was read while nothing was fetched.
  RunView little = run;
  for (size_t s = 1; s < little.device_reads.size(); ++s) little.device_reads[s].read_bytes /= 5;
  EXPECT_EQ(TimeIn(FindPhases(little), PhaseKind::kCold), 0);
  RunView start = run;
  for (DeviceReadRow& row : start.device_reads) row.read_bytes = row.start_ns == 0 ? 1e12 : 0;
  for (WindowRow& window : start.windows) {
    if (window.start_ns < Ns(1)) window.operators[0].bytes_out_bytes = 0;
  }
  EXPECT_EQ(TimeIn(FindPhases(start), PhaseKind::kCold), 0);
  // A run that was to be cold in every epoch is so to its end.
  run.run.cold = 1;
  EXPECT_EQ(TimeIn(FindPhases(run), PhaseKind::kCold), 0);
}

// A cold first pass at half the rate, and more: it was once taken for the filling of queues.
TEST(Phases, ASlowColdPassIsNoFill) {
  RunView run = Joined(Record(Chain(0.012), 6, 3), Record(Chain(0.004), 8, 4));
  for (OperatorRow& op : run.operators) {
    if (op.name == "fetch") op.kind = "io";
  }
  RunView unknown = run;  // what was read from where is not recorded
  for (int second = 0; second < 6; ++second) {
    double bytes = 0;
    for (const WindowRow& window : run.windows) {
      if (window.start_ns / 1'000'000'000 == second) {
        bytes += static_cast<double>(window.operators[0].bytes_out_bytes);
      }
    }
    run.device_reads.push_back({Ns(second), Ns(1), bytes});
  }
  const Phases phases = FindPhases(run);
  EXPECT_NEAR(static_cast<double>(TimeIn(phases, PhaseKind::kCold)), 6e9, 1.1e9);
  EXPECT_LT(static_cast<double>(TimeIn(phases, PhaseKind::kFill)), 0.6e9);
  ASSERT_TRUE(phases.slower.has_value());
  EXPECT_EQ(phases.slower->kind, PhaseKind::kCold);
  EXPECT_NEAR(phases.slower->time_ratio, 6.0 / 14, 0.08);
  EXPECT_NEAR(phases.slower->rate, 1 / 0.012, 15);
  EXPECT_NEAR(phases.slower->steady_rate, 1 / 0.004, 12);
  EXPECT_NE(Words(phases.slower).find("of the run, made"), std::string::npos);
  const Phases guessed = FindPhases(unknown);
  EXPECT_LT(static_cast<double>(TimeIn(guessed, PhaseKind::kFill)), 0.6e9)
      << "more batches than queues hold are no filling of queues";
  ASSERT_TRUE(guessed.slower.has_value());
  EXPECT_EQ(guessed.slower->kind, PhaseKind::kSlow);
}

// What the page is not about has its limit named: a job of one epoch has that part, too.
TEST(Phases, TheLimitOfWhatWasBeforeIsNamed) {
  SimulatedPipeline before = Chain(0.001);
  before.stages[0].operators[0].blocked_s = 0.012;
  const RunView run = Joined(Record(before, 8, 3), Record(Chain(0.009), 12, 4));
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.bottleneck);
  EXPECT_EQ(statements.bottleneck->findings[0].limit.name, "decode");
  ASSERT_TRUE(statements.earlier);
  EXPECT_EQ(statements.earlier->limit.name, "fetch");
  EXPECT_GT(statements.earlier->probability, 0.9);
  const RunView steady = Record(Chain(0.009), 12, 4);
  EXPECT_FALSE(MakeStatements(steady).earlier);
}

// Windows without a step have no rate to be a multiple of.
TEST(Phases, NoChangeIsTheMultipleOfNothing) {
  RunView run = Record(Chain(0.004), 20, 3);
  RunView few = run;
  for (WindowRow& window : run.windows) {
    const bool early = window.start_ns < Ns(8);
    window.steps.steps_count = early && window.start_ns != 0 ? 0 : 4;
  }
  // One step in every fourth window, then in every other.
  for (size_t w = 0; w < few.windows.size(); ++w) {
    few.windows[w].steps.steps_count = w % (w < few.windows.size() / 2 ? 4 : 2) == 0 ? 1 : 0;
  }
  for (const RunView* one : {&run, &few}) {
    const std::optional<Drift> drift = FindDrift(*one);
    if (!drift || !drift->rate) continue;
    EXPECT_GT(drift->rate->before, 0.1);
    EXPECT_LT(drift->rate->after / drift->rate->before, 100);
  }
}

TEST(SteadyRate, IsTheVerdicts) {
  // The source became slower: what was before says nothing of a prediction for what follows.
  RunView run = Joined(Record(Chain(0.002), 8, 3), Record(Chain(0.008), 12, 4));
  const PipelineModel model(run);
  RunView steps;
  for (const WindowRow& window : run.windows) {
    WindowRow& bare = steps.windows.emplace_back();
    bare.start_ns = window.start_ns;
    bare.duration_ns = window.duration_ns;
    bare.steps.steps_count = window.steps.steps_count;
  }
  const std::optional<double> steady = SteadyRate(steps);
  ASSERT_TRUE(steady.has_value());
  EXPECT_NEAR(*steady / model.demands().rate, 1, 0.03);
  EXPECT_NEAR(*steady, 1 / 0.008, 6);
  EXPECT_FALSE(SteadyRate(RunView()).has_value());
  // What a plan had said is held against that rate.
  run.prediction = PredictionRow{1 / 0.008, 110, 140, 200, "decode", "stage", false};
  const Statements statements = MakeStatements(run);
  ASSERT_TRUE(statements.planned.has_value());
  EXPECT_DOUBLE_EQ(statements.planned->observed, statements.model->demands().rate);
  EXPECT_NEAR(statements.planned->error_ratio(), 0, 0.05);
}

}  // namespace
}  // namespace headrace::analysis
