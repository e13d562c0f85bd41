#include "dashboards/export/flat_table.h"

#include <algorithm>
#include <utility>

namespace headrace::dashboards {
namespace {

void AppendNumber(uint64_t value, size_t size_bytes, std::string* out) {
  for (size_t i = 0; i < size_bytes; ++i) *out += static_cast<char>(value >> (8 * i));
}

void PadTo(size_t alignment, size_t remainder, std::string* out) {
  while (out->size() % alignment != remainder) *out += '\0';
}

// Writes at `at` how far it is from there to `target`, which lies behind.
void PointTo(size_t target, size_t at, std::string* out) {
  for (size_t i = 0; i < 4; ++i) (*out)[at + i] = static_cast<char>((target - at) >> (8 * i));
}

}  // namespace

FlatTable& FlatTable::Scalar(uint16_t slot, uint8_t size_bytes, int64_t value) {
  slots_.push_back({slot, size_bytes, value});
  return *this;
}

FlatTable& FlatTable::Text(uint16_t slot, std::string_view text) {
  slots_.push_back({slot, 4, std::string(text)});
  return *this;
}

FlatTable& FlatTable::Table(uint16_t slot, FlatTable table) {
  std::vector<FlatTable> one;
  one.push_back(std::move(table));
  slots_.push_back({slot, 4, std::move(one)});
  return *this;
}

FlatTable& FlatTable::Tables(uint16_t slot, std::vector<FlatTable> tables) {
  slots_.push_back({slot, 4, std::move(tables), true});
  return *this;
}

FlatTable& FlatTable::Structs(uint16_t slot, uint32_t count, std::string bytes) {
  slots_.push_back({slot, 4, StructVector{count, std::move(bytes)}});
  return *this;
}

std::string FlatTable::Finish() const {
  std::string out(4, '\0');
  const size_t root = Write(&out);
  PointTo(root, 0, &out);
  PadTo(8, 0, &out);
  return out;
}

// A table's layout: the vtable (its size, the table's size, where each slot lies in the table),
// then the table (how far back the vtable begins, then the slots, the widest first so that all are
// aligned), then what the slots point to. Returns where the table begins.
size_t FlatTable::Write(std::string* out) const {
  uint16_t num_slots = 0;
  std::vector<const Slot*> in_order;
  for (const Slot& slot : slots_) {
    num_slots = std::max<uint16_t>(num_slots, static_cast<uint16_t>(slot.slot + 1));
    in_order.push_back(&slot);
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const Slot* a, const Slot* b) { return a->size_bytes > b->size_bytes; });
  const bool wide = !in_order.empty() && in_order[0]->size_bytes == 8;
  uint16_t table_bytes = wide ? 8 : 4;
  std::vector<uint16_t> places(num_slots);
  for (const Slot* slot : in_order) {
    places[slot->slot] = table_bytes;
    table_bytes = static_cast<uint16_t>(table_bytes + slot->size_bytes);
  }
  const size_t vtable_bytes = 4 + 2 * size_t{num_slots};
  PadTo(8, (16 - vtable_bytes % 8) % 8, out);
  const size_t vtable = out->size();
  AppendNumber(vtable_bytes, 2, out);
  AppendNumber(table_bytes, 2, out);
  for (const uint16_t place : places) AppendNumber(place, 2, out);
  const size_t table = out->size();
  AppendNumber(table - vtable, 4, out);
  if (wide) AppendNumber(0, 4, out);
  for (const Slot* slot : in_order) {
    const auto* scalar = std::get_if<int64_t>(&slot->value);
    AppendNumber(scalar == nullptr ? 0 : static_cast<uint64_t>(*scalar), slot->size_bytes, out);
  }
  for (const Slot* slot : in_order) {
    if (std::holds_alternative<int64_t>(slot->value)) continue;
    PointTo(WriteValue(*slot, out), table + places[slot->slot], out);
  }
  return table;
}

size_t FlatTable::WriteValue(const Slot& slot, std::string* out) {
  if (const auto* text = std::get_if<std::string>(&slot.value)) {
    PadTo(4, 0, out);
    const size_t at = out->size();
    AppendNumber(text->size(), 4, out);
    *out += *text;
    *out += '\0';
    return at;
  }
  if (const auto* structs = std::get_if<StructVector>(&slot.value)) {
    PadTo(8, 4, out);  // the structs behind the count are aligned
    const size_t at = out->size();
    AppendNumber(structs->count, 4, out);
    *out += structs->bytes;
    return at;
  }
  const auto& tables = std::get<std::vector<FlatTable>>(slot.value);
  if (!slot.is_vector) return tables[0].Write(out);
  PadTo(4, 0, out);
  const size_t at = out->size();
  AppendNumber(tables.size(), 4, out);
  out->append(4 * tables.size(), '\0');
  for (size_t i = 0; i < tables.size(); ++i) {
    const size_t place = at + 4 + 4 * i;
    PointTo(tables[i].Write(out), place, out);
  }
  return at;
}

}  // namespace headrace::dashboards
