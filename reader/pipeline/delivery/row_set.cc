#include "reader/pipeline/delivery/row_set.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace headrace::reader {
namespace {

constexpr unsigned kDigitBits = 7;
constexpr uint8_t kMore = 0x80;

void PutNumber(std::string* bytes, uint64_t value) {
  for (; value >= kMore; value >>= kDigitBits)
    bytes->push_back(static_cast<char>(static_cast<uint8_t>(value) | kMore));
  bytes->push_back(static_cast<char>(value));
}

// Of bytes that PutNumber made.
uint64_t GetNumber(const std::string& bytes, size_t* at) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += kDigitBits) {
    const auto byte = static_cast<uint8_t>(bytes[(*at)++]);
    value |= uint64_t{byte & (kMore - 1u)} << shift;
    if (byte < kMore) return value;
  }
}

// Of any bytes; nothing when they are no number below 2^63, or have zeros that it does not need.
std::optional<uint64_t> TakeNumber(std::string_view* bytes) {
  constexpr size_t kMostDigits = 9;
  uint64_t value = 0;
  for (size_t digit = 0; digit < std::min(kMostDigits, bytes->size()); ++digit) {
    const auto byte = static_cast<uint8_t>((*bytes)[digit]);
    value |= uint64_t{byte & (kMore - 1u)} << (kDigitBits * digit);
    if (byte >= kMore) continue;
    if (byte == 0 && digit > 0) return std::nullopt;
    bytes->remove_prefix(digit + 1);
    return value;
  }
  return std::nullopt;
}

}  // namespace

struct RowSet::Unpacked {
  std::array<RowRange, kMostRanges + 2> ranges;  // room for those of a change
  size_t count = 0;

  void PackInto(Block* block, size_t begin, size_t end) const;

  void Put(size_t at, const RowRange& range) {
    std::copy_backward(ranges.begin() + at, ranges.begin() + count, ranges.begin() + count + 1);
    ranges[at] = range;
    ++count;
  }
  void Remove(size_t at) {
    std::copy(ranges.begin() + at + 1, ranges.begin() + count, ranges.begin() + at);
    --count;
  }
};

bool RowSet::Cursor::Next(RowRange* range) {
  if (block_ == end_) return false;
  const auto& [first, block] = *block_;
  if (index_ + 1 == block.ranges) {
    *range = block.last;
    ++block_;
    index_ = at_ = 0;
    return true;
  }
  row_ = index_ == 0 ? first : row_ + GetNumber(block.bytes, &at_);
  *range = {row_, GetNumber(block.bytes, &at_)};
  row_ = range->end();
  ++index_;
  return true;
}

RowSet::RowSet(std::initializer_list<RowRange> ranges) {
  for (const RowRange& range : ranges) Insert(range);
}

RowSet::Unpacked RowSet::Unpack(const Blocks::const_iterator& block) {
  Unpacked out;
  uint64_t row = block->first;
  size_t at = 0;
  for (; out.count + 1 < block->second.ranges; ++out.count) {
    if (out.count > 0) row += GetNumber(block->second.bytes, &at);
    out.ranges[out.count] = {row, GetNumber(block->second.bytes, &at)};
    row = out.ranges[out.count].end();
  }
  out.ranges[out.count++] = block->second.last;
  return out;
}

void RowSet::Unpacked::PackInto(Block* block, size_t begin, size_t end) const {
  block->bytes.clear();
  for (size_t i = begin; i + 1 < end; ++i) {
    PutNumber(&block->bytes, ranges[i].count);
    PutNumber(&block->bytes, ranges[i + 1].first - ranges[i].end());
  }
  block->last = ranges[end - 1];
  block->ranges = end - begin;
}

// Makes these the ranges of the block: two blocks where they are too many, none where none is left.
void RowSet::Pack(Blocks::iterator block, const Unpacked& ranges) {
  if (ranges.count == 0) {
    blocks_.erase(block);
    return;
  }
  const size_t half = ranges.count > kMostRanges ? ranges.count / 2 : ranges.count;
  if (half < ranges.count) ranges.PackInto(&blocks_[ranges.ranges[half].first], half, ranges.count);
  if (block->first != ranges.ranges[0].first) {
    auto node = blocks_.extract(block);
    node.key() = ranges.ranges[0].first;
    block = blocks_.insert(std::move(node)).position;
  }
  ranges.PackInto(&block->second, 0, half);
}

// The first range of the block, which is there no more.
RowRange RowSet::TakeFirst(Blocks::iterator block) {
  Unpacked ranges = Unpack(block);
  const RowRange first = ranges.ranges[0];
  ranges.Remove(0);
  Pack(block, ranges);
  return first;
}

