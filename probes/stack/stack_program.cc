#include "probes/stack/stack_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/bpf/limits.h"
#include "probes/stack/perf_ring.h"

namespace headrace::probes::stack {
namespace {

constexpr size_t kMaxCopied = 8192;  // unwound copies kept; the program refers to 2048 again

#if defined(__aarch64__)
constexpr int kNumSaved = 32, kStackRegister = 31, kFrameRegister = 29;
#else
constexpr int kNumSaved = 16, kStackRegister = 7, kFrameRegister = 6;
#endif

Registers RegistersOf(const __u64* values, uint64_t pc) {
  Registers registers;
  registers.pc = pc;
  for (int i = 0; i < kNumSaved; ++i) registers.Set(i, values[i]);
  return registers;
}

RawStack FromFramePointers(const hr_stack& stack) {
  RawStack raw;
  raw.kernel.assign(stack.kernel,
                    stack.kernel + std::min<uint32_t>(stack.kernel_count, HR_STACK_KERNEL_FRAMES));
  raw.user.assign(stack.user,
                  stack.user + std::min<uint32_t>(stack.user_count, HR_STACK_USER_FRAMES));
  return raw;
}

}  // namespace

StackProgramOptions StackProgramOptions::ForThisMachine() {
  StackProgramOptions options;
  const auto scale = static_cast<uint32_t>(std::clamp(sysconf(_SC_NPROCESSORS_CONF) / 16, 1l, 8l));
  const auto entries = bpf::MapEntriesLimit();
  options.max_stacks = entries.value_or(options.max_stacks * scale);
  options.max_counts = entries.value_or(options.max_counts * scale);
  options.ring_bytes *= scale > 4 ? 4 : scale > 1 ? 2 : 1;
  options.ring_bytes = bpf::RingBytesLimit().value_or(options.ring_bytes);
  return options;
}

size_t StackProgram::KeyHash::operator()(const hr_stack_key& key) const {
  uint64_t words[sizeof key / 8], hash = 0;
  static_assert(sizeof key % 8 == 0);
  std::memcpy(words, &key, sizeof key);
  for (const uint64_t word : words)
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 31;
  return hash;
}
bool StackProgram::KeyEqual::operator()(const hr_stack_key& a, const hr_stack_key& b) const {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

StackProgram::StackProgram(const std::string& name, StackProgramOptions options)
    : program_(name), options_(std::move(options)) {
  for (const char* map : {"stacks_0", "stacks_1"}) program_.SetMaxEntries(map, options_.max_stacks);
  for (const char* map : {"counts_0", "counts_1"}) program_.SetMaxEntries(map, options_.max_counts);
  program_.SetMaxEntries("copies", options_.ring_bytes);
  program_.SetConstant("with_kernel", options_.with_kernel ? 1 : 0);
  for (const auto& [constant, value] : options_.constants) program_.SetConstant(constant, value);
}

StackProgram::~StackProgram() {
  for (const int fd : events_) close(fd);
  if (ring_) ring_buffer__free(ring_);
}

Availability StackProgram::Load(const Host& host, const Target& target) {
  if (!host.is_this_machine()) {
    return Availability::Unavailable("no running machine to sample", "a live host");
  }
  loaded_ns_ = MonotonicNs();
  const Availability loaded = program_.Load(host, target);
  if (!loaded.usable()) return loaded;
  for (int i = 0; i < 2; ++i) {
    generations_[i].stacks_fd = program_.map_fd(i == 0 ? "stacks_0" : "stacks_1");
    generations_[i].counts_fd = program_.map_fd(i == 0 ? "counts_0" : "counts_1");
  }
  roots_fd_ = program_.map_fd("roots");
  ring_ = ring_buffer__new(program_.map_fd("copies"), TakeCopyFor, this, nullptr);
  if (!ring_) {
    return Availability::Unavailable(fmt::format("BPF ring buffer: {}", std::strerror(errno)),
                                     "a kernel of version 5.8 or later");
  }
  return loaded;
}

Availability StackProgram::AttachClock(const std::string& function, int frequency) {
  constexpr char kFix[] = "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=0 or less";
  SampleRequest request;
  request.frequency = frequency;
  request.bare = true;
  int last = ENODEV;
  for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); ++cpu) {
    const int fd = OpenCpuClock(request, -1, cpu);
    if (fd < 0) {
      last = -fd;
      if (fd == -ENODEV || fd == -ENXIO || fd == -EINVAL) continue;  // the CPU is off
      return Availability::Unavailable(
          fmt::format("perf_event_open(cpu-clock, CPU {}): {}", cpu, std::strerror(-fd)), kFix);
    }
    events_.push_back(fd);
    if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_.program_fd(function)) != 0) {
      return Availability::Unavailable(
          fmt::format("PERF_EVENT_IOC_SET_BPF: {}", std::strerror(errno)), kFix);
    }
  }
  if (!events_.empty()) return Availability::Ok();
  return Availability::Unavailable(
      fmt::format("perf_event_open(cpu-clock): {}", std::strerror(last)), kFix);
}

