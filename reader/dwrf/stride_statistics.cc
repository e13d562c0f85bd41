#include "reader/dwrf/stride_statistics.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace headrace::reader::dwrf {
namespace {

template <class T>
std::vector<T> Taken(const std::vector<T>& from, std::span<const uint64_t> rows) {
  std::vector<T> out;
  out.reserve(rows.size());
  for (const uint64_t row : rows) out.push_back(from[row]);
  return out;
}

}  // namespace

StrideStatistics::StrideStatistics(const Schema& schema, const Stripe& stripe,
                                   std::span<const uint32_t> columns)
    : schema_(schema), columns_(columns), nodes_(schema.size()), of_flat_map_(schema.size()) {
  for (const auto& [map, keys] : stripe.flat_keys) {
    const uint32_t value = schema.node(map).children[1];
    for (uint32_t node = map + 1; node <= schema.node(map).last; ++node) of_flat_map_[node] = true;
    FlatMap& flat = maps_[map];
    flat.width = schema.node(value).last - value + 1;
    flat.below.resize(keys.size() * flat.width);
    for (size_t k = 0; k < keys.size(); ++k) {
      flat.sequences.push_back(keys[k].sequence);
      flat.key_of.emplace(keys[k].key, k);
    }
  }
}

uint64_t StrideStatistics::Size(const Schema& schema, const Stripe& stripe) {
  uint64_t size = 0;
  for (const auto& [map, keys] : stripe.flat_keys) {
    const SchemaNode& value = schema.node(schema.node(map).children[1]);
    size += keys.size() * (value.last - value.id + uint64_t{1});
  }
  return size;
}

void StrideStatistics::AddRows(const Column& batch) {
  union_places_.clear();
  nodes_[0].num_values += batch.rows;
  std::vector<uint64_t> rows(batch.rows);
  std::iota(rows.begin(), rows.end(), uint64_t{0});
  for (size_t c = 0; c < batch.children.size(); ++c)
    Add(batch.children[c], columns_[c], rows, {nodes_, 0});
}

void StrideStatistics::MoveTo(std::vector<StatisticsBuilder>* file) {
  for (size_t node = 0; node < nodes_.size(); ++node) (*file)[node].Add(nodes_[node]);
  std::fill(nodes_.begin(), nodes_.end(), StatisticsBuilder());
  for (auto& [map, flat] : maps_) {
    const uint32_t value = schema_.node(map).children[1];
    for (size_t i = 0; i < flat.below.size(); ++i)
      (*file)[value + i % flat.width].Add(flat.below[i]);
    std::fill(flat.below.begin(), flat.below.end(), StatisticsBuilder());
  }
}

void StrideStatistics::Add(const Column& column, uint32_t node, Rows rows, const Place& to) {
  StatisticsBuilder& statistics = to.at(node);
  std::vector<uint64_t> values;
  values.reserve(rows.size());
  for (const uint64_t row : rows) {
    if (column.IsNull(row)) {
      statistics.has_null = true;
    } else {
      values.push_back(row);
    }
  }
  statistics.num_values += values.size();
  const std::vector<uint32_t>& children = schema_.node(node).children;
  switch (column.kind) {
    case TypeKind::kBoolean: {
      uint64_t trues = 0;
      for (const uint64_t row : values) trues += column.integers[row] != 0 ? 1 : 0;
      return statistics.AddTrues(trues);
    }
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      return statistics.AddIntegers(Taken(column.integers, values));
    case TypeKind::kFloat:
      return statistics.AddFloats(Taken(column.floats, values));
    case TypeKind::kDouble:
      return statistics.AddDoubles(Taken(column.doubles, values));
    case TypeKind::kString:
      for (const uint64_t row : values) statistics.AddString(column.TextAt(row), 1);
      return;
    case TypeKind::kBinary:
      for (const uint64_t row : values) statistics.AddBinaryBytes(column.TextAt(row).size());
      return;
    case TypeKind::kTimestamp:
      return;
    case TypeKind::kStruct:
      for (size_t c = 0; c < children.size(); ++c) Add(column.children[c], children[c], values, to);
      return;
    case TypeKind::kList:
    case TypeKind::kMap: {
      std::vector<uint64_t> entries;
      for (const uint64_t row : values)
        for (uint64_t e = column.offsets[row]; e < column.offsets[row + 1]; ++e)
          entries.push_back(e);
      if (const auto flat = maps_.find(node); flat != maps_.end())
        return AddFlatMap(column, node, entries, &flat->second);
      for (size_t c = 0; c < children.size(); ++c)
        Add(column.children[c], children[c], entries, to);
      return;
    }
    case TypeKind::kUnion:
      return AddUnion(column, node, values, to);
  }
}

void StrideStatistics::AddFlatMap(const Column& map, uint32_t node, Rows entries, FlatMap* flat) {
  const std::vector<uint32_t>& children = schema_.node(node).children;
  const Column& keys = map.children[0];
  Add(keys, children[0], entries, {nodes_, 0});
  std::vector<std::vector<uint64_t>> of_key(flat->sequences.size());
  MapKey key;
  for (const uint64_t e : entries) {
    key.is_text = keys.kind == TypeKind::kString || keys.kind == TypeKind::kBinary;
    if (key.is_text) {
      key.text = keys.TextAt(e);
    } else {
      key.integer = keys.integers[e];
    }
    of_key[flat->key_of.at(key)].push_back(e);
  }
  for (size_t k = 0; k < of_key.size(); ++k) {
    if (of_key[k].empty()) continue;
    const std::span<StatisticsBuilder> below(flat->below);
    Add(map.children[1], children[1], of_key[k],
        {below.subspan(k * flat->width, flat->width), children[1]});
  }
}

void StrideStatistics::AddUnion(const Column& column, uint32_t node, Rows values, const Place& to) {
  const std::vector<uint32_t>& children = schema_.node(node).children;
  const auto [found, is_new] = union_places_.try_emplace(&column);
  std::vector<uint64_t>& place = found->second;
  if (is_new) {
    std::vector<uint64_t> next(children.size());
    place.resize(column.rows);
    for (uint64_t row = 0; row < column.rows; ++row)
      if (!column.IsNull(row)) place[row] = next[static_cast<size_t>(column.integers[row])]++;
  }
  for (size_t c = 0; c < children.size(); ++c) {
    std::vector<uint64_t> rows;
    for (const uint64_t row : values)
      if (column.integers[row] == static_cast<int64_t>(c)) rows.push_back(place[row]);
    Add(column.children[c], children[c], rows, to);
  }
}

}  // namespace headrace::reader::dwrf
