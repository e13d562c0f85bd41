#include "probes/bpf/followed.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/bpf/kernel.h"
#include "probes/bpf/limits.h"
#include "probes/bpf/map_entries.h"
#include "probes/host.h"

namespace headrace::probes::bpf {
namespace {

// As in operator.bpf.h.
struct TargetValue {
  uint64_t segment_address;
};
constexpr uint32_t kTargetMarks = 4096;
constexpr uint8_t kTargetHere = 1, kTargetAccounts = 2;
constexpr uint32_t kMaxFollowed = 16384;  // entries of `targets`, and of `threads`
constexpr int64_t kFollowPeriodNs = 20'000'000;
// A thread can be gone for /proc and still have its last switch before it.
constexpr int64_t kGoneNs = 1'000'000'000;
// Without being asked for more, the kernel measures our programs a tenth of the time.
constexpr int64_t kCostPeriodNs = 2'000'000'000, kCostWindowNs = 200'000'000;
static_assert(offsetof(hr_header, num_slots) == 88 && offsetof(hr_segment, slots) == 344064 &&
                  sizeof(hr_slot) == 36864 && HR_MAX_THREADS == 512,
              "operator.bpf.h repeats parts of the segment's ABI");

bool ProcessExists(int64_t pid) { return kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH; }

// The `keys` that have had no process for at least kGoneNs.
std::vector<uint32_t> LongGone(const std::vector<uint32_t>& keys, int64_t now_ns,
                               std::map<uint32_t, int64_t>* since) {
  std::map<uint32_t, int64_t> still;
  std::vector<uint32_t> result;
  for (const uint32_t key : keys) {
    if (ProcessExists(key)) continue;
    const auto it = since->find(key);
    const int64_t begin = it == since->end() ? now_ns : it->second;
    still[key] = begin;
    if (now_ns - begin >= kGoneNs) result.push_back(key);
  }
  *since = std::move(still);
  return result;
}

}  // namespace

RunTimeWindows::~RunTimeWindows() {
  if (fd_ >= 0) close(fd_);
}

void RunTimeWindows::Update(const Target& target, int64_t now_ns) {
  static const bool asked = std::getenv("HEADRACE_BPF_STATS") != nullptr;
  if (begin_ns_ == 0) begin_ns_ = now_ns;
  const int64_t at = (now_ns - begin_ns_) % kCostPeriodNs;
  bool want = asked || target.deep || (at >= kCostWindowNs && at < 2 * kCostWindowNs);
  // Where somebody else has the kernel measure all the time, what it measures is of all the time.
  if (!want && (fd_ >= 0 || begin_ns_ == now_ns))
    want = Host().ReadInteger("/proc/sys/kernel/bpf_stats_enabled") == 1;
  if (want && fd_ < 0 && !refused_) {
    fd_ = bpf_enable_stats(BPF_STATS_RUN_TIME);
    refused_ = fd_ < 0;
    opened_ns_ = MonotonicNs();
  } else if (!want && fd_ >= 0) {
    close(fd_);
    fd_ = -1;
    sum_ns_ += MonotonicNs() - opened_ns_;
  }
}

int64_t RunTimeWindows::MeasuredNs(int64_t now_ns) const {
  return sum_ns_ + (fd_ >= 0 ? now_ns - opened_ns_ : 0);
}

std::shared_ptr<Followed> Followed::Get(int* error) {
  static std::weak_ptr<Followed> instance;
  *error = 0;
  if (auto shared = instance.lock()) return shared;
  std::shared_ptr<Followed> fresh(new Followed());
  *error = fresh->Load();
  if (*error != 0) return nullptr;
  instance = fresh;
  return fresh;
}

Followed::~Followed() {
  for (bpf_link* link : links_) bpf_link__destroy(link);
  bpf_object__close(object_);
}

// An errno on failure, else 0.
int Followed::Load() {
  const auto bytes = ObjectOf("follow");
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "hr_follow");
  object_ = bpf_object__open_mem(bytes.data(), bytes.size(), &options);
  if (!object_) return errno;
  if (const auto limit = MapEntriesLimit()) {
    bpf_map* map = bpf_object__find_map_by_name(object_, "threads");
    bpf_map__set_max_entries(map, std::min(*limit, bpf_map__max_entries(map)));
  }
  if (const int error = bpf_object__load(object_)) return -error;
  bpf_program* program;
  bpf_object__for_each_program(program, object_) {
    bpf_link* link = bpf_program__attach(program);
    if (!link) return errno;
    links_.push_back(link);
  }
  targets_ = bpf_object__find_map_fd_by_name(object_, "targets");
  target_marks_ = bpf_object__find_map_fd_by_name(object_, "target_marks");
  threads_ = bpf_object__find_map_fd_by_name(object_, "threads");
  switch_notes_ = bpf_object__find_map_fd_by_name(object_, "switch_notes");
  held_process_ = bpf_object__find_map_fd_by_name(object_, "held_process");
  thread_state_size_ = bpf_map__value_size(bpf_object__find_map_by_name(object_, "threads"));
  return 0;
}

