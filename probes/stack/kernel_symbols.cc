#include "probes/stack/kernel_symbols.h"

#include <map>
#include <mutex>
#include <string>

namespace headrace::probes::stack {

KernelSymbols::KernelSymbols(const Host& host)
    : list_(std::async(std::launch::async, [host] {
              return SymbolList::FromKallsyms(host.Read("/proc/kallsyms", 64 << 20).value_or(""));
            }).share()) {}

std::shared_ptr<KernelSymbols> KernelSymbols::Expect(const Host& host) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<KernelSymbols>> known;  // by the host's root
  const std::lock_guard lock(mutex);
  std::weak_ptr<KernelSymbols>& held = known[host.root()];
  std::shared_ptr<KernelSymbols> symbols = held.lock();
  if (!symbols) {
    symbols.reset(new KernelSymbols(host));
    held = symbols;
  }
  return symbols;
}

}  // namespace headrace::probes::stack
