#include "collectors/discovery.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/account_tree.h"
#include "collectors/agent.h"
#include "collectors/left_behind.h"
#include "collectors/recorded_mark.h"
#include "probes/account/account_segment.h"
#include "probes/process.h"

namespace headrace::collectors {
namespace {

constexpr int64_t kRetryNs = 60'000'000'000;  // a process that could not be recorded
constexpr int kMostPipelines = 32;            // at the same time

std::string Image(int64_t pid) {
  char target[4096];
  const ssize_t n = readlink(fmt::format("/proc/{}/exe", pid).c_str(), target, sizeof target);
  return n > 0 ? std::string(target, static_cast<size_t>(n)) : "";
}

bool IsAncestor(int64_t ancestor, int64_t pid) {
  for (int depth = 0; depth < 64 && pid > 1; depth++) {
    if (pid == ancestor) return true;
    const auto stat = probes::ReadProcessStat(pid);
    if (!stat) return false;
    pid = stat->parent_pid;
  }
  return false;
}

}  // namespace

int64_t PipelineRoot(int64_t pid) {
  const std::string image = Image(pid);
  for (int depth = 0; depth < 64; depth++) {
    const auto stat = probes::ReadProcessStat(pid);
    if (!stat || stat->parent_pid <= 1 || image.empty()) return pid;
    if (Image(stat->parent_pid) != image ||
        getsid(static_cast<pid_t>(stat->parent_pid)) != getsid(static_cast<pid_t>(pid))) {
      return pid;
    }
    pid = stat->parent_pid;
  }
  return pid;
}

void Discover(const DiscoveryOptions& options) {
  std::optional<RunStore> store(std::in_place, options.database);
  std::map<int64_t, Agent> agents;     // by the root's pid
  std::map<int64_t, int64_t> refused;  // when to try again
  const auto log = [&](const std::string& line) {
    if (options.log) options.log(line);
  };
  int64_t next_retain_ns = 0;
  while (!options.stop || !options.stop()) {
    for (auto it = agents.begin(); it != agents.end();) {
      if (!it->second.ended()) {
        ++it;
        continue;
      }
      try {
        log(fmt::format("run {} of process {} is recorded", it->second.Stop(), it->first));
      } catch (const Error& error) {
        log(fmt::format("process {}: {}", it->first, error.what()));
        refused[it->first] = MonotonicNs() + kRetryNs;
      }
      it = agents.erase(it);
    }
    for (const int64_t pid : account::AccountSegment::FindAll()) {
      if (!probes::IsAlive(pid)) continue;
      bool known = false;
      for (const auto& [root, agent] : agents) known |= IsAncestor(root, pid);
      const int64_t root = known ? pid : PipelineRoot(pid);
      const auto wait = refused.find(root);
      if (known || (wait != refused.end() && MonotonicNs() < wait->second)) continue;
      if (agents.size() >= kMostPipelines ||
          IsBeingRecorded(account::AccountSegment::PathOf(pid))) {
        continue;
      }
      AgentOptions agent;
      agent.executable = options.executable;
      agent.pid = root;
      agent.database = options.database;
      agent.arguments = options.arguments;
      try {
        const auto started = agents.emplace(root, Agent::Start(agent)).first;
        log(fmt::format("recording process {} as run {}", root, started->second.run_id()));
      } catch (const Error& error) {
        log(fmt::format("process {} cannot be recorded: {}", root, error.what()));
        refused[root] = MonotonicNs() + kRetryNs;
      }
    }
    if (MonotonicNs() >= next_retain_ns) {
      next_retain_ns = MonotonicNs() + options.retain_ns;
      if (store->IsDisplaced()) {
        log(fmt::format(
            "{} was deleted or replaced: what is recorded from now on goes into a new one",
            options.database));
        store.emplace(options.database);
      }
      for (const int64_t id : store->Retain(options.retention)) {
        log(fmt::format("removed run {}", id));
      }
      RemoveLeftBehind();
      std::erase_if(refused, [](const auto& entry) { return !probes::IsAlive(entry.first); });
    }
    const int64_t until = MonotonicNs() + options.poll_ns;
    while (MonotonicNs() < until && (!options.stop || !options.stop())) {
      SleepUntilNs(std::min(until, MonotonicNs() + 100'000'000));
    }
  }
}

}  // namespace headrace::collectors
