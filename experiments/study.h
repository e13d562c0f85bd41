// A study: the characterization of a model on this host, from tables that it reads and runs that it
// makes.
//
// Every figure comes from a table that was read, or from a run that was recorded in the study's own
// database by a child process, as a user would record it. Steps leave their results as files
// (study_folder.h), so that a study that was interrupted goes on where it was.
#pragma once
#include <string>

#include "analysis/study/characterization.h"
#include "experiments/study_work.h"

namespace headrace::experiments {

struct StudyEnd {
  analysis::Characterization found;
  std::string database;  // holds the runs
};

// Takes minutes and shows its progress on stderr. `program`: how the user calls this program, as a
// word for a shell. Throws Error; the steps done until then are kept for the next call.
StudyEnd RunStudy(const StudyOptions& options, const std::string& program);

}  // namespace headrace::experiments
