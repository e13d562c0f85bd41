#include "probes/account/account_segment.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace headrace::account {
namespace {

// Counters of an untrusted segment are limited, so that no sum of them overflows.
constexpr uint64_t kMaxCounter = uint64_t{1} << 53;
int64_t Limited(uint64_t counter) { return static_cast<int64_t>(std::min(counter, kMaxCounter)); }
int64_t Sum(int64_t a, int64_t b) { return std::min<int64_t>(a + b, int64_t{1} << 53); }

template <size_t N>
std::string Name(const char (&text)[N]) {
  return Printable(std::string(text, strnlen(text, N)), N);
}

uint32_t StageIndex(uint32_t stage, uint32_t num_stages) {
  return stage < num_stages ? stage : num_stages;  // the last entry is the "" stage
}

// One instant on both clocks: of several tries the one least disturbed by the scheduler.
std::pair<uint64_t, int64_t> ClockPair(uint32_t clock_kind) {
  uint64_t best_ticks = 0;
  int64_t best_ns = 0, best_width = INT64_MAX;
  for (int i = 0; i < 8; i++) {
    const int64_t before = MonotonicNs();
    const uint64_t ticks = hr_ticks_of_kind_(clock_kind);
    const int64_t after = MonotonicNs();
    if (after - before < best_width) {
      best_width = after - before;
      best_ticks = ticks;
      best_ns = before + (after - before) / 2;
    }
  }
  return {best_ticks, best_ns};
}

}  // namespace

std::string AccountSegment::Folder() {
  const char* folder = std::getenv("HEADRACE_ACCOUNT_DIR");
  return folder && *folder ? folder : "/dev/shm";
}

std::string AccountSegment::PathOf(int64_t pid) {
  return fmt::format("{}/headrace.{}", Folder(), pid);
}

std::vector<SegmentFile> AccountSegment::List(const std::string& folder) {
  std::vector<SegmentFile> files;
  DIR* dir = opendir(folder.c_str());
  if (!dir) return files;
  while (const dirent* entry = readdir(dir)) {
    long long pid;
    unsigned pid_namespace;
    char rest;
    const bool named =
        std::sscanf(entry->d_name, "headrace.%lld%c", &pid, &rest) == 1 ||
        std::sscanf(entry->d_name, "headrace.%lld.%u%c", &pid, &pid_namespace, &rest) == 2;
    if (named && pid > 0) files.push_back({folder + "/" + entry->d_name, pid});
  }
  closedir(dir);
  std::sort(files.begin(), files.end(), [](const SegmentFile& a, const SegmentFile& b) {
    return std::tie(a.pid, a.path) < std::tie(b.pid, b.path);
  });
  return files;
}

std::optional<AccountSegment> AccountSegment::AttachAt(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return std::nullopt;
  try {
    return OpenFile(path);
  } catch (const Error&) {
    // A segment that is being made is not whole yet; one that was removed meanwhile is none.
    hr_header header{};
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return std::nullopt;
    if (fd < 0) throw;
    const ssize_t n = pread(fd, &header, sizeof header, 0);
    close(fd);
    if (n == 0 || (n == sizeof header && header.state == 0)) return std::nullopt;
    throw;
  }
}

