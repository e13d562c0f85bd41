#include "probes/bpf/program.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "base/check.h"
#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/bpf/limits.h"
#include "probes/bpf/objects.h"

namespace headrace::probes::bpf {

// A member's place and kind.
struct Member {
  enum class Kind : uint8_t { kNumber, kEnum, kText };
  Kind kind = Kind::kNumber;
  uint32_t offset = 0, size = 0;
  std::map<uint64_t, std::string> words;
};

namespace {

using Members = std::map<std::string, Member, std::less<>>;

// As in operator.bpf.h.
struct TargetValue {
  uint64_t segment_address;
};
constexpr uint32_t kTargetMarks = 4096;
constexpr uint64_t kInitialPidNamespace = 4026531836;
constexpr int64_t kFollowPeriodNs = 20'000'000;
// A thread can be gone for /proc and still have its last switch before it.
constexpr int64_t kGoneNs = 1'000'000'000;
// Without being asked for more, the kernel measures our programs a tenth of the time.
constexpr int64_t kCostPeriodNs = 2'000'000'000, kCostWindowNs = 200'000'000;
constexpr double kLeastMeasuredNs = 100e6;  // shorter ones say nothing
static_assert(offsetof(hr_header, num_slots) == 88 && offsetof(hr_segment, slots) == 344064 &&
                  sizeof(hr_slot) == 36864 && HR_MAX_THREADS == 512,
              "operator.bpf.h repeats parts of the segment's ABI");

// The last complaints of libbpf, for the one line an error gets.
thread_local std::string libbpf_log;

int Log(enum libbpf_print_level level, const char* format, va_list arguments) {
  static const bool verbose = std::getenv("HEADRACE_BPF_VERBOSE") != nullptr;
  if (verbose) {  // the verifier's reasons are one message of many lines
    va_list copy;
    va_copy(copy, arguments);
    std::vfprintf(stderr, format, copy);
    va_end(copy);
  }
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  if (level == LIBBPF_WARN && libbpf_log.size() < 16384) libbpf_log += line;
  return 0;
}

// "prog 'x': ..." of the log says which program failed.
std::string FailedProgram() {
  const size_t at = libbpf_log.find("prog '");
  if (at == std::string::npos) return "";
  const size_t end = libbpf_log.find('\'', at + 6);
  return end == std::string::npos ? "" : libbpf_log.substr(at + 6, end - at - 6);
}

// The kernel's types; null where the kernel has none. Read once: it takes some 20 ms.
const btf* KernelTypes() {
  static const btf* types = [] {
    btf* loaded = btf__load_vmlinux_btf();
    return libbpf_get_error(loaded) ? nullptr : loaded;
  }();
  return types;
}

bool HasTracepoint(std::string_view name) {
  const std::string type = "btf_trace_" + std::string(name);
  return KernelTypes() && btf__find_by_name_kind(KernelTypes(), type.c_str(), BTF_KIND_TYPEDEF) > 0;
}

bool HasLoopHelper() {
  static const bool has = [] {
    const btf* types = KernelTypes();
    const int id = types ? btf__find_by_name_kind(types, "bpf_func_id", BTF_KIND_ENUM) : 0;
    if (id <= 0) return false;
    const btf_type* helpers = btf__type_by_id(types, static_cast<uint32_t>(id));
    const struct btf_enum* entries = ::btf_enum(helpers);
    return std::any_of(entries, entries + btf_vlen(helpers), [&](const struct btf_enum& entry) {
      return std::string_view(btf__name_by_offset(types, entry.name_off)) == "BPF_FUNC_loop";
    });
  }();
  return has && !PlainPrograms();
}

// What is loaded here of the program of that name.
std::span<const unsigned char> ObjectOf(const std::string& name) {
  return Objects().find(HasLoopHelper() ? name + "_loop" : name)->second;
}

// The hook of "tp_btf/sched_switch" is "sched_switch"; "" for other sections.
std::string_view TracepointOf(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  constexpr std::string_view kPrefix = "tp_btf/";
  return section.starts_with(kPrefix) ? section.substr(kPrefix.size()) : std::string_view();
}

std::optional<Availability> MissingPrivilege(const Host& host) {
  if (!KernelTypes()) {
    return Availability::Unavailable(
        fmt::format("/sys/kernel/btf/vmlinux: {}", std::strerror(errno ? errno : ENOENT)),
        "a kernel built with CONFIG_DEBUG_INFO_BTF");
  }
  for (const auto& [capability, name] :
       {std::pair{CAP_BPF, "CAP_BPF"}, std::pair{CAP_PERFMON, "CAP_PERFMON"}}) {
    const std::optional<bool> has = host.HasCapability(capability);
    if (!has) {
      return Availability::Unavailable(
          fmt::format("/proc/self/status: {}", std::strerror(errno ? errno : ENOENT)),
          "whatever keeps /proc from being read: a mount, or the limit of open files (ulimit -n)");
    }
    if (*has) continue;
    return Availability::Unavailable(
        fmt::format("this process lacks {}", name),
        "run as root, or give CAP_BPF and CAP_PERFMON; in a container: --cap-add BPF --cap-add "
        "PERFMON");
  }
  struct stat info;
  if (stat("/proc/self/ns/pid", &info) == 0 && info.st_ino != kInitialPidNamespace) {
    return Availability::Unavailable(
        "the collector runs in a pid namespace of its own, where it cannot name the kernel's tasks",
        "run it with the host's pid namespace; for a container: --pid=host");
  }
  return std::nullopt;
}

Availability LoadFailure(int error, const std::string& object) {
  const std::string program = FailedProgram();
  const std::string what =
      fmt::format("bpf(BPF_PROG_LOAD) of {}{}: {}", object,
                  program.empty() ? "" : fmt::format(" ({})", program), std::strerror(error));
  if (error == EPERM || error == EACCES) {
    return Availability::Unavailable(what,
                                     "CAP_BPF and CAP_PERFMON; a kernel policy may refuse it too "
                                     "(lockdown=confidentiality, a seccomp filter)");
  }
  if (error == ENOMEM) return Availability::Unavailable(what, "a larger memory limit (memcg)");
  return Availability::Unavailable(what,
                                   "a kernel of 5.8 or later; HEADRACE_BPF_VERBOSE=1 says more");
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::map<uint64_t, std::string> EnumWords(const btf* types, const btf_type* type) {
  const struct btf_enum* entries = ::btf_enum(type);
  std::vector<std::pair<uint64_t, std::string>> names;
  for (int i = 0; i < btf_vlen(type); i++) {
    names.emplace_back(static_cast<uint32_t>(entries[i].val),
                       btf__name_by_offset(types, entries[i].name_off));
  }
  size_t common = names.empty() ? 0 : names[0].second.size();
  for (const auto& [value, name] : names) {
    size_t n = 0;
    while (n < common && n < name.size() && name[n] == names[0].second[n]) ++n;
    common = n;
  }
  if (names.size() == 1) common = 0;
  while (common > 0 && names[0].second[common - 1] != '_') --common;
  std::map<uint64_t, std::string> words;
  for (const auto& [value, name] : names) words[value] = Lower(name.substr(common));
  return words;
}

Members MembersOf(const btf* types, uint32_t type_id) {
  Members members;
  type_id = static_cast<uint32_t>(btf__resolve_type(types, type_id));
  const btf_type* type = btf__type_by_id(types, type_id);
  if (!type) return members;
  if (!btf_is_struct(type)) {
    Member whole;
    whole.size = static_cast<uint32_t>(std::max<int64_t>(0, btf__resolve_size(types, type_id)));
    members.emplace("", whole);
    return members;
  }
  const btf_member* list = btf_members(type);
  for (int i = 0; i < btf_vlen(type); i++) {
    Member member;
    member.offset = btf_member_bit_offset(type, static_cast<uint32_t>(i)) / 8;
    const int resolved = btf__resolve_type(types, list[i].type);
    const btf_type* inner = btf__type_by_id(types, static_cast<uint32_t>(resolved));
    member.size = static_cast<uint32_t>(
        std::max<int64_t>(0, btf__resolve_size(types, static_cast<uint32_t>(resolved))));
    if (inner && btf_is_enum(inner)) {
      member.kind = Member::Kind::kEnum;
      member.words = EnumWords(types, inner);
    } else if (inner && btf_is_array(inner)) {
      member.kind = Member::Kind::kText;
    }
    members.emplace(btf__name_by_offset(types, list[i].name_off), member);
  }
  return members;
}

bool ProcessExists(int64_t pid) { return kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH; }

// Calls `visit` for all entries of a hash, in batches where the kernel can.
void ForEachEntry(int fd, uint32_t max_entries, size_t key_size, size_t value_size,
                  const std::function<void(const void* key, const void* value)>& visit) {
  uint32_t room = std::min<uint32_t>(max_entries, 256);
  // Kept: memory of this size is new from the kernel each time, page by page.
  static thread_local std::vector<uint8_t> key_room, value_room;
  std::vector<uint8_t> keys = std::move(key_room), values = std::move(value_room);
  uint64_t at = 0, next = 0;
  bool first = true, batches = true;
  LIBBPF_OPTS(bpf_map_batch_opts, options);
  for (uint32_t seen = 0; seen < max_entries + room;) {
    if (keys.size() < key_size * room) keys.resize(key_size * room);
    if (values.size() < value_size * room) values.resize(value_size * room);
    uint32_t count = room;
    const int result = bpf_map_lookup_batch(fd, first ? nullptr : &at, &next, keys.data(),
                                            values.data(), &count, &options);
    const int error = result < 0 ? errno : 0;
    if (error == ENOSPC && room < max_entries) {  // one bucket of the table does not fit
      room = std::min(room * 4, max_entries);
      continue;
    }
    if (error != 0 && error != ENOENT) {
      batches = !first || error == EFAULT;
      if (error == ENOSPC) batches = false;
      break;
    }
    for (uint32_t i = 0; i < count; i++) {
      visit(keys.data() + i * key_size, values.data() + i * value_size);
    }
    seen += count;
    at = next;
    first = false;
    if (error == ENOENT) break;
  }
  key_room = std::move(keys);
  value_room = std::move(values);
  if (batches) return;
  std::vector<uint8_t> key(key_size), after(key_size), value(value_size);
  for (bool begin = true; bpf_map_get_next_key(fd, begin ? nullptr : key.data(), after.data()) == 0;
       begin = false) {
    key = after;
    if (bpf_map_lookup_elem(fd, key.data(), value.data()) == 0) visit(key.data(), value.data());
  }
}

}  // namespace

uint64_t Record::Number(std::string_view name) const {
  const Member& member = Find(name);
  uint64_t value = 0;
  std::memcpy(&value, static_cast<const uint8_t*>(data_) + member.offset,
              std::min<size_t>(member.size, sizeof value));
  return value;
}

std::string Record::Word(std::string_view name) const {
  const auto& words = Find(name).words;
  const auto it = words.find(Number(name));
  return it == words.end() ? "unknown" : it->second;
}

std::string Record::Text(std::string_view name) const {
  const Member& member = Find(name);
  const char* text = static_cast<const char*>(data_) + member.offset;
  std::string result(text, strnlen(text, member.size));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  }
  return result;
}

const Member& Record::Find(std::string_view name) const {
  const auto it = members_.find(name);
  HR_CHECK(it != members_.end(), "a BPF map has no such member");
  return it->second;
}

Word TakeApart(uint32_t word) {
  Word result;
  if ((word & 0xffff) != 0) result.operator_index = (word & 0xffff) - 1;
  result.doing = static_cast<int>(word >> 16 & 3);
  if (word >> 20 != 0) result.resource_index = (word >> 20) - 1;
  return result;
}

Measurement OfOperator(const Record& key) {
  Measurement m;
  m.labels.pid = static_cast<int64_t>(key.Number("tgid"));
  m.labels.operator_index = TakeApart(static_cast<uint32_t>(key.Number("word"))).operator_index;
  return m;
}

int64_t SizeLatencyBucket(const Record& key) {
  const auto bucket = [&](const char* member) {
    return static_cast<int64_t>(std::min<uint64_t>(key.Number(member), 62));
  };
  return 64 * bucket("size_bucket") + bucket("latency_bucket");
}

std::string ThreadGroupName(std::string_view comm) {
  size_t end = comm.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(comm[end - 1]))) --end;
  if (end == comm.size()) return std::string(comm);
  if (end > 0 && std::strchr("-_:/#. ", comm[end - 1])) --end;
  return end == 0 ? std::string(comm) : std::string(comm.substr(0, end));
}

