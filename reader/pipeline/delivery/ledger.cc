#include "reader/pipeline/delivery/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/error.h"
#include "base/mix_bits.h"

namespace headrace::reader {
namespace {

bool Bit(const std::vector<uint64_t>& words, uint64_t index) {
  return words[index >> 6] >> (index & 63) & 1;
}

uint64_t NumBits(const std::vector<uint64_t>& words) {
  uint64_t bits = 0;
  for (const uint64_t word : words) bits += static_cast<uint64_t>(std::popcount(word));
  return bits;
}

void SetBit(std::vector<uint64_t>* words, uint64_t index) {
  (*words)[index >> 6] |= uint64_t{1} << (index & 63);
}

// Cuts ranges of rows, which ascend, into those of splits.
class CutBySplits {
 public:
  explicit CutBySplits(const std::vector<RowRange>& splits) : splits_(splits) {}
  // Calls take(split, rows of it). False when some row is of no split.
  template <typename Take>
  bool operator()(RowRange range, const Take& take) {
    while (range.count > 0) {
      while (at_ < splits_.size() && splits_[at_].end() <= range.first) ++at_;
      if (at_ == splits_.size() || range.first < splits_[at_].first) return false;
      const RowRange part = {range.first, std::min(range.end(), splits_[at_].end()) - range.first};
      take(at_, part);
      range = {part.end(), range.count - part.count};
    }
    return true;
  }

 private:
  const std::vector<RowRange>& splits_;
  uint64_t at_ = 0;
};

// Of two sets, by their first rows.
template <typename Take>
void EachOfBoth(const RowSet& a, const RowSet& b, const Take& take) {
  RowSet::Cursor of_a(a), of_b(b);
  RowRange in_a, in_b;
  bool has_a = of_a.Next(&in_a), has_b = of_b.Next(&in_b);
  while (has_a || has_b) {
    if (has_a && (!has_b || in_a.first <= in_b.first)) {
      take(in_a);
      has_a = of_a.Next(&in_a);
    } else {
      take(in_b);
      has_b = of_b.Next(&in_b);
    }
  }
}

Error InBoth(uint64_t epoch, uint64_t row) {
  return {ExitCode::kBadData, fmt::format("row {} of epoch {} was delivered to both", row, epoch)};
}

// The sum over a range takes the row behind it for the next one of the table, and ranges are cut by
// going through the splits once: both need them without gap or overlap.
void CheckOneBehindTheOther(const std::vector<RowRange>& splits) {
  const auto bad = [](const std::string& what) {
    return Error(ExitCode::kBadData, what, "the list of the table's splits",
                 "check the table with 'headrace inspect --verify', and use the same headrace for "
                 "all processes of a job");
  };
  for (size_t i = 0; i < splits.size(); ++i) {
    const RowRange& split = splits[i];
    if (i > 0 && split.first != splits[i - 1].end())
      throw bad(fmt::format("split {} begins at row {}, and the one before it ends before row {}",
                            i, split.first, splits[i - 1].end()));
    if (split.first > kMostTableRows || split.count > kMostTableRows - split.first)
      throw bad(fmt::format("split {} has {} rows from row {} on, more than a table can have", i,
                            split.count, split.first));
  }
}

}  // namespace

DeliveryLedger::DeliveryLedger(std::vector<RowRange> splits)
    : splits_(std::make_shared<const std::vector<RowRange>>(std::move(splits))) {
  CheckOneBehindTheOther(this->splits());
  for (const RowRange& split : this->splits()) rows_ += split.count;
}

DeliveryLedger::DeliveryLedger(std::vector<RowRange> splits, DeliveryState state)
    : DeliveryLedger(DeliveryLedger(std::move(splits)), std::move(state)) {}

DeliveryLedger::DeliveryLedger(const DeliveryLedger& like, DeliveryState state)
    : splits_(like.splits_), rows_(like.rows_) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ExitCode::kBadData, what);
  };
  if (state.closed) {
    const uint64_t settled = state.closed->rows;
    require(rows_ > 0 ? settled / rows_ <= state.first_epoch : settled == 0,
            "more settled rows of epochs that are over than these have");
    const RowTotal all = AllBefore(state.first_epoch);
    require(settled <= all.rows, "settled rows of epochs that are over, of which none is");
    require(settled > 0 || state.closed->sum == 0, "a sum of no rows");
    if (settled == all.rows) {
      require(state.closed->sum == all.sum, "not the rows of the epochs that are over");
      state.closed.reset();
    }
  }
  for (const auto& [number, epoch] : state.epochs) {
    require(number >= state.first_epoch && number - state.first_epoch < (uint64_t{1} << 32),
            "settled rows of an epoch that was over before");
    require(epoch.done.size() == (splits().size() + 63) / 64, "the splits differ in number");
    if (splits().size() % 64 != 0)
      require(epoch.done.back() >> splits().size() % 64 == 0, "more splits than the table has");
    CutBySplits cut(splits());
    RowSet::Cursor cursor(epoch.partial);
    for (RowRange range; cursor.Next(&range);) {
      const bool is_of_splits =
          cut(range, [&, &epoch = epoch](uint64_t split, const RowRange& part) {
            require(!Bit(epoch.done, split), "settled rows of a split that is done");
            require(part.count < splits()[split].count,
                    "a split settled whole that is not called done");
          });
      require(is_of_splits, "settled rows of no split");
    }
  }
  state_ = std::move(state);
  for (const auto& [number, epoch] : state_.epochs) num_done_[number] = NumBits(epoch.done);
}

