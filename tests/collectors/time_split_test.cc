// How an operator's time divides into computing and waiting, at every level, against the ledger
// that the measured process keeps itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <optional>
#include <thread>

#include "tests/collectors/recording_fixture.h"

namespace headrace::collectors {
namespace {

// A process with operators of unlike kind in one stage, on visits of 0.4 ms and of a few
// microseconds, which keeps a ledger of its own: what other programs take from it is not its.
struct Ledger {
  struct Operator {
    int64_t visits = 0, on_cpu_ns = 0, slept_ns = 0;
  } operators[2][3];
};
constexpr const char* kUnlikeStages[] = {"slow", "fast"};
constexpr const char* kUnlikeOperators[] = {"sleeps", "computes", "both"};

void RunUnlike(int kind, int64_t length_ns, const uint32_t (&ids)[3], Ledger* ledger) {
  const int64_t sleep_ns = kind == 0 ? 400'000 : 1'000, spin_ns = kind == 0 ? 400'000 : 2'000;
  prctl(PR_SET_TIMERSLACK, 1);
  hr_thread_begin(hr_process_v1.segment->operators[ids[0]].stage);
  for (const int64_t end = MonotonicNs() + length_ns; MonotonicNs() < end;) {
    for (int i = 0; i < 3; i++) {
      Ledger::Operator& own = ledger->operators[kind][i];
      account::OperatorScope scope(ids[i]);
      const int64_t begin = ThreadCpuNs();
      if (i != 0) {
        for (const int64_t until = MonotonicNs() + spin_ns; MonotonicNs() < until;) {
        }
      }
      if (i != 1) {
        const timespec nap = {0, sleep_ns};
        nanosleep(&nap, nullptr);
        own.slept_ns += sleep_ns;
      }
      own.visits++;
      own.on_cpu_ns += ThreadCpuNs() - begin;
      scope.Done(1, 1, 1);
    }
  }
  hr_thread_end();
}

[[noreturn]] void UnlikePipeline(int begin_fd, int ledger_fd) {
  hr_account_open("unlike");
  uint32_t ids[2][3];
  for (int kind = 0; kind < 2; kind++) {
    const uint32_t stage = hr_stage(kUnlikeStages[kind], 1, 0);
    for (int i = 0; i < 3; i++) ids[kind][i] = hr_operator(kUnlikeOperators[i], "", stage);
  }
  char x;
  Ledger ledger;
  [[maybe_unused]] ssize_t n = write(ledger_fd, "x", 1);
  n = read(begin_fd, &x, 1);
  std::thread fast([&] { RunUnlike(1, 1000 * kMs, ids[1], &ledger); });
  RunUnlike(0, 1000 * kMs, ids[0], &ledger);
  fast.join();
  n = write(ledger_fd, &ledger, sizeof ledger);
  exit(0);
}

class TimeSplit : public RecordingFixture {
 protected:
  // Records the process at that level; false where the level cannot be had here.
  bool RecordAt(int level) {
    int begin[2], told[2];
    EXPECT_EQ(pipe(begin) + pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) UnlikePipeline(begin[0], told[1]);
    children_.push_back(child);
    char x;
    EXPECT_EQ(read(told[0], &x, 1), 1);
    options_.pid = child;
    options_.level = level;
    options_.ready = [&](int64_t, bool) { EXPECT_EQ(write(begin[1], "x", 1), 1); };
    Record(options_);
    EXPECT_EQ(read(told[0], &ledger_, sizeof ledger_), static_cast<ssize_t>(sizeof ledger_));
    for (const int fd : {begin[0], begin[1], told[0], told[1]}) close(fd);
    End(child);
    return Integer("SELECT accounting_level FROM run_summary") == level;
  }
  std::optional<double> Of(int kind, int i, const std::string& column) {
    ReadStore store(options_.database);
    const SqlResult result = store.Query(
        fmt::format("SELECT {} FROM operator_summary WHERE stage = '{}' AND operator = '{}'",
                    column, kUnlikeStages[kind], kUnlikeOperators[i]));
    if (result.rows.size() != 1) {
      ADD_FAILURE() << "no row of " << kUnlikeOperators[i];
      return std::nullopt;
    }
    const auto* value = std::get_if<int64_t>(&result.rows[0][0]);
    return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
  }
  // What the store says is true, and what it says no more than bounds of lies between them.
  void ExpectTruth() {
    for (int kind = 0; kind < 2; kind++) {
      for (int i = 0; i < 3; i++) {
        SCOPED_TRACE(fmt::format("{} {}", kUnlikeStages[kind], kUnlikeOperators[i]));
        const Ledger::Operator& own = ledger_.operators[kind][i];
        const double busy = Of(kind, i, "busy_ns").value_or(0);
        const auto c = static_cast<double>(own.on_cpu_ns),
                   slept = static_cast<double>(own.slept_ns);
        // The ledger does not see its own clock's cost at the ends of a visit.
        const double unseen = static_cast<double>(own.visits) * 3e3 + 5e6;
        const double allowed = 0.1 * busy + unseen;
        EXPECT_GT(own.visits, 20);
        EXPECT_GE(busy, c);
        const auto low = Of(kind, i, "on_cpu_low_ns"), high = Of(kind, i, "on_cpu_high_ns");
        ASSERT_TRUE(low && high);
        EXPECT_LE(*low, c + unseen + 0.01 * busy);
        EXPECT_GE(*high, c - unseen - 0.01 * busy);
        const auto c_told = Of(kind, i, "on_cpu_ns");
        if (c_told) {
          EXPECT_NEAR(*c_told, c, allowed);
        }
        const auto b_low = Of(kind, i, "blocked_low_ns"), b_high = Of(kind, i, "blocked_high_ns");
        ASSERT_TRUE(b_low && b_high);
        EXPECT_LE(*b_low, busy - c + unseen + 0.01 * busy);
        EXPECT_GE(*b_high, slept - unseen - 0.01 * busy);
        const auto b_told = Of(kind, i, "blocked_ns");
        if (b_told) {
          EXPECT_LE(*b_told, i == 1 ? allowed : busy - c + allowed) << "one never blocks";
          EXPECT_GE(*b_told, slept - allowed);
        }
      }
      double c = 0;
      for (const Ledger::Operator& own : ledger_.operators[kind]) {
        c += static_cast<double>(own.on_cpu_ns);
      }
      const double stage = static_cast<double>(Integer(fmt::format(
          "SELECT on_cpu_ns FROM stage_summary WHERE stage = '{}'", kUnlikeStages[kind])));
      EXPECT_GE(stage, c - 5e6) << "all CPU time of the stage, however it divides";
    }
  }
  Ledger ledger_;
};

TEST_F(TimeSplit, Level1TellsNoOperatorsCpuTimeAndBoundsIt) {
  ASSERT_TRUE(RecordAt(1));
  ExpectTruth();
  EXPECT_EQ(Integer("SELECT COUNT(*) FROM operator_summary"), 6);
  EXPECT_EQ(Integer("SELECT COUNT(on_cpu_ns) + COUNT(blocked_ns) + COUNT(runnable_ns) FROM "
                    "operator_summary"),
            0);
  EXPECT_EQ(Integer("SELECT COUNT(on_cpu_ns) FROM operator_interval"), 0);
  EXPECT_EQ(Text("SELECT accounting_note FROM run_summary"), "c, b and q in one figure");
}

TEST_F(TimeSplit, Level2TellsLongVisitsApartAndSaysWhereItCannot) {
  ASSERT_TRUE(RecordAt(2));
  ExpectTruth();
  EXPECT_EQ(Integer("SELECT COUNT(on_cpu_ns) FROM operator_summary WHERE stage = 'slow'"), 3)
      << "whatever others take";
}

TEST_F(TimeSplit, Level3TellsAllApart) {
  if (!RecordAt(3)) {
    GTEST_SKIP() << "no level 3 here: "
                 << Text(
                        "SELECT probe || ': ' || reason FROM probe_status WHERE probe LIKE "
                        "'offcpu%' AND state <> 'active'");
  }
  ExpectTruth();
  const int64_t told = Integer("SELECT COUNT(blocked_ns) FROM operator_summary");
  const int64_t waited = Integer("SELECT SUM(runnable_ns) FROM stage_summary");
  if (told < 6 && waited > 100 * kMs) {
    GTEST_SKIP() << "threads waited " << waited / kMs << " ms for a core: then less is told apart";
  }
  EXPECT_EQ(told, 6);
}

}  // namespace
}  // namespace headrace::collectors
