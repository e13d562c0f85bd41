#include "probes/stack/python_stacks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/program_path.h"
#include "probes/helper_cpu.h"
#include "probes/process.h"
#include "probes/stack/py_spy_text.h"

extern char** environ;

namespace headrace::probes::stack {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;

TEST(PySpyText, ALineIsAStackOfTheInnermostProcess) {
  struct Case {
    const char* line;
    int64_t pid, tid;
    const char* thread;
    const char* frames;
    int64_t samples;
  };
  for (const Case& one : {
           Case{"main (t.py:4) 1", 0, 0, "", "main (t.py:4)", 1},
           Case{"thread (9): MainThread;main (t.py:4);load (d.py:7) 12", 0, 9, "MainThread",
                "main (t.py:4);load (d.py:7)", 12},
           Case{"thread (0x7F1A);main (t.py:4) 3", 0, 0, "", "main (t.py:4)", 3},
           Case{"thread (9);main (t.py:4) 3", 0, 9, "", "main (t.py:4)", 3},
           Case{"thread (9): Thread-12;run (t.py:1) 3", 0, 9, "Thread-12", "run (t.py:1)", 3},
           Case{"process 7:\"python t.py\";thread (7): MainThread;main (t.py:4) 5", 7, 7,
                "MainThread", "main (t.py:4)", 5},
           Case{"process 7:\"python t.py\";process 9:\"python t.py\";thread (9): "
                "MainThread;main (t.py:4) 5",
                9, 9, "MainThread", "main (t.py:4)", 5},
           // A command with a quote and a semicolon in it.
           Case{"process 7:\"python -c a=\"x\"; b=1\";thread (7): MainThread;f (<string>:1) 2", 7,
                7, "MainThread", "f (<string>:1)", 2},
           Case{"f with blank (a b.py:1) 2", 0, 0, "", "f with blank (a b.py:1)", 2},
           Case{"f\x1b[31m (a.py:1) 2", 0, 0, "", "f?[31m (a.py:1)", 2},
       }) {
    SCOPED_TRACE(one.line);
    const PySpyText parsed = ParsePySpyText(one.line);
    EXPECT_EQ(parsed.refused_lines, 0);
    ASSERT_EQ(parsed.stacks.size(), 1u);
    EXPECT_EQ(parsed.stacks[0].pid, one.pid);
    EXPECT_EQ(parsed.stacks[0].tid, one.tid);
    EXPECT_EQ(parsed.stacks[0].thread, one.thread);
    EXPECT_EQ(parsed.stacks[0].frames, one.frames);
    EXPECT_EQ(parsed.stacks[0].samples, one.samples);
  }
}

TEST(PySpyText, WhatIsNoStackIsCountedAndTheOthersAreKept) {
  for (const std::string& bad :
       {std::string("no number"), std::string("f (a.py:1) -3"), std::string("f (a.py:1) 0"),
        std::string("f (a.py:1) 99999999999999999999"), std::string(" 4"),
        std::string("process x:\"python\";f 1"), std::string("process 7:\"python 1"),
        std::string("thread (9;f (a.py:1) 1"), std::string(70000, 'f') + " 1"}) {
    SCOPED_TRACE(bad.substr(0, 60));
    const PySpyText parsed = ParsePySpyText("a (a.py:1) 1\n" + bad + "\n\nb (a.py:2) 2\n");
    EXPECT_EQ(parsed.refused_lines, 1);
    EXPECT_THAT(parsed.stacks, ElementsAre(Field(&PythonStack::frames, "a (a.py:1)"),
                                           Field(&PythonStack::frames, "b (a.py:2)")));
  }
}

struct StackSink : Sink {
  void Add(const Measurement&) override {}
  void AddStack(const StackSample& stack) override {
    stacks[fmt::format("{} {}", stack.pid, stack.folded)] = stack;
  }
  void Lost(std::string_view what, int64_t lost, std::optional<int64_t>) override {
    losses[std::string(what)] = lost;
  }
  // Time of stacks whose text holds `frames`.
  int64_t Ns(const std::string& frames) const {
    int64_t ns = 0;
    for (const auto& [text, stack] : stacks) {
      if (text.find(frames) != std::string::npos) ns += stack.time_ns;
    }
    return ns;
  }
  std::map<std::string, StackSample> stacks;
  std::map<std::string, int64_t> losses;
};

// A process that lives until the test ends.
class Program {
 public:
  explicit Program(std::vector<std::string> command) {
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (posix_spawnp(&pid_, argv[0], nullptr, nullptr, argv.data(), environ) != 0) pid_ = -1;
  }
  ~Program() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

class PythonStacksOf : public testing::Test {
 protected:
  void SetUp() override {
    if (FindProgram("python3").error != 0) GTEST_SKIP() << "python3 is not installed";
    folder_ = std::filesystem::temp_directory_path() / fmt::format("python-stacks-{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A program that takes py-spy's place.
  PythonStacksOptions Instead(const std::string& script) {
    PythonStacksOptions options;
    options.program = folder_ / "spy";
    std::ofstream(options.program) << "#!/bin/sh\n" << script;
    chmod(options.program.c_str(), 0755);
    return options;
  }

  Target TargetOf(const Program& program) {
    Target target;
    target.root_pid = program.pid();
    target.pids = {program.pid()};
    return target;
  }

  // Reads every 20 ms until `done`, at most 20 s.
  template <typename Done>
  bool ReadUntil(Probe& probe, Sink& sink, Done done) {
    const int64_t end = MonotonicNs() + 20'000'000'000;
    while (MonotonicNs() < end) {
      probe.Read(sink);
      if (done()) return true;
      usleep(20'000);
    }
    return false;
  }

  std::filesystem::path folder_;
  Host host_;
};

TEST_F(PythonStacksOf, WithoutTheProgramTheReasonIsSaid) {
  const Availability found = PythonStacks::Check(host_, "no-such-py-spy");
  EXPECT_FALSE(found.usable());
  EXPECT_THAT(found.reason, HasSubstr("no-such-py-spy is not installed"));
  EXPECT_THAT(found.fix, HasSubstr("pip install py-spy"));
}

TEST_F(PythonStacksOf, EachRunAddsToTheTotals) {
  Program python({"python3", "-c", "import time; time.sleep(60)"});
  // Two samples of 100 ms in each run, which ends at once.
  PythonStacks probe(Instead("echo 'thread (1): MainThread;main (t.py:4) 2' >&3\n"));
  const Target target = TargetOf(python);
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  ASSERT_TRUE(ReadUntil(probe, sink, [&] { return sink.Ns("main (t.py:4)") >= 600'000'000; }));
  EXPECT_EQ(sink.Ns("main (t.py:4)") % 200'000'000, 0);
  ASSERT_EQ(sink.stacks.size(), 1u);
  const StackSample& stack = sink.stacks.begin()->second;
  EXPECT_EQ(stack.kind, "python");
  EXPECT_EQ(stack.thread, "MainThread");
  EXPECT_EQ(stack.folded, "MainThread;main (t.py:4)");
  EXPECT_EQ(stack.samples * 100'000'000, stack.time_ns);
}

TEST_F(PythonStacksOf, TheFirstThreadIsTheMainOneWhateverItIsCalled) {
  Program python({"python3", "-c", "import time; time.sleep(60)"});
  PythonStacks probe(
      Instead("while [ $# -gt 0 ]; do [ \"$1\" = --pid ] && pid=$2; shift; done\n"
              "echo \"thread ($pid): python;main (t.py:4) 2\" >&3\n"));
  const Target target = TargetOf(python);
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  ASSERT_TRUE(ReadUntil(probe, sink, [&] { return !sink.stacks.empty(); }));
  EXPECT_EQ(sink.stacks.begin()->second.thread, "MainThread");
}

// Names as Python gives them since 3.10.
TEST_F(PythonStacksOf, ThreadsOfOneKindHaveOneName) {
  Program python({"python3", "-c", "import time; time.sleep(60)"});
  PythonStacks probe(
      Instead("for n in 1 22; do echo \"thread ($n): Thread-$n (work);f (t.py:4) 2\"; done >&3\n"));
  const Target target = TargetOf(python);
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  ASSERT_TRUE(ReadUntil(probe, sink, [&] { return !sink.stacks.empty(); }));
  ASSERT_EQ(sink.stacks.size(), 1u);
  EXPECT_EQ(sink.stacks.begin()->second.thread, "Thread (work)");
}

TEST_F(PythonStacksOf, WhatIsHeldBackIsGivenAtTheEnd) {
  Program python({"python3", "-c", "import time; time.sleep(60)"});
  PythonStacks probe(
      Instead("trap 'echo \"thread (1): MainThread;main (t.py:4) 3\" >&3; exit 0' INT\n"
              "touch \"$0.ready\"\nwhile :; do sleep 0.05; done\n"));
  Target target = TargetOf(python);
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  ASSERT_TRUE(
      ReadUntil(probe, sink, [&] { return std::filesystem::exists(folder_ / "spy.ready"); }));
  EXPECT_THAT(sink.stacks, IsEmpty());
  target.ending = true;
  probe.Read(sink);
  EXPECT_EQ(sink.Ns("main (t.py:4)"), 300'000'000);
}

TEST_F(PythonStacksOf, OneThatNeverWorksEndsTheProbeWithItsWords) {
  Program python({"python3", "-c", "import time; time.sleep(60)"});
  PythonStacks probe(Instead("echo 'Error: no permission to read it' >&2\nexit 1\n"));
  const Target target = TargetOf(python);
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  try {
    ReadUntil(probe, sink, [] { return false; });
    ADD_FAILURE() << "it never ended";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("no permission to read it"));
  }
}

TEST_F(PythonStacksOf, NothingIsRunForAProgramOfAnotherLanguage) {
  Program other({"sleep", "60"});
  PythonStacks probe(Instead("touch \"$0.ran\"\n"));
  const Target target = TargetOf(other);
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  for (int i = 0; i < 20; ++i) {
    probe.Read(sink);
    usleep(20'000);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "spy.ran"));
}

// Runs that say what they follow, and end at once.
constexpr char kSaysWhat[] =
    "case \"$*\" in *--subprocesses*) f=all;; *) f=alone;; esac\n"
    "echo \"thread (1): MainThread;$f (t.py:4) 2\" >&3\n";

TEST_F(PythonStacksOf, ProcessesThatLastGetRunsOfTheirOwn) {
  Program one({"python3", "-c", "import time; time.sleep(60)"});
  Program other({"python3", "-c", "import time; time.sleep(60)"});
  PythonStacksOptions options = Instead(kSaysWhat);
  options.first_s = 1;
  PythonStacks probe(options);
  Target target = TargetOf(one);
  target.pids.push_back(other.pid());
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  ASSERT_TRUE(ReadUntil(probe, sink, [&] { return sink.Ns("all (t.py") > 0; }));
  const auto alone = [&](const Program& program) {
    return sink.stacks.contains(fmt::format("{} MainThread;alone (t.py:4)", program.pid()));
  };
  EXPECT_FALSE(alone(one));
  ASSERT_TRUE(ReadUntil(probe, sink, [&] { return alone(one) && alone(other); }));
  const int64_t before = sink.Ns("all (t.py");
  probe.Read(sink);
  EXPECT_EQ(sink.Ns("all (t.py"), before);
}

// Of many processes those that compute are seen before those that wait for them.
TEST_F(PythonStacksOf, WhoComputesGetsItsRunFirst) {
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < 7; ++i) {
    programs.push_back(std::make_unique<Program>(std::vector<std::string>{
        "python3", "-c", i == 5 ? "while True: pass" : "import time; time.sleep(60)"}));
  }
  const int64_t busy = programs[5]->pid();
  const std::filesystem::path started = folder_ / "started";
  PythonStacksOptions options = Instead(fmt::format("echo \"$*\" >> {}\n", started.string()));
  options.first_s = 0;
  PythonStacks probe(options);
  Target target = TargetOf(*programs[0]);
  for (size_t i = 1; i < programs.size(); ++i) target.pids.push_back(programs[i]->pid());
  StackSink sink;
  ASSERT_TRUE(probe.Start(host_, target).usable());
  for (int i = 0; i < 2000; ++i) {
    const auto stat = ReadProcessStat(busy);
    if (stat && stat->cpu_ns > 500'000'000) break;
    usleep(10'000);
  }
  // One read begins four; shells write in an order of their own.
  probe.Read(sink);
  std::vector<std::string> runs;
  for (int i = 0; i < 2000 && runs.size() < 4; ++i) {
    usleep(10'000);
    runs.clear();
    std::ifstream file(started);
    for (std::string run; std::getline(file, run);) runs.push_back(run);
  }
  ASSERT_EQ(runs.size(), 4u);
  const std::string words = fmt::format("--pid {} ", busy);
  EXPECT_THAT(runs, Contains(HasSubstr(words)));
}

// 15 samples a second in all, at most 10 of one process.
TEST_F(PythonStacksOf, WhoComputesGetsMoreSamples) {
  Program busy({"python3", "-c", "while True: pass"});
  Program idle({"python3", "-c", "import time; time.sleep(60)"});
  const std::filesystem::path started = folder_ / "started";
  PythonStacksOptions options = Instead(fmt::format(
      "case \"$*\" in *--subprocesses*) ;; *) echo \"$*\" >> {};; esac\n", started.string()));
  options.first_s = 3;
  PythonStacks probe(options);
  Target target = TargetOf(busy);
  target.pids.push_back(idle.pid());
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  std::map<pid_t, int> rates;
  ASSERT_TRUE(ReadUntil(probe, sink, [&] {
    std::ifstream file(started);
    for (std::string run; std::getline(file, run);) {
      for (const Program* program : {&busy, &idle}) {
        if (run.find(fmt::format("--pid {} ", program->pid())) == std::string::npos) continue;
        rates.emplace(program->pid(), std::stoi(run.substr(run.find("--rate ") + 7)));
      }
    }
    return rates.size() == 2;
  }));
  EXPECT_EQ(rates[busy.pid()], 10);
  EXPECT_EQ(rates[idle.pid()], 3);
}

TEST_F(PythonStacksOf, WhereProcessesComeAndGoOneRunFollowsThem) {
  Program lasting({"sh", "-c", "exec python3 -c 'import time; time.sleep(60)'"});
  PythonStacksOptions options = Instead(kSaysWhat);
  options.first_s = 0;
  PythonStacks probe(options);
  Target target = TargetOf(lasting);
  StackSink sink;
  ASSERT_TRUE(probe.Start(host_, target).usable());
  ASSERT_TRUE(ReadUntil(probe, sink, [&] { return sink.Ns("alone (t.py") > 0; }));
  EXPECT_EQ(sink.Ns("all (t.py"), 0);
  // A child of it, that is gone before it is ten seconds old.
  const std::filesystem::path said = folder_ / "child";
  Program parent({"python3", "-c",
                  fmt::format("import os, time\n"
                              "child = os.fork()\n"
                              "if child: open('{0}.new', 'w').write(str(child)); "
                              "os.rename('{0}.new', '{0}')\n"
                              "time.sleep(60)",
                              said.string())});
  ASSERT_TRUE(ReadUntil(probe, sink, [&] { return std::filesystem::exists(said); }));
  int64_t child = 0;
  std::ifstream(said) >> child;
  target.pids = {parent.pid(), child};
  ASSERT_TRUE(ReadUntil(probe, sink, [&] {
    return sink.stacks.contains(fmt::format("{} MainThread;alone (t.py:4)", child));
  }));
  EXPECT_EQ(sink.Ns("all (t.py"), 0);
  kill(static_cast<pid_t>(child), SIGKILL);
  target.pids = {parent.pid()};
  EXPECT_TRUE(ReadUntil(probe, sink, [&] { return sink.Ns("all (t.py") > 0; }));
}

TEST_F(PythonStacksOf, AServiceOfALibraryGetsNoRun) {
  const std::filesystem::path script = folder_ / "ray/_private/log_monitor.py";
  std::filesystem::create_directories(script.parent_path());
  std::ofstream(script) << "import time; time.sleep(60)";
  Program service({"python3", script.string()});
  Program other({"python3", "-c", "import time; time.sleep(60)"});
  PythonStacksOptions options = Instead(kSaysWhat);
  options.first_s = 0;
  PythonStacks probe(options);
  Target target = TargetOf(service);
  target.pids.push_back(other.pid());
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  // Processes get their runs in turns.
  ASSERT_TRUE(ReadUntil(probe, sink, [&] { return sink.Ns("alone (t.py") >= 800'000'000; }));
  EXPECT_THAT(sink.stacks, Not(Contains(Key(HasSubstr(fmt::format("{} ", service.pid()))))));
}

// Ray starts more workers than it needs, and ends them.
TEST_F(PythonStacksOf, WorkersThatAServiceEndsAreNotFollowed) {
  const std::filesystem::path said = folder_ / "children";
  Program driver({"python3", "-c",
                  fmt::format("import ctypes, os, time\n"
                              "name = lambda of: ctypes.CDLL(None).prctl(15, of)\n"
                              "daemon = os.fork()\n"
                              "if not daemon:\n"
                              "  name(b'raylet')\n"
                              "  child = os.fork()\n"
                              "  if not child: name(b'ray::MapBatches')\n"
                              "  else:\n"
                              "    open('{0}.new', 'w').write(f'{{os.getpid()}} {{child}}')\n"
                              "    os.rename('{0}.new', '{0}')\n"
                              "time.sleep(60)",
                              said.string())});
  PythonStacksOptions options = Instead(kSaysWhat);
  options.first_s = 0;
  PythonStacks probe(options);
  Target target = TargetOf(driver);
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  ASSERT_TRUE(ReadUntil(probe, sink, [&] { return std::filesystem::exists(said); }));
  int64_t daemon = 0, child = 0;
  std::ifstream(said) >> daemon >> child;
  target.pids = {driver.pid(), daemon, child};
  ASSERT_TRUE(ReadUntil(probe, sink, [&] {
    return sink.stacks.contains(fmt::format("{} MainThread;alone (t.py:4)", child));
  }));
  kill(static_cast<pid_t>(child), SIGKILL);
  target.pids = {driver.pid(), daemon};
  const int64_t before = sink.Ns("alone (t.py");
  EXPECT_TRUE(
      ReadUntil(probe, sink, [&] { return sink.Ns("alone (t.py") > before + 400'000'000; }));
  EXPECT_EQ(sink.Ns("all (t.py"), 0);
  kill(static_cast<pid_t>(daemon), SIGKILL);
}

// With py-spy itself, where it is installed.
TEST_F(PythonStacksOf, FunctionsOfAProgramAndItsChildHaveTheirShares) {
  if (FindProgram("py-spy").error != 0) GTEST_SKIP() << "py-spy is not installed";
  std::ofstream(folder_ / "program.py") << R"(
import os, time
def quarter():
    time.sleep(0.05)
def rest():
    time.sleep(0.15)
def child():
    time.sleep(600)
if os.fork() == 0:
    child()
while True:
    quarter()
    rest()
)";
  Program python({"python3", folder_ / "program.py"});
  PythonStacksOptions options;
  options.chunk_s = 2;
  PythonStacks probe(options);
  Target target = TargetOf(python);
  ASSERT_TRUE(probe.Start(host_, target).usable());
  StackSink sink;
  const int64_t cpu_ns = HelperCpuNs(), once_ns = OnceCpuNs();
  const bool seen = ReadUntil(probe, sink, [&] {
    return sink.Ns("rest (program.py") >= 2'000'000'000 && sink.Ns("child (program.py") > 0;
  });
  if (!seen && sink.stacks.empty()) GTEST_SKIP() << "py-spy may not read other processes here";
  ASSERT_TRUE(seen);
  const auto quarter = static_cast<double>(sink.Ns("quarter (program.py"));
  const auto rest = static_cast<double>(sink.Ns("rest (program.py"));
  // A sleep is longer than asked on a busy machine, both alike.
  EXPECT_NEAR(quarter / (quarter + rest), 0.25, 0.15);
  // What the first run takes is done once; what later ones take is not.
  EXPECT_GT(OnceCpuNs(), once_ns);
  EXPECT_GT(HelperCpuNs() - cpu_ns, OnceCpuNs() - once_ns);
  EXPECT_GT(sink.Ns("<module> (program.py:13, loop 11)"), 0)
      << "its own lines have their loops, not " << sink.stacks.rbegin()->first;
  const auto child = std::find_if(sink.stacks.begin(), sink.stacks.end(), [](const auto& each) {
    return each.first.find("child (program.py") != std::string::npos;
  });
  EXPECT_NE(child->second.pid, python.pid());
  kill(static_cast<pid_t>(child->second.pid), SIGKILL);
}

}  // namespace
}  // namespace headrace::probes::stack