DeliveryState::Epoch& DeliveryLedger::EpochOf(uint64_t epoch) {
  const auto [it, is_new] = state_.epochs.try_emplace(epoch);
  if (is_new) {
    it->second.done.assign((splits().size() + 63) / 64, 0);
    for (uint64_t split = 0; split < splits().size(); ++split)
      if (splits()[split].count == 0) SetBit(&it->second.done, split);
    num_done_[epoch] = NumBits(it->second.done);
  }
  return it->second;
}

void DeliveryLedger::Settle(std::span<const RowSpan> spans) {
  for (const RowSpan& span : spans) {
    HR_CHECK(span.split < splits().size() && span.epoch >= state_.first_epoch,
             "rows of a split or an epoch that does not exist, or is over");
    const RowRange& split = splits()[span.split];
    HR_CHECK(span.count > 0 && span.first >= split.first && span.count <= split.count &&
                 span.first - split.first <= split.count - span.count,
             "rows outside their split");
    DeliveryState::Epoch& epoch = EpochOf(span.epoch);
    HR_CHECK(!Bit(epoch.done, span.split), "a row was delivered twice");
    if (span.count < split.count) {
      const RowRange settled = epoch.partial.Insert({span.first, span.count});
      if (settled.first > split.first || settled.end() < split.end()) continue;
      epoch.partial.Erase(split);
    } else {
      epoch.partial.Each(split,
                         [](const RowRange&) { HR_CHECK(false, "a row was delivered twice"); });
    }
    SetBit(&epoch.done, span.split);
    ++num_done_[span.epoch];
    Finish(span.epoch);
  }
}

void DeliveryLedger::CheckRows(const RowSpan& span) const {
  const bool is_row =
      span.split < splits().size() && span.count > 0 && span.first >= splits()[span.split].first &&
      span.count <= splits()[span.split].count &&
      span.first - splits()[span.split].first <= splits()[span.split].count - span.count;
  if (!is_row) throw Error(ExitCode::kBadData, "rows outside their split");
}

std::vector<RowSpan> DeliveryLedger::Unsettled(const RowSpan& span) const {
  CheckRows(span);
  return Left(span.epoch, span.split, {span.first, span.count});
}

std::vector<RowSpan> DeliveryLedger::Admit(std::span<const RowSpan> spans) {
  std::vector<RowSpan> added;
  for (const RowSpan& span : spans) {
    const std::vector<RowSpan> parts = Unsettled(span);
    Settle(parts);
    added.insert(added.end(), parts.begin(), parts.end());
  }
  return added;
}

void DeliveryLedger::EachSettled(uint64_t from_epoch,
                                 const std::function<void(const RowSpan&)>& take) const {
  const auto add = [&](uint64_t epoch, uint64_t split, const RowRange& range) {
    if (range.count > 0) take({epoch, split, range.first, range.count, range.count});
  };
  if (!state_.closed)
    for (uint64_t epoch = from_epoch; epoch < state_.first_epoch; ++epoch)
      for (uint64_t split = 0; split < splits().size(); ++split) add(epoch, split, splits()[split]);
  for (const auto& [epoch, state] : state_.epochs) {
    if (epoch < from_epoch) continue;
    for (uint64_t split = 0; split < splits().size(); ++split)
      if (Bit(state.done, split)) add(epoch, split, splits()[split]);
    CutBySplits cut(splits());
    RowSet::Cursor cursor(state.partial);
    for (RowRange range; cursor.Next(&range);)
      cut(range,
          [&, number = epoch](uint64_t split, const RowRange& part) { add(number, split, part); });
  }
}

