// StudyFolder: the folder of a long command made of steps, each of which leaves its result as a
// file. A command that is started again with the same inputs takes the results that are there; with
// other inputs it begins anew and says what changed.
//
//   FOLDER/study.json      the inputs, by name
//   FOLDER/steps/NAME      the result of a step, put there by rename when it is whole
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/study_files.h"

namespace headrace::experiments {

struct StudyStep {
  std::string name;                   // of its file: letters, digits, '.' and '-'
  std::string words;                  // what it does, for the progress: "rm1: writes the table"
  double seconds = 1;                 // that it is expected to take
  std::function<std::string()> make;  // makes the result
  std::function<void(const std::string&)> take;  // of a new result, or of one that was there
  // Whether a result that was there still holds; unset: it does. May throw Error: it does not.
  std::function<bool(const std::string&)> holds = {};
};

class StudyFolder {
 public:
  // Makes the folder, or takes up the study in it. `fresh`: takes up nothing. Throws Error kUsage
  // where the folder holds other things than a study, or where another command is at work in it:
  // the folder is locked (flock) while this lives, or until the process ends in whatever way.
  StudyFolder(std::string folder, StudyInputs inputs, bool fresh);
  ~StudyFolder();
  StudyFolder(const StudyFolder&) = delete;
  StudyFolder& operator=(const StudyFolder&) = delete;

  const std::string& path() const { return folder_; }
  std::string PathOf(const std::string& name) const;

  // Runs the steps in order, each once, and says on standard error which, how long it has taken and
  // about how long the rest will. A failing step's Error leaves those before it in place.
  void Run(const std::vector<StudyStep>& steps, bool quiet);
  // That its steps have taken, in all the commands that made them.
  double seconds() const { return seconds_; }

 private:
  void Lock();
  void BeginAnew() const;

  std::string folder_;
  double seconds_ = 0;
  int lock_ = -1;
};

// Throws Error kResources unless the file system of `folder` has room for so many bytes.
void CheckRoom(const std::string& folder, double bytes);

}  // namespace headrace::experiments
