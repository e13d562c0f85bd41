#include "collectors/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/registry.h"
#include "collectors/agent.h"
#include "probes/account/account_segment.h"
#include "probes/account/scope.h"
#include "probes/probe.h"
#include "probes/process.h"
#include "tests/collectors/planted_segment.h"
#include "tests/collectors/recording_fixture.h"
#include "tests/sanitized.h"
#include "tests/seed.h"

namespace headrace::collectors {
namespace {

using testing::HasSubstr;

// Ticks that a second of recording has at least, of ten; under ThreadSanitizer each takes long.
constexpr int kFewTicks = kThreadSanitizer ? 3 : 5;
// How much longer a recording takes to begin there.
constexpr int64_t kSlowStartNs = kThreadSanitizer ? 3000 * kMs : 0;

// A probe of the test: its behaviour is set before a recording.
struct FakeBehaviour {
  bool start_throws = false, available = false;
  int fail_at_read = -1;
  int reads = 0, stops = 0;
  int64_t pid = 0;
  std::vector<int64_t> pids;
  std::vector<probes::AccountedProcess> accounts;
} fake;

class FakeProbe : public probes::Probe {
 public:
  probes::Availability Start(const probes::Host&, const probes::Target& target) override {
    if (fake.start_throws) throw std::runtime_error("start went wrong");
    target_ = &target;
    return fake.available ? probes::Availability::Degraded("half of it", "more of it")
                          : probes::Availability::Unavailable("not wanted", "want it");
  }
  void Read(probes::Sink& sink) override {
    if (++fake.reads == fake.fail_at_read) throw std::runtime_error("read went wrong");
    fake.pids = target_->pids;
    fake.accounts = target_->accounts;
    probes::Measurement m;
    m.metric = "probe_reads_count";
    m.value = fake.reads * 10;
    m.labels.pid = fake.pid;
    m.labels.operator_index = 0;
    m.labels.subject = "fake";
    sink.Add(m);
    m.labels.pid = 0;
    m.labels.operator_index.reset();
    m.labels.subject = "machine";
    sink.Add(m);
    probes::StackSample stack;
    stack.pid = fake.pid;
    stack.kind = "cpu";
    stack.folded = "main;work";
    stack.samples = fake.reads;
    stack.time_ns = fake.reads * 100;
    sink.AddStack(stack);
    sink.Lost("fake events", fake.reads, 1000);
  }
  void Stop() override { fake.stops++; }

 private:
  const probes::Target* target_ = nullptr;
};

HR_PROBE("a fake of the test", {.summary = "for tests",
                                .affects = "nothing real",
                                .level = 1,
                                .check = nullptr,
                                .make = [] { return std::make_unique<FakeProbe>(); }});

// One of level 3 whose eBPF programs take a fifth of a core.
bool costly_works = false;
class CostlyProbe : public probes::Probe {
 public:
  probes::Availability Start(const probes::Host&, const probes::Target&) override {
    return costly_works ? probes::Availability::Ok() : probes::Availability::Unavailable("no", "");
  }
  void Read(probes::Sink& sink) override {
    probes::Measurement m;
    m.metric = "bpf_run_time_ns";
    m.labels.cause = "costly/on_switch";
    m.value = 0.2 * static_cast<double>(MonotonicNs() - begin_ns_);
    sink.Add(m);
  }
  void Stop() override {}

