// What recording costs a running pipeline, within one process: `headrace profile -p` at a level is
// attached to it and taken off again in turn. Neighbouring windows share the process, its memory
// and the phase of the machine, which is what makes two runs of the same program differ by more
// than a probe costs; a window with nothing attached at all ("nothing") shows what is left of that.
//   recording_bench HEADRACE [--arm LEVEL[,PROBE]...]... [--pairs 30] [--seconds 3]
//                   [--table FOLDER] [--set KEY=VALUE]... [--ping]
// --ping: not rm1 but two threads of one CPU that hand a byte to and fro, about a million switches
// a second: what recording costs is large there and the machine's noise small.
// An arm is a level and the probes to leave out of it, e.g. --arm 1 --arm 3 --arm "3,page faults".
// Prints for each arm the growth of the pipeline's CPU time for the same work (eBPF programs run
// in its threads, so theirs is in it): the median of all pairs with its 95 % interval. Beside it
// what the recordings themselves claim that their eBPF programs took, as a share of the same CPU
// time.
//
// The work of a window is not a whole number of batches. It is counted as the rows that each
// operator completed, each weighed with that operator's own mean time a row.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "probes/account/account.h"
#include "probes/account/account_segment.h"

namespace headrace {
namespace {

using Texts = std::vector<std::string>;

[[noreturn]] void Fail(const std::string& what) {
  fmt::print(stderr, "recording_bench: {}\n", what);
  std::exit(1);
}

pid_t Start(const Texts& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  pid_t pid;
  if (posix_spawn(&pid, arguments[0], &files, nullptr, arguments.data(), environ) != 0) {
    Fail("cannot start " + command[0]);
  }
  posix_spawn_file_actions_destroy(&files);
  return pid;
}

int Stop(pid_t pid, int signal) {
  kill(pid, signal);
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

void Sleep(double seconds) { SleepUntilNs(MonotonicNs() + static_cast<int64_t>(seconds * 1e9)); }

struct Sample {
  int64_t cpu_ns = 0;
  std::vector<double> rows;  // completed, of each operator
};

class Pipeline {
 public:
  explicit Pipeline(const Texts& command) : pid_(Start(command)) {
    for (int tries = 0; tries < 500 && !segment_; ++tries) {
      Sleep(0.01);
      auto found = account::AccountSegment::Attach(pid_);
      if (found) segment_.emplace(std::move(*found));
    }
    if (!segment_) Fail("the pipeline keeps no accounts");
    if (clock_getcpuclockid(pid_, &clock_) != 0) Fail("the pipeline has no CPU clock");
  }
  ~Pipeline() { Stop(pid_, SIGKILL); }
  pid_t pid() const { return pid_; }

  Sample Take() {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) Fail("the pipeline ended");
    timespec time;
    clock_gettime(clock_, &time);
    Sample sample;
    sample.cpu_ns = time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
    for (const auto& op : segment_->Read(true, {}).operators) {
      sample.rows.push_back(static_cast<double>(op.rows));
    }
    return sample;
  }
  // Mean time of a row in each operator, since the beginning.
  std::vector<double> Weights() {
    std::vector<double> weights;
    for (const auto& op : segment_->Read(true, {}).operators) {
      weights.push_back(op.rows > 0 ? static_cast<double>(op.busy_ns) / static_cast<double>(op.rows)
                                    : 0);
    }
    return weights;
  }

 private:
  pid_t pid_;
  clockid_t clock_ = 0;
  std::optional<account::AccountSegment> segment_;
};

struct Window {
  Sample begin, end;
  // CPU time for the work done; 1 if all windows are alike.
  double CpuForWork(const std::vector<double>& weights) const {
    double work = 0;
    for (size_t i = 0; i < std::min(begin.rows.size(), end.rows.size()); ++i) {
      work += weights[i] * (end.rows[i] - begin.rows[i]);
    }
    if (work <= 0) Fail("the pipeline stands still");
    return static_cast<double>(end.cpu_ns - begin.cpu_ns) / work;
  }
};

Window Watch(Pipeline& pipeline, double seconds) {
  Window window;
  window.begin = pipeline.Take();
  Sleep(seconds);
  window.end = pipeline.Take();
  return window;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// The median and its 95 % interval by resampling.
std::string MedianAndInterval(const std::vector<double>& values, std::mt19937& random) {
  std::vector<double> medians;
  for (int i = 0; i < 4000; ++i) {
    std::vector<double> drawn(values.size());
    for (double& value : drawn) value = values[random() % values.size()];
    medians.push_back(Median(std::move(drawn)));
  }
  std::sort(medians.begin(), medians.end());
  return fmt::format("{:+.2f} % [{:+.2f}, {:+.2f}]", Median(values) * 100, medians[100] * 100,
                     medians[3899] * 100);
}

struct Options {
  std::string headrace, table;
  Texts arms, settings;  // settings: of the pipeline, KEY=VALUE
  bool ping = false;
  int pairs = 30;
  double seconds = 3;
};

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      options.headrace = std::filesystem::absolute(word);
      continue;
    }
    if (word == "--ping") {
      options.ping = true;
      continue;
    }
    if (i + 1 == argc) Fail(word + " wants a value");
    const std::string value = argv[++i];
    if (word == "--arm") {
      options.arms.push_back(value);
    } else if (word == "--pairs") {
      options.pairs = std::max(1, std::atoi(value.c_str()));
    } else if (word == "--seconds") {
      options.seconds = std::max(0.1, std::atof(value.c_str()));
    } else if (word == "--table") {
      options.table = value;
    } else if (word == "--set") {
      options.settings.push_back(value);
    } else {
      Fail("unknown option " + word);
    }
  }
  if (options.headrace.empty()) Fail("usage: recording_bench HEADRACE [OPTIONS]");
  if (options.arms.empty()) options.arms = {"1", "3"};
  return options;
}

