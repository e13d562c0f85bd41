#include "reader/dwrf/column_gather.h"

#include <algorithm>
#include <vector>

namespace headrace::reader::dwrf {
namespace {

// The rows of children [offsets[r], offsets[r + 1]) of each chosen row.
std::vector<uint64_t> ElementRows(const Column& from, std::span<const uint64_t> indices) {
  std::vector<uint64_t> rows;
  for (uint64_t index : indices) {
    if (index == kNullRow) continue;
    for (uint64_t e = from.offsets[index]; e < from.offsets[index + 1]; ++e) rows.push_back(e);
  }
  return rows;
}

void AppendOffsets(const Column& from, std::span<const uint64_t> indices, Column* out) {
  for (uint64_t index : indices) {
    const uint64_t length = index == kNullRow ? 0 : from.offsets[index + 1] - from.offsets[index];
    out->offsets.push_back(out->offsets.back() + length);
  }
}

template <typename T>
void GatherValues(const std::vector<T>& from, std::span<const uint64_t> indices,
                  std::vector<T>* out) {
  for (uint64_t index : indices) out->push_back(index == kNullRow ? T{} : from[index]);
}

// Variant t of a union holds only the rows of that tag: the chosen rows' places among them.
void GatherUnion(const Column& from, std::span<const uint64_t> indices, Column* out) {
  std::vector<uint64_t> ordinal(from.rows), count(from.children.size());
  for (uint64_t row = 0; row < from.rows; ++row) {
    if (!from.IsNull(row)) ordinal[row] = count[static_cast<size_t>(from.integers[row])]++;
  }
  std::vector<std::vector<uint64_t>> rows(from.children.size());
  for (uint64_t index : indices) {
    if (index != kNullRow && !from.IsNull(index)) {
      rows[static_cast<size_t>(from.integers[index])].push_back(ordinal[index]);
    }
  }
  for (size_t t = 0; t < rows.size(); ++t) Gather(from.children[t], rows[t], &out->children[t]);
}

}  // namespace

Column EmptyColumn(const Schema& schema, uint32_t id) {
  const SchemaNode& node = schema.node(id);
  Column column;
  column.kind = node.kind;
  const TypeKind k = node.kind;
  if (k == TypeKind::kString || k == TypeKind::kBinary || k == TypeKind::kList ||
      k == TypeKind::kMap) {
    column.offsets.push_back(0);
  }
  for (uint32_t child : node.children) column.children.push_back(EmptyColumn(schema, child));
  return column;
}

void AppendPresent(const uint8_t* present, uint64_t count, Column* out) {
  const bool any_null =
      present != nullptr && std::find(present, present + count, 0) != present + count;
  if (!any_null && out->present.empty()) return;
  if (out->present.empty()) out->present.assign(out->rows, 1);
  if (present == nullptr) {
    out->present.resize(out->present.size() + count, 1);
  } else {
    out->present.insert(out->present.end(), present, present + count);
  }
}

void AppendNulls(uint64_t count, Column* out) {
  Gather(Column{}, std::vector<uint64_t>(count, kNullRow), out);
}

void Gather(const Column& from, std::span<const uint64_t> indices, Column* out) {
  const bool any_null = std::any_of(indices.begin(), indices.end(), [&](uint64_t index) {
    return index == kNullRow || from.IsNull(index);
  });
  if (any_null && out->present.empty()) out->present.assign(out->rows, 1);
  if (any_null || !out->present.empty()) {
    for (uint64_t index : indices) out->present.push_back(index != kNullRow && !from.IsNull(index));
  }
  out->rows += indices.size();
  switch (out->kind) {
    case TypeKind::kFloat:
      return GatherValues(from.floats, indices, &out->floats);
    case TypeKind::kDouble:
      return GatherValues(from.doubles, indices, &out->doubles);
    case TypeKind::kTimestamp:
      GatherValues(from.nanos, indices, &out->nanos);
      return GatherValues(from.integers, indices, &out->integers);
    case TypeKind::kString:
    case TypeKind::kBinary:
      AppendOffsets(from, indices, out);
      for (uint64_t index : indices) {
        if (index == kNullRow) continue;
        out->bytes.append(from.bytes, from.offsets[index],
                          from.offsets[index + 1] - from.offsets[index]);
      }
      return;
    case TypeKind::kList:
    case TypeKind::kMap: {
      AppendOffsets(from, indices, out);
      const std::vector<uint64_t> rows = ElementRows(from, indices);
      if (rows.empty()) return;
      for (size_t c = 0; c < out->children.size(); ++c)
        Gather(from.children[c], rows, &out->children[c]);
      return;
    }
    case TypeKind::kStruct:
      for (size_t c = 0; c < out->children.size(); ++c) {
        static const Column kNothing;
        Gather(from.children.empty() ? kNothing : from.children[c], indices, &out->children[c]);
      }
      return;
    case TypeKind::kUnion:
      GatherValues(from.integers, indices, &out->integers);
      if (from.rows > 0) GatherUnion(from, indices, out);
      return;
    default:
      return GatherValues(from.integers, indices, &out->integers);
  }
}

}  // namespace headrace::reader::dwrf
