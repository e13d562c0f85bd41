// Sampled stacks as a tree: stage, operator, then frames, each with its time.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/terminal_text.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastShare = 0.001;  // of all time; thinner than a pixel
constexpr size_t kMostDepth = 200;

struct Kind {
  const char *key, *where;
};
constexpr Kind kKinds[] = {{"cpu", "kind = 'cpu'"},
                           {"off_cpu", "kind = 'off_cpu' AND class = 'inside'"},
                           {"waiting", "kind = 'off_cpu' AND class <> 'inside'"}};

struct Node {
  double ns = 0;
  std::map<size_t, Node> children;
};

class FrameNames {
 public:
  size_t Of(std::string_view frame) {
    const auto [found, inserted] = index_.emplace(std::string(frame), names_.size());
    if (inserted) names_.push_back(found->first);
    return found->second;
  }
  Json Names() const {
    Json names = Json::array();
    for (const std::string& name : names_) names.push_back(name);
    return names;
  }

 private:
  std::unordered_map<std::string, size_t> index_;
  std::vector<std::string> names_;
};

Json TreeJson(const Node& node, double least_ns) {
  std::vector<std::pair<double, size_t>> order;
  for (const auto& [frame, child] : node.children) {
    if (child.ns >= least_ns) order.push_back({child.ns, frame});
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  Json list = Json::array();
  for (const auto& [ns, frame] : order) {
    Json entry = {frame, ShortNumber(ns / 1e9)};
    Json below = TreeJson(node.children.at(frame), least_ns);
    if (!below.empty()) entry.push_back(std::move(below));
    list.push_back(std::move(entry));
  }
  return list;
}

void AddStack(const std::vector<std::string>& path, double ns, FrameNames* frames, Node* root) {
  Node* node = root;
  node->ns += ns;
  for (const std::string& frame : path) {
    node = &node->children[frames->Of(frame)];
    node->ns += ns;
  }
}

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

std::string StacksAnswer(const PageRun& page, const PageQuery& query) {
  Json kinds = Json::array();
  std::string first;
  for (const Kind& kind : kKinds) {
    const bool any = !page.store()
                          .Query(std::string("SELECT 1 FROM stack_summary WHERE run_id = ?1 AND ") +
                                     kind.where + " LIMIT 1",
                                 {page.id()})
                          .rows.empty();
    if (!any) continue;
    kinds.push_back(kind.key);
    if (first.empty()) first = kind.key;
  }
  const std::string wanted = query.Text("kind", first.empty() ? "cpu" : first);
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const Kind& each) { return wanted == each.key; });
  if (kind == std::end(kKinds)) {
    throw Error(ExitCode::kUsage, "no stacks are called '" + Printable(wanted, 40) + "'", "kind",
                "kinds: cpu, off_cpu, waiting");
  }
  const collectors::SqlResult rows = page.store().Query(
      std::string("SELECT stage, operator, thread, folded, SUM(time_ns), class FROM stack_summary "
                  "WHERE run_id = ?1 AND ") +
          kind->where + " GROUP BY 1, 2, 3, 4",
      {page.id()});
  FrameNames frames;
  Node root;
  for (const auto& row : rows.rows) {
    const std::string stage = TextOf(row[0]), op = TextOf(row[1]);
    std::vector<std::string> path = {op.empty()      ? "outside operators"
                                     : stage.empty() ? "no stage"
                                                     : Printable(stage),
                                     op.empty() ? Printable(TextOf(row[2])) : Printable(op)};
    AppendFrames(TextOf(row[3]), &path);
    AddStack(path, RealOf(row[4]), &frames, &root);
  }
  const Json roots = TreeJson(root, root.ns * kLeastShare);
  const Json json = {{"schema", "headrace.stacks/1"}, {"kind", wanted},
                     {"kinds", std::move(kinds)},     {"total_seconds", ShortNumber(root.ns / 1e9)},
                     {"frames", frames.Names()},      {"roots", roots}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("stacks", {.make = StacksAnswer, .in_file = true});

}  // namespace
}  // namespace headrace::dashboards