AccountSegment AccountSegment::OpenFile(const std::string& path) {
  AccountSegment segment;
  segment.path_ = path;
  segment.fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (segment.fd_ < 0) throw ErrnoError(errno, "open the instrumentation segment", path);
  struct stat info;
  if (fstat(segment.fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    throw Error(ExitCode::kBadData, "not an instrumentation segment: not a regular file", path);
  }
  hr_header header;
  segment.ReadAt(0, &header, sizeof header);
  if (header.magic != HR_ACCOUNT_MAGIC) {
    throw Error(ExitCode::kBadData, "not an instrumentation segment", path);
  }
  if (header.abi_version != HR_ACCOUNT_ABI || header.segment_size != sizeof(hr_segment)) {
    throw Error(ExitCode::kBadData,
                fmt::format("instrumentation of version {}, this program reads version {}",
                            header.abi_version, HR_ACCOUNT_ABI),
                path, "compile the pipeline and headrace with the same account.h");
  }
  if (info.st_size < static_cast<off_t>(sizeof(hr_segment)) || header.state == 0) {
    throw Error(ExitCode::kBadData, "the instrumentation segment is not whole", path);
  }
  segment.program_ = Name(header.program);
  segment.pid_ = header.pid;
  segment.opened_ns_ = Limited(header.base_monotonic_ns);
  segment.level_ = header.level >= 2 ? 2 : 1;
  segment.has_bounds_ = segment.level_ >= 2 && header.abi_minor >= 1;
  segment.clock_kind_ = header.clock_kind == HR_CLOCK_TSC ? HR_CLOCK_TSC : HR_CLOCK_MONOTONIC;
  std::tie(segment.pair_ticks_, segment.pair_ns_) = ClockPair(segment.clock_kind_);
  if (segment.clock_kind_ == HR_CLOCK_TSC) {
    const auto [ticks, ns] = std::pair(segment.pair_ticks_, segment.pair_ns_);
    SleepUntilNs(ns + 5'000'000);
    std::tie(segment.pair_ticks_, segment.pair_ns_) = ClockPair(segment.clock_kind_);
    if (segment.pair_ticks_ > ticks) {
      segment.ns_per_tick_ = static_cast<double>(segment.pair_ns_ - ns) /
                             static_cast<double>(segment.pair_ticks_ - ticks);
    }
  }
  return segment;
}

AccountSegment::AccountSegment(AccountSegment&& other) noexcept
    : path_(std::move(other.path_)),
      program_(std::move(other.program_)),
      fd_(std::exchange(other.fd_, -1)),
      pid_(other.pid_),
      opened_ns_(other.opened_ns_),
      level_(other.level_),
      has_bounds_(other.has_bounds_),
      clock_kind_(other.clock_kind_),
      ns_per_tick_(other.ns_per_tick_),
      pair_ticks_(other.pair_ticks_),
      pair_ns_(other.pair_ns_),
      next_step_(other.next_step_),
      steps_overwritten_(other.steps_overwritten_) {}

AccountSegment::~AccountSegment() {
  if (fd_ >= 0) close(fd_);
}

void AccountSegment::ReadAt(uint64_t offset, void* out, size_t size) const {
  auto* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t n = pread(fd_, to, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw ErrnoError(errno, "read the instrumentation segment", path_);
    if (n == 0) throw Error(ExitCode::kBadData, "the instrumentation segment is cut", path_);
    to += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
}

int64_t AccountSegment::Ns(uint64_t ticks) const {
  const double ns = static_cast<double>(ticks) * ns_per_tick_;
  return ns < static_cast<double>(kMaxCounter) ? static_cast<int64_t>(ns)
                                               : static_cast<int64_t>(kMaxCounter);
}

SegmentSnapshot AccountSegment::Read(bool alive, const ThreadTimeReader& thread_time) {
  SegmentSnapshot snapshot;
  for (int attempt = 0;; attempt++) {
    hr_header header;
    ReadAt(0, &header, sizeof header);
    header.num_stages = std::min<uint32_t>(header.num_stages, HR_MAX_STAGES);
    header.num_operators = std::min<uint32_t>(header.num_operators, HR_MAX_OPERATORS);
    header.num_queues = std::min<uint32_t>(header.num_queues, HR_MAX_QUEUES);
    header.num_resources = std::min<uint32_t>(header.num_resources, HR_MAX_RESOURCES);
    header.num_slots = std::min<uint32_t>(header.num_slots, HR_MAX_THREADS);
    SegmentSnapshot fresh;
    fresh.closed = header.state == HR_STATE_CLOSED;
    const bool live = alive && !fresh.closed;
    ReadTables(header, live ? hr_ticks_of_kind_(clock_kind_) : 0, &fresh);
    const bool runnable_known = ReadSlots(header, live, thread_time, &fresh);
    if (!runnable_known) {
      for (auto& stage : fresh.stages) stage.runnable_ns.reset();
    }
    fresh.monotonic_ns = MonotonicNs();
    // A thread that moved its figures into its stage meanwhile may be seen twice or not at all.
    hr_header after;
    ReadAt(0, &after, sizeof after);
    const bool quiet =
        header.folds_begun == header.folds_done && after.folds_begun == header.folds_begun;
    if (!quiet && attempt < 8) {
      sched_yield();
      continue;
    }
    snapshot = std::move(fresh);
    snapshot.losses = {
        {"stages", Limited(after.stages_lost)},   {"operators", Limited(after.operators_lost)},
        {"queues", Limited(after.queues_lost)},   {"resources", Limited(after.resources_lost)},
        {"threads", Limited(after.threads_lost)}, {"nested operators", Limited(after.frames_lost)}};
    ReadSteps(after, &snapshot);
    return snapshot;
  }
}

void AccountSegment::ReadTables(const hr_header& header, uint64_t now, SegmentSnapshot* out) const {
  ReadStages(header, now, out);
  ReadOperators(header, out);
  ReadQueues(header, now, out);
  ReadResources(header, out);
}

void AccountSegment::ReadStages(const hr_header& header, uint64_t now, SegmentSnapshot* out) const {
  std::vector<hr_stage_entry> stages(HR_MAX_STAGES + 1);
  ReadAt(offsetof(hr_segment, stages), stages.data(), stages.size() * sizeof(hr_stage_entry));
  for (uint32_t i = 0; i <= header.num_stages; i++) {
    const hr_stage_entry& e = stages[i < header.num_stages ? i : uint32_t{HR_MAX_STAGES}];
    SegmentSnapshot::Stage stage;
    stage.name = i < header.num_stages ? Name(e.name) : "";
    stage.parallelism = e.parallelism;
    stage.max_parallelism = e.max_parallelism;
    const uint64_t present = now > e.since_ticks && i < header.num_stages ? now - e.since_ticks : 0;
    stage.parallelism_ns =
        Sum(Ns(e.parallelism_ticks),
            Limited(static_cast<uint64_t>(std::min(static_cast<double>(Ns(present)) * e.parallelism,
                                                   static_cast<double>(kMaxCounter)))));
    const uint64_t until = present > 0 ? now : e.since_ticks;
    stage.observed_ns = until > e.begin_ticks ? Ns(until - e.begin_ticks) : 0;
    stage.threads = Limited(e.threads_count);
    stage.lifetime_ns = Ns(e.lifetime_ticks);
    stage.unattributed_ns = Ns(e.unattributed_ticks);
    stage.on_cpu_ns = Limited(e.on_cpu_ns);
    stage.runnable_ns = Limited(e.runnable_ns);
    out->stages.push_back(std::move(stage));
  }
}

void AccountSegment::ReadOperators(const hr_header& header, SegmentSnapshot* out) const {
  std::vector<hr_operator_entry> operators(header.num_operators);
  ReadAt(offsetof(hr_segment, operators), operators.data(),
         operators.size() * sizeof(hr_operator_entry));
  for (const hr_operator_entry& e : operators) {
    SegmentSnapshot::Operator op;
    op.name = Name(e.name);
    op.kind = Name(e.kind);
    op.stage = StageIndex(e.stage, header.num_stages);
    if (level_ >= 2) op.on_cpu_ns = 0;
    if (has_bounds_) op.on_cpu_low_ns = op.on_cpu_high_ns = 0;
    out->operators.push_back(std::move(op));
  }
}

void AccountSegment::ReadQueues(const hr_header& header, uint64_t now, SegmentSnapshot* out) const {
  for (uint32_t i = 0; i < header.num_queues; i++) {
    hr_queue_entry e;
    for (int attempt = 0; attempt < 8; attempt++) {
      uint32_t sequence;
      const uint64_t at = offsetof(hr_segment, queues) + i * sizeof e;
      ReadAt(at, &e, sizeof e);
      ReadAt(at + offsetof(hr_queue_entry, sequence), &sequence, sizeof sequence);
      if (e.sequence == sequence && sequence % 2 == 0) break;
    }
    if (now > e.since_ticks) hr_queue_advance_(&e, now);  // on our copy
    SegmentSnapshot::Queue queue;
    queue.name = Name(e.name);
    if (e.producer_stage < header.num_stages) queue.producer_stage = e.producer_stage;
    if (e.consumer_stage < header.num_stages) queue.consumer_stage = e.consumer_stage;
    queue.capacity = e.capacity;
    queue.occupancy = e.occupancy;
    queue.observed_ns = Ns(e.observed_ticks);
    queue.occupancy_ns = Ns(e.occupancy_ticks);
    queue.capacity_ns = Ns(e.capacity_ticks);
    queue.full_ns = Ns(e.full_ticks);
    queue.empty_ns = Ns(e.empty_ticks);
    queue.puts = Limited(e.puts_count);
    queue.gets = Limited(e.gets_count);
    out->queues.push_back(std::move(queue));
  }
}

void AccountSegment::ReadResources(const hr_header& header, SegmentSnapshot* out) const {
  std::vector<hr_resource_entry> resources(header.num_resources);
  ReadAt(offsetof(hr_segment, resources), resources.data(),
         resources.size() * sizeof(hr_resource_entry));
  for (const hr_resource_entry& e : resources) {
    out->resources.push_back({Name(e.name), e.kind, e.servers, Limited(e.acquisitions_count),
                              Ns(e.wait_ticks), Ns(e.hold_ticks), Limited(e.moved_bytes)});
  }
}

bool AccountSegment::ReadSlots(const hr_header& header, bool alive,
                               const ThreadTimeReader& thread_time, SegmentSnapshot* out) const {
  const uint32_t num_blocks = header.num_operators + 1;
  const size_t size = offsetof(hr_slot, blocks) + num_blocks * sizeof(hr_block);
  std::vector<uint64_t> memory(size / 8);
  auto* slot = reinterpret_cast<hr_slot*>(memory.data());  // only the first `size` bytes are there
  int live_threads = 0, known_threads = 0;
  for (uint32_t i = 0; i < header.num_slots; i++) {
    ReadSlot(i, size, slot);
    const bool in_use = slot->used == 1;
    const uint64_t now = alive ? hr_ticks_of_kind_(clock_kind_) : 0;
    const uint32_t word = slot->current & 0xffff, mode = (slot->current >> 16) & 3;
    const uint64_t in_flight =
        in_use && now > slot->since_ticks ? now - slot->since_ticks : uint64_t{0};
    hr_block* blocks = slot->blocks;
    if (word < num_blocks) blocks[word].ticks[mode] += in_flight;

    std::optional<ThreadTime> time;
    if (in_use && alive && thread_time) time = thread_time(slot->tid);
    AddOperators(*slot, num_blocks, out);
    if (level_ >= 2) {
      AddCpu(*slot, num_blocks, now, time ? std::optional<int64_t>(time->on_cpu_ns) : std::nullopt,
             out);
    }
    if (!in_use) continue;
    live_threads++;
    if (time && slot->schedstat) known_threads++;
    const uint32_t stage = StageIndex(slot->stage, header.num_stages);
    AddStageTime(*slot, now, time, &out->stages[stage]);
    AddResources(*slot, now, in_flight, out);
    SegmentSnapshot::Thread thread;
    thread.tid = slot->tid;
    thread.stage = stage;
    if (word >= 1 && word < num_blocks) thread.current_operator = word - 1;
    thread.doing = static_cast<int>(mode);
    thread.in_flight_ns = Ns(in_flight);
    out->threads.push_back(thread);
  }
  return live_threads == 0 || known_threads > 0 || !alive;
}

void AccountSegment::ReadSlot(uint32_t index, size_t size, hr_slot* slot) const {
  const uint64_t at = offsetof(hr_segment, slots) + uint64_t{index} * sizeof(hr_slot);
  // A thread at work changes its slot every few hundred nanoseconds at most; after some tries the
  // last reading is good to one such interval.
  for (int attempt = 0; attempt < 8; attempt++) {
    uint32_t sequence;
    ReadAt(at, slot, size);
    ReadAt(at, &sequence, sizeof sequence);
    if (slot->sequence == sequence && sequence % 2 == 0) break;
  }
}

// Adds what a thread did in each operator.
void AccountSegment::AddOperators(const hr_slot& slot, uint32_t num_blocks,
                                  SegmentSnapshot* out) const {
  for (uint32_t b = 1; b < num_blocks; b++) {
    const hr_block& block = slot.blocks[b];
    SegmentSnapshot::Operator& op = out->operators[b - 1];
    const int64_t lock_wait = Ns(block.ticks[HR_WAITING_RESOURCE]);
    op.busy_ns = Sum(op.busy_ns, Sum(Ns(block.ticks[HR_BUSY]), lock_wait));
    op.lock_wait_ns = Sum(op.lock_wait_ns, lock_wait);
    op.wait_in_ns = Sum(op.wait_in_ns, Ns(block.ticks[HR_WAITING_IN]));
    op.wait_out_ns = Sum(op.wait_out_ns, Ns(block.ticks[HR_WAITING_OUT]));
    op.enters = Sum(op.enters, Limited(block.enters_count));
    op.completions = Sum(op.completions, Limited(block.completions_count));
    op.rows = Sum(op.rows, Limited(block.rows_count));
    op.in_bytes = Sum(op.in_bytes, Limited(block.in_bytes));
    op.out_bytes = Sum(op.out_bytes, Limited(block.out_bytes));
  }
}

// Adds the life of a thread that is still there to its stage: its time, on a CPU and without one,
// and the time outside every operator. `time`: the kernel's count, if it could be read.
void AccountSegment::AddStageTime(const hr_slot& slot, uint64_t now,
                                  const std::optional<ThreadTime>& time,
                                  SegmentSnapshot::Stage* stage) const {
  stage->threads++;
  stage->live_threads++;
  const uint64_t until = std::max(now, slot.since_ticks);
  stage->lifetime_ns =
      Sum(stage->lifetime_ns, until > slot.begin_ticks ? Ns(until - slot.begin_ticks) : 0);
  for (const uint64_t ticks : slot.blocks[0].ticks) {
    stage->unattributed_ns = Sum(stage->unattributed_ns, Ns(ticks));
  }
  const int64_t begin_cpu = Limited(slot.begin_cpu_ns);
  const int64_t cpu = time ? time->on_cpu_ns : Limited(slot.cpu_ns);
  if (cpu > begin_cpu) stage->on_cpu_ns = Sum(*stage->on_cpu_ns, cpu - begin_cpu);
  if (!time || !slot.schedstat) return;
  const int64_t begin = Limited(slot.begin_runnable_ns);
  if (time->runnable_ns > begin) {
    stage->runnable_ns = Sum(*stage->runnable_ns, time->runnable_ns - begin);
  }
}

// Adds what a thread holds now and has been waiting for.
void AccountSegment::AddResources(const hr_slot& slot, uint64_t now, uint64_t in_flight,
                                  SegmentSnapshot* out) const {
  const uint32_t num_held = std::min<uint32_t>(slot.num_held, HR_MAX_HELD);
  for (uint32_t h = 0; h < num_held; h++) {
    const hr_held& held = slot.held[h];
    if (held.resource >= out->resources.size() || now <= held.since_ticks) continue;
    SegmentSnapshot::Resource& resource = out->resources[held.resource];
    resource.hold_ns = Sum(resource.hold_ns, Ns(now - held.since_ticks));
  }
  const uint32_t mode = (slot.current >> 16) & 3, waited = slot.current >> 20;
  if (mode == HR_WAITING_RESOURCE && waited >= 1 && waited <= out->resources.size()) {
    SegmentSnapshot::Resource& resource = out->resources[waited - 1];
    resource.wait_ns = Sum(resource.wait_ns, Ns(in_flight));
  }
}

// Adds the CPU time of a thread's operators: what the thread has booked, and of the time since its
// last reading as it will book itself, if its CPU time is known now. What it is not yet known to
// have used it may have used or not.
void AccountSegment::AddCpu(const hr_slot& slot, uint32_t num_blocks, uint64_t now,
                            std::optional<int64_t> thread_cpu_ns, SegmentSnapshot* out) const {
  double inside_all = 0;
  for (uint32_t b = 0; b < num_blocks; b++) {
    inside_all += static_cast<double>(Ns(hr_inside_ticks_(&slot.blocks[b])));
  }
  const uint64_t window =
      now > slot.cpu_ticks ? static_cast<uint64_t>(Ns(now - slot.cpu_ticks)) : uint64_t{0};
  const int64_t read = Limited(slot.cpu_ns);
  const uint64_t used = thread_cpu_ns && *thread_cpu_ns > read
                            ? static_cast<uint64_t>(*thread_cpu_ns - read)
                            : uint64_t{0};
  const double share = inside_all > 0 ? std::min(1.0, static_cast<double>(used) / inside_all) : 0;
  for (uint32_t b = 1; b < num_blocks; b++) {
    const hr_block& block = slot.blocks[b];
    SegmentSnapshot::Operator& op = out->operators[b - 1];
    const auto inside = static_cast<uint64_t>(Ns(hr_inside_ticks_(&block)));
    op.on_cpu_ns =
        Sum(*op.on_cpu_ns,
            Sum(Limited(block.cpu_ns), static_cast<int64_t>(static_cast<double>(inside) * share)));
    if (!has_bounds_) continue;
    uint64_t low = 0, high = inside;
    if (thread_cpu_ns) hr_cpu_bounds_(used, window, inside, &low, &high);
    op.on_cpu_low_ns = Sum(*op.on_cpu_low_ns, Sum(Limited(block.cpu_low_ns), Limited(low)));
    op.on_cpu_high_ns = Sum(*op.on_cpu_high_ns, Sum(Limited(block.cpu_high_ns), Limited(high)));
  }
}

void AccountSegment::ReadSteps(const hr_header& header, SegmentSnapshot* out) {
  out->steps_count = Limited(header.steps_count);
  out->step_rows = Limited(header.step_rows_count);
  out->step_wait_ns = Limited(header.step_wait_ns);
  out->step_compute_ns = Limited(header.step_compute_ns);
  const uint64_t end = static_cast<uint64_t>(out->steps_count);
  if (end < next_step_) next_step_ = end;
  const uint64_t oldest = end > HR_STEP_RECORDS ? end - HR_STEP_RECORDS : 0;
  if (next_step_ < oldest) {
    steps_overwritten_ += static_cast<int64_t>(oldest - next_step_);
    next_step_ = oldest;
  }
  // Read in pieces that do not go round the ring, each twice: a record whose number has changed
  // meanwhile was being written over.
  constexpr uint64_t kPiece = 256;
  hr_step_record records[kPiece], again[kPiece];
  uint64_t piece_begin = 0, piece_end = 0;
  for (; next_step_ < end; next_step_++) {
    if (next_step_ >= piece_end) {
      const uint64_t slot = next_step_ % HR_STEP_RECORDS;
      const uint64_t size = std::min({end - next_step_, kPiece, HR_STEP_RECORDS - slot});
      const uint64_t at = offsetof(hr_segment, steps) + slot * sizeof(hr_step_record);
      ReadAt(at, records, size * sizeof(hr_step_record));
      ReadAt(at, again, size * sizeof(hr_step_record));
      piece_begin = next_step_;
      piece_end = next_step_ + size;
    }
    const hr_step_record& r = records[next_step_ - piece_begin];
    if (r.sequence != next_step_ + 1 || again[next_step_ - piece_begin].sequence != r.sequence) {
      // Being written: the next snapshot has it. Written over: lost.
      if (r.sequence <= next_step_ && end - next_step_ < HR_STEP_RECORDS / 2) break;
      steps_overwritten_++;
      continue;
    }
    SegmentSnapshot::Step step;
    step.number = next_step_;
    const double behind = static_cast<double>(static_cast<int64_t>(pair_ticks_ - r.end_ticks));
    step.end_monotonic_ns =
        pair_ns_ - static_cast<int64_t>(std::clamp(behind * ns_per_tick_, -9e15, 9e15));
    step.wait_ns = Limited(r.wait_ns);
    step.compute_ns = Limited(r.compute_ns);
    step.rows = Limited(r.rows_count);
    out->steps.push_back(step);
  }
  out->steps_overwritten = steps_overwritten_;
}

}  // namespace headrace::account
