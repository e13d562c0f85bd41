// Fuzzes what the stack sampler reads of files it does not trust. The last byte chooses: ELF
// symbols and unwind tables (most values), the text of maps, perf maps and kernel symbols, perf
// records, the text of py-spy.
//
// fuzz run: share=4 length=65536
// fuzz layers: base
// fuzz libs: fmt::fmt
// fuzz sources: probes/stack/byte_source.cc probes/stack/dwarf_expression.cc
// fuzz sources: probes/stack/elf_image.cc probes/stack/perf_ring.cc probes/stack/process_maps.cc
// fuzz sources: probes/stack/py_spy_text.cc probes/stack/registers.cc probes/stack/symbol_list.cc
// fuzz sources: probes/stack/unwind.cc probes/stack/unwind_rule.cc probes/host.cc
#include <cstdint>
#include <string>

#include "base/check.h"
#include "probes/stack/elf_image.h"
#include "probes/stack/perf_ring.h"
#include "probes/stack/process_maps.h"
#include "probes/stack/py_spy_text.h"
#include "probes/stack/symbol_list.h"
#include "probes/stack/unwind.h"

namespace {

using namespace headrace::probes::stack;

void AskElf(std::string bytes) {
  const size_t size = bytes.size();
  auto read = ElfImage::Read(std::make_shared<MemorySource>(std::move(bytes)));
  if (!read) return;
  const auto image = std::make_shared<ElfImage>(std::move(*read));
  Unwinder unwinder(64);
  std::vector<uint8_t> memory(256);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 7);
  const size_t step = size / 64 + 1;
  for (uint64_t at = 0; at < size; at += step) {
    const auto address = image->AddressOf(at);
    if (!address) continue;
    if (const auto function = image->FindFunction(*address)) {
      HR_CHECK(!function->name.empty() && function->name.size() <= 1024, "a name has a length");
    }
    Registers registers;
    registers.pc = *address;
    for (int r = 0; r < kNumRegisters; ++r) registers.Set(r, 0x1000);
    const auto stack = unwinder.Unwind(registers, {0x1000, memory}, [&](uint64_t) {
      return LoadedImage{image, 0};
    });
    HR_CHECK(!stack.addresses.empty() && stack.addresses.size() <= 127, "frames are limited");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data), size - 1);
  switch (data[size - 1]) {
    case 1:
      for (const Mapping& m : ParseMaps(bytes)) HR_CHECK(m.start < m.end, "a mapping has a size");
      break;
    case 2:
      SymbolList::FromPerfMap(bytes).Find(0x1000);
      break;
    case 3:
      SymbolList::FromKallsyms(bytes).Find(0x1000);
      break;
    case 4:
      ParsePerfSample({data, size - 1}, {99, true, false, 0});
      break;
    case 5:
      ParsePerfSample({data, size - 1}, {99, true, false, 256});
      break;
    case 6:
      for (const PythonStack& stack : ParsePySpyText(bytes).stacks) {
        HR_CHECK(stack.samples > 0 && !stack.frames.empty(), "a stack has samples and frames");
        HR_CHECK(stack.frames.find('\n') == std::string::npos, "no control characters");
      }
      break;
    default:
      AskElf(bytes);
  }
  return 0;
}
