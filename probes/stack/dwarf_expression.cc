#include "probes/stack/dwarf_expression.h"

#include <array>
#include <vector>

#include "probes/stack/dwarf_cursor.h"

namespace headrace::probes::stack {
namespace {

constexpr uint32_t kMaxExpressionBytes = 1024;

// Operations (DWARF 5, 7.7.1). Those of kOpLiteral and kOpRegisterPlus are 32 in a row.
enum Operation : uint8_t {
  kOpDereference = 0x06,
  kOpConstantU1 = 0x08,
  kOpConstantS1 = 0x09,
  kOpConstantU2 = 0x0a,
  kOpConstantS2 = 0x0b,
  kOpConstantU4 = 0x0c,
  kOpConstantS4 = 0x0d,
  kOpConstantU8 = 0x0e,
  kOpConstantS8 = 0x0f,
  kOpConstantUnsigned = 0x10,
  kOpConstantSigned = 0x11,
  kOpDuplicate = 0x12,
  kOpDrop = 0x13,
  kOpSwap = 0x16,
  kOpAnd = 0x1a,
  kOpMinus = 0x1c,
  kOpMultiply = 0x1e,
  kOpNegate = 0x1f,
  kOpNot = 0x20,
  kOpOr = 0x21,
  kOpPlus = 0x22,
  kOpPlusConstant = 0x23,
  kOpShiftLeft = 0x24,
  kOpShiftRight = 0x25,
  kOpShiftRightSigned = 0x26,
  kOpExclusiveOr = 0x27,
  kOpEqual = 0x29,
  kOpGreaterOrEqual = 0x2a,
  kOpGreater = 0x2b,
  kOpLessOrEqual = 0x2c,
  kOpLess = 0x2d,
  kOpNotEqual = 0x2e,
  kOpLiteral = 0x30,
  kOpRegisterPlus = 0x70,
  kOpAnyRegisterPlus = 0x92,
  kOpNothing = 0x96
};

// What an operation of two operands makes of them, `b` being on top; absent if it is none.
std::optional<uint64_t> Computed(uint8_t op, uint64_t a, uint64_t b) {
  const auto signed_a = static_cast<int64_t>(a), signed_b = static_cast<int64_t>(b);
  const bool too_far = b >= 64;
  switch (op) {
    case kOpAnd:
      return a & b;
    case kOpMinus:
      return a - b;
    case kOpMultiply:
      return a * b;
    case kOpOr:
      return a | b;
    case kOpPlus:
      return a + b;
    case kOpShiftLeft:
      return too_far ? 0 : a << b;
    case kOpShiftRight:
      return too_far ? 0 : a >> b;
    case kOpShiftRightSigned:
      return too_far ? 0 : static_cast<uint64_t>(signed_a >> b);
    case kOpExclusiveOr:
      return a ^ b;
    case kOpEqual:
      return signed_a == signed_b;
    case kOpGreaterOrEqual:
      return signed_a >= signed_b;
    case kOpGreater:
      return signed_a > signed_b;
    case kOpLessOrEqual:
      return signed_a <= signed_b;
    case kOpLess:
      return signed_a < signed_b;
    case kOpNotEqual:
      return signed_a != signed_b;
    default:
      return std::nullopt;
  }
}

// One evaluation. Each of the functions below takes an operation if it is of its kind.
class Expression {
 public:
  Expression(std::span<const uint8_t> operations, const Registers& registers,
             const StackCopy& memory)
      : in_(operations, 0), registers_(registers), memory_(memory) {}

  void Push(uint64_t value) {
    if (depth_ < operands_.size())
      operands_[depth_++] = value;
    else
      ok_ = false;
  }

  std::optional<uint64_t> Run() {
    while (ok_ && in_.ok() && in_.left() > 0) {
      const uint8_t op = in_.Value<uint8_t>();
      // Branches and the rest never occur in .eh_frame.
      if (!PushConstant(op) && !PushRegister(op) && !MoveOperands(op) && !Compute(op)) {
        return std::nullopt;
      }
    }
    if (!ok_ || !in_.ok() || depth_ == 0) return std::nullopt;
    return operands_[depth_ - 1];
  }

