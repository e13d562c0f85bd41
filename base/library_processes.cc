#include "base/library_processes.h"

#include <algorithm>
#include <iterator>

namespace headrace {
namespace {

// What follows "ray::" in the names of Ray's own actors and agents, and of workers without a task,
// as far as the kernel keeps them. Others that begin with "_" may be a program's, or Ray Train's.
constexpr std::string_view kRaysOwn[] = {"_Autoscali", "_StatsActo", "ActorLocat", "Dashboard",
                                         "IDLE",       "RuntimeEnv", "SplitCoord"};

struct ServiceCommand {
  std::string_view part, name;
};

constexpr ServiceCommand kServices[] = {
    {"multiprocessing.resource_tracker", "resource_tracker"},
    {"/ray/_private/log_monitor.py", "ray log_monitor.py"},
    {"/ray/autoscaler/_private/monitor.py", "ray monitor.py"},
    {"/ray/dashboard/dashboard.py", "ray dashboard.py"},
};

}  // namespace

bool IsOfRay(std::string_view name) { return name.starts_with("ray::"); }

bool IsIdleRayWorker(std::string_view name) { return name == "ray::IDLE"; }

bool IsRayWorker(std::string_view name) {
  if (!IsOfRay(name)) return false;
  name.remove_prefix(std::string_view("ray::").size());
  return std::none_of(std::begin(kRaysOwn), std::end(kRaysOwn),
                      [&](std::string_view own) { return name.starts_with(own); });
}

std::string ServiceName(std::string_view name, std::string_view command) {
  const bool is_daemon = name == "raylet" || name == "gcs_server";
  if (is_daemon || (IsOfRay(name) && !IsRayWorker(name))) return std::string(name);
  for (const ServiceCommand& service : kServices) {
    if (command.find(service.part) != std::string_view::npos) return std::string(service.name);
  }
  return "";
}

}  // namespace headrace
