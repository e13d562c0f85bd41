#include "dashboards/report/accelerator_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/thresholds.h"
#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::Accelerators;
using analysis::DeviceStory;
using analysis::DeviceUse;
using analysis::MeasurementRow;
using analysis::RunView;

// "GPU 0" for "gpu0".
std::string DeviceWord(const std::string& device) {
  return device.starts_with("gpu") ? "GPU " + device.substr(3) : device;
}

// "GPU 0 is", "4 GPUs are".
std::string DeviceSubject(const Accelerators& accelerators) {
  if (accelerators.devices.size() == 1) return DeviceWord(accelerators.devices[0].device) + " is";
  return fmt::format("{} GPUs are", accelerators.devices.size());
}

// "71.0 % of the time [68, 74]", of several devices with the least and the most of them.
std::string ShareOfTime(const Accelerators& accelerators, bool busy) {
  const DeviceUse& mean = accelerators.mean;
  const auto share = [&](const DeviceUse& use) { return busy ? use.busy_ratio() : use.idle_ratio; };
  std::string text = FormatPercent(share(mean)) + " of the time";
  if (accelerators.devices.size() > 1) {
    const auto [least, most] = std::minmax_element(
        accelerators.devices.begin(), accelerators.devices.end(),
        [&](const DeviceUse& a, const DeviceUse& b) { return share(a) < share(b); });
    return text + fmt::format(" on average ({} {} to {} {})", DeviceWord(least->device),
                              FormatPercent(share(*least)), DeviceWord(most->device),
                              FormatPercent(share(*most)));
  }
  if (!mean.idle_interval) return text;
  const analysis::Interval idle = *mean.idle_interval;
  return text + " " +
         PercentInterval(busy ? analysis::Interval{1 - idle.high, 1 - idle.low} : idle);
}

// How much of `mean`'s idle time the trainer waits: "in 65 to 100 % of that time".
std::string WaitingShare(const DeviceUse& mean) {
  constexpr double kRounds = 0.005;  // less is not seen in whole per cent
  const double low = std::clamp(mean.idle_waiting.low / mean.idle_ratio, 0.0, 1.0);
  const double high = std::clamp(mean.idle_waiting.high / mean.idle_ratio, low, 1.0);
  if (low >= 1 - kRounds) return "in all of that time";
  if (high <= kRounds) return "in none of that time";
  if (low <= kRounds && high >= 1 - kRounds) return "in an unknown part of that time";
  if (low <= kRounds) return fmt::format("in at most {:.0f} % of that time", 100 * high);
  if (high >= 1 - kRounds) return fmt::format("in at least {:.0f} % of that time", 100 * low);
  if (high - low < kRounds) return fmt::format("in {:.0f} % of that time", 100 * low);
  return fmt::format("in {:.0f} to {:.0f} % of that time", 100 * low, 100 * high);
}

std::string GainText(double ratio) { return fmt::format("{:.0f} %", 100 * (ratio - 1)); }

std::string BusyAnyway(const Accelerators& accelerators, const std::string& who) {
  const DeviceUse& mean = accelerators.mean;
  const char* device = accelerators.devices.size() == 1 ? "the GPU" : "the GPUs";
  std::string text =
      fmt::format("{} busy {} although {} waits for data {} of it. ", DeviceSubject(accelerators),
                  ShareOfTime(accelerators, true), who, FormatPercent(mean.wait_ratio));
  if (mean.shared) return text + "Other programs use it, too, so this tells little";
  text += fmt::format(
      "The two disagree: steps may be started ahead of {0}, or wait for {0}. Faster loading gains "
      "{1} at most",
      device, GainText(1 / mean.busy_ratio()));
  if (!accelerators.MostGain()) text += fmt::format(" if no other program uses {}", device);
  return text;
}

Quantity DeviceShare(double ratio) { return Quantity::Of(ratio, Unit::kRatio, Source::kCounter); }

std::string DevicePids(const DeviceUse& use) {
  if (use.pids.empty()) return "none known";
  std::string text;
  for (const int64_t pid : use.pids) text += (text.empty() ? "" : ", ") + std::to_string(pid);
  if (use.shared) text += ", others";
  return text;
}

}  // namespace

