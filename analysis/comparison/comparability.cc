#include "analysis/comparison/comparability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "analysis/thresholds.h"
#include "base/units.h"

namespace headrace::analysis {
namespace {

double Days(int64_t ns) { return static_cast<double>(ns) / (24 * 3600 * 1e9); }

const char* kUnknown = "not known";

std::string OrUnknown(const std::string& text) { return text.empty() ? kUnknown : text; }

// KEY=VALUE, one a line.
std::map<std::string, std::string> SettingsOf(const std::string& text) {
  std::map<std::string, std::string> settings;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return settings;
}

// "decode.parallelism: 1 and 2, source.epochs: of the file and 3"
std::string SettingChanges(const std::string& a, const std::string& b) {
  const auto left = SettingsOf(a), right = SettingsOf(b);
  std::set<std::string> keys;
  for (const auto& [key, value] : left) keys.insert(key);
  for (const auto& [key, value] : right) keys.insert(key);
  const auto value_of = [](const std::map<std::string, std::string>& settings,
                           const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::string("of the file") : found->second;
  };
  std::string text;
  for (const std::string& key : keys) {
    const std::string first = value_of(left, key), second = value_of(right, key);
    if (first == second) continue;
    text += fmt::format("{}{}: {} and {}", text.empty() ? "" : ", ", key, first, second);
  }
  return text;
}

// The first line in which two texts differ, and how many do by position.
std::string LineChanges(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  size_t number = 0, first = 0, changed = 0;
  for (;;) {
    std::string one, other;
    const bool more_left = static_cast<bool>(std::getline(left, one));
    const bool more_right = static_cast<bool>(std::getline(right, other));
    if (!more_left && !more_right) break;
    ++number;
    if (more_left == more_right && one == other) continue;
    if (changed++ == 0) first = number;
  }
  return fmt::format("{} line{}, the first is line {}", changed, changed == 1 ? "" : "s", first);
}

// "Linux 6.18.44-generic" -> "Linux 6.18"
std::string KernelSeries(const std::string& kernel) {
  size_t dots = 0, end = 0;
  while (end < kernel.size() && (kernel[end] != '.' || ++dots < 2)) ++end;
  return kernel.substr(0, end);
}

std::optional<double> Frequency(const RunView& run) {
  for (const MeasurementRow& row : run.measurements) {
    if (row.metric == "cpu_frequency_hertz" && row.cause == "mean" && row.value) return row.value;
  }
  return std::nullopt;
}

class Comparer {
 public:
  Comparer(const RunView& a, const RunView& b, const IntendedDifference& intended)
      : a_(a), b_(b), intended_(intended) {}

  std::vector<ConditionDifference> All() {
    Machine();
    Budget();
    Data();
    Work();
    Recording();
    Times();
    return std::move(found_);
  }

 private:
  static ConditionSeverity RefuseUnless(bool intended) {
    return intended ? ConditionSeverity::kNote : ConditionSeverity::kRefuse;
  }

  void Add(std::string what, std::string a, std::string b, ConditionSeverity severity,
           const std::string& text) {
    found_.push_back({std::move(what), std::move(a), std::move(b), severity, text});
  }

  // Texts: differing, or known of one side alone (then a note).
  void Text(const std::string& what, const std::string& title, const std::string& a,
            const std::string& b, ConditionSeverity severity) {
    if (a == b) return;
    const bool known = !a.empty() && !b.empty();
    Add(what, OrUnknown(a), OrUnknown(b), known ? severity : ConditionSeverity::kNote,
        fmt::format("{}: {} and {}", title, OrUnknown(a), OrUnknown(b)));
  }

  void Machine() {
    const RunRow &a = a_.run, &b = b_.run;
    Text("cpu", "CPU", a.cpu_model, b.cpu_model, ConditionSeverity::kRefuse);
    Text("host", "host", a.hostname, b.hostname, ConditionSeverity::kNote);
    Text("kernel", "kernel", a.kernel, b.kernel,
         KernelSeries(a.kernel) == KernelSeries(b.kernel) ? ConditionSeverity::kNote
                                                          : ConditionSeverity::kRefuse);
    Text("version", "headrace", a.headrace_version, b.headrace_version, ConditionSeverity::kNote);
    const std::optional<double> clock_a = Frequency(a_), clock_b = Frequency(b_);
    if (clock_a && clock_b && *clock_a > 0 && std::abs(*clock_b / *clock_a - 1) > kFrequencyNoted) {
      const std::string first = fmt::format("{:.2f} GHz", *clock_a * 1e-9);
      const std::string second = fmt::format("{:.2f} GHz", *clock_b * 1e-9);
      Add("clock", first, second, ConditionSeverity::kNote,
          fmt::format("the CPUs ran at {} and {}", first, second));
    }
  }

