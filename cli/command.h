// Command: one subcommand of headrace, registered by its own file with HR_COMMAND.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/registry.h"

namespace headrace::cli {

class CommandLine;

// A command adds its options to a command line and returns what runs after parsing. The returned
// function gives the exit code, or throws Error.
struct Command {
  std::string summary;   // one line, starts with a verb: "says what limits a recorded run, and what
                         // to change"
  std::string examples;  // lines "headrace report latest      # the verdict, then the evidence"
  std::string exit_codes;  // "0 ok, 4 undecided (says what to measure), 5 not a run file"
  std::string next;        // "headrace plan RUN"
  std::function<std::function<int()>(CommandLine&)> configure;
  bool hidden = false;  // internal roles such as `collect`
};

#define HR_COMMAND(name, ...)                                \
  [[maybe_unused]] static const bool hr_command_registered = \
      ::headrace::Registry<::headrace::cli::Command>::Global().Add(name, __VA_ARGS__)

// When output has colours: every command has --color.
enum class ColorMode : uint8_t { kAuto, kAlways, kNever };
void SetColorMode(ColorMode mode);
// stdout is data, stderr is talk. As --color says; else true when the stream is a terminal and
// NO_COLOR and TERM=dumb do not forbid.
bool UseColor(int descriptor);

// Columns and rows of the terminal on stream `descriptor` ($COLUMNS and $LINES first); 120 columns
// and no number of rows where it is none.
int TerminalWidth(int descriptor);
std::optional<int> TerminalRows(int descriptor);

// Progress on stderr: a bar with the time left, redrawn in place on a terminal and never wider than
// it; otherwise at most one plain line every two seconds.
class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();
  void Update(double fraction, const std::string& note);  // cheap to call often
  void Finish(const std::string& note);

 private:
  std::string title_;
  bool terminal_;
  int64_t begin_ns_ = 0, last_ns_ = 0;
  bool drawn_ = false;
};

// Says on a terminal what is being done while nothing else can be said yet; gone with the object.
// Elsewhere it is silent.
class TransientNote {
 public:
  explicit TransientNote(const std::string& text);
  ~TransientNote();
  TransientNote(const TransientNote&) = delete;
  TransientNote& operator=(const TransientNote&) = delete;

 private:
  bool drawn_;
};

// The line of a progress bar in at most `width` columns: what does not fit is left out from the
// right, the bar before the time left. `left_s` below 0: not known yet.
std::string ProgressLine(const std::string& title, double fraction, double left_s,
                         const std::string& note, int width);

// How the user called this program: argv[0] when it names a path, else "headrace"; for commands
// printed to be pasted.
std::string ProgramName();
void SetProgramName(std::string argv0);

// argv[0] resolved to an absolute path (/proc/self/exe), for starting the collector.
std::string SelfPath();
// --db, else $HEADRACE_DB, else ./headrace.db.
std::string DefaultDatabase();

// Set by SIGINT and SIGTERM after InstallInterruptHandler(); a second signal kills the process.
void InstallInterruptHandler();
bool Interrupted();
// The signal that came, and whether the terminal sent it, so that a child of this process group got
// it as well; 0 before there was one.
int InterruptSignal();
bool InterruptFromTerminal();
// The process group of a child of this process: where a second signal ends this process at once, it
// is killed with it. 0: none.
void SetGroupOfChild(int group);

// Does `work`, and returns what it threw as the Error that ends a command with it: an Error as it
// is, kResources for lack of memory, kFailure "internal error: ..." for any other exception;
// nothing when it threw nothing. For threads, which an exception must not leave.
std::optional<Error> ErrorOf(const std::function<void()>& work);

// A check for options that take a number above 0: the message, or nothing.
std::string Positive(const std::string& text);

}  // namespace headrace::cli
