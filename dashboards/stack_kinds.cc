#include "dashboards/stack_kinds.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/terminal_text.h"

namespace headrace::dashboards {

std::string StackKindKeys() {
  std::string keys;
  for (const StackKind& kind : kStackKinds) {
    if (!keys.empty()) keys += ", ";
    keys += kind.key;
  }
  return keys;
}

const StackKind& FindStackKind(const std::string& key) {
  const auto* kind = std::find_if(std::begin(kStackKinds), std::end(kStackKinds),
                                  [&](const StackKind& each) { return key == each.key; });
  if (kind == std::end(kStackKinds)) {
    throw Error(ExitCode::kUsage, "no stacks are called '" + Printable(key, 40) + "'", "kind",
                "kinds: " + StackKindKeys());
  }
  return *kind;
}

}  // namespace headrace::dashboards
