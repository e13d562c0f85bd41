// The report of a run for pages: all that `headrace report --json` has, what each card says, and
// the drawing of the pipeline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "dashboards/json_number.h"
#include "dashboards/pages/card_json.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/render/render.h"
#include "dashboards/report/limit_words.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

Json CardsJson(const LoadedRun& loaded) {
  Json cards = Json::object();
  for (const auto& [key, entry] : Registry<CardEntry>::Global().entries()) {
    cards[key] = CardJson(entry.make(loaded), loaded.run.run.run_id);
  }
  return cards;
}

// The share of its threads' time that a stage spent in each state, in the steady phase.
Json StageJson(const analysis::PipelineModel& model, size_t s,
               const std::vector<analysis::Finding>& findings, bool limit) {
  const analysis::StageModel& stage = model.stages()[s];
  const double busy = std::clamp(stage.busy_ratio, 0.0, 1.0);
  Json cpu, blocked, runnable;
  if (model.splits_cpu() && stage.parallelism > 0) {
    const double on_cpu = model.demands().stage_cpu_s[s] * model.demands().rate / stage.parallelism;
    const double share = std::min(busy, on_cpu);
    const double waits = std::min(busy - share, stage.runnable_ratio.value_or(0));
    cpu = share;
    runnable = waits;
    blocked = busy - share - waits;
  }
  Json bound;
  for (const analysis::Finding& finding : findings) {
    if (finding.limit.Is(analysis::kStageLimit) && finding.limit.index == s) {
      bound = NumberOrNull(finding.limit.bound);
    }
  }
  Json inputs = Json::array();
  for (const size_t input : stage.inputs) inputs.push_back(model.stages()[input].name);
  return {{"name", stage.name},
          {"threads", stage.parallelism},
          {"max_threads", stage.max_parallelism},
          {"on_trainer", stage.on_consumer},
          {"busy", busy},
          {"c", std::move(cpu)},
          {"b", std::move(blocked)},
          {"q", std::move(runnable)},
          {"wi", stage.wait_in_ratio},
          {"wo", stage.wait_out_ratio},
          {"bound_batches_per_second", std::move(bound)},
          {"limit", limit},
          {"input", std::move(inputs)}};
}

Json QueueJson(const analysis::QueueRow& queue) {
  return {{"name", queue.name},
          {"producer", queue.producer_stage},
          {"consumer", queue.consumer_stage},
          {"capacity", queue.capacity_count},
          {"fill", NumberOrNull(queue.mean_occupancy_ratio)},
          {"full", NumberOrNull(queue.full_ratio)},
          {"empty", NumberOrNull(queue.empty_ratio)}};
}

Json PipelineJson(const LoadedRun& loaded) {
  const analysis::Statements& statements = loaded.statements;
  if (!statements.model || !statements.bottleneck) return nullptr;
  const analysis::PipelineModel& model = *statements.model;
  const analysis::Bottleneck& bottleneck = *statements.bottleneck;
  std::vector<size_t> limits;
  bool trainer_limits = false;
  if (bottleneck.verdict != analysis::Verdict::kUndecided) {
    const size_t marked = bottleneck.verdict == analysis::Verdict::kBalanced ? 2 : 1;
    for (size_t i = 0; i < std::min(marked, bottleneck.findings.size()); ++i) {
      const analysis::Limit& limit = bottleneck.findings[i].limit;
      trainer_limits = trainer_limits || limit.kind->AtConsumer();
      const std::vector<size_t> stages = limit.kind->StagesAt(model, limit);
      limits.insert(limits.end(), stages.begin(), stages.end());
    }
  }
  Json stages = Json::array(), queues = Json::array();
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const bool limit = std::find(limits.begin(), limits.end(), s) != limits.end();
    stages.push_back(StageJson(model, s, bottleneck.findings, limit));
  }
  for (const analysis::QueueRow& queue : loaded.run.queues) queues.push_back(QueueJson(queue));
  Json trainer;
  if (HasTrainer(model)) {
    trainer = {{"wait_ratio", model.stall_ratio()},
               {"takes_batches_per_second", model.demands().rate},
               {"wants_batches_per_second", 1 / model.demands().consumer_s},
               {"limit", trainer_limits}};
  }
  return {{"stages", std::move(stages)},
          {"queues", std::move(queues)},
          {"trainer", std::move(trainer)}};
}

