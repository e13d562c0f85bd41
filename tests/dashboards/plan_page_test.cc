// The pages of a plan, of its caches and of hypothetical settings: as people read them, and as
// JSON.
#include "dashboards/plan_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/model/what_if.h"
#include "dashboards/emit_page.h"
#include "dashboards/what_if_page.h"
#include "tests/analysis/synthetic_run.h"
#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// fetch, extract and batch, with extract on one thread, which limits: the reader can keep what
// leaves it.
analysis::RunView Reading() {
  analysis::SimulatedPipeline pipeline;
  pipeline.cores = 4;
  pipeline.stages = {
      {"fetch", 2, 4, {{"fetch", 0.0002, 0.003, 0, 0, 0.2, -1}}},
      {"decode",
       1,
       4,
       {{"decompress", 0.002, 0.002, 0, 0, 0.1, -1}, {"extract", 0.001, 0.003, 0, 0, 0.1, -1}}},
      {"batch", 1, 4, {{"batch", 0.0005, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.001;
  analysis::RunView run = analysis::Record(pipeline, 8, 3);
  run.program = "headrace";
  return run;
}

// All that a page refers to. The solver's seconds are made the same on every machine.
struct Planned {
  explicit Planned(analysis::Budget asked) : budget(std::move(asked)) {
    if (budget.cache) choice = analysis::ChooseCache(model, predictor, *budget.cache);
    plan = analysis::Allocate(predictor, budget);
    for (analysis::SolvedObjective& objective : plan.program.objectives)
      objective.proof.seconds = 0.001;
    const analysis::Variant then{plan.settings, plan.scales};
    worths = analysis::Sensitivity(model, predictor, then, analysis::Step::kUnit);
    over_cores = analysis::RateOverCores(predictor, then, 4);
    if (choice) cache.emplace(CachePage{model, plan, *budget.cache, *choice, 12800});
  }
  Planned(const Planned&) = delete;

  PlanPage Page(PlanAsked asked) const {
    PlanPage page{run, plan, worths, std::move(asked)};
    page.over_cores = &over_cores;
    if (cache) page.cache = &*cache;
    return page;
  }

  analysis::RunView run = Reading();
  analysis::PipelineModel model{run};
  analysis::Predictor predictor{model};
  analysis::Budget budget;
  std::optional<analysis::CacheChoice> choice;
  analysis::Allocation plan;
  std::vector<analysis::Worth> worths;
  analysis::Curve over_cores;
  std::optional<CachePage> cache;
};

// Caches of 1 GiB in memory, on one thread a stage, so that only a cache can gain.
analysis::Budget CacheAlone() {
  analysis::Budget budget;
  budget.max_threads = 1;
  budget.one_cache = true;
  analysis::CacheTier memory;
  memory.name = "memory";
  memory.budget_bytes = 1 << 30;
  memory.read_bytes_per_second = memory.write_bytes_per_second = 3e9;
  memory.rate_assumed = true;
  budget.cache = analysis::CacheQuestion{200, 20, {memory}, {false, true, false}};
  return budget;
}

TEST(PlanPage, WhatToChangeAndWhatToExpect) {
  const Planned planned({});
  ExpectGolden("plan.txt", PlanText(planned.Page({})));
  PlanAsked asked;
  asked.options = " --cores 4";
  EXPECT_THAT(PlanText(planned.Page(asked)),
              HasSubstr("next: headrace plan 1 --cores 4 -o plan.json\n"));
  asked.output = "my plan.json";
  EXPECT_THAT(PlanText(planned.Page(asked)), Not(HasSubstr("next: headrace plan")));
  EXPECT_THAT(PlanText(planned.Page(asked)), HasSubstr(" --plan 'my plan.json'\n"));
}

TEST(PlanPage, ObjectivesAreShownWhereTheyAreAskedFor) {
  const Planned planned({});
  const char* heading = "objectives, in order";
  EXPECT_THAT(PlanText(planned.Page({})), Not(HasSubstr(heading)));
  PlanAsked asked;
  asked.price = true;
  EXPECT_THAT(PlanText(planned.Page(asked)), HasSubstr(heading));
  EXPECT_THAT(PlanText(planned.Page(asked)), Not(HasSubstr("price: not in force")));
  EXPECT_THAT(PlanText(planned.Page(asked)), HasSubstr("power: not in force"));
  EXPECT_THAT(PlanText(planned.Page(asked)), Not(HasSubstr("\nprogram;")));
  asked.explain = true;
  EXPECT_THAT(PlanText(planned.Page(asked)), HasSubstr("\nprogram;"));
}

TEST(PlanPage, ABudgetThatIsTooSmall) {
  analysis::Budget budget;
  budget.cores = 0.2;
  const Planned planned(budget);
  PlanAsked asked;
  EXPECT_FALSE(TooSlow(planned.Page(asked)));  // a smaller budget was not asked for
  asked.cores = 0.2;
  asked.memory = "4GiB";
  const PlanPage page = planned.Page(asked);
  EXPECT_TRUE(TooSlow(page));
  EXPECT_THAT(
      PlanText(page),
      testing::StartsWith("infeasible at the present rate: 0.2 cores and 4GiB of memory allow "));
  EXPECT_THAT(PlanText(page), Not(HasSubstr("next:")));
}

TEST(PlanPage, Json) {
  const Planned planned({});
  PlanAsked asked;
  asked.cores = 4;
  const json out = json::parse(PlanJson(planned.Page(asked)));
  EXPECT_EQ(out["schema"], "headrace.plan/1");
  EXPECT_EQ(out["cores"], 4.0);
  for (const analysis::Change& change : planned.plan.changes)
    EXPECT_EQ(out["settings"][change.knob], change.to);
  EXPECT_EQ(out["changes"].size(), planned.plan.changes.size());
  EXPECT_EQ(out["predicted"]["batches_per_second"], planned.plan.predicted);
  EXPECT_EQ(out["worth_of_more"].size(), planned.worths.size());
  EXPECT_EQ(out["objectives"].size(), planned.plan.program.objectives.size());
  EXPECT_EQ(out["rate_over_cores"].size(), 4u);
  for (const char* key :
       {"run", "run_name", "pipeline", "now", "gain_ratio", "gain_interval", "promise", "risk",
        "then_limited_by", "memory_bytes", "solver", "cores_used", "watts", "knee_cores"}) {
    EXPECT_TRUE(out.contains(key)) << key;
  }
  EXPECT_FALSE(out.contains("cache"));
  EXPECT_FALSE(out.contains("emit"));
  EXPECT_TRUE(json::parse(PlanJson(planned.Page({})))["cores"].is_null());
}

TEST(PlanPage, ACacheThatIsPlanned) {
  const Planned planned(CacheAlone());
  ASSERT_EQ(planned.plan.caches.size(), 1u);
  ExpectGolden("plan_cache.txt", PlanText(planned.Page({})));
  const json out = json::parse(PlanJson(planned.Page({})));
  EXPECT_EQ(out["settings"]["cache.after"], "extract");
  EXPECT_EQ(out["settings"]["cache.tier"], "memory");
  EXPECT_EQ(out["caches"][0]["after"], "decode");
  EXPECT_EQ(out["cache"]["epoch_rows"], 12800.0);
  EXPECT_EQ(out["cache"]["epochs"], 20.0);
  EXPECT_EQ(out["cache"]["best"]["after"], "decode");
  EXPECT_EQ(out["cache"]["options"].size(), planned.choice->options.size());
  EXPECT_TRUE(out["total_seconds"].is_number());
}

TEST(WhatIfPage, TextAndJson) {
  const Planned planned({});
  const std::vector<std::string> words = {"decode.parallelism=4", "consumer.cost=2"};
  const analysis::Variant what = analysis::ParseWhatIf(planned.model, words);
  const analysis::Prediction prediction = planned.predictor.Predict(what);
  const std::vector<analysis::Worth> worths =
      analysis::Sensitivity(planned.model, planned.predictor, what, analysis::Step::kUnit);
  const double now = planned.model.demands().rate, rows = planned.model.demands().rows;
  const analysis::Interval gain =
      planned.predictor.Gain({planned.model.current(), {}}, what, prediction.rate / now - 1);
  const WhatIfPage page{planned.run, words, now, rows, prediction, planned.predictor.contention(),
                        gain,        worths};
  ExpectGolden("what_if.txt", WhatIfText(page));
  const json out = json::parse(WhatIfJson(page));
  EXPECT_EQ(out["schema"], "headrace.what_if/1");
  EXPECT_EQ(out["what_if"], json(words));
  EXPECT_EQ(out["limits"].size(), prediction.limits.size());
  EXPECT_EQ(out["limited_by"]["name"], prediction.limits[prediction.binding].name);
  EXPECT_EQ(out["predicted"]["low"], prediction.interval.low);
  EXPECT_TRUE(out["contention"].contains("each_core_ratio"));
}

// A plan for a run without operators of ours has all keys of a plan, and what it emits.
TEST(EmitPage, APlanOfARunSeenFromOutside) {
  analysis::RunView run;
  run.run.run_id = 7;
  run.program = "headrace";
  analysis::Emitted emitted;
  emitted.settings = {{"num_workers", "4", "2", "they are busy"},
                      {"prefetch_factor", "900 << 20", "", "memory"},
                      {"in_order", "False", "True", "order", false, true}};
  emitted.unknown = {{"pin_memory", "nothing shows it"}};
  const json out = json::parse(OutsidePlanJson(run, emitted));
  const Planned planned({});
  const json whole = json::parse(PlanJson(planned.Page({})));
  for (const auto& [key, value] : whole.items()) {
    if (key == "cores" || key == "rate_over_cores" || key == "knee_cores") continue;
    EXPECT_TRUE(out.contains(key)) << key;
  }
  const json expected = {{"num_workers", 4}, {"prefetch_factor", 943718400}};
  EXPECT_EQ(out["emit"]["settings"], expected);
  EXPECT_EQ(out["emit"]["lines"][2]["kind"], "choice");
  EXPECT_EQ(out["emit"]["not_recommended"][0]["name"], "pin_memory");
  EXPECT_TRUE(out["emit"]["predicted"].is_null());
  EXPECT_THAT(EmitText(run, emitted, ""),
              HasSubstr("headrace plan 7 --emit dataloader -o plan.json"));
  emitted.target = analysis::EmitTarget::kTfData;
  EXPECT_THAT(EmitText(run, emitted, ""), Not(HasSubstr("--emit dataloader")));
}

}  // namespace
}  // namespace headrace::dashboards
