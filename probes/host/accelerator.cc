// Accelerators through NVIDIA's management library, if its driver is installed: use, who uses them,
// memory, power, energy, temperature and PCIe copy rates. A thread of its own asks the devices,
// because some questions take 20 ms.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "probes/host/host_probe.h"
#include "probes/host/nvml.h"

namespace headrace::probes {
namespace {

constexpr unsigned int kMaxDevices = 64, kMaxGpuProcesses = 1024;
// Shorter than the shortest sample period of NVML, 1/6 s, so that each is seen.
constexpr int64_t kUsePeriodNs = 100'000'000;
constexpr char kFix[] =
    "a machine with an NVIDIA accelerator and its driver (in a container: --gpus all); this is "
    "normal on a machine without a GPU";

class Accelerator : public Probe {
 public:
  Accelerator(std::function<std::optional<Nvml>(std::string*)> load, int64_t period_ns)
      : load_(std::move(load)), period_ns_(period_ns) {}
  ~Accelerator() override { Stop(); }

  Availability Start(const Host& host, const Target& target) override {
    if (!host.is_this_machine()) {
      return Availability::Unavailable("libnvidia-ml.so.1 speaks of this machine only", kFix);
    }
    std::string why;
    const auto nvml = load_(&why);
    if (!nvml) return Availability::Unavailable(why, kFix);
    nvml_ = *nvml;
    target_ = &target;
    if (const int error = nvml_.init(); error != kNvmlSuccess) {
      return Availability::Unavailable(fmt::format("nvmlInit: {}", nvml_.error_text(error)), kFix);
    }
    initialized_ = true;
    unsigned int count = 0;
    const int error = nvml_.device_count(&count);
    for (unsigned int i = 0; error == kNvmlSuccess && i < std::min(count, kMaxDevices); i++) {
      NvmlDevice device = nullptr;
      if (nvml_.device_by_index(i, &device) != kNvmlSuccess) continue;
      devices_.emplace_back();
      devices_.back().name = fmt::format("gpu{}", i);
      devices_.back().handle = device;
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
    for (Device& device : devices_) {
      AddUse(device, "compute", device.compute, sink);
      AddUse(device, "memory", device.memory, sink);
      for (const Measurement& measurement : device.figures) sink.Add(measurement);
      if (device.pids) AddProcesses(device, sink);
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
  // A share of time, summed since the last Read.
  struct Mean {
    double weighted_ns = 0;
    int64_t ns = 0;
  };
  struct Device {
    std::string name;
    NvmlDevice handle = nullptr;
    std::optional<unsigned long long> first_energy;
    int64_t asked_ns = 0;  // for its use
    // Latest, under the lock.
    Mean compute, memory;
    std::vector<Measurement> figures;
    std::optional<std::vector<int64_t>> pids;  // that compute on it; empty: not told
  };

  // The devices in turn for all figures, and meanwhile all devices for their use: of eight devices
  // all figures together take longer than a sample period.
  void AskForEver() {
    std::unique_lock lock(mutex_);
    const int64_t use_period_ns = std::min(period_ns_, kUsePeriodNs);
    int64_t uses_due_ns = 0, figures_due_ns = 0;
    while (running_) {
      AskUses(lock);
      uses_due_ns = MonotonicNs() + use_period_ns;
      if (MonotonicNs() >= figures_due_ns) {
        for (Device& device : devices_) {
          lock.unlock();
          std::vector<Measurement> figures = Ask(device);
          auto pids = AskProcesses(device);
          lock.lock();
          device.figures = std::move(figures);
          device.pids = std::move(pids);
          if (!running_) return;
          if (MonotonicNs() < uses_due_ns) continue;
          AskUses(lock);
          uses_due_ns = MonotonicNs() + use_period_ns;
        }
        figures_due_ns = MonotonicNs() + period_ns_;
      }
      const int64_t wait_ns = std::min(uses_due_ns, figures_due_ns) - MonotonicNs();
      wake_.wait_for(lock, std::chrono::nanoseconds(std::max<int64_t>(0, wait_ns)),
                     [this] { return !running_; });
    }
  }

  // What a device says stands for the time since it was asked before, as far as a sample period may
  // reach.
  void AskUses(std::unique_lock<std::mutex>& lock) {
    if (!nvml_.use) return;
    for (Device& device : devices_) {
      if (!running_) return;
      lock.unlock();
      NvmlUse use;
      const int error = nvml_.use(device.handle, &use);
      const int64_t now_ns = MonotonicNs();
      lock.lock();
      const int64_t ns =
          device.asked_ns > 0 ? std::clamp<int64_t>(now_ns - device.asked_ns, 1, kSecondNs) : 1;
      device.asked_ns = now_ns;
      if (error != kNvmlSuccess) continue;
      for (const auto& [mean, percent] : {std::pair{&device.compute, use.compute_percent},
                                          std::pair{&device.memory, use.memory_percent}}) {
        mean->weighted_ns += std::min(100u, percent) / 100.0 * static_cast<double>(ns);
        mean->ns += ns;
      }
    }
  }

  static void AddUse(const Device& device, const char* cause, Mean& mean, Sink& sink) {
    if (mean.ns <= 0) return;
    Measurement use{"gpu_use_ratio",
                    mean.weighted_ns / static_cast<double>(mean.ns),
                    Subject(device.name, cause),
                    {},
                    {},
                    true,
                    mean.ns};
    mean = {};
    sink.Add(use);
  }

  void AddProcesses(const Device& device, Sink& sink) {
    own_pids_.insert(target_->pids.begin(), target_->pids.end());
    double others = 0, unseen = 0;
    for (const int64_t pid : *device.pids) {
      if (!own_pids_.contains(pid)) {
        // In a container the driver may tell pids of the machine, also of the run's own processes.
        const bool valid = pid > 0 && pid <= std::numeric_limits<pid_t>::max();
        const bool here = valid && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
        (here ? others : unseen)++;
        continue;
      }
      Labels labels = OfProcess(pid);
      labels.subject = device.name;
      sink.Add({"gpu_processes_count", 1, labels, {}, {}, false});
    }
    sink.Add({"gpu_processes_count", others, Subject(device.name, "others"), {}, {}, false});
    sink.Add({"gpu_processes_count", unseen, Subject(device.name, "unseen"), {}, {}, false});
  }

  // Processes that compute on the device, each once; nothing if it does not tell.
  std::optional<std::vector<int64_t>> AskProcesses(const Device& device) const {
    if (!nvml_.processes) return std::nullopt;
    std::vector<NvmlProcess> all(32);
    auto count = static_cast<unsigned int>(all.size());
    int error = nvml_.processes(device.handle, &count, all.data());
    if (error == kNvmlInsufficientSize) {
      all.resize(std::clamp(count, 1u, kMaxGpuProcesses));
      count = static_cast<unsigned int>(all.size());
      error = nvml_.processes(device.handle, &count, all.data());
    }
    if (error != kNvmlSuccess) return std::nullopt;
    std::vector<int64_t> pids;
    for (size_t i = 0; i < std::min<size_t>(count, all.size()); ++i) pids.push_back(all[i].pid);
    std::sort(pids.begin(), pids.end());
    pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
    return pids;
  }

  std::vector<Measurement> Ask(Device& device) const {
    std::vector<Measurement> figures;
    const auto add = [&](std::string_view metric, const char* cause, double value) {
      figures.push_back({metric, value, Subject(device.name, cause), {}, {}, true});
    };
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
  const Target* target_ = nullptr;
  std::set<int64_t> own_pids_;  // of the run, also ended ones: the driver may still tell of them
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

HR_PROBE("accelerator",
         {.summary = "use, users, memory, power and copy rates of NVIDIA accelerators",
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
  if (!load(&nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v3")) {
    load(&nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v2");
  }
  return nvml;
}

std::unique_ptr<Probe> MakeAcceleratorProbe(
    std::function<std::optional<Nvml>(std::string* why)> load, int64_t period_ns) {
  return std::make_unique<Accelerator>(std::move(load), period_ns);
}

}  // namespace headrace::probes