 private:
  int64_t begin_ns_ = MonotonicNs();
};

HR_PROBE("a costly fake of the test", {.summary = "for tests",
                                       .affects = "nothing real",
                                       .level = 3,
                                       .check = nullptr,
                                       .make = [] { return std::make_unique<CostlyProbe>(); }});

class Recorder : public RecordingFixture {
 protected:
  void TearDown() override {
    fake = {};
    costly_works = false;
    RecordingFixture::TearDown();
  }
};

TEST_F(Recorder, RecordsARunningPipelineForADuration) {
  options_.pid = StartPipeline(30);
  options_.duration_ns = 1500 * kMs;
  options_.level.reset();
  const Recording result = Record(options_);
  EXPECT_TRUE(result.has_accounts);
  EXPECT_EQ(result.state, RunState::kComplete);
  EXPECT_NEAR(static_cast<double>(result.duration_ns), 1.5e9, 0.4e9);
  EXPECT_EQ(Text("SELECT program FROM run_summary"), "tiny");
  EXPECT_GE(Integer("SELECT accounting_level FROM run_summary"), 2) << "3 where eBPF works";
  const int64_t busy = Integer("SELECT busy_ns FROM operator_summary WHERE operator = 'nap'");
  EXPECT_NEAR(static_cast<double>(busy), static_cast<double>(result.duration_ns), 0.15e9)
      << "what was before the recording does not count";
  // c + b + q + w + unattributed = lifetime, within 5 %.
  EXPECT_EQ(Integer("SELECT ABS(SUM(o.busy_ns + o.wait_in_ns + o.wait_out_ns) + s.unattributed_ns "
                    "- s.lifetime_ns) * 20 < s.lifetime_ns FROM operator_summary AS o JOIN "
                    "stage_summary AS s USING (run_id, stage)"),
            1);
  EXPECT_LT(Integer("SELECT on_cpu_ns FROM operator_summary"), busy / 4);
  EXPECT_GT(Integer("SELECT steps_count FROM step_summary"), 300);
  EXPECT_EQ(Integer("SELECT COUNT(*) FROM host_summary WHERE metric = 'collector_cpu_ns' AND "
                    "last_value > 0"),
            1);
  EXPECT_GE(Integer("SELECT COUNT(*) FROM step_interval"), kFewTicks);
}

TEST_F(Recorder, StepsDownWhereRecordingTakesTooMuchUnlessTheLevelWasAskedFor) {
  costly_works = true;
  for (const auto& [name, info] : Registry<probes::ProbeInfo>::Global().entries()) {
    if (info.level >= 3 && name != "a costly fake of the test") options_.without.push_back(name);
  }
  const std::string state =
      "SELECT state || ': ' || reason FROM probe_status WHERE probe = 'a costly fake of the test' "
      "AND run_id = (SELECT MAX(run_id) FROM probe_status)";
  options_.pid = StartPipeline(60);
  options_.duration_ns = 7000 * kMs + kSlowStartNs;
  for (const bool asked : {true, false}) {
    if (asked) {
      options_.level = 3;
    } else {
      options_.level.reset();
    }
    EXPECT_EQ(Record(options_).state, RunState::kComplete);
    if (asked) {
      EXPECT_EQ(Text(state), "active: ");
    } else {
      EXPECT_THAT(Text(state), testing::MatchesRegex(
                                   "degraded: stopped while recording: after [0-9]+ s recording "
                                   "took [0-9.]+ % of the program's speed, more than 2 %; --level "
                                   "3 keeps it"));
      // The rest goes on.
      EXPECT_GT(Integer("SELECT MAX(start_ns) FROM step_interval WHERE run_id = 2"), 6000 * kMs);
    }
  }
}

TEST_F(Recorder, KilledPipelineLeavesAnInterruptedReadableRun) {
  options_.pid = StartPipeline(30);
  std::thread killer([&] {
    SleepUntilNs(MonotonicNs() + 1200 * kMs + kSlowStartNs);
    kill(static_cast<pid_t>(options_.pid), SIGKILL);
    waitpid(static_cast<pid_t>(options_.pid), nullptr, 0);
  });
  const Recording result = Record(options_);
  killer.join();
  children_.clear();
  EXPECT_EQ(result.state, RunState::kInterrupted);
  EXPECT_TRUE(result.target_ended);
  EXPECT_EQ(Text("SELECT state FROM run_summary"), "interrupted");
  EXPECT_EQ(Text("PRAGMA integrity_check"), "ok");
  EXPECT_GT(Integer("SELECT completions_count FROM operator_summary"), 300);
  // The program enters its operator once for each element, and may be in it at either end.
  const int64_t unfinished =
      Integer("SELECT enters_count - completions_count FROM operator_summary");
  EXPECT_GE(unfinished, -1);
  EXPECT_LE(unfinished, 1);
  EXPECT_EQ(Integer("SELECT SUM(enters_count) FROM operator_interval"),
            Integer("SELECT enters_count FROM operator_summary"));
  EXPECT_FALSE(std::filesystem::exists(fmt::format("{}/headrace.{}", folder_, options_.pid)))
      << "the dead process's segment is removed";
}

// It opens its accounts and is killed at once: no reading can have seen them.
TEST_F(Recorder, KilledBeforeItsAccountsWereSeenIsInterrupted) {
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char x;
    [[maybe_unused]] const ssize_t n = read(go[0], &x, 1);
    hr_account_open("short");
    raise(SIGKILL);
  }
  children_.push_back(child);
  options_.pid = child;
  options_.tick_ns = 5 * kSecond;  // looks for accounts come between two ticks, 20 ms apart
  options_.ready = [&](int64_t, bool) {
    [[maybe_unused]] const ssize_t n = write(go[1], "x", 1);
    waitpid(child, nullptr, 0);  // gone before the next look
    children_.clear();
  };
  EXPECT_EQ(Record(options_).state, RunState::kInterrupted);
  EXPECT_EQ(Text("SELECT state FROM run_summary"), "interrupted");
  EXPECT_FALSE(std::filesystem::exists(fmt::format("{}/headrace.{}", folder_, child)));
  close(go[0]);
  close(go[1]);
}

// Programs that end by _exit, so as not to wait for their threads, close nothing.
TEST_F(Recorder, AProgramThatExitsWithZeroAndClosesNothingIsComplete) {
  for (const int status : {0, 3}) {
    SCOPED_TRACE(status);
    const pid_t child = fork();
    if (child == 0) {
      hr_account_open("leaves");
      SleepUntilNs(MonotonicNs() + 400 * kMs);
      _exit(status);
    }
    children_.push_back(child);
    options_.pid = child;
    EXPECT_EQ(Record(options_).state, status == 0 ? RunState::kComplete : RunState::kInterrupted);
    EXPECT_FALSE(std::filesystem::exists(fmt::format("{}/headrace.{}", folder_, child)));
    End(child);
  }
}

TEST_F(Recorder, HowATargetWithoutAccountsEndedDecidesItsState) {
  const struct {
    const char* name;
    int signal;
    RunState state;
  } cases[] = {{"killed", SIGKILL, RunState::kInterrupted},
               {"crashed", SIGSEGV, RunState::kInterrupted},
               {"asked to end", SIGTERM, RunState::kComplete}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const pid_t child = fork();
    if (child == 0) {
      signal(c.signal, SIG_DFL);  // a sanitizer would catch a crash, and exit
      pause();
      _exit(0);
    }
    children_.push_back(child);
    options_.pid = child;
    options_.ready = [&](int64_t, bool) { kill(child, c.signal); };
    EXPECT_EQ(Record(options_).state,
              c.state);  // it is a zombie meanwhile, which tells how it ended
    End(child);
  }
}

// Anybody may put a file under the number of a process that ends.
TEST_F(Recorder, AFileOfSomebodyElseDoesNotMakeARunInterrupted) {
  for (const Planted& file : {Planted{.state = HR_STATE_CLOSED}, Planted{.user = kNobody}}) {
    SCOPED_TRACE(file.user);
    if (file.user != 0 && geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    children_.push_back(child);
    const std::string path = fmt::format("{}/headrace.{}", folder_, child);
    options_.pid = child;
    options_.ready = [&](int64_t, bool) {
      PlantSegment(path, child, file);
      kill(child, SIGTERM);
    };
    EXPECT_EQ(Record(options_).state, RunState::kComplete);
    EXPECT_TRUE(std::filesystem::exists(path)) << "it is not ours to remove";
    End(child);
  }
}

TEST_F(Recorder, ARunThatCouldNotBeSavedIsNotComplete) {
  options_.pid = StartPipeline(30);
  options_.database = folder_ + "/taken/t.db";
  std::filesystem::create_directory(folder_ + "/taken");
  options_.ready = [&](int64_t, bool) { std::filesystem::remove_all(folder_ + "/taken"); };
  const Recording result = Record(options_);
  EXPECT_EQ(result.state, RunState::kInterrupted);
  EXPECT_EQ(result.database, "");
  EXPECT_THAT(result.displaced, HasSubstr("is lost"));
}

TEST_F(Recorder, PipelineThatEndsInOrderIsComplete) {
  const pid_t pid = StartPipeline(0.8 + 1e-9 * static_cast<double>(kSlowStartNs));
  options_.pid = pid;
  const Recording result = Record(options_);
  End(pid);
  EXPECT_EQ(result.state, RunState::kComplete);
  EXPECT_TRUE(result.target_ended);
  EXPECT_GT(Integer("SELECT completions_count FROM operator_summary"), 0)
      << "a busy machine makes few";
}

TEST_F(Recorder, KilledCollectorNeverDisturbsThePipelineOrTheStore) {
  const pid_t pipeline = StartPipeline(60);
  const uint64_t seed = TestSeed(7);
  std::mt19937_64 random(seed);
  constexpr int kKills = 8;
  for (int i = 0; i < kKills; i++) {
    const pid_t collector = fork();
    if (collector == 0) {
      options_.pid = pipeline;
      options_.tick_ns = 20 * kMs;
      options_.commit_ns = 60 * kMs;  // more moments inside transactions
      Record(options_);
      _exit(0);
    }
    SleepUntilNs(MonotonicNs() + static_cast<int64_t>(random() % 400) * kMs);
    kill(collector, SIGKILL);
    waitpid(collector, nullptr, 0);
    ASSERT_EQ(kill(pipeline, 0), 0) << "the pipeline lives";
  }
  auto segment = account::AccountSegment::Attach(pipeline);
  const int64_t before = segment->Read(true, nullptr).operators[0].completions;
  SleepUntilNs(MonotonicNs() + 100 * kMs);
  EXPECT_GT(segment->Read(true, nullptr).operators[0].completions, before + 20) << "and works on";
  { RunStore store(options_.database); }  // the next opening marks what was left
  EXPECT_EQ(Text("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(Integer("SELECT COUNT(*) FROM run_summary WHERE state = 'recording'"), 0);
  EXPECT_EQ(Integer("SELECT (SELECT COALESCE(SUM(busy_ns), 0) FROM operator_interval) = (SELECT "
                    "COALESCE(SUM(busy_ns), 0) FROM operator_summary)"),
            1);
}

TEST_F(Recorder, AtMostASecondIsLostWithTheCollector) {
  const pid_t pipeline = StartPipeline(60);
  const pid_t collector = fork();
  if (collector == 0) {
    options_.pid = pipeline;
    Record(options_);
    _exit(0);
  }
  SleepUntilNs(MonotonicNs() + 2600 * kMs + kSlowStartNs);
  kill(collector, SIGKILL);
  waitpid(collector, nullptr, 0);
  EXPECT_GE(Integer("SELECT duration_ns FROM run_summary"), 1500 * kMs);
  EXPECT_EQ(Text("SELECT state FROM run_summary"), "interrupted");
}

TEST_F(Recorder, AccountsThatAppearLaterAreCountedFromTheirBegin) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    SleepUntilNs(MonotonicNs() + 500 * kMs);
    Pipeline(0.7, fds[1]);
  }
  children_.push_back(child);
  options_.pid = child;
  const Recording result = Record(options_);
  End(child);
  EXPECT_TRUE(result.has_accounts);
  const int64_t completions = Integer("SELECT completions_count FROM operator_summary");
  EXPECT_EQ(Integer("SELECT steps_count FROM step_summary"), completions);
  EXPECT_EQ(Integer("SELECT SUM(rows_count) FROM step_interval"), completions);
}

TEST_F(Recorder, ProcessWithoutAccountsIsSeenFromOutside) {
  const pid_t child = fork();
  if (child == 0) {
    const int64_t end = MonotonicNs() + 30 * kSecond;
    while (MonotonicNs() < end) {
    }
    _exit(0);
  }
  children_.push_back(child);
  options_.pid = child;
  options_.duration_ns = 800 * kMs;
  bool said = true;
  options_.ready = [&](int64_t, bool has_accounts) { said = has_accounts; };
  EXPECT_FALSE(Record(options_).has_accounts);
  EXPECT_FALSE(said);
  EXPECT_EQ(Integer("SELECT accounting_level FROM run_summary"), 0);
  EXPECT_EQ(Text("SELECT state FROM probe_status WHERE probe = 'operator accounts'"),
            "unavailable");
  EXPECT_EQ(Integer("SELECT last_value > 100000000 FROM host_summary WHERE metric = "
                    "'process_cpu_ns'"),
            1);
  // ThreadSanitizer has a thread of its own.
  EXPECT_EQ(Integer("SELECT COUNT(*) FROM thread_summary WHERE on_cpu_ns > 0"),
            kThreadSanitizer ? 2 : 1);
}

TEST_F(Recorder, AbsentProcessNamesThoseThatHaveAccounts) {
  const pid_t pipeline = StartPipeline(30);
  options_.pid = 999'999'999;
  try {
    Record(options_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_THAT(error.what(), HasSubstr("no process 999999999"));
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(pipeline)));
  }
  EXPECT_FALSE(std::filesystem::exists(options_.database)) << "nothing is made";
}

TEST_F(Recorder, AnotherUsersProcessNeedsPrivilege) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    options_.pid = 1;
    try {
      Record(options_);
    } catch (const Error& error) {
      const bool named = std::string(error.what()).find("owner: root") != std::string::npos;
      _exit(error.code() == ExitCode::kPrivilege && named ? 0 : 1);
    }
    _exit(3);
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Recorder, FullDiskEndsTheRunAsTruncated) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount a small disk";
  const std::string disk = folder_ + "/disk";
  std::filesystem::create_directory(disk);
  if (std::system(
          fmt::format("mount -t tmpfs -o size=1400k headrace-test {} 2>/dev/null", disk).c_str()) !=
      0) {
    GTEST_SKIP() << "may not mount a tmpfs here";
  }
  options_.database = disk + "/t.db";
  options_.pid = StartPipeline(60);
  options_.tick_ns = 5 * kMs;
  options_.commit_ns = 50 * kMs;
  options_.duration_ns = 20 * kSecond;
  const Recording result = Record(options_);
  EXPECT_EQ(result.state, RunState::kTruncated);
  EXPECT_TRUE(result.marked);
  EXPECT_LT(result.duration_ns, 20 * kSecond);
  EXPECT_EQ(Text("SELECT state FROM run_summary"), "truncated");
  EXPECT_GT(Integer("SELECT completions_count FROM operator_summary"), 0);
  EXPECT_EQ(std::system(("umount -l " + disk).c_str()), 0);
}

