// Every fixed phrase of the reports, once: grades with their thresholds, advice, and shorthand for
// quantities.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "analysis/advice/statements.h"
#include "analysis/run/run_view.h"
#include "base/quantity.h"

namespace headrace::dashboards {

// Share of a step's time spent waiting for data: under kSmallStall "not", up to kHighStall
// "moderately", above "highly" (analysis/thresholds.def).
enum class Stall : uint8_t { kHardly, kModerate, kHigh };
Stall GradeOf(double stall_ratio);
const char* StallGrade(double stall_ratio);     // "NOT input-bound", "MODERATELY input-bound", ...
const char* StallGradeKey(double stall_ratio);  // "not", "moderate", "high"

// "[44, 48]" in per cent.
std::string PercentInterval(const analysis::Interval& interval);

// The lasting change during a run: what changed, when, by how much, and which part the statements
// are about: "from 12.4 s on decode takes 2.10 times as long a row ..."; empty where nothing did.
std::string DriftText(const analysis::Phases& phases);

// Shorthand: measured by the accounts; a reason where there is nothing.
Quantity Ratio(std::optional<double> value, const std::string& reason);
Quantity Duration(std::optional<double> seconds, const std::string& reason);
Quantity Bytes(std::optional<double> bytes, const std::string& reason);
Quantity Number(std::optional<double> value, Unit unit, const std::string& reason);

}  // namespace headrace::dashboards
