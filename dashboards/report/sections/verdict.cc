// The verdict for machines: state, limit, rates and the plan. People read the same on the first
// page (dashboards/report/first_page).
#include <fmt/format.h>

#include <cmath>

#include "analysis/model/bottleneck.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/model/running_ahead.h"
#include "dashboards/report/accelerator_words.h"
#include "dashboards/report/first_page.h"
#include "dashboards/report/outside_names.h"
#include "dashboards/report/outside_words.h"
#include "dashboards/report/page_words.h"
#include "dashboards/report/report.h"
#include "dashboards/report/report_state.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Bottleneck;
using analysis::Finding;
using analysis::PipelineModel;
using analysis::RunView;
using analysis::Verdict;

// What the plan that this run was started with had said, beside what came of it.
void AddPlanned(const analysis::Statements& statements, Section* section) {
  if (!statements.planned) return;
  const analysis::PlannedRate& said = *statements.planned;
  Quantity predicted = Quantity::Of(said.predicted, Unit::kPerSecond, Source::kEstimate);
  if (said.low && said.high) predicted = predicted.WithInterval(*said.low, *said.high);
  section->facts.push_back({"planned.batches_per_second", predicted});
  section->facts.push_back(
      {"planned.error_ratio", Quantity::Of(said.error_ratio(), Unit::kRatio, Source::kEstimate)});
}

void AddPlan(const analysis::Statements& statements, Section* section) {
  const analysis::Allocation& plan = *statements.allocation;
  AddPlanned(statements, section);
  section->facts.push_back(
      {"predicted.batches_per_second",
       Quantity::Of(plan.predicted, Unit::kPerSecond, Source::kEstimate)
           .WithInterval(plan.predicted_interval.low, plan.predicted_interval.high)});
  section->facts.push_back(
      {"predicted.gain_ratio",
       Quantity::Of(plan.predicted / plan.now - 1, Unit::kRatio, Source::kEstimate)
           .WithInterval(plan.gain_interval.low, plan.gain_interval.high)});
  section->facts.push_back({"then_limited_by", plan.limited_by.name});
  if (std::isfinite(plan.next_bound) && plan.limited_by.bound > 0) {
    section->facts.push_back({"after_that.name", plan.next.name});
    section->facts.push_back(
        {"after_that.higher_ratio", Quantity::Of(plan.next_bound / plan.limited_by.bound - 1,
                                                 Unit::kRatio, Source::kEstimate)});
  }
  Table changes{
      "changes", "", {{"knob", "knob"}, {"from", "now"}, {"to", "plan"}, {"why", "why"}}, {}, true};
  for (const analysis::Change& change : plan.changes) {
    changes.rows.push_back({change.knob, Number(change.from, Unit::kCount, ""),
                            Number(change.to, Unit::kCount, ""), change.why});
  }
  section->tables.push_back(std::move(changes));
}

Table Findings(const PipelineModel& model, const Bottleneck& bottleneck) {
  Table table{"findings",
              "",
              {{"name", "row"},
               {"kind", "kind"},
               {"operator", "operator"},
               {"probability", "probability"},
               {"bound_batches_per_second", "bound"},
               {"utilisation_ratio", "used"},
               {"within_limit", "within the limit"}},
              {},
              true};
  for (const Finding& finding : bottleneck.findings) {
    Quantity bound = Quantity::Unavailable("limits nothing in this run", Unit::kPerSecond);
    if (std::isfinite(finding.limit.bound)) {
      bound = Quantity::Of(finding.limit.bound, Unit::kPerSecond, Source::kAccount)
                  .WithInterval(finding.bound_interval.low, finding.bound_interval.high);
    }
    table.rows.push_back({finding.limit.name, finding.limit.kind_name(),
                          finding.culprit ? model.operators()[*finding.culprit].name : "",
                          Quantity::Of(finding.probability, Unit::kRatio, Source::kEstimate), bound,
                          Ratio(finding.utilisation, ""),
                          std::string(finding.within_first ? "yes" : "no")});
  }
  return table;
}

