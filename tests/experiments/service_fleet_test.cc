// What the dispatcher keeps of its job's members, while the file can be written and while it
// cannot.
#include "experiments/service_fleet.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collectors/shipment.h"
#include "collectors/store/read_store.h"

namespace headrace::experiments {
namespace {

namespace fs = std::filesystem;
namespace service = reader::service;

constexpr int64_t kMeasuredNs = 1'000'000'000;

// `second`-th second of a worker that measured nothing else.
service::Measured MeasuredIn(int64_t second) {
  collectors::Shipment shipment;
  shipment.role = "worker";
  shipment.info.program = "worker";
  shipment.info.pid = 7;
  shipment.info.started_realtime_ns = RealtimeNs();
  shipment.interval.start_ns = second * kMeasuredNs;
  shipment.interval.duration_ns = kMeasuredNs;
  return {1, static_cast<uint64_t>(second) + 1, RealtimeNs(),
          collectors::SerializeShipment(shipment)};
}

// No file may grow beyond a byte, for as long as this lives.
class NoRoomForFiles {
 public:
  NoRoomForFiles() {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit none = before_;
    none.rlim_cur = 1;
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoRoomForFiles() { setrlimit(RLIMIT_FSIZE, &before_); }
  NoRoomForFiles(const NoRoomForFiles&) = delete;
  NoRoomForFiles& operator=(const NoRoomForFiles&) = delete;

 private:
  rlimit before_ = {};
};

TEST(ServiceFleetFile, IsWrittenAgainOnceItCanBe) {
  std::string pattern = (fs::temp_directory_path() / "service_fleet_test.XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  const std::string file = (folder / "fleet.db").string();
  std::vector<std::string> notes;
  service::DispatcherOptions job;
  job.job.splits = {{0, 100}};
  ServiceFleet fleet("job", "lockstep");
  fleet.Open(
      file, job, [&](const std::string& text) { notes.push_back(text); }, 1);
  // Takes a second's measurements, and waits until they are stored, or given up.
  const auto take = [&](int64_t second, std::optional<int64_t> sent_ns = {}) {
    service::Measured measured = MeasuredIn(second);
    if (sent_ns) measured.sent_realtime_ns = *sent_ns;
    fleet.Take(std::move(measured));
    const int64_t until = MonotonicNs() + 600'000'000'000;
    while (fleet.TakeKept().empty() && MonotonicNs() < until) usleep(1000);
    fleet.TakeKept();  // says what was noted
  };
  take(0);
  EXPECT_TRUE(notes.empty()) << notes[0];
  {
    const NoRoomForFiles full;
    take(1);
    take(2);
  }
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("nothing is kept"), std::string::npos) << notes[0];
  take(3);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[1].find("written again; 2 entries are missing"), std::string::npos) << notes[1];
  for (const int64_t wrong : {INT64_MIN, int64_t{-1}, INT64_MAX}) take(4, wrong);
  ASSERT_EQ(notes.size(), 5u);
  EXPECT_NE(notes[4].find("at no time of day"), std::string::npos) << notes[4];
  fleet.Finish(true);
  EXPECT_EQ(notes.size(), 5u);
  collectors::ReadStore store(file);
  const auto result = store.Query(
      "SELECT duration_ns FROM member_summary WHERE role = 'worker' UNION ALL SELECT COUNT(*) FROM "
      "job_summary WHERE state = 'complete'");
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_EQ(std::get<int64_t>(result.rows[0][0]), 4 * kMeasuredNs);
  EXPECT_EQ(std::get<int64_t>(result.rows[1][0]), 1);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace headrace::experiments