constexpr const char* kNothing = "nothing";

// The names of an arm's runs begin so.
std::string NameOf(const std::string& arm) {
  std::string name = "arm-" + arm;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ',' || c == ' '; }, '-');
  return name + '.';
}

// The options of `headrace profile` for an arm: a level, and the names of what is left out.
void AddArm(const std::string& arm, Texts* command) {
  std::istringstream words(arm);
  std::string word;
  std::getline(words, word, ',');
  command->insert(command->end(), {"--level", word});
  while (std::getline(words, word, ',')) command->insert(command->end(), {"--without", word});
}

// What the recordings of an arm claim, in per cent of the rest of the pipeline's CPU time, which is
// what the growth is measured against.
std::string Claim(const Options& options, const std::string& database, const std::string& arm) {
  const std::string sql =
      "SELECT 100.0 * bpf / (cpu - bpf) AS claim FROM (SELECT SUM(CASE WHEN metric = "
      "'bpf_run_time_ns' THEN last_value END) AS bpf, SUM(CASE WHEN metric = 'process_cpu_ns' THEN "
      "last_value END) AS cpu FROM host_summary JOIN run_summary USING (run_id) WHERE name LIKE '" +
      NameOf(arm) + "%')";
  FILE* const out =
      popen(fmt::format("'{}' query --format csv --db '{}' \"{}\"", options.headrace, database, sql)
                .c_str(),
            "r");
  if (out == nullptr) return "unavailable";
  std::string text, line;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, out) != nullptr) text += buffer;
  pclose(out);
  std::istringstream lines(text);
  std::getline(lines, line);  // the heading
  std::getline(lines, line);
  return line.empty() ? "no programs" : fmt::format("{:.2f} %", std::atof(line.c_str()));
}

// The target of --ping: `rows` are the trips there and back.
[[noreturn]] void PingForEver() {
  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(sched_getcpu(), &cpu);
  sched_setaffinity(0, sizeof cpu, &cpu);  // its threads inherit it
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) Fail("cannot make a pipe");
  hr_account_open("ping");
  const uint32_t op = hr_operator("ping", "ping", hr_stage("ping", 1, 1));
  std::thread peer([&] {
    for (char byte; read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1;) {
    }
  });
  hr_enter(op);
  for (char byte = 0; write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1;) {
    hr_done(op, 1, 1, 0, 0);
  }
  Fail("a pipe broke");
}

int Main(const Options& options) {
  const std::string folder =
      std::filesystem::temp_directory_path() / fmt::format("recording_bench.{}", getpid());
  std::filesystem::create_directories(folder);
  std::string table = options.table;
  if (table.empty() && !options.ping) {
    table = folder + "/rm1";
    int status = 0;
    waitpid(Start({options.headrace, "generate", "rm1", "-o", table}), &status, 0);
    if (status != 0) Fail("cannot make the table");
  }
  setenv("HEADRACE_ACCOUNTS", "on", 1);  // kept, with nobody to read them
  const std::string database = folder + "/runs.db";
  {
    Texts command = {options.headrace, "run",     table + "/pipeline.toml",
                     "--no-record",    "--quiet", "--duration",
                     "3600s",          "--set",   "consumer.step=0"};
    for (const std::string& setting : options.settings) {
      command.insert(command.end(), {"--set", setting});
    }
    if (options.ping) command = {"/proc/self/exe", "ping"};
    Pipeline pipeline(command);
    Sleep(2);
    Texts arms = options.arms;
    arms.push_back(kNothing);
    std::map<std::string, std::vector<double>> growths;
    std::mt19937 random(std::random_device{}());
    struct Taken {
      std::string arm;
      Window before, attached, after;
    };
    std::vector<Taken> all;
    Window before = Watch(pipeline, options.seconds);
    for (int pair = 0; pair < options.pairs; ++pair) {
      std::shuffle(arms.begin(), arms.end(), random);
      for (const std::string& arm : arms) {
        Taken taken = {arm, before, {}, {}};
        pid_t recorder = 0;
        if (arm != kNothing) {
          Texts command = {
              options.headrace, "profile", "-p",     std::to_string(pipeline.pid()),    "-q",
              "--db",           database,  "--name", NameOf(arm) + std::to_string(pair)};
          AddArm(arm, &command);
          recorder = Start(command);
        }
        Sleep(1.5);  // until it records: programs are verified and loaded
        taken.attached = Watch(pipeline, options.seconds);
        if (recorder != 0) {
          if (waitpid(recorder, nullptr, WNOHANG) != 0) Fail("the recorder ended too early");
          Stop(recorder, SIGINT);
        } else {
          Sleep(0.1);
        }
        taken.after = before = Watch(pipeline, options.seconds);
        all.push_back(taken);
      }
    }
    const std::vector<double> weights = pipeline.Weights();
    for (const Taken& taken : all) {
      const double plain = (taken.before.CpuForWork(weights) + taken.after.CpuForWork(weights)) / 2;
      growths[taken.arm].push_back(taken.attached.CpuForWork(weights) / plain - 1);
    }
    fmt::print(
        "{} pairs of {:g} s; growth of the pipeline's CPU time for the same work, and as claimed\n",
        options.pairs, options.seconds);
    for (const auto& [arm, values] : growths) {
      fmt::print("| {} | {} | {} |\n", arm == kNothing ? arm : "level " + arm,
                 MedianAndInterval(values, random),
                 arm == kNothing ? "" : Claim(options, database, arm));
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "ping") headrace::PingForEver();
  try {
    return headrace::Main(headrace::Parse(argc, argv));
  } catch (const headrace::Error& error) {
    headrace::Fail(error.what());
  }
}
