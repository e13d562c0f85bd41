// FirstPage: what everyone sees first about a run, in at most 24 lines of 80 columns: how much the
// trainer waits, what limits it, how sure that is, what to change, what that gains, and what will
// limit it next. The evidence is in the sections of the report.
//
// It is data: dashboards/render draws it for a terminal, and the formats for files print its lines.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headrace::dashboards {

enum class Severity : uint8_t {
  kNone,      // no verdict, or one that is neither good nor bad
  kGood,      // the trainer hardly waits
  kModerate,  // it waits 5 to 20 % of its time
  kHigh       // it waits longer
};

// A part of the line that draws the pipeline.
struct PicturePart {
  enum class Kind : uint8_t { kStage, kQueue, kMerge };
  Kind kind = Kind::kStage;
  // The stage's name. For kMerge: what stands between two stages that feed the same one ("+"), or
  // around them ("(").
  std::string name;
  int64_t threads = 0;          // of a stage; 0: not shown
  std::optional<double> ratio;  // stage: share of its threads' time at work; queue: how full it is
  bool limit = false;           // this stage is what limits
};

// One line for people: "why", "fix", "next", "cost", "more". Continuations have an empty label.
struct PageLine {
  std::string label, text;
  bool command = false;  // to be pasted: never wrapped
};

inline constexpr size_t kFirstPageLines = 24;  // with the title

struct FirstPage {
  std::string badge;  // "HIGHLY input-bound", "NO VERDICT"
  Severity severity = Severity::kNone;
  std::string verdict;  // "The trainer waited 48.8 % of each step [48.3, 49.4]."
  // What every figure depends on: other programs, an interrupted run, a change while it ran.
  std::vector<std::string> conditions;
  std::vector<PicturePart> picture;             // empty: nothing to draw
  std::string picture_shares = "time at work";  // what the shares of its stages are of
  std::vector<PageLine> lines;
  size_t most_lines = kFirstPageLines;  // on a terminal: of longer texts the ends are left out
  // Other programs used so much of the machine that the figures only hold under that load.
  bool conditional = false;
};

// How many of the cores other programs used. Present if that is more than a fifth of them, or if
// their use is not known and threads often waited for a core.
struct OtherLoad {
  std::optional<double> used_cores;
  double cores = 0;
  std::optional<double> pressure_ratio;  // share of the time in which some thread waited for a core
};

}  // namespace headrace::dashboards