int Followed::SharedMap(const std::string& name) const {
  if (name == "targets") return targets_;
  if (name == "target_marks") return target_marks_;
  if (name == "threads") return threads_;
  if (name == "switch_notes") return switch_notes_;
  return -1;
}

bool Followed::IsReportedBy(const Program* program) {
  if (!reporter_) reporter_ = program;
  return reporter_ == program;
}

void Followed::Leave(const Program* program) {
  if (reporter_ == program) reporter_ = nullptr;
}

// Tells the kernel which process becomes a target at its exec; false if it cannot be told.
bool Followed::Hold(int64_t pid) {
  if (held_ == pid) return true;
  const auto tgid = static_cast<uint32_t>(pid);
  const uint32_t zero = 0;
  if (bpf_map_update_elem(held_process_, &zero, &tgid, BPF_ANY) != 0) return false;
  held_ = pid;
  return true;
}

void Followed::Follow(const Target& target, bool at_once) {
  const int64_t now = MonotonicNs();
  if (!at_once && now - followed_ns_ < kFollowPeriodNs) return;
  followed_ns_ = now;
  run_time_.Update(target, now);
  std::map<int64_t, uint64_t> addresses;  // of segments, by pid; 0: none
  for (const int64_t pid : target.pids) {
    if (target.root_held && pid == target.root_pid && Hold(pid)) continue;
    addresses[pid] = 0;
  }
  for (const AccountedProcess& process : target.accounts) {
    addresses[process.pid] = process.segment_address;
  }
  AddTargets(addresses);
  // What a kernel program removes by itself, unless its event was missed.
  RemoveProcesses(addresses, now);
  if (now - threads_looked_ns_ < kGoneNs / 2) return;
  threads_looked_ns_ = now;
  RemoveThreads(now);
}

void Followed::AddTargets(const std::map<int64_t, uint64_t>& addresses) {
  for (const auto& [pid, address] : addresses) {
    const auto it = known_.find(pid);
    if (it != known_.end() && (it->second == address || address == 0)) continue;
    const auto key = static_cast<uint32_t>(pid);
    const TargetValue value = {address};
    const uint32_t index = key % kTargetMarks;
    uint8_t& mark = marks_[index];
    mark |= address ? kTargetHere | kTargetAccounts : kTargetHere;
    bpf_map_update_elem(target_marks_, &index, &mark, BPF_ANY);
    // Without an address, what the kernel put there while following a fork stays.
    if (bpf_map_update_elem(targets_, &key, &value, address ? BPF_ANY : BPF_NOEXIST) == 0 ||
        errno == EEXIST) {
      known_[pid] = address;
    }
  }
}

void Followed::RemoveProcesses(const std::map<int64_t, uint64_t>& addresses, int64_t now_ns) {
  std::vector<uint32_t> pids;
  ForEachEntry(targets_, kMaxFollowed, sizeof(uint32_t), sizeof(TargetValue),
               [&](const void* key, const void* value) {
                 uint32_t pid;
                 TargetValue target_value;
                 std::memcpy(&pid, key, sizeof pid);
                 std::memcpy(&target_value, value, sizeof target_value);
                 pids.push_back(pid);
                 // An exec takes the address away; a new segment may come to the same one.
                 const auto it = known_.find(pid);
                 if (it != known_.end()) it->second = target_value.segment_address;
               });
  for (const uint32_t pid : LongGone(pids, now_ns, &gone_processes_)) {
    bpf_map_delete_elem(targets_, &pid);
  }
  std::erase_if(known_, [&](const auto& entry) {
    return addresses.count(entry.first) == 0 && !ProcessExists(entry.first);
  });
}

void Followed::RemoveThreads(int64_t now_ns) {
  std::vector<uint32_t> tids;
  ForEachEntry(threads_, kMaxFollowed, sizeof(uint32_t), thread_state_size_,
               [&](const void* key, const void*) {
                 uint32_t tid;
                 std::memcpy(&tid, key, sizeof tid);
                 tids.push_back(tid);
               });
  for (const uint32_t tid : LongGone(tids, now_ns, &gone_threads_)) {
    bpf_map_delete_elem(threads_, &tid);
  }
}

uint64_t FindSegmentAddress(const Host& host, int64_t pid) {
  const auto maps = host.Read(fmt::format("/proc/{}/maps", pid), 16 << 20);
  if (!maps) return 0;
  const std::string file = fmt::format("/headrace.");
  for (size_t at = 0; at < maps->size();) {
    size_t end = maps->find('\n', at);
    if (end == std::string::npos) end = maps->size();
    const std::string_view line(maps->data() + at, end - at);
    at = end + 1;
    if (line.find(file) == std::string_view::npos) continue;
    if (line.ends_with(" (deleted)")) continue;  // closed accounts stay mapped
    unsigned long long begin = 0, stop = 0, offset = 0;
    char rights[8] = "";
    if (std::sscanf(std::string(line).c_str(), "%llx-%llx %7s %llx", &begin, &stop, rights,
                    &offset) == 4 &&
        offset == 0 && stop - begin >= sizeof(hr_segment) && rights[0] == 'r' && rights[1] == 'w') {
      return begin;
    }
  }
  return 0;
}

}  // namespace headrace::probes::bpf
