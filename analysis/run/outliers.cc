#include "analysis/run/outliers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "analysis/statistics/statistics.h"
#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

constexpr double kNormalMad = 1.4826;   // deviation of a normal sample over its MAD
constexpr double kNormalMean = 1.2533;  // and over its mean absolute deviation

struct Spread {
  double median = 0, deviation = 0;
};

Spread SpreadOf(const std::vector<double>& values) {
  Spread spread;
  if (values.empty()) return spread;
  spread.median = Quantile(values, 0.5);
  std::vector<double> distances;
  double sum = 0;
  for (double value : values) {
    distances.push_back(std::abs(value - spread.median));
    sum += distances.back();
  }
  spread.deviation = kNormalMad * Quantile(distances, 0.5);
  if (spread.deviation == 0) {
    spread.deviation = kNormalMean * sum / static_cast<double>(values.size());
  }
  return spread;
}

bool OfMachine(const MeasurementRow& row) { return !row.process_id && !row.bucket; }

// Sum over the machine's rows of the metric with that cause (empty: any), and no subject or any.
std::optional<double> Sum(const RunView& run, const char* metric, const char* cause = "",
                          bool whole_machine = false) {
  std::optional<double> sum;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != metric || !row.value || !OfMachine(row)) continue;
    if (*cause != '\0' && row.cause != cause) continue;
    if (whole_machine && !row.subject.empty()) continue;
    sum = sum.value_or(0) + *row.value;
  }
  return sum;
}

// Groups lie within one another: the one that had most.
std::optional<double> MostOfGroups(const RunView& run, const char* metric) {
  std::optional<double> most;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric != metric || !row.value || !OfMachine(row)) continue;
    most = std::max(most.value_or(0), *row.value);
  }
  return most;
}

std::optional<double> Over(std::optional<double> value, double by) {
  if (!value || !(by > 0)) return std::nullopt;
  return *value / by;
}

double RunSeconds(const RunView& run) { return static_cast<double>(run.run.duration_ns) * 1e-9; }

std::optional<double> PerSecond(const RunView& run, const char* metric, const char* cause = "") {
  return Over(Sum(run, metric, cause), RunSeconds(run));
}

// Share of the time for which pressure was counted, which begins before the run.
std::optional<double> Pressure(const RunView& run, const char* cause) {
  double window = static_cast<double>(run.run.duration_ns);
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "pressure_window_ns" && row.last_value) {
      window = std::max(window, *row.last_value);
    }
  }
  return Over(Sum(run, "pressure_ns", cause, /*whole_machine=*/true), window);
}

std::optional<double> OwnCpu(const RunView& run) {
  const HostRow* host = run.FindHost("process_cpu_ns");
  if (host != nullptr && host->last_value) return host->last_value;
  std::optional<double> sum;
  for (const ProcessRow& process : run.processes) {
    if (process.cpu_ns) sum = sum.value_or(0) + static_cast<double>(*process.cpu_ns);
  }
  return sum;
}

std::optional<double> DeviceLatency(const RunView& run) {
  std::set<std::string> devices;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "disk_request_ns" && OfMachine(row)) devices.insert(row.subject);
  }
  std::optional<double> worst;
  for (const std::string& device : devices) {
    const auto sum = [&](const char* metric) {
      double total = 0;
      for (const MeasurementRow& row : run.measurements) {
        if (row.metric == metric && row.subject == device && row.cause == "read" && row.value) {
          total += *row.value;
        }
      }
      return total;
    };
    const double requests = sum("disk_requests_count");
    if (requests < kRequestsForLatency) continue;
    worst = std::max(worst.value_or(0), sum("disk_request_ns") / requests * 1e-6);
  }
  return worst;
}

std::optional<double> FromDevice(const RunView& run) {
  if (!run.device_bytes || !run.fetched_bytes || *run.fetched_bytes <= 0) return std::nullopt;
  return static_cast<double>(*run.device_bytes) / static_cast<double>(*run.fetched_bytes);
}

std::optional<double> Clock(const RunView& run) {
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "cpu_frequency_hertz" && row.cause == "mean" && row.value) {
      return *row.value * 1e-9;
    }
  }
  return std::nullopt;
}

enum class Shown { kShare, kCores, kPerSecond, kBytesPerSecond, kMilliseconds, kGigahertz, kCount };