std::vector<RowSpan> DeliveryLedger::Settled(uint64_t from_epoch) const {
  std::vector<RowSpan> settled;
  EachSettled(from_epoch, [&](const RowSpan& span) { settled.push_back(span); });
  return settled;
}

std::optional<uint64_t> DeliveryLedger::AnySettled(const DeliveryState::Epoch& epoch) const {
  if (RowRange first; RowSet::Cursor(epoch.partial).Next(&first)) return first.first;
  for (uint64_t split = 0; split < splits().size(); ++split)
    if (splits()[split].count > 0 && Bit(epoch.done, split)) return splits()[split].first;
  return std::nullopt;
}

std::optional<RowSpan> DeliveryLedger::AnySettledBefore(uint64_t until) const {
  for (auto it = state_.epochs.begin(); it != state_.epochs.end() && it->first < until; ++it)
    if (const auto row = AnySettled(it->second)) return RowSpan{it->first, 0, *row, 1, 1};
  return std::nullopt;
}

// Of epochs that are over in one of both, which may be many, only totals are compared.
void DeliveryLedger::Merge(const DeliveryLedger& other) {
  const uint64_t until = std::max(first_epoch(), other.first_epoch());
  const RowTotal ours = TotalBefore(until), theirs = other.TotalBefore(until);
  const RowTotal all = AllBefore(until), both = ours + theirs;
  if (ours.rows > all.rows - theirs.rows) {
    auto row = AnySettledBefore(until);
    if (!row) row = other.AnySettledBefore(until);
    if (row) throw InBoth(row->epoch, row->first);
    const auto first =
        std::ranges::find_if(splits(), [](const RowRange& split) { return split.count > 0; });
    throw InBoth(0, first->first);
  }
  if (both.rows == all.rows && both.sum != all.sum)
    throw Error(ExitCode::kBadData,
                fmt::format("of the epochs before {} some rows were delivered to both, and as many "
                            "to none",
                            until));
  Close(until);
  state_.closed = both;
  if (both.rows == all.rows) state_.closed.reset();
  Finish(until);
  for (const auto& [number, epoch] : other.state_.epochs)
    if (number >= until) MergeEpoch(number, epoch);
}

void DeliveryLedger::Close(uint64_t until) {
  if (until <= state_.first_epoch) return;
  state_.closed = TotalBefore(until);
  if (state_.closed->rows == until * rows_) state_.closed.reset();
  const auto end = state_.epochs.lower_bound(until);
  state_.epochs.erase(state_.epochs.begin(), end);
  num_done_.erase(num_done_.begin(), num_done_.lower_bound(until));
  state_.first_epoch = until;
  Finish(until);
}

// Throws for a row of a split that the epoch has done.
void DeliveryLedger::CheckApart(uint64_t number, const DeliveryState::Epoch& done,
                                const RowSet& rows) const {
  CutBySplits cut(splits());
  RowSet::Cursor cursor(rows);
  for (RowRange range; cursor.Next(&range);)
    cut(range, [&](uint64_t split, const RowRange& part) {
      if (Bit(done.done, split)) throw InBoth(number, part.first);
    });
}

// Goes once through the ranges of both: there may be millions.
void DeliveryLedger::MergeEpoch(uint64_t number, const DeliveryState::Epoch& theirs) {
  if (number < state_.first_epoch) {
    if (const auto row = AnySettled(theirs)) throw InBoth(number, *row);
    return;
  }
  if (!AnySettled(theirs)) return;
  DeliveryState::Epoch& ours = EpochOf(number);
  for (uint64_t split = 0; split < splits().size(); ++split)
    if (splits()[split].count > 0 && Bit(ours.done, split) && Bit(theirs.done, split))
      throw InBoth(number, splits()[split].first);
  CheckApart(number, theirs, ours.partial);
  CheckApart(number, ours, theirs.partial);
  for (size_t word = 0; word < ours.done.size(); ++word) ours.done[word] |= theirs.done[word];
  RowSet both;
  CutBySplits cut(splits());
  RowRange joined;  // to be added once nothing touches it
  const auto add = [&](const RowRange& range) {
    cut(range, [&](uint64_t split, const RowRange& part) {
      if (part.count == splits()[split].count) {
        SetBit(&ours.done, split);
      } else {
        both.Append(part);
      }
    });
  };
  EachOfBoth(ours.partial, theirs.partial, [&](const RowRange& range) {
    if (joined.count > 0 && range.first < joined.end()) throw InBoth(number, range.first);
    if (joined.count > 0 && range.first == joined.end()) {
      joined.count += range.count;
      return;
    }
    if (joined.count > 0) add(joined);
    joined = range;
  });
  if (joined.count > 0) add(joined);
  ours.partial = std::move(both);
  num_done_[number] = NumBits(ours.done);
  Finish(number);
}

