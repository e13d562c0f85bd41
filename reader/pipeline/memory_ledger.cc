#include "reader/pipeline/memory_ledger.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/block_pool.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "probes/account/scope.h"

namespace headrace::reader {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// Share of the pool's limit that splits may be charged with. The rest is for splits that need more
// than those before them.
constexpr double kCharged = 0.85;
constexpr double kMargin = 1.15;  // on what was measured
constexpr uint64_t kMeasuredAlone = 2;

uint64_t ResidentBytes() {
  uint64_t size = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lu %lu", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// By which the process at rest may be larger the next time: the sum that a refusal names must do.
constexpr uint64_t kRestVaries = 4 * kMiB;

// What is not counted: small objects, stacks, the accounts' segment as it is touched.
uint64_t Uncounted(uint64_t budget) { return std::max(32 * kMiB, budget / 8); }

}  // namespace

MemoryCharge::~MemoryCharge() { ledger_->Release(*this); }

void MemoryCharge::Worked(uint64_t peak, int64_t net) {
  const int64_t reached = alive_.load() + static_cast<int64_t>(peak);
  int64_t before = peak_.load();
  while (reached > before && !peak_.compare_exchange_weak(before, reached)) {
  }
  alive_.fetch_add(net);
}

void MemoryCharge::Set(uint64_t bytes) { ledger_->Change(&bytes_, bytes); }

void MemoryCharge::Leave() { ledger_->Leave(this); }

MemoryLedger::MemoryLedger(const MemoryOptions& options) : options_(options) {
  const uint64_t budget = options.budget_bytes;
  // Freed memory goes back, and threads share what small objects take.
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  BlockPool& pool = BlockPool::Get();
  pool.Trim();
  base_ = ResidentBytes();
  base_ -= std::min<uint64_t>(base_, pool.live_bytes());
  base_ += options.set_aside_bytes;
  if (budget < base_ + Uncounted(budget) + 16 * kMiB) {
    const uint64_t least = std::max(base_ + 48 * kMiB, (base_ + 16 * kMiB) * 8 / 7);
    const std::string kept =
        options.set_aside_bytes == 0
            ? ""
            : fmt::format(", {} of it for what is kept in memory ([source.tier], [[cache]])",
                          FormatBytes(options.set_aside_bytes));
    throw Error(
        ExitCode::kUsage,
        fmt::format("memory of {} is less than the process needs at rest{}", FormatBytes(budget),
                    kept),
        {}, fmt::format("set pipeline.memory to {}MiB or more", (least + kRestVaries) / kMiB + 1));
  }
  limit_ = budget - base_ - Uncounted(budget);
  pool.SetLimit(limit_);
}

MemoryLedger::~MemoryLedger() { BlockPool::Get().SetLimit(0); }

uint64_t MemoryLedger::NeedOf(uint64_t rows, SplitWork work) const {
  const uint64_t slices = options_.slice_rows == 0 ? 1 : rows / options_.slice_rows + 1;
  return static_cast<uint64_t>(kMargin * needs_[static_cast<size_t>(work)].bytes_per_row *
                               static_cast<double>(rows)) +
         (slices + 4) * options_.slice_bytes;
}

std::shared_ptr<MemoryCharge> MemoryLedger::Admit(uint64_t rows, StopSignal* stop, uint32_t waiter,
                                                  SplitWork work) {
  std::unique_lock lock(mutex_);
  most_rows_ = std::max(most_rows_, rows);
  const uint64_t room = room_bytes();
  const Need& of_kind = needs_[static_cast<size_t>(work)];
  const auto is_known = [&] { return of_kind.measured >= kMeasuredAlone; };
  const auto fits = [&] { return charged_ + NeedOf(rows, work) <= room; };
  // Everything charged belongs to rows that wait for more rows, so waiting makes no room.
  const auto stuck = [&] { return splits_ == 0 && charged_ == waiting_; };
  const auto decided = [&] {
    if (stopped_ || stop->stopped() || stuck()) return true;
    return alone_ == 0 && is_known() && fits();
  };
  // What the first splits need is not known: waits for them say nothing about the room, nor does
  // what they are charged with.
  const bool counts = is_known();
  const int64_t asked_ns = MonotonicNs();
  if (!decided()) {
    account::WaitScope wait(waiter, HR_WAIT_OUT);
    ++held_back_;
    room_.wait(lock, decided);
    --held_back_;
  }
  if (stopped_ || stop->stopped()) return nullptr;
  const uint64_t need = NeedOf(rows, work);
  if (stuck() && !fits()) {
    // The next splits may need more; and with room for it, rows wait in every holder.
    const auto holder =
        std::max(most_waiting_, static_cast<uint64_t>(of_kind.bytes_per_row) * options_.held_rows);
    const uint64_t least = Budget(2 * need + std::max(2 * waiting_, holder * options_.holders));
    throw Error(
        ExitCode::kResources,
        fmt::format("memory of {} is too small for a split of {} rows{}",
                    FormatBytes(options_.budget_bytes), rows,
                    waiting_ > 0 ? " beside the rows that wait for a whole batch" : ""),
        {}, fmt::format("set pipeline.memory to {}MiB or more", (least + kRestVaries) / kMiB + 1));
  }
  charged_ += need;
  ++splits_;
  auto charge = std::make_shared<MemoryCharge>(this, need, rows, work);
  charge->is_alone_ = !is_known();
  charge->admitted_ns_ = MonotonicNs();
  if (counts) charge->waited_ns_ = charge->admitted_ns_ - asked_ns;
  alone_ += charge->is_alone_;
  return charge;
}

std::shared_ptr<MemoryCharge> MemoryLedger::Hold() { return std::make_shared<MemoryCharge>(this); }

void MemoryLedger::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_all();
}

