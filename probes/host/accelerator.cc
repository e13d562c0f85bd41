// Accelerators through NVIDIA's management library, if its driver is installed: use, memory, power,
// energy, temperature and PCIe copy rates. A thread of its own asks the devices, because some
// questions take 20 ms.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "probes/host/host_probe.h"
#include "probes/host/nvml.h"

namespace headrace::probes {
namespace {

constexpr unsigned int kMaxDevices = 64;
constexpr char kFix[] =
    "a machine with an NVIDIA accelerator and its driver (in a container: --gpus all); this is "
    "normal on a machine without a GPU";

class Accelerator : public Probe {
 public:
  Accelerator(std::function<std::optional<Nvml>(std::string*)> load, int64_t period_ns)
      : load_(std::move(load)), period_ns_(period_ns) {}
  ~Accelerator() override { Stop(); }

  Availability Start(const Host& host, const Target&) override {
    if (!host.is_this_machine()) {
      return Availability::Unavailable("libnvidia-ml.so.1 speaks of this machine only", kFix);
    }
    std::string why;
    const auto nvml = load_(&why);
    if (!nvml) return Availability::Unavailable(why, kFix);
    nvml_ = *nvml;
    if (const int error = nvml_.init(); error != kNvmlSuccess) {
      return Availability::Unavailable(fmt::format("nvmlInit: {}", nvml_.error_text(error)), kFix);
    }
    initialized_ = true;
    unsigned int count = 0;
    const int error = nvml_.device_count(&count);
    for (unsigned int i = 0; error == kNvmlSuccess && i < std::min(count, kMaxDevices); i++) {
      NvmlDevice device = nullptr;
      if (nvml_.device_by_index(i, &device) != kNvmlSuccess) continue;
      devices_.push_back({fmt::format("gpu{}", i), device, {}, {}});
    }
    if (devices_.empty()) {
      Stop();
      return Availability::Unavailable(
          error == kNvmlSuccess ? "nvmlDeviceGetCount: no device"
                                : fmt::format("nvmlDeviceGetCount: {}", nvml_.error_text(error)),
          kFix);
    }
    running_ = true;
    thread_ = std::thread([this] { AskForEver(); });
    return Availability::Ok(fmt::format("{} devices", devices_.size()));
  }

  void Read(Sink& sink) override {
    const std::lock_guard lock(mutex_);
    for (const Device& device : devices_) {
      for (const Measurement& measurement : device.figures) sink.Add(measurement);
    }
  }

  void Stop() override {
    {
      const std::lock_guard lock(mutex_);
      running_ = false;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (initialized_) nvml_.shutdown();
    initialized_ = false;
    devices_.clear();
  }

 private:
  struct Device {
    std::string name;
    NvmlDevice handle;
    std::optional<unsigned long long> first_energy;
    std::vector<Measurement> figures;  // latest, under the lock
  };

  void AskForEver() {
    std::unique_lock lock(mutex_);
    while (running_) {
      for (Device& device : devices_) {
        lock.unlock();
        std::vector<Measurement> figures = Ask(device);
        lock.lock();
        device.figures = std::move(figures);
        if (!running_) return;
      }
      wake_.wait_for(lock, std::chrono::nanoseconds(period_ns_), [this] { return !running_; });
    }
  }

  std::vector<Measurement> Ask(Device& device) const {
    std::vector<Measurement> figures;
    const auto add = [&](std::string_view metric, const char* cause, double value) {
      figures.push_back({metric, value, Subject(device.name, cause), {}, {}, true});
    };
    NvmlUse use;
    if (nvml_.use && nvml_.use(device.handle, &use) == kNvmlSuccess) {
      add("gpu_use_ratio", "compute", use.compute_percent / 100.0);
      add("gpu_use_ratio", "memory", use.memory_percent / 100.0);
    }
    NvmlMemory memory;
    if (nvml_.memory && nvml_.memory(device.handle, &memory) == kNvmlSuccess) {
      add("gpu_memory_bytes", "used", static_cast<double>(memory.used_bytes));
      add("gpu_memory_bytes", "total", static_cast<double>(memory.total_bytes));
    }
    unsigned int value;
    if (nvml_.power_milliwatts && nvml_.power_milliwatts(device.handle, &value) == kNvmlSuccess) {
      add("gpu_power_watts", "", value * 1e-3);
    }
    unsigned long long energy;
    if (nvml_.energy_millijoules &&
        nvml_.energy_millijoules(device.handle, &energy) == kNvmlSuccess) {
      if (!device.first_energy || energy < *device.first_energy) device.first_energy = energy;
      add("gpu_energy_joules", "", static_cast<double>(energy - *device.first_energy) * 1e-3);
    }
    if (nvml_.temperature &&
        nvml_.temperature(device.handle, kNvmlTemperatureGpu, &value) == kNvmlSuccess) {
      add("gpu_temperature_celsius", "", value);
    }
    for (const auto& [direction, cause] : {std::pair{kNvmlPcieReceived, "to the device"},
                                           std::pair{kNvmlPcieSent, "from the device"}}) {
      if (nvml_.pcie_kib_per_s &&
          nvml_.pcie_kib_per_s(device.handle, direction, &value) == kNvmlSuccess) {
        add("gpu_pcie_bytes_per_s", cause, value * 1024.0);
      }
    }
    return figures;
  }

  std::function<std::optional<Nvml>(std::string*)> load_;
  int64_t period_ns_;
  Nvml nvml_;
  bool initialized_ = false;
  std::vector<Device> devices_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool running_ = false;
};

Availability CheckAccelerator(const Host& host) {
  Accelerator probe(LoadNvml, kSecondNs);
  const Target target;
  return probe.Start(host, target);
}

HR_PROBE("accelerator", {.summary = "use, memory, power and copy rates of NVIDIA accelerators",
                         .affects = "whether the accelerator is busy, from its own counters",
                         .level = 1,
                         .period_ns = kSecondNs,
                         .check = CheckAccelerator,
                         .make = [] { return MakeAcceleratorProbe(LoadNvml, kSecondNs); }});

}  // namespace

std::optional<Nvml> LoadNvml(std::string* why) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    *why = fmt::format("dlopen {}", dlerror());
    return std::nullopt;
  }
  Nvml nvml;
  const auto load = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    return *function != nullptr;
  };
  if (!load(&nvml.init, "nvmlInit_v2") || !load(&nvml.shutdown, "nvmlShutdown") ||
      !load(&nvml.device_count, "nvmlDeviceGetCount_v2") ||
      !load(&nvml.device_by_index, "nvmlDeviceGetHandleByIndex_v2") ||
      !load(&nvml.error_text, "nvmlErrorString")) {
    *why = "libnvidia-ml.so.1 lacks a function of its interface version 2";
    return std::nullopt;  // the library stays loaded: it holds driver state
  }
  load(&nvml.use, "nvmlDeviceGetUtilizationRates");
  load(&nvml.memory, "nvmlDeviceGetMemoryInfo");
  load(&nvml.power_milliwatts, "nvmlDeviceGetPowerUsage");
  load(&nvml.energy_millijoules, "nvmlDeviceGetTotalEnergyConsumption");
  load(&nvml.temperature, "nvmlDeviceGetTemperature");
  load(&nvml.pcie_kib_per_s, "nvmlDeviceGetPcieThroughput");
  return nvml;
}

std::unique_ptr<Probe> MakeAcceleratorProbe(
    std::function<std::optional<Nvml>(std::string* why)> load, int64_t period_ns) {
  return std::make_unique<Accelerator>(std::move(load), period_ns);
}

}  // namespace headrace::probes
