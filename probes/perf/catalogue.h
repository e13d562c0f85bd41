// The event catalogue: for each family of processors, which raw event a word such as "llc_misses"
// stands for, which events are counted together, and what is computed from them (catalogue_entry.h;
// the families are in cpu_families.cc). docs/events.md is written from this catalogue.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/host.h"
#include "probes/perf/catalogue_entry.h"
#include "probes/perf/cpu_id.h"

namespace headrace::probes::perf {

// The metric of a word's count; nothing for words that only formulas use.
std::optional<std::string_view> MetricOfWord(std::string_view word);

// All families; the last is the generic one.
const std::vector<CpuFamily>& Catalogue();
// Never fails: the generic family for a processor that is in none.
const CpuFamily& FindFamily(const CpuId& id);

// Slots per cycle of this machine: the family's, else what the PMU's caps/slots says (Arm).
std::optional<double> SlotsPerCycle(const CpuFamily& family, const Host& host);

// The catalogue as a page of documentation (Markdown).
std::string CatalogueDocument();

}  // namespace headrace::probes::perf