uint64_t MemoryLedger::held_back() const {
  std::lock_guard lock(mutex_);
  return held_back_;
}

uint64_t MemoryLedger::Budget(uint64_t charged) const {
  const auto pool = static_cast<uint64_t>(static_cast<double>(charged) / kCharged);
  const uint64_t bytes = base_ + pool + 32 * kMiB;
  return std::max(bytes, (base_ + pool) * 8 / 7);
}

uint64_t MemoryLedger::LeastBudget() const {
  std::lock_guard lock(mutex_);
  // Without a split that went through, what one needs is not known: from experience, three times
  // what did not fit is enough.
  const bool is_known = needs_[static_cast<size_t>(SplitWork::kWhole)].measured > 0;
  return Budget(is_known ? std::max(NeedOf(most_rows_, SplitWork::kWhole), limit_ + limit_ / 4)
                         : 3 * limit_);
}

uint64_t MemoryLedger::room_bytes() const {
  return static_cast<uint64_t>(kCharged * static_cast<double>(limit_));
}

void MemoryLedger::Release(const MemoryCharge& charge) {
  if (charge.is_split_ && !charge.is_alone_ && account_ != UINT32_MAX) {
    hr_resource_served(account_, static_cast<uint64_t>(charge.waited_ns_),
                       static_cast<uint64_t>(MonotonicNs() - charge.admitted_ns_), charge.bytes_);
  }
  {
    std::lock_guard lock(mutex_);
    charged_ -= charge.bytes_;
    if (charge.is_split_) --splits_;
    alone_ -= charge.is_alone_;
    if (charge.is_split_ && charge.rows_ > 0 && !charge.does_less_) {
      Need& need = needs_[static_cast<size_t>(charge.work_)];
      ++need.measured;
      const double peak = static_cast<double>(std::max<int64_t>(0, charge.peak_));
      need.bytes_per_row =
          std::max({need.bytes_per_row, 1.0, peak / static_cast<double>(charge.rows_)});
    }
  }
  room_.notify_all();
}

void MemoryLedger::Change(uint64_t* bytes, uint64_t to) {
  {
    std::lock_guard lock(mutex_);
    charged_ = charged_ - *bytes + to;
    waiting_ = waiting_ - *bytes + to;
    *bytes = to;
    most_waiting_ = std::max(most_waiting_, to);
  }
  room_.notify_all();
}

void MemoryLedger::Leave(MemoryCharge* charge) {
  std::lock_guard lock(mutex_);
  waiting_ -= charge->bytes_;
}

}  // namespace headrace::reader