int StackProgram::TakeCopyFor(void* self, void* data, size_t size) {
  return static_cast<StackProgram*>(self)->TakeCopy(data, size);
}

int StackProgram::TakeCopy(const void* data, size_t size) {
  const auto* copy = static_cast<const hr_stack_copy*>(data);
  if (size < sizeof(hr_stack_copy)) return 0;
  ++copies_taken_;
  copied_order_.push_back(copy->id);
  if (copied_order_.size() > kMaxCopied) {
    copied_.erase(copied_order_.front());
    copied_order_.pop_front();
  }
  RawStack chain = FromFramePointers(copy->stack);
  const Registers registers = RegistersOf(copy->registers, copy->pc);
  const uint64_t sp = copy->registers[kStackRegister];
  const std::span<const uint8_t> bytes(copy->bytes,
                                       std::min<size_t>(copy->size, HR_STACK_COPY_BYTES));
  RawStack raw = folder_->Unwind(copy->tgid, registers, {sp, bytes}, std::move(chain.user));
  raw.kernel = std::move(chain.kernel);
  copied_[copy->id] = std::move(raw);
  return 0;
}

void StackProgram::SetTarget(const Target& target, StackFolder& folder) {
  folder.Look(target.pids, MonotonicNs());
  program_.Follow(target);
  for (const int64_t pid : target.pids) {
    const int64_t looked_ns = folder.symboliser().LookedNs(pid);
    const auto known = unwound_.find(pid);
    if (looked_ns == 0 || (known != unwound_.end() && known->second.looked_ns == looked_ns))
      continue;
    const Symboliser::CodeRanges ranges = folder.symboliser().Ranges(pid);
    hr_stack_root root = {};
    uint32_t n = 0;
    for (const auto* list : {&ranges.roots, &ranges.program}) {
      for (const auto& range : *list) {
        if (n + (list == &ranges.roots ? 1 : 0) >= HR_STACK_RANGES) break;
        root.range[n].begin = range.begin;
        root.range[n++].end = range.end;
      }
      if (list == &ranges.roots) root.num_roots = n;
    }
    const auto key = static_cast<uint32_t>(pid);
    root.one_in = one_in_;
    if (bpf_map_update_elem(roots_fd_, &key, &root, BPF_ANY) == 0)
      unwound_[pid] = {looked_ns, root};
  }
  for (auto it = unwound_.begin(); it != unwound_.end();) {
    const auto key = static_cast<uint32_t>(it->first);
    const bool live =
        std::find(target.pids.begin(), target.pids.end(), it->first) != target.pids.end();
    if (!live) bpf_map_delete_elem(roots_fd_, &key);
    it = live ? std::next(it) : unwound_.erase(it);
  }
}

