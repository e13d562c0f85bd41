#include "collectors/process_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/store/exit_text.h"
#include "probes/process.h"
#include "probes/process_identity.h"

namespace headrace::collectors {
namespace {

constexpr size_t kMostProcesses = 20'000;  // rows of one run
constexpr size_t kMostThreads = 400;       // beyond, one pass over /proc is cheaper

std::string ReadText(const std::string& path, size_t limit) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  ssize_t n;
  while (text.size() < limit && (n = read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return text;
}

int64_t ClockNs(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::string ReadLink(const std::string& path) {
  char target[4096];
  const ssize_t n = readlink(path.c_str(), target, sizeof target);
  return n > 0 ? std::string(target, static_cast<size_t>(n)) : "";
}

}  // namespace

ProcessTree::ProcessTree(int64_t root_pid, int64_t start_ns, std::string root)
    : root_pid_(root_pid),
      start_ns_(start_ns),
      boot_offset_ns_(ClockNs(CLOCK_BOOTTIME) - ClockNs(CLOCK_MONOTONIC)),
      root_(std::move(root)) {
  has_children_files_ =
      access(fmt::format("{}/{}/task/{}/children", root_, root_pid, root_pid).c_str(), R_OK) == 0;
  const auto stat = probes::ReadProcessStat(root_pid, root_);
  Add(root_pid, stat ? stat->parent_pid : 0, "root");
  live_ = {root_pid};
  Update(start_ns);
}

void ProcessTree::Describe(TreeProcess* process, const std::string& thread_name) {
  const int64_t pid = process->row.pid;
  const std::string command = Printable(probes::ReadCommandLine(pid, root_), 1024);
  const std::string name = Printable(thread_name);
  const std::string image = ReadLink(fmt::format("{}/{}/exe", root_, pid));
  if (!own_image_.empty() && image == own_image_) return;  // forked, has not executed yet
  // A forked child that executes something is still the same process.
  if (!process->image.empty() && !image.empty() && image != process->image) process->images++;
  if (!image.empty()) process->image = image;
  if (name == process->row.name && (command.empty() || command == process->row.command)) return;
  process->row.name = name;
  if (!command.empty()) process->row.command = command;
  changed_.insert(process->row.id);
}

void ProcessTree::Add(int64_t pid, int64_t parent_pid, const char* role) {
  if (processes_.size() >= kMostProcesses) {
    over_limit_++;
    return;
  }
  const auto id = static_cast<int64_t>(processes_.size());
  TreeProcess& process = processes_[id];
  process.row.id = id;
  process.row.pid = pid;
  process.row.parent_pid = parent_pid;
  process.row.role = role;
  const auto parent = by_pid_.find(parent_pid);
  if (parent != by_pid_.end() && parent->second != id) process.parent_id = parent->second;
  const auto stat = probes::ReadProcessStat(pid, root_);
  if (stat) {
    process.start_ticks = stat->start_ticks;
    process.row.session_id = stat->session_id;
    const int64_t tick_ns = 1'000'000'000 / sysconf(_SC_CLK_TCK);
    process.row.started_ns = stat->start_ticks * tick_ns - boot_offset_ns_ - start_ns_;
    process.base_cpu_ns = process.cpu_ns = process.row.started_ns < 0 ? stat->cpu_ns : 0;
    if (process.row.started_ns < 0) {
      process.base_reaped_ns = process.reaped_cpu_ns = stat->reaped_cpu_ns;
    }
  } else {
    process.alive = false;  // seen by a probe only
    process.row.started_ns = MonotonicNs() - start_ns_;
    process.row.ended_ns = process.row.started_ns;
  }
  by_pid_[pid] = id;
  changed_.insert(id);
  if (stat) Describe(&process, stat->name);
  if (process.row.started_ns < 0) {
    if (const auto io = probes::ReadProcessIo(pid, root_)) {
      process.base_read_bytes = io->read_bytes;
      process.base_read_call_bytes = io->read_call_bytes;
    }
  }
}

void ProcessTree::End(TreeProcess* process, int64_t now_ns, const std::string& exit_text) {
  process->alive = false;
  process->rss_bytes = process->threads = 0;
  process->row.ended_ns = now_ns - start_ns_;
  // When it began is known to 10 ms, or where only a probe has seen it, not at all.
  if (process->start_ticks == 0) {
    process->row.started_ns = std::min(process->row.started_ns, *process->row.ended_ns);
  }
  process->row.ended_ns = std::max(*process->row.ended_ns, process->row.started_ns);
  process->row.exit_text = exit_text;
  changed_.insert(process->row.id);
}

std::vector<int64_t> ProcessTree::ChildrenOf(int64_t pid) const {
  std::vector<int64_t> children;
  for (const int64_t tid : probes::ListProcesses(fmt::format("{}/{}/task", root_, pid))) {
    const std::string text =
        ReadText(fmt::format("{}/{}/task/{}/children", root_, pid, tid), 1 << 20);
    const char* at = text.c_str();
    while (true) {
      char* end;
      const long long child = std::strtoll(at, &end, 10);
      if (end == at) break;
      if (child > 0) children.push_back(child);
      at = end;
    }
  }
  return children;
}

std::map<int64_t, std::vector<int64_t>> ProcessTree::AllChildren() const {
  std::map<int64_t, std::vector<int64_t>> children;
  for (const int64_t pid : probes::ListProcesses(root_)) {
    if (const auto stat = probes::ReadProcessStat(pid, root_)) {
      children[stat->parent_pid].push_back(pid);
    }
  }
  return children;
}

void ProcessTree::SetRootCommand(const std::string& name, const std::string& command) {
  own_image_ = ReadLink("/proc/self/exe");
  ProcessRow& row = processes_.begin()->second.row;
  row.name = name;
  row.command = command;
  changed_.insert(row.id);
}

bool ProcessTree::root_alive() const { return processes_.begin()->second.alive; }

void ProcessTree::Saw(const probes::ForkEvent& event) {
  const auto known = by_pid_.find(event.pid);
  TreeProcess* process = known == by_pid_.end() ? nullptr : &processes_[known->second];
  if (event.parent_pid == 0) {
    if (!process) return;
    const auto stat = probes::ReadProcessStat(event.pid, root_);
    const bool readable = stat && stat->start_ticks == process->start_ticks;
    const bool open =
        process->alive || (process->start_ticks == 0 && process->row.exit_text.empty());
    // What is still a zombie has last figures, which Update reads.
    if (open && !readable) End(process, event.time_ns, ExitText(event.wait_status.value_or(0)));
    return;
  }
  const auto parent = by_pid_.find(event.parent_pid);
  if (parent == by_pid_.end() || event.pid == getpid()) return;
  const TreeProcess& of = processes_[parent->second];
  // Numbers of ended processes come back: only a parent that was alive then is ours.
  if (!of.alive && of.start_ticks != 0 && of.row.ended_ns.value_or(0) + start_ns_ < event.time_ns)
    return;
  if (process && process->start_ticks == 0 && process->row.exit_text.empty()) {
    // A probe had seen it before: what it was forked from and when is known now.
    process->row.parent_pid = event.parent_pid;
    process->row.started_ns = std::min(process->row.started_ns, event.time_ns - start_ns_);
    if (process->row.name.empty()) process->row.name = of.row.name;
    changed_.insert(process->row.id);
    return;
  }
  if (process) {
    const bool found_by_update =
        process->alive || process->row.ended_ns.value_or(0) + start_ns_ >= event.time_ns;
    if (found_by_update) return;
  }
  const std::string name = of.row.name;
  Add(event.pid, event.parent_pid, "child");
  const auto added = by_pid_.find(event.pid);
  if (added == by_pid_.end() || &processes_[added->second] == process) return;  // no room
  TreeProcess& child = processes_[added->second];
  if (child.alive) {
    live_.push_back(event.pid);
    return;
  }
  child.row.started_ns = event.time_ns - start_ns_;  // gone already; its end is told next
  child.row.ended_ns = child.row.started_ns;
  if (child.row.name.empty()) child.row.name = name;  // what it was forked from
}

std::optional<probes::ProcessStat> ProcessTree::FirstThread(int64_t pid) const {
  // The kernel adds up all threads for the process's own file: 90 us where there are 2000.
  if (auto stat = probes::ReadProcessStat(pid, fmt::format("{}/{}/task", root_, pid))) return stat;
  return probes::ReadProcessStat(pid, root_);
}

// How a zombie ended. The file of its figures ends in its exit code, for those who may trace it;
// else in 0.
std::string ProcessTree::HowEnded(int64_t pid) const {
  const std::string text = ReadText(fmt::format("{}/{}/stat", root_, pid), 4096);
  const size_t blank = text.rfind(' ', text.empty() ? 0 : text.size() - 2);
  const int code = blank == std::string::npos ? 0 : std::atoi(text.c_str() + blank);
  const bool readable = code != 0 || geteuid() == 0 || probes::ReadOwner(pid, root_) == geteuid();
  return readable ? ExitText(code) : "";
}

size_t ProcessTree::DropEnded(int64_t now_ns) {
  std::vector<int64_t> live;
  size_t num_threads = 0;
  for (const int64_t pid : live_) {
    TreeProcess& process = processes_[by_pid_[pid]];
    if (!process.alive) continue;
    const auto first = FirstThread(pid);
    const bool same = first && first->start_ticks == process.start_ticks;
    if (same && first->state != 'Z' && first->state != 'X') {
      num_threads += static_cast<size_t>(std::max<int64_t>(1, first->num_threads));
      Describe(&process, first->name);
      live.push_back(pid);
      continue;
    }
    std::string how;
    const auto stat = probes::ReadProcessStat(pid, root_);
    if (stat && stat->start_ticks == process.start_ticks) {
      process.cpu_ns = std::max(process.cpu_ns, stat->cpu_ns);
      process.reaped_cpu_ns = std::max(process.reaped_cpu_ns, stat->reaped_cpu_ns);
      how = HowEnded(pid);
    }
    End(&process, now_ns, how);
  }
  live_ = std::move(live);
  return num_threads;
}

void ProcessTree::Update(int64_t now_ns, bool children_are_told) {
  const size_t num_threads = DropEnded(now_ns);
  if (children_are_told) return;
  std::vector<int64_t> queue = std::move(live_);
  const bool by_files = has_children_files_ && num_threads <= kMostThreads;
  std::map<int64_t, std::vector<int64_t>> all;
  if (!by_files) all = AllChildren();
  live_.clear();
  std::set<int64_t> seen(queue.begin(), queue.end());
  for (size_t i = 0; i < queue.size(); i++) {  // the queue grows by what is found
    const int64_t pid = queue[i];
    live_.push_back(pid);
    for (const int64_t child : by_files ? ChildrenOf(pid) : all[pid]) {
      if (child == getpid() || !seen.insert(child).second) continue;
      const auto known = by_pid_.find(child);
      if (known != by_pid_.end()) {
        const TreeProcess& old = processes_[known->second];
        const auto stat = probes::ReadProcessStat(child, root_);
        if (!stat) continue;
        if (stat->start_ticks == old.start_ticks) {  // a zombie whose end was noted has no more
          if (old.alive) queue.push_back(child);
          continue;
        }
      }
      Add(child, pid, "child");
      const auto added = by_pid_.find(child);
      if (added == by_pid_.end()) continue;
      TreeProcess& process = processes_[added->second];
      const auto stat = probes::ReadProcessStat(child, root_);
      if (!stat || stat->state == 'Z') {
        if (stat && process.row.started_ns >= 0) process.cpu_ns = stat->cpu_ns;
        if (process.alive) End(&process, now_ns, "");
        continue;
      }
      if (process.alive) queue.push_back(child);
    }
  }
}

void ProcessTree::ReadUsage() {
  for (const int64_t pid : live_) {
    TreeProcess& process = processes_[by_pid_[pid]];
    const auto stat = probes::ReadProcessStat(pid, root_);
    // It has been waited for since the last look: its parent's sum may have it.
    process.is_gone = !stat || stat->start_ticks != process.start_ticks;
    if (process.is_gone) continue;
    process.cpu_ns = std::max(process.cpu_ns, stat->cpu_ns);
    process.reaped_cpu_ns = std::max(process.reaped_cpu_ns, stat->reaped_cpu_ns);
    process.rss_bytes = stat->state == 'Z' ? 0 : stat->rss_bytes;
    process.threads = stat->num_threads;
    if (const auto io = probes::ReadProcessIo(pid, root_)) {
      process.read_bytes = std::max(process.read_bytes.value_or(0), io->read_bytes);
      process.read_call_bytes = std::max(process.read_call_bytes.value_or(0), io->read_call_bytes);
    }
  }
}

TreeProcess* ProcessTree::Find(int64_t pid) {
  const auto it = by_pid_.find(pid);
  return it == by_pid_.end() ? nullptr : &processes_[it->second];
}

int64_t ProcessTree::ProcessId(int64_t pid) {
  const auto it = by_pid_.find(pid);
  if (it != by_pid_.end()) return it->second;
  const auto stat = probes::ReadProcessStat(pid, root_);
  Add(pid, stat ? stat->parent_pid : 0, "child");
  const auto added = by_pid_.find(pid);
  if (added == by_pid_.end()) return 0;  // no room: the root stands for it
  TreeProcess& process = processes_[added->second];
  if (process.alive) live_.push_back(pid);
  return added->second;
}

// Whether the parent still lived when the process ended, and may have waited for it.
bool ProcessTree::EndedBefore(const TreeProcess& process, const TreeProcess& parent) const {
  return (!process.alive || process.is_gone) &&
         (parent.alive ||
          parent.row.ended_ns.value_or(0) >= process.row.ended_ns.value_or(INT64_MAX));
}

int64_t ProcessTree::cpu_ns() const {
  // CPU time of ended children has two sources, of which the larger counts: our readings of them
  // and their children, and the kernel's sum over children that were waited for. The kernel's sum
  // also contains time that no reading saw and time before the run (subtracted), but no children
  // that were not waited for.
  struct Children {
    int64_t seen_ns = 0, before_ns = 0;
  };
  std::map<int64_t, Children> ended;
  int64_t sum = 0;
  for (auto it = processes_.rbegin(); it != processes_.rend(); ++it) {  // children before parents
    const TreeProcess& p = it->second;
    const auto found = ended.find(it->first);
    const Children of_it = found == ended.end() ? Children{} : found->second;
    const int64_t all =
        p.cpu_ns - p.base_cpu_ns +
        std::max(of_it.seen_ns, p.reaped_cpu_ns - p.base_reaped_ns - of_it.before_ns);
    if (p.parent_id && EndedBefore(p, processes_.at(*p.parent_id))) {
      Children& of_parent = ended[*p.parent_id];
      of_parent.seen_ns += all;
      of_parent.before_ns += p.base_cpu_ns + p.base_reaped_ns + of_it.before_ns;
    } else {
      sum += all;
    }
  }
  return sum;
}
int64_t ProcessTree::rss_bytes() const {
  int64_t sum = 0;
  for (const auto& [id, p] : processes_) sum += p.rss_bytes;
  return sum;
}
int64_t ProcessTree::threads() const {
  int64_t sum = 0;
  for (const auto& [id, p] : processes_) sum += p.threads;
  return sum;
}
std::optional<int64_t> ProcessTree::read_bytes() const {
  std::optional<int64_t> sum;
  for (const auto& [id, p] : processes_) {
    if (p.read_bytes) sum = sum.value_or(0) + *p.read_bytes - p.base_read_bytes;
  }
  return sum;
}
std::optional<int64_t> ProcessTree::read_call_bytes() const {
  std::optional<int64_t> sum;
  for (const auto& [id, p] : processes_) {
    if (p.read_call_bytes) sum = sum.value_or(0) + *p.read_call_bytes - p.base_read_call_bytes;
  }
  return sum;
}

void ProcessTree::Touch(int64_t pid) {
  if (const TreeProcess* process = Find(pid)) changed_.insert(process->row.id);
}

std::vector<ProcessRow> ProcessTree::TakeChanged() {
  std::vector<ProcessRow> rows;
  for (const int64_t id : changed_) rows.push_back(processes_[id].row);
  changed_.clear();
  return rows;
}

}  // namespace headrace::collectors