// The three ways in which the limit was looked for, where runs without input or from the device
// tell the third. Where they differ the first page says it.
void AddThirdOpinion(const Bottleneck& bottleneck, const analysis::Differential& differential,
                     Section* section) {
  if (!differential.opinion) return;
  section->sentences.push_back(
      {"opinions",
       fmt::format(
           "costs: {}; waits and queues: {}; runs with and without input: {} ({})",
           bottleneck.verdict == Verdict::kUndecided ? std::string("undecided")
                                                     : LimitWord(bottleneck.findings[0].limit),
           bottleneck.witness ? LimitWord(*bottleneck.witness) : std::string("nothing stands out"),
           analysis::InputOpinionName(*differential.opinion), differential.because)});
  section->facts.push_back({"third_opinion", analysis::InputOpinionName(*differential.opinion)});
  if (differential.disagreement.empty()) return;
  section->facts.push_back({"third_disagreement", differential.disagreement});
}

// A run without input has no pipeline to judge: it says what the trainer takes.
void AddCeiling(const RunView& run, const analysis::Statements& statements, Section* section) {
  const double seconds = static_cast<double>(run.steps.wall_ns) * 1e-9;
  if (run.steps.steps_count > 0 && seconds > 0) {
    const double rate = static_cast<double>(run.steps.steps_count) / seconds;
    section->facts.push_back({"ceiling.batches_per_second", Number(rate, Unit::kPerSecond, "")});
  }
  section->facts.push_back({"state", ReportStateName(ReportState::kWithheld)});
  section->facts.push_back({"reason", statements.withheld});
}

void AddWithheld(const RunView& run, const analysis::Statements& statements, Section* section) {
  section->facts.push_back({"state", ReportStateName(ReportState::kWithheld)});
  section->facts.push_back({"reason", WithheldWords(run, statements)});
}

// What the first page says of the limit beside its name.
void AddLimit(const PipelineModel& model, const Bottleneck& bottleneck, Section* section) {
  const Finding& first = bottleneck.findings[0];
  const auto add = [&](const std::string& prefix, const analysis::Limit& limit,
                       std::optional<size_t> culprit) {
    section->facts.push_back({prefix + ".name", limit.name});
    section->facts.push_back({prefix + ".kind", limit.kind_name()});
    section->facts.push_back(
        {prefix + ".operator", culprit ? model.operators()[*culprit].name : ""});
  };
  add("limit", first.limit, first.culprit);
  section->facts.push_back(
      {"limit.probability", Quantity::Of(first.probability, Unit::kRatio, Source::kEstimate)});
  if (!bottleneck.loss.empty()) section->facts.push_back({"limit.loss", bottleneck.loss});
  if (!bottleneck.alone) return;
  const analysis::Limit& alone = *bottleneck.alone;
  add("limit.alone", alone, alone.kind->Culprit(model, alone));
}

// What limited before a change, or at the beginning.
void AddEarlier(const analysis::EarlierLimit& earlier, Section* section) {
  section->facts.push_back({"earlier.phase", analysis::PhaseKindName(earlier.kind)});
  section->facts.push_back({"earlier.name", earlier.limit.name});
  section->facts.push_back({"earlier.kind", earlier.limit.kind_name()});
  section->facts.push_back(
      {"earlier.probability", Quantity::Of(earlier.probability, Unit::kRatio, Source::kEstimate)});
}

// Why no verdict can rest on the figures, one doubt a row.
Table Doubts(const analysis::Doubts& doubts) {
  Table table{"doubts", "", {{"text", "what cannot be"}}, {}, true};
  for (const std::string& line : doubts.lines) table.rows.push_back({line});
  return table;
}

