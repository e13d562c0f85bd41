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
constexpr int kMaxInstructions = 4096;    // of one call frame program
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

// Call frame instructions (DWARF 5, 7.24; the last two are GNU's). The first three have a number in
// their lower six bits.
enum Instruction : uint8_t {
  kCfaAdvance = 0x40,
  kCfaOffset = 0x80,
  kCfaRestore = 0xc0,
  kCfaNothing = 0x00,
  kCfaSetLocation = 0x01,
  kCfaAdvance1 = 0x02,
  kCfaAdvance2 = 0x03,
  kCfaAdvance4 = 0x04,
  kCfaOffsetExtended = 0x05,
  kCfaRestoreExtended = 0x06,
  kCfaUndefined = 0x07,
  kCfaSameValue = 0x08,
  kCfaRegister = 0x09,
  kCfaRememberState = 0x0a,
  kCfaRestoreState = 0x0b,
  kCfaDefine = 0x0c,
  kCfaDefineRegister = 0x0d,
  kCfaDefineOffset = 0x0e,
  kCfaDefineExpression = 0x0f,
  kCfaExpression = 0x10,
  kCfaOffsetExtendedSigned = 0x11,
  kCfaDefineSigned = 0x12,
  kCfaDefineOffsetSigned = 0x13,
  kCfaValueOffset = 0x14,
  kCfaValueOffsetSigned = 0x15,
  kCfaValueExpression = 0x16,
  kCfaNegateReturnAddressState = 0x2d,  // AArch64: the bits of the signature are masked instead
  kCfaArgumentsSize = 0x2e,
  kCfaNegativeOffsetExtended = 0x2f
};

// What follows the register's number in an instruction that says where a register is.
enum class Operand { kNone, kNumber, kScaled, kScaledSigned, kScaledNegative, kBlock };

// Instructions that begin with a register's number and say where that register is.
constexpr struct RegisterInstruction {
  uint8_t instruction;
  UnwindRule::Kind kind;
  Operand operand;
} kRegisterInstructions[] = {
    {kCfaOffsetExtended, UnwindRule::Kind::kAtCfa, Operand::kScaled},
    {kCfaUndefined, UnwindRule::Kind::kUndefined, Operand::kNone},
    {kCfaSameValue, UnwindRule::Kind::kSame, Operand::kNone},
    {kCfaRegister, UnwindRule::Kind::kRegister, Operand::kNumber},
    {kCfaExpression, UnwindRule::Kind::kAtExpression, Operand::kBlock},
    {kCfaOffsetExtendedSigned, UnwindRule::Kind::kAtCfa, Operand::kScaledSigned},
    {kCfaValueOffset, UnwindRule::Kind::kCfaPlus, Operand::kScaled},
    {kCfaValueOffsetSigned, UnwindRule::Kind::kCfaPlus, Operand::kScaledSigned},
    {kCfaValueExpression, UnwindRule::Kind::kExpression, Operand::kBlock},
    {kCfaNegativeOffsetExtended, UnwindRule::Kind::kAtCfa, Operand::kScaledNegative},
};

// A run through the call frame instructions of a CIE or FDE. Each of the private functions takes an
// instruction if it is of its kind.
class FrameProgram {
 public:
  // `in`: the instructions, which begin at `file_offset`. `initial`: the row that instructions of
  // the kind "restore" restore registers from.
  FrameProgram(DwarfCursor in, uint64_t file_offset, const CommonEntry& common, const Row& initial)
      : in_(in), file_offset_(file_offset), common_(common), initial_(initial) {}

  // Changes `row`, which holds at `location`, to what holds at `target`; false if the instructions
  // are damaged.
  bool Run(uint64_t location, uint64_t target, Row* row) {
    for (int n = 0; in_.ok() && in_.left() > 0; ++n) {
      if (n >= kMaxInstructions) return false;
      const uint8_t instruction = in_.Value<uint8_t>();
      if (const auto next = NextLocation(instruction, location)) {
        location = *next;
        if (location > target) return in_.ok();
      } else if (!DefineCfa(instruction, row) && !DefineRegister(instruction, row) &&
                 !RestoreRegister(instruction, row) && !SaveState(instruction, row)) {
        return false;
      }
    }
    return in_.ok();
  }

 private:
  int64_t Scaled(int64_t n) const {
    return static_cast<int64_t>(static_cast<uint64_t>(n) *
                                static_cast<uint64_t>(common_.data_factor));
  }
  int64_t Number() { return static_cast<int64_t>(in_.Unsigned()); }
  // Skips a block of operations and returns where it is in the file.
  int64_t Block(uint32_t* size) {
    *size = static_cast<uint32_t>(std::min<uint64_t>(in_.Unsigned(), UINT32_MAX));
    const auto at = static_cast<int64_t>(file_offset_ + in_.position());
    in_.Skip(*size);
    return at;
  }

