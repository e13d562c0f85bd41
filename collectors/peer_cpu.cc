#include "collectors/peer_cpu.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "probes/process.h"

namespace headrace::collectors {
namespace {

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

PeerCpu::PeerCpu(int64_t pid, std::string proc)
    : proc_(std::move(proc)),
      mounts_(FileText(proc_ + "/self/mountinfo")),
      by_session_(FileText(proc_ + "/sys/kernel/sched_autogroup_enabled").starts_with('1')),
      group_(GroupOf(pid)) {
  Look([](int64_t, int64_t) {});
}

// Empty where it cannot be read.
std::string PeerCpu::GroupOf(int64_t pid) const {
  const std::string folder = proc_ + "/" + std::to_string(pid);
  const std::string text = FileText(folder + "/cgroup");
  if (text.empty()) return {};
  std::string name;
  if (const auto old = mounts_.Find(text, "cpu")) {
    name = old->name;
  } else if (auto group = mounts_.Find(text, "")) {
    // Weights hold where the controller is on: of the groups below, their threads are one crowd.
    while (group && access((group->folder + "/cpu.weight").c_str(), F_OK) != 0) {
      group = Parent(*group);
    }
    name = group ? group->name : "/";
  } else {
    name = "/";  // no control groups here
  }
  if (name == "/" && by_session_) {
    const std::string session = FileText(folder + "/autogroup");
    if (session.empty()) return {};
    name += session.substr(0, session.find(' '));
  }
  return name;
}

void PeerCpu::Look(const std::function<void(int64_t pid, int64_t used_ns)>& each) {
  std::map<int64_t, Process> now;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(proc_, failed)) {
    const std::string name = entry.path().filename();
    int64_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size()) continue;
    const std::optional<probes::ProcessStat> stat = probes::ReadProcessStat(pid, proc_);
    if (!stat) continue;
    const auto before = seen_.find(pid);
    const bool same = before != seen_.end() && before->second.start_ticks == stat->start_ticks;
    each(pid, stat->cpu_ns - (same ? before->second.cpu_ns : 0));
    now[pid] = {stat->start_ticks, stat->cpu_ns};
  }
  seen_ = std::move(now);
}

int64_t PeerCpu::ReadNs(const std::function<bool(int64_t pid)>& is_own) {
  if (!known()) return 0;
  Look([&](int64_t pid, int64_t used_ns) {
    if (used_ns > 0 && !is_own(pid) && GroupOf(pid) == group_) peers_ns_ += used_ns;
  });
  return peers_ns_;
}

}  // namespace headrace::collectors
