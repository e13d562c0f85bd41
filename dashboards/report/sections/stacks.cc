// Where the time of threads goes by function: the top frames of sampled stacks.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/units.h"
#include "dashboards/report/measured.h"
#include "dashboards/report/report.h"
#include "dashboards/report/wording.h"

namespace headrace::dashboards {
namespace {

using analysis::StackRow;

constexpr size_t kMostFrames = 4, kMostFrame = 32, kMostText = 50;  // so that tables fit
constexpr size_t kMostStacks = 100;

// The innermost frames, caller first; the kernel's are taken together as one.
std::string Top(const std::string& folded) {
  std::vector<std::string> frames;
  size_t begin = 0;
  while (begin <= folded.size()) {
    const size_t end = std::min(folded.find(';', begin), folded.size());
    std::string frame = folded.substr(begin, end - begin);
    begin = end + 1;
    if (frame.empty()) continue;
    const bool kernel = frame.ends_with("_[k]");
    const bool was_kernel = !frames.empty() && frames.back() == "[kernel]";
    if (kernel && was_kernel) continue;
    frames.push_back(kernel ? "[kernel]" : frame);
  }
  std::string text;
  for (size_t i = frames.size(), taken = 0; i > 0 && taken < kMostFrames; --i, ++taken) {
    std::string frame = frames[i - 1];
    if (frame.size() > kMostFrame) frame.replace(kMostFrame - 3, std::string::npos, "...");
    if (text.size() + frame.size() > kMostText) break;
    if (!text.empty()) frame += ';';
    text.insert(0, frame);
  }
  return text;
}

std::string StackOwner(const StackRow& stack) {
  if (!stack.operator_name.empty()) return stack.operator_name;
  return stack.thread.empty() ? stack.process : stack.thread;
}

struct StackShare {
  double time_ns = 0;
  int64_t samples = 0;
};
using StackKey = std::tuple<std::string, std::string, std::string>;  // kind, owner, frames

const char* KindWords(const std::string& kind) {
  if (kind == "python") return "busy or waiting";
  return kind == "off_cpu" ? "off CPU" : "on CPU";
}

// The stacks of `kinds`, those of the first kind before the others.
Table StacksTable(const analysis::RunView& run, const std::string& name, const std::string& title,
                  const std::vector<std::string>& kinds) {
  std::map<std::pair<std::string, std::string>, double> totals;  // by kind and owner
  std::map<StackKey, StackShare> shares;
  for (const StackRow& stack : run.stacks) {
    if (std::find(kinds.begin(), kinds.end(), stack.kind) == kinds.end()) continue;
    const std::string owner = StackOwner(stack);
    totals[{stack.kind, owner}] += static_cast<double>(stack.time_ns);
    StackShare& share = shares[{stack.kind, owner, Top(stack.folded)}];
    share.time_ns += static_cast<double>(stack.time_ns);
    share.samples += stack.samples_count;
  }
  std::vector<std::pair<StackKey, StackShare>> order(shares.begin(), shares.end());
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    const bool a_first = std::get<0>(a.first) == kinds[0];
    const bool b_first = std::get<0>(b.first) == kinds[0];
    return a_first != b_first ? a_first : a.second.time_ns > b.second.time_ns;
  });
  Table table{name,
              title,
              {{"owner", "operator or thread"},
               {"kind", "time"},
               {"share_ratio", "of it"},
               {"time_seconds", "stands for"},
               {"samples_count", "samples"},
               {"frames", "frames"}},
              {}};
  table.text_rows = 8;
  for (const auto& [key, share] : order) {
    if (table.rows.size() >= kMostStacks) break;
    const auto& [kind, owner, frames] = key;
    const double total = totals[{kind, owner}];
    table.rows.push_back(
        {owner, KindWords(kind),
         Ratio(total > 0 ? std::optional<double>(share.time_ns / total) : std::nullopt, "no time"),
         Quantity::Of(share.time_ns, Unit::kNanoseconds, Source::kEstimate),
         Number(static_cast<double>(share.samples), Unit::kCount, ""), frames});
  }
  return table;
}

std::optional<Section> Stacks(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"stack_samples", "", {}, {}, {}};
  if (run.stacks.empty()) {
    section.facts.push_back({"unavailable", WhyNot(run, {"stack"})});
    return section;
  }
  section.title = "Functions (innermost frames of sampled stacks)";
  Table python = StacksTable(run, "python", "Python", {"python"});
  if (!python.rows.empty()) section.tables.push_back(std::move(python));
  // On the CPU first: that is what can be made cheaper.
  section.tables.push_back(StacksTable(run, "stacks", "", {"cpu", "off_cpu"}));
  return section;
}

HR_SECTION("stacks", 19, Stacks);

}  // namespace
}  // namespace headrace::dashboards
