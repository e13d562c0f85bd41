#include "probes/capability.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

namespace headrace::probes {
namespace {

const Capability& Find(const std::vector<Capability>& all, const std::string& name) {
  for (const Capability& c : all) {
    if (c.name == name) return c;
  }
  throw std::runtime_error("no capability " + name);
}

TEST(Capability, EveryProbeIsListedOnceByLevel) {
  const auto all = CheckCapabilities(Host());
  EXPECT_EQ(all.front().name, "operator accounts");
  size_t probes = 0;
  int level = 0;
  for (const Capability& c : all) {
    if (!Registry<ProbeInfo>::Global().Find(c.name)) continue;
    probes++;
    EXPECT_GE(c.level, level) << c.name;
    level = c.level;
  }
  EXPECT_EQ(probes, Registry<ProbeInfo>::Global().entries().size());
}

TEST(Capability, EmptyRootIsNeverOkWithoutAReasonAndAFix) {
  for (const Capability& c : CheckCapabilities(Host("/nonexistent"))) {
    SCOPED_TRACE(c.name);
    EXPECT_NE(c.availability.state, Availability::State::kOk) << c.availability.reason;
    EXPECT_FALSE(c.availability.reason.empty());
    EXPECT_FALSE(c.availability.fix.empty());
    EXPECT_FALSE(c.affects.empty());
    EXPECT_FALSE(c.summary.empty());
  }
}

TEST(Capability, ThisMachineNeedsOnlyWhatItReports) {
  for (const Capability& c : CheckCapabilities(Host())) {
    SCOPED_TRACE(c.name);
    EXPECT_FALSE(c.availability.reason.empty());
    if (c.availability.state == Availability::State::kOk) continue;
    EXPECT_FALSE(c.availability.fix.empty());
  }
}

TEST(Capability, AClockThatNeedsASystemCallIsDegraded) {
  const std::string root = testing::TempDir() + "/headrace-clock";
  const std::string folder = root + "/sys/devices/system/clocksource/clocksource0";
  std::filesystem::create_directories(folder);
  FILE* file = fopen((folder + "/current_clocksource").c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs("hpet\n", file);
  fclose(file);
  const auto all = CheckCapabilities(Host(root));
  const Availability& clock = Find(all, "clock").availability;
  EXPECT_EQ(clock.state, Availability::State::kDegraded);
  EXPECT_EQ(clock.reason, "clock source hpet");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace headrace::probes
