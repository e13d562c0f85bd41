#include "probes/capability.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>

namespace headrace::probes {
namespace {

const Capability& Find(const std::vector<Capability>& all, const std::string& name) {
  for (const Capability& c : all) {
    if (c.name == name) return c;
  }
  throw std::runtime_error("no capability " + name);
}

TEST(Capability, EmptyRootIsUnavailableWithAReasonAndAFix) {
  CapabilityHost host;
  host.root = "/nonexistent";
  host.open_perf_event = [](unsigned, unsigned long long) { return ENOENT; };
  for (const Capability& c : CheckCapabilities(host)) {
    SCOPED_TRACE(c.name);
    EXPECT_NE(c.state, CapabilityState::kOk);
    EXPECT_FALSE(c.detail.empty());
    EXPECT_FALSE(c.fix.empty());
    EXPECT_FALSE(c.affects.empty());
  }
}

TEST(Capability, RefusedAndAbsentCountersAreToldApart) {
  CapabilityHost host = CapabilityHost::ThisMachine();
  host.open_perf_event = [](unsigned, unsigned long long) { return EACCES; };
  EXPECT_NE(Find(CheckCapabilities(host), "hardware counters").fix.find("CAP_PERFMON"),
            std::string::npos);
  host.open_perf_event = [](unsigned, unsigned long long) { return ENOENT; };
  EXPECT_NE(Find(CheckCapabilities(host), "hardware counters").fix.find("bare metal"),
            std::string::npos);
  host.open_perf_event = [](unsigned, unsigned long long) { return 0; };
  EXPECT_EQ(Find(CheckCapabilities(host), "hardware counters").state, CapabilityState::kOk);
}

TEST(Capability, ThisMachineNeedsOnlyWhatItReports) {
  for (const Capability& c : CheckCapabilities(CapabilityHost::ThisMachine())) {
    EXPECT_EQ(c.state == CapabilityState::kOk, c.fix.empty()) << c.name << ": " << c.detail;
  }
}

}  // namespace
}  // namespace headrace::probes
