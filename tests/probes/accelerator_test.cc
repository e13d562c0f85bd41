// The accelerator probe over a library made up for each test: what devices tell, how often they are
// asked, and who uses them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "base/clock.h"
#include "probes/host/host_probe.h"
#include "probes/host/nvml.h"
#include "tests/probes/collected.h"

namespace headrace::probes {
namespace {

constexpr int64_t kQuickNs = 1'000'000;
constexpr int kNotSupported = 3;
// No process has this pid: it is above the kernel's largest, 2^22.
constexpr unsigned int kNoSuchPid = 1u << 30;

size_t IndexOf(NvmlDevice device) { return reinterpret_cast<uintptr_t>(device) - 1; }

// Two devices, of which the second lacks power and copy rates.
Nvml FakeNvml() {
  Nvml nvml;
  nvml.init = [] { return 0; };
  nvml.shutdown = [] { return 0; };
  nvml.device_count = [](unsigned int* count) {
    *count = 2;
    return 0;
  };
  nvml.device_by_index = [](unsigned int index, NvmlDevice* device) {
    *device = reinterpret_cast<NvmlDevice>(static_cast<uintptr_t>(index + 1));
    return 0;
  };
  nvml.error_text = [](int) { return "Not Supported"; };
  nvml.use = [](NvmlDevice, NvmlUse* use) {
    *use = {93, 41};
    return 0;
  };
  nvml.memory = [](NvmlDevice, NvmlMemory* memory) {
    *memory = {1000, 400, 600};
    return 0;
  };
  nvml.power_milliwatts = [](NvmlDevice device, unsigned int* value) {
    *value = 250'000;
    return IndexOf(device) == 0 ? 0 : kNotSupported;
  };
  nvml.pcie_kib_per_s = [](NvmlDevice device, int direction, unsigned int* value) {
    *value = direction == kNvmlPcieReceived ? 2048 : 1024;
    return IndexOf(device) == 0 ? 0 : kNotSupported;
  };
  return nvml;
}

Target ThisProcess() {
  Target target;
  target.root_pid = getpid();
  target.pids = {getpid()};
  return target;
}

// Reads until `done`, or until only a hang explains that it is not.
void ReadUntilDone(Probe& probe, Collected* collected, const std::function<bool()>& done) {
  const int64_t end_ns = MonotonicNs() + 60'000'000'000;
  while (!done() && MonotonicNs() < end_ns) {
    usleep(5'000);
    collected->values.clear();
    probe.Read(*collected);
  }
}

TEST(Accelerator, ReadsWhatEachDeviceOffers) {
  const auto probe = MakeAcceleratorProbe([](std::string*) { return FakeNvml(); }, kQuickNs);
  const Host host;
  const Target target = ThisProcess();
  ASSERT_EQ(probe->Start(host, target).state, Availability::State::kOk);
  Collected collected;
  ReadUntilDone(*probe, &collected, [&] {
    return collected.Find("gpu_memory_bytes", Subject("gpu1", "used")) &&
           collected.Find("gpu_use_ratio", Subject("gpu0", "compute"));
  });
  probe->Stop();
  ExpectSound(collected);
  EXPECT_NEAR(collected.Find("gpu_use_ratio", Subject("gpu0", "compute")).value_or(0), 0.93, 1e-9);
  EXPECT_NEAR(collected.Find("gpu_use_ratio", Subject("gpu0", "memory")).value_or(0), 0.41, 1e-9);
  EXPECT_EQ(collected.Find("gpu_memory_bytes", Subject("gpu1", "used")), 600.0);
  EXPECT_EQ(collected.Find("gpu_power_watts", Subject("gpu0")), 250.0);
  EXPECT_EQ(collected.Find("gpu_pcie_bytes_per_s", Subject("gpu0", "to the device")),
            2048 * 1024.0);
  EXPECT_FALSE(collected.Find("gpu_power_watts", Subject("gpu1")));
  EXPECT_FALSE(collected.Find("gpu_energy_joules", Subject("gpu0"))) << "an older driver lacks it";
  for (const auto& [key, value] : collected.values) {
    EXPECT_NE(key.first, "gpu_processes_count") << "an older driver lacks it";
  }
}

// A device that alternates is asked often enough for the mean to be its mean, although one Read
// comes after many of its sample periods.
TEST(Accelerator, TellsTheMeanSinceItWasReadBefore) {
  static std::atomic<int> asked;
  asked = 0;
  const auto probe = MakeAcceleratorProbe(
      [](std::string*) {
        Nvml nvml = FakeNvml();
        nvml.use = [](NvmlDevice device, NvmlUse* use) {
          *use = {100, 0};
          if (IndexOf(device) == 0) *use = {asked++ % 2 == 0 ? 100u : 0u, 0};
          return 0;
        };
        return std::optional(nvml);
      },
      kQuickNs);
  const Host host;
  const Target target = ThisProcess();
  ASSERT_EQ(probe->Start(host, target).state, Availability::State::kOk);
  const int64_t end_ns = MonotonicNs() + 60'000'000'000;
  while (asked < 400 && MonotonicNs() < end_ns) usleep(5'000);
  Collected collected;
  probe->Read(collected);
  probe->Stop();
  ASSERT_GE(asked, 400);
  // Weighted with the time between two questions, so any mean of both.
  const double mean = collected.Find("gpu_use_ratio", Subject("gpu0", "compute")).value_or(-1);
  EXPECT_GT(mean, 0);
  EXPECT_LT(mean, 1);
  EXPECT_EQ(collected.Find("gpu_use_ratio", Subject("gpu1", "compute")), 1.0);
}

// What a device said once does not stand for later.
TEST(Accelerator, ADeviceThatTellsNoMoreHasNoUse) {
  static std::atomic<bool> refuses;
  refuses = false;
  const auto probe = MakeAcceleratorProbe(
      [](std::string*) {
        Nvml nvml = FakeNvml();
        nvml.use = [](NvmlDevice, NvmlUse* use) {
          *use = {250, 0};  // more than all
          return refuses ? kNotSupported : 0;
        };
        return std::optional(nvml);
      },
      kQuickNs);
  const Host host;
  const Target target = ThisProcess();
  ASSERT_EQ(probe->Start(host, target).state, Availability::State::kOk);
  const auto use = [](const Collected& from) {
    return from.Find("gpu_use_ratio", Subject("gpu0", "compute"));
  };
  Collected collected;
  ReadUntilDone(*probe, &collected, [&] { return use(collected).has_value(); });
  EXPECT_EQ(use(collected), 1.0);
  refuses = true;
  ReadUntilDone(*probe, &collected, [&] { return !use(collected); });
  EXPECT_FALSE(use(collected));
  probe->Stop();
}

TEST(Accelerator, TellsTheRunsProcessesFromOthers) {
  const auto probe = MakeAcceleratorProbe(
      [](std::string*) {
        Nvml nvml = FakeNvml();
        nvml.processes = [](NvmlDevice device, unsigned int* count, NvmlProcess* processes) {
          if (IndexOf(device) == 1) return kNotSupported;
          const auto self = static_cast<unsigned int>(getpid());
          const unsigned int pids[] = {self, self, 1, kNoSuchPid};  // one in two instances
          const unsigned int room = *count;
          *count = 4;
          if (room < 4) return kNvmlInsufficientSize;
          for (size_t i = 0; i < 4; ++i) processes[i] = {pids[i], 0, 0, 0};
          return 0;
        };
        return std::optional(nvml);
      },
      kQuickNs);
  const Host host;
  Target target = ThisProcess();
  ASSERT_EQ(probe->Start(host, target).state, Availability::State::kOk);
  Labels own = OfProcess(getpid());
  own.subject = "gpu0";
  Collected collected;
  ReadUntilDone(*probe, &collected,
                [&] { return collected.Find("gpu_processes_count", own).has_value(); });
  target.pids.clear();  // it has ended, and the driver still tells of it
  collected.values.clear();
  probe->Read(collected);
  probe->Stop();
  ExpectSound(collected);
  EXPECT_EQ(collected.Find("gpu_processes_count", own), 1.0);
  EXPECT_EQ(collected.Find("gpu_processes_count", Subject("gpu0", "others")), 1.0);
  EXPECT_EQ(collected.Find("gpu_processes_count", Subject("gpu0", "unseen")), 1.0);
  EXPECT_FALSE(collected.Find("gpu_processes_count", Subject("gpu1", "others"))) << "it refused";
}

// More processes than a driver says at first, and a driver that says there are more each time.
TEST(Accelerator, ManyProcessesTakeASecondQuestion) {
  static std::atomic<unsigned int> total;
  for (const unsigned int processes : {200u, 1u << 30}) {
    total = processes;
    const auto probe = MakeAcceleratorProbe(
        [](std::string*) {
          Nvml nvml = FakeNvml();
          nvml.processes = [](NvmlDevice, unsigned int* count, NvmlProcess* all) {
            const unsigned int room = *count;
            *count = total;
            if (room < total) return kNvmlInsufficientSize;
            for (unsigned int i = 0; i < total; ++i) all[i] = {kNoSuchPid + i, 0, 0, 0};
            return 0;
          };
          return std::optional(nvml);
        },
        kQuickNs);
    const Host host;
    const Target target = ThisProcess();
    ASSERT_EQ(probe->Start(host, target).state, Availability::State::kOk);
    Collected collected;
    ReadUntilDone(*probe, &collected, [&] {
      return collected.Find("gpu_memory_bytes", Subject("gpu0", "used")).has_value();
    });
    const auto unseen = collected.Find("gpu_processes_count", Subject("gpu0", "unseen"));
    EXPECT_EQ(unseen, processes == 200 ? std::optional(200.0) : std::nullopt)
        << "more than can be held are not told";
    probe->Stop();
  }
}

TEST(Accelerator, AbsentOrRefusingDriverIsUnavailable) {
  const Host host;
  const Target target = ThisProcess();
  const auto absent = MakeAcceleratorProbe(
      [](std::string* why) {
        *why = "dlopen libnvidia-ml.so.1: cannot open shared object file";
        return std::optional<Nvml>();
      },
      kQuickNs);
  EXPECT_EQ(absent->Start(host, target).reason,
            "dlopen libnvidia-ml.so.1: cannot open shared object file");
  const auto refusing = MakeAcceleratorProbe(
      [](std::string*) {
        Nvml nvml = FakeNvml();
        nvml.init = [] { return kNotSupported; };
        return std::optional(nvml);
      },
      kQuickNs);
  const Availability availability = refusing->Start(host, target);
  EXPECT_EQ(availability.state, Availability::State::kUnavailable);
  EXPECT_EQ(availability.reason, "nvmlInit: Not Supported");
  EXPECT_FALSE(availability.fix.empty());
}

}  // namespace
}  // namespace headrace::probes
