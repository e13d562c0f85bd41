// What recording cost, what was lost, and which measurements were not to be had.
#include <fmt/format.h>

#include <algorithm>

#include "base/instrumentation_cost.h"
#include "base/units.h"
#include "dashboards/report/losses.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

// A run below this is too short to divide by: the collector's own figures are read once a second,
// and what it does at the run's begin and end is most of them.
constexpr int64_t kLeastRunNs = 1'000'000'000;

constexpr double kShownRatio = 0.001;  // of one core; less is not worth words

// What recording took. Ratios are absent where they are unknown, or the run too short for them.
struct RecordingCost {
  bool divisible = false;                // the run is long enough to divide by
  std::optional<double> cpu_ns;          // of the collector
  std::optional<double> cpu_ratio;       // of one core
  std::optional<double> kernel_ns;       // of our programs in the kernel
  std::optional<double> kernel_ratio;    // of one core
  std::optional<double> accounts_ratio;  // of one core, in the program's threads; an estimate
  std::optional<double> cores;           // of the machine
  std::optional<double> machine_ratio;
  std::optional<double> rss_bytes;
  double lost = 0;  // events
};

// Of the reader, and of DataLoaders with the import hook. Empty: of others nobody knows.
std::optional<double> AccountsNs(const analysis::RunView& run) {
  double visits = 0, batches = 0;
  for (const analysis::OperatorRow& op : run.operators) {
    if (!op.enters_count) return std::nullopt;
    visits += static_cast<double>(*op.enters_count);
    if (ReceivesHookedBatches(op.kind, op.stage))
      batches += static_cast<double>(op.completions_count);
  }
  if (batches == 0 && (run.run.pipeline_text.empty() || visits == 0)) return std::nullopt;
  return InstrumentationNs(visits, batches);
}

RecordingCost CostOf(const analysis::RunView& run) {
  RecordingCost cost;
  const double run_ns = static_cast<double>(run.run.duration_ns);
  cost.divisible = run.run.duration_ns >= kLeastRunNs;
  if (const auto* cpu = run.FindHost("collector_cpu_ns")) cost.cpu_ns = cpu->last_value;
  if (const auto* rss = run.FindHost("collector_rss_bytes")) cost.rss_bytes = rss->maximum_value;
  if (const auto* cores = run.FindHost("host_cores")) cost.cores = cores->last_value;
  cost.kernel_ns = SumOf(run, "bpf_run_time_ns");
  if (cost.divisible) {
    if (const auto accounts_ns = AccountsNs(run)) cost.accounts_ratio = *accounts_ns / run_ns;
    // More than all cores is no estimate.
    if (cost.accounts_ratio > cost.cores.value_or(1)) cost.accounts_ratio.reset();
    if (cost.cpu_ns) cost.cpu_ratio = *cost.cpu_ns / run_ns;
    if (cost.kernel_ns) cost.kernel_ratio = *cost.kernel_ns / run_ns;
  }
  if (cost.cpu_ratio && cost.cores && *cost.cores > 0) {
    cost.machine_ratio =
        (*cost.cpu_ratio + cost.kernel_ratio.value_or(0) + cost.accounts_ratio.value_or(0)) /
        *cost.cores;
    // Times of two clocks: no share of anything.
    if (*cost.machine_ratio > 1) cost.machine_ratio.reset();
  }
  // Losses are of many kinds: a sum over them is a part of no total.
  for (const analysis::LossRow& loss : run.losses) {
    if (analysis::IsPossibleCount(run, loss.lost_count)) {
      cost.lost += static_cast<double>(loss.lost_count);
    }
  }
  return cost;
}

