#include "collectors/peer_cpu.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "probes/process.h"
#include "probes/process_identity.h"

namespace headrace::collectors {
namespace {

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

PeerCpu::PeerCpu(int64_t pid, std::string proc)
    : pid_(pid),
      proc_(std::move(proc)),
      files_(proc_),
      mounts_(files_.Read("/self/mountinfo").value_or("")),
      by_session_(files_.Read("/sys/kernel/sched_autogroup_enabled").value_or("").starts_with('1')),
      group_(GroupOf(pid)) {
  Look([](int64_t, int64_t, int64_t) {});
  for (const auto& [number, process] : seen_) {
    newest_ticks_ = std::max(newest_ticks_, process.start_ticks);
  }
}

std::optional<std::string> PeerCpu::GroupOf(int64_t pid) const {
  const std::string folder = "/" + std::to_string(pid);
  const std::optional<std::string> text = files_.Read(folder + "/cgroup");
  if (!text) return std::nullopt;
  std::string name = "/";
  bool top = true;  // the machine's top group, which is not what a container takes for it
  if (const auto path = CgroupPath(*text, "cpu")) {
    name = std::string(*path);
    const auto group = mounts_.Find(*text, "cpu");
    top = name == "/" && group && Exists(group->folder + "/release_agent");
  } else if (CgroupPath(*text, "")) {
    // Weights hold where the controller is on: of the groups below, their threads are one crowd.
    std::optional<Cgroup> group = mounts_.Find(*text, "");
    if (!group) return std::nullopt;
    while (group && !Exists(group->folder + "/cpu.weight")) group = Parent(*group);
    top = !group;
    if (group) name = group->name;
  }
  if (!top || !by_session_) return name;
  const std::optional<std::string> session = files_.Read(folder + "/autogroup");
  if (!session) return std::nullopt;
  return name + session->substr(0, session->find(' '));  // empty: that of no session
}

void PeerCpu::Look(
    const std::function<void(int64_t pid, int64_t start_ticks, int64_t used_ns)>& each) {
  std::map<int64_t, Process> now;
  for (const int64_t pid : probes::ListProcesses(proc_)) {
    const auto before = seen_.find(pid);
    const std::optional<probes::ProcessStat> stat = probes::ReadProcessStat(pid, proc_);
    if (!stat) {  // it has ended, or too many files are open
      if (before != seen_.end()) now.insert(*before);
      continue;
    }
    now[pid] = {stat->start_ticks, stat->cpu_ns};
    if (before != seen_.end() && before->second.start_ticks == stat->start_ticks) {
      each(pid, stat->start_ticks, stat->cpu_ns - before->second.cpu_ns);
    } else if (stat->start_ticks > newest_ticks_) {
      each(pid, stat->start_ticks, stat->cpu_ns);
    }
  }
  if (!now.empty()) seen_ = std::move(now);
}

int64_t PeerCpu::ReadNs(const std::function<bool(int64_t pid, int64_t start_ticks)>& is_own) {
  // The process may have been moved; of one that has ended the last group is known.
  if (auto group = GroupOf(pid_)) group_ = std::move(group);
  if (!known()) return peers_ns_;
  Look([&](int64_t pid, int64_t start_ticks, int64_t used_ns) {
    if (used_ns > 0 && !is_own(pid, start_ticks) && GroupOf(pid) == group_) peers_ns_ += used_ns;
  });
  return peers_ns_;
}

}  // namespace headrace::collectors
