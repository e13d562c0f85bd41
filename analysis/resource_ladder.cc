#include "analysis/resource_ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/memory_bandwidth.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

std::string WhyUnlimited(const PipelineModel& model, const Limit& limit) {
  switch (limit.kind) {
    case LimitKind::kConsumer:
      return "the consumer computes nothing";
    case LimitKind::kCores:
      return model.splits_cpu() ? "the core budget was not recorded"
                                : "CPU time was not split from waiting";
    case LimitKind::kStage:
      return "no work was recorded in it";
    case LimitKind::kOrder:
      return "no stage waits for the order";
    case LimitKind::kThread:
      return "no stage runs on the consumer's thread";
    default:
      return "nothing was held";
  }
}

std::string NameOf(const PipelineModel& model, const Limit& limit) {
  if (limit.kind == LimitKind::kStage) {
    const int threads = model.stages()[limit.index].parallelism;
    return fmt::format("stage {} ({} thread{})", limit.name, threads, threads == 1 ? "" : "s");
  }
  if (limit.kind == LimitKind::kLock || limit.kind == LimitKind::kDevice) {
    return fmt::format("{} {}", LimitKindName(limit.kind), limit.name);
  }
  return limit.name;
}

// What was used of something at the observed rate, with its ceiling: the rate at the ceiling.
Rung FromUse(const PipelineModel& model, std::string name, std::string kind, double used_ratio,
             std::string note) {
  Rung rung{std::move(name), std::move(kind), {}, {}, false, std::move(note)};
  rung.used_ratio = Quantity::Of(used_ratio, Unit::kRatio, Source::kEstimate);
  rung.attainable =
      used_ratio > 0
          ? Quantity::Of(model.demands().rate / used_ratio, Unit::kPerSecond, Source::kEstimate)
          : Quantity::Unavailable("nothing of it was used", Unit::kPerSecond);
  return rung;
}

Rung Unknown(std::string name, std::string kind, const std::string& reason) {
  return {std::move(name),
          std::move(kind),
          Quantity::Unavailable(reason, Unit::kPerSecond),
          Quantity::Unavailable(reason, Unit::kRatio),
          false,
          ""};
}

Rung MemoryBandwidthRung(const PipelineModel& model) {
  const auto memory = MemoryBandwidthOf(model.run());
  if (!memory) return Unknown("memory bandwidth", "memory bandwidth", "no byte was counted");
  if (!memory->ceiling_bytes_per_s || *memory->ceiling_bytes_per_s <= 0) {
    return Unknown("memory bandwidth", "memory bandwidth",
                   "this machine was not calibrated: headrace doctor --calibrate");
  }
  return FromUse(model, "memory bandwidth", "memory bandwidth",
                 memory->bytes_per_s.value() / *memory->ceiling_bytes_per_s, memory->told_by);
}

// The busiest direction of the busiest interface, where none is used enough to be a row of the
// model.
Rung NetworkRung(const PipelineModel& model) {
  const MeasurementRow* busiest = nullptr;
  bool seen = false;
  for (const MeasurementRow& row : model.run().measurements) {
    seen = seen || row.metric == "nic_received_bytes";
    if (row.metric != "nic_use_ratio" || !row.value) continue;
    if (busiest == nullptr || *row.value > *busiest->value) busiest = &row;
  }
  if (busiest == nullptr) {
    return Unknown("network", "network",
                   seen ? "the driver does not tell the link's speed" : "no interface was counted");
  }
  return FromUse(model, fmt::format("network {} {}", busiest->subject, busiest->cause), "network",
                 *busiest->value, "the interface, all processes");
}

constexpr double kManyThreads = 1000;  // whose number no longer matters

