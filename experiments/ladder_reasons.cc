#include "experiments/ladder_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "base/units.h"
#include "dashboards/characterization.h"

namespace headrace::experiments {
namespace {

using dashboards::FactorText;
using Parts = const std::map<std::string, double>& (*)(const RowAccounts&);

// What changed in the CPU time of a row, by operator.
std::string ExplainCpu(const RungRuns& before, const RungRuns& after, double ratio,
                       const PublishedFactor* published, Parts parts,
                       double (*whole)(const RowAccounts&)) {
  std::set<std::string> names;
  for (const RungRuns* runs : {&before, &after})
    for (const RowAccounts& run : *runs)
      for (const auto& [name, us] : parts(run)) names.insert(name);
  const auto time_of = [&](const RungRuns& runs, const std::string& name) {
    return MedianOf(runs, [&](const RowAccounts& run) {
      const auto found = parts(run).find(name);
      return found != parts(run).end() ? found->second : 0.0;
    });
  };
  std::vector<std::pair<double, std::string>> deltas;
  for (const std::string& name : names)
    deltas.emplace_back(time_of(after, name) - time_of(before, name), name);
  std::stable_sort(deltas.begin(), deltas.end(), [](const auto& a, const auto& b) {
    return std::abs(a.first) > std::abs(b.first);
  });
  const double was = MedianOf(before, whole) * 1e6, is = MedianOf(after, whole) * 1e6;
  std::string told;
  for (size_t i = 0; i < deltas.size() && i < 3; ++i) {
    if (std::abs(deltas[i].first) < 0.02 * was) continue;
    told += fmt::format("{}{} {:.1f} -> {:.1f}", told.empty() ? "" : ", ", deltas[i].second,
                        time_of(before, deltas[i].second), time_of(after, deltas[i].second));
  }
  std::string text = fmt::format("CPU a row {:.1f} -> {:.1f} us ({})", was, is,
                                 told.empty() ? "no operator by 2 % of it" : told);
  if (published == nullptr || (published->low * 0.9 <= ratio && ratio <= published->high * 1.1))
    return text;
  const double aim = ratio < published->low ? published->low : published->high;
  std::vector<std::string> untouched;
  double rest = 0;
  for (const auto& [delta, name] : deltas) {
    const double time = time_of(before, name);
    if (std::abs(delta) >= 0.05 * time) continue;
    untouched.push_back(name);
    rest += time;
  }
  std::sort(untouched.begin(), untouched.end());
  text += fmt::format("; x{} would be {:.1f} us", FactorText(aim), was / aim);
  if (!untouched.empty() && was - rest > 0 && is - rest > 0)
    text += fmt::format("; {} (each changed by less than 5 %) take {:.1f} us: without them x{}",
                        fmt::join(untouched, ", "), rest, FactorText((was - rest) / (is - rest)));
  return text;
}

}  // namespace

std::string ExplainReaderCpu(const RungRuns& before, const RungRuns& after, double ratio,
                             const PublishedFactor* published) {
  return ExplainCpu(
      before, after, ratio, published,
      [](const RowAccounts& run) -> const std::map<std::string, double>& { return run.operators; },
      [](const RowAccounts& run) { return run.reader_cpu_s; });
}

std::string ExplainTrainerCpu(const RungRuns& before, const RungRuns& after, double ratio,
                              const PublishedFactor* published) {
  return ExplainCpu(
      before, after, ratio, published,
      [](const RowAccounts& run) -> const std::map<std::string, double>& { return run.trainer; },
      [](const RowAccounts& run) { return run.trainer_cpu_s; });
}

std::string ExplainStorage(const RowAccounts& a, const RowAccounts& b, double ratio,
                           const PublishedFactor* published) {
  std::string text = fmt::format(
      "requests per 1000 rows {:.1f} -> {:.1f}, of {:.0f} -> {:.0f} KB; read {:.0f} -> {:.0f} B a "
      "row, over-read {} -> {} of it; head moves {} -> {} of the disk's time",
      a.requests * 1e3, b.requests * 1e3, a.read_bytes / a.requests / 1e3,
      b.read_bytes / b.requests / 1e3, a.read_bytes, b.read_bytes, FormatPercent(a.OverRead()),
      FormatPercent(b.OverRead()), FormatPercent(a.Seeking()), FormatPercent(b.Seeking()));
  if (published == nullptr || !a.disk_s || !b.disk_s ||
      (published->low * 0.9 <= ratio && ratio <= published->high / 0.9))
    return text;
  if (b.OverRead() > 0.01)
    text += fmt::format(
        "; with these moves and no over-read x{}",
        FactorText(*a.disk_s / (*b.disk_s - b.read_bytes * b.OverRead() / kDiskBytesPerS)));
  const double aim = published->low, left = *a.disk_s / aim - b.read_bytes / kDiskBytesPerS;
  if (left > 0)
    return text + fmt::format("; x{} would be {:.1f} moves per 1000 rows, not {:.1f}",
                              FactorText(aim), left / kDiskSeekS * 1e3,
                              *b.disk_s * b.Seeking() / kDiskSeekS * 1e3);
  return text + fmt::format(
                    "; x{} cannot be reached by fewer requests: the bytes alone take {:.1f} "
                    "us a row, x{}",
                    FactorText(aim), b.read_bytes / kDiskBytesPerS * 1e6,
                    FactorText(*a.disk_s * kDiskBytesPerS / b.read_bytes));
}

std::string ExplainMemory(const RungRuns& before, const RungRuns& after, const MemoryBudget& budget,
                          int cores) {
  std::string text = fmt::format(
      "a worker on {} cores, batches of a stripe -> small ones that are joined elsewhere, within "
      "{}, {} of what {} takes where nothing bounds it",
      cores, FormatBytes(budget.bytes), FormatPercent(budget.bytes / budget.unbounded_bytes),
      budget.unbounded_rung);
  const auto both = [&](const char* what, std::optional<double> RowAccounts::*figure,
                        std::string (*words)(double)) {
    const auto known = [&](const RowAccounts& run) { return (run.*figure).has_value(); };
    if (!std::all_of(before.begin(), before.end(), known) ||
        !std::all_of(after.begin(), after.end(), known))
      return;
    const auto middle = [&](const RungRuns& runs) {
      return words(MedianOf(runs, [&](const RowAccounts& run) { return *(run.*figure); }));
    };
    text += fmt::format("; {} {} -> {}", what, middle(before), middle(after));
  };
  both("the source waits for memory", &RowAccounts::held_ratio,
       [](double ratio) { return FormatPercent(ratio) + " of its time"; });
  both("most resident", &RowAccounts::peak_bytes, [](double bytes) { return FormatBytes(bytes); });
  return text;
}

std::string ExplainBytes(const RowAccounts& a, const RowAccounts& b) {
  return fmt::format(
      "the projected streams are {:.0f} -> {:.0f} B a row uncompressed, {:.0f} -> {:.0f} B stored "
      "(compression {:.2f} -> {:.2f}): without over-read x{}",
      a.plain_bytes, b.plain_bytes, a.wanted_bytes, b.wanted_bytes, a.plain_bytes / a.wanted_bytes,
      b.plain_bytes / b.wanted_bytes, FactorText(b.wanted_bytes / a.wanted_bytes));
}

}  // namespace headrace::experiments
