#include "analysis/run/unseen_processes.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace::analysis {
namespace {

// Ten seconds of a program; times in seconds.
class Program {
 public:
  Program() { run.run.duration_ns = 10'000'000'000; }

  void Add(const char* name, bool has_accounts, double cpu_s, double started_s,
           double ended_s = 0) {
    ProcessRow row;
    row.process = name;
    row.has_accounts = has_accounts;
    row.cpu_ns = static_cast<int64_t>(cpu_s * 1e9);
    row.started_ns = static_cast<int64_t>(started_s * 1e9);
    if (ended_s > 0) row.ended_ns = static_cast<int64_t>(ended_s * 1e9);
    run.processes.push_back(row);
  }

  RunView run;
};

TEST(UnseenProcesses, ThoseWithMostOfTheCpuTimeAreCounted) {
  Program program;
  program.Add("python", true, 4, 0);
  program.Add("pack", false, 3, 1);
  EXPECT_EQ(UnseenProcessesWithMostCpu(program.run), "");
  program.Add("pack", false, 2, 1);
  program.Add("pack", false, 0.01, 1);
  EXPECT_EQ(UnseenProcessesWithMostCpu(program.run), "2 processes pack without instrumentation");
}

Program Started(int times, double life_s, double every_s) {
  Program program;
  program.Add("python", true, 9, 0);
  program.Add("pt_data_worker", true, 2, 1);
  for (int i = 0; i < times; ++i) {
    const double at_s = 1 + i * every_s;
    program.Add("pt_data_worker", false, 0.3, at_s, at_s + life_s);  // before it calls exec()
    program.Add("sh", false, 0, at_s, at_s + life_s);
    program.Add("bzip2", false, 0.3, at_s, at_s + life_s);
  }
  return program;
}

TEST(UnseenProcesses, ManyThatSoonEndAreNamedByWhatTheyExecute) {
  EXPECT_EQ(ShortLivedProcesses(Started(6, 0.5, 1).run, 3.5),
            "18 short-lived processes, such as bzip2");
  EXPECT_EQ(ShortLivedProcesses(Started(6, 0.5, 1).run, 4), "") << "others use more";
  EXPECT_EQ(ShortLivedProcesses(Started(3, 0.5, 2).run, 1), "") << "few";
  EXPECT_EQ(ShortLivedProcesses(Started(6, 3, 1).run, 1), "") << "they live long";
  EXPECT_EQ(ShortLivedProcesses(Started(6, 0.5, 0.1).run, 1), "") << "they began together";
  Program alive;
  for (int i = 0; i < 20; ++i) alive.Add("decode", false, 0.3, 9 + 0.02 * i);
  EXPECT_EQ(ShortLivedProcesses(alive.run, 1), "") << "they have not ended";
}

}  // namespace
}  // namespace headrace::analysis
