// headrace doctor: what can be measured here; for what cannot, why, what would change it, and what
// it costs the answers. With --calibrate also the ceilings of the machine.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "collectors/environment.h"
#include "collectors/store/store.h"
#include "dashboards/terminal/progress.h"
#include "experiments/interrupt.h"
#include "probes/bpf/limits.h"
#include "probes/calibration/calibration.h"
#include "probes/capability.h"

namespace headrace::cli {
namespace {

using probes::Availability;
using probes::Calibration;
using probes::Capability;
using probes::Ceiling;

constexpr size_t kNameWidth = 24, kStateWidth = 12, kWidth = 118;

struct DoctorOptions {
  bool json = false, calibrate = false;
  std::string folder, database;
};

// `text` after its label, wrapped into the third column.
void PrintWrapped(std::string first_columns, const std::string& text) {
  const size_t indent = kNameWidth + kStateWidth + 2;
  std::string line = std::move(first_columns);
  size_t begin = 0;
  bool fresh = true;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!fresh && line.size() + 1 + word.size() > kWidth) {
      fmt::print("{}\n", line);
      line = std::string(indent + 2, ' ');
      fresh = true;
    }
    line += fresh ? word : " " + word;
    fresh = false;
    begin = end + 1;
  }
  fmt::print("{}\n", line);
}

void PrintRow(const std::string& name, const std::string& state, const std::string& text) {
  PrintWrapped(fmt::format("{:<{}} {:<{}} ", name, kNameWidth, state, kStateWidth), text);
}

bool IsOk(const Capability& c) { return c.availability.state == Availability::State::kOk; }

void PrintTable(const std::vector<Capability>& capabilities) {
  std::map<std::string, std::string> told;  // fix -> the first probe it was told for
  for (const Capability& c : capabilities) {
    PrintRow(c.name, StateName(c.availability.state), c.availability.reason);
    if (IsOk(c)) continue;
    PrintRow("", "", (c.availability.usable() ? "affected: " : "missing: ") + c.affects);
    if (c.availability.fix.empty()) continue;
    const auto [first, fresh] = told.emplace(c.availability.fix, c.name);
    PrintRow("", "", "to change it: " + (fresh ? c.availability.fix : "as for " + first->second));
  }
  const CoreBudget cores = ReadCoreBudget();
  const MemoryBudget memory = ReadMemoryBudget();
  PrintRow("cpu budget", "ok",
           fmt::format("{:.1f} cores, bound by {}", cores.cores, cores.bound_by));
  PrintRow("memory budget", "ok",
           fmt::format("{}, bound by {}", FormatBytes(static_cast<double>(memory.bytes)),
                       memory.bound_by));
  PrintRow("decode kernels", "ok",
           fmt::format("{} ({})", InstructionSetName(BestInstructionSet()), CpuModelName()));
}

std::string FormatCeiling(const Ceiling& c, double value) {
  if (c.unit == "B/s") return FormatBytesRate(value);
  if (c.unit == "ns") return value < 1000 ? fmt::format("{:.3g} ns", value) : FormatDuration(value);
  if (c.unit == "Hz") return fmt::format("{:.4f} GHz", value * 1e-9);
  return fmt::format("{:+.2f} ppm", value * 1e6);  // the one ratio is a drift
}

std::string Describe(const Ceiling& c) {
  std::string text = c.metric;
  for (const char* suffix : {"_bytes_per_s", "_ns", "_hertz", "_ratio"}) {
    if (text.ends_with(suffix)) text.resize(text.size() - std::string(suffix).size());
  }
  std::replace(text.begin(), text.end(), '_', ' ');
  if (!c.subject.empty()) text += " " + c.subject;
  if (c.metric.starts_with("memory_") && c.threads_count) {
    text += fmt::format(", {} thread{}", *c.threads_count, *c.threads_count == 1 ? "" : "s");
  }
  if (c.depth_count && c.size_bytes) {
    text += fmt::format(", {} KiB, depth {}", *c.size_bytes >> 10, *c.depth_count);
  }
  return text;
}