// The maps `targets` and `threads`, and the program that follows forks: once per process of ours,
// alive while any Program is loaded.
struct Program::Shared {
  bpf_object* object = nullptr;
  std::vector<bpf_link*> links;
  int targets = -1, target_marks = -1, threads = -1, held_process = -1;
  size_t thread_state_size = 0;
  std::map<int64_t, uint64_t> known;  // pid -> segment address as told to the kernel
  int64_t followed_ns = 0, threads_looked_ns = 0;
  int64_t held = 0;  // the process whose exec is waited for, or was
  std::map<uint32_t, int64_t> gone_processes, gone_threads;  // since when
  const Program* speaker = nullptr;  // who reports this object's losses and cost
  // While open, the kernel measures the run time of all BPF programs (needs CAP_SYS_ADMIN).
  int stats_fd = -1;
  bool stats_refused = false;
  int64_t stats_begin_ns = 0;                 // the first window is a window after it
  int64_t stats_on_ns = 0, stats_sum_ns = 0;  // since when it is open, and how long it was before

  static std::shared_ptr<Shared>& Instance(std::weak_ptr<Shared>** weak) {
    static std::weak_ptr<Shared> instance;
    static std::shared_ptr<Shared> none;
    *weak = &instance;
    return none;
  }

  ~Shared() {
    if (stats_fd >= 0) close(stats_fd);
    for (bpf_link* link : links) bpf_link__destroy(link);
    bpf_object__close(object);
  }

