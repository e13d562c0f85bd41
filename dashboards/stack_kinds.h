// What threads did while their stacks were sampled: the kinds that pages, reports and exports show.
#pragma once
#include <string>

namespace headrace::dashboards {

struct StackKind {
  const char* key;    // as in --kind and in the address of a page
  const char* where;  // of view stack_summary
  const char* words;  // "on a core"
  const char* tool;   // the name of its profile in other tools
};
inline constexpr StackKind kStackKinds[] = {
    {"cpu", "kind = 'cpu'", "on a core", "on a CPU"},
    {"off_cpu", "kind = 'off_cpu' AND class = 'inside'", "blocked inside an operator",
     "blocked inside operators"},
    {"waiting", "kind = 'off_cpu' AND class <> 'inside'", "waiting for others",
     "waiting at queues or outside operators"},
    {"python", "kind = 'python'", "in Python functions", "Python functions, busy or waiting"}};

// "cpu, off_cpu, ...": all keys.
std::string StackKindKeys();
// Throws Error kUsage, which lists the keys, for another one.
const StackKind& FindStackKind(const std::string& key);

}  // namespace headrace::dashboards
