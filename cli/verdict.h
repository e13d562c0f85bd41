// What several commands share: the first page of a recorded run, and options of recording.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "collectors/recorder.h"
#include "dashboards/render/render.h"

namespace headrace::cli {

class CommandLine;

// True when the locale does not ask for UTF-8.
bool AsciiOnly();

// How text is printed on stream `descriptor`: as wide as its terminal, in colour where it has it.
dashboards::TextOptions TextFor(int descriptor);

// The first page of a run for stream `descriptor`. Never throws: what is not known is said on the
// page.
std::string FirstPageOf(const std::string& database, int64_t run_id, int descriptor);

// " --db FILE" for commands to paste; "" for the default database.
std::string DatabaseOption(const std::string& database);

// The options with which `run`, `profile` and `collect` say what to measure.
struct MeasureOptions {
  int level = -1;  // -1: all that works
  bool deep = false;
  std::string ring, trigger;
  std::vector<std::string> without;

  void AddTo(CommandLine* command_line);
  // Checks them and puts them into a recorder's. Throws Error kUsage.
  void Apply(collectors::RecorderOptions* options) const;
  // For a pipeline about to start: below level 2 it does not read its threads' CPU clock, unless
  // HEADRACE_ACCOUNT_LEVEL is set.
  void SetEnvironment() const;
  // The same for the command line of `headrace collect`; checked as by Apply.
  std::vector<std::string> Arguments() const;
};

// Which finished runs may be removed, from a user's words: a duration (also in days), a number or
// -1, a size; "" is no limit. Throws Error kUsage.
collectors::Retention MakeRetention(const std::string& older_than, int64_t keep,
                                    const std::string& max_size);

}  // namespace headrace::cli
