// Words that the first page and the sections share: limits, probabilities and counts as people say
// them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/advice/statements.h"
#include "analysis/model/bottleneck.h"
#include "dashboards/report/page.h"

namespace headrace::dashboards {

// "the trainer", "CPU cores", "fetch", "the order of the batches", "lock table".
std::string LimitWord(const analysis::Limit& limit);

// An operator that runs in `thread`, "the trainer's own thread": "..., operator collate". The
// thread alone where `operator_name` is empty. What starts workers is said in words: it is no work
// on batches.
std::string OwnThreadWord(const std::string& thread, const std::string& operator_name);

// With its first letter a capital: "The trainer". Words that are names stay as they are where they
// begin a sentence, so this is for LimitWord of what is no stage.
std::string SentenceStart(const analysis::Limit& limit);

// With its first letter a capital.
std::string Capital(std::string_view text);

// "> 0.99", "0.87": resampling cannot make anything certain.
std::string ProbabilityText(double probability);

// "1 thread", "3 threads".
std::string Plural(int64_t count, const char* noun);

// "BUSY MACHINE: other programs use 1.6 of 2 cores. ..."
std::string BusySentence(const OtherLoad& load);

// Why there is no verdict.
std::string WithheldWords(const analysis::RunView& run, const analysis::Statements& statements);

// The trainer's wait as a grade's colour; thresholds as StallGrade.
Severity SeverityOf(double stall_ratio);

// "The trainer waited 48.8 % of each step [48.3, 49.4] (HIGHLY means over 20 %)."
std::string StallSentence(const std::string& who, const std::string& of_what, double stall_ratio,
                          const std::optional<analysis::Interval>& interval);

}  // namespace headrace::dashboards
