// The few functions of NVIDIA's management library that we use, declared by ourselves from its
// public interface, so that neither headers nor the library are needed to build.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "probes/probe.h"

namespace headrace::probes {

// Structures and constants of nvml.h, with the same layout.
struct NvmlUse {
  unsigned int compute_percent, memory_percent;
};
struct NvmlMemory {
  unsigned long long total_bytes, free_bytes, used_bytes;
};
// nvmlProcessInfo_t, as versions 2 and 3 of the functions have it.
struct NvmlProcess {
  unsigned int pid;
  unsigned long long memory_bytes;
  unsigned int gpu_instance, compute_instance;
};
using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0, kNvmlInsufficientSize = 7;
constexpr int kNvmlPcieSent = 0, kNvmlPcieReceived = 1;  // NVML_PCIE_UTIL_TX_BYTES, _RX_BYTES
constexpr int kNvmlTemperatureGpu = 0;

struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_count)(unsigned int*) = nullptr;
  int (*device_by_index)(unsigned int, NvmlDevice*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  // These may be null or refuse on a device that lacks the figure.
  // Of the past sample period, which is 1/6 to 1 s long, by the product:
  // https://docs.nvidia.com/deploy/nvml-api/structnvmlUtilization__t.html
  int (*use)(NvmlDevice, NvmlUse*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*power_milliwatts)(NvmlDevice, unsigned int*) = nullptr;
  int (*energy_millijoules)(NvmlDevice, unsigned long long*) = nullptr;
  int (*temperature)(NvmlDevice, int, unsigned int*) = nullptr;
  int (*pcie_kib_per_s)(NvmlDevice, int, unsigned int*) = nullptr;  // blocks for 20 ms to measure
  // Those with a compute context. The count says how many have room, and then how many there are.
  int (*processes)(NvmlDevice, unsigned int*, NvmlProcess*) = nullptr;
};

// Loads the driver's library. Nothing if there is none: `why` gets the loader's words.
std::optional<Nvml> LoadNvml(std::string* why);

// An accelerator probe over a library found by `load`; `period_ns`: how often devices are asked.
// For their use they are asked more often, so that no sample period is missed.
std::unique_ptr<Probe> MakeAcceleratorProbe(
    std::function<std::optional<Nvml>(std::string* why)> load, int64_t period_ns);

}  // namespace headrace::probes
