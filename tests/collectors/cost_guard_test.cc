#include "collectors/cost_guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <optional>

namespace headrace::collectors {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Answer {
  int second;
  TooMuchCost cost;
};

// The first answer to readings a second apart, if one came in `seconds`; `each`: what is added in a
// nanosecond, without its time.
std::optional<Answer> FirstAnswer(const CostReading& each, double num_cores = 2, int seconds = 60) {
  CostGuard guard(num_cores, 2);
  for (int s = 0; s <= seconds; ++s) {
    const double now = static_cast<double>(s) * kSecond;
    CostReading reading = each;
    reading.at_ns = s * kSecond;
    reading.recorder_cpu_ns *= now;
    for (auto& [probe, ns] : reading.kernel_programs_ns) ns *= now;
    reading.program_cpu_ns *= now;
    if (reading.host_busy_ns) *reading.host_busy_ns *= now;
    for (auto& [probe, ns] : reading.helpers_cpu_ns) ns *= now;
    reading.accounts_cpu_ns *= now;
    if (const auto cost = guard.Add(reading)) return Answer{s, *cost};
  }
  return std::nullopt;
}

constexpr const char* kNone = "none is too much";

// Readings of a recorder that takes `recorder` of one core and whose eBPF programs take `programs`
// of one, of a program that uses `cores`; the second of the first answer, 0 if none came in
// `seconds`. All programs of the machine use `busy` cores, if that is known.
int SecondOfAnswer(double num_cores, double recorder, double programs, double cores, int seconds,
                   double* cost = nullptr, std::optional<double> busy = std::nullopt) {
  const auto answer =
      FirstAnswer({0, recorder, {{"faults", programs}}, cores, busy}, num_cores, seconds);
  if (answer && cost != nullptr) *cost = answer->cost.share;
  return answer ? answer->second : 0;
}

TEST(CostGuard, AnswersOnceItIsTooMuch) {
  double cost = 0;
  EXPECT_EQ(SecondOfAnswer(2, 0.01, 0.06, 2, 60, &cost), 14);
  EXPECT_NEAR(cost, 0.06 / 2 + 0.01 / 2, 1e-9);
  EXPECT_EQ(SecondOfAnswer(2, 0.01, 0.02, 2, 60), 0);
  // Many cores: what the recorder takes beside them is less of the machine.
  EXPECT_EQ(SecondOfAnswer(2, 0.06, 0, 2, 60), 14);
  // Far too much does not wait.
  EXPECT_EQ(SecondOfAnswer(2, 0.01, 0.2, 2, 60, &cost), 4);
  EXPECT_NEAR(cost, 0.2 / 2 + 0.01 / 2, 1e-9);
  EXPECT_EQ(SecondOfAnswer(16, 0.06, 0, 16, 60), 0);
  // Of a program that waits most of the time the programs' share is one of the time.
  EXPECT_EQ(SecondOfAnswer(2, 0.01, 0.01, 0.05, 60), 0);
}

TEST(CostGuard, WhatIdleCoresDoCostsNothing) {
  double cost = 0;
  EXPECT_EQ(SecondOfAnswer(2, 0.06, 0, 0.2, 60, nullptr, 0.26), 0);
  EXPECT_EQ(SecondOfAnswer(2, 0.06, 0, 0.2, 60, &cost, 2.06), 14);  // others use the cores
  EXPECT_NEAR(cost, 0.03, 1e-9);
  EXPECT_EQ(SecondOfAnswer(2, 0.06, 0.03, 0.2, 60, &cost, 0.26), 14);  // its programs do not
  EXPECT_NEAR(cost, 0.03 + 0.03 * 0.1, 1e-9);
  EXPECT_EQ(SecondOfAnswer(1, 0.06, 0, 0.9, 60, nullptr, 0.96), 14);  // the quota is in use
}

// The probes that may be given up one by one.
TEST(CostGuard, NamesTheProbesThatCost) {
  const auto costly = [](double faults, double switches, double recorder) {
    const auto answer =
        FirstAnswer({0, recorder, {{"faults", faults}, {"switches", switches}}, 2, std::nullopt});
    return answer ? fmt::format("{}", fmt::join(answer->cost.probes, ", ")) : kNone;
  };
  EXPECT_EQ(costly(0.05, 0.01, 0.01), "faults, switches");
  EXPECT_EQ(costly(0.01, 0.05, 0.01), "switches, faults");
  EXPECT_EQ(costly(0.05, 0.045, 0.01), "");
  EXPECT_EQ(costly(0.02, 0.01, 0.06), "");
  EXPECT_EQ(costly(0.003, 0, 0.038), "") << "it is not the probe's";
  // A little too much: any that is a good part of it.
  EXPECT_EQ(costly(0.02, 0.021, 0.01), "switches, faults");
  EXPECT_EQ(costly(0.03, 0.004, 0.01), "faults");
  EXPECT_EQ(costly(0.02, 0.01, 0.001), "none is too much");
}

// What accounts take in the program stays whatever is given up: it is most of what may be taken,
// but leaves the recorder and its programs a half.
TEST(CostGuard, AccountsCountButLeaveAHalf) {
  const auto costly = [](double accounts, double programs, double recorder) {
    const auto answer =
        FirstAnswer({0, recorder, {{"switches", programs}}, 2, std::nullopt, {}, accounts});
    return answer ? fmt::format("after {} s {:.3f}: {}", answer->second, answer->cost.share,
                                fmt::join(answer->cost.probes, ", "))
                  : kNone;
  };
  EXPECT_EQ(costly(0.03, 0.02, 0.02), "after 14 s 0.035: switches");
  EXPECT_EQ(costly(0.03, 0, 0.03), "after 14 s 0.030: ") << "no probe takes it";
  EXPECT_EQ(costly(0.03, 0, 0.015), "none is too much") << "a half is left";
  EXPECT_EQ(costly(0.2, 0, 0.015), "none is too much") << "giving up brings little";
  EXPECT_EQ(costly(0.01, 0.01, 0.015), "none is too much") << "together 1.75 %";
  EXPECT_EQ(costly(0.2, 0.02, 0.015), "after 14 s 0.117: switches")
      << "far too much is the program's";
}

// Programs beside the recorder are a part of what it takes.
TEST(CostGuard, NamesTheProbeWhoseProgramsCost) {
  const auto costly = [](double switches, double recorder, double py_spy) {
    const auto answer =
        FirstAnswer({0, recorder, {{"switches", switches}}, 2, std::nullopt, {{"py-spy", py_spy}}});
    return answer
               ? fmt::format("{:.3f}: {}", answer->cost.share, fmt::join(answer->cost.probes, ", "))
               : kNone;
  };
  EXPECT_EQ(costly(0.01, 0.06, 0.05), "0.035: py-spy, switches");
  EXPECT_EQ(costly(0.03, 0.02, 0.01), "0.025: switches, py-spy");
  EXPECT_EQ(costly(0.01, 0.08, 0.07), "0.045: py-spy") << "without it the rest is little";
  EXPECT_EQ(costly(0.01, 0.02, 0.01), "none is too much");
}

TEST(CostGuard, ABurstIsNoCost) {
  CostGuard guard(2, 2);
  double programs = 0;
  for (int s = 0; s < 20; ++s) {
    programs += (s == 7 ? 0.06 : 0.005) * kSecond;
    EXPECT_FALSE(
        guard.Add({s * kSecond, 0, {{"faults", programs}}, 2.0 * s * kSecond, std::nullopt}))
        << s;
  }
}

TEST(CostGuard, TwoSecondsInWhichWorkersStartAreNoCost) {
  const auto answers = [](int until) {
    CostGuard guard(2, 2);
    double programs = 0;
    int count = 0;
    for (int s = 0; s < 20; ++s) {
      programs += (s > 10 && s < until ? 0.15 : 0.01) * kSecond;
      count +=
          guard.Add({s * kSecond, 0, {{"faults", programs}}, 2.0 * s * kSecond, std::nullopt}) !=
          std::nullopt;
    }
    return count;
  };
  EXPECT_EQ(answers(13), 0);
  EXPECT_GT(answers(20), 0);
}

// The programs are timed a tenth of the time: two seconds may hold two looks at a burst.
TEST(CostGuard, TwoLooksAtABurstAreNoFarTooMuch) {
  CostGuard guard(2, 2);
  double programs = 0;
  for (int s = 0; s < 20; ++s) {
    programs += (s == 3 || s == 4 ? 0.25 : 0.01) * kSecond;
    EXPECT_FALSE(
        guard.Add({s * kSecond, 0, {{"faults", programs}}, 2.0 * s * kSecond, std::nullopt}))
        << s;
  }
}

TEST(CostGuard, AProgramThatReadsItsLibrariesIsNoCost) {
  CostGuard guard(2, 2);
  double recorder = 0;
  for (int s = 0; s < 20; ++s) {
    recorder += (s < 9 ? 0.1 : 0.01) * kSecond;
    EXPECT_FALSE(guard.Add({s * kSecond, recorder, {}, 2.0 * s * kSecond, std::nullopt})) << s;
  }
}

TEST(CostGuard, AfterAnAnswerItWaitsForWhatTheStepDownBrings) {
  CostGuard guard(2, 2);
  int answers = 0;
  for (int s = 0; s <= 12; ++s) {
    const double now = static_cast<double>(s) * kSecond;
    answers +=
        guard.Add({s * kSecond, 0, {{"faults", 0.5 * now}}, 2 * now, std::nullopt}).has_value();
  }
  EXPECT_EQ(answers, 3);
}

TEST(CostGuard, ReadingsOfOneInstantSayNothing) {
  CostGuard guard(2, 2);
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(guard.Add({kSecond, 1e9 * i, {{"faults", 1e9 * i}}, 1e9 * i, std::nullopt}));
}

}  // namespace
}  // namespace headrace::collectors