  static std::string Cores(const RunRow& run) {
    if (!run.cores_count) return kUnknown;
    return run.cores_bound_by.empty()
               ? fmt::format("{:.4g}", *run.cores_count)
               : fmt::format("{:.4g} ({})", *run.cores_count, run.cores_bound_by);
  }

  static std::string Memory(const RunRow& run) {
    if (!run.memory_bytes) return kUnknown;
    const std::string bytes = FormatBytes(static_cast<double>(*run.memory_bytes));
    return run.memory_bound_by.empty() ? bytes : fmt::format("{} ({})", bytes, run.memory_bound_by);
  }

  void Budget() {
    const RunRow &a = a_.run, &b = b_.run;
    const std::string cores_a = Cores(a), cores_b = Cores(b);
    if (cores_a != cores_b) {
      const bool differs = a.cores_count && b.cores_count &&
                           std::abs(*a.cores_count - *b.cores_count) >
                               kCoresNoted * std::max(*a.cores_count, *b.cores_count);
      Add("cores", cores_a, cores_b,
          differs ? RefuseUnless(intended_.cores) : ConditionSeverity::kNote,
          fmt::format("cores: {} and {}", cores_a, cores_b));
    }
    // What a run may use decides what the page cache holds; the same machine tells a few pages more
    // or less from boot to boot.
    if (!a.memory_bytes && !b.memory_bytes) return;
    const double bytes_a = static_cast<double>(a.memory_bytes.value_or(0));
    const double bytes_b = static_cast<double>(b.memory_bytes.value_or(0));
    if (std::abs(bytes_a - bytes_b) <= kMemoryNoted * std::max(bytes_a, bytes_b)) return;
    const bool halved = a.memory_bytes && b.memory_bytes &&
                        std::min(bytes_a, bytes_b) < kMemoryRefused * std::max(bytes_a, bytes_b);
    Add("memory", Memory(a), Memory(b),
        halved ? RefuseUnless(intended_.cores) : ConditionSeverity::kNote,
        fmt::format("memory: {} and {}", Memory(a), Memory(b)));
  }

  static std::string Cache(const RunView& run) {
    const std::string state = !run.run.cold ? "" : *run.run.cold != 0 ? "cold, " : "";
    if (run.run.resident_ratio) {
      return fmt::format("{}{:.0f} % of the table in the page cache", state,
                         100 * *run.run.resident_ratio);
    }
    if (!state.empty()) return "cold";
    return kUnknown;
  }

  void Data() {
    const RunRow &a = a_.run, &b = b_.run;
    // A run without a table that tells its conditions has none; one that tells nothing may have.
    if (a.table_text != b.table_text) {
      const auto name = [](const RunRow& run) {
        if (!run.table_text.empty()) return run.table_text;
        return std::string(run.settings_text ? "none" : kUnknown);
      };
      const bool known =
          (a.settings_text || !a.table_text.empty()) && (b.settings_text || !b.table_text.empty());
      Add("table", name(a), name(b),
          known ? RefuseUnless(intended_.table) : ConditionSeverity::kNote,
          fmt::format("different tables, or files that changed: {} and {}", name(a), name(b)));
    }
    const bool cold_differs = a.cold && b.cold && (*a.cold != 0) != (*b.cold != 0);
    const double gap =
        a.resident_ratio && b.resident_ratio ? std::abs(*a.resident_ratio - *b.resident_ratio) : 0;
    const bool one_known = a.resident_ratio.has_value() != b.resident_ratio.has_value();
    if (cold_differs || gap > kCacheNoted || (one_known && !a.table_text.empty())) {
      Add("cache", Cache(a_), Cache(b_),
          cold_differs || gap > kCacheRefused ? RefuseUnless(intended_.cache)
                                              : ConditionSeverity::kNote,
          fmt::format("page cache: {} and {}", Cache(a_), Cache(b_)));
    }
  }