std::string AcceleratorLine(const Accelerators& accelerators, const std::string& who) {
  const DeviceUse& mean = accelerators.mean;
  const bool one = accelerators.devices.size() == 1;
  switch (accelerators.story) {
    case DeviceStory::kUnused:
      return fmt::format("{} not used: hardly any kernel ran", DeviceSubject(accelerators));
    case DeviceStory::kBusyAnyway:
      return BusyAnyway(accelerators, who);
    case DeviceStory::kHostWork:
      return fmt::format(
          "{} idle {} although {} hardly waits for data. Probably not the {} but work of the step "
          "on the CPU limits it: copies, .item(), logging, many small kernels",
          DeviceSubject(accelerators), ShareOfTime(accelerators, false), who, one ? "GPU" : "GPUs");
    case DeviceStory::kLimits:
      return fmt::format("{} busy {}", DeviceSubject(accelerators),
                         ShareOfTime(accelerators, true));
    case DeviceStory::kPlain:
      break;
  }
  std::string text =
      fmt::format("{} idle {}", DeviceSubject(accelerators), ShareOfTime(accelerators, false));
  if (mean.idle_ratio >= analysis::kAcceleratorUnused) {
    text += fmt::format("; {} waits for data {}", who, WaitingShare(mean));
  }
  const auto gain = accelerators.MostGain();
  if (gain && mean.wait_ratio >= analysis::kSmallStall && *gain < 1 / (1 - mean.wait_ratio)) {
    text += fmt::format(". Faster loading gains {} at most", GainText(*gain));
  }
  return text;
}

void AddAcceleratorFacts(const Accelerators& accelerators, const std::string& who,
                         Section* section) {
  const DeviceUse& mean = accelerators.mean;
  Quantity idle = DeviceShare(mean.idle_ratio);
  if (mean.idle_interval) {
    idle = idle.WithInterval(mean.idle_interval->low, mean.idle_interval->high);
  }
  std::string devices;
  for (const DeviceUse& use : accelerators.devices) {
    devices += (devices.empty() ? "" : ", ") + use.device;
  }
  section->facts.push_back({"accelerator.text", AcceleratorLine(accelerators, who)});
  section->facts.push_back({"accelerator.story", DeviceStoryName(accelerators.story)});
  section->facts.push_back({"accelerator.devices", devices});
  section->facts.push_back({"accelerator.idle_ratio", idle});
  section->facts.push_back(
      {"accelerator.idle_waiting_least_ratio", DeviceShare(mean.idle_waiting.low)});
  section->facts.push_back(
      {"accelerator.idle_waiting_most_ratio", DeviceShare(mean.idle_waiting.high)});
  section->facts.push_back({"accelerator.stretch_seconds", Duration(accelerators.stretch_s, "")});
}

void AddAcceleratorTable(const RunView& run, const analysis::Statements& statements,
                         Section* section) {
  std::set<std::string> names;
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric.starts_with("gpu_") && !row.subject.empty()) names.insert(row.subject);
  }
  if (names.empty()) return;
  Table table{"accelerators",
              "",
              {{"accelerator", "accelerator"},
               {"use_ratio", "busy"},
               {"idle_waiting_least_ratio", "idle while waiting: least"},
               {"idle_waiting_most_ratio", "most"},
               {"wait_ratio", "trainer waits"},
               {"pids", "processes"},
               {"memory_bytes", "memory"},
               {"energy_joules", "energy in J"}},
              {}};
  for (const std::string& name : names) {
    const auto of = [&](const char* metric, const char* cause) {
      return SumOf(run, metric, [&](const MeasurementRow& row) {
        return !row.process_id && row.subject == name && (*cause == '\0' || row.cause == cause);
      });
    };
    const DeviceUse* use = nullptr;
    if (statements.accelerators) {
      for (const DeviceUse& each : statements.accelerators->devices) {
        if (each.device == name) use = &each;
      }
    }
    const auto joined = [&](double value) {
      return use != nullptr ? DeviceShare(value) : Ratio({}, "not used by this run, or no verdict");
    };
    const DeviceUse none;
    const DeviceUse& seen = use != nullptr ? *use : none;
    table.rows.push_back({name, Ratio(of("gpu_use_ratio", "compute"), "not reported"),
                          joined(seen.idle_waiting.low), joined(seen.idle_waiting.high),
                          joined(seen.wait_ratio), DevicePids(seen),
                          Bytes(of("gpu_memory_bytes", "used"), "not reported"),
                          Number(of("gpu_energy_joules", ""), Unit::kCount, "not reported")});
  }
  section->tables.push_back(std::move(table));
  section->sentences.push_back(
      {"GPU",
       "busy is the share of NVML's sample periods, of 1/6 to 1 s, in which a kernel ran, however "
       "little of the device it used"});
}

}  // namespace headrace::dashboards