void PrintCalibration(const Calibration& calibration, const std::string& database) {
  fmt::print("\n{:<40} {:>13}   {:<27} {:>5}\n", "CEILINGS OF THIS MACHINE", "best", "range",
             "times");
  for (const Ceiling& c : calibration.ceilings) {
    fmt::print("{:<40} {:>13}   {:<27} {:>5}\n", Describe(c), FormatCeiling(c, c.value),
               c.repetitions_count > 1 ? fmt::format("[{}, {}]", FormatCeiling(c, c.minimum),
                                                     FormatCeiling(c, c.maximum))
                                       : "",
               c.repetitions_count);
  }
  for (const auto& skip : calibration.skips) {
    fmt::print("{:<40} {:>13}   {}\n{:<40} {:>13}   to change it: {}\n", skip.part, "not measured",
               skip.reason, "", "", skip.fix);
  }
  fmt::print("stored in {} (view calibration_summary)\n", database);
}

// The schema's optional fields are null where they do not apply.
nlohmann::json OrNull(const std::optional<int64_t>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json CalibrationJson(const Calibration& calibration, const std::string& database) {
  nlohmann::json out = {{"stored_in", database},
                        {"ceilings", nlohmann::json::array()},
                        {"skipped", nlohmann::json::array()}};
  for (const Ceiling& c : calibration.ceilings) {
    out["ceilings"].push_back({{"metric", c.metric},
                               {"unit", c.unit},
                               {"subject", c.subject},
                               {"threads_count", OrNull(c.threads_count)},
                               {"size_bytes", OrNull(c.size_bytes)},
                               {"depth_count", OrNull(c.depth_count)},
                               {"value", c.value},
                               {"minimum_value", c.minimum},
                               {"maximum_value", c.maximum},
                               {"repetitions_count", c.repetitions_count},
                               {"note", c.note}});
  }
  for (const auto& skip : calibration.skips) {
    out["skipped"].push_back({{"part", skip.part}, {"reason", skip.reason}, {"fix", skip.fix}});
  }
  return out;
}

nlohmann::json CapabilitiesJson(const std::vector<Capability>& capabilities) {
  nlohmann::json out = {{"schema", "headrace.doctor/1"}, {"probes", nlohmann::json::array()}};
  for (const Capability& c : capabilities) {
    out["probes"].push_back({{"name", c.name},
                             {"state", StateName(c.availability.state)},
                             {"detail", c.availability.reason},
                             {"fix", c.availability.fix},
                             {"affects", IsOk(c) ? "" : c.affects},
                             {"summary", c.summary},
                             {"used_by", c.affects},
                             {"level", c.level},
                             {"deep_only", c.deep_only}});
  }
  const CoreBudget cores = ReadCoreBudget();
  const MemoryBudget memory = ReadMemoryBudget();
  out["cores_count"] = cores.cores;
  out["cores_bound_by"] = cores.bound_by;
  out["memory_bytes"] = memory.bytes;
  out["memory_bound_by"] = memory.bound_by;
  out["instruction_set"] = InstructionSetName(BestInstructionSet());
  out["cpu_model"] = CpuModelName();
  return out;
}

Calibration CalibrateAndStore(const DoctorOptions& options) {
  collectors::RunStore store(options.database);  // first: an unwritable one is told at once
  experiments::InstallInterruptHandler();
  dashboards::Progress progress("calibrating");
  probes::CalibrationOptions calibration_options;
  calibration_options.folder = options.folder;
  calibration_options.progress = [&](double fraction, const std::string& part) {
    progress.Update(fraction, part);
  };
  calibration_options.interrupted = [] { return experiments::Interrupted(); };
  const int64_t begin = MonotonicNs();
  Calibration calibration = Calibrate(calibration_options);
  progress.Finish(
      fmt::format("calibrated in {}", FormatDuration(static_cast<double>(MonotonicNs() - begin))));
  if (experiments::Interrupted()) {
    throw Error(ExitCode::kInterrupted, "interrupted; nothing is stored", "calibration");
  }
  const collectors::RunInfo machine = collectors::DescribeRun(getpid(), "", "");
  collectors::CalibrationInfo info;
  info.measured_realtime_ns = RealtimeNs();
  info.hostname = machine.hostname;
  info.kernel = machine.kernel;
  info.cpu_model = machine.cpu_model;
  info.folder = std::filesystem::absolute(options.folder).lexically_normal();
  std::vector<collectors::CeilingRow> rows;
  for (const Ceiling& c : calibration.ceilings) {
    rows.push_back({c.metric, c.unit, c.subject, c.threads_count, c.size_bytes, c.depth_count,
                    c.value, c.minimum, c.maximum, c.repetitions_count, c.note});
  }
  store.AddCalibration(info, rows);
  return calibration;
}

void PrintSummary(const std::vector<Capability>& capabilities, bool accounts) {
  size_t usable = 0;
  int level = 0;
  for (const Capability& c : capabilities) {
    usable += c.availability.usable();
    if (c.availability.usable()) level = std::max(level, c.level);
  }
  const bool kernel_split = std::any_of(
      capabilities.begin(), capabilities.end(),
      [](const Capability& c) { return c.name == "off-CPU time" && c.availability.usable(); });
  fmt::print("\nusable: {} of {} probes, up to level {}; {}\n", usable, capabilities.size(), level,
             !accounts ? "not enough for a verdict on operators: instrumentation is needed"
             : kernel_split
                 ? "enough for every verdict, with blocked and runnable time measured separately"
                 : "enough for every verdict; blocked and runnable time are estimated");
  if (accounts) fmt::print("next: {} demo\n", ShellWord(ProgramName()));
}

int Doctor(DoctorOptions options) {
  if (options.database.empty()) options.database = DefaultDatabase();
  if (options.folder.empty()) {
    const auto parent = std::filesystem::path(options.database).parent_path();
    options.folder = parent.empty() ? "." : parent.string();
  } else if (std::error_code ignored; !std::filesystem::is_directory(options.folder, ignored)) {
    throw Error(ExitCode::kBadData, "is not a folder", options.folder,
                "--folder names one whose storage is measured");
  }
  probes::bpf::CheckLimits();
  std::optional<dashboards::TransientNote> note("asking each probe ...");
  const std::vector<Capability> capabilities = probes::CheckCapabilities(probes::Host());
  note.reset();
  const bool accounts = capabilities.front().availability.usable();
  if (!options.json) PrintTable(capabilities);
  std::fflush(stdout);
  std::optional<Calibration> calibration;
  if (options.calibrate) calibration = CalibrateAndStore(options);
  if (options.json) {
    nlohmann::json out = CapabilitiesJson(capabilities);
    if (calibration) out["calibration"] = CalibrationJson(*calibration, options.database);
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    if (calibration) PrintCalibration(*calibration, options.database);
    PrintSummary(capabilities, accounts);
  }
  return static_cast<int>(accounts ? ExitCode::kOk : ExitCode::kPrivilege);
}

HR_COMMAND("doctor",
           {.summary = "says what can be measured on this machine, and what would change the rest",
            .examples = "  headrace doctor                      # one line a probe\n"
                        "  headrace doctor --json | jq '.probes[] | select(.state != \"ok\")'\n"
                        "  headrace doctor --calibrate --folder /data  # ceilings, under 20 s\n",
            .exit_codes = "0 usable, 6 nothing can be measured, 130 interrupted",
            .next = "headrace demo",
            .configure = [](CommandLine& command_line) -> std::function<int()> {
              auto options = std::make_shared<DoctorOptions>();
              command_line.AddFlag("--json", options->json,
                                   "Print one JSON object (schema headrace.doctor/1)");
              command_line.AddFlag(
                  "--calibrate", options->calibrate,
                  "Measure and store the machine's ceilings: memory, storage, codecs, "
                  "hashes, ciphers, clocks");
              command_line
                  .AddOption("--folder", options->folder,
                             "Measure the storage of this folder: a file of at most 256 MiB is "
                             "made there and removed")
                  ->TypeName("FOLDER")
                  ->Default("the database's");
              command_line.AddOption("--db", options->database,
                                     "Store the ceilings in this database");
              return [options] { return Doctor(*options); };
            }});

}  // namespace
}  // namespace headrace::cli