std::vector<Fact> CostFacts(const RecordingCost& cost) {
  const std::string why_none = cost.cpu_ns && !cost.divisible
                                   ? "the run is shorter than 1 s"
                                   : "the collector's CPU time was not recorded";
  return {
      {"collector_cpu_ratio", Ratio(cost.cpu_ratio, why_none)},
      {"kernel_programs_cpu_ratio",
       Ratio(cost.kernel_ratio, cost.kernel_ns && !cost.divisible
                                    ? why_none
                                    : "no eBPF program ran, or the kernel does not measure them")},
      {"accounts_cpu_ratio",
       cost.accounts_ratio
           ? Quantity::Of(*cost.accounts_ratio, Unit::kRatio, Source::kEstimate)
           : Quantity::Unavailable("estimated for the reader and for workers of PyTorch's "
                                   "DataLoader, in runs of 1 s or more",
                                   Unit::kRatio)},
      {"machine_ratio", Ratio(cost.machine_ratio, why_none)},
      {"collector_rss_bytes", Bytes(cost.rss_bytes, "the collector's memory was not recorded")},
      {"events_lost_count", Number(cost.lost, Unit::kCount, "")}};
}

std::string CostText(const RecordingCost& cost) {
  std::string text =
      cost.cpu_ratio ? fmt::format("recording used {} of one core", FormatPercent(*cost.cpu_ratio))
      : cost.cpu_ns  ? fmt::format("recording used {} of CPU time", FormatDuration(*cost.cpu_ns))
                     : std::string("recording cost unavailable (not recorded)");
  if (cost.rss_bytes) text += ", " + FormatBytes(*cost.rss_bytes);
  if (cost.kernel_ns && !cost.divisible) {
    text += fmt::format("; its eBPF programs {}", FormatDuration(*cost.kernel_ns));
  }
  if (cost.kernel_ratio) {
    text += fmt::format("; its eBPF programs {}", FormatPercent(*cost.kernel_ratio));
  }
  if (cost.accounts_ratio && *cost.accounts_ratio >= kShownRatio) {
    text += fmt::format("; instrumentation in the program some {} (estimated)",
                        FormatPercent(*cost.accounts_ratio));
  }
  if (cost.machine_ratio && (cost.kernel_ratio || cost.accounts_ratio)) {
    text += fmt::format(": {} of the machine's {:.0f} cores", FormatPercent(*cost.machine_ratio),
                        *cost.cores);
  }
  return text + fmt::format("; {:.0f} event{} lost", cost.lost, cost.lost == 1 ? "" : "s");
}

// A clock of each thread's own is stopped and started by the kernel at every switch.
bool SampledByThreadClocks(const analysis::RunView& run) {
  return std::any_of(run.probes.begin(), run.probes.end(), [](const analysis::ProbeRow& probe) {
    return probe.probe == "CPU stacks without BPF" && probe.state == "degraded";
  });
}

void SayLosses(const analysis::RunView& run, Section* section) {
  // What the program's accounts say they lost is the program's word, too.
  std::vector<analysis::LossRow> possible;
  for (const analysis::LossRow& loss : run.losses) {
    if (analysis::IsPossibleCount(run, loss.lost_count)) {
      possible.push_back(loss);
    } else {
      section->sentences.push_back(
          {"LOST", fmt::format("{}: {:.3g} claimed: not believed", loss.what,
                               static_cast<double>(loss.lost_count))});
    }
  }
  for (const std::string& line : LossLines(possible)) section->sentences.push_back({"LOST", line});
}

Table LossTable(const analysis::RunView& run) {
  Table losses{
      "losses",
      "",
      {{"what", "what"}, {"lost_count", "lost"}, {"total_count", "of"}, {"affects", "affects"}},
      {},
      true};
  for (const analysis::LossRow& loss : run.losses) {
    std::optional<double> all;
    if (IsTotal(loss) || (loss.total_count && loss.lost_count == 0)) {
      all = static_cast<double>(*loss.total_count);
    }
    if (all && !analysis::IsPossibleCount(run, *loss.total_count)) all.reset();
    std::optional<double> count;
    if (analysis::IsPossibleCount(run, loss.lost_count)) {
      count = static_cast<double>(loss.lost_count);
    }
    losses.rows.push_back({loss.what, Number(count, Unit::kCount, "not believed"),
                           Number(all, Unit::kCount, "how many there were is not known"),
                           std::string(loss.lost_count > 0 ? AffectedBy(loss.what) : "")});
  }
  return losses;
}

