#include "dashboards/report/report_state.h"

namespace headrace::dashboards {

const char* ReportStateName(ReportState state) {
  switch (state) {
    case ReportState::kLimited:
      return "limited";
    case ReportState::kConsumerBound:
      return "consumer bound";
    case ReportState::kConsumerBoundOrLoading:
      return "consumer bound or loading";
    case ReportState::kBalanced:
      return "balanced";
    case ReportState::kUndecided:
      return "undecided";
    case ReportState::kWithheld:
      break;
  }
  return "withheld";
}

ReportState StateOf(analysis::Verdict verdict) {
  switch (verdict) {
    case analysis::Verdict::kLimited:
      return ReportState::kLimited;
    case analysis::Verdict::kConsumer:
      return ReportState::kConsumerBound;
    case analysis::Verdict::kBalanced:
      return ReportState::kBalanced;
    case analysis::Verdict::kUndecided:
      break;
  }
  return ReportState::kUndecided;
}

}  // namespace headrace::dashboards