  std::optional<uint64_t> NextLocation(uint8_t instruction, uint64_t location) {
    uint64_t advance = 0;
    switch (instruction) {
      case kCfaSetLocation:
        return in_.Pointer(common_.pointer_encoding, 0);
      case kCfaAdvance1:
        advance = in_.Value<uint8_t>();
        break;
      case kCfaAdvance2:
        advance = in_.Value<uint16_t>();
        break;
      case kCfaAdvance4:
        advance = in_.Value<uint32_t>();
        break;
      default:
        if ((instruction & 0xc0) != kCfaAdvance) return std::nullopt;
        advance = instruction & 0x3f;
    }
    return location + advance * common_.code_factor;
  }

  bool DefineCfa(uint8_t instruction, Row* row) {
    switch (instruction) {
      case kCfaDefine:
      case kCfaDefineSigned:
        row->cfa_is_expression = false;
        row->cfa_register = in_.Unsigned();
        row->cfa_offset = instruction == kCfaDefine ? Number() : Scaled(in_.Signed());
        return true;
      case kCfaDefineRegister:
        row->cfa_register = in_.Unsigned();
        return true;
      case kCfaDefineOffset:
        row->cfa_offset = Number();
        return true;
      case kCfaDefineOffsetSigned:
        row->cfa_offset = Scaled(in_.Signed());
        return true;
      case kCfaDefineExpression:
        row->cfa_is_expression = true;
        row->cfa_offset = Block(&row->cfa_size);
        return true;
      default:
        return false;
    }
  }

  bool DefineRegister(uint8_t instruction, Row* row) {
    if ((instruction & 0xc0) == kCfaOffset) {
      Set(instruction & 0x3f, UnwindRule::Kind::kAtCfa, Scaled(Number()), 0, row);
      return true;
    }
    const auto* const known = std::find_if(
        std::begin(kRegisterInstructions), std::end(kRegisterInstructions),
        [&](const RegisterInstruction& each) { return each.instruction == instruction; });
    if (known == std::end(kRegisterInstructions)) return false;
    const uint64_t index = in_.Unsigned();
    uint32_t size = 0;
    const int64_t offset = Offset(known->operand, &size);
    Set(index, known->kind, offset, size, row);
    return true;
  }

  int64_t Offset(Operand operand, uint32_t* size) {
    switch (operand) {
      case Operand::kNone:
        break;
      case Operand::kNumber:
        return Number();
      case Operand::kScaled:
        return Scaled(Number());
      case Operand::kScaledSigned:
        return Scaled(in_.Signed());
      case Operand::kScaledNegative:
        return Scaled(-static_cast<int64_t>(in_.Unsigned() & INT64_MAX));
      case Operand::kBlock:
        return Block(size);
    }
    return 0;
  }

  // Registers beyond those followed (vectors, flags) never decide where a frame is.
  static void Set(uint64_t index, UnwindRule::Kind kind, int64_t offset, uint32_t size, Row* row) {
    if (index < kNumRegisters) {
      row->registers[index] = {static_cast<uint8_t>(index), kind, offset, size};
    }
  }

  bool RestoreRegister(uint8_t instruction, Row* row) {
    const bool is_short = (instruction & 0xc0) == kCfaRestore;
    if (!is_short && instruction != kCfaRestoreExtended) return false;
    const uint64_t index = is_short ? instruction & 0x3f : in_.Unsigned();
    if (index < kNumRegisters) row->registers[index] = initial_.registers[index];
    return true;
  }

  bool SaveState(uint8_t instruction, Row* row) {
    switch (instruction) {
      case kCfaRememberState:
        if (remembered_.size() >= kMaxRemembered) return false;
        remembered_.push_back(*row);
        return true;
      case kCfaRestoreState:
        if (remembered_.empty()) return false;
        *row = remembered_.back();
        remembered_.pop_back();
        return true;
      case kCfaArgumentsSize:
        in_.Unsigned();
        return true;
      default:
        return instruction == kCfaNothing || instruction == kCfaNegateReturnAddressState;
    }
  }

  DwarfCursor in_;
  const uint64_t file_offset_;
  const CommonEntry& common_;
  const Row& initial_;
  std::vector<Row> remembered_;
};

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
  FrameProgram of_common(DwarfCursor(std::span(common->bytes).subspan(common->program), 0),
                         common->offset + common->program, *common, row);
  if (!of_common.Run(0, UINT64_MAX, &row)) return std::nullopt;
  const Row initial = row;
  const size_t at = in.position();
  FrameProgram own(DwarfCursor(std::span(entry->bytes).subspan(at), in.address()),
                   entry->offset + at, *common, initial);
  if (!own.Run(begin, address, &row)) return std::nullopt;
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