  // Turns the kernel's measuring of BPF programs on or off, as it is due.
  void SwitchStats(const Target& target, int64_t now) {
    static const bool asked = std::getenv("HEADRACE_BPF_STATS") != nullptr;
    if (stats_begin_ns == 0) stats_begin_ns = now;
    const int64_t at = (now - stats_begin_ns) % kCostPeriodNs;
    const bool want = asked || target.deep || (at >= kCostWindowNs && at < 2 * kCostWindowNs);
    if (want && stats_fd < 0 && !stats_refused) {
      stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
      stats_refused = stats_fd < 0;
      stats_on_ns = MonotonicNs();
    } else if (!want && stats_fd >= 0) {
      close(stats_fd);
      stats_fd = -1;
      stats_sum_ns += MonotonicNs() - stats_on_ns;
    }
  }
  // How long the kernel has measured, all windows together.
  int64_t StatsNs(int64_t now) const {
    return stats_sum_ns + (stats_fd >= 0 ? now - stats_on_ns : 0);
  }

  // The `keys` that have had no process for at least kGoneNs.
  static std::vector<uint32_t> LongGone(const std::vector<uint32_t>& keys, int64_t now,
                                        std::map<uint32_t, int64_t>* since) {
    std::map<uint32_t, int64_t> still;
    std::vector<uint32_t> result;
    for (const uint32_t key : keys) {
      if (ProcessExists(key)) continue;
      const auto it = since->find(key);
      const int64_t begin = it == since->end() ? now : it->second;
      still[key] = begin;
      if (now - begin >= kGoneNs) result.push_back(key);
    }
    *since = std::move(still);
    return result;
  }

