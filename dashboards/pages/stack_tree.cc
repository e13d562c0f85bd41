#include "dashboards/pages/stack_tree.h"

#include "base/terminal_text.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

constexpr size_t kMostDepth = 200;

// The frames of a folded text, without the thread group that it begins with.
void AppendFrames(const std::string& folded, std::vector<std::string>* path) {
  size_t begin = folded.find(';');
  while (begin != std::string::npos && path->size() < kMostDepth) {
    const size_t end = folded.find(';', begin + 1);
    std::string frame = folded.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
    if (!frame.empty()) path->push_back(Printable(frame, 400));
    begin = end;
  }
}

}  // namespace

bool HasStacks(collectors::ReadStore& store, int64_t run_id, const StackKind& kind) {
  return !store
              .Query(std::string("SELECT 1 FROM stack_summary WHERE run_id = ?1 AND ") +
                         kind.where + " LIMIT 1",
                     {run_id})
              .rows.empty();
}

size_t FrameNames::Of(std::string_view frame) {
  const auto [found, inserted] = index_.emplace(std::string(frame), names_.size());
  if (inserted) names_.push_back(found->first);
  return found->second;
}

void AddStacks(collectors::ReadStore& store, int64_t run_id, const StackKind& kind, size_t side,
               FrameNames* frames, StackNode* root) {
  const collectors::SqlResult rows = store.Query(
      std::string("SELECT stage, operator, thread, folded, SUM(time_ns) FROM stack_summary WHERE "
                  "run_id = ?1 AND ") +
          kind.where + " GROUP BY 1, 2, 3, 4",
      {run_id});
  for (const auto& row : rows.rows) {
    const std::string stage = TextOf(row[0]), op = TextOf(row[1]);
    std::vector<std::string> path = {op.empty()      ? "outside operators"
                                     : stage.empty() ? "no stage"
                                                     : Printable(stage),
                                     op.empty() ? Printable(TextOf(row[2])) : Printable(op)};
    AppendFrames(TextOf(row[3]), &path);
    const double ns = RealOf(row[4]);
    StackNode* node = root;
    node->ns[side] += ns;
    for (const std::string& frame : path) {
      node = &node->children[frames->Of(frame)];
      node->ns[side] += ns;
    }
  }
}

}  // namespace headrace::dashboards
