// headrace doctor: what can be measured here; for what cannot, why, what would change it, and what
// it costs the answers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "probes/capability.h"

namespace headrace::cli {
namespace {

using probes::Capability;
using probes::CapabilityState;

void PrintTable(const std::vector<Capability>& capabilities) {
  for (const Capability& c : capabilities) {
    fmt::print("{:<19} {:<12} {}\n", c.name, CapabilityStateName(c.state), c.detail);
    if (!c.affects.empty()) fmt::print("{:<19} {:<12} missing: {}\n", "", "", c.affects);
    if (!c.fix.empty()) fmt::print("{:<19} {:<12} to change it: {}\n", "", "", c.fix);
  }
  const CoreBudget cores = ReadCoreBudget();
  const MemoryBudget memory = ReadMemoryBudget();
  fmt::print("{:<19} {:<12} {:.1f} cores, bound by {}\n", "cpu budget", "ok", cores.cores,
             cores.bound_by);
  fmt::print("{:<19} {:<12} {}, bound by {}\n", "memory budget", "ok",
             FormatBytes(static_cast<double>(memory.bytes)), memory.bound_by);
  fmt::print("{:<19} {:<12} {} ({})\n", "decode kernels", "ok",
             InstructionSetName(BestInstructionSet()), CpuModelName());
}

void PrintJson(const std::vector<Capability>& capabilities) {
  nlohmann::json out = {{"schema", "headrace.doctor/1"}, {"probes", nlohmann::json::array()}};
  for (const Capability& c : capabilities) {
    out["probes"].push_back({{"name", c.name},
                             {"state", CapabilityStateName(c.state)},
                             {"detail", c.detail},
                             {"fix", c.fix},
                             {"affects", c.affects}});
  }
  const CoreBudget cores = ReadCoreBudget();
  const MemoryBudget memory = ReadMemoryBudget();
  out["cores_count"] = cores.cores;
  out["cores_bound_by"] = cores.bound_by;
  out["memory_bytes"] = memory.bytes;
  out["memory_bound_by"] = memory.bound_by;
  out["instruction_set"] = InstructionSetName(BestInstructionSet());
  out["cpu_model"] = CpuModelName();
  fmt::print("{}\n", out.dump(2));
}

int Doctor(bool json) {
  const std::vector<Capability> capabilities =
      CheckCapabilities(probes::CapabilityHost::ThisMachine());
  if (json) {
    PrintJson(capabilities);
  } else {
    PrintTable(capabilities);
  }
  size_t usable = 0;
  for (const Capability& c : capabilities) usable += c.state != CapabilityState::kUnavailable;
  const bool accounts = capabilities.front().state != CapabilityState::kUnavailable;
  if (!json) {
    fmt::print("\nusable: {} of {} probes; {}\n", usable, capabilities.size(),
               accounts ? "enough for every verdict this version prints (it uses accounts, thread "
                          "scheduling and the clock)"
                        : "not enough for a verdict: operator accounts are needed");
    if (accounts) fmt::print("next: {} demo\n", ShellWord(ProgramName()));
  }
  return static_cast<int>(accounts ? ExitCode::kOk : ExitCode::kPrivilege);
}

HR_COMMAND("doctor",
           {.summary = "says what can be measured on this machine, and what would change the rest",
            .examples = "  headrace doctor                      # one line a probe\n"
                        "  headrace doctor --json | jq '.probes[] | select(.state != \"ok\")'\n",
            .exit_codes = "0 usable, 6 nothing can be measured",
            .next = "headrace demo",
            .configure = [](CLI::App& app) -> std::function<int()> {
              auto json = std::make_shared<bool>(false);
              app.add_flag("--json", *json, "Print one JSON object (schema headrace.doctor/1)");
              return [json] { return Doctor(*json); };
            }});

}  // namespace
}  // namespace headrace::cli
