// Another process of the program that workers ask over the network.
#include "analysis/outside/asked.h"

#include <gtest/gtest.h>

#include "analysis/outside/outside.h"
#include "analysis/thresholds.h"
#include "tests/analysis/outside_run.h"

namespace headrace::analysis {
namespace {

void Counts(const std::string& metric, int64_t pid, const std::string& subject, RunView* view) {
  MeasurementRow row;
  row.metric = metric;
  row.process_id = pid;
  row.subject = subject;
  row.value = 1000;
  view->measurements.push_back(row);
}

// Workers poll for what process 300, which sleeps, answers.
RunView Asking(const std::string& service = "") {
  OutsideRun run;
  if (!service.empty()) {
    const std::string command = "python -c from multiprocessing.resource_tracker import main";
    run.Process(400, 1, service, service == "resource_tracker" ? command : service);
    run.OnCpu(400, service + " (main)", 0.01).Blocked(400, service + " (main)", "poll", 0.98);
  }
  run.Process(100, 1, "python", "python train.py").Process(300, 100, "python");
  run.OnCpu(100, "python (main)", 0.05);
  for (const int64_t pid : {200, 201}) {
    run.Process(pid, 100, "pt_data_worker").OnCpu(pid, "pt_data_worker (main)", 0.05);
    run.Waits(pid, "pt_data_worker (main)", "poll", 0.94, "300/python");
    run.Waits(100, "python (main)", "poll", 0.47, std::to_string(pid) + "/pt_data_worker (main)");
  }
  run.OnCpu(300, "python", 0.02).Blocked(300, "python", "sleep", 0.9);
  run.Waits(300, "python", "network", 0.05, "200/pt_data_worker (main)");
  return run.view;
}

constexpr const char* kServersEnd = "127.0.0.1:80>127.0.0.1:9";
constexpr const char* kClientsEnd = "127.0.0.1:9>127.0.0.1:80";

TEST(Asked, AServerIsOneByItsConnections) {
  RunView view = Asking();
  EXPECT_FALSE(LookFromOutside(view).is_asked_over_network) << "they may be pipes";
  Counts("socket_received_bytes", 300, "unix", &view);
  Counts("socket_sent_bytes", 200, "unix", &view);
  EXPECT_FALSE(LookFromOutside(view).is_asked_over_network) << "as pipes of multiprocessing are";
  Counts("socket_received_bytes", 300, kServersEnd, &view);
  EXPECT_FALSE(LookFromOutside(view).is_asked_over_network) << "by whom?";
  Counts("socket_sent_bytes", 200, kClientsEnd, &view);
  const Outside seen = LookFromOutside(view);
  EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kSleep);
  EXPECT_TRUE(seen.is_asked_over_network);
}

TEST(Asked, AServerOfBothKindsOfAddressesIsOne) {
  RunView view = Asking();
  Counts("socket_received_bytes", 300, "[::ffff:127.0.0.1]:80>[::ffff:127.0.0.1]:9", &view);
  Counts("socket_sent_bytes", 200, kClientsEnd, &view);
  EXPECT_TRUE(LookFromOutside(view).is_asked_over_network);
}

// Services of Ray pass on what others make: who sleeps there may feed nobody, unless it is asked.
TEST(Asked, WhoSleepsBesideServicesIsLessSure) {
  const auto probability = [](const std::string& service, bool asked) {
    RunView view = Asking(service);
    if (asked) {
      Counts("socket_received_bytes", 300, kServersEnd, &view);
      Counts("socket_sent_bytes", 200, kClientsEnd, &view);
    }
    const Outside seen = LookFromOutside(view);
    EXPECT_EQ(seen.findings[0].limit, OutsideLimit::kSleep);
    EXPECT_EQ(seen.is_asked_over_network, asked);
    return seen.findings[0].probability;
  };
  EXPECT_GT(probability("", false), kBesideServices);
  EXPECT_LE(probability("raylet", false), kBesideServices);
  EXPECT_GT(probability("raylet", true), kBesideServices);
  EXPECT_GT(probability("resource_tracker", false), kBesideServices) << "it passes nothing on";
}

TEST(Asked, WhoConnectsIsNoServer) {
  RunView view = Asking();
  Counts("socket_received_bytes", 300, kServersEnd, &view);
  Counts("socket_sent_bytes", 200, kClientsEnd, &view);
  Counts("tcp_connects_count", 300, "", &view);
  EXPECT_FALSE(LookFromOutside(view).is_asked_over_network);
}

}  // namespace
}  // namespace headrace::analysis
