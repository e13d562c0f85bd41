#include "reader/dwrf/encode/column_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/error.h"

namespace headrace::reader::dwrf {
namespace {

uint64_t RawWidth(TypeKind kind) {
  switch (kind) {
    case TypeKind::kBoolean:
    case TypeKind::kByte:
      return 1;
    case TypeKind::kShort:
      return 2;
    case TypeKind::kInt:
    case TypeKind::kFloat:
      return 4;
    case TypeKind::kTimestamp:
      return 12;
    default:
      return 8;
  }
}

template <class T>
void Extend(std::vector<T>* to, const T* first, uint64_t count) {
  to->insert(to->end(), first, first + count);
}

[[noreturn]] void Refuse(const Schema& schema, uint32_t node, const std::string& what) {
  throw Error(ExitCode::kUsage, what, fmt::format("column '{}'", schema.Path(node)));
}

// Of rows whose shape fits the schema, and whose values do not.
[[noreturn]] void RefuseValue(const Schema& schema, uint32_t node, const std::string& what) {
  throw Error(ExitCode::kBadData, what, fmt::format("column '{}'", schema.Path(node)));
}

void CheckRange(const Schema& schema, uint32_t node, std::span<const int64_t> values) {
  int64_t low, high;
  switch (schema.node(node).kind) {
    case TypeKind::kBoolean:
      low = 0, high = 1;
      break;
    case TypeKind::kByte:
      low = INT8_MIN, high = INT8_MAX;
      break;
    case TypeKind::kShort:
      low = INT16_MIN, high = INT16_MAX;
      break;
    case TypeKind::kInt:
      low = INT32_MIN, high = INT32_MAX;
      break;
    default:
      return;
  }
  bool fits = true;
  for (const int64_t value : values) fits &= value >= low && value <= high;
  if (!fits)
    RefuseValue(schema, node,
                fmt::format("a value does not fit type {}", TypeKindName(schema.node(node).kind)));
}

MapKey KeyAt(const Column& keys, uint64_t i) {
  MapKey key{};
  if (keys.kind == TypeKind::kString || keys.kind == TypeKind::kBinary) {
    key.is_text = true;
    key.text.assign(keys.bytes, keys.offsets[i], keys.offsets[i + 1] - keys.offsets[i]);
  } else {
    key.integer = keys.integers[i];
  }
  return key;
}

}  // namespace

ColumnBuffer::ColumnBuffer(const Schema& schema, const LayoutPolicy& policy, uint32_t node_id,
                           size_t strides)
    : kind(schema.node(node_id).kind),
      node(node_id),
      flat(policy.IsFlat(node_id)),
      cuts(strides),
      schema_(&schema),
      policy_(&policy) {
  if (flat) return;
  for (const uint32_t child : schema.node(node_id).children)
    children.emplace_back(schema, policy, child, strides);
}

ColumnBuffer::~ColumnBuffer() = default;
ColumnBuffer::ColumnBuffer(ColumnBuffer&&) noexcept = default;

void ColumnBuffer::BeginStride() {
  cuts.push_back({positions, values, bytes.size()});
  for (ColumnBuffer& child : children) child.BeginStride();
  for (auto& key : keys) key->value.BeginStride();
}

void ColumnBuffer::Clear() {
  positions = values = 0;
  has_nulls = false;
  present.Clear();
  cuts.clear();
  bits.Clear();
  octets.clear();
  integers.clear();
  nanos.clear();
  floats.clear();
  doubles.clear();
  lengths.clear();
  bytes.Clear();
  for (ColumnBuffer& child : children) child.Clear();
  for (auto& key : keys) {
    key->in_map.Clear();
    key->value.Clear();
  }
}

void ColumnBuffer::AddPositions(uint64_t count, bool are_present) {
  if (!are_present && !has_nulls) {
    has_nulls = true;
    present.AppendRun(true, positions);
  }
  if (has_nulls) present.AppendRun(are_present, count);
  positions += count;
  if (are_present) values += count;
}

uint64_t ColumnBuffer::Append(const Column& column, uint64_t begin, uint64_t end) {
  if (kind == TypeKind::kUnion) return AppendUnion(column, begin, end);
  if (column.present.empty()) {
    AddPositions(end - begin, true);
    return AppendValues(column, begin, end);
  }
  uint64_t raw = 0;
  for (uint64_t i = begin; i < end;) {
    uint64_t j = i + 1;
    while (j < end && (column.present[j] != 0) == (column.present[i] != 0)) ++j;
    const bool are_present = column.present[i] != 0;
    AddPositions(j - i, are_present);
    raw += are_present ? AppendValues(column, i, j) : j - i;
    i = j;
  }
  return raw;
}

uint64_t ColumnBuffer::AppendIntegers(const int64_t* first, uint64_t count) {
  switch (kind) {
    case TypeKind::kBoolean:
      for (uint64_t i = 0; i < count; ++i) bits.Append(first[i] != 0);
      break;
    case TypeKind::kByte:
      for (uint64_t i = 0; i < count; ++i) octets.push_back(static_cast<uint8_t>(first[i]));
      break;
    default:
      Extend(&integers, first, count);
  }
  return count * RawWidth(kind);
}

// Rows [begin, end) are all present.
uint64_t ColumnBuffer::AppendValues(const Column& column, uint64_t begin, uint64_t end) {
  const uint64_t count = end - begin;
  switch (kind) {
    case TypeKind::kTimestamp:
      Extend(&nanos, column.nanos.data() + begin, count);
      [[fallthrough]];
    case TypeKind::kBoolean:
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      return AppendIntegers(column.integers.data() + begin, count);
    case TypeKind::kFloat:
      Extend(&floats, column.floats.data() + begin, count);
      return count * 4;
    case TypeKind::kDouble:
      Extend(&doubles, column.doubles.data() + begin, count);
      return count * 8;
    case TypeKind::kStruct: {
      uint64_t raw = 0;
      for (size_t i = 0; i < children.size(); ++i)
        raw += children[i].Append(column.children[i], begin, end);
      return raw;
    }
    default:
      break;
  }
  if (flat) return AppendMapRows(column, begin, end);
  for (uint64_t i = begin; i < end; ++i)
    lengths.push_back(static_cast<uint32_t>(column.offsets[i + 1] - column.offsets[i]));
  const uint64_t first = column.offsets[begin], last = column.offsets[end];
  if (kind == TypeKind::kString || kind == TypeKind::kBinary) {
    bytes.Append({reinterpret_cast<const uint8_t*>(column.bytes.data()) + first, last - first});
    return last - first;
  }
  uint64_t raw = 0;
  for (size_t i = 0; i < children.size(); ++i)
    raw += children[i].Append(column.children[i], first, last);
  return raw;
}

uint64_t ColumnBuffer::AppendUnion(const Column& column, uint64_t begin, uint64_t end) {
  std::vector<uint64_t> next(children.size());  // per variant, values before `begin`
  uint64_t raw = 0;
  for (uint64_t i = 0; i < end; ++i) {
    const bool is_null = column.IsNull(i);
    if (i >= begin) AddPositions(1, !is_null);
    if (is_null) {
      raw += i >= begin;
      continue;
    }
    const auto tag = static_cast<size_t>(column.integers[i]);
    if (i >= begin) {
      octets.push_back(static_cast<uint8_t>(tag));
      raw += children[tag].Append(column.children[tag], next[tag], next[tag] + 1);
    }
    ++next[tag];
  }
  return raw;
}

FlatKeyBuffer& ColumnBuffer::FindKey(const MapKey& key) {
  const auto index = static_cast<uint32_t>(keys.size());
  const auto [place, is_new] = [&]() -> std::pair<uint32_t, bool> {
    if (key.is_text) {
      const auto [it, added] = text_keys_.try_emplace(key.text, index);
      return {it->second, added};
    }
    const auto [it, added] = integer_keys_.try_emplace(key.integer, index);
    return {it->second, added};
  }();
  if (is_new) {
    const uint32_t value_node = schema_->node(node).children[1];
    keys.push_back(std::make_unique<FlatKeyBuffer>(
        FlatKeyBuffer{key, {}, ColumnBuffer(*schema_, *policy_, value_node, cuts.size())}));
  }
  return *keys[place];
}

// AddPositions came first: `values` already counts these rows.
uint64_t ColumnBuffer::AppendMapRows(const Column& column, uint64_t begin, uint64_t end) {
  uint64_t raw = 0, row = values - (end - begin);
  const Column& key_column = column.children[0];
  for (uint64_t i = begin; i < end; ++i, ++row) {
    for (uint64_t entry = column.offsets[i]; entry < column.offsets[i + 1]; ++entry) {
      if (key_column.IsNull(entry)) RefuseValue(*schema_, node, "a flattened map has a null key");
      const MapKey map_key = KeyAt(key_column, entry);
      FlatKeyBuffer& key = FindKey(map_key);
      if (key.in_map.size() > row)
        RefuseValue(*schema_, node, "a row of a flattened map has a key twice");
      key.in_map.AppendRun(false, row - key.in_map.size());
      key.in_map.Append(true);
      raw += map_key.is_text ? map_key.text.size() : RawWidth(key_column.kind);
      raw += key.value.Append(column.children[1], entry, entry + 1);
    }
  }
  return raw;
}

uint64_t ColumnBuffer::AppendPlain(const FlatColumn& column, uint64_t begin, uint64_t end) {
  const auto append = [&](uint64_t i, uint64_t count) -> uint64_t {
    if (kind != TypeKind::kFloat) return AppendIntegers(column.integers.data() + i, count);
    Extend(&floats, column.floats.data() + i, count);
    return count * 4;
  };
  if (column.present.empty() || CountBits(column.present, begin, end - begin) == end - begin) {
    AddPositions(end - begin, true);
    return append(begin, end - begin);
  }
  uint64_t raw = 0;
  for (uint64_t i = begin; i < end; ++i) {
    const bool is_present = column.present[i >> 6] >> (i & 63) & 1;
    AddPositions(1, is_present);
    raw += is_present ? append(i, 1) : 1;
  }
  return raw;
}

uint64_t ColumnBuffer::AppendFeatures(const FlatColumn& column, std::vector<FlatCursor>* cursors,
                                      uint64_t begin, uint64_t end) {
  const uint64_t rows = end - begin, row = values;
  AddPositions(rows, true);
  const uint64_t key_width = RawWidth(schema_->node(schema_->node(node).children[0]).kind);
  uint64_t raw = 0;
  for (size_t i = 0; i < column.features.size(); ++i) {
    const FlatFeature& feature = column.features[i];
    const bool everywhere = feature.present.empty();
    const uint64_t count = everywhere ? rows : CountBits(feature.present, begin, rows);
    if (count == 0) continue;
    FlatKeyBuffer& key = FindKey(feature.key);
    key.in_map.AppendRun(false, row - key.in_map.size());
    if (everywhere) {
      key.in_map.AppendRun(true, rows);
    } else {
      key.in_map.AppendBits(feature.present, begin, rows);
    }
    raw += count * (feature.key.is_text ? feature.key.text.size() : key_width);
    raw += key.value.AppendFeatureValues(feature, &(*cursors)[i], count);
  }
  return raw;
}

uint64_t ColumnBuffer::AppendFeatureValues(const FlatFeature& feature, FlatCursor* cursor,
                                           uint64_t count) {
  AddPositions(count, true);
  const uint64_t first = cursor->values;
  cursor->values += count;
  if (kind != TypeKind::kList && kind != TypeKind::kMap)
    return AppendNumbers(feature, first, count);
  const uint32_t* counts = feature.lengths.data() + first;
  Extend(&lengths, counts, count);
  const uint64_t items = std::accumulate(counts, counts + count, uint64_t{0});
  uint64_t raw = 0;
  for (ColumnBuffer& child : children) {
    child.AddPositions(items, true);
    raw += child.AppendNumbers(feature, cursor->items, items);
  }
  cursor->items += items;
  return raw;
}

uint64_t ColumnBuffer::AppendNumbers(const FlatFeature& feature, uint64_t begin, uint64_t count) {
  if (kind != TypeKind::kFloat) return AppendIntegers(feature.integers.data() + begin, count);
  Extend(&floats, feature.floats.data() + begin, count);
  return count * 4;
}

void CheckColumn(const Schema& schema, uint32_t node, const Column& column) {
  const SchemaNode& type = schema.node(node);
  const auto require = [&](bool condition, const char* what) {
    if (!condition) Refuse(schema, node, what);
  };
  require(column.kind == type.kind, "the batch's column is of another type than the schema's");
  require(column.present.empty() || column.present.size() == column.rows,
          "present must be empty or one byte per row");
  require(column.children.size() == type.children.size(),
          "the batch's column has another number of children than the schema's");
  const bool jagged = type.kind == TypeKind::kString || type.kind == TypeKind::kBinary ||
                      type.kind == TypeKind::kList || type.kind == TypeKind::kMap;
  if (jagged) {
    require(column.offsets.size() == column.rows + 1, "offsets must be rows + 1 numbers");
    bool ascending = true, short_enough = true;
    for (uint64_t i = 0; i < column.rows; ++i) {
      ascending &= column.offsets[i] <= column.offsets[i + 1];
      short_enough &= column.offsets[i + 1] - column.offsets[i] <= UINT32_MAX;
    }
    require(ascending, "offsets must not decrease");
    require(short_enough, "a value is longer than 2^32 - 1");
  }
  const uint64_t items = jagged ? column.offsets.back() : column.rows;
  switch (type.kind) {
    case TypeKind::kFloat:
      require(column.floats.size() == column.rows, "floats must be one per row");
      break;
    case TypeKind::kDouble:
      require(column.doubles.size() == column.rows, "doubles must be one per row");
      break;
    case TypeKind::kString:
    case TypeKind::kBinary:
      require(items <= column.bytes.size(), "offsets exceed the bytes");
      break;
    case TypeKind::kTimestamp: {
      require(column.nanos.size() == column.rows, "nanos must be one per row");
      const bool fits = std::all_of(column.nanos.begin(), column.nanos.end(),
                                    [](int32_t n) { return n >= 0 && n < 1'000'000'000; });
      require(fits, "nanos must be 0 to 999,999,999");
      [[fallthrough]];
    }
    case TypeKind::kBoolean:
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      require(column.integers.size() == column.rows, "integers must be one per row");
      CheckRange(schema, node, column.integers);
      break;
    case TypeKind::kUnion: {
      require(column.integers.size() == column.rows, "tags must be one per row");
      std::vector<uint64_t> counts(column.children.size());
      for (uint64_t i = 0; i < column.rows; ++i) {
        if (column.IsNull(i)) continue;
        require(column.integers[i] >= 0 && column.integers[i] < std::ssize(column.children),
                "a tag names no variant");
        ++counts[static_cast<size_t>(column.integers[i])];
      }
      for (size_t i = 0; i < counts.size(); ++i)
        require(column.children[i].rows == counts[i], "a variant has another count than its tag");
      break;
    }
    default:
      for (const Column& child : column.children)
        require(child.rows >= items, "a child has fewer rows than its parent needs");
  }
  for (size_t i = 0; i < column.children.size(); ++i)
    CheckColumn(schema, type.children[i], column.children[i]);
}

namespace {

bool IsFlatNumber(TypeKind kind) {
  return kind == TypeKind::kBoolean || IsInteger(kind) || kind == TypeKind::kFloat;
}

void CheckNumbers(const Schema& schema, uint32_t node, std::span<const int64_t> integers,
                  std::span<const float> floats, uint64_t count) {
  const bool is_float = schema.node(node).kind == TypeKind::kFloat;
  const uint64_t given = is_float ? floats.size() : integers.size();
  if (given != count)
    Refuse(schema, node,
           fmt::format("{} needs {} values, {} given", is_float ? "floats" : "integers", count,
                       given));
  if (!is_float) CheckRange(schema, node, integers);
}

void CheckPresence(const Schema& schema, uint32_t node, std::span<const uint64_t> present,
                   uint64_t rows) {
  if (!present.empty() && present.size() < (rows + 63) / 64)
    Refuse(schema, node, "present has fewer bits than the batch has rows");
}

void CheckFeature(const Schema& schema, uint32_t map_node, const FlatFeature& feature,
                  uint64_t rows) {
  const uint32_t key = schema.node(map_node).children[0], value = schema.node(map_node).children[1];
  const SchemaNode& type = schema.node(value);
  CheckPresence(schema, map_node, feature.present, rows);
  const uint64_t count = feature.present.empty() ? rows : CountBits(feature.present, 0, rows);
  const bool text =
      schema.node(key).kind == TypeKind::kString || schema.node(key).kind == TypeKind::kBinary;
  if (text != feature.key.is_text) Refuse(schema, map_node, "a feature's key is of another type");
  if (!text) CheckRange(schema, key, {&feature.key.integer, 1});
  if (type.children.empty())
    return CheckNumbers(schema, value, feature.integers, feature.floats, count);
  if (feature.lengths.size() != count)
    Refuse(schema, value,
           fmt::format("lengths needs {} values, {} given", count, feature.lengths.size()));
  const uint64_t items =
      std::accumulate(feature.lengths.begin(), feature.lengths.end(), uint64_t{0});
  for (const uint32_t child : type.children)
    CheckNumbers(schema, child, feature.integers, feature.floats, items);
}

}  // namespace

void CheckFlatColumn(const Schema& schema, const LayoutPolicy& policy, uint32_t node,
                     const FlatColumn& column, uint64_t rows) {
  const SchemaNode& type = schema.node(node);
  if (!policy.IsFlat(node)) {
    if (!IsFlatNumber(type.kind))
      Refuse(schema, node, "is neither a flattened map nor a plain number; use Write for it");
    CheckPresence(schema, node, column.present, rows);
    return CheckNumbers(schema, node, column.integers, column.floats, rows);
  }
  const SchemaNode& value = schema.node(type.children[1]);
  bool expressible = IsFlatNumber(value.kind);
  if (value.kind == TypeKind::kList)
    expressible = IsFlatNumber(schema.node(value.children[0]).kind);
  if (value.kind == TypeKind::kMap)
    expressible = schema.node(value.children[0]).kind != TypeKind::kFloat &&
                  IsFlatNumber(schema.node(value.children[0]).kind) &&
                  schema.node(value.children[1]).kind == TypeKind::kFloat;
  if (!expressible) Refuse(schema, node, "holds values that a flat batch cannot; use Write for it");
  std::set<MapKey> seen;
  for (const FlatFeature& feature : column.features) {
    CheckFeature(schema, node, feature, rows);
    if (!seen.insert(feature.key).second) Refuse(schema, node, "a feature is given twice");
  }
}

}  // namespace headrace::reader::dwrf
