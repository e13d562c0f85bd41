#include "experiments/foreign_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "collectors/agent.h"
#include "experiments/decision_record.h"
#include "experiments/interrupt.h"
#include "experiments/target_text.h"
#include "probes/process.h"

extern char** environ;

namespace headrace::experiments {
namespace {

constexpr int64_t kLookNs = 50'000'000;
constexpr const char* kThreads = ".parallelism";
constexpr const char* kQueue = ".queue";

// A file in memory that holds `text`, at its beginning: a pipe could be left unread, or broken.
int MemoryFile(const std::string& text) {
  const int fd = memfd_create("decision", MFD_CLOEXEC);
  if (fd < 0) throw ErrnoError(errno, "make a file in memory", "");
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      close(fd);
      throw ErrnoError(error, "write a file in memory", "");
    }
    at += static_cast<size_t>(n);
  }
  lseek(fd, 0, SEEK_SET);
  return fd;
}

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (std::string& text : *strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t Spawn(const std::string& command, int input, const std::vector<std::string>& variables) {
  std::vector<std::string> words = {"/bin/sh", "-c", command}, environment;
  // Our variables must replace inherited ones: of two with the same name, a program may see either.
  const auto ours = [&](std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('='));
    return name.starts_with("HEADRACE_KNOB_") ||
           std::any_of(variables.begin(), variables.end(), [&](const std::string& own) {
             return own.substr(0, own.find('=')) == name;
           });
  };
  for (char** at = environ; *at != nullptr; ++at) {
    if (!ours(*at)) environment.emplace_back(*at);
  }
  environment.insert(environment.end(), variables.begin(), variables.end());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) sigaddset(&usual, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/bin/sh", &actions, &attributes, Pointers(&words).data(),
                                Pointers(&environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw ErrnoError(error, "run", "/bin/sh");
  return pid;
}

}  // namespace