  // Loads it; an errno on failure.
  int Load() {
    const auto bytes = ObjectOf("follow");
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "hr_follow");
    object = bpf_object__open_mem(bytes.data(), bytes.size(), &options);
    if (!object) return errno;
    if (const auto limit = MapEntriesLimit()) {
      bpf_map* map = bpf_object__find_map_by_name(object, "threads");
      bpf_map__set_max_entries(map, std::min(*limit, bpf_map__max_entries(map)));
    }
    if (const int error = bpf_object__load(object)) return -error;
    bpf_program* program;
    bpf_object__for_each_program(program, object) {
      bpf_link* link = bpf_program__attach(program);
      if (!link) return errno;
      links.push_back(link);
    }
    targets = bpf_object__find_map_fd_by_name(object, "targets");
    target_marks = bpf_object__find_map_fd_by_name(object, "target_marks");
    threads = bpf_object__find_map_fd_by_name(object, "threads");
    held_process = bpf_object__find_map_fd_by_name(object, "held_process");
    thread_state_size = bpf_map__value_size(bpf_object__find_map_by_name(object, "threads"));
    return 0;
  }

  // Tells the kernel which process becomes a target at its exec; false if it cannot be told.
  bool Hold(int64_t pid) {
    if (held == pid) return true;
    const auto tgid = static_cast<uint32_t>(pid);
    const uint32_t zero = 0;
    if (bpf_map_update_elem(held_process, &zero, &tgid, BPF_ANY) != 0) return false;
    held = pid;
    return true;
  }

  void Follow(const Target& target, bool now_please) {
    const int64_t now = MonotonicNs();
    if (!now_please && now - followed_ns < kFollowPeriodNs) return;
    followed_ns = now;
    SwitchStats(target, now);
    std::map<int64_t, uint64_t> addresses;
    for (const int64_t pid : target.pids) {
      if (target.root_held && pid == target.root_pid && Hold(pid)) continue;
      addresses[pid] = 0;
    }
    for (const AccountedProcess& process : target.accounts) {
      addresses[process.pid] = process.segment_address;
    }
    for (const auto& [pid, address] : addresses) {
      const auto it = known.find(pid);
      if (it != known.end() && (it->second == address || address == 0)) continue;
      const auto key = static_cast<uint32_t>(pid);
      const TargetValue value = {address};
      const uint32_t index = key % kTargetMarks;
      const uint8_t mark = 1;
      bpf_map_update_elem(target_marks, &index, &mark, BPF_ANY);
      // Without an address, what the kernel put there while following a fork stays.
      if (bpf_map_update_elem(targets, &key, &value, address ? BPF_ANY : BPF_NOEXIST) == 0 ||
          errno == EEXIST) {
        known[pid] = address;
      }
    }
    // What a kernel program removes by itself, unless its event was missed.
    std::vector<uint32_t> pids, tids;
    ForEachEntry(targets, 16384, sizeof(uint32_t), sizeof(TargetValue),
                 [&](const void* key, const void* value) {
                   uint32_t pid;
                   TargetValue target_value;
                   std::memcpy(&pid, key, sizeof pid);
                   std::memcpy(&target_value, value, sizeof target_value);
                   pids.push_back(pid);
                   // An exec takes the address away; a new segment may come to the same one.
                   const auto it = known.find(pid);
                   if (it != known.end()) it->second = target_value.segment_address;
                 });
    for (const uint32_t pid : LongGone(pids, now, &gone_processes)) {
      bpf_map_delete_elem(targets, &pid);
    }
    std::erase_if(known, [&](const auto& entry) {
      return addresses.count(entry.first) == 0 && !ProcessExists(entry.first);
    });
    if (now - threads_looked_ns < kGoneNs / 2) return;
    threads_looked_ns = now;
    ForEachEntry(threads, 16384, sizeof(uint32_t), thread_state_size,
                 [&](const void* key, const void*) {
                   uint32_t tid;
                   std::memcpy(&tid, key, sizeof tid);
                   tids.push_back(tid);
                 });
    for (const uint32_t tid : LongGone(tids, now, &gone_threads)) {
      bpf_map_delete_elem(threads, &tid);
    }
  }
};

