// Sampled stacks of two runs in one tree: which code takes more time for a row, and which less.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "dashboards/pages/card_json.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/pages/short_number.h"
#include "dashboards/pages/stack_tree.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastShareOfBoth = 0.001;
constexpr double kRows = 1000;  // that times are of

struct Compared {
  int64_t id = 0;
  std::string name;
  double rows = 0;
  // What a sampled nanosecond counts, so that runs of other lengths compare.
  double scale = 0;
};

Compared ReadCompared(collectors::ReadStore& store, int64_t id) {
  const collectors::SqlResult found = store.Query(
      "SELECT r.name, s.rows_count FROM run_summary AS r LEFT JOIN step_summary AS s USING "
      "(run_id) WHERE r.run_id = ?1",
      {id});
  if (found.rows.empty())
    throw Error(ExitCode::kUsage, "there is no run " + std::to_string(id), "with",
                "name a run of this database");
  const std::string name = Printable(TextOf(found.rows[0][0]), 60);
  return {id, name.empty() ? "run " + std::to_string(id) : name, RealOf(found.rows[0][1]), 0};
}

// Without one it is compared with itself.
int64_t OtherRun(const PageQuery& query, int64_t own) {
  const std::string text = query.Text("with", std::to_string(own));
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0)
    throw Error(ExitCode::kUsage, "'" + Printable(text, 40) + "' is not the number of a run",
                "with", "ask as with=7");
  return id;
}

// By time of the run that is looked at, then of the other, so that what is gone stands at the end.
Json DiffJson(const StackNode& node, const double (&scale)[2], double least) {
  std::vector<std::pair<std::pair<double, double>, size_t>> order;
  for (const auto& [frame, child] : node.children) {
    const double now = child.ns[1] * scale[1], before = child.ns[0] * scale[0];
    if (std::max(now, before) >= least) order.push_back({{now, before}, frame});
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  Json list = Json::array();
  for (const auto& [time, frame] : order) {
    Json entry = {frame, ShortNumber(time.first / 1e9), ShortNumber(time.second / 1e9)};
    Json below = DiffJson(node.children.at(frame), scale, least);
    if (!below.empty()) entry.push_back(std::move(below));
    list.push_back(std::move(entry));
  }
  return list;
}

struct ChangedOperator {
  std::string name;
  double change_ns = 0;
};

ChangedOperator MostChanged(const StackNode& root, const FrameNames& frames,
                            const double (&scale)[2]) {
  ChangedOperator most;
  for (const auto& [stage, below] : root.children) {
    for (const auto& [op, node] : below.children) {
      const double change = node.ns[1] * scale[1] - node.ns[0] * scale[0];
      if (std::abs(change) > std::abs(most.change_ns)) most = {frames.names()[op], change};
    }
  }
  return most;
}

Card DiffCard(const StackKind& kind, const Compared& before, const Compared& now,
              const StackNode& root, const ChangedOperator& most, bool by_row) {
  Card card;
  card.question = fmt::format("Which code takes other time than in {}?", before.name);
  card.read = {
      "Width is the time in this run or in the other one, whichever is longer. Red takes more "
      "here, blue less. The change stands in the frame.",
      by_row
          ? "Times are for 1000 rows that reached the trainer, so that the length of a run does "
            "not matter."
          : "Not both runs have a trainer that counts rows: times are shares of what was sampled "
            "in each run."};
  card.sql = fmt::format(
      "SELECT run_id, stage, operator, folded, SUM(time_ns) AS time_ns FROM stack_summary WHERE "
      "run_id IN ({}, {{run}}) AND {} GROUP BY run_id, stage, operator, folded ORDER BY time_ns "
      "DESC",
      before.id, kind.where);
  if (root.ns[0] <= 0 || root.ns[1] <= 0) {
    card.empty = fmt::format("No stack was sampled {} in {}.", kind.words,
                             root.ns[1] <= 0 ? now.name : before.name);
    card.command = "headrace doctor";
    return card;
  }
  const double was = root.ns[0] * before.scale, is = root.ns[1] * now.scale;
  const auto change_words = [&] {
    if (most.name.empty()) return std::string();
    const std::string amount =
        by_row ? FormatDuration(std::abs(most.change_ns)) : FormatPercent(std::abs(most.change_ns));
    return fmt::format(" Most changed is {}: {} {}.", most.name, amount,
                       most.change_ns > 0 ? "more" : "less");
  };
  card.answer = by_row
                    ? fmt::format("1000 rows take {} {}, and took {} in {}.{}", FormatDuration(is),
                                  kind.words, FormatDuration(was), before.name, change_words())
                    : fmt::format("Shares of the time {}, against {}.{}", kind.words, before.name,
                                  change_words());
  return card;
}

std::string StacksDiffAnswer(const PageRun& page, const PageQuery& query) {
  const StackKind& kind = FindStackKind(query.Text("kind", "cpu"));
  Compared before = ReadCompared(page.store(), OtherRun(query, page.id()));
  Compared now = ReadCompared(page.store(), page.id());
  if (before.name == now.name && before.id != now.id) {
    for (Compared* run : {&before, &now}) run->name += fmt::format(" (run {})", run->id);
  }
  FrameNames frames;
  StackNode root;
  AddStacks(page.store(), before.id, kind, 0, &frames, &root);
  AddStacks(page.store(), now.id, kind, 1, &frames, &root);
  const bool by_row = before.rows > 0 && now.rows > 0;
  before.scale = by_row ? kRows / before.rows : root.ns[0] > 0 ? 1 / root.ns[0] : 0;
  now.scale = by_row ? kRows / now.rows : root.ns[1] > 0 ? 1 / root.ns[1] : 0;
  const double scale[2] = {before.scale, now.scale};
  const double whole = std::max(root.ns[0] * scale[0], root.ns[1] * scale[1]);
  const ChangedOperator most = MostChanged(root, frames, scale);
  Json kinds = Json::array();
  for (const StackKind& each : kStackKinds) {
    if (HasStacks(page.store(), now.id, each) && HasStacks(page.store(), before.id, each))
      kinds.push_back(each.key);
  }
  // Shares are kept in the same unit as times: 1 s is all.
  const double unit = by_row ? 1 : 1e9;
  const double shown[2] = {scale[0] * unit, scale[1] * unit};
  const Json json = {{"schema", "headrace.stacks_diff/1"},
                     {"card", CardJson(DiffCard(kind, before, now, root, most, by_row), now.id)},
                     {"kind", kind.key},
                     {"kinds", std::move(kinds)},
                     {"of", by_row ? "1000 rows" : "all"},
                     {"with", {{"id", before.id}, {"name", before.name}}},
                     {"now_seconds", ShortNumber(root.ns[1] * shown[1] / 1e9)},
                     {"before_seconds", ShortNumber(root.ns[0] * shown[0] / 1e9)},
                     {"frames", frames.names()},
                     {"roots", DiffJson(root, shown, whole * unit * kLeastShareOfBoth)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HR_PAGE_ANSWER("stacks_diff", {.make = StacksDiffAnswer});

}  // namespace
}  // namespace headrace::dashboards