void RowSet::Append(const RowRange& rows) {
  HR_CHECK(rows.count > 0 && (blocks_.empty() || blocks_.rbegin()->second.last.end() <= rows.first),
           "rows are appended that are not behind the others");
  num_rows_ += rows.count;
  if (blocks_.empty()) {
    blocks_.emplace(rows.first, Block{{}, rows});
    return;
  }
  const auto end = std::prev(blocks_.end());
  Block& block = end->second;
  if (block.last.end() == rows.first) {
    block.last.count += rows.count;
  } else if (block.ranges == kMostRanges) {
    block.bytes.shrink_to_fit();
    blocks_.emplace_hint(blocks_.end(), rows.first, Block{{}, rows});
  } else {
    PutNumber(&block.bytes, block.last.count);
    PutNumber(&block.bytes, rows.first - block.last.end());
    block.last = rows;
    ++block.ranges;
  }
}

RowRange RowSet::Insert(const RowRange& rows) {
  if (blocks_.empty() || blocks_.rbegin()->second.last.end() <= rows.first) {
    Append(rows);
    return blocks_.rbegin()->second.last;
  }
  const auto behind = blocks_.upper_bound(rows.first);
  const auto block = behind == blocks_.begin() ? behind : std::prev(behind);
  Unpacked ranges = Unpack(block);
  size_t at = 0;
  while (at < ranges.count && ranges.ranges[at].first <= rows.first) ++at;
  const bool is_at_end = at == ranges.count;
  const bool is_last = is_at_end && behind == blocks_.end();
  const uint64_t next = is_last ? UINT64_MAX : is_at_end ? behind->first : ranges.ranges[at].first;
  HR_CHECK(rows.count > 0 && rows.count <= next - rows.first &&
               (at == 0 || ranges.ranges[at - 1].end() <= rows.first),
           "a row was delivered twice");
  num_rows_ += rows.count;
  RowRange whole = rows;
  if (!is_last && whole.end() == next) {
    whole.count += is_at_end ? TakeFirst(behind).count : ranges.ranges[at].count;
    if (!is_at_end) ranges.Remove(at);
  }
  if (at > 0 && ranges.ranges[at - 1].end() == whole.first) {
    ranges.ranges[at - 1].count += whole.count;
    whole = ranges.ranges[at - 1];
  } else {
    ranges.Put(at, whole);
  }
  Pack(block, ranges);
  return whole;
}

void RowSet::Erase(const RowRange& rows) {
  const auto behind = blocks_.upper_bound(rows.first);
  HR_CHECK(behind != blocks_.begin(), "rows are erased that are not there");
  const auto block = std::prev(behind);
  Unpacked ranges = Unpack(block);
  size_t at = ranges.count - 1;
  while (at > 0 && ranges.ranges[at].first > rows.first) --at;
  const RowRange whole = ranges.ranges[at];
  HR_CHECK(rows.count > 0 && rows.first < whole.end() && rows.count <= whole.end() - rows.first,
           "rows are erased that are not there");
  num_rows_ -= rows.count;
  ranges.Remove(at);
  if (rows.end() < whole.end()) ranges.Put(at, {rows.end(), whole.end() - rows.end()});
  if (whole.first < rows.first) ranges.Put(at, {whole.first, rows.first - whole.first});
  Pack(block, ranges);
}

void RowSet::Each(const RowRange& within, const std::function<void(const RowRange&)>& take) const {
  auto block = blocks_.upper_bound(within.first);
  if (block != blocks_.begin()) --block;
  Cursor cursor(*this, block);
  for (RowRange range; cursor.Next(&range) && range.first < within.end();) {
    const uint64_t low = std::max(range.first, within.first);
    const uint64_t high = std::min(range.end(), within.end());
    if (low < high) take({low, high - low});
  }
}

bool RowSet::operator==(const RowSet& other) const {
  if (num_rows_ != other.num_rows_) return false;
  Cursor ours(*this), theirs(other);
  RowRange one, another;
  while (ours.Next(&one))
    if (!theirs.Next(&another) || one != another) return false;
  return true;  // as many rows
}

std::string RowSet::Serialize() const {
  std::string bytes;
  uint64_t end = 0;
  Cursor cursor(*this);
  for (RowRange range; cursor.Next(&range); end = range.end()) {
    PutNumber(&bytes, range.first - end);
    PutNumber(&bytes, range.count);
  }
  return bytes;
}

std::optional<RowSet> RowSet::Parse(std::string_view bytes) {
  RowSet set;
  for (uint64_t end = 0; !bytes.empty();) {
    const auto gap = TakeNumber(&bytes);
    const auto count = gap ? TakeNumber(&bytes) : std::nullopt;
    if (!count || *count == 0 || (*gap == 0 && !set.empty()) || *gap > kMostRows - end ||
        *count > kMostRows - end - *gap)
      return std::nullopt;
    set.Append({end + *gap, *count});
    end += *gap + *count;
  }
  return set;
}

}  // namespace headrace::reader
