// StudyFolder: the folder of a long command made of steps, each of which leaves its result as a
// file. A command that is started again with the same inputs reuses the results that are there;
// with other inputs it begins anew and says what changed.
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
  std::string name;                   // name of its file: letters, digits, '.' and '-'
  std::string words;                  // what it does, for the progress: "rm1: writes the table"
  double seconds = 1;                 // expected duration
  std::function<std::string()> make;  // makes the result
  std::function<void(const std::string&)> take;  // called with the result, new or reused
  // Whether an existing result is still valid; unset: it is. An Error that it throws means that it
  // is not.
  std::function<bool(const std::string&)> holds = {};
};

class StudyFolder {
 public:
  // Creates the folder, or continues the study in it; with `fresh` it reuses nothing. Throws Error
  // kUsage where the folder holds anything but a study, or another command is using it: the folder
  // is locked (flock) during this object's lifetime, at most until the process ends, however it
  // ends.
  StudyFolder(std::string folder, StudyInputs inputs, bool fresh);
  ~StudyFolder();
  StudyFolder(const StudyFolder&) = delete;
  StudyFolder& operator=(const StudyFolder&) = delete;

  const std::string& path() const { return folder_; }
  std::string PathOf(const std::string& name) const;

  // Runs the steps in order, each once, and says on standard error which, how long it has taken and
  // about how long the rest will. A failing step's Error leaves those before it in place.
  void Run(const std::vector<StudyStep>& steps, bool quiet);
  // Time that its steps have taken, summed over all the commands that ran them.
  double seconds() const { return seconds_; }

 private:
  void Lock();
  void BeginAnew() const;

  std::string folder_;
  double seconds_ = 0;
  int lock_ = -1;
};

// Throws Error kResources unless the file system of `folder` has room for this many bytes.
void CheckRoom(const std::string& folder, double bytes);

}  // namespace headrace::experiments