  void Work() {
    const RunRow &a = a_.run, &b = b_.run;
    Text("kind", "kind of run", a.kind, b.kind, ConditionSeverity::kRefuse);
    if (a.pipeline_text != b.pipeline_text) {
      const auto name = [](const RunRow& run) {
        return run.pipeline_text.empty() ? std::string("none") : OrUnknown(run.pipeline_path);
      };
      const bool same_file = a.pipeline_path == b.pipeline_path && !a.pipeline_text.empty() &&
                             !b.pipeline_text.empty();
      Add("pipeline", name(a), name(b), RefuseUnless(intended_.pipeline),
          same_file ? fmt::format("{} changed in between: {}", a.pipeline_path,
                                  LineChanges(a.pipeline_text, b.pipeline_text))
                    : fmt::format("pipeline files: {} and {}", name(a), name(b)));
    }
    if (a.settings_text && b.settings_text && *a.settings_text != *b.settings_text) {
      Add("settings", *a.settings_text, *b.settings_text, RefuseUnless(intended_.pipeline),
          "settings: " + SettingChanges(*a.settings_text, *b.settings_text));
    }
    if (a.program != b.program) {
      Add("program", OrUnknown(a.program), OrUnknown(b.program), RefuseUnless(intended_.pipeline),
          fmt::format("programs: {} and {}", OrUnknown(a.program), OrUnknown(b.program)));
    }
    if (a_.added_work != b_.added_work) {
      const auto name = [](const std::string& work) { return work.empty() ? "none" : work; };
      Add("added work", name(a_.added_work), name(b_.added_work), ConditionSeverity::kRefuse,
          fmt::format("options that add work: {} and {}", name(a_.added_work),
                      name(b_.added_work)));
    }
  }

  void Recording() {
    const RunRow &a = a_.run, &b = b_.run;
    if (a.accounting_level != b.accounting_level) {
      const auto name = [](const RunRow& run) {
        return run.accounting_level == 0 ? std::string("from outside")
                                         : fmt::format("at level {}", run.accounting_level);
      };
      Add("accounting", name(a), name(b), ConditionSeverity::kNote,
          fmt::format("measured {} and {}", name(a), name(b)));
    }
    if (a.deep != b.deep) {
      Add("deep", a.deep ? "--deep" : "without", b.deep ? "--deep" : "without",
          ConditionSeverity::kRefuse, "one run was recorded with --deep, which costs time");
    }
    if (a.ring_ns.has_value() != b.ring_ns.has_value()) {
      Add("ring", a.ring_ns ? "flight recorder" : "all", b.ring_ns ? "flight recorder" : "all",
          ConditionSeverity::kNote, "one run was kept by the flight recorder, in part");
    }
    const auto state = [&](const RunRow& run) {
      if (run.state == "complete" || run.state.empty()) return;
      Add("state", a.state, b.state, ConditionSeverity::kNote,
          fmt::format("run {} is {}", run.run_id, run.state));
    };
    state(a);
    state(b);
  }

  void Times() {
    const RunRow &a = a_.run, &b = b_.run;
    if (a.duration_ns > 0 && b.duration_ns > 0) {
      const double shorter = static_cast<double>(std::min(a.duration_ns, b.duration_ns));
      const double longer = static_cast<double>(std::max(a.duration_ns, b.duration_ns));
      // Commands that end by themselves take what they take: that is their figure.
      if (shorter < kDurationNoted * longer && a.accounting_level > 0 && b.accounting_level > 0) {
        const std::string first = FormatDuration(static_cast<double>(a.duration_ns));
        const std::string second = FormatDuration(static_cast<double>(b.duration_ns));
        Add("duration", first, second, ConditionSeverity::kNote,
            fmt::format("recorded for {} and {}", first, second));
      }
    }
    if (a.started_realtime_ns <= 0 || b.started_realtime_ns <= 0) return;
    const RunRow& first = a.started_realtime_ns <= b.started_realtime_ns ? a : b;
    const RunRow& second = &first == &a ? b : a;
    const int64_t apart = second.started_realtime_ns - first.started_realtime_ns;
    if (a.hostname == b.hostname && a.run_id != b.run_id && apart < first.duration_ns) {
      Add("time", "at once", "at once", ConditionSeverity::kRefuse,
          "the two ran at the same time, and shared the machine");
    } else if (const double days = Days(apart); days > kDaysApartNoted) {
      Add("time", "", "", ConditionSeverity::kNote, fmt::format("made {:.0f} days apart", days));
    }
  }