struct Event {
  const char* key;
  const char* text;  // {}: the value
  Shown shown;
  double matters;  // a change by less explains nothing
  bool more_slows;
  std::function<std::optional<double>(const RunView&)> read;
};

// Sizes that matter are of the order of 1 % of a run's time or of a core. Each is read where its
// probe ran; of a run without it nothing is said.
const std::vector<Event>& Events() {
  static const std::vector<Event> events = {
      {"cpu_throttled", "the CPU quota stopped it for {} of the time", Shown::kShare, 0.01, true,
       [](const RunView& run) {
         return Over(MostOfGroups(run, "cgroup_throttled_ns"),
                     static_cast<double>(run.run.duration_ns));
       }},
      {"steal", "the hypervisor took {} cores", Shown::kCores, 0.02, true,
       [](const RunView& run) {
         return Over(Sum(run, "steal_ns"), static_cast<double>(run.run.duration_ns));
       }},
      {"others_cpu", "other processes used {} cores", Shown::kCores, 0.05, true, CoresOfOthers},
      {"cpu_pressure", "tasks of the machine waited for a CPU in {} of the time", Shown::kShare,
       0.05, true, [](const RunView& run) { return Pressure(run, "cpu some"); }},
      {"io_pressure", "tasks of the machine waited for IO in {} of the time", Shown::kShare, 0.03,
       true, [](const RunView& run) { return Pressure(run, "io some"); }},
      {"memory_pressure", "tasks of the machine waited for memory in {} of the time", Shown::kShare,
       0.01, true, [](const RunView& run) { return Pressure(run, "memory some"); }},
      {"major_faults", "{} page faults a second had to read from a device", Shown::kPerSecond, 5,
       true, [](const RunView& run) { return PerSecond(run, "host_page_faults_count", "major"); }},
      {"refaults", "{} pages a second were read again after eviction", Shown::kPerSecond, 50, true,
       [](const RunView& run) { return PerSecond(run, "host_refaults_count"); }},
      {"reclaim", "tasks reclaimed {} of memory themselves", Shown::kBytesPerSecond, 1e6, true,
       [](const RunView& run) { return PerSecond(run, "host_reclaimed_bytes", "direct"); }},
      {"swap", "the machine swapped {}", Shown::kBytesPerSecond, 1e5, true,
       [](const RunView& run) { return PerSecond(run, "host_swap_bytes"); }},
      {"from_device", "{} of the bytes it asked for came from a device", Shown::kShare, 0.05, true,
       FromDevice},
      {"device_latency", "a read of the device took {}", Shown::kMilliseconds, 0.1, true,
       DeviceLatency},
      {"device_writes", "the machine wrote {} to devices", Shown::kBytesPerSecond, 5e6, true,
       [](const RunView& run) { return PerSecond(run, "disk_bytes", "write"); }},
      {"thermal", "the processor slowed down for heat {} times", Shown::kCount, 1, true,
       [](const RunView& run) { return Sum(run, "thermal_throttles_count"); }},
      {"clock", "the CPUs ran at {}", Shown::kGigahertz, 0.05, false, Clock},
      {"retransmits", "{} TCP segments a second were sent again", Shown::kPerSecond, 2, true,
       [](const RunView& run) { return PerSecond(run, "host_tcp_retransmits_count"); }},
      {"started_processes", "{} processes or threads a second were started", Shown::kPerSecond, 20,
       true, [](const RunView& run) { return PerSecond(run, "host_forks_count"); }},
      {"same_pipeline", "{} other runs of the pipeline were recorded at the same time",
       Shown::kCount, 1, true,
       [](const RunView& run) -> std::optional<double> {
         if (!run.same_pipeline_runs) return std::nullopt;
         return static_cast<double>(*run.same_pipeline_runs);
       }},
  };
  return events;
}

std::string Words(Shown shown, double value) {
  switch (shown) {
    case Shown::kShare:
      return fmt::format("{:.1f} %", 100 * value);
    case Shown::kCores:
      return fmt::format("{:.2f}", value);
    case Shown::kPerSecond:
      return FormatCount(value);
    case Shown::kBytesPerSecond:
      return FormatBytesRate(value);
    case Shown::kMilliseconds:
      return fmt::format("{:.3g} ms", value);
    case Shown::kGigahertz:
      return fmt::format("{:.2f} GHz", value);
    case Shown::kCount:
      return fmt::format("{:.0f}", value);
  }
  return "";
}

