#include "probes/stack/dwarf_expression.h"

#include <array>
#include <vector>

#include "probes/stack/dwarf_cursor.h"

namespace headrace::probes::stack {

std::optional<uint64_t> EvaluateExpression(const ElfImage& image, uint64_t offset, uint32_t size,
                                           const Registers& registers, const StackCopy& memory,
                                           std::optional<uint64_t> cfa) {
  if (size > 1024) return std::nullopt;
  std::vector<uint8_t> bytes(size);
  if (!image.source().Read(offset, bytes.data(), size)) return std::nullopt;
  DwarfCursor in(bytes, 0);
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

}  // namespace headrace::probes::stack