// What the collector spent on each probe.
Table ProbeCostTable(const analysis::RunView& run) {
  Table probes{"probe_cost",
               "",
               {{"probe", "probe"}, {"read_seconds", "reading"}, {"reads_count", "readings"}},
               {},
               true};
  for (const analysis::MeasurementRow& row : run.measurements) {
    if (row.metric != "probe_read_ns") continue;
    const auto reads = SumOf(run, "probe_reads_count", [&](const analysis::MeasurementRow& each) {
      return each.subject == row.subject;
    });
    probes.rows.push_back({row.subject, Number(row.value, Unit::kNanoseconds, "not recorded"),
                           Number(reads, Unit::kCount, "not recorded")});
  }
  return probes;
}

std::optional<Section> Cost(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"cost", "", {}, {}, {}};
  const RecordingCost cost = CostOf(run);
  section.facts = CostFacts(cost);
  section.sentences.push_back({"COST", CostText(cost)});
  if (SampledByThreadClocks(run)) {
    section.sentences.push_back(
        {"COST",
         "not in it: CPU stacks without BPF make every context switch of the program longer (a "
         "program that does little else took 87 % more CPU time, docs/measurements.md); --without "
         "'CPU stacks without BPF' leaves them out"});
  }
  SayLosses(run, &section);
  section.tables.push_back(LossTable(run));
  Table probes = ProbeCostTable(run);
  if (!probes.rows.empty()) section.tables.push_back(std::move(probes));
  return section;
}

// Probes that fail for one reason are told of once.
struct Failure {
  const analysis::ProbeRow* row;  // the first of them
  std::string probes, affects;
};

Failure& FailureOf(std::vector<Failure>* failures, const analysis::ProbeRow& probe) {
  for (Failure& failure : *failures) {
    if (failure.row->state == probe.state && failure.row->reason == probe.reason &&
        failure.row->fix == probe.fix) {
      return failure;
    }
  }
  return failures->emplace_back(Failure{&probe, "", ""});
}

std::optional<Section> Probes(const analysis::RunView& run,
                              const analysis::Statements& statements) {
  Section section{"measurements", "Measurements", {}, {}, {}};
  section.facts = {
      {"accounting_level", Number(static_cast<double>(run.run.accounting_level), Unit::kCount, "")},
      {"accounting_note", run.run.accounting_note}};
  if (statements.model) {
    const analysis::PipelineModel& model = *statements.model;
    section.sentences.push_back(
        {"phase", fmt::format("steady from {} to {} of {}",
                              FormatDuration(static_cast<double>(model.steady_first_ns())),
                              FormatDuration(static_cast<double>(model.steady_last_ns())),
                              FormatDuration(static_cast<double>(run.run.duration_ns)))});
    section.sentences.push_back(
        {"level",
         fmt::format("measurement level {}; c from {}", run.run.accounting_level,
                     model.splits_cpu() ? model.split_source()
                                        : std::string("nothing: not split from b and q"))});
  }
  Table table{"probes",
              "",
              {{"probe", "probe"},
               {"state", "state"},
               {"reason", "reason"},
               {"fix", "fix"},
               {"affects", "missing without it"}},
              {},
              true};
  std::string active;
  std::vector<Failure> failures;
  for (const analysis::ProbeRow& probe : run.probes) {
    table.rows.push_back({probe.probe, probe.state, probe.reason, probe.fix, probe.affects});
    if (probe.state == "active") {
      active += (active.empty() ? "" : ", ") + probe.probe;
      continue;
    }
    Failure& failure = FailureOf(&failures, probe);
    failure.probes += (failure.probes.empty() ? "" : ", ") + probe.probe;
    if (!probe.affects.empty()) {
      failure.affects += (failure.affects.empty() ? "" : "; ") + probe.affects;
    }
  }
  for (const Failure& failure : failures) {
    std::string text =
        fmt::format("{} {}: {}", failure.probes, failure.row->state, failure.row->reason);
    if (!failure.row->fix.empty()) text += "; to change it: " + failure.row->fix;
    if (!failure.affects.empty()) text += "; without it: " + failure.affects;
    section.sentences.push_back({"-", text});
  }
  if (!active.empty()) {
    section.sentences.insert(
        section.sentences.begin() + static_cast<std::ptrdiff_t>(statements.model ? 2 : 0),
        {"active", active});
  }
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("cost", 5, Cost);
HR_SECTION("probes", 40, Probes);

}  // namespace
}  // namespace headrace::dashboards