TEST_F(Recorder, FullDiskWhoseMarkIsRefusedIsSaidToBeUnmarked) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount a small disk";
  const std::string disk = folder_ + "/disk";
  std::filesystem::create_directory(disk);
  if (std::system(
          fmt::format("mount -t tmpfs -o size=1400k headrace-test {} 2>/dev/null", disk).c_str()) !=
      0) {
    GTEST_SKIP() << "may not mount a tmpfs here";
  }
  options_.database = disk + "/t.db";
  // One run is truncated, and no second one may be.
  { RunStore(options_.database).BeginRun({}); }
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(options_.database.c_str(), &database), SQLITE_OK);
  const char* refuse =
      "UPDATE runs SET state = 'truncated'; "
      "CREATE UNIQUE INDEX refuse ON runs(state) WHERE state = 'truncated'";
  ASSERT_EQ(sqlite3_exec(database, refuse, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  options_.pid = StartPipeline(60);
  options_.tick_ns = 5 * kMs;
  options_.commit_ns = 50 * kMs;
  options_.duration_ns = 20 * kSecond;
  const Recording result = Record(options_);
  EXPECT_EQ(result.state, RunState::kTruncated);
  EXPECT_FALSE(result.marked);
  EXPECT_EQ(Text("SELECT state FROM run_summary WHERE run_id = 2"), "recording");
  EXPECT_EQ(std::system(("umount -l " + disk).c_str()), 0);
}

// The C program of the documentation, compiled as a user would, strictly, and profiled.
TEST_F(Recorder, ExampleProgramAppearsWithItsOperators) {
  const std::string source = HEADRACE_SOURCE_DIR "/docs/examples/reader.c";
  std::filesystem::create_directory_symlink(HEADRACE_SOURCE_DIR "/probes/account",
                                            folder_ + "/headrace");
  ASSERT_EQ(std::system(fmt::format("cc -std=c11 -Wall -Wextra -Wpedantic -Werror -O2 -I{} {} -o "
                                    "{}/reader -lpthread",
                                    folder_, source, folder_)
                            .c_str()),
            0);
  ASSERT_EQ(std::system(fmt::format("g++ -x c++ -std=c++20 -Wall -Wextra -Werror -fsyntax-only "
                                    "-I{} {}/headrace/account.h",
                                    folder_, folder_)
                            .c_str()),
            0);
  const pid_t child = fork();
  if (child == 0) {
    execl((folder_ + "/reader").c_str(), "reader", "30", nullptr);
    _exit(127);
  }
  children_.push_back(child);
  options_.pid = child;
  options_.duration_ns = 1200 * kMs;
  const Recording result = Record(options_);
  EXPECT_TRUE(result.has_accounts);
  EXPECT_EQ(Text("SELECT program FROM run_summary"), "my_reader");
  EXPECT_EQ(Text("SELECT GROUP_CONCAT(operator, ' ') FROM (SELECT operator FROM operator_summary "
                 "ORDER BY position_index)"),
            "read decode");
  EXPECT_GT(Integer("SELECT completions_count FROM operator_summary WHERE operator = 'decode'"), 5);
  // Where others take the cores, b may not be told apart from q; c is.
  EXPECT_EQ(Integer("SELECT COALESCE(blocked_ns, blocked_high_ns) > on_cpu_ns AND on_cpu_ns < "
                    "0.3 * busy_ns FROM operator_summary WHERE operator = 'read'"),
            1);
  EXPECT_EQ(Integer("SELECT on_cpu_ns > COALESCE(blocked_ns, blocked_low_ns) FROM operator_summary "
                    "WHERE operator = 'decode'"),
            1);
  EXPECT_GT(Integer("SELECT steps_count FROM step_summary"), 5);
  EXPECT_EQ(Text("SELECT queue FROM queue_summary"), "ready");
}

TEST_F(Recorder, ProbesAreReadStoredAndStopped) {
  fake.available = true;
  options_.pid = fake.pid = StartPipeline(30);
  options_.duration_ns = 1300 * kMs;
  Record(options_);
  EXPECT_GE(fake.reads, kFewTicks - 1) << "ten a second where the machine is free";
  EXPECT_EQ(fake.stops, 1);
  EXPECT_EQ(fake.pids, std::vector<int64_t>{options_.pid});
  ASSERT_EQ(fake.accounts.size(), 1u);
  EXPECT_NE(fake.accounts[0].segment_address, 0u) << "where the process has its segment mapped";
  EXPECT_EQ(Text("SELECT state || reason || fix || affects FROM probe_status WHERE probe = 'a fake "
                 "of the test'"),
            "degradedhalf of itmore of itnothing real");
  EXPECT_EQ(Text("SELECT operator || stage || process || kind FROM measurement_summary WHERE "
                 "subject = 'fake'"),
            "napwork" + Text("SELECT process FROM process_summary") + "counter");
  EXPECT_EQ(Integer(fmt::format("SELECT value = {} FROM measurement_summary WHERE subject = 'fake'",
                                (fake.reads - 1) * 10)),
            1)
      << "the last reading is stored, less what the first found: that was before the run";
  EXPECT_EQ(Integer("SELECT (SELECT SUM(value) FROM measurement_interval WHERE subject = 'fake') = "
                    "(SELECT value FROM measurement_summary WHERE subject = 'fake')"),
            1)
      << "the course adds up to the total";
  EXPECT_EQ(Integer("SELECT COUNT(*) FROM host_summary WHERE subject = 'machine'"), 1);
  EXPECT_EQ(Integer("SELECT samples_count FROM stack_summary"), fake.reads - 1);
  EXPECT_EQ(Integer("SELECT lost_count FROM loss_summary WHERE what = 'fake events'"), fake.reads);
  EXPECT_EQ(Integer("SELECT total_count FROM loss_summary WHERE what = 'fake events'"), 1000);
  EXPECT_EQ(Integer("SELECT value > 0 FROM measurement_summary WHERE metric = 'probe_read_ns' AND "
                    "subject = 'a fake of the test'"),
            1)
      << "what reading a probe costs";
  EXPECT_EQ(Integer("SELECT COUNT(*) FROM metric_list WHERE metric = 'probe_read_ns'"), 1);
  EXPECT_EQ(Text("PRAGMA integrity_check"), "ok");
}

// Starting the probes takes a while, in which the machine's counters go on: none of it is the
// run's.
TEST_F(Recorder, HostCountersCoverTheRunAndNothingElse) {
  options_.level.reset();  // with all probes, so that starting takes its time
  options_.pid = StartPipeline(30);
  options_.duration_ns = 2500 * kMs;
  probes::HostCpu begin, end;
  int64_t begin_ns = 0;
  options_.ready = [&](int64_t, bool) {
    begin = probes::ReadHostCpu().value();
    begin_ns = MonotonicNs();
  };
  const pid_t spinner = fork();
  if (spinner == 0) {
    while (true) {
    }
  }
  children_.push_back(spinner);
  int64_t end_ns = 0;
  options_.stop = [&] {  // the last answer is at the end
    end = probes::ReadHostCpu().value();
    end_ns = MonotonicNs();
    return false;
  };
  Record(options_);
  const auto run_ns = static_cast<double>(Integer("SELECT duration_ns FROM run_summary"));
  const auto seen = static_cast<double>(
      Integer("SELECT CAST(SUM(last_value) AS INT) FROM host_summary WHERE metric = 'steal_ns' OR "
              "(metric = 'host_cpu_ns' AND cause NOT IN ('idle', 'iowait'))"));
  const auto truth = static_cast<double>(end.busy_ns - begin.busy_ns);
  const auto cpus = static_cast<double>(begin.num_cpus);
  // The kernel counts in ticks of 10 ms, by state. What lies between the run's begin and `ready`,
  // and after the last answer, only the run has seen: at most all CPUs.
  const double ticks_ns = cpus * 30e6;
  const double unseen_ns = cpus * (run_ns - static_cast<double>(end_ns - begin_ns));
  EXPECT_GT(seen, 0.98 * truth - ticks_ns);
  EXPECT_LT(seen, 1.02 * truth + ticks_ns + unseen_ns) << run_ns * 1e-9 << " s";
  // No window holds more than its CPUs could do in it; on a busy machine a read may come half a
  // second late.
  EXPECT_EQ(Integer(fmt::format(
                "SELECT COUNT(*) FROM (SELECT SUM(value) AS used, duration_ns FROM "
                "measurement_interval WHERE metric = 'host_cpu_ns' AND cause NOT IN ('idle', "
                "'iowait') GROUP BY start_ns) WHERE used > {} * (duration_ns + 500000000)",
                begin.num_cpus)),
            0)
      << Text(
             "SELECT GROUP_CONCAT((used / 1000000) || ' of ' || (duration_ns / 1000000) || ' ms', "
             "'; "
             "') "
             "FROM (SELECT SUM(value) AS used, duration_ns FROM measurement_interval WHERE metric "
             "= "
             "'host_cpu_ns' AND cause NOT IN ('idle', 'iowait') GROUP BY start_ns)");
}

TEST_F(Recorder, AProbeThatFailsNeverEndsTheRecording) {
  fake.available = true;
  fake.fail_at_read = 3;
  options_.pid = fake.pid = StartPipeline(30);
  options_.duration_ns = 2000 * kMs;  // three reads also where a sanitizer slows them
  EXPECT_EQ(Record(options_).state, RunState::kComplete);
  EXPECT_EQ(fake.reads, 3) << "it is not asked again";
  EXPECT_EQ(Text("SELECT state || reason FROM probe_status WHERE probe = 'a fake of the test'"),
            "degradedstopped while recording: read went wrong");
  EXPECT_EQ(Integer("SELECT CAST(value AS INTEGER) FROM measurement_summary WHERE subject = "
                    "'machine'"),
            10)
      << "what it gave before is kept, less what was before the run";
  fake = {};
  fake.start_throws = true;
  EXPECT_EQ(Record(options_).state, RunState::kComplete);
  EXPECT_EQ(Text("SELECT state || reason FROM probe_status WHERE run_id = 2 AND probe = 'a fake of "
                 "the test'"),
            "unavailablestart went wrong");
}

TEST_F(Recorder, TheLevelLeavesProbesAndAccountsOut) {
  fake.available = true;
  options_.pid = StartPipeline(30);
  options_.duration_ns = 300 * kMs;
  options_.level = 0;
  const Recording result = Record(options_);
  EXPECT_FALSE(result.has_accounts);
  EXPECT_EQ(fake.reads, 0);
  EXPECT_EQ(Text("SELECT reason || '; ' || fix FROM probe_status WHERE probe = 'a fake of the "
                 "test'"),
            "left out by --level 0; --level 1");
  EXPECT_EQ(Integer("SELECT level_asked FROM run_summary"), 0);
  EXPECT_EQ(Integer("SELECT COUNT(*) FROM operator_summary"), 0);
}

// Two worker processes with the same code: one set of operators.
TEST_F(Recorder, AccountsOfATreeAreOnePipeline) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t root = fork();
  if (root == 0) {
    for (int i = 0; i < 2; i++) {
      if (fork() == 0) Pipeline(2.0, fds[1]);
    }
    while (waitpid(-1, nullptr, 0) > 0) {
    }
    _exit(0);
  }
  children_.push_back(root);
  char x;
  ASSERT_EQ(read(fds[0], &x, 1), 1);
  options_.pid = root;
  const Recording result = Record(options_);
  End(root);
  EXPECT_TRUE(result.has_accounts);
  EXPECT_EQ(result.state, RunState::kComplete);
  EXPECT_EQ(Integer("SELECT COUNT(*) FROM operator_summary"), 1);
  // Sanitizers start helpers of their own.
  EXPECT_EQ(Integer("SELECT COUNT(*) FROM process_summary WHERE has_accounts OR role = 'root'"), 3);
  EXPECT_EQ(Integer("SELECT SUM(has_accounts) FROM process_summary"), 2);
  EXPECT_EQ(Integer("SELECT MAX(parallelism_count) > 1.5 FROM stage_interval"), 1);
  const int64_t busy = Integer("SELECT busy_ns FROM operator_summary");
  // Busy time of both processes; how late the recording began depends on the machine.
  EXPECT_GT(static_cast<double>(busy), 1.2 * static_cast<double>(result.duration_ns));
  EXPECT_LT(static_cast<double>(busy), 2.2 * static_cast<double>(result.duration_ns));
  // Either process may be between an element's end and its step when the recording begins.
  EXPECT_LE(Integer("SELECT ABS(completions_count - steps_count) FROM operator_summary, "
                    "step_summary"),
            2);
  EXPECT_EQ(Integer("SELECT ABS(SUM(o.busy_ns + o.wait_in_ns + o.wait_out_ns) + s.unattributed_ns "
                    "- s.lifetime_ns) * 20 < s.lifetime_ns FROM operator_summary AS o JOIN "
                    "stage_summary AS s USING (run_id, stage)"),
            1);
}

