// What the page of a comparison says beside its figures, found in the runs that were compared: who
// else used the machine, which runs stand out, what causes the change, what a gate makes of it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/comparison/comparability.h"
#include "analysis/comparison/comparison.h"
#include "analysis/run/run_slice.h"
#include "analysis/run/run_view.h"
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
  // Of two parts of one run: the command that shows the later one; may be empty.
  std::string look;
  // What limits each side, where a side is one run or a part of one: "decode (probability 0.98)".
  std::string a_limit, b_limit;
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

// The runs of both sides, in the order of the samples; a run of which blocks are compared is here
// once.
struct ComparedRuns {
  std::vector<analysis::RunView> a, b;
  // Of which part of its one run a side is; none: of all of it.
  std::optional<analysis::RunTimes> a_times = std::nullopt, b_times = std::nullopt;

  // Whether the sides are two parts of one run.
  bool of_one_run() const;
};

// Adds what each gate says of the comparison, after those that are there.
void NoteGates(const std::vector<analysis::Gate>& gates, const analysis::Comparison& comparison,
               ComparisonNotes* notes);

// Says what is the same on both sides and what is not, besides what makes them two sides: the
// pipeline, its settings, the program.
void NoteConditions(const analysis::Comparability& found, const ComparedRuns& views,
                    ComparisonNotes* notes);

// Names runs that differ strongly from the others, with what was recorded about them. Only for
// pairs: with other units a side has no order that shows what is usual.
void NoteOutliers(const analysis::ComparisonInput& input, const analysis::Comparison& comparison,
                  const ComparedRuns& views, ComparisonNotes* notes);

// Says whether others used so much of the machine that it shows in the figures. `first`: the
// question asked.
void NoteOtherLoad(const ComparedRuns& views, analysis::ComparedUnit unit,
                   const analysis::ComparedMetric& first, ComparisonNotes* notes);

// Says what limits each side, where each is one run or a part of one.
void NoteLimits(const ComparedRuns& views, ComparisonNotes* notes);

// Says which operators carry the change between the sides, and returns the page's part about it.
// None: there is no change to explain, or nothing can be said.
std::optional<Section> NoteWhy(const analysis::Comparison& comparison, const ComparedRuns& views,
                               analysis::ComparedUnit unit, ComparisonNotes* notes);

}  // namespace headrace::dashboards
