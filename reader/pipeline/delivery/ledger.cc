#include "reader/pipeline/delivery/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/error.h"

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

// Adds a range to ascending ranges that neither touch nor overlap.
void Insert(std::vector<RowRange>* ranges, uint64_t first, uint64_t count) {
  auto next =
      std::lower_bound(ranges->begin(), ranges->end(), first,
                       [](const RowRange& range, uint64_t row) { return range.first < row; });
  const bool before = next != ranges->begin();
  const uint64_t before_end = before ? std::prev(next)->first + std::prev(next)->count : 0;
  HR_CHECK(
      (!before || before_end <= first) && (next == ranges->end() || first + count <= next->first),
      "a row was delivered twice");
  const bool joins_before = before && before_end == first;
  const bool joins_next = next != ranges->end() && first + count == next->first;
  if (joins_before && joins_next) {
    std::prev(next)->count += count + next->count;
    ranges->erase(next);
  } else if (joins_before) {
    std::prev(next)->count += count;
  } else if (joins_next) {
    next->first = first;
    next->count += count;
  } else {
    ranges->insert(next, {first, count});
  }
}

Error InBoth(uint64_t epoch, uint64_t row) {
  return {ExitCode::kBadData, fmt::format("row {} of epoch {} was delivered to both", row, epoch)};
}

}  // namespace

DeliveryLedger::DeliveryLedger(std::vector<RowRange> splits)
    : splits_(std::make_shared<const std::vector<RowRange>>(std::move(splits))) {
  for (const RowRange& split : this->splits()) rows_ += split.count;
}

DeliveryLedger::DeliveryLedger(std::vector<RowRange> splits, DeliveryState state)
    : DeliveryLedger(DeliveryLedger(std::move(splits)), std::move(state)) {}

DeliveryLedger::DeliveryLedger(const DeliveryLedger& like, DeliveryState state)
    : splits_(like.splits_), rows_(like.rows_) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ExitCode::kBadData, what);
  };
  for (const auto& [number, epoch] : state.epochs) {
    require(number >= state.first_epoch && number - state.first_epoch < (uint64_t{1} << 32),
            "settled rows of an epoch that was over before");
    require(epoch.done.size() == (splits().size() + 63) / 64, "the splits differ in number");
    if (splits().size() % 64 != 0)
      require(epoch.done.back() >> splits().size() % 64 == 0, "more splits than the table has");
    for (const auto& [split, ranges] : epoch.partial) {
      require(split < splits().size() && !Bit(epoch.done, split) && !ranges.empty(),
              "settled rows of a split that cannot have them");
      uint64_t low = splits()[split].first;
      const uint64_t end = low + splits()[split].count;
      uint64_t settled = 0;
      for (const RowRange& range : ranges) {
        require(range.count > 0 && range.first >= low && range.first < end &&
                    range.count <= end - range.first,
                "settled rows outside their split, or out of order");
        low = range.first + range.count + 1;
        settled += range.count;
      }
      require(settled < splits()[split].count, "a split settled whole that is not called done");
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
      if (splits()[split].count == 0) it->second.done[split >> 6] |= uint64_t{1} << (split & 63);
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
    std::vector<RowRange>& ranges = epoch.partial[span.split];
    Insert(&ranges, span.first, span.count);
    if (ranges.size() > 1 || ranges[0].count < split.count) continue;
    epoch.partial.erase(span.split);
    epoch.done[span.split >> 6] |= uint64_t{1} << (span.split & 63);
    ++num_done_[span.epoch];
    Finish(span.epoch);
  }
}