struct Program::Object {
  bpf_object* object = nullptr;
  std::vector<bpf_link*> links;
  std::map<std::string, std::pair<uint32_t, uint32_t>> types;  // of key and value, by map
  ~Object() {
    for (bpf_link* link : links) bpf_link__destroy(link);
    bpf_object__close(object);
  }
};

// An iterator's program runs while its output, which ours do not write, is read.
static void RunOnce(int link_fd) {
  const int fd = bpf_iter_create(link_fd);
  if (fd < 0) return;
  char buffer[64];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EAGAIN)) {
  }
  close(fd);
}

static Availability NoTracepoint(std::string_view hooks) {
  return Availability::Unavailable(fmt::format("this kernel has no tracepoint {}", hooks),
                                   "a newer kernel");
}

// Sets a constant of an object that is not loaded yet.
static void SetConstantOf(bpf_object* object, const std::string& name, uint64_t value) {
  bpf_map *map, *section = nullptr;
  bpf_object__for_each_map(map, object) {
    if (std::string_view(bpf_map__name(map)).ends_with(".rodata")) section = map;
  }
  const btf* types = bpf_object__btf(object);
  const int id = btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC);
  HR_CHECK(section != nullptr && id > 0, "the BPF object has no constants");
  const btf_type* type = btf__type_by_id(types, static_cast<uint32_t>(id));
  for (int i = 0; i < btf_vlen(type); i++) {
    const btf_var_secinfo& variable = btf_var_secinfos(type)[i];
    const btf_type* declared = btf__type_by_id(types, variable.type);
    if (name != btf__name_by_offset(types, declared->name_off)) continue;
    size_t size = 0;
    const auto* before = static_cast<const uint8_t*>(bpf_map__initial_value(section, &size));
    std::vector<uint8_t> memory(before, before + size);
    std::memcpy(memory.data() + variable.offset, &value,
                std::min<size_t>(variable.size, sizeof value));
    bpf_map__set_initial_value(section, memory.data(), size);
    return;
  }
  HR_CHECK(false, "the BPF object has no such constant");
}

