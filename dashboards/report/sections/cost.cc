// What recording cost, what was lost, and which measurements were not to be had.
#include <fmt/format.h>

#include <algorithm>

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

std::optional<Section> Cost(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"cost", "", {}, {}, {}};
  const analysis::HostRow* cpu = run.FindHost("collector_cpu_ns");
  const analysis::HostRow* rss = run.FindHost("collector_rss_bytes");
  std::optional<double> cpu_ratio, bytes;
  const bool divisible = run.run.duration_ns >= kLeastRunNs;
  const bool has_cpu = cpu != nullptr && cpu->last_value;
  if (has_cpu && divisible) {
    cpu_ratio = *cpu->last_value / static_cast<double>(run.run.duration_ns);
  }
  if (rss != nullptr) bytes = rss->maximum_value;
  // Losses are of many kinds: a sum over them is a part of no total.
  double lost = 0;
  for (const analysis::LossRow& loss : run.losses) {
    if (analysis::IsPossibleCount(run, loss.lost_count)) {
      lost += static_cast<double>(loss.lost_count);
    }
  }
  // What our programs in the kernel took of the CPUs, and all of it as a share of the machine.
  const auto kernel_ns = SumOf(run, "bpf_run_time_ns");
  std::optional<double> kernel_ratio, machine_ratio;
  if (kernel_ns && divisible) {
    kernel_ratio = *kernel_ns / static_cast<double>(run.run.duration_ns);
  }
  const analysis::HostRow* cores = run.FindHost("host_cores");
  if (cpu_ratio && cores != nullptr && cores->last_value && *cores->last_value > 0) {
    machine_ratio = (*cpu_ratio + kernel_ratio.value_or(0)) / *cores->last_value;
    if (*machine_ratio > 1) machine_ratio.reset();  // times of two clocks: no share of anything
  }
  const std::string why_none = has_cpu && !divisible ? "the run is shorter than 1 s"
                                                     : "the collector's CPU time was not recorded";
  section.facts = {
      {"collector_cpu_ratio", Ratio(cpu_ratio, why_none)},
      {"kernel_programs_cpu_ratio",
       Ratio(kernel_ratio, kernel_ns && !divisible
                               ? why_none
                               : "no eBPF program ran, or the kernel does not measure them")},
      {"machine_ratio", Ratio(machine_ratio, why_none)},
      {"collector_rss_bytes", Bytes(bytes, "the collector's memory was not recorded")},
      {"events_lost_count", Number(lost, Unit::kCount, "")}};
  std::string text =
      cpu_ratio ? fmt::format("recording used {} of one core", FormatPercent(*cpu_ratio))
      : has_cpu ? fmt::format("recording used {} of CPU time", FormatDuration(*cpu->last_value))
                : std::string("recording cost unavailable (not recorded)");
  if (bytes) text += ", " + FormatBytes(*bytes);
  if (kernel_ns && !divisible) {
    text += fmt::format("; its eBPF programs {}", FormatDuration(*kernel_ns));
  }
  if (kernel_ratio) text += fmt::format("; its eBPF programs {}", FormatPercent(*kernel_ratio));
  if (machine_ratio && kernel_ratio) {
    text += fmt::format(": {} of the machine's {:.0f} cores", FormatPercent(*machine_ratio),
                        *cores->last_value);
  }
  text += fmt::format("; {:.0f} events lost", lost);
  section.sentences.push_back({"COST", text});
  // A clock of each thread's own is stopped and started by the kernel at every switch.
  if (std::any_of(run.probes.begin(), run.probes.end(), [](const analysis::ProbeRow& probe) {
        return probe.probe == "CPU stacks without BPF" && probe.state == "degraded";
      })) {
    section.sentences.push_back(
        {"COST",
         "not in it: CPU stacks without BPF make every context switch of the program longer (a "
         "program that does little else took 87 % more CPU time, docs/measurements.md); --without "
         "'CPU stacks without BPF' leaves them out"});
  }
  // What the program's accounts say they lost is the program's word, too.
  std::vector<analysis::LossRow> possible;
  for (const analysis::LossRow& loss : run.losses) {
    if (analysis::IsPossibleCount(run, loss.lost_count)) {
      possible.push_back(loss);
    } else {
      section.sentences.push_back(
          {"LOST", fmt::format("{}: {:.3g} claimed: not believed", loss.what,
                               static_cast<double>(loss.lost_count))});
    }
  }
  for (const std::string& line : LossLines(possible)) section.sentences.push_back({"LOST", line});
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
  section.tables.push_back(std::move(losses));
  // What the collector spent on whom.
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