void StackProgram::PaceCopies() {
  const uint64_t lost = program_.Global("lost_copies_count");
  const size_t room = options_.ring_bytes / sizeof(hr_stack_copy);
  const uint32_t before = one_in_;
  if (lost > lost_copies_)
    one_in_ = std::min(one_in_ * 2, 1024u);
  else if (copies_taken_ * 8 < room * 3)
    one_in_ = std::max(one_in_ / 2, 1u);
  lost_copies_ = lost;
  copies_taken_ = 0;
  if (one_in_ == before) return;
  for (auto& [pid, told] : unwound_) {
    const auto key = static_cast<uint32_t>(pid);
    told.root.one_in = one_in_;
    bpf_map_update_elem(roots_fd_, &key, &told.root, BPF_EXIST);
  }
}

const RawStack& StackProgram::Resolve(Generation& generation, uint64_t id, int64_t pid,
                                      StackFolder& folder) {
  static const RawStack kNone;
  if (id == 0) return kNone;
  if (const auto known = generation.known.find(id); known != generation.known.end()) {
    return known->second;
  }
  // A period may have begun while the other generation was filled.
  Generation& other = generations_[&generation == &generations_[0] ? 1 : 0];
  if (const auto known = other.known.find(id); known != other.known.end()) {
    return generation.known.emplace(*known).first->second;
  }
  if ((id & HR_STACK_COPIED) != 0) {
    auto copied = copied_.find(id);
    if (copied == copied_.end()) {  // made while the counts were read
      ring_buffer__consume(ring_);
      copied = copied_.find(id);
    }
    return copied == copied_.end() ? kNone : copied->second;
  }
  hr_stack stack;
  if (bpf_map_lookup_elem(generation.stacks_fd, &id, &stack) != 0) {
    // Stored just before the generations changed?
    if (bpf_map_lookup_elem(other.stacks_fd, &id, &stack) != 0) return kNone;
  }
  RawStack raw = FromFramePointers(stack);
  if (stack.top_count == HR_STACK_TOP_WORDS && !raw.user.empty()) {
    Registers registers;
    registers.pc = raw.user[0];
    registers.Set(kStackRegister, stack.stack_pointer);
    registers.Set(kFrameRegister, stack.frame_pointer);
    const std::span<const uint8_t> top(reinterpret_cast<const uint8_t*>(stack.top),
                                       sizeof stack.top);
    std::vector<uint64_t> kernel = std::move(raw.kernel);
    raw = folder.Unwind(pid, registers, {stack.stack_pointer, top}, std::move(raw.user), true);
    raw.kernel = std::move(kernel);
  }
  return generation.known.emplace(id, std::move(raw)).first->second;
}

SampleOrigin StackProgram::OriginOf(const hr_stack_key& key,
                                    const std::vector<std::string>& causes) {
  SampleOrigin origin;
  origin.pid = key.tgid;
  const uint32_t index = key.word & 0xffff;
  if (index != 0) origin.operator_index = index - 1;
  origin.thread.assign(key.group, strnlen(key.group, sizeof key.group));
  for (char& c : origin.thread) c = c == ';' || static_cast<unsigned char>(c) < 32 ? '?' : c;
  if (key.cause < causes.size()) origin.cause = causes[key.cause];
  // How a thread waits at a queue, by a lock or otherwise, is the queue's business.
  const uint32_t doing = index == 0 ? uint32_t{HR_BUSY} : key.word >> 16 & 3;
  if (!origin.cause.empty() && doing == HR_WAITING_IN) origin.cause = "[waits for input]";
  if (!origin.cause.empty() && doing == HR_WAITING_OUT) origin.cause = "[waits for room]";
  return origin;
}

void StackProgram::ReadOpen(StackFolder& folder, const std::vector<std::string>& causes,
                            int64_t min_ns) {
  program_.ForEach("threads", [&](const bpf::Record&, const bpf::Record& thread) {
    if (thread.Number("blocked") == 0) return;
    const auto since_ns = static_cast<int64_t>(thread.Number("blocked_ns"));
    const int64_t ns = MonotonicNs() - since_ns;
    if (ns < min_ns || since_ns < loaded_ns_) return;
    hr_stack_key key = {};
    const bool taken = thread.Number("stack_weight") != 0;
    if (!taken && thread.Number("off_since_ns") == 0) return;  // it is told by nobody
    key.tgid = static_cast<uint32_t>(thread.Number("tgid"));
    key.word = static_cast<uint32_t>(thread.Number(taken ? "stack_word" : "word"));
    key.cause = static_cast<uint32_t>(thread.Number(taken ? "stack_cause" : "cause"));
    if (taken) key.stack = thread.Number("stack");
    const std::string group = bpf::ThreadGroupName(thread.Text("comm"));
    std::memcpy(key.group, group.data(), std::min(group.size(), sizeof key.group));
    folder.AddOpen(OriginOf(key, causes),
                   Resolve(generations_[filled_], key.stack, key.tgid, folder), 1, ns);
  });
}

