#include "experiments/study_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "experiments/interrupt.h"

namespace headrace::experiments {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostStepBytes = 1 << 20;  // a step leaves some kB at most

void WriteWhole(const std::string& path, const std::string& text) {
  AtomicFile file(path, true);
  file.Write(text);
  file.Commit();
}

// The inputs that are there; nothing where there is no study, or one of another program, whose
// files are not ours to replace.
std::optional<StudyInputs> ReadInputs(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return ParseInputs(ReadWholeFile(path));
}

std::string Changes(const StudyInputs& before, const StudyInputs& now) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& was, const std::string& is) {
    text += fmt::format("{}{} was {}, is {}", text.empty() ? "" : "; ", name, Printable(was, 60),
                        Printable(is, 60));
  };
  for (const auto& [name, value] : now) {
    const auto found = before.find(name);
    if (found == before.end()) {
      add(name, "not there", value);
    } else if (found->second != value) {
      add(name, found->second, value);
    }
  }
  for (const auto& [name, value] : before)
    if (now.count(name) == 0) add(name, value, "not there");
  return text;
}

std::string Minutes(double seconds) {
  const long whole = std::lround(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

StudyFolder::StudyFolder(std::string folder, StudyInputs inputs, bool fresh)
    : folder_(std::move(folder)) {
  const std::string study = PathOf("study.json");
  std::error_code failed;
  if (fs::exists(folder_, failed) && !fs::is_directory(folder_, failed))
    throw Error(ExitCode::kUsage, "is not a folder", folder_, "give another with -o");
  const auto before = ReadInputs(study);
  if (!before && fs::exists(folder_, failed) && !fs::is_empty(folder_, failed))
    throw Error(ExitCode::kUsage, "the folder holds other things than a study", folder_,
                "give a new one with -o");
  if (!fs::exists(folder_, failed) && !fs::create_directories(folder_, failed))
    throw ErrnoError(failed.value(), "make the folder", folder_);
  Lock();
  if (before && (fresh || *before != inputs)) {
    if (!fresh)
      std::fputs(fmt::format("headrace characterize: {} holds a study of other inputs ({}): starts "
                             "again\n",
                             folder_, Changes(*before, inputs))
                     .c_str(),
                 stderr);
    BeginAnew();
  }
  fs::create_directories(PathOf("steps"), failed);
  if (fs::exists(PathOf("steps/.seconds"), failed)) {
    const double before_s = std::strtod(ReadWholeFile(PathOf("steps/.seconds")).c_str(), nullptr);
    if (std::isfinite(before_s) && before_s > 0) seconds_ = before_s;
  }
  WriteWhole(study, InputsJson(inputs));
}

StudyFolder::~StudyFolder() {
  if (lock_ >= 0) ::close(lock_);
}

// Where the file system has no locks, there is none.
void StudyFolder::Lock() {
  lock_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(lock_);
    throw Error(ExitCode::kUsage, "another study is being made in the folder", folder_,
                "wait for it, or give another folder with -o");
  }
}

std::string StudyFolder::PathOf(const std::string& name) const {
  return (fs::path(folder_) / name).string();
}

// Results go; tables and recorded runs are replaced by the steps that make them.
void StudyFolder::BeginAnew() const {
  std::error_code failed;
  fs::remove_all(PathOf("steps"), failed);
  if (failed) throw ErrnoError(failed.value(), "remove the steps of", folder_);
}

void StudyFolder::Run(const std::vector<StudyStep>& steps, bool quiet) {
  double expected = 0, done_expected = 0, done_s = 0;
  for (const StudyStep& step : steps) expected += step.seconds;
  const int64_t start = MonotonicNs();
  size_t number = 0;
  for (const StudyStep& step : steps) {
    ++number;
    const std::string path = PathOf("steps/" + step.name);
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
      try {
        const std::string kept = ReadWholeFile(path, kMostStepBytes);
        if (!step.holds || step.holds(kept)) {
          step.take(kept);
          expected -= step.seconds;
          continue;
        }
      } catch (const Error&) {
        // It is made again.
      }
    }
    if (Interrupted()) throw Error(ExitCode::kInterrupted, "interrupted");
    const int64_t begin = MonotonicNs();
    if (!quiet) {
      const double elapsed = static_cast<double>(begin - start) * 1e-9;
      const double pace = done_expected > 5 ? done_s / done_expected : 1;
      std::fputs(
          fmt::format("[{}/{}] {}   elapsed {}, about {} left\n", number, steps.size(), step.words,
                      Minutes(elapsed), Minutes(std::max(1.0, pace * (expected - done_expected))))
              .c_str(),
          stderr);
    }
    const std::string result = step.make();
    WriteWhole(path, result);
    step.take(result);
    done_expected += step.seconds;
    const double took = static_cast<double>(MonotonicNs() - begin) * 1e-9;
    done_s += took;
    seconds_ += took;
    WriteWhole(PathOf("steps/.seconds"), fmt::format("{:.3f}\n", seconds_));
  }
}

void CheckRoom(const std::string& folder, double bytes) {
  std::error_code failed;
  const fs::space_info space = fs::space(folder, failed);
  if (failed || static_cast<double>(space.available) >= bytes) return;
  throw Error(ExitCode::kResources,
              fmt::format("needs about {}, and {} are free", FormatBytes(bytes),
                          FormatBytes(static_cast<double>(space.available))),
              folder, "choose another folder with -o, or fewer rows with --rows");
}

}  // namespace headrace::experiments