// Epochs that are whole, from the first on, need no memory. Behind epochs of which only a number of
// rows is known they stay until they are closed as well: EachSettled still has to tell them.
void DeliveryLedger::Finish(uint64_t epoch) {
  if (epoch != state_.first_epoch || state_.closed) return;
  for (auto it = state_.epochs.begin();
       it != state_.epochs.end() && it->first == state_.first_epoch &&
       num_done_.at(it->first) == splits().size();
       it = state_.epochs.erase(it)) {
    num_done_.erase(it->first);
    ++state_.first_epoch;
  }
}

bool DeliveryLedger::IsDone(uint64_t epoch, uint64_t split) const {
  if (epoch < state_.first_epoch || splits()[split].count == 0) return true;
  const auto it = state_.epochs.find(epoch);
  return it != state_.epochs.end() && Bit(it->second.done, split);
}

bool DeliveryLedger::IsWhole(uint64_t epoch, uint64_t split) const {
  if (IsDone(epoch, split)) return false;
  const auto it = state_.epochs.find(epoch);
  bool is_whole = true;
  if (it != state_.epochs.end())
    it->second.partial.Each(splits()[split], [&](const RowRange&) { is_whole = false; });
  return is_whole;
}

std::vector<RowSpan> DeliveryLedger::Remaining(uint64_t epoch, uint64_t split) const {
  return Left(epoch, split, splits()[split]);
}

std::vector<RowSpan> DeliveryLedger::Left(uint64_t epoch, uint64_t split,
                                          const RowRange& within) const {
  std::vector<RowSpan> remaining;
  if (IsDone(epoch, split)) return remaining;
  uint64_t next = within.first;
  const auto add_until = [&](uint64_t end) {
    if (next < end) remaining.push_back({epoch, split, next, end - next, end - next});
  };
  if (const auto it = state_.epochs.find(epoch); it != state_.epochs.end())
    it->second.partial.Each(within, [&](const RowRange& range) {
      add_until(range.first);
      next = range.end();
    });
  add_until(within.end());
  return remaining;
}

uint64_t DeliveryLedger::RowsBefore(uint64_t epoch) const {
  const uint64_t over = std::min(epoch, state_.first_epoch);
  uint64_t rows = state_.closed ? state_.closed->rows : over * rows_;
  for (const auto& [number, state] : state_.epochs) {
    if (number >= epoch) break;
    for (uint64_t split = 0; split < splits().size(); ++split)
      if (Bit(state.done, split)) rows += splits()[split].count;
    rows += state.partial.num_rows();
  }
  return rows;
}

// A row's hash is the difference of two values of this, so that a range of rows costs as much as a
// row does.
uint64_t DeliveryLedger::SumBefore(uint64_t epoch, uint64_t row) const {
  const bool is_end = row == splits().back().end();  // the first row of the next epoch
  return MixBits(MixBits(epoch + (is_end ? 1 : 0)) ^ (is_end ? splits().front().first : row));
}

uint64_t DeliveryLedger::SumOf(uint64_t epoch, const RowRange& rows) const {
  return SumBefore(epoch, rows.end()) - SumBefore(epoch, rows.first);
}

RowTotal DeliveryLedger::AllBefore(uint64_t epoch) const {
  if (rows_ == 0) return {};
  const uint64_t first = splits().front().first;
  return {epoch * rows_, SumBefore(epoch, first) - SumBefore(0, first)};
}

RowTotal DeliveryLedger::TotalBefore(uint64_t epoch) const {
  RowTotal total = {RowsBefore(epoch), state_.closed
                                           ? state_.closed->sum
                                           : AllBefore(std::min(epoch, state_.first_epoch)).sum};
  for (const auto& [number, state] : state_.epochs) {
    if (number >= epoch) break;
    for (uint64_t split = 0; split < splits().size(); ++split)
      if (splits()[split].count > 0 && Bit(state.done, split))
        total.sum += SumOf(number, splits()[split]);
    RowSet::Cursor cursor(state.partial);
    for (RowRange range; cursor.Next(&range);) total.sum += SumOf(number, range);
  }
  return total;
}

uint64_t DeliveryLedger::missing_rows() const {
  return state_.closed ? state_.first_epoch * rows_ - state_.closed->rows : 0;
}

}  // namespace headrace::reader