// The image changes, the process stays; the segment of the old image is history.
TEST_F(Recorder, ATargetThatExecutesAnotherImageIsFollowed) {
  int fds[2], seen[2];
  ASSERT_EQ(pipe(fds), 0);
  ASSERT_EQ(pipe(seen), 0);
  const pid_t child = fork();
  char x;
  if (child == 0) {
    hr_account_open("first");
    const uint32_t op = hr_operator("old", "sleep", hr_stage("work", 1, 0));
    [[maybe_unused]] ssize_t n = write(fds[1], "x", 1);
    n = read(seen[0], &x, 1);
    hr_enter(op);
    SleepUntilNs(MonotonicNs() + 400 * kMs);
    execlp("sleep", "sleep", kThreadSanitizer ? "2" : "0.6", nullptr);
    _exit(127);
  }
  children_.push_back(child);
  ASSERT_EQ(read(fds[0], &x, 1), 1);
  options_.pid = child;
  options_.ready = [&](int64_t, bool) { ASSERT_EQ(write(seen[1], "x", 1), 1); };
  const Recording result = Record(options_);
  End(child);
  EXPECT_TRUE(result.has_accounts);
  EXPECT_TRUE(result.target_ended);
  EXPECT_EQ(Text("SELECT process FROM process_summary WHERE role = 'root'"), "sleep");
  EXPECT_LT(Integer("SELECT busy_ns FROM operator_summary WHERE operator = 'old'"), 800 * kMs)
      << "an image that is gone does not go on working";
}

