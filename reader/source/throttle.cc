#include "reader/source/throttle.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "probes/account/scope.h"
#include "reader/source/forwarding.h"

namespace headrace::reader {
namespace {

class ThrottledSource final : public ForwardingSource {
 public:
  ThrottledSource(std::shared_ptr<const Source> inner, std::shared_ptr<Throttle> throttle)
      : ForwardingSource(std::move(inner)),
        throttle_(std::move(throttle)),
        place_(throttle_->Place(size())) {}

  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    const int64_t arrival = throttle_->now();
    inner().ReadAt(offset, out);
    const ReadRequest request{offset, out};
    throttle_->Wait(arrival, place_, {&request, 1}, 1);
  }
  // The time that the real reads take is part of the device's.
  void ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const override {
    const int64_t arrival = throttle_->now();
    inner().ReadMany(requests, figures);
    throttle_->Wait(arrival, place_, requests, depth());
  }

 private:
  std::shared_ptr<Throttle> throttle_;
  uint64_t place_;
};

}  // namespace

std::optional<ThrottleOptions> ThrottlePreset(const std::string& name) {
  ThrottleOptions device;
  if (name == "disk") {
    device.bytes_per_second = 150e6;
    device.seek_ns = 8'000'000;
  } else if (name == "ssd") {
    device.bytes_per_second = 2e9;
    device.iops = 200'000;
    device.latency_ns = 100'000;
  } else if (name == "remote") {
    device.bytes_per_second = 1e9;
    device.iops = 5'000;
    device.latency_ns = 20'000'000;
  } else {
    return std::nullopt;
  }
  return device;
}

DeviceModel::Service DeviceModel::Serve(int64_t arrival_ns, uint64_t position, uint64_t bytes) {
  double service_ns = remainder_ns_ + static_cast<double>(bytes) * options_.ns_per_byte();
  if (options_.iops > 0) service_ns += 1e9 / options_.iops;
  if (position != head_) service_ns += static_cast<double>(options_.seek_ns);
  remainder_ns_ = service_ns - std::floor(service_ns);
  const int64_t begin = std::max(free_at_ns_, arrival_ns);
  free_at_ns_ = begin + static_cast<int64_t>(service_ns);
  head_ = position + bytes;
  return {begin, free_at_ns_, free_at_ns_ + options_.latency_ns};
}

uint64_t Throttle::Place(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return std::exchange(placed_bytes_, placed_bytes_ + bytes + 1);
}

void Throttle::Wait(int64_t arrival_ns, uint64_t place, std::span<const ReadRequest> requests,
                    uint32_t depth) {
  std::vector<int64_t> done(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    // Virtual times: sleeping longer than asked delays no request that was under way meanwhile.
    const int64_t arrival = i < depth ? arrival_ns : done[i - depth];
    DeviceModel::Service service;
    {
      const std::lock_guard lock(mutex_);
      service = device_.Serve(arrival, place + requests[i].offset, requests[i].out.size());
    }
    done[i] = service.done_ns;
    const int64_t asked = clock_.now();
    {
      const account::ResourceScope wait(account_);
      clock_.sleep_until(service.begin_ns);
    }
    clock_.sleep_until(service.end_ns);
    // The device worked while the thread still read what the model only delays, so its times are
    // the model's; a service that was cut short counts as far as it came.
    const int64_t held = std::min(service.end_ns, clock_.now()) - service.begin_ns;
    hr_resource_served(account_,
                       static_cast<uint64_t>(std::max<int64_t>(0, service.begin_ns - asked)),
                       static_cast<uint64_t>(std::max<int64_t>(0, held)), requests[i].out.size());
  }
  if (!done.empty()) clock_.sleep_until(done.back());
}

std::shared_ptr<const Source> Throttled(std::shared_ptr<const Source> inner,
                                        std::shared_ptr<Throttle> throttle) {
  return std::make_shared<ThrottledSource>(std::move(inner), std::move(throttle));
}

}  // namespace headrace::reader