// What the figures hold under: the load of other programs, a quota.
void AddConditions(const RunView& run, const analysis::Statements& statements, Section* section) {
  if (const auto load = OtherLoadOf(run, statements)) {
    section->facts.push_back({"conditional_on_load", "true"});
    if (load->used_cores) {
      section->facts.push_back(
          {"other_load.cores_used", Number(load->used_cores, Unit::kCores, "")});
      section->facts.push_back({"other_load.cores", Number(load->cores, Unit::kCores, "")});
    } else {
      section->facts.push_back({"other_load.pressure_ratio", Ratio(load->pressure_ratio, "")});
    }
  }
  std::optional<analysis::CpuQuota> quota;
  if (statements.model) quota = statements.model->cpu_quota();
  if (statements.outside) quota = statements.outside->core_budget.quota;
  if (!quota) return;
  section->facts.push_back({"cpu_quota.cores", Number(quota->cores, Unit::kCores, "")});
  section->facts.push_back(
      {"cpu_quota.stopped_ratio", Ratio(quota->stopped_ratio, "the control group did not tell")});
}

void AddBottleneck(const analysis::Statements& statements, Section* section) {
  const PipelineModel& model = *statements.model;
  const Bottleneck& bottleneck = *statements.bottleneck;
  const double job_stall = analysis::JobStall(statements);
  Quantity stall = Quantity::Of(job_stall, Unit::kRatio, Source::kAccount);
  if (bottleneck.stall_interval && job_stall <= model.stall_ratio()) {
    stall = stall.WithInterval(bottleneck.stall_interval->low, bottleneck.stall_interval->high);
  }
  section->facts = {
      {"state", ReportStateName(StateOf(bottleneck.verdict))},
      {"grade", StallGradeKey(analysis::LoadingRatio(statements))},
      {"stall_ratio", stall},
      {"observed.batches_per_second", Number(model.demands().rate, Unit::kPerSecond, "")},
      {"observed.rows_per_second",
       Number(model.demands().rate * model.demands().rows, Unit::kRowsPerSecond, "")}};
  AddLimit(model, bottleneck, section);
  if (statements.earlier) AddEarlier(*statements.earlier, section);
  if (bottleneck.verdict == Verdict::kUndecided) {
    section->facts.push_back({"measure", bottleneck.measure});
  }
  if (statements.own_loading) {
    section->facts.push_back({"own_loading.name", statements.own_loading->name});
    section->facts.push_back({"own_loading.ratio", Quantity::Of(statements.own_loading->ratio,
                                                                Unit::kRatio, Source::kEstimate)});
  }
  if (const std::string slower = analysis::Words(model.phases().slower); !slower.empty()) {
    section->facts.push_back({"slower_part", slower});
  }
  if (!bottleneck.disagreement.empty()) {
    section->facts.push_back({"disagreement", bottleneck.disagreement});
  }
  if (const std::string ahead = analysis::AheadWords(model); !ahead.empty()) {
    section->facts.push_back({"runs_ahead", ahead});
  }
  if (statements.differential) AddThirdOpinion(bottleneck, *statements.differential, section);
  if (statements.allocation) AddPlan(statements, section);
  section->tables.push_back(Findings(model, bottleneck));
}

std::optional<Section> VerdictSection(const RunView& run, const analysis::Statements& statements) {
  Section section{"verdict", "", {}, {}, {}};
  if (run.run.kind == "ceiling") {
    AddCeiling(run, statements, &section);
  } else if (statements.bottleneck) {
    AddBottleneck(statements, &section);
  } else if (statements.outside && statements.outside->withheld.empty()) {
    AddOutsideFacts(run, *statements.outside, &section);
    if (!run.operators.empty()) {
      section.facts.push_back({"outside_because", statements.withheld});
    }
  } else {
    AddWithheld(run, statements, &section);
  }
  if (statements.accelerators) {
    AddAcceleratorFacts(*statements.accelerators, TrainerWord(statements), &section);
  }
  if (statements.doubts.any()) section.tables.push_back(Doubts(statements.doubts));
  AddConditions(run, statements, &section);
  return section;
}

HR_SECTION("verdict", 0, VerdictSection);

}  // namespace
}  // namespace headrace::dashboards
