#include "reader/dwrf/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/terminal_text.h"

namespace headrace::reader::dwrf {
namespace {

constexpr std::array<char, 512> kHexPairs = [] {
  std::array<char, 512> pairs{};
  const char* digits = "0123456789abcdef";
  for (int i = 0; i < 256; ++i) {
    pairs[static_cast<size_t>(2 * i)] = digits[i >> 4];
    pairs[static_cast<size_t>(2 * i + 1)] = digits[i & 15];
  }
  return pairs;
}();

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    const size_t length = CodePointAt(text, i).length;
    if (length == 0) return false;
    i += length;
  }
  return true;
}

// Civil date of a day number since 1970-01-01 (the algorithm of H. Hinnant's "chrono-Compatible
// Low-Level Date Algorithms").
std::string IsoTime(int64_t seconds, int32_t nanos) {
  int64_t days = seconds / 86400, rest = seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  const int64_t z = days + 719468;
  const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const int64_t day_of_era = z - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month_part = (5 * day_of_year + 2) / 153;
  const int64_t month = month_part < 10 ? month_part + 3 : month_part - 9;
  const int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", year, month,
                     day_of_year - (153 * month_part + 2) / 5 + 1, rest / 3600, rest / 60 % 60,
                     rest % 60, nanos);
}

}  // namespace

RowPrinter::RowPrinter(const Schema& schema, TextFormat format,
                       std::function<void(std::string_view)> write)
    : schema_(schema), format_(format), write_(std::move(write)) {
  buffer_.reserve(kFlushBytes + (64 << 10));
}

void RowPrinter::Flush() {
  if (!buffer_.empty()) write_(buffer_);
  buffer_.clear();
}

void RowPrinter::Print(const Column& batch, uint64_t begin, uint64_t end) {
  ordinals_.clear();
  for (uint64_t row = begin; row < end; ++row) {
    Value(batch, 0, row);
    Put("\n");
  }
}

void RowPrinter::PrintColumn(const Column& batch, size_t column, uint64_t begin, uint64_t end) {
  ordinals_.clear();
  for (uint64_t row = begin; row < end; ++row) {
    Value(batch.children[column], schema_.root().children[column], row);
    Put("\n");
  }
}

void RowPrinter::Value(const Column& column, uint32_t node, uint64_t row) {
  if (format_ == TextFormat::kCanonical) {
    Canonical(column, node, row);
  } else {
    Json(column, node, row);
  }
}

void RowPrinter::Hex(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t n = std::min<size_t>(bytes.size(), 32 << 10);
    const size_t at = buffer_.size();
    buffer_.resize(at + 2 * n);
    char* out = buffer_.data() + at;
    for (size_t i = 0; i < n; ++i)
      std::memcpy(out + 2 * i, &kHexPairs[2 * static_cast<unsigned char>(bytes[i])], 2);
    bytes.remove_prefix(n);
    if (buffer_.size() >= kFlushBytes) Flush();
  }
}

std::vector<uint64_t> RowPrinter::SortedEntries(const Column& map, uint64_t row) const {
  std::vector<uint64_t> entries;
  for (uint64_t e = map.offsets[row]; e < map.offsets[row + 1]; ++e) entries.push_back(e);
  const Column& keys = map.children[0];
  std::stable_sort(entries.begin(), entries.end(), [&](uint64_t a, uint64_t b) {
    if (keys.IsNull(a) || keys.IsNull(b)) return keys.IsNull(a) && !keys.IsNull(b);
    switch (keys.kind) {
      case TypeKind::kString:
      case TypeKind::kBinary:
        return keys.TextAt(a) < keys.TextAt(b);
      case TypeKind::kFloat:
        return std::strong_order(keys.floats[a], keys.floats[b]) < 0;
      case TypeKind::kDouble:
        return std::strong_order(keys.doubles[a], keys.doubles[b]) < 0;
      case TypeKind::kTimestamp:
        return std::pair(keys.integers[a], keys.nanos[a]) <
               std::pair(keys.integers[b], keys.nanos[b]);
      default:
        return !keys.integers.empty() && keys.integers[a] < keys.integers[b];
    }
  });
  return entries;
}

uint64_t RowPrinter::UnionOrdinal(const Column& column, uint64_t row) {
  std::vector<uint64_t>& ordinals = ordinals_[&column];
  if (ordinals.empty()) {
    std::vector<uint64_t> counts(column.children.size());
    ordinals.resize(column.rows);
    for (uint64_t i = 0; i < column.rows; ++i) {
      if (!column.IsNull(i)) ordinals[i] = counts[static_cast<size_t>(column.integers[i])]++;
    }
  }
  return ordinals[row];
}

