#include "analysis/study/worker_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/advice/statements.h"
#include "analysis/model/limits/limit_kind.h"
#include "analysis/run/settings.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

std::string WordsOf(const std::string& resource, const Limit& limit) {
  if (resource == "cores") return "the cores";
  if (resource == "nic_ingress") return "NIC ingress";
  if (resource == "storage") return "the storage";
  if (resource == "memory_capacity") return "memory capacity";
  return Describe(limit);
}

}  // namespace

WorkerLimit FindWorkerLimit(const RunView& run) {
  WorkerLimit limit{"undecided", "undecided", "", 0, false};
  const Statements statements = MakeStatements(run);
  if (!statements.bottleneck || statements.bottleneck->findings.empty()) {
    limit.evidence = statements.withheld;
    return limit;
  }
  const Bottleneck& bottleneck = *statements.bottleneck;
  const Finding& first = bottleneck.findings[0];
  const double observed = statements.model->demands().rate;
  const std::optional<double> held = HeldForMemory(run);
  if (held && *held >= kHeldForMemory && bottleneck.unexplained_ratio >= kCostsOfHolding) {
    limit.resource = "memory_capacity";
    limit.words = WordsOf(limit.resource, first.limit);
    limit.decided = true;
    limit.evidence = fmt::format(
        "the source waited {} of its time for the memory budget of {} while the queue behind it "
        "had room; {} would allow {:.2f} times the rate",
        FormatPercent(*held), FormatBytes(BytesSettingOf(run.run, "pipeline.memory").value_or(0)),
        Describe(first.limit), bottleneck.unexplained_ratio);
    return limit;
  }
  limit.resource = first.limit.kind->ResourceClass(*statements.model, first.limit);
  limit.words = WordsOf(limit.resource, first.limit);
  limit.probability = first.probability;
  limit.evidence =
      fmt::format("{} allows {}; observed {}", Describe(first.limit),
                  FormatRate(first.limit.bound, "batches"), FormatRate(observed, "batches"));
  if (first.limit.Is(kCoresLimit) && statements.model->cores_used())
    limit.evidence +=
        fmt::format("; {:.2f} of {:.2f} cores in use", *statements.model->cores_used(),
                    statements.model->cores_available());
  limit.decided = bottleneck.verdict != Verdict::kUndecided;
  if (!limit.decided) {
    limit.evidence += "; undecided: " + bottleneck.measure;
    return limit;
  }
  // Findings are by probability: the next limit is the least of the other bounds.
  const Finding* next = nullptr;
  for (size_t i = 1; i < bottleneck.findings.size(); ++i) {
    const Finding& finding = bottleneck.findings[i];
    if (next == nullptr || finding.limit.bound < next->limit.bound) next = &finding;
  }
  if (next != nullptr && std::isfinite(next->limit.bound))
    limit.evidence += fmt::format("; then {} at {}", Describe(next->limit),
                                  FormatRate(next->limit.bound, "batches"));
  return limit;
}

std::optional<double> HeldForMemory(const RunView& run) {
  if (BytesSettingOf(run.run, "pipeline.memory").value_or(0) <= 0) return std::nullopt;
  for (const OperatorRow& op : run.operators) {
    if (op.kind != "fetch") continue;
    const auto stage = std::find_if(run.stages.begin(), run.stages.end(),
                                    [&](const StageRow& row) { return row.name == op.stage; });
    const auto queue = std::find_if(run.queues.begin(), run.queues.end(), [&](const QueueRow& row) {
      return row.producer_stage == op.stage;
    });
    if (stage == run.stages.end() || stage->lifetime_ns <= 0) return std::nullopt;
    const double waits =
        static_cast<double>(op.wait_out_ns) / static_cast<double>(stage->lifetime_ns);
    const double full = queue != run.queues.end() ? queue->full_ratio.value_or(0) : 0;
    return std::clamp(waits - full, 0.0, 1.0);
  }
  return std::nullopt;
}

}  // namespace headrace::analysis