std::vector<RowSpan> DeliveryLedger::Unsettled(const RowSpan& span) const {
  const bool is_row =
      span.split < splits().size() && span.count > 0 && span.first >= splits()[span.split].first &&
      span.count <= splits()[span.split].count &&
      span.first - splits()[span.split].first <= splits()[span.split].count - span.count;
  if (!is_row) throw Error(ExitCode::kBadData, "rows outside their split");
  std::vector<RowSpan> parts;
  const uint64_t end = span.first + span.count;
  for (const RowSpan& left : Remaining(span.epoch, span.split)) {
    const uint64_t low = std::max(span.first, left.first);
    const uint64_t high = std::min(end, left.first + left.count);
    if (low < high) parts.push_back({span.epoch, span.split, low, high - low, high - low});
  }
  return parts;
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
  for (uint64_t epoch = from_epoch; epoch < state_.first_epoch; ++epoch)
    for (uint64_t split = 0; split < splits().size(); ++split) add(epoch, split, splits()[split]);
  for (const auto& [epoch, state] : state_.epochs) {
    if (epoch < from_epoch) continue;
    for (uint64_t split = 0; split < splits().size(); ++split)
      if (Bit(state.done, split)) add(epoch, split, splits()[split]);
    for (const auto& [split, ranges] : state.partial)
      for (const RowRange& range : ranges) add(epoch, split, range);
  }
}

std::vector<RowSpan> DeliveryLedger::Settled(uint64_t from_epoch) const {
  std::vector<RowSpan> settled;
  EachSettled(from_epoch, [&](const RowSpan& span) { settled.push_back(span); });
  return settled;
}

std::optional<uint64_t> DeliveryLedger::AnySettled(const DeliveryState::Epoch& epoch) const {
  if (!epoch.partial.empty()) return epoch.partial.begin()->second.front().first;
  for (uint64_t split = 0; split < splits().size(); ++split)
    if (splits()[split].count > 0 && Bit(epoch.done, split)) return splits()[split].first;
  return std::nullopt;
}

// Another ledger has all epochs before `until`: there may be many, so none is gone through.
void DeliveryLedger::TakeWholeEpochs(uint64_t until) {
  if (state_.first_epoch > 0 && until > 0 && rows_ > 0) {
    const auto first =
        std::ranges::find_if(splits(), [](const RowRange& split) { return split.count > 0; });
    throw InBoth(0, first->first);
  }
  for (auto it = state_.epochs.begin(); it != state_.epochs.end() && it->first < until;) {
    if (const auto row = AnySettled(it->second)) throw InBoth(it->first, *row);
    num_done_.erase(it->first);
    it = state_.epochs.erase(it);
  }
  state_.first_epoch = std::max(state_.first_epoch, until);
  Finish(state_.first_epoch);
}

void DeliveryLedger::Merge(const DeliveryLedger& other) {
  TakeWholeEpochs(other.first_epoch());
  other.EachSettled(other.first_epoch(), [this](const RowSpan& span) {
    const std::vector<RowSpan> parts = Unsettled(span);
    if (parts.size() != 1 || parts[0].count != span.count) throw InBoth(span.epoch, span.first);
    Settle(parts);
  });
}

// Epochs that are whole, from the first on, need no memory.
void DeliveryLedger::Finish(uint64_t epoch) {
  if (epoch != state_.first_epoch) return;
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
  return it == state_.epochs.end() || !it->second.partial.contains(split);
}

std::vector<RowSpan> DeliveryLedger::Remaining(uint64_t epoch, uint64_t split) const {
  std::vector<RowSpan> remaining;
  if (IsDone(epoch, split)) return remaining;
  uint64_t next = splits()[split].first;
  const auto add_until = [&](uint64_t end) {
    if (next < end) remaining.push_back({epoch, split, next, end - next, end - next});
  };
  if (!IsWhole(epoch, split)) {
    for (const RowRange& range : state_.epochs.at(epoch).partial.at(split)) {
      add_until(range.first);
      next = range.first + range.count;
    }
  }
  add_until(splits()[split].first + splits()[split].count);
  return remaining;
}

uint64_t DeliveryLedger::settled_rows() const {
  uint64_t rows = state_.first_epoch * rows_;
  for (const auto& [number, epoch] : state_.epochs) {
    for (uint64_t split = 0; split < splits().size(); ++split)
      if (Bit(epoch.done, split)) rows += splits()[split].count;
    for (const auto& [split, ranges] : epoch.partial)
      for (const RowRange& range : ranges) rows += range.count;
  }
  return rows;
}

}  // namespace headrace::reader
