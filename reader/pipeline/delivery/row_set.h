// RowSet: a set of rows of a table, as ranges that neither touch nor overlap. A range takes a few
// bytes: ranges lie in blocks of at most kMostRanges, each as the gap behind the one before and its
// length, in bytes of seven bits, the lowest first; the highest bit says that another one follows.
//
//   rows 100..199, 350..399, 405    a block that begins at row 100: 100, (150, 50), (5, 1)
//
// What is added anywhere rewrites one block, or two. Not thread-safe, except for const functions
// while nothing changes it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::reader {

// Rows [first, first + count) of the table.
struct RowRange {
  uint64_t first = 0, count = 0;
  uint64_t end() const { return first + count; }
  bool operator==(const RowRange&) const = default;
};

// Of a table, so that no sum of two row numbers overflows.
constexpr uint64_t kMostTableRows = uint64_t{1} << 62;

class RowSet {
 public:
  static constexpr size_t kMostRanges = 64;                 // of a block
  static constexpr uint64_t kMostRows = uint64_t{1} << 63;  // all are below: no sum overflows

  RowSet() = default;
  RowSet(std::initializer_list<RowRange> ranges);  // as Insert

  bool empty() const { return blocks_.empty(); }
  uint64_t num_rows() const { return num_rows_; }

  // Rows behind all that are there, which they may touch. Quicker than Insert. HR_CHECKs that they
  // are, and that there is one.
  void Append(const RowRange& rows);
  // Returns the range that they are part of from now on. HR_CHECKs that none is there already, and
  // that there is one.
  RowRange Insert(const RowRange& rows);
  // HR_CHECKs that all of them are there.
  void Erase(const RowRange& rows);

  // What is there of these rows, ascending.
  void Each(const RowRange& within, const std::function<void(const RowRange&)>& take) const;
  bool operator==(const RowSet& other) const;

  // All ranges, ascending. The set must not change meanwhile.
  class Cursor;

  // Of the whole set, as of a block that begins at row 0.
  std::string Serialize() const;
  // Nothing for bytes that Serialize did not make. Takes no more memory than a small multiple of
  // theirs.
  static std::optional<RowSet> Parse(std::string_view bytes);

 private:
  struct Block {
    std::string bytes;  // of all ranges but the last, and the gap before that
    RowRange last;
    size_t ranges = 1;
  };
  using Blocks = std::map<uint64_t, Block>;  // by their first row
  struct Unpacked;

  static Unpacked Unpack(const Blocks::const_iterator& block);
  void Pack(Blocks::iterator block, const Unpacked& ranges);
  RowRange TakeFirst(Blocks::iterator block);

  Blocks blocks_;
  uint64_t num_rows_ = 0;
};

class RowSet::Cursor {
 public:
  explicit Cursor(const RowSet& set) : Cursor(set, set.blocks_.begin()) {}
  // False behind the last one.
  bool Next(RowRange* range);

 private:
  friend class RowSet;
  Cursor(const RowSet& set, Blocks::const_iterator begin)
      : block_(begin), end_(set.blocks_.end()) {}

  Blocks::const_iterator block_, end_;
  size_t index_ = 0, at_ = 0;  // in the block: ranges, bytes
  uint64_t row_ = 0;           // the end of the range before
};

}  // namespace headrace::reader
