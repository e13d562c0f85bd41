// Sampled stacks as a tree: stage, operator, then frames, each with its time.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "dashboards/pages/page_run.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/pages/stack_tree.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastShare = 0.001;  // of all time; thinner than a pixel

Json TreeJson(const StackNode& node, double least_ns) {
  std::vector<std::pair<double, size_t>> order;
  for (const auto& [frame, child] : node.children) {
    if (child.ns[0] >= least_ns) order.push_back({child.ns[0], frame});
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

std::string StacksAnswer(const PageRun& page, const PageQuery& query) {
  Json kinds = Json::array();
  std::string first;
  for (const StackKind& kind : kStackKinds) {
    if (!HasStacks(page.store(), page.id(), kind)) continue;
    kinds.push_back(kind.key);
    if (first.empty()) first = kind.key;
  }
  const StackKind& kind = FindStackKind(query.Text("kind", first.empty() ? "cpu" : first));
  FrameNames frames;
  StackNode root;
  AddStacks(page.store(), page.id(), kind, 0, &frames, &root);
  const Json roots = TreeJson(root, root.ns[0] * kLeastShare);
  const Json json = {
      {"schema", "headrace.stacks/1"}, {"kind", kind.key},
      {"kinds", std::move(kinds)},     {"total_seconds", ShortNumber(root.ns[0] / 1e9)},
      {"frames", frames.names()},      {"roots", roots}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("stacks", {.make = StacksAnswer, .in_file = true});

}  // namespace
}  // namespace headrace::dashboards