  const RunView &a_, &b_;
  IntendedDifference intended_;
  std::vector<ConditionDifference> found_;
};

// Any two runs of a host that overlap; days between the first and the last.
void AddTimes(std::span<const RunView* const> a, std::span<const RunView* const> b,
              std::vector<ConditionDifference>* differences) {
  std::vector<const RunRow*> runs;
  for (const RunView* run : a) runs.push_back(&run->run);
  for (const RunView* run : b) runs.push_back(&run->run);
  std::erase_if(runs, [](const RunRow* run) { return run->started_realtime_ns <= 0; });
  std::sort(runs.begin(), runs.end(), [](const RunRow* one, const RunRow* other) {
    return one->started_realtime_ns < other->started_realtime_ns;
  });
  if (runs.size() < 2) return;
  for (size_t i = 0; i + 1 < runs.size(); ++i) {
    const RunRow &one = *runs[i], &next = *runs[i + 1];
    if (one.run_id == next.run_id || one.hostname != next.hostname ||
        next.started_realtime_ns >= one.started_realtime_ns + one.duration_ns) {
      continue;
    }
    differences->push_back(
        {"time", "at once", "at once", ConditionSeverity::kRefuse,
         fmt::format("runs {} and {} ran at the same time, and shared the machine", one.run_id,
                     next.run_id)});
    break;
  }
  const double days = Days(runs.back()->started_realtime_ns - runs.front()->started_realtime_ns);
  if (days > kDaysApartNoted) {
    differences->push_back(
        {"time", "", "", ConditionSeverity::kNote, fmt::format("made over {:.0f} days", days)});
  }
}

void Sort(std::vector<ConditionDifference>* differences) {
  std::stable_sort(differences->begin(), differences->end(),
                   [](const auto& a, const auto& b) { return a.severity > b.severity; });
}

}  // namespace

bool Comparability::refused() const {
  return std::any_of(differences.begin(), differences.end(), [](const auto& difference) {
    return difference.severity == ConditionSeverity::kRefuse;
  });
}

std::string Comparability::Refusal() const {
  std::string text;
  for (const ConditionDifference& difference : differences) {
    if (difference.severity != ConditionSeverity::kRefuse) continue;
    text += (text.empty() ? "not comparable: " : "; ") + difference.text;
  }
  return text;
}

Comparability CompareConditions(const RunView& a, const RunView& b,
                                const IntendedDifference& intended) {
  Comparability result{Comparer(a, b, intended).All()};
  Sort(&result.differences);
  return result;
}

Comparability CompareConditions(std::span<const RunView* const> a,
                                std::span<const RunView* const> b,
                                const IntendedDifference& intended) {
  Comparability result;
  if (a.empty() || b.empty()) return result;
  struct Found {
    ConditionDifference difference;
    bool within = false;
    size_t runs = 1;
  };
  std::vector<Found> found;
  const auto add = [&](const RunView& first, const RunView& run, bool within) {
    const IntendedDifference none{false, false, false, false};
    for (ConditionDifference& difference : Comparer(first, run, within ? none : intended).All()) {
      if (difference.what == "time") continue;  // of all runs together, below
      if (within) {
        difference.text = fmt::format("runs {} and {} of one side: {}", first.run.run_id,
                                      run.run.run_id, difference.text);
      }
      const auto same = std::find_if(found.begin(), found.end(), [&](const Found& other) {
        return other.within == within && other.difference.what == difference.what;
      });
      if (same == found.end()) {
        found.push_back({std::move(difference), within});
        continue;
      }
      ++same->runs;
      if (difference.severity > same->difference.severity) same->difference = difference;
    }
  };
  for (const RunView* run : b) add(*a[0], *run, false);
  for (const RunView* run : a.subspan(1)) add(*a[0], *run, true);
  for (const RunView* run : b.subspan(1)) add(*b[0], *run, true);
  for (Found& one : found) {
    if (one.runs > 1)
      one.difference.text +=
          fmt::format(" (and in {} more run{})", one.runs - 1, one.runs == 2 ? "" : "s");
    result.differences.push_back(std::move(one.difference));
  }
  AddTimes(a, b, &result.differences);
  Sort(&result.differences);
  return result;
}

}  // namespace headrace::analysis