struct Program::Layout {
  int fd = -1;
  uint32_t max_entries = 0;
  size_t key_size = 0, value_size = 0;
  Members key, value;
};

Program::Program(std::string object) : name_(std::move(object)) {
  HR_CHECK(Objects().count(name_) == 1, "no BPF object of that name is built in");
}

Program::~Program() { Unload(); }

void Program::Unload() {
  if (shared_ && shared_->speaker == this) shared_->speaker = nullptr;
  layouts_.clear();
  costs_.clear();
  object_.reset();
  shared_.reset();
}

void Program::Prefer(std::vector<std::string> functions, bool optional) {
  groups_.emplace_back(std::move(functions), optional);
}
void Program::SetConstant(const std::string& name, uint64_t value) { constants_[name] = value; }
void Program::Disable(const std::string& function) { disabled_.push_back(function); }

Availability Program::Load(const Host& host, const Target& target) {
  if (auto missing = MissingPrivilege(host)) return *missing;
  libbpf_set_print(Log);
  libbpf_log.clear();
  if (const int error = ShareMaps()) return LoadFailure(error, "follow");
  shared_->Follow(target, true);
  Availability loaded = LoadObject();
  if (!loaded.usable()) Unload();
  return loaded;
}

// Takes the maps that all programs of this process share. Returns an errno, or 0.
int Program::ShareMaps() {
  std::weak_ptr<Shared>* weak;
  Shared::Instance(&weak);
  shared_ = weak->lock();
  if (shared_) return 0;
  auto fresh = std::make_shared<Shared>();
  if (const int error = fresh->Load()) return error;
  shared_ = fresh;
  *weak = shared_;
  return 0;
}

Availability Program::LoadObject() {
  const auto bytes = ObjectOf(name_);
  const std::string label = "hr_" + name_;
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = label.c_str());
  auto opened = std::make_unique<Object>();
  opened->object = bpf_object__open_mem(bytes.data(), bytes.size(), &options);
  if (!opened->object) return LoadFailure(errno, name_);
  if (auto lacking = ChooseFunctions(opened->object)) return *lacking;
  SetUpMaps(opened.get());
  for (const auto& [name, value] : constants_) SetConstantOf(opened->object, name, value);
  if (const int error = bpf_object__load(opened->object)) return LoadFailure(-error, name_);
  if (auto failure = Attach(opened.get())) return *failure;
  object_ = std::move(opened);
  loaded_ns_ = MonotonicNs();
  stats_before_ns_ = shared_->StatsNs(loaded_ns_);
  if (absent_.empty()) return Availability::Ok();
  return Availability::Degraded(
      fmt::format("this kernel has no tracepoint {}", fmt::join(absent_, "; ")), "a newer kernel");
}

// Leaves out the functions that are not wanted and, of each group, all but the first that this
// kernel has a hook for. Empty: the kernel has what is needed.
std::optional<Availability> Program::ChooseFunctions(bpf_object* object) {
  absent_.clear();
  std::set<std::string> off(disabled_.begin(), disabled_.end());
  std::set<std::string> grouped;
  for (const auto& [functions, optional] : groups_) {
    bool found = false;
    std::string hooks;
    for (const std::string& function : functions) {
      const bpf_program* program = bpf_object__find_program_by_name(object, function.c_str());
      HR_CHECK(program != nullptr, "no function of that name in the BPF object");
      grouped.insert(function);
      const std::string_view hook = TracepointOf(program);
      const bool use = !found && (hook.empty() || HasTracepoint(hook));
      if (!use) off.insert(function);
      found = found || use;
      hooks += (hooks.empty() ? "" : ", ") + std::string(hook);
    }
    if (found) continue;
    if (!optional) return NoTracepoint(hooks);
    absent_.push_back(hooks);
  }
  bpf_program* program;
  bpf_object__for_each_program(program, object) {
    const std::string function = bpf_program__name(program);
    const std::string_view hook = TracepointOf(program);
    if (!grouped.count(function) && !off.count(function) && !hook.empty() && !HasTracepoint(hook)) {
      return NoTracepoint(hook);
    }
    if (off.count(function)) bpf_program__set_autoload(program, false);
  }
  return std::nullopt;
}

