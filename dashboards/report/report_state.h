// The verdict of a report in one word: `verdict.state` of its JSON, for programs. The list stands
// in docs/schema/report.schema.json and docs/report.md too, and a test holds them together.
#pragma once
#include <cstdint>

#include "analysis/model/bottleneck.h"

namespace headrace::dashboards {

enum class ReportState : uint8_t {
  kLimited,                 // something limits, and it is named
  kConsumerBound,           // the trainer limits
  kConsumerBoundOrLoading,  // seen from outside: its thread also loads, which cannot be told apart
  kBalanced,                // two things limit together
  kUndecided,               // the recording does not decide it
  kWithheld                 // nothing is said; `reason` says why
};
inline constexpr ReportState kReportStates[] = {
    ReportState::kLimited,  ReportState::kConsumerBound, ReportState::kConsumerBoundOrLoading,
    ReportState::kBalanced, ReportState::kUndecided,     ReportState::kWithheld};

const char* ReportStateName(ReportState state);
ReportState StateOf(analysis::Verdict verdict);

}  // namespace headrace::dashboards
