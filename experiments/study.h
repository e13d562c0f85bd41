// A study: the characterization of a model on this host, from tables that are read and runs that
// are made for it.
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
  std::string database;  // of the runs
  std::string folder;    // of all that it leaves
};

// Takes minutes, says on stderr how far it is. `program`: how people call this one, as a word of a
// shell. Throws Error; what was done until then is kept for the next time.
StudyEnd RunStudy(const StudyOptions& options, const std::string& program);

}  // namespace headrace::experiments
