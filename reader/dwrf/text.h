// Rows as text. Two formats, one line per row:
//
//   canonical  exact and hashable: ~ null, T/F, decimal integers,
//              f3f800000 / d3ff0000000000000 for float / double bits,
//              s3:616263 for strings and binaries (length and hex), t<Unix seconds>.<9 digits>,
//              [a,b], {k=v,k=v} sorted by key, (a,b) for structs and the row itself; <tag:value>
//              for unions
//   ndjson     JSON: a row is an object; maps are arrays of [key, value] sorted by key (any key
//              type, repeated keys);
//              binaries, and strings that are not UTF-8, are {"hex": "..."}; NaN and infinities are
//              the strings "NaN", "Infinity", "-Infinity"; timestamps are ISO 8601 strings in UTC;
//              unions are {"tag": t, "value": v}; what a terminal would obey (base/terminal_text.h)
//              is \uNNNN in strings
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reader/batch/column.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf {

enum class TextFormat : uint8_t { kCanonical, kNdjson };

// Prints in pieces, so that values of any size pass through a buffer of fixed size.
class RowPrinter {
 public:
  // `write` takes each piece of text. `schema` must outlive the printer.
  RowPrinter(const Schema& schema, TextFormat format, std::function<void(std::string_view)> write);
  // Prints rows [begin, end) of `batch`, a struct of the schema's type.
  void Print(const Column& batch, uint64_t begin, uint64_t end);
  // The values of one column of the batch, one line per row, without the row around them.
  void PrintColumn(const Column& batch, size_t column, uint64_t begin, uint64_t end);
  // Writes what is still in the buffer; call at the end.
  void Flush();

 private:
  void Value(const Column& column, uint32_t node, uint64_t row);
  void Canonical(const Column& column, uint32_t node, uint64_t row);
  void Json(const Column& column, uint32_t node, uint64_t row);
  void Hex(std::string_view bytes);
  void JsonString(std::string_view text);
  void JsonText(std::string_view text, bool is_binary);
  void JsonFloat(double value, bool is_single);
  std::vector<uint64_t> SortedEntries(const Column& map, uint64_t row) const;
  uint64_t UnionOrdinal(const Column& column, uint64_t row);
  void Put(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() >= kFlushBytes) Flush();
  }

  static constexpr size_t kFlushBytes = 256 << 10;
  const Schema& schema_;
  TextFormat format_;
  std::function<void(std::string_view)> write_;
  std::string buffer_;
  std::unordered_map<const Column*, std::vector<uint64_t>> ordinals_;  // of unions, per batch
};

// For messages and tests: rows of a small batch as one string.
std::string ToText(const Schema& schema, const Column& batch, TextFormat format);

}  // namespace headrace::reader::dwrf