// The shared maps, and smaller ones when a test asks for losses.
void Program::SetUpMaps(Object* opened) {
  bpf_map* map;
  bpf_object__for_each_map(map, opened->object) {
    const std::string map_name = bpf_map__name(map);
    // Once a map is another object's, its type numbers are of that object's type information.
    opened->types[map_name] = {bpf_map__btf_key_type_id(map), bpf_map__btf_value_type_id(map)};
    if (map_name == "targets") bpf_map__reuse_fd(map, shared_->targets);
    if (map_name == "target_marks") bpf_map__reuse_fd(map, shared_->target_marks);
    if (map_name == "threads") bpf_map__reuse_fd(map, shared_->threads);
    if (const auto it = max_entries_.find(map_name); it != max_entries_.end()) {
      bpf_map__set_max_entries(map, it->second);
    }
    const auto limit = MapEntriesLimit();
    if (limit && bpf_map__type(map) == BPF_MAP_TYPE_HASH && map_name != "targets" &&
        map_name != "threads") {
      bpf_map__set_max_entries(map, std::min(*limit, bpf_map__max_entries(map)));
    }
  }
}

// Attaches what is loaded, and runs what looks once at all there is. Empty: all are attached.
std::optional<Availability> Program::Attach(Object* opened) {
  bpf_program* program;
  bpf_object__for_each_program(program, opened->object) {
    if (!bpf_program__autoload(program) || bpf_program__type(program) == BPF_PROG_TYPE_PERF_EVENT) {
      continue;
    }
    bpf_link* link = bpf_program__attach(program);
    if (!link) {
      return Availability::Unavailable(
          fmt::format("attach {} of {}: {}", bpf_program__name(program), name_,
                      std::strerror(errno)),
          "HEADRACE_BPF_VERBOSE=1 says more");
    }
    opened->links.push_back(link);
    if (bpf_program__expected_attach_type(program) == BPF_TRACE_ITER) RunOnce(bpf_link__fd(link));
  }
  return std::nullopt;
}

std::string Program::Chosen(const std::vector<std::string>& functions) const {
  if (!object_) return "";
  for (const std::string& function : functions) {
    const bpf_program* program =
        bpf_object__find_program_by_name(object_->object, function.c_str());
    if (program && bpf_program__autoload(program)) return function;
  }
  return "";
}

void Program::Follow(const Target& target) {
  if (shared_) shared_->Follow(target, false);
}

const Program::Layout& Program::LayoutOf(const std::string& name) {
  auto& layout = layouts_[name];
  if (layout) return *layout;
  HR_CHECK(object_ != nullptr, "the BPF program is not loaded");
  bpf_map* map = bpf_object__find_map_by_name(object_->object, name.c_str());
  HR_CHECK(map != nullptr, "the BPF object has no such map");
  layout = std::make_unique<Layout>();
  layout->fd = bpf_map__fd(map);
  layout->max_entries = bpf_map__max_entries(map);
  layout->key_size = bpf_map__key_size(map);
  layout->value_size = bpf_map__value_size(map);
  const btf* types = bpf_object__btf(object_->object);
  const auto [key_type, value_type] = object_->types.at(name);
  layout->key = MembersOf(types, key_type);
  layout->value = MembersOf(types, value_type);
  return *layout;
}

void Program::ForEach(const std::string& map,
                      const std::function<void(const Record&, const Record&)>& visit) {
  const Layout& layout = LayoutOf(map);
  ForEachEntry(layout.fd, layout.max_entries, layout.key_size, layout.value_size,
               [&](const void* key, const void* value) {
                 visit(Record(layout.key, key), Record(layout.value, value));
               });
}

void Program::RemoveIf(const std::string& map,
                       const std::function<bool(const Record&, const Record&)>& remove) {
  const Layout& layout = LayoutOf(map);
  std::vector<std::vector<uint8_t>> keys;
  ForEachEntry(layout.fd, layout.max_entries, layout.key_size, layout.value_size,
               [&](const void* key, const void* value) {
                 if (!remove(Record(layout.key, key), Record(layout.value, value))) return;
                 const auto* bytes = static_cast<const uint8_t*>(key);
                 keys.emplace_back(bytes, bytes + layout.key_size);
               });
  for (const auto& key : keys) bpf_map_delete_elem(layout.fd, key.data());
}

