// What the event catalogue says of a family of processors: its events, which of them are counted
// together, and what is computed from them.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "probes/perf/backend.h"
#include "probes/perf/cpu_id.h"
#include "probes/perf/expression.h"

namespace headrace::probes::perf {

struct CatalogueEvent {
  std::string_view word;    // what it counts, the same word in all families: "llc_misses"
  EventCode code;           // PERF_TYPE_RAW, or a generic type
  std::string_view libpfm;  // libpfm4's name of it, without the PMU; "" if it has none
  std::string_view note;    // what is special about it here; "" if it is what the word says
};

// A formula may use words of one group, words of the base group (whose events count all the time,
// so they cover the same interval), and "slots_per_cycle".
struct Formula {
  std::string_view metric;  // of the list in metric.h, a ratio
  Expression expression;
  bool share = true;      // lies between 0 and 1
  std::string_view note;  // "" if there is nothing to add

  // Shares are clamped to [0, 1]; nothing for a share that is off by more than 0.1, because it is
  // damaged.
  std::optional<double> Evaluate(const Expression::Lookup& value_of) const;
};

// Events that are always counted together. None needs more than four general counters.
struct CatalogueGroup {
  std::string_view name;                // "base", "branches", "llc", "topdown", ...
  std::vector<std::string_view> words;  // the first one leads
  std::vector<Formula> formulas;        // can be computed while the group counts
  bool whole = false;                   // useless unless all its events count, so never split
};

struct CpuFamily {
  std::string_view name;  // "Intel Sapphire Rapids"
  bool (*matches)(const CpuId&) = nullptr;
  std::string_view libpfm;  // libpfm4's PMU; "" if version 4.13 does not know it
  std::vector<CatalogueEvent> events;
  std::vector<CatalogueGroup> groups;  // groups[0] is the base: cycles, instructions
  double slots_per_cycle = 0;          // for top-down; 0: none, or given by the PMU (caps/slots)
  bool generic = false;                // the kernel's generic events, for an unknown processor
  std::string_view note;

  const CatalogueEvent* Find(std::string_view word) const;  // null if it has none
};

}  // namespace headrace::probes::perf
