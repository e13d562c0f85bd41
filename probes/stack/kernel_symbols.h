// KernelSymbols: the kernel's names by address, for all in this process who need them.
#pragma once
#include <future>
#include <memory>

#include "probes/host.h"
#include "probes/stack/symbol_list.h"

namespace headrace::probes::stack {

// From /proc/kallsyms: read once for all who hold them at the same time, in a thread of its own,
// which takes some 60 ms.
class KernelSymbols {
 public:
  // Those that others hold, or new ones, whose reading begins here.
  static std::shared_ptr<KernelSymbols> Expect(const Host& host);
  // Waits until they are read. Empty where the kernel hides its addresses.
  const SymbolList& Get() { return list_.get(); }

 private:
  explicit KernelSymbols(const Host& host);
  std::shared_future<SymbolList> list_;
};

}  // namespace headrace::probes::stack
