#include "probes/stack/unwind.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace headrace::probes::stack {
namespace {

constexpr size_t kMaxEntryBytes = 65536;  // of one CIE or FDE
constexpr int kMaxOperations = 4096;      // of one call frame program or expression
constexpr size_t kMaxRemembered = 16;
constexpr uint64_t kAArch64Bits = 0x0000'ffff'ffff'ffff;  // without pointer authentication codes

// Reads numbers from bytes whose address is known; after a read beyond the end all is 0.
class Cursor {
 public:
  Cursor(std::span<const uint8_t> bytes, uint64_t address) : bytes_(bytes), address_(address) {}

  bool ok() const { return ok_; }
  size_t left() const { return bytes_.size() - at_; }
  size_t position() const { return at_; }
  uint64_t address() const { return address_ + at_; }
  void Skip(uint64_t n) {
    if (n > left())
      Fail();
    else
      at_ += n;
  }
  template <typename T>
  T Value() {
    T value{};
    if (left() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint64_t Unsigned() {  // LEB128
    uint64_t value = 0;
    for (int shift = 0; ok_; shift += 7) {
      const uint8_t byte = Value<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
      if (shift > 70) Fail();
    }
    return value;
  }
  int64_t Signed() {
    uint64_t value = 0;
    for (int shift = 0; ok_; shift += 7) {
      const uint8_t byte = Value<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) {
        if (shift + 7 < 64 && (byte & 0x40) != 0) value |= ~0ull << (shift + 7);
        break;
      }
      if (shift > 70) Fail();
    }
    return static_cast<int64_t>(value);
  }
  std::string Text() {
    std::string text;
    while (ok_) {
      const char c = Value<char>();
      if (c == 0) break;
      text += c;
      if (text.size() > 16) Fail();
    }
    return text;
  }
  // A pointer in one of the encodings of .eh_frame (Linux Standard Base, "DWARF Extensions").
  // `data` is the base of data-relative ones. Indirect pointers are not followed.
  uint64_t Pointer(uint8_t encoding, uint64_t data) {
    if (encoding == 0xff) return 0;
    const uint64_t here = address();
    uint64_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
        value = Value<uint64_t>();
        break;
      case 0x01:
        value = Unsigned();
        break;
      case 0x02:
        value = Value<uint16_t>();
        break;
      case 0x03:
        value = Value<uint32_t>();
        break;
      case 0x04:
        value = Value<uint64_t>();
        break;
      case 0x09:
        value = static_cast<uint64_t>(Signed());
        break;
      case 0x0a:
        value = static_cast<uint64_t>(int64_t{Value<int16_t>()});
        break;
      case 0x0b:
        value = static_cast<uint64_t>(int64_t{Value<int32_t>()});
        break;
      case 0x0c:
        value = Value<uint64_t>();
        break;
      default:
        Fail();
    }
    switch (encoding & 0x70) {
      case 0x00:
        break;
      case 0x10:
        value += here;
        break;
      case 0x30:
        value += data;
        break;
      default:
        Fail();
    }
    return value;
  }

