// The event catalogue: for each family of processors, which raw event a word such as "llc_misses"
// stands for, which events are counted together, and what is computed from them.
//
// The encodings are our own and each was checked against a second table (a test compares all of
// them with libpfm4's, and names those where libpfm4 is wrong). What could not be checked is left
// out. A processor that is not in the catalogue gets the kernel's generic events, marked as such.
// docs/events.md is written from this catalogue.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/host.h"
#include "probes/perf/backend.h"
#include "probes/perf/cpu_id.h"

namespace headrace::probes::perf {

struct CatalogueEvent {
  std::string_view word;    // what it counts, the same word in all families: "llc_misses"
  EventCode code;           // PERF_TYPE_RAW, or a generic type
  std::string_view libpfm;  // libpfm4's name of it, without the PMU; "" if it has none
  std::string_view note;    // what is special about it here; "" if it is what the word says
};

// The metric of a word's count; nothing for words that only formulas use.
std::optional<std::string_view> MetricOfWord(std::string_view word);

// Arithmetic over words: numbers, words, + - * / and brackets.
class Expression {
 public:
  // Aborts if `text` is not an expression, because expressions are part of the program.
  explicit Expression(std::string_view text);

  using Lookup = std::function<std::optional<double>(std::string_view word)>;
  // Nothing if a word has no value, or for a division by 0.
  std::optional<double> Evaluate(const Lookup& value_of) const;
  std::string_view text() const { return text_; }
  const std::vector<std::string_view>& words() const { return words_; }  // each once

 private:
  struct Step {  // reverse Polish: '#' a number, 'w' a word, else an operator
    char kind;
    double number = 0;
    size_t word = 0;
  };
  std::string_view text_;
  std::vector<Step> steps_;
  std::vector<std::string_view> words_;
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

// All families; the last is the generic one.
const std::vector<CpuFamily>& Catalogue();
// Never fails: the generic family for a processor that is in none.
const CpuFamily& FindFamily(const CpuId& id);

// Slots per cycle of this machine: the family's, else what the PMU's caps/slots says (Arm).
std::optional<double> SlotsPerCycle(const CpuFamily& family, const Host& host);

// The catalogue as a page of documentation (Markdown).
std::string CatalogueDocument();

}  // namespace headrace::probes::perf
