// What members of a job measure, on its way and in the fleet file: nothing is lost, nothing counts
// twice, and nothing that nobody measured is believed.
#include "collectors/shipment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <random>

#include "base/clock.h"
#include "base/error.h"
#include "collectors/shipper.h"
#include "collectors/store/fleet_store.h"
#include "probes/account/account.h"
#include "probes/account/scope.h"
#include "tests/collectors/store_fixture.h"
#include "tests/collectors/times.h"
#include "tests/seed.h"

namespace headrace::collectors {
namespace {

std::span<const uint8_t> BytesOfShipment(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// `number`-th second of a worker that made 100 rows in each.
Shipment SecondOf(int64_t number) {
  Shipment s;
  s.role = "worker";
  s.info.program = "worker";
  s.info.pid = 7;
  s.info.started_realtime_ns = 1'000;
  s.interval.start_ns = number * kSecond;
  s.interval.duration_ns = kSecond;
  StageSample stage;
  stage.name = "decode";
  stage.lifetime_ns = stage.parallelism_ns = stage.observed_ns = kSecond;
  stage.on_cpu_ns = kSecond / 2;
  s.interval.stages = {stage};
  OperatorSample op;
  op.name = op.kind = "decode";
  op.rows = 100;
  op.busy_ns = kSecond / 2;
  op.on_cpu_ns = kSecond / 4;
  s.interval.operators = {op};
  s.interval.steps.steps = 2;
  s.interval.steps.wait_ns = 5;
  s.interval.steps.durations_ns = {30, 40};
  s.measured.metrics = {{"process_cpu_ns", "ns", "counter", "counter", "none", "CPU time"}};
  s.measured.definitions = {{1, "process_cpu_ns", "counter", {}, {}, "", "", "", {}}};
  s.measured.totals = {{1, kSecond, 1.0, 2.0, 3.0, static_cast<double>(number + 1) * 4e8, {}}};
  s.measured.intervals = {{1, number * kSecond, kSecond, 4e8}};
  return s;
}

JobRow SomeJob() {
  JobRow job;
  job.job = "train";
  job.fingerprint = "f";
  job.mode = "lockstep";
  return job;
}

TEST(Shipment, AllOfItSurvivesTheWire) {
  Shipment s = SecondOf(3);
  s.role = "rank";
  s.rank = 5;
  s.is_last = true;
  s.interval.operators[0].runnable_ns.reset();
  const std::string bytes = SerializeShipment(s);
  const Shipment back = ParseShipment(BytesOfShipment(bytes));
  EXPECT_EQ(SerializeShipment(back), bytes);
  EXPECT_EQ(back.rank, 5);
  EXPECT_TRUE(back.is_last);
  EXPECT_EQ(back.interval.operators[0].rows, 100);
  EXPECT_FALSE(back.interval.operators[0].runnable_ns.has_value());
  EXPECT_EQ(back.measured.intervals[0].value, 4e8);
}

TEST(Shipment, WhatIsCutOrImpossibleIsRefused) {
  const std::string bytes = SerializeShipment(SecondOf(0));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(ParseShipment(BytesOfShipment(bytes.substr(0, size))), Error) << size;
  EXPECT_THROW(ParseShipment(BytesOfShipment(bytes + "x")), Error);
  std::string other = bytes;
  other[0] = 9;
  EXPECT_THROW(ParseShipment(BytesOfShipment(other)), Error);
  struct Case {
    const char* name;
    void (*spoil)(Shipment*);
  };
  const Case cases[] = {
      {"a negative count", [](Shipment* s) { s->interval.operators[0].rows = -1; }},
      {"a count beyond any", [](Shipment* s) { s->interval.steps.rows = INT64_MAX; }},
      {"a time before the begin", [](Shipment* s) { s->interval.start_ns = -1; }},
      {"a figure that is no number", [](Shipment* s) { s->measured.totals[0].last = NAN; }},
      {"an unknown role", [](Shipment* s) { s->role = "king"; }},
      {"a worker with a rank", [](Shipment* s) { s->rank = 1; }},
      {"a zero byte in a name", [](Shipment* s) { s->interval.stages[0].name.push_back('\0'); }},
  };
  for (const Case& one : cases) {
    Shipment spoilt = SecondOf(0);
    one.spoil(&spoilt);
    EXPECT_THROW(ParseShipment(BytesOfShipment(SerializeShipment(spoilt))), Error) << one.name;
  }
}

TEST_F(Store, AShipmentThatComesAgainCountsOnce) {
  {
    FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
    for (const int64_t second : {0, 1, 1, 0, 2})  // as sent again by a member that heard nothing
      fleet.Add("a", SecondOf(second), 10);
    EXPECT_FALSE(fleet.Add("a", SecondOf(2), 10));
  }
  {
    // Another dispatcher goes on with the job; the member sends again what it knows no answer to.
    RunInfo another = Info("dispatcher");
    another.pid++;
    FleetStore fleet(path_, SomeJob(), another);
    EXPECT_FALSE(fleet.Add("a", SecondOf(2), 20));
    EXPECT_TRUE(fleet.Add("a", SecondOf(3), 20));
    EXPECT_TRUE(fleet.Add("b", SecondOf(0), 20));
    EXPECT_EQ(Row("SELECT DISTINCT state FROM member_summary WHERE role = 'worker'"), "recording");
    fleet.Finish(FleetStore::End::kComplete);
  }
  EXPECT_EQ(Row("SELECT m.number, o.rows_count, o.busy_ns FROM operator_summary AS o JOIN "
                "member_summary AS m USING (run_id) ORDER BY 1"),
            "1|400|2000000000\n2|100|500000000");
  EXPECT_EQ(Row("SELECT steps_count FROM step_summary ORDER BY run_id"), "8\n2");
  EXPECT_EQ(Row("SELECT last_value FROM host_summary WHERE metric = 'process_cpu_ns' ORDER BY "
                "run_id"),
            "1.6e+09\n4e+08");
  EXPECT_EQ(Row("SELECT state, left_rows_count FROM job_summary"), "complete|0");
  EXPECT_EQ(Row("SELECT role, COUNT(*) FROM member_summary GROUP BY role ORDER BY role"),
            "dispatcher|2\nworker|2");
  EXPECT_EQ(Row("SELECT clock_offset_ns FROM member_summary WHERE instance = 'a'"), "10");
}

// Members with 25 operators and 20 measurements each. Prints what docs/measurements.md says.
TEST_F(Store, TwoHundredMembersFitOneFile) {
  constexpr int kMembers = 200, kShipments = 20;
  const int64_t begin = MonotonicNs();
  {
    FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
    for (int64_t second = 0; second < kShipments; ++second) {
      Shipment s = SecondOf(second);
      s.interval.operators.resize(25, s.interval.operators[0]);
      for (int64_t i = 0; i < 25; ++i) {
        s.interval.operators[static_cast<size_t>(i)].id = i;
        s.interval.operators[static_cast<size_t>(i)].name = fmt::format("o{}", i);
      }
      s.measured = {};
      for (int64_t i = 0; i < 20; ++i) {
        const std::string metric = fmt::format("m{}", i);
        s.measured.metrics.push_back({metric, "ns", "counter", "counter", "none", ""});
        s.measured.definitions.push_back({i, metric, "counter", {}, {}, "", "", "", {}});
        s.measured.totals.push_back({i, 1, 1, 1, 1, 1, {}});
        s.measured.intervals.push_back({i, s.interval.start_ns, kSecond, 1});
      }
      for (int member = 0; member < kMembers; ++member)
        ASSERT_TRUE(fleet.Add(std::to_string(member), s, 0));
    }
  }
  const double seconds = static_cast<double>(MonotonicNs() - begin) / 1e9;
  const auto bytes = static_cast<double>(std::filesystem::file_size(path_));
  fmt::print("{} shipments: {:.0f} a second, {:.2f} KiB each\n", kMembers * kShipments,
             kMembers * kShipments / seconds, bytes / kMembers / kShipments / 1024);
  EXPECT_LT(bytes / kMembers / kShipments, 8192);
  EXPECT_EQ(Row("SELECT SUM(rows_count) FROM operator_summary"),
            std::to_string(100 * 25 * kMembers * kShipments));
}

// Whatever bytes of a shipment are changed: it is refused, or kept once.
TEST_F(Store, ADamagedShipmentDoesNoHarm) {
  FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
  const std::string real = SerializeShipment(SecondOf(0));
  const uint64_t seed = TestSeed();
  std::mt19937_64 draw(seed);
  int kept = 0;
  for (int run = 0; run < 2000; ++run) {
    std::string bytes = real;
    for (int change = 0; change < 3; ++change)
      bytes[draw() % bytes.size()] = static_cast<char>(draw());
    const std::string member = std::to_string(run);
    try {
      const Shipment s = ParseShipment(BytesOfShipment(bytes));
      if (!fleet.Add(member, s, 0)) continue;
      ++kept;
      // Of no length it may be the one before the first.
      EXPECT_TRUE(s.interval.duration_ns == 0 || !fleet.Add(member, s, 0))
          << "seed " << seed << ", run " << run;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData) << "seed " << seed << ": " << error.what();
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_EQ(Row("PRAGMA integrity_check"), "ok");
}

TEST_F(Store, AJobThatEndedIsNotGoneOnWith) {
  {
    FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
    fleet.Finish(FleetStore::End::kEnded);
  }
  JobRow other = SomeJob();
  other.fingerprint = "g";  // and neither is one of another table
  { FleetStore again(path_, SomeJob(), Info("dispatcher")); }
  { FleetStore changed(path_, other, Info("dispatcher")); }
  EXPECT_EQ(Row("SELECT job_id, state FROM job_summary ORDER BY job_id"),
            "1|ended\n2|ended\n3|running");
  other.epochs = 2;  // nor a longer one of the same
  { FleetStore longer(path_, other, Info("dispatcher")); }
  EXPECT_EQ(Row("SELECT state FROM job_summary WHERE job_id >= 3 ORDER BY job_id"),
            "ended\nrunning");
}

TEST_F(Store, AJobWhoseDispatcherDiedIsInterrupted) {
  FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
  EXPECT_EQ(Row("SELECT state FROM job_summary"), "running");
  Database(path_, Database::Mode::kReadWrite)
      .Execute("UPDATE runs SET state = 'interrupted' WHERE run_id = 1");
  EXPECT_EQ(Row("SELECT state FROM job_summary"), "interrupted");
}

// A dispatcher may die between keeping the last shipment of a member and saying that it was it.
TEST_F(Store, ALastShipmentThatComesAgainEndsTheMember) {
  FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
  Shipment s = SecondOf(0);
  EXPECT_TRUE(fleet.Add("a", s, 0));
  s.is_last = true;
  EXPECT_FALSE(fleet.Add("a", s, 0));
  EXPECT_EQ(Row("SELECT state, has_ended FROM member_summary WHERE role = 'worker'"), "complete|1");
}

TEST_F(Store, AShipmentThatCannotBeKeptLeavesNothing) {
  FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
  Shipment s = SecondOf(0);
  s.measured.definitions.push_back(s.measured.definitions[0]);  // one number for two
  EXPECT_THROW(fleet.Add("a", s, 0), Error);
  EXPECT_EQ(Row("SELECT COUNT(*) FROM member_summary WHERE role = 'worker'"), "0");
}

// Nor what its message said of the clock: the next member may get the number of its run.
TEST_F(Store, TheClockOfAShipmentThatCannotBeKeptIsForgotten) {
  FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
  Shipment s = SecondOf(0);
  s.measured.definitions.push_back(s.measured.definitions[0]);
  EXPECT_THROW(fleet.Add("a", s, -3600 * kSecond), Error);
  fleet.Add("b", SecondOf(0), 50);
  EXPECT_EQ(Row("SELECT clock_offset_ns FROM member_summary WHERE role = 'worker'"), "50");
}

TEST_F(Store, CourseAndEventsOfAJobAreKept) {
  FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
  fleet.Add("a", SecondOf(0), 0);
  JobInterval interval;
  interval.duration_ns = kSecond;
  interval.leases = 5;
  interval.left_rows = 70;
  fleet.AddInterval(interval);
  fleet.AddEvent({3, "worker_lost", "a", "gone", 2});
  fleet.AddEvent({4, "term_began", "", "all there", {}});
  EXPECT_EQ(Row("SELECT leases_count, left_rows_count, wanted_count IS NULL FROM job_interval"),
            "5|70|1");
  EXPECT_EQ(Row("SELECT kind, role, number, splits_count FROM job_event ORDER BY event_index"),
            "worker_lost|worker|1|2\nterm_began|||");
  EXPECT_EQ(Row("SELECT left_rows_count FROM job_summary"), "70");
}

// A clock that was set for a moment says nothing of the time after.
TEST_F(Store, WhatAMessageSaysOfAClockHoldsForTenMinutes) {
  FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
  const auto offset_after = [&](int64_t second, int64_t offset_ns) {
    fleet.Add("a", SecondOf(second), offset_ns);
    return Row("SELECT clock_offset_ns FROM member_summary WHERE role = 'worker'");
  };
  EXPECT_EQ(offset_after(0, 50), "50");
  EXPECT_EQ(offset_after(1, 70), "50");  // a slower message
  EXPECT_EQ(offset_after(2, -3600 * kSecond), std::to_string(-3600 * kSecond));
  EXPECT_EQ(offset_after(3, 60), std::to_string(-3600 * kSecond));
  EXPECT_EQ(offset_after(500, 80), std::to_string(-3600 * kSecond));
  EXPECT_EQ(offset_after(700, 90), "80");
  // Another dispatcher goes on with what is stored.
  FleetStore next(path_, SomeJob(), Info("dispatcher"));
  next.Add("a", SecondOf(701), 100);
  EXPECT_EQ(Row("SELECT clock_offset_ns FROM member_summary WHERE role = 'worker'"), "80");
}

TEST_F(Store, OfEventsTheNewestAreKept) {
  FleetStore fleet(path_, SomeJob(), Info("dispatcher"));
  constexpr int64_t kEvents = kMostJobEvents + 2500;
  {
    Transaction transaction(fleet.runs().database());
    for (int64_t i = 0; i < kEvents; ++i) fleet.AddEvent({i, "worker_joined", "", "x", {}});
    transaction.Commit();
  }
  const int64_t kept = std::stoll(Row("SELECT COUNT(*) FROM job_event"));
  EXPECT_GE(kept, kMostJobEvents);
  EXPECT_LE(kept, kMostJobEvents + 1000);
  EXPECT_EQ(Row("SELECT MAX(event_index) FROM job_event"), std::to_string(kEvents - 1));
  EXPECT_EQ(Row("SELECT MAX(event_index) - MIN(event_index) + 1 FROM job_event"),
            std::to_string(kept));
}

// The accounts of this very process, which worked for a moment.
TEST(Shipper, WhatIsNotKeptIsSentAgain) {
  hr_account_open("shipper_test");
  const uint32_t stage = hr_stage("shipped", 1, 0);
  const uint32_t op = hr_operator("shipped_work", "decode", stage);
  ShipperOptions options;
  options.role = "worker";
  options.least_interval_ns = 1;
  options.most_interval_ns = 1;
  Shipper shipper(options);
  const auto work = [&] {
    account::ThreadScope thread(stage);
    account::OperatorScope scope(op);
    scope.Done(10, 0, 0);
  };
  work();
  const auto first = shipper.Next(false);
  ASSERT_TRUE(first.has_value());
  work();
  const auto second = shipper.Next(true);
  ASSERT_TRUE(second.has_value());
  EXPECT_GT(second->number, first->number);
  EXPECT_FALSE(shipper.Next(true).has_value());  // nothing after the last
  shipper.Kept(first->number);
  shipper.Connected();
  const auto again = shipper.Next(true);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->number, second->number);
  EXPECT_EQ(again->bytes, second->bytes);
  shipper.Kept(second->number);
  EXPECT_EQ(shipper.num_waiting(), 0u);
  int64_t rows = 0;
  int64_t end_ns = 0;
  for (const auto* due : {&*first, &*second}) {
    const Shipment s = ParseShipment(BytesOfShipment(due->bytes));
    EXPECT_EQ(s.interval.start_ns, end_ns);
    end_ns = s.interval.start_ns + s.interval.duration_ns;
    for (const OperatorSample& o : s.interval.operators)
      if (o.name == "shipped_work") rows += o.rows;
  }
  EXPECT_EQ(rows, 20);
}

// Seconds that the process is said to have stood still.
double AbsentSeconds(const Shipper::Due& due) {
  const Shipment s = ParseShipment(BytesOfShipment(due.bytes));
  for (const MeasurementRow& row : s.measured.definitions)
    for (const MeasurementTotal& total : s.measured.totals)
      if (row.metric == "process_absent_ns" && row.id == total.id) return total.last / 1e9;
  return 0;
}

TEST(Shipper, AWaitForADispatcherIsNoPause) {
  hr_account_open("shipper_test");
  ShipperOptions options;
  options.role = "worker";
  options.least_interval_ns = options.most_interval_ns = 1;
  for (const bool has_waited : {false, true}) {
    Shipper shipper(options);
    shipper.Next(false);
    usleep(600'000);
    if (has_waited) shipper.Connected();
    const auto due = shipper.Next(true);
    ASSERT_TRUE(due.has_value());
    if (has_waited) {
      EXPECT_LT(AbsentSeconds(*due), 0.5);
    } else {
      EXPECT_GT(AbsentSeconds(*due), 0.5);
    }
  }
}

TEST(Shipper, WithoutADispatcherMemoryIsBoundedAndSumsStay) {
  hr_account_open("shipper_test");
  const uint32_t stage = hr_stage("shipped", 1, 0);
  const uint32_t op = hr_operator("shipped_alone", "decode", stage);
  ShipperOptions options;
  options.role = "worker";
  options.least_interval_ns = options.most_interval_ns = 1;
  Shipper shipper(options);
  constexpr int kIntervals = 300;
  std::vector<Shipper::Due> got;
  for (int i = 0; i < kIntervals; ++i) {
    {
      account::ThreadScope thread(stage);
      account::OperatorScope scope(op);
      scope.Done(1, 0, 0);
    }
    // It hears of nothing that is kept.
    if (auto due = shipper.Next(false)) got.push_back(std::move(*due));
    EXPECT_LE(shipper.num_waiting(), 64u);
  }
  for (;;) {
    if (auto due = shipper.Next(true)) {
      got.push_back(std::move(*due));
    } else if (shipper.num_waiting() > 0) {
      shipper.Kept(got.back().number);
      if (shipper.num_waiting() == 0) break;
    }
  }
  int64_t rows = 0;
  for (const Shipper::Due& due : got)
    for (const OperatorSample& o : ParseShipment(BytesOfShipment(due.bytes)).interval.operators)
      if (o.name == "shipped_alone") rows += o.rows;
  EXPECT_EQ(rows, kIntervals);
}

}  // namespace
}  // namespace headrace::collectors