 private:
  void Fail() {
    ok_ = false;
    at_ = bytes_.size();
  }
  std::span<const uint8_t> bytes_;
  uint64_t address_;
  size_t at_ = 0;
  bool ok_ = true;
};

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
  Cursor in(entry->bytes, address + 4);
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
bool RunProgram(Cursor in, uint64_t file_offset, const CommonEntry& common, uint64_t location,
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
  Cursor in(head, header->address);
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

// Evaluates a DWARF expression; `stack` may be null (then loads fail).
std::optional<uint64_t> Evaluate(const ElfImage& image, uint64_t offset, uint32_t size,
                                 const Registers& registers, const StackCopy& memory,
                                 std::optional<uint64_t> cfa) {
  if (size > 1024) return std::nullopt;
  std::vector<uint8_t> bytes(size);
  if (!image.source().Read(offset, bytes.data(), size)) return std::nullopt;
  Cursor in(bytes, 0);
  std::array<uint64_t, 32> stack{};
  size_t depth = 0;
  bool ok = true;
  const auto push = [&](uint64_t v) {
    if (depth < stack.size())
      stack[depth++] = v;
    else
      ok = false;
  };
  const auto pop = [&]() -> uint64_t {
    if (depth > 0) return stack[--depth];
    ok = false;
    return 0;
  };
  if (cfa) push(*cfa);
  const auto push_register = [&](uint64_t index, int64_t add) {
    const auto value = registers.Get(index);
    if (!value)
      ok = false;
    else
      push(*value + static_cast<uint64_t>(add));
  };
  while (ok && in.ok() && in.left() > 0) {
    const uint8_t op = in.Value<uint8_t>();
    if (op >= 0x30 && op <= 0x4f) {  // lit0..31
      push(op - 0x30u);
    } else if (op >= 0x70 && op <= 0x8f) {  // breg0..31
      push_register(op - 0x70u, in.Signed());
    } else {
      switch (op) {
        case 0x06: {  // deref
          const auto word = memory.Word(pop());
          if (!word) return std::nullopt;
          push(*word);
          break;
        }
        case 0x08:
          push(in.Value<uint8_t>());
          break;
        case 0x09:
          push(static_cast<uint64_t>(int64_t{in.Value<int8_t>()}));
          break;
        case 0x0a:
          push(in.Value<uint16_t>());
          break;
        case 0x0b:
          push(static_cast<uint64_t>(int64_t{in.Value<int16_t>()}));
          break;
        case 0x0c:
          push(in.Value<uint32_t>());
          break;
        case 0x0d:
          push(static_cast<uint64_t>(int64_t{in.Value<int32_t>()}));
          break;
        case 0x0e:
        case 0x0f:
          push(in.Value<uint64_t>());
          break;
        case 0x10:
          push(in.Unsigned());
          break;
        case 0x11:
          push(static_cast<uint64_t>(in.Signed()));
          break;
        case 0x12: {  // dup
          const uint64_t v = pop();
          push(v);
          push(v);
          break;
        }
        case 0x13:
          pop();
          break;
        case 0x16: {  // swap
          const uint64_t b = pop(), a = pop();
          push(b);
          push(a);
          break;
        }
        case 0x1a:
          push(pop() & pop());
          break;
        case 0x1c: {  // minus
          const uint64_t b = pop(), a = pop();
          push(a - b);
          break;
        }
        case 0x1e:
          push(pop() * pop());
          break;
        case 0x1f:
          push(0 - pop());
          break;
        case 0x20:
          push(~pop());
          break;
        case 0x21:
          push(pop() | pop());
          break;
        case 0x22:
          push(pop() + pop());
          break;
        case 0x23: {
          const uint64_t add = in.Unsigned();
          push(pop() + add);
          break;
        }
        case 0x24:
        case 0x25:
        case 0x26: {  // shl, shr, shra
          const uint64_t by = pop(), v = pop();
          if (by >= 64)
            push(0);
          else if (op == 0x24)
            push(v << by);
          else if (op == 0x25)
            push(v >> by);
          else
            push(static_cast<uint64_t>(static_cast<int64_t>(v) >> by));
          break;
        }
        case 0x27:
          push(pop() ^ pop());
          break;
        case 0x29:
        case 0x2a:
        case 0x2b:
        case 0x2c:
        case 0x2d:
        case 0x2e: {  // eq ge gt le lt ne
          const auto b = static_cast<int64_t>(pop()), a = static_cast<int64_t>(pop());
          const bool r = op == 0x29   ? a == b
                         : op == 0x2a ? a >= b
                         : op == 0x2b ? a > b
                         : op == 0x2c ? a <= b
                         : op == 0x2d ? a < b
                                      : a != b;
          push(r ? 1 : 0);
          break;
        }
        case 0x92: {  // bregx
          const uint64_t index = in.Unsigned();
          push_register(index, in.Signed());
          break;
        }
        case 0x96:
          break;  // nop
        default:
          return std::nullopt;  // branches and the rest never occur in .eh_frame
      }
    }
  }
  if (!ok || !in.ok() || depth == 0) return std::nullopt;
  return stack[depth - 1];
}

int StackRegister(uint16_t machine) { return machine == EM_AARCH64 ? 31 : 7; }
int FrameRegister(uint16_t machine) { return machine == EM_AARCH64 ? 29 : 6; }

// One step with a rule; false at the end. `complete` is set where the stack ends in order.
bool Step(const ElfImage& image, const UnwindRule& rule, const StackCopy& stack,
          Registers* registers, bool* complete) {
  using Kind = UnwindRule::Kind;
  std::optional<uint64_t> cfa;
  if (rule.cfa_is_expression) {
    cfa = Evaluate(image, static_cast<uint64_t>(rule.cfa_offset), rule.cfa_size, *registers, stack,
                   std::nullopt);
  } else if (const auto base = registers->Get(rule.cfa_register)) {
    cfa = *base + static_cast<uint64_t>(rule.cfa_offset);
  }
  const int sp = StackRegister(image.machine());
  // The stack grows down: a caller's frame begins above. Anything else is damage or a loop.
  if (!cfa || *cfa < registers->Get(static_cast<uint64_t>(sp)).value_or(0)) return false;
  Registers caller = *registers;
  caller.Set(sp, *cfa);
  for (const UnwindRule::Register& r : rule.registers) {
    std::optional<uint64_t> value;
    switch (r.kind) {
      case Kind::kSame:
        continue;
      case Kind::kUndefined:
        if (r.index == rule.return_register) {
          *complete = true;
          return false;
        }
        break;
      case Kind::kAtCfa: {
        const uint64_t place = *cfa + static_cast<uint64_t>(r.offset);
        // Below the stack pointer: it was taken from there already (compilers leave the note behind
        // `leave` as it was), so the register has it.
        if (place < registers->Get(static_cast<uint64_t>(sp)).value_or(0)) continue;
        value = stack.Word(place);
        break;
      }
      case Kind::kCfaPlus:
        value = *cfa + static_cast<uint64_t>(r.offset);
        break;
      case Kind::kRegister:
        value = registers->Get(static_cast<uint64_t>(r.offset));
        break;
      case Kind::kAtExpression:
      case Kind::kExpression:
        value = Evaluate(image, static_cast<uint64_t>(r.offset), r.size, *registers, stack, cfa);
        if (value && r.kind == Kind::kAtExpression) value = stack.Word(*value);
        break;
    }
    if (value)
      caller.Set(r.index, *value);
    else
      caller.known &= ~(1ull << r.index);
  }
  const auto pc = caller.Get(rule.return_register);
  if (!pc) return false;
  caller.pc = image.machine() == EM_AARCH64 ? *pc & kAArch64Bits : *pc;
  if (caller.pc == 0) {
    *complete = true;
    return false;
  }
  if (*cfa == registers->Get(static_cast<uint64_t>(sp)).value_or(0) && caller.pc == registers->pc)
    return false;  // no progress
  *registers = caller;
  return true;
}

// One step by frame pointer, for code without rules.
bool StepByFramePointer(uint16_t machine, const StackCopy& stack, Registers* registers) {
  const int sp = StackRegister(machine), fp = FrameRegister(machine);
  const auto frame = registers->Get(static_cast<uint64_t>(fp));
  if (!frame || *frame < registers->Get(static_cast<uint64_t>(sp)).value_or(0) || (*frame & 7) != 0)
    return false;
  const auto next = stack.Word(*frame), pc = stack.Word(*frame + 8);
  if (!next || !pc || *pc < 4096) return false;
  registers->Set(sp, *frame + 16);
  registers->Set(fp, *next);
  registers->pc = machine == EM_AARCH64 ? *pc & kAArch64Bits : *pc;
  return true;
}

}  // namespace

std::optional<uint64_t> StackCopy::Word(uint64_t address) const {
  if (address < base || bytes.size() < 8 || address - base > bytes.size() - 8) return std::nullopt;
  uint64_t word;
  std::memcpy(&word, bytes.data() + (address - base), sizeof word);
  return word;
}

std::optional<UnwindRule> FindUnwindRule(const ElfImage& image, uint64_t address) {
  const auto place = SearchTable(image, address);
  if (!place) return std::nullopt;
  const auto entry = ReadEntry(image, place->offset);
  if (!entry) return std::nullopt;
  Cursor in(entry->bytes, place->address + 4);
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
  if (!RunProgram(Cursor(program, 0), common->offset + common->program, *common, 0, UINT64_MAX, row,
                  &row)) {
    return std::nullopt;
  }
  const Row initial = row;
  const size_t at = in.position();
  if (!RunProgram(Cursor(std::span(entry->bytes).subspan(at), in.address()), entry->offset + at,
                  *common, begin, address, initial, &row)) {
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

const std::optional<UnwindRule>& Unwinder::Rule(const std::shared_ptr<const ElfImage>& image,
                                                uint64_t address) {
  const uint64_t hash =
      (address ^ reinterpret_cast<uintptr_t>(image.get()) >> 4) * 0x9e3779b97f4a7c15ull;
  Entry& entry = cache_[(hash >> 20) % cache_.size()];
  if (entry.image != image || entry.address != address) {
    entry = {image, address, FindUnwindRule(*image, address)};
  }
  return entry.rule;
}

UnwoundStack Unwinder::Unwind(Registers registers, const StackCopy& stack, const ImageFinder& find,
                              size_t max_frames) {
  UnwoundStack result;
  const Registers start = registers;
  bool exact = true;  // the pc is where the thread is, not behind a call
  uint16_t machine = EM_NONE;
  while (result.addresses.size() < max_frames) {
    result.addresses.push_back(registers.pc);
    // A return address may lie behind the last instruction of its function.
    const uint64_t pc = registers.pc - (exact ? 0 : 1);
    const LoadedImage loaded = find(pc);
    if (loaded.image) machine = loaded.image->machine();
    if (loaded.image) {
      if (const auto& rule = Rule(loaded.image, pc - loaded.bias)) {
        exact = rule->signal_frame;
        const auto frame = static_cast<uint64_t>(FrameRegister(machine));
        if (Step(*loaded.image, *rule, stack, &registers, &result.complete)) continue;
        result.same_frame_pointer = !result.complete && !rule->cfa_is_expression &&
                                    rule->cfa_register == frame && registers.Get(frame) &&
                                    registers.Get(frame) == start.Get(frame);
        return result;
      }
    }
    if (machine == EM_NONE || !StepByFramePointer(machine, stack, &registers)) return result;
    exact = false;
  }
  return result;
}

}  // namespace headrace::probes::stack
