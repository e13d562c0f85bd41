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

std::optional<Section> Stacks(const analysis::RunView& run, const analysis::Statements&) {
  Section section{"stack_samples", "", {}, {}, {}};
  if (run.stacks.empty()) {
    section.facts.push_back({"unavailable", WhyNot(run, {"stack"})});
    return section;
  }
  section.title = "Functions (innermost frames of sampled stacks)";
  struct Entry {
    double time_ns = 0;
    int64_t samples = 0;
  };
  std::map<std::pair<std::string, std::string>, double> totals;  // kind, owner
  std::map<std::tuple<std::string, std::string, std::string>, Entry> entries;
  for (const StackRow& stack : run.stacks) {
    const std::string owner = StackOwner(stack);
    totals[{stack.kind, owner}] += static_cast<double>(stack.time_ns);
    Entry& entry = entries[{stack.kind, owner, Top(stack.folded)}];
    entry.time_ns += static_cast<double>(stack.time_ns);
    entry.samples += stack.samples_count;
  }
  Table table{"stacks",
              "",
              {{"owner", "operator or thread"},
               {"kind", "time"},
               {"share_ratio", "of it"},
               {"time_seconds", "stands for"},
               {"samples_count", "samples"},
               {"frames", "frames"}},
              {}};
  table.text_rows = 8;
  std::vector<std::pair<double, std::vector<Value>>> rows;
  for (const auto& [key, entry] : entries) {
    const auto& [kind, owner, frames] = key;
    const double total = totals[{kind, owner}];
    rows.push_back(
        {entry.time_ns,
         {owner, kind == "off_cpu" ? "off CPU" : "on CPU",
          Ratio(total > 0 ? std::optional<double>(entry.time_ns / total) : std::nullopt, "no time"),
          Quantity::Of(entry.time_ns, Unit::kNanoseconds, Source::kEstimate),
          Number(static_cast<double>(entry.samples), Unit::kCount, ""), frames}});
  }
  // On the CPU first: that is what can be made cheaper.
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    const bool a_on = std::get<std::string>(a.second[1]) == "on CPU";
    const bool b_on = std::get<std::string>(b.second[1]) == "on CPU";
    if (a_on != b_on) return a_on;
    return a.first > b.first;
  });
  for (auto& [time, row] : rows) {
    if (table.rows.size() < 100) table.rows.push_back(std::move(row));
  }
  section.tables.push_back(std::move(table));
  return section;
}

HR_SECTION("stacks", 19, Stacks);

}  // namespace
}  // namespace headrace::dashboards
