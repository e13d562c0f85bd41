#include "probes/stack/unwind_rule.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "probes/stack/dwarf_cursor.h"
#include "probes/stack/registers.h"

namespace headrace::probes::stack {
namespace {

constexpr size_t kMaxEntryBytes = 65536;  // of one CIE or FDE
constexpr int kMaxOperations = 4096;      // of one call frame program
constexpr size_t kMaxRemembered = 16;

struct CommonEntry {  // CIE
  uint64_t code_factor = 1;
  int64_t data_factor = 1;
  uint64_t return_register = 16;
  uint8_t pointer_encoding = 0;
  bool has_augmentation = false, signal_frame = false;
  std::vector<uint8_t> bytes;
  uint64_t offset = 0;  // of `bytes` in the file
  size_t program = 0;   // where the initial instructions begin in `bytes`
};

struct EntryBytes {
  std::vector<uint8_t> bytes;  // after the length field
  uint64_t offset = 0;         // of `bytes` in the file
};

std::optional<EntryBytes> ReadEntry(const ElfImage& image, uint64_t offset) {
  uint32_t length;
  if (!image.source().ReadValue(offset, &length) || length < 4 || length > kMaxEntryBytes) {
    return std::nullopt;  // 0xffffffff, the 64-bit form, is used by nobody in .eh_frame
  }
  EntryBytes entry{std::vector<uint8_t>(length), offset + 4};
  if (!image.source().Read(entry.offset, entry.bytes.data(), length)) return std::nullopt;
  return entry;
}

std::optional<CommonEntry> ReadCommonEntry(const ElfImage& image, uint64_t offset,
                                           uint64_t address) {
  auto entry = ReadEntry(image, offset);
  if (!entry) return std::nullopt;
  CommonEntry common;
  DwarfCursor in(entry->bytes, address + 4);
  if (in.Value<uint32_t>() != 0) return std::nullopt;
  const uint8_t version = in.Value<uint8_t>();
  if (version != 1 && version != 3) return std::nullopt;
  const std::string augmentation = in.Text();
  common.code_factor = in.Unsigned();
  common.data_factor = in.Signed();
  common.return_register = version == 1 ? in.Value<uint8_t>() : in.Unsigned();
  if (!augmentation.empty() && augmentation[0] == 'z') {
    common.has_augmentation = true;
    const uint64_t size = in.Unsigned();
    const size_t end = in.position() + std::min<uint64_t>(size, in.left());
    for (const char c : augmentation.substr(1)) {
      if (c == 'R') {
        common.pointer_encoding = in.Value<uint8_t>();
      } else if (c == 'P') {
        const uint8_t encoding = in.Value<uint8_t>();
        in.Pointer(encoding & 0x0f, 0);
      } else if (c == 'L') {
        in.Value<uint8_t>();
      } else if (c == 'S') {
        common.signal_frame = true;
      } else if (c != 'B') {
        break;  // unknown: the rest of the augmentation is skipped by its size
      }
    }
    if (!in.ok() || in.position() > end) return std::nullopt;
    in.Skip(end - in.position());
  } else if (!augmentation.empty()) {
    return std::nullopt;
  }
  if (!in.ok() || common.return_register >= kNumRegisters) return std::nullopt;
  common.program = in.position();
  common.offset = entry->offset;
  common.bytes = std::move(entry->bytes);
  return common;
}

// The state that a call frame program changes.
struct Row {
  bool cfa_is_expression = false;
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  uint32_t cfa_size = 0;
  std::array<UnwindRule::Register, kNumRegisters> registers{};
};

// Runs call frame instructions up to `target`; false if they are damaged.
bool RunProgram(DwarfCursor in, uint64_t file_offset, const CommonEntry& common, uint64_t location,
                uint64_t target, const Row& initial, Row* row) {
  using Kind = UnwindRule::Kind;
  std::vector<Row> remembered;
  const auto set = [&](uint64_t index, Kind kind, int64_t offset, uint32_t size = 0) {
    // Registers beyond those followed (vectors, flags) never decide where a frame is.
    if (index < kNumRegisters) {
      row->registers[index] = {static_cast<uint8_t>(index), kind, offset, size};
    }
  };
  const auto scaled = [&](int64_t n) {
    return static_cast<int64_t>(static_cast<uint64_t>(n) *
                                static_cast<uint64_t>(common.data_factor));
  };
  const auto block = [&](uint32_t* size) {
    *size = static_cast<uint32_t>(std::min<uint64_t>(in.Unsigned(), UINT32_MAX));
    const auto at = static_cast<int64_t>(file_offset + in.position());
    in.Skip(*size);
    return at;
  };
  for (int n = 0; in.ok() && in.left() > 0; ++n) {
    if (n >= kMaxOperations) return false;
    const uint8_t op = in.Value<uint8_t>();
    const uint64_t low = op & 0x3f;
    uint64_t advance = 0;
    uint32_t size = 0;
    if (op >> 6 == 1) {
      advance = low;
    } else if (op >> 6 == 2) {  // DW_CFA_offset
      set(low, Kind::kAtCfa, scaled(static_cast<int64_t>(in.Unsigned())));
    } else if (op >> 6 == 3) {  // DW_CFA_restore
      if (low < kNumRegisters) row->registers[low] = initial.registers[low];
    } else {
      switch (op) {
        case 0x00:
          break;      // nop
        case 0x01: {  // set_loc
          const uint64_t to = in.Pointer(common.pointer_encoding, 0);
          if (to > target) return in.ok();
          location = to;
          break;
        }
        case 0x02:
          advance = in.Value<uint8_t>();
          break;  // advance_loc1
        case 0x03:
          advance = in.Value<uint16_t>();
          break;  // advance_loc2
        case 0x04:
          advance = in.Value<uint32_t>();
          break;      // advance_loc4
        case 0x05: {  // offset_extended
          const uint64_t index = in.Unsigned();
          set(index, Kind::kAtCfa, scaled(static_cast<int64_t>(in.Unsigned())));
          break;
        }
        case 0x06: {  // restore_extended
          const uint64_t index = in.Unsigned();
          if (index < kNumRegisters) row->registers[index] = initial.registers[index];
          break;
        }
        case 0x07:
          set(in.Unsigned(), Kind::kUndefined, 0);
          break;
        case 0x08:
          set(in.Unsigned(), Kind::kSame, 0);
          break;
        case 0x09: {  // register
          const uint64_t index = in.Unsigned();
          set(index, Kind::kRegister, static_cast<int64_t>(in.Unsigned()));
          break;
        }
        case 0x0a:  // remember_state
          if (remembered.size() >= kMaxRemembered) return false;
          remembered.push_back(*row);
          break;
        case 0x0b:  // restore_state
          if (remembered.empty()) return false;
          *row = remembered.back();
          remembered.pop_back();
          break;
        case 0x0c:  // def_cfa
        case 0x12:  // def_cfa_sf
          row->cfa_is_expression = false;
          row->cfa_register = in.Unsigned();
          row->cfa_offset = op == 0x0c ? static_cast<int64_t>(in.Unsigned()) : scaled(in.Signed());
          break;
        case 0x0d:
          row->cfa_register = in.Unsigned();
          break;  // def_cfa_register
        case 0x0e:
          row->cfa_offset = static_cast<int64_t>(in.Unsigned());
          break;
        case 0x13:
          row->cfa_offset = scaled(in.Signed());
          break;
        case 0x0f:  // def_cfa_expression
          row->cfa_is_expression = true;
          row->cfa_offset = block(&row->cfa_size);
          break;
        case 0x10: {  // expression
          const uint64_t index = in.Unsigned();
          const int64_t at = block(&size);
          set(index, Kind::kAtExpression, at, size);
          break;
        }
        case 0x16: {  // val_expression
          const uint64_t index = in.Unsigned();
          const int64_t at = block(&size);
          set(index, Kind::kExpression, at, size);
          break;
        }
        case 0x11: {  // offset_extended_sf
          const uint64_t index = in.Unsigned();
          set(index, Kind::kAtCfa, scaled(in.Signed()));
          break;
        }
        case 0x14: {  // val_offset
          const uint64_t index = in.Unsigned();
          set(index, Kind::kCfaPlus, scaled(static_cast<int64_t>(in.Unsigned())));
          break;
        }
        case 0x15: {  // val_offset_sf
          const uint64_t index = in.Unsigned();
          set(index, Kind::kCfaPlus, scaled(in.Signed()));
          break;
        }
        case 0x2d:
          break;  // AArch64 negate_ra_state: the bits are masked instead
        case 0x2e:
          in.Unsigned();
          break;      // GNU_args_size
        case 0x2f: {  // GNU_negative_offset_extended
          const uint64_t index = in.Unsigned();
          set(index, Kind::kAtCfa, scaled(-static_cast<int64_t>(in.Unsigned() & INT64_MAX)));
          break;
        }
        default:
          return false;
      }
    }
    if (advance != 0) {
      location += advance * common.code_factor;
      if (location > target) return in.ok();
    }
  }
  return in.ok();
}

// Offset and address of the FDE that the search table names for `address`.
struct EntryPlace {
  uint64_t offset, address;
};
std::optional<EntryPlace> SearchTable(const ElfImage& image, uint64_t address) {
  const auto& header = image.eh_frame_header();
  if (!header || header->size < 12) return std::nullopt;
  std::array<uint8_t, 32> start{};
  if (!image.source().Read(header->offset, start.data(),
                           std::min<uint64_t>(start.size(), header->size))) {
    return std::nullopt;
  }
  const std::span<const uint8_t> head(start.data(), std::min<uint64_t>(start.size(), header->size));
  DwarfCursor in(head, header->address);
  const uint8_t version = in.Value<uint8_t>(), frame = in.Value<uint8_t>();
  const uint8_t count_encoding = in.Value<uint8_t>(), table_encoding = in.Value<uint8_t>();
  // 0x3b: signed 32-bit, relative to the header: the only form linkers make, and searchable.
  if (version != 1 || table_encoding != 0x3b || count_encoding == 0xff) return std::nullopt;
  in.Pointer(frame, header->address);
  const uint64_t count = in.Pointer(count_encoding, header->address);
  const uint64_t table = header->offset + in.position();
  if (!in.ok() || count == 0 || count > (header->size - in.position()) / 8) return std::nullopt;
  struct Item {
    int32_t location, entry;
  } item{};
  uint64_t low = 0, high = count;  // the last item whose location is at most the address
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (!image.source().ReadValue(table + middle * 8, &item)) return std::nullopt;
    if (header->address + static_cast<uint64_t>(int64_t{item.location}) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0 || !image.source().ReadValue(table + (low - 1) * 8, &item)) return std::nullopt;
  const uint64_t entry = header->address + static_cast<uint64_t>(int64_t{item.entry});
  const auto offset = image.OffsetOf(entry, 8);
  if (!offset) return std::nullopt;
  return EntryPlace{*offset, entry};
}

}  // namespace

std::optional<UnwindRule> FindUnwindRule(const ElfImage& image, uint64_t address) {
  const auto place = SearchTable(image, address);
  if (!place) return std::nullopt;
  const auto entry = ReadEntry(image, place->offset);
  if (!entry) return std::nullopt;
  DwarfCursor in(entry->bytes, place->address + 4);
  const uint32_t back = in.Value<uint32_t>();  // distance to the CIE from this field
  if (back == 0 || back > entry->offset || back > place->address + 4) return std::nullopt;
  const auto common = ReadCommonEntry(image, entry->offset - back, place->address + 4 - back);
  if (!common) return std::nullopt;
  const uint64_t begin = in.Pointer(common->pointer_encoding, 0);
  const uint64_t size = in.Pointer(common->pointer_encoding & 0x0f, 0);
  if (common->has_augmentation) in.Skip(in.Unsigned());
  if (!in.ok() || address < begin || address - begin >= size) return std::nullopt;

  Row row;
  const auto program = std::span(common->bytes).subspan(common->program);
  if (!RunProgram(DwarfCursor(program, 0), common->offset + common->program, *common, 0, UINT64_MAX,
                  row, &row)) {
    return std::nullopt;
  }
  const Row initial = row;
  const size_t at = in.position();
  if (!RunProgram(DwarfCursor(std::span(entry->bytes).subspan(at), in.address()),
                  entry->offset + at, *common, begin, address, initial, &row)) {
    return std::nullopt;
  }
  if (!row.cfa_is_expression && row.cfa_register >= kNumRegisters) return std::nullopt;
  UnwindRule rule;
  rule.cfa_is_expression = row.cfa_is_expression;
  rule.cfa_register = static_cast<uint8_t>(row.cfa_register);
  rule.cfa_offset = row.cfa_offset;
  rule.cfa_size = row.cfa_size;
  rule.return_register = static_cast<uint8_t>(common->return_register);
  rule.signal_frame = common->signal_frame;
  for (const auto& r : row.registers) {
    if (r.kind != UnwindRule::Kind::kSame) rule.registers.push_back(r);
  }
  return rule;
}

}  // namespace headrace::probes::stack
