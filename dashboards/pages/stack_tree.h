// Sampled stacks of runs as one tree: stage, operator, then frames, each with its time in each run.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collectors/store/read_store.h"
#include "dashboards/stack_kinds.h"

namespace headrace::dashboards {

// Whether the run has stacks of that kind. Throws Error as ReadStore::Query.
bool HasStacks(collectors::ReadStore& store, int64_t run_id, const StackKind& kind);

class FrameNames {
 public:
  // Adds the name where it is new; returns its index in names().
  size_t Of(std::string_view frame);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, size_t> index_;
  std::vector<std::string> names_;
};

struct StackNode {
  std::array<double, 2> ns = {};  // of the first and the second run
  std::map<size_t, StackNode> children;
};

// Adds the stacks of a run to the tree as those of `side`, 0 or 1; times in ns. Throws Error as
// ReadStore::Query.
void AddStacks(collectors::ReadStore& store, int64_t run_id, const StackKind& kind, size_t side,
               FrameNames* frames, StackNode* root);

}  // namespace headrace::dashboards
