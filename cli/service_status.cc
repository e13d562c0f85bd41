#include "cli/service_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"

namespace headrace::cli {
namespace {

using reader::service::DispatcherStatus;

// Null before there is a second of it. A worker that connected again may have more than the time.
nlohmann::json PartOf(uint64_t part_ns, int64_t whole_ns) {
  if (whole_ns < 1'000'000'000) return nullptr;
  return std::min(1.0, static_cast<double>(part_ns) / static_cast<double>(whole_ns));
}

// What the autoscaler wants, and why; null without one.
nlohmann::json ScalingJson(const experiments::ServiceScaling* scaling) {
  if (scaling == nullptr) return nullptr;
  const auto& latest = scaling->latest();
  return {{"wanted_count", scaling->wanted()},
          {"limit", latest ? nlohmann::json(latest->limit) : nlohmann::json()},
          {"reason", latest ? nlohmann::json(latest->reason) : nlohmann::json()}};
}

// Null where the workers are the job's own.
nlohmann::json PoolJson(const std::optional<BorrowedStatus>& borrowed) {
  if (!borrowed) return nullptr;
  const auto& grant = borrowed->grant;
  return {{"pool", borrowed->pool},
          {"granted_count", grant ? nlohmann::json(grant->workers) : nlohmann::json()},
          {"workers_count", grant ? nlohmann::json(grant->of) : nlohmann::json()}};
}

void PrintRanks(const nlohmann::json& status) {
  for (const auto& rank : status["ranks"]) {
    if (!rank["joined"].get<bool>()) {
      fmt::print("  rank {}    has not joined\n", rank["rank"].get<uint32_t>());
      continue;
    }
    fmt::print("  rank {}    {}{}", rank["rank"].get<uint32_t>(),
               Printable(rank["host"].get<std::string>(), 80),
               rank["connected"].get<bool>() ? "" : ", not connected");
    if (!rank["delivered_rows_count"].is_null())
      fmt::print(": {} rows delivered by this process",
                 rank["delivered_rows_count"].get<uint64_t>());
    if (!rank["stall_ratio"].is_null())
      fmt::print(", waits {} of its time", FormatPercent(rank["stall_ratio"].get<double>()));
    fmt::print("\n");
  }
}

// ", 12 % without a lease, 3 % without room"; nothing where it is not known yet.
std::string WasteWords(const nlohmann::json& worker) {
  if (!worker.contains("idle_ratio") || worker["idle_ratio"].is_null()) return "";
  return fmt::format(", {} without a lease, {} without room",
                     FormatPercent(worker["idle_ratio"].get<double>()),
                     FormatPercent(worker["no_room_ratio"].get<double>()));
}

// How fast it is, how long it may take, and what the autoscaler says.
void PrintPace(const nlohmann::json& status) {
  if (const auto rate = status.find("rows_per_second"); rate != status.end() && rate->is_number()) {
    const double left = status["left_rows_count"].is_null()
                            ? 0
                            : status["left_rows_count"].get<double>() / rate->get<double>();
    fmt::print("  rate      {}{}\n", FormatRate(rate->get<double>(), "rows"),
               left > 0 ? fmt::format(", about {} left", FormatDuration(left * 1e9)) : "");
  }
  if (const auto pool = status.find("pool"); pool != status.end() && pool->is_object()) {
    const std::string name = Printable((*pool)["pool"].get<std::string>(), 80);
    if ((*pool)["granted_count"].is_null())
      fmt::print("  pool      {} does not answer\n", name);
    else
      fmt::print("  pool      {} lends {} of its {} workers\n", name,
                 (*pool)["granted_count"].get<uint64_t>(),
                 (*pool)["workers_count"].get<uint64_t>());
  }
  const auto scaling = status.find("autoscaler");
  if (scaling == status.end() || !scaling->is_object()) return;
  fmt::print("  wanted    {} workers{}\n", (*scaling)["wanted_count"].get<uint64_t>(),
             (*scaling)["reason"].is_null()
                 ? ""
                 : ": " + Printable((*scaling)["reason"].get<std::string>(), 400));
}

// What to do about it: start the first rank that is missing, or look at what limits it.
void PrintNext(const ServiceOptions& options, const nlohmann::json& status) {
  for (const auto& rank : status["ranks"]) {
    if (rank["joined"].get<bool>()) continue;
    return fmt::print("next: headrace consume {} --rank {}/{}\n",
                      ShellWord("service:" + options.job), rank["rank"].get<uint32_t>(),
                      status["ranks"].size());
  }
  const auto is_draining = [](const nlohmann::json& worker) {
    return worker["draining"].get<bool>();
  };
  const auto& workers = status["workers"];
  if (status["state"] == "running" && std::all_of(workers.begin(), workers.end(), is_draining)) {
    const auto pool = status.find("pool");
    if (pool == status.end() || !pool->is_object())
      return fmt::print("next: headrace service worker {}\n", ShellWord(options.job));
    return fmt::print("next: headrace service status {}\n",
                      ShellWord(Printable((*pool)["pool"].get<std::string>(), 400)));
  }
  if (status.contains("fleet") && status["fleet"].is_string())
    fmt::print("next: headrace report --fleet {} --db {}\n",
               ShellWord(Printable(status["job"].get<std::string>())),
               ShellWord(Printable(status["fleet"].get<std::string>(), 400)));
}

void PrintJob(const ServiceOptions& options, const nlohmann::json& status) {
  fmt::print("job {}  {}", options.job, status["state"].get<std::string>());
  if (!status["term"].is_null()) {
    const auto have = status["admitted_rows_count"].get<uint64_t>();
    fmt::print(", generation {}: ", status["generation"].get<uint64_t>());
    if (status["rows_count"].is_null()) {
      fmt::print("{} rows admitted, without end", have);
    } else {
      const auto rows = status["rows_count"].get<uint64_t>();
      fmt::print(
          "{} ({} of {} rows admitted)",
          FormatPercent(rows == 0 ? 1 : static_cast<double>(have) / static_cast<double>(rows)),
          have, rows);
    }
  }
  fmt::print("\n");
  PrintPace(status);
  PrintRanks(status);
  for (const auto& worker : status["workers"]) {
    fmt::print("  worker {}  process {} on {}: {} splits leased, {} units sent{}{}{}\n",
               worker["worker"].get<uint64_t>(), worker["pid"].get<int64_t>(),
               Printable(worker["host"].get<std::string>(), 80),
               worker["leases_count"].get<uint64_t>(), worker["sent_units_count"].get<uint64_t>(),
               WasteWords(worker), worker["silent"].get<bool>() ? ", silent" : "",
               worker["draining"].get<bool>() ? ", draining" : "");
  }
  const auto lost = status["workers_lost_count"].get<uint64_t>();
  const auto again = status["leased_again_count"].get<uint64_t>();
  fmt::print("  lost      {} worker{} with splits; {} lease{} given again\n", lost,
             lost == 1 ? "" : "s", again, again == 1 ? " was" : "s were");
  PrintNext(options, status);
}

std::string CountOf(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void PrintPool(const ServiceOptions& options, const nlohmann::json& status) {
  const auto& jobs = status["jobs"];
  const auto& machines = status["machines"];
  fmt::print("pool {}  {} of {}, {}\n", options.job,
             CountOf(status["workers_count"].get<uint64_t>(), "worker"),
             CountOf(machines.size(), "machine"), CountOf(jobs.size(), "job"));
  for (const auto& job : jobs) {
    const auto granted = job["granted_count"].get<uint64_t>();
    const auto running = job["running_count"].get<uint64_t>();
    fmt::print("  job {}  weight {}: {}, {} wanted{}{}\n",
               Printable(job["job"].is_null() ? job["place"].get<std::string>()
                                              : job["job"].get<std::string>(),
                         80),
               job["weight"].get<uint64_t>(), CountOf(granted, "worker"),
               job["wanted_count"].get<uint64_t>(),
               running == granted ? "" : fmt::format(", {} running", running),
               job["connected"].get<bool>() ? "" : ", its dispatcher is gone");
  }
  for (const auto& machine : machines)
    fmt::print("  on {}  {} of {} running{}\n",
               Printable(machine["machine"].get<std::string>(), 80),
               machine["running_count"].get<uint64_t>(), machine["workers_count"].get<uint64_t>(),
               machine["silent"].get<bool>()    ? ", says nothing"
               : machine["leaving"].get<bool>() ? ", leaving"
                                                : "");
  if (machines.empty())
    return fmt::print("next: headrace service lend {} --workers 2\n", ShellWord(options.job));
  if (jobs.empty())
    return fmt::print("next: headrace service up PIPELINE --pool {}\n", ShellWord(options.job));
  for (const auto& job : jobs) {  // of one that needs a token the job's own terminal says how
    const auto& place = job["place"].get_ref<const std::string&>();
    if (!place.starts_with('/')) continue;
    return fmt::print("next: headrace service status {}\n", ShellWord(Printable(place, 400)));
  }
}

}  // namespace

std::string DescribeStatus(const ServiceOptions& options, const DispatcherStatus& status,
                           const experiments::ServiceScaling* scaling,
                           const std::optional<BorrowedStatus>& borrowed) {
  nlohmann::json ranks = nlohmann::json::array(), workers = nlohmann::json::array();
  for (const auto& rank : status.ranks) {
    const double spent = static_cast<double>(rank.wait_ns + rank.compute_ns);
    nlohmann::json one = {{"rank", rank.rank},
                          {"joined", rank.is_joined},
                          {"connected", rank.is_connected},
                          {"delivered_rows_count", nullptr},
                          {"stall_ratio", nullptr},
                          {"host", nullptr}};
    if (rank.is_joined) one["host"] = rank.host;
    if (rank.has_reported) one["delivered_rows_count"] = rank.delivered_rows;
    if (spent > 0) one["stall_ratio"] = static_cast<double>(rank.wait_ns) / spent;
    ranks.push_back(std::move(one));
  }
  for (const auto& worker : status.workers) {
    workers.push_back({{"worker", worker.peer},
                       {"pid", worker.pid},
                       {"host", worker.host},
                       {"leases_count", worker.open_leases},
                       {"sent_units_count", worker.sent_units},
                       {"idle_ratio", PartOf(worker.idle_ns, worker.connected_ns)},
                       {"no_room_ratio", PartOf(worker.no_room_ns, worker.connected_ns)},
                       {"silent", worker.is_silent},
                       {"draining", worker.is_draining}});
  }
  const nlohmann::json out = {
      {"schema", "headrace.service/1"},
      {"job", options.job},
      {"pipeline", options.pipeline},
      {"fleet", options.no_fleet
                    ? nlohmann::json()
                    : nlohmann::json(std::filesystem::absolute(options.fleet).string())},
      {"mode", options.mode},
      {"generation", status.generation},
      {"term", status.is_running ? nlohmann::json(status.term) : nlohmann::json()},
      {"state", status.is_complete  ? "complete"
                : status.is_running ? "running"
                                    : "waiting"},
      {"rows_count", status.is_endless ? nlohmann::json() : nlohmann::json(status.rows)},
      {"left_rows_count", status.is_running && !status.is_endless ? nlohmann::json(status.left_rows)
                                                                  : nlohmann::json()},
      {"admitted_rows_count",
       status.is_running ? nlohmann::json(status.rows - status.left_rows) : nlohmann::json()},
      {"leased_again_count", status.leased_again},
      {"given_back_count", status.given_back},
      {"workers_lost_count", status.workers_lost},
      {"rows_per_second",
       status.rows_per_second > 0 ? nlohmann::json(status.rows_per_second) : nlohmann::json()},
      {"autoscaler", ScalingJson(scaling)},
      {"pool", PoolJson(borrowed)},
      {"ranks", std::move(ranks)},
      {"workers", std::move(workers)}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string DescribePool(const std::string& name, const reader::service::PoolStatus& status) {
  nlohmann::json jobs = nlohmann::json::array(), machines = nlohmann::json::array();
  for (const auto& job : status.jobs)
    jobs.push_back(
        {{"job", job.job.empty() ? nlohmann::json() : nlohmann::json(job.job)},
         {"place", job.place},
         {"machine", job.machine.empty() ? nlohmann::json() : nlohmann::json(job.machine)},
         {"weight", job.weight},
         {"wanted_count", job.wanted},
         {"granted_count", job.granted},
         {"running_count", job.running},
         {"share", job.share},
         {"connected", job.is_connected}});
  for (const auto& machine : status.machines)
    machines.push_back({{"machine", machine.machine},
                        {"workers_count", machine.workers},
                        {"granted_count", machine.granted},
                        {"running_count", machine.running},
                        {"leaving", machine.is_leaving},
                        {"silent", machine.is_silent}});
  const nlohmann::json out = {{"schema", "headrace.pool/1"},
                              {"pool", name},
                              {"workers_count", status.workers},
                              {"jobs", std::move(jobs)},
                              {"machines", std::move(machines)}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

int PrintStatus(const ServiceOptions& options) {
  const std::string text = AskDispatcher(options, reader::service::Command{"status", ""});
  if (options.json) {
    fmt::print("{}\n", text);
    return 0;
  }
  nlohmann::json status;
  try {
    status = nlohmann::json::parse(text);
    if (status.at("schema") == "headrace.pool/1") {
      PrintPool(options, status);
    } else {
      PrintJob(options, status);
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::kBadData, "its dispatcher answers with something else than a status",
                options.job, "use the same headrace for all processes of a job");
  }
  return 0;
}

}  // namespace headrace::cli