void StackProgram::ReadCounts(Generation& generation, StackFolder& folder,
                              const std::vector<std::string>& causes) {
  std::vector<hr_stack_key>& keys = keys_;
  std::vector<hr_stack_count>& values = values_;
  keys.resize(std::min<uint32_t>(options_.max_counts, 1024));  // room for one batch
  values.resize(keys.size());
  uint32_t position = 0;
  bool first = true;
  while (true) {
    auto count = static_cast<uint32_t>(keys.size());
    const int error = bpf_map_lookup_batch(generation.counts_fd, first ? nullptr : &position,
                                           &position, keys.data(), values.data(), &count, nullptr);
    if (error == -ENOSPC) {  // a bucket of the table does not fit
      keys.resize(keys.size() * 2);
      values.resize(keys.size());
      continue;
    }
    if (error != 0 && error != -ENOENT) return;  // ENOENT: that was the rest
    first = false;
    for (uint32_t i = 0; i < count; ++i) {
      hr_stack_count& credited = generation.credited[keys[i]];
      const auto samples = static_cast<int64_t>(values[i].samples_count - credited.samples_count);
      if (samples <= 0) continue;
      const SampleOrigin origin = OriginOf(keys[i], causes);
      const RawStack& stack = Resolve(generation, keys[i].stack, origin.pid, folder);
      if (keys[i].stack != 0 && stack.user.empty() && stack.kernel.empty()) missing_ += samples;
      folder.Add(origin, stack, samples,
                 static_cast<int64_t>(values[i].time_ns - credited.time_ns));
      credited = values[i];
    }
    if (error == -ENOENT || count == 0) return;
  }
}

void StackProgram::Clear(Generation& generation) {
  // Nobody fills it: no count can be lost between reading and deleting.
  for (const auto& [key, credited] : generation.credited) {
    bpf_map_delete_elem(generation.counts_fd, &key);
  }
  generation.credited.clear();
  generation.known.clear();
  uint64_t id = 0;
  std::vector<uint64_t> ids;
  for (int error = bpf_map_get_next_key(generation.stacks_fd, nullptr, &id); error == 0;
       error = bpf_map_get_next_key(generation.stacks_fd, &id, &id)) {
    ids.push_back(id);
  }
  for (const uint64_t stack : ids) bpf_map_delete_elem(generation.stacks_fd, &stack);
}

void StackProgram::Read(StackFolder& folder, const std::vector<std::string>& causes) {
  folder_ = &folder;
  ring_buffer__consume(ring_);
  Generation& filled = generations_[filled_];
  Generation& old = generations_[filled_ ^ 1];
  PaceCopies();
  ReadCounts(filled, folder, causes);
  if (old_is_pending_) {
    // Programs that began before the change have long ended: one period is their grace.
    ReadCounts(old, folder, causes);
    Clear(old);
    old_is_pending_ = false;
  }
  if (filled.credited.size() > options_.max_counts / 2 ||
      filled.known.size() > options_.max_stacks / 2) {
    const uint32_t zero = 0, next = filled_ ^ 1;
    if (bpf_map_update_elem(program_.map_fd("generation"), &zero, &next, BPF_ANY) != 0) return;
    filled_ = next;
    old_is_pending_ = true;
  }
}

void StackProgram::EmitLosses(Sink& sink) {
  program_.ReportLosses(sink);
  sink.Lost("stacks of counted samples", missing_,
            static_cast<int64_t>(program_.Global("samples_count")));
}

}  // namespace headrace::probes::stack