double ScoreOf(double value, const Spread& spread) {
  if (spread.deviation == 0) return value == spread.median ? 0 : value > spread.median ? 1e9 : -1e9;
  return (value - spread.median) / spread.deviation;
}

const char* SideName(OutlierSide side) {
  return side == OutlierSide::kA ? "A" : side == OutlierSide::kB ? "B" : "both";
}

std::string CausesText(const std::vector<OutlierCause>& causes) {
  if (causes.empty()) return "unexplained";
  std::string text;
  for (size_t i = 0; i < causes.size() && i < 3; ++i) {
    text += (i == 0 ? "" : "; ") + causes[i].text;
  }
  return text;
}

struct SideOfPairs {
  OutlierSide side;
  OutlierRun OutlierPair::*member;
};

std::vector<const RunView*> OthersOf(std::span<const OutlierPair> pairs, size_t pair,
                                     OutlierRun OutlierPair::*member) {
  std::vector<const RunView*> others;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const RunView* view = (pairs[i].*member).view;
    if (i != pair && view != nullptr) others.push_back(view);
  }
  return others;
}

// "2.4 %", "31 %", "1260 %": a size, without a direction.
std::string PercentText(double share) {
  const double percent = 100 * std::abs(share);
  return fmt::format("{:.{}f} %", percent, percent < 0.995 ? 2 : percent < 9.95 ? 1 : 0);
}

// Percent by which the value is off the usual one, in words.
std::string OffBy(double value, double usual, const std::string& metric) {
  if (usual == 0) return fmt::format("an unusual {}", metric);
  const double share = value / usual - 1;
  return fmt::format("{} {} {} than usual", PercentText(share), share < 0 ? "less" : "more",
                     metric);
}

void FindOfSide(std::span<const OutlierPair> pairs, const SideOfPairs& of,
                const OutlierQuestion& question, std::vector<Outlier>* outliers) {
  std::vector<double> values;
  for (const OutlierPair& pair : pairs) values.push_back((pair.*of.member).value);
  std::vector<double> finite;
  for (double value : values) {
    if (std::isfinite(value)) finite.push_back(value);
  }
  if (static_cast<double>(finite.size()) < kPairsForOutliers) return;
  const double usual = Quantile(finite, 0.5);
  const std::vector<double> scores = RobustScores(values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::abs(scores[i]) <= OutlyingScore(finite.size())) continue;
    if (std::abs(values[i] - usual) < kLeastOutlying * std::abs(usual)) continue;
    const OutlierRun& run = pairs[i].*of.member;
    Outlier outlier{i,         of.side, run.view == nullptr ? 0 : run.view->run.run_id,
                    values[i], usual,   scores[i],
                    {},        ""};
    const bool slower = question.more_is_better == (values[i] < usual);
    if (run.view != nullptr) {
      outlier.causes = UnusualEvents(*run.view, OthersOf(pairs, i, of.member), slower);
    }
    outlier.text =
        fmt::format("{} of pair {}{} has {}: {}", SideName(of.side), i + 1,
                    outlier.run_id > 0 ? fmt::format(" (run {})", outlier.run_id) : std::string(),
                    OffBy(values[i], usual, question.metric), CausesText(outlier.causes));
    outliers->push_back(std::move(outlier));
  }
}

}  // namespace

std::vector<double> RobustScores(std::span<const double> values) {
  std::vector<double> finite;
  for (double value : values) {
    if (std::isfinite(value)) finite.push_back(value);
  }
  const Spread spread = SpreadOf(finite);
  std::vector<double> scores;
  for (double value : values) {
    scores.push_back(std::isfinite(value) && spread.deviation > 0
                         ? (value - spread.median) / spread.deviation
                         : 0);
  }
  return scores;
}

std::optional<double> CoresOfOthers(const RunView& run) {
  const std::optional<double> own = OwnCpu(run);
  const HostRow* cores = run.FindHost("host_cores");
  if (!own || cores == nullptr || !cores->last_value) return std::nullopt;
  // The machine's times are counted for a little longer than the run: their own sum says for how
  // long.
  double busy = 0, all = 0;
  for (const char* state : {"user", "nice", "system", "irq", "softirq", "idle", "iowait"}) {
    const double time = Sum(run, "host_cpu_ns", state).value_or(0);
    all += time;
    const std::string_view name = state;
    if (name != "idle" && name != "iowait") busy += time;
  }
  all += Sum(run, "steal_ns").value_or(0);
  const HostRow* collector = run.FindHost("collector_cpu_ns");
  busy -= *own;
  if (collector != nullptr && collector->last_value) busy -= *collector->last_value;
  if (!(all > 0)) return std::nullopt;
  return std::max(0.0, busy / all * *cores->last_value);
}