// Memory is no rate: it says how many more elements can be in work, and so how many more threads
// the slowest stage can have.
Rung MemoryRung(const PipelineModel& model) {
  const HostRow* rss = model.run().FindHost("process_rss_bytes");
  if (rss == nullptr || !rss->maximum_value || *rss->maximum_value <= 0) {
    return Unknown("memory (room, no rate)", "memory", "the process's memory was not recorded");
  }
  if (!model.run().run.memory_bytes || *model.run().run.memory_bytes <= 0) {
    return Unknown("memory (room, no rate)", "memory", "no memory limit was recorded");
  }
  const double limit = static_cast<double>(*model.run().run.memory_bytes);
  Rung rung{"memory (room, no rate)", "memory", {}, {}, false, ""};
  rung.used_ratio = Quantity::Of(*rss->maximum_value / limit, Unit::kRatio, Source::kCounter);
  std::optional<size_t> slowest;
  for (size_t s = 0; s < model.stages().size(); ++s) {
    const double each = model.demands().stage_s[s] / model.stages()[s].parallelism;
    if (each <= 0) continue;
    if (!slowest || each > model.demands().stage_s[*slowest] / model.stages()[*slowest].parallelism)
      slowest = s;
  }
  const std::string unknown = "elements of the slowest stage have no recorded size";
  rung.attainable = Quantity::Unavailable(unknown, Unit::kPerSecond);
  if (!slowest || model.stages()[*slowest].element_bytes.value_or(0) <= 0) return rung;
  const StageModel& stage = model.stages()[*slowest];
  const double more = std::floor(std::max(0.0, limit - *rss->maximum_value) / *stage.element_bytes);
  // So many threads would long meet another limit: a rate of theirs is nobody's.
  rung.attainable = Quantity::Unavailable(
      fmt::format(
          "memory allows a number of threads, not a rate: {} more threads of {} fit, {} each",
          more > kManyThreads ? fmt::format("over {:.0f}", kManyThreads)
                              : fmt::format("{:.0f}", more),
          stage.name, FormatBytes(*stage.element_bytes)),
      Unit::kPerSecond);
  rung.note = fmt::format("{} of {} used", FormatBytes(*rss->maximum_value), FormatBytes(limit));
  return rung;
}

}  // namespace

std::vector<Rung> ResourceLadder(const PipelineModel& model, const Bottleneck& bottleneck) {
  std::vector<Rung> rungs;
  for (size_t i = 0; i < bottleneck.findings.size(); ++i) {
    const Finding& finding = bottleneck.findings[i];
    Rung rung;
    rung.name = NameOf(model, finding.limit);
    rung.kind = LimitKindName(finding.limit.kind);
    rung.binding = i == 0 || (bottleneck.verdict == Verdict::kBalanced && i == 1);
    if (std::isfinite(finding.limit.bound)) {
      rung.attainable = Quantity::Of(finding.limit.bound, Unit::kPerSecond, Source::kAccount)
                            .WithInterval(finding.bound_interval.low, finding.bound_interval.high);
      rung.used_ratio = Quantity::Of(finding.utilisation, Unit::kRatio, Source::kAccount);
    } else {
      const std::string why = WhyUnlimited(model, finding.limit);
      rung.attainable = Quantity::Unavailable(why, Unit::kPerSecond);
      rung.used_ratio = Quantity::Unavailable(why, Unit::kRatio);
      rung.binding = false;
    }
    rungs.push_back(std::move(rung));
  }
  rungs.push_back(MemoryBandwidthRung(model));
  const bool has_link =
      std::any_of(model.resources().begin(), model.resources().end(),
                  [](const ResourceModel& resource) { return resource.network_s.has_value(); });
  if (!has_link) rungs.push_back(NetworkRung(model));
  rungs.push_back(MemoryRung(model));
  std::stable_sort(rungs.begin(), rungs.end(), [](const Rung& a, const Rung& b) {
    if (a.attainable.available() != b.attainable.available()) return a.attainable.available();
    return a.attainable.available() && a.attainable.value() < b.attainable.value();
  });
  return rungs;
}

}  // namespace headrace::analysis
