#include "reader/service/split_board.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/mix_bits.h"

namespace headrace::reader::service {
namespace {

// Removes these rows from ascending ranges; returns how many were there.
uint64_t TakeRows(const RowSpan& rows, std::vector<RowRange>* left) {
  const uint64_t end = rows.first + rows.count;
  auto at = std::partition_point(left->begin(), left->end(),
                                 [&](const RowRange& range) { return range.end() <= rows.first; });
  uint64_t taken = 0;
  while (at != left->end() && at->first < end) {
    const uint64_t low = std::max(at->first, rows.first), high = std::min(at->end(), end);
    const RowRange behind = {high, at->end() - high};
    taken += high - low;
    at->count = low - at->first;
    if (at->count > 0 && behind.count > 0) {
      left->insert(at + 1, behind);
      break;
    }
    if (at->count == 0 && behind.count == 0) {
      at = left->erase(at);
      continue;
    }
    if (at->count == 0) *at = behind;
    ++at;
  }
  return taken;
}

}  // namespace

SplitBoard::SplitBoard(BoardOptions options, DeliveryLedger settled, Term term,
                       std::vector<uint64_t> rows_of_ranks)
    : options_(options),
      settled_(std::move(settled)),
      term_(term),
      pending_(options.ranks, 0),
      dealt_(options.ranks, 0) {
  dealt_rows_ = std::move(rows_of_ranks);
  dealt_rows_.resize(options_.ranks, 0);
  uint64_t rows = 0;
  for (const RowRange& split : settled_.splits()) rows += split.count;
  if (options_.in_file_order) {
    uint64_t units = 0;
    for (const RowRange& split : settled_.splits()) {
      first_unit_.push_back(units);
      units += NumUnits(split.count, options_.unit_rows);
    }
  }
  left_rows_ = rows * options_.epochs - settled_.settled_rows();
  epoch_ = settled_.first_epoch();
  BeginEpoch();
}

// The order is drawn anew for each epoch, and the same in every term.
void SplitBoard::BeginEpoch() {
  next_ = 0;
  order_.resize(settled_.splits().size());
  std::iota(order_.begin(), order_.end(), 0);
  if (options_.in_file_order) return;
  uint64_t draw = MixBits(options_.seed ^ MixBits(epoch_ + 1));
  for (uint64_t left = order_.size(); left > 1; --left) {
    draw = MixBits(draw + left);
    std::swap(order_[left - 1], order_[draw % left]);
  }
}

std::optional<SplitBoard::Key> SplitBoard::NextLost() {
  while (!lost_.empty()) {
    // In file order ranks wait for the first, whoever lost it last.
    const auto next =
        options_.in_file_order ? std::min_element(lost_.begin(), lost_.end()) : lost_.begin();
    const Key key = *next;
    lost_.erase(next);
    const auto open = open_.find(key);
    if (open != open_.end() && open->second.lost) return key;
  }
  return std::nullopt;
}

// The next free one, which stays free.
std::optional<SplitBoard::Key> SplitBoard::PeekFree() {
  while (epoch_ < options_.epochs) {
    for (; next_ < order_.size(); ++next_) {
      const Key key{epoch_, order_[next_]};
      if (!settled_.IsDone(key.first, key.second)) return key;
    }
    ++epoch_;
    BeginEpoch();
  }
  return std::nullopt;
}

std::optional<SplitBoard::Key> SplitBoard::NextFree() {
  const std::optional<Key> key = PeekFree();
  if (!key || !IsWithinWindow(*key)) return std::nullopt;
  ++next_;
  return key;
}

bool SplitBoard::has_unleased() {
  const bool is_any_lost = std::any_of(lost_.begin(), lost_.end(), [&](const Key& key) {
    const auto open = open_.find(key);
    return open != open_.end() && open->second.lost;
  });
  return is_any_lost || PeekFree().has_value();
}

bool SplitBoard::IsWithinWindow(const Key& key) const {
  if (!options_.in_file_order || window_ == 0 || open_.empty()) return true;
  const Key& first = open_.begin()->first;
  const uint64_t splits = order_.size();
  return (key.first - first.first) * splits + key.second - first.second < window_;
}

// The one that is leased for longest, once, to a worker that does not have it.
std::optional<SplitBoard::Key> SplitBoard::NextSlow(uint64_t worker, int64_t now_ns) const {
  const Open* oldest = nullptr;
  Key key;
  for (const auto& [candidate, open] : open_) {
    if (open.workers.size() != 1 || open.workers[0] == worker) continue;
    if (now_ns - open.since_ns < options_.backup_ns) continue;
    const auto progress = progress_ns_.find(open.workers[0]);
    if (progress != progress_ns_.end() && now_ns - progress->second < options_.backup_ns) continue;
    if (oldest != nullptr && oldest->since_ns <= open.since_ns) continue;
    oldest = &open;
    key = candidate;
  }
  if (oldest == nullptr) return std::nullopt;
  return key;
}

// The last unit of a split is short, and not all ranks get as many units of it: the rank to begin
// with is the one that leaves the rows of all ranks most alike.
uint32_t SplitBoard::FirstForEvenRows(const Key& key, const std::vector<RowRange>& left) {
  constexpr uint32_t kMostTried = 64;
  const RowRange& split = settled_.splits()[key.second];
  const uint32_t ranks = options_.ranks;
  std::vector<uint64_t> rows(ranks, 0);  // of the units dealt to the r-th rank from the first
  for (const RowRange& range : left) {
    for (uint64_t row = range.first, end = range.end(); row < end;) {
      const uint64_t unit = UnitOf(split, row, options_.unit_rows);
      const RowRange all = RowsOfUnit(split, unit, options_.unit_rows);
      const uint64_t next = std::min(end, all.first + all.count);
      rows[unit % ranks] += next - row;
      row = next;
    }
  }
  const auto least = std::min_element(dealt_rows_.begin(), dealt_rows_.end());
  const auto begin = static_cast<uint32_t>(least - dealt_rows_.begin());
  uint32_t best = begin;
  uint64_t best_spread = UINT64_MAX;
  for (uint32_t tried = 0; tried < std::min(ranks, kMostTried); ++tried) {
    const uint32_t first = (begin + tried) % ranks;
    uint64_t low = UINT64_MAX, high = 0;
    for (uint32_t r = 0; r < ranks; ++r) {
      const uint64_t has = dealt_rows_[(first + r) % ranks] + rows[r];
      low = std::min(low, has);
      high = std::max(high, has);
    }
    if (high - low >= best_spread) continue;
    best_spread = high - low;
    best = first;
  }
  for (uint32_t r = 0; r < ranks; ++r) dealt_rows_[(best + r) % ranks] += rows[r];
  return best;
}

Deal SplitBoard::MakeDeal(const Key& key, const std::vector<RowRange>& left) {
  Deal deal{0, 1, options_.ranks};
  // Unit n of the table's order to rank n mod ranks: ranks know it as well (unit_order.h).
  if (options_.in_file_order) {
    deal.first = static_cast<uint32_t>(first_unit_[key.second] % options_.ranks);
    return deal;
  }
  if (options_.mode == Mode::kLockstep) {
    deal.first = FirstForEvenRows(key, left);
    return deal;
  }
  // To the rank that has least to come: it takes its rows fastest, or waits for some.
  for (uint32_t rank = 1; rank < options_.ranks; ++rank) {
    if (std::pair(pending_[rank], dealt_[rank]) <
        std::pair(pending_[deal.first], dealt_[deal.first]))
      deal.first = rank;
  }
  ++dealt_[deal.first];
  // The last splits of all are divided, so that no rank ends a split later than the others.
  const bool is_last =
      epoch_ + 1 >= options_.epochs && order_.size() - next_ < uint64_t{2} * options_.ranks;
  if (!is_last) deal.stride = 0;
  return deal;
}

void SplitBoard::CountPending(const Key& key, Open* open) {
  const RowRange& split = settled_.splits()[key.second];
  for (uint32_t rank = 0; rank < open->units_left.size(); ++rank)
    pending_[rank] -= open->units_left[rank];
  open->units_left.assign(options_.ranks, 0);
  uint64_t counted = UINT64_MAX;
  for (const RowRange& range : open->left) {
    const uint64_t last = UnitOf(split, range.end() - 1, options_.unit_rows);
    for (uint64_t unit = UnitOf(split, range.first, options_.unit_rows); unit <= last; ++unit) {
      if (unit == counted) continue;
      counted = unit;
      ++open->units_left[open->deal.RankOf(unit)];
    }
  }
  for (uint32_t rank = 0; rank < options_.ranks; ++rank) pending_[rank] += open->units_left[rank];
}

std::optional<Lease> SplitBoard::Hand(uint64_t worker, int64_t now_ns) {
  std::optional<Lease> lease = HandNew(worker, now_ns);
  return lease ? lease : HandSlow(worker, now_ns);
}

std::optional<Lease> SplitBoard::HandNew(uint64_t worker, int64_t now_ns) {
  std::optional<Key> key = NextLost();
  if (!key) key = NextFree();
  if (!key) return std::nullopt;
  return LeaseOf(*key, worker, now_ns);
}

std::optional<Lease> SplitBoard::HandSlow(uint64_t worker, int64_t now_ns) {
  const std::optional<Key> key = NextSlow(worker, now_ns);
  if (!key) return std::nullopt;
  return LeaseOf(*key, worker, now_ns);
}

Lease SplitBoard::LeaseOf(const Key& key, uint64_t worker, int64_t now_ns) {
  const auto [place, is_new] = open_.try_emplace(key);
  Open& open = place->second;
  if (is_new) {
    for (const RowSpan& span : settled_.Remaining(key.first, key.second))
      open.left.push_back({span.first, span.count});
    open.deal = MakeDeal(key, open.left);
  } else {
    again_ += !open.is_unmade;  // with its deal: within a term a unit belongs to one client
  }
  if (options_.mode == Mode::kIndependent) CountPending(key, &open);
  open.lost = open.is_unmade = false;
  open.since_ns = now_ns;
  if (std::find(open.workers.begin(), open.workers.end(), worker) == open.workers.end())
    open.workers.push_back(worker);
  of_worker_[worker].insert(key);
  Lease lease;
  lease.term = term_;
  lease.epoch = key.first;
  lease.split = key.second;
  lease.deal = open.deal;
  lease.wanted = open.left;
  return lease;
}

// All its rows are admitted.
void SplitBoard::Close(std::map<Key, Open>::iterator open) {
  const auto [epoch, split] = open->first;
  const RowRange& rows = settled_.splits()[split];
  const RowSpan all = {epoch, split, rows.first, rows.count, rows.count};
  settled_.Admit({&all, 1});
  for (uint32_t rank = 0; rank < open->second.units_left.size(); ++rank)
    pending_[rank] -= open->second.units_left[rank];
  for (const uint64_t worker : open->second.workers) of_worker_[worker].erase(open->first);
  open_.erase(open);
}

// Ranks report the units of a split one behind the other, or each in another report.
void SplitBoard::Admitted(std::span<const RowSpan> rows, int64_t now_ns) {
  for (const RowSpan& span : rows) {
    if (span.epoch >= options_.epochs)
      throw Error(ExitCode::kBadData, "rows of an epoch that the job does not have");
    settled_.CheckRows(span);
  }
  for (size_t next = 0; next < rows.size();) {
    const Key key{rows[next].epoch, rows[next].split};
    const auto open = open_.find(key);
    uint64_t taken = 0;
    for (; next < rows.size() && Key{rows[next].epoch, rows[next].split} == key; ++next) {
      if (open != open_.end()) {
        taken += TakeRows(rows[next], &open->second.left);
      } else {
        for (const RowSpan& part : settled_.Admit(rows.subspan(next, 1))) taken += part.count;
      }
    }
    left_rows_ -= taken;
    if (taken == 0 || open == open_.end()) continue;
    for (const uint64_t maker : open->second.workers) progress_ns_[maker] = now_ns;
    if (open->second.left.empty()) {
      Close(open);
    } else if (options_.mode == Mode::kIndependent) {
      CountPending(key, &open->second);
    }
  }
}

void SplitBoard::WorkerLost(uint64_t worker) {
  progress_ns_.erase(worker);  // it has no leases any more
  const auto held = of_worker_.find(worker);
  if (held == of_worker_.end()) return;
  const std::set<Key> keys = std::move(held->second);
  of_worker_.erase(held);
  for (const Key& key : keys) Lose(key, worker, false);
}

uint64_t SplitBoard::GivenBack(uint64_t worker, std::span<const EpochSplit> splits) {
  const auto held = of_worker_.find(worker);
  if (held == of_worker_.end()) return 0;
  uint64_t had = 0;
  for (const EpochSplit& one : splits) {
    const Key key{one.epoch, one.split};
    if (held->second.erase(key) == 0) continue;
    ++had;
    Lose(key, worker, true);
  }
  return had;
}

void SplitBoard::Lose(const Key& key, uint64_t worker, bool is_unmade) {
  Open& open = open_.at(key);
  std::erase(open.workers, worker);
  if (!open.workers.empty() || open.lost) return;  // another has it as well
  open.lost = true;
  open.is_unmade = is_unmade;
  lost_.push_back(key);
}

uint64_t SplitBoard::open_leases(uint64_t worker) const {
  const auto held = of_worker_.find(worker);
  return held == of_worker_.end() ? 0 : held->second.size();
}

}  // namespace headrace::reader::service