 private:
  uint64_t Pop() {
    if (depth_ > 0) return operands_[--depth_];
    ok_ = false;
    return 0;
  }
  template <typename T>
  void PushSigned(T value) {
    Push(static_cast<uint64_t>(int64_t{value}));
  }

  bool PushConstant(uint8_t op) {
    switch (op) {
      case kOpConstantU1:
        Push(in_.Value<uint8_t>());
        return true;
      case kOpConstantS1:
        PushSigned(in_.Value<int8_t>());
        return true;
      case kOpConstantU2:
        Push(in_.Value<uint16_t>());
        return true;
      case kOpConstantS2:
        PushSigned(in_.Value<int16_t>());
        return true;
      case kOpConstantU4:
        Push(in_.Value<uint32_t>());
        return true;
      case kOpConstantS4:
        PushSigned(in_.Value<int32_t>());
        return true;
      case kOpConstantU8:
      case kOpConstantS8:
        Push(in_.Value<uint64_t>());
        return true;
      case kOpConstantUnsigned:
        Push(in_.Unsigned());
        return true;
      case kOpConstantSigned:
        PushSigned(in_.Signed());
        return true;
      default:
        if (op < kOpLiteral || op >= kOpLiteral + 32) return false;
        Push(op - uint64_t{kOpLiteral});
        return true;
    }
  }

  bool PushRegister(uint8_t op) {
    uint64_t index;
    if (op == kOpAnyRegisterPlus) {
      index = in_.Unsigned();
    } else if (op >= kOpRegisterPlus && op < kOpRegisterPlus + 32) {
      index = op - uint64_t{kOpRegisterPlus};
    } else {
      return false;
    }
    const int64_t add = in_.Signed();
    const std::optional<uint64_t> value = registers_.Get(index);
    if (value)
      Push(*value + static_cast<uint64_t>(add));
    else
      ok_ = false;
    return true;
  }

  bool MoveOperands(uint8_t op) {
    switch (op) {
      case kOpDuplicate: {
        const uint64_t value = Pop();
        Push(value);
        Push(value);
        return true;
      }
      case kOpDrop:
        Pop();
        return true;
      case kOpSwap: {
        const uint64_t b = Pop(), a = Pop();
        Push(b);
        Push(a);
        return true;
      }
      case kOpNothing:
        return true;
      default:
        return false;
    }
  }

  bool Compute(uint8_t op) {
    switch (op) {
      case kOpDereference: {
        const std::optional<uint64_t> word = memory_.Word(Pop());
        ok_ = ok_ && word.has_value();
        Push(word.value_or(0));
        return true;
      }
      case kOpNegate:
        Push(0 - Pop());
        return true;
      case kOpNot:
        Push(~Pop());
        return true;
      case kOpPlusConstant: {
        const uint64_t add = in_.Unsigned();
        Push(Pop() + add);
        return true;
      }
      default: {
        const uint64_t b = Pop(), a = Pop();
        const std::optional<uint64_t> value = Computed(op, a, b);
        if (value) Push(*value);
        return value.has_value();
      }
    }
  }

  DwarfCursor in_;
  const Registers& registers_;
  const StackCopy& memory_;
  std::array<uint64_t, 32> operands_{};
  size_t depth_ = 0;
  bool ok_ = true;
};

}  // namespace

std::optional<uint64_t> EvaluateExpression(const ElfImage& image, uint64_t offset, uint32_t size,
                                           const Registers& registers, const StackCopy& memory,
                                           std::optional<uint64_t> cfa) {
  if (size > kMaxExpressionBytes) return std::nullopt;
  std::vector<uint8_t> operations(size);
  if (!image.source().Read(offset, operations.data(), size)) return std::nullopt;
  Expression expression(operations, registers, memory);
  if (cfa) expression.Push(*cfa);
  return expression.Run();
}

}  // namespace headrace::probes::stack