void RowPrinter::Canonical(const Column& column, uint32_t node, uint64_t row) {
  if (column.IsNull(row)) return Put("~");
  const std::vector<uint32_t>& children = schema_.node(node).children;
  switch (column.kind) {
    case TypeKind::kBoolean:
      return Put(column.integers[row] != 0 ? "T" : "F");
    case TypeKind::kFloat:
      return Put(fmt::format("f{:08x}", std::bit_cast<uint32_t>(column.floats[row])));
    case TypeKind::kDouble:
      return Put(fmt::format("d{:016x}", std::bit_cast<uint64_t>(column.doubles[row])));
    case TypeKind::kTimestamp:
      return Put(fmt::format("t{}.{:09}", column.integers[row], column.nanos[row]));
    case TypeKind::kString:
    case TypeKind::kBinary: {
      const std::string_view text = column.TextAt(row);
      Put(fmt::format("s{}:", text.size()));
      return Hex(text);
    }
    case TypeKind::kList:
      Put("[");
      for (uint64_t e = column.offsets[row]; e < column.offsets[row + 1]; ++e) {
        if (e > column.offsets[row]) Put(",");
        Canonical(column.children[0], children[0], e);
      }
      return Put("]");
    case TypeKind::kMap: {
      Put("{");
      bool first = true;
      for (uint64_t e : SortedEntries(column, row)) {
        if (!first) Put(",");
        first = false;
        Canonical(column.children[0], children[0], e);
        Put("=");
        Canonical(column.children[1], children[1], e);
      }
      return Put("}");
    }
    case TypeKind::kStruct:
      Put("(");
      for (size_t c = 0; c < children.size(); ++c) {
        if (c > 0) Put(",");
        Canonical(column.children[c], children[c], row);
      }
      return Put(")");
    case TypeKind::kUnion: {
      const auto tag = static_cast<size_t>(column.integers[row]);
      Put(fmt::format("<{}:", tag));
      Canonical(column.children[tag], children[tag], UnionOrdinal(column, row));
      return Put(">");
    }
    default:
      return Put(fmt::format_int(column.integers[row]).c_str());
  }
}

// What a terminal would obey is spelled out: to JSON it is the same string.
void RowPrinter::JsonString(std::string_view text) {
  Put("\"");
  size_t done = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && static_cast<unsigned char>(text[i]) >= 0xC2) {
      const CodePoint c = CodePointAt(text, i);
      if (IsObeyed(c.value) || i - done >= (32 << 10)) {
        Put(text.substr(done, i - done));
        done = i;
      }
      if (IsObeyed(c.value)) {
        Put(fmt::format("\\u{:04x}", c.value));
        done = i + c.length;
      }
      i += c.length - 1;
      continue;
    }
    const bool plain = i < text.size() && static_cast<unsigned char>(text[i]) >= 0x20 &&
                       text[i] != '"' && text[i] != '\\' && text[i] != 0x7F;
    if (plain && i - done < (32 << 10)) continue;
    Put(text.substr(done, i - done));
    done = i;
    if (i == text.size() || plain) continue;
    const char c = text[i];
    if (c == '"' || c == '\\') {
      Put(c == '"' ? "\\\"" : "\\\\");
    } else if (c == '\n') {
      Put("\\n");
    } else {
      Put(fmt::format("\\u{:04x}", static_cast<unsigned char>(c)));
    }
    done = i + 1;
  }
  Put("\"");
}

void RowPrinter::JsonText(std::string_view text, bool is_binary) {
  if (!is_binary && IsUtf8(text)) return JsonString(text);
  Put("{\"hex\":\"");
  Hex(text);
  Put("\"}");
}

void RowPrinter::JsonFloat(double value, bool is_single) {
  if (std::isnan(value)) return Put("\"NaN\"");
  if (std::isinf(value)) return Put(value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
  Put(is_single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value));
}

void RowPrinter::Json(const Column& column, uint32_t node, uint64_t row) {
  if (column.IsNull(row)) return Put("null");
  const SchemaNode& type = schema_.node(node);
  switch (column.kind) {
    case TypeKind::kBoolean:
      return Put(column.integers[row] != 0 ? "true" : "false");
    case TypeKind::kFloat:
      return JsonFloat(static_cast<double>(column.floats[row]), true);
    case TypeKind::kDouble:
      return JsonFloat(column.doubles[row], false);
    case TypeKind::kTimestamp:
      return Put('"' + IsoTime(column.integers[row], column.nanos[row]) + '"');
    case TypeKind::kString:
    case TypeKind::kBinary:
      return JsonText(column.TextAt(row), column.kind == TypeKind::kBinary);
    case TypeKind::kList:
      Put("[");
      for (uint64_t e = column.offsets[row]; e < column.offsets[row + 1]; ++e) {
        if (e > column.offsets[row]) Put(",");
        Json(column.children[0], type.children[0], e);
      }
      return Put("]");
    case TypeKind::kMap: {
      Put("[");
      bool first = true;
      for (uint64_t e : SortedEntries(column, row)) {
        Put(first ? "[" : ",[");
        first = false;
        Json(column.children[0], type.children[0], e);
        Put(",");
        Json(column.children[1], type.children[1], e);
        Put("]");
      }
      return Put("]");
    }
    case TypeKind::kStruct:
      Put("{");
      for (size_t c = 0; c < type.children.size(); ++c) {
        if (c > 0) Put(",");
        // A field name must be a string whatever its bytes.
        const std::string& name = type.field_names[c];
        if (IsUtf8(name)) {
          JsonString(name);
        } else {
          Put("\"hex:");
          Hex(name);
          Put("\"");
        }
        Put(":");
        Json(column.children[c], type.children[c], row);
      }
      return Put("}");
    case TypeKind::kUnion: {
      const auto tag = static_cast<size_t>(column.integers[row]);
      Put(fmt::format("{{\"tag\":{},\"value\":", tag));
      Json(column.children[tag], type.children[tag], UnionOrdinal(column, row));
      return Put("}");
    }
    default:
      return Put(fmt::format_int(column.integers[row]).c_str());
  }
}

std::string ToText(const Schema& schema, const Column& batch, TextFormat format) {
  std::string text;
  RowPrinter printer(schema, format, [&](std::string_view piece) { text += piece; });
  printer.Print(batch, 0, batch.rows);
  printer.Flush();
  return text;
}

}  // namespace headrace::reader::dwrf
