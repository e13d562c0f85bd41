#include "probes/stack/unwind.h"

#include <elf.h>

#include "probes/stack/dwarf_expression.h"

namespace headrace::probes::stack {
namespace {

constexpr uint64_t kAArch64Bits = 0x0000'ffff'ffff'ffff;  // without pointer authentication codes

int StackRegister(uint16_t machine) { return machine == EM_AARCH64 ? 31 : 7; }
int FrameRegister(uint16_t machine) { return machine == EM_AARCH64 ? 29 : 6; }

// One step with a rule; false at the end. `complete` is set where the stack ends in order.
bool Step(const ElfImage& image, const UnwindRule& rule, const StackCopy& stack,
          Registers* registers, bool* complete) {
  using Kind = UnwindRule::Kind;
  std::optional<uint64_t> cfa;
  if (rule.cfa_is_expression) {
    cfa = EvaluateExpression(image, static_cast<uint64_t>(rule.cfa_offset), rule.cfa_size,
                             *registers, stack, std::nullopt);
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
        value = EvaluateExpression(image, static_cast<uint64_t>(r.offset), r.size, *registers,
                                   stack, cfa);
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