std::vector<OutlierCause> UnusualEvents(const RunView& run, std::span<const RunView* const> others,
                                        bool slower) {
  std::vector<OutlierCause> causes;
  for (const Event& event : Events()) {
    const std::optional<double> value = event.read(run);
    if (!value) continue;
    std::vector<double> usual;
    for (const RunView* other : others) {
      const std::optional<double> one = event.read(*other);
      if (one) usual.push_back(*one);
    }
    if (static_cast<double>(usual.size()) < kRunsThatAreUsual) continue;
    const Spread spread = SpreadOf(usual);
    const double direction = event.more_slows == slower ? 1 : -1;
    const double beyond = direction * (*value - spread.median);
    if (beyond < event.matters ||
        direction * ScoreOf(*value, spread) <= OutlyingScore(usual.size())) {
      continue;
    }
    causes.push_back({event.key, *value, spread.median, beyond / event.matters,
                      fmt::format("{} (usually {})",
                                  fmt::format(fmt::runtime(event.text), Words(event.shown, *value)),
                                  Words(event.shown, spread.median))});
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.weight > b.weight; });
  return causes;
}

std::vector<Outlier> FindOutliers(std::span<const OutlierPair> pairs,
                                  const OutlierQuestion& question) {
  std::vector<Outlier> outliers;
  FindOfSide(pairs, {OutlierSide::kA, &OutlierPair::a}, question, &outliers);
  FindOfSide(pairs, {OutlierSide::kB, &OutlierPair::b}, question, &outliers);
  std::set<size_t> named;
  for (const Outlier& outlier : outliers) named.insert(outlier.pair);

  std::vector<double> ratios, finite;
  for (const OutlierPair& pair : pairs) {
    const bool known = pair.a.value > 0 && pair.b.value > 0 && std::isfinite(pair.a.value) &&
                       std::isfinite(pair.b.value);
    ratios.push_back(known ? std::log(pair.b.value / pair.a.value) : std::nan(""));
    if (known) finite.push_back(ratios.back());
  }
  if (static_cast<double>(finite.size()) >= kPairsForOutliers) {
    const double usual = Quantile(finite, 0.5);
    const std::vector<double> scores = RobustScores(ratios);
    for (size_t i = 0; i < ratios.size(); ++i) {
      if (named.contains(i) || std::abs(scores[i]) <= OutlyingScore(finite.size())) {
        continue;
      }
      if (std::abs(ratios[i] - usual) < kLeastOutlying) continue;
      Outlier outlier{i, OutlierSide::kPair, 0, ratios[i], usual, scores[i], {}, ""};
      // The ratio is low where B was slowed down, or A was not.
      const bool b_worse = question.more_is_better == (ratios[i] < usual);
      for (bool of_b : {true, false}) {
        const auto member = of_b ? &OutlierPair::b : &OutlierPair::a;
        const RunView* view = (pairs[i].*member).view;
        if (view == nullptr) continue;
        for (OutlierCause& cause :
             UnusualEvents(*view, OthersOf(pairs, i, member), of_b == b_worse)) {
          cause.text = fmt::format("{}: {}", of_b ? "B" : "A", cause.text);
          outlier.causes.push_back(std::move(cause));
        }
      }
      std::stable_sort(outlier.causes.begin(), outlier.causes.end(),
                       [](const auto& a, const auto& b) { return a.weight > b.weight; });
      const auto signed_text = [](double ratio) {
        return (ratio < 0 ? "-" : "+") + PercentText(std::expm1(ratio));
      };
      outlier.text =
          fmt::format("pair {} has a ratio of {}, usually {}: {}", i + 1, signed_text(ratios[i]),
                      signed_text(usual), CausesText(outlier.causes));
      outliers.push_back(std::move(outlier));
    }
  }
  std::stable_sort(outliers.begin(), outliers.end(),
                   [](const Outlier& a, const Outlier& b) { return a.pair < b.pair; });
  return outliers;
}

}  // namespace headrace::analysis