TEST_F(Recorder, AgentStartsAndStopsTheCollectorProcess) {
  AgentOptions agent_options;
  agent_options.executable = HEADRACE_BINARY_DIR "/headrace";
  if (!std::filesystem::exists(agent_options.executable)) {
    GTEST_SKIP() << "the executable is not built";
  }
  agent_options.database = options_.database;
  agent_options.run_name = "by agent";
  agent_options.pid = StartPipeline(30);
  int64_t run_id;
  {
    Agent agent = Agent::Start(agent_options);
    SleepUntilNs(MonotonicNs() + 600 * kMs);
    run_id = agent.Stop();
  }
  EXPECT_EQ(Text(fmt::format("SELECT state FROM run_summary WHERE run_id = {}", run_id)),
            "complete");
  EXPECT_EQ(Text("SELECT name FROM run_summary"), "by agent");
  EXPECT_GT(Integer("SELECT completions_count FROM operator_summary"), 100);
  {
    Agent agent = Agent::Start(agent_options);
    kill(agent.collector_pid(), SIGKILL);
    EXPECT_THROW(agent.Stop(), Error);
  }
  std::ofstream(options_.database + ".txt") << std::string(4000, 'x');
  agent_options.database = options_.database + ".txt";
  try {
    Agent::Start(agent_options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_THAT(error.what(), HasSubstr("not a headrace database"));
  }
}

}  // namespace
}  // namespace headrace::collectors
