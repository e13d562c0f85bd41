// The page of a comparison: which side is faster, by how much, how sure that is, why, what to do
// next, and what could have been found; then the figures.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/comparison/comparison.h"
#include "dashboards/report/report.h"

namespace headrace::dashboards {

// What the page says beside the figures. The JSON contains all of it, so that a stored comparison
// shows the same page after its runs were removed.
struct ComparisonNotes {
  int64_t comparison_id = 0;  // in the database; 0: not stored
  std::string name;
  int64_t wall_ns = 0;  // 0: the runs were made earlier
  // The command that makes more pairs, without the number of pairs; may be empty.
  std::string repeat;
  std::string end;      // why there are fewer pairs than asked for; empty: there are not
  bool forced = false;  // compared although `differences` advise against it
  std::vector<std::string> differences;  // between the sides' machines, data or ways of running
  std::vector<std::string> same;         // what is known to be equal: "machine", "data"
  std::vector<std::string> outliers;     // a sentence each
  std::string machine;                   // what else the machine did during the runs; may be empty
  std::string why;                       // which operators cause the change; empty: not known
  std::string no_why;                    // the reason why it is not known
  struct GateSaid {
    std::string text, state, why;  // state: "passes", "fails", "undecided"
  };
  std::vector<GateSaid> gates;
};

struct ComparisonPage {
  const analysis::ComparisonInput& input;
  const analysis::Comparison& comparison;
  const ComparisonNotes& notes;
  const Section* attribution = nullptr;  // null: nothing can be said, or the runs are gone
};

// For RenderText and RenderMarkdown.
Report MakeComparisonReport(const ComparisonPage& page);

}  // namespace headrace::dashboards