std::string KnobVariable(const std::string& knob) {
  std::string name = "HEADRACE_KNOB_";
  for (const char c : knob) {
    const auto byte = static_cast<unsigned char>(c);
    name += byte < 128 && std::isalnum(byte) ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

CommandEnd RunCommand(const std::string& command, const std::string& input,
                      const std::vector<std::string>& variables, int64_t timeout_ns) {
  const int file = MemoryFile(input);
  pid_t pid = -1;
  try {
    pid = Spawn(command, file, variables);
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
  // A second signal ends this program at once: the command is not left behind.
  SetGroupOfChild(pid);
  struct Forget {
    ~Forget() { SetGroupOfChild(0); }
  } forget;
  const int64_t end_ns = MonotonicNs() + timeout_ns;
  int status = 0;
  int64_t pause_ns = 200'000;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (MonotonicNs() > end_ns) {
      kill(-pid, SIGKILL);
      waitpid(pid, &status, 0);
      return {false, "did not end within " + FormatDuration(static_cast<double>(timeout_ns))};
    }
    SleepUntilNs(MonotonicNs() + pause_ns);
    pause_ns = std::min<int64_t>(2 * pause_ns, 20'000'000);
  }
  if (WIFEXITED(status)) {
    return {WEXITSTATUS(status) == 0, fmt::format("exited {}", WEXITSTATUS(status))};
  }
  return {false, fmt::format("was killed by signal {}", WTERMSIG(status))};
}

ForeignTarget::ForeignTarget(ForeignOptions options, std::function<bool()> ended)
    : options_(std::move(options)),
      ended_(std::move(ended)),
      watch_(options_.database, options_.run_id) {}

void ForeignTarget::ReadKnobs(const analysis::RunView& run) {
  std::set<std::string> consumers;  // the tuner leaves the consumer alone
  for (const analysis::OperatorRow& op : run.operators) {
    if (op.kind == "consumer") consumers.insert(op.stage);
  }
  for (const analysis::StageRow& stage : run.stages) {
    if (stage.max_parallelism_count == 1 || stage.last_parallelism_count < 1) continue;
    if (consumers.contains(stage.name)) continue;
    knobs_[stage.name + kThreads] = static_cast<int>(stage.last_parallelism_count);
  }
  for (const analysis::QueueRow& queue : run.queues) {
    if (queue.producer_stage.empty() || queue.capacity_count < 1) continue;
    knobs_[queue.producer_stage + kQueue] = static_cast<int>(queue.capacity_count);
  }
  shown_ = knobs_;
  if (options_.knobs.empty()) return;
  analysis::KnobValues chosen;
  for (const std::string& knob : options_.knobs) {
    const auto found = knobs_.find(knob);
    if (found == knobs_.end()) {
      std::string all;
      for (const auto& [name, value] : knobs_) all += (all.empty() ? "" : ", ") + Printable(name);
      throw Error(ExitCode::kUsage, fmt::format("the run has no knob '{}'", Printable(knob)),
                  "--knob", "there are: " + (all.empty() ? std::string("none") : all));
    }
    chosen.insert(*found);
  }
  knobs_ = chosen;
}

analysis::RunView ForeignTarget::Begin(int64_t most_ns) {
  const int64_t end_ns = MonotonicNs() + most_ns;
  while (true) {
    std::optional<analysis::RunView> run = Observe(0);
    if (run && !run->operators.empty() && run->steps.steps_count > 0) {
      ReadKnobs(*run);
      if (!knobs_.empty()) return *run;
      throw Error(ExitCode::kInconclusive,
                  "no stage of the process says that its threads may change",
                  fmt::format("process {}", options_.pid),
                  "give hr_stage() a largest number of threads other than 1 (docs/accounts.md)");
    }
    if (!run || MonotonicNs() > end_ns) {
      if (Interrupted()) throw Error(ExitCode::kInterrupted, "interrupted");
      throw Error(ExitCode::kInconclusive,
                  run ? "the process is not instrumented, or records no step of its trainer"
                      : "the process ended before it was tuned",
                  fmt::format("process {}", options_.pid),
                  "instrument it (docs/accounts.md) and call hr_step() for each batch");
    }
    SleepUntilNs(MonotonicNs() + 4 * kLookNs);
  }
}

bool ForeignTarget::RunsOn() { return probes::IsAlive(static_cast<pid_t>(options_.pid)); }

int64_t ForeignTarget::Apply(const std::vector<analysis::Change>& changes) {
  analysis::KnobValues values = shown_;
  std::string changed;
  for (const analysis::Change& change : changes) {
    values[change.knob] = change.to;
    changed += (changed.empty() ? "" : " ") + change.knob;
  }
  // What is carried out may be less than, or the reverse of, what was decided last.
  analysis::Decision decision = decision_.value_or(analysis::Decision{});
  decision.changes = changes;
  decision.settings = values;
  std::vector<std::string> variables = {fmt::format("HEADRACE_PID={}", options_.pid),
                                        "HEADRACE_CHANGED=" + changed};
  for (const auto& [knob, value] : values) {
    variables.push_back(fmt::format("{}={}", KnobVariable(knob), value));
  }
  const std::string input = DecisionJson(decision) + "\n";
  int64_t wait_ns = options_.first_wait_ns;
  CommandEnd end;
  for (int attempt = 0; attempt < std::max(1, options_.tries); ++attempt) {
    if (attempt > 0) {
      for (const int64_t until = MonotonicNs() + wait_ns;
           MonotonicNs() < until && !Interrupted() && !ended_();) {
        SleepUntilNs(std::min(until, MonotonicNs() + kLookNs));
      }
      wait_ns *= 2;
    }
    // Once at least, so that the process is left as it should be when the tuning is ended.
    if (!RunsOn() || (attempt > 0 && (Interrupted() || ended_()))) break;
    ++commands_;
    end = RunCommand(options_.apply_command, input, variables, options_.timeout_ns);
    if (end.ok) {
      shown_ = values;
      for (auto& [knob, value] : knobs_) value = values[knob];
      return now_ns().value_or(watch_.recorded_ns());
    }
    ++failures_;
  }
  throw Error(ExitCode::kFailure,
              end.how.empty()
                  ? std::string("the process ended first")
                  : fmt::format("the command {}, {} of {} times", end.how, failures_, commands_),
              "--apply-cmd", "its own errors are above");
}

std::optional<analysis::RunView> ForeignTarget::Observe(int64_t wait_ns) {
  return watch_.Observe(wait_ns, [this] {
    return ended_() || (options_.duration_ns > 0 && watch_.recorded_ns() >= options_.duration_ns);
  });
}

ForeignTuned TuneForeign(ForeignTune what, std::vector<analysis::DecisionSink*> sinks) {
  constexpr int64_t kBeginNs = 15'000'000'000;
  if (!probes::IsAlive(static_cast<pid_t>(what.target.pid))) {
    throw Error(ExitCode::kBadData, "no such process", fmt::format("process {}", what.target.pid),
                "give the id of the running pipeline");
  }
  collectors::AgentOptions recording;
  recording.pid = what.target.pid;
  recording.database = what.target.database;
  recording.run_name = what.name;
  recording.arguments = what.collect_arguments;
  recording.arguments.insert(recording.arguments.end(), {"--commit-every", "400ms"});
  collectors::Agent agent = collectors::Agent::Start(recording);
  ForeignTuned tuned;
  tuned.run_id = what.target.run_id = agent.run_id();
  StoredDecisions stored(what.target.database, tuned.run_id);
  std::optional<Error> failure;
  try {
    ForeignTarget target(what.target, [&] {
      return agent.ended() || !probes::IsAlive(static_cast<pid_t>(what.target.pid));
    });
    const analysis::RunView run = target.Begin(kBeginNs);
    if (run.steps.steps_count > 0) {
      tuned.rows =
          static_cast<double>(run.steps.rows_count) / static_cast<double>(run.steps.steps_count);
    }
    if (!what.rate.empty()) what.tuner.target = ParseTarget(what.rate, tuned.rows);
    sinks.push_back(&stored);
    sinks.push_back(&target);
    analysis::Tuner tuner(what.tuner, target.knobs());
    tuned.result = analysis::Tune(&tuner, &target, sinks);
  } catch (const Error& error) {
    failure = error;
  }
  try {
    if (!agent.ended()) agent.Stop();
  } catch (const Error& error) {
    if (!failure) failure = error;
  }
  if (failure) throw *failure;
  tuned.store_failure = stored.failure();
  return tuned;
}

}  // namespace headrace::experiments