// Questions that people ask of the store, to begin with.
Json QuestionsJson(int64_t run_id) {
  struct Question {
    const char *title, *sql;
  };
  constexpr Question kQuestions[] = {
      {"Where did the operators' time go?",
       "SELECT stage, operator, busy_ns / 1e9 AS busy_s, on_cpu_ns / 1e9 AS on_cpu_s, blocked_ns / "
       "1e9 AS blocked_s, runnable_ns / 1e9 AS runnable_s\nFROM operator_summary WHERE run_id = "
       "{run}\nORDER BY busy_ns DESC"},
      {"How full were the queues?",
       "SELECT queue, capacity_count, mean_occupancy_ratio, full_ratio, empty_ratio\nFROM "
       "queue_summary WHERE run_id = {run}"},
      {"When did the trainer wait longest?",
       "SELECT start_ns / 1e9 AS at_s, duration_ns / 1e9 AS length_s, steps_count, wait_ns / 1e9 "
       "AS "
       "waited_s\nFROM step_interval WHERE run_id = {run}\nORDER BY wait_ns DESC LIMIT 20"},
      {"Why were threads off a CPU?",
       "SELECT operator, thread, cause, blocked_ns / 1e9 AS blocked_s, blocked_count\nFROM "
       "off_cpu_summary WHERE run_id = {run}\nORDER BY blocked_ns DESC LIMIT 30"},
      {"What did it read and write, by device?",
       "SELECT device, direction, operator, process, requests_count, bytes, mean_size_bytes, "
       "mean_latency_ns\nFROM io_summary WHERE run_id = {run}\nORDER BY bytes DESC LIMIT 30"},
      {"In which functions was the CPU time?",
       "SELECT operator, samples_count, time_ns / 1e9 AS time_s, folded\nFROM stack_summary WHERE "
       "run_id = {run} AND kind = 'cpu'\nORDER BY time_ns DESC LIMIT 20"},
      {"What did the tuner decide?",
       "SELECT at_ns / 1e9 AS at_s, action, limited_by, now_rate, predicted_rate, observed_rate, "
       "verdict, reason\nFROM decision_summary WHERE run_id = {run}\nORDER BY decision_index"},
      {"How do the runs of this database compare?",
       "SELECT run_id, name, state, duration_ns / 1e9 AS length_s, rows_count * 1e9 / wall_ns AS "
       "rows_per_s, wait_ns * 1.0 / (wait_ns + compute_ns) AS stall_ratio\nFROM run_summary LEFT "
       "JOIN step_summary USING (run_id)\nORDER BY run_id DESC LIMIT 50"},
      {"Which views are there?",
       "SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name"}};
  Json questions = Json::array();
  for (const Question& question : kQuestions) {
    questions.push_back({{"title", question.title}, {"sql", ForRun(question.sql, run_id)}});
  }
  return questions;
}

// Six digits of each number with a fraction: more than any page shows. Whole ones, times and counts
// among them, stay.
void Shorten(Json* value) {
  if (value->is_number_float()) {
    const double whole = value->get<double>();
    constexpr double kSixDigits = 1e6;
    if (std::abs(whole) >= kSixDigits || whole == std::floor(whole)) return;
    *value = std::strtod(fmt::format("{:.6g}", whole).c_str(), nullptr);
  } else if (value->is_structured()) {
    for (Json& each : *value) Shorten(&each);
  }
}

// Takes members of the rows of a table that say nothing, or what no page shows.
template <typename Unwanted>
void LeaveOutMembers(Json* root, const char* table, const Unwanted& unwanted) {
  if (!root->contains(table)) return;
  for (Json& row : (*root)[table]) {
    Json kept = Json::object();
    for (const auto& [key, value] : row.items()) {
      if (!unwanted(key, value)) kept[key] = value;
    }
    row = std::move(kept);
  }
}

// What no page draws, so that a file can be mailed and a run of many operators is soon there.
void LeaveOutOfPages(Json* root) {
  for (const char* key :
       {"stacks", "page_faults", "transform_split", "transform_classes", "stage_split",
        "per_million_rows", "io_sizes", "block_io", "differential_stalls", "questions"}) {
    root->erase(key);
  }
  const auto keep = [root](const char* key, const auto& wanted) {
    if (!root->contains(key)) return;
    Json kept = Json::array();
    for (const Json& row : (*root)[key]) {
      if (wanted(row)) kept.push_back(row);
    }
    (*root)[key] = std::move(kept);
  };
  keep("recommendations", [](const Json& row) { return row.value("advice", "") == "fires"; });
  keep("losses", [](const Json& row) {
    return row.contains("lost_count") && row["lost_count"].is_number() &&
           row["lost_count"].get<double>() > 0;
  });
  for (const char* table : {"time_split", "operators"}) {
    LeaveOutMembers(root, table, [](const std::string& key, const Json&) {
      const bool reason = key.ends_with("_unavailable") && key != "on_cpu_ratio_unavailable";
      return reason || key == "residual_ratio";
    });
  }
  LeaveOutMembers(root, "probes", [](const std::string& key, const Json& value) {
    return key != "state" && value.is_string() && value.get<std::string>().empty();
  });
  Shorten(root);
}

std::string ReportAnswer(const PageRun& page, const PageQuery& query) {
  const LoadedRun& loaded = page.loaded();
  Json root = Json::parse(RenderJson(loaded.report, loaded.run));
  root["cards"] = CardsJson(loaded);
  root["pipeline"] = PipelineJson(loaded);
  root["questions"] = QuestionsJson(loaded.run.run.run_id);
  if (!query.Text("brief", "").empty()) LeaveOutOfPages(&root);
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Those of a run alone, without its report, which takes longer.
std::string QuestionsAnswer(const PageRun& page, const PageQuery&) {
  return Json({{"schema", "headrace.questions/1"}, {"questions", QuestionsJson(page.id())}}).dump();
}

HR_PAGE_ANSWER("questions", {.make = QuestionsAnswer});
HR_PAGE_ANSWER("report", {.make = ReportAnswer, .in_file = true, .of_report = true});

}  // namespace
}  // namespace headrace::dashboards
