// What to do next about a run, in words and as a command: one answer, which the first page, the
// plan and the recommendations share.
#pragma once
#include <optional>
#include <string>

#include "analysis/advice/statements.h"

namespace headrace::analysis {

enum class NextKind : unsigned char {
  kChange,   // apply the plan: its interval holds nothing but gains, or a budget forces it
  kCompare,  // the plan may gain nothing: a comparison decides
  kWork,     // no setting helps: make something cheaper, or get more of it
  kNothing   // the pipeline keeps up
};

struct NextStep {
  NextKind kind = NextKind::kNothing;
  std::string text;
  std::string command;  // to be pasted; empty: none
  // What limits then, where `text` is no plan of Statements::allocation.
  std::optional<Limit> limited_then = std::nullopt;
  double gain = 0;        // predicted by the rule that advises it; 0: by no rule
  bool measured = false;  // `text` has what a comparison found, not what is predicted
};

// `statements` must have a model and a bottleneck. kNothing is said of no run whose consumer waits
// kSmallStall of its step or more.
NextStep NextStepOf(const RunView& run, const Statements& statements);

// Why `headrace apply` cannot run this again with a plan; empty where it can.
std::string CannotApply(const RunRow& run);

// The option of `headrace plan` that prints the plan as lines for the program's loader, with a
// blank before it; empty where that is none that headrace knows.
std::string EmitOption(const RunView& run);

// Whether a process of the preprocessing service was recorded: dispatcher, worker or rank.
bool IsOfService(const RunRow& run);

// The recorded command line, to be typed again; empty where it is not known word by word, as blanks
// in an argument are not told from those between arguments.
std::string CommandWords(const RunRow& run);

// What the plan changes: "decode threads 1 -> 5, decode queue 4 -> 8"; of a program's own
// workers in its words: "num_workers 0 -> 2".
std::string ChangeWords(const RunView& run, const Allocation& plan);

// The command that compares the plan's settings with the present ones; empty where the pipeline is
// a program of the user's own.
std::string CompareCommand(const RunView& run, const Allocation& plan);

}  // namespace headrace::analysis
