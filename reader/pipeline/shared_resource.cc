#include "reader/pipeline/shared_resource.h"

#include <algorithm>

#include "base/clock.h"
#include "probes/account/account.h"

namespace headrace::reader {

bool SharedDevice::Serve(uint64_t bytes, StopSignal* stop) {
  const auto service_ns =
      static_cast<int64_t>(static_cast<double>(bytes) / bytes_per_second_ * 1e9);
  hr_resource_wait_begin(account_);
  std::unique_lock turn(turn_);
  hr_resource_held(account_);
  // Sleeping overshoots by tens of microseconds; counting from where the last service should have
  // ended keeps the rate exact under load. An idle device starts now.
  const int64_t now = MonotonicNs();
  constexpr int64_t kMaxDebtNs = 5'000'000;
  free_at_ns_ = std::max(free_at_ns_, now - kMaxDebtNs) + service_ns;
  const bool going = stop->SleepFor(std::max<int64_t>(0, free_at_ns_ - now));
  hr_resource_released(account_, bytes);
  return going;
}

SharedLock* SharedResources::Lock(const std::string& name) {
  std::lock_guard guard(mutex_);
  auto& lock = locks_[name];
  if (!lock) {
    lock = std::make_unique<SharedLock>();
    lock->account = hr_resource(name.c_str(), HR_LOCK, 1);
  }
  return lock.get();
}

SharedDevice* SharedResources::Device(const std::string& name, double bytes_per_second) {
  std::lock_guard guard(mutex_);
  auto& device = devices_[name];
  if (!device)
    device =
        std::make_unique<SharedDevice>(bytes_per_second, hr_resource(name.c_str(), HR_DEVICE, 1));
  return device.get();
}

}  // namespace headrace::reader