namespace {

// Visits the globals of an object's zero or initialised data, by name.
void ForEachGlobal(bpf_object* object,
                   const std::function<void(const char* name, uint64_t value)>& visit) {
  const btf* types = bpf_object__btf(object);
  bpf_map* map;
  bpf_object__for_each_map(map, object) {
    const std::string_view name = bpf_map__name(map);
    const char* section = name.ends_with(".bss")    ? ".bss"
                          : name.ends_with(".data") ? ".data"
                                                    : nullptr;
    if (!section) continue;
    const int id = btf__find_by_name_kind(types, section, BTF_KIND_DATASEC);
    if (id <= 0) continue;
    std::vector<uint8_t> memory(bpf_map__value_size(map));
    const uint32_t zero = 0;
    if (bpf_map_lookup_elem(bpf_map__fd(map), &zero, memory.data()) != 0) continue;
    const btf_type* type = btf__type_by_id(types, static_cast<uint32_t>(id));
    for (int i = 0; i < btf_vlen(type); i++) {
      const btf_var_secinfo& variable = btf_var_secinfos(type)[i];
      const btf_type* declared = btf__type_by_id(types, variable.type);
      if (variable.size > 8 || variable.offset + variable.size > memory.size()) continue;
      uint64_t value = 0;
      std::memcpy(&value, memory.data() + variable.offset, variable.size);
      visit(btf__name_by_offset(types, declared->name_off), value);
    }
  }
}

}  // namespace

uint64_t Program::Global(const std::string& name) const {
  HR_CHECK(object_ != nullptr, "the BPF program is not loaded");
  std::optional<uint64_t> found;
  ForEachGlobal(object_->object, [&](const char* global, uint64_t value) {
    if (name == global) found = value;
  });
  HR_CHECK(found.has_value(), "the BPF object has no such global");
  return *found;
}

void Program::ReportLosses(Sink& sink) {
  if (!object_) return;
  const int64_t now = MonotonicNs();
  const auto passed = static_cast<double>(now - loaded_ns_);
  // Before it the programs had not been loaded: nothing of theirs is in the kernel's sums.
  const auto measured = static_cast<double>(shared_->StatsNs(now) - stats_before_ns_);
  const bool carried_on = measured < 0.95 * passed;
  const double scale = carried_on ? passed / measured : 1;
  const auto report = [&](const std::string& owner, bpf_object* object) {
    constexpr std::string_view kPrefix = "lost_", kSuffix = "_count";
    ForEachGlobal(object, [&](std::string_view name, uint64_t value) {
      if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return;
      std::string what(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
      std::replace(what.begin(), what.end(), '_', ' ');
      sink.Lost(owner + ": " + what, static_cast<int64_t>(value), std::nullopt);
    });
    bpf_program* program;
    bpf_object__for_each_program(program, object) {
      bpf_prog_info info = {};
      uint32_t size = sizeof info;
      const int fd = bpf_program__fd(program);
      if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) != 0) continue;
      const std::string name = bpf_program__name(program);
      // A program that would interrupt itself on the same CPU is not run.
      sink.Lost(fmt::format("{}: runs of {}", owner, name),
                static_cast<int64_t>(info.recursion_misses), std::nullopt);
      if (measured < kLeastMeasuredNs) continue;
      // The rate may fall; a sum does not.
      Cost& cost = costs_[owner + "/" + name];
      cost.run_ns = std::max(cost.run_ns, static_cast<double>(info.run_time_ns) * scale);
      cost.runs = std::max(cost.runs, static_cast<double>(info.run_cnt) * scale);
      Measurement m;
      m.labels.cause = owner + "/" + name;
      if (carried_on) m.source = Source::kEstimate;
      m.metric = "bpf_run_time_ns";
      m.value = cost.run_ns;
      sink.Add(m);
      m.metric = "bpf_runs_count";
      m.value = cost.runs;
      sink.Add(m);
    }
  };
  report(name_, object_->object);
  // What serves all of them is said by one.
  if (!shared_->speaker) shared_->speaker = this;
  if (shared_->speaker == this) report("follow", shared_->object);
}

int Program::map_fd(const std::string& map) const {
  HR_CHECK(object_ != nullptr, "the BPF program is not loaded");
  return bpf_object__find_map_fd_by_name(object_->object, map.c_str());
}

int Program::program_fd(const std::string& function) const {
  HR_CHECK(object_ != nullptr, "the BPF program is not loaded");
  const bpf_program* program = bpf_object__find_program_by_name(object_->object, function.c_str());
  return program ? bpf_program__fd(program) : -1;
}

Availability CheckBpf(const Host& host) {
  Program follow("follow");
  return follow.Load(host, Target());
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
