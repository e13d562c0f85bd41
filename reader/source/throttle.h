// Throttle: makes any source as slow as a device of given speed, for experiments. One device serves
// the requests of all files and threads one after the other; a request occupies it for
//
//   seek (unless it begins where the last one ended) + 1 / iops + bytes / bandwidth
//
// and its data is there `latency` later, during which the device serves others. A thread has as
// many requests under way as its source can (Source::depth), so io = "pread" pays the latency once
// per read and io = "uring" once per `depth` reads.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "reader/source/source.h"

namespace headrace::reader {

struct ThrottleOptions {
  double bytes_per_second = 0;  // 0: no limit
  double iops = 0;              // 0: no limit
  int64_t latency_ns = 0;
  int64_t seek_ns = 0;
  bool enabled() const { return bytes_per_second > 0 || iops > 0 || latency_ns > 0 || seek_ns > 0; }
  double ns_per_request() const {
    return static_cast<double>(seek_ns) + (iops > 0 ? 1e9 / iops : 0);
  }
  double ns_per_byte() const { return bytes_per_second > 0 ? 1e9 / bytes_per_second : 0; }
};

// "disk": one drive of 7200 turns a minute, 150 MB/s and 8 ms to the next place. "ssd": 2 GB/s, 200
// 000 requests a second, 100 us. "remote": an object store over the network, 1 GB/s, 5 000 requests
// a second, 20 ms to the first byte. Nothing for another name.
std::optional<ThrottleOptions> ThrottlePreset(const std::string& name);

// The device in virtual time. Not thread-safe.
class DeviceModel {
 public:
  explicit DeviceModel(const ThrottleOptions& options) : options_(options) {}

  // The service of one request begins when the device is free, and ends when it is free again; its
  // data is there at `done`.
  struct Service {
    int64_t begin_ns, end_ns, done_ns;
  };
  Service Serve(int64_t arrival_ns, uint64_t position, uint64_t bytes);

 private:
  ThrottleOptions options_;
  int64_t free_at_ns_ = INT64_MIN;
  double remainder_ns_ = 0;     // of the services so far, below one nanosecond
  uint64_t head_ = UINT64_MAX;  // the position behind the last request
};

struct ThrottleClock {
  std::function<int64_t()> now = MonotonicNs;
  std::function<void(int64_t)> sleep_until = SleepUntilNs;  // may return early to stop
};

// The device that the sources of a pipeline share. Thread-safe.
class Throttle {
 public:
  using Clock = ThrottleClock;
  explicit Throttle(const ThrottleOptions& options, Clock clock = {})
      : options_(options), clock_(std::move(clock)), device_(options) {}

  const ThrottleOptions& options() const { return options_; }
  // The account (hr_resource) that times waits and services from now on.
  void set_account(uint32_t account) { account_ = account; }
  // Where a file of so many bytes lies on the device: behind the files placed before.
  uint64_t Place(uint64_t bytes);
  int64_t now() const { return clock_.now(); }
  // Waits until the data of `requests`, which arrived at `arrival_ns` and of which at most `depth`
  // are under way together, would be there.
  void Wait(int64_t arrival_ns, uint64_t place, std::span<const ReadRequest> requests,
            uint32_t depth);

 private:
  ThrottleOptions options_;
  Clock clock_;
  std::mutex mutex_;  // guards the following
  DeviceModel device_;
  uint64_t placed_bytes_ = 0;
  std::atomic<uint32_t> account_{UINT32_MAX};
};

// `inner`, as slow as the device.
std::shared_ptr<const Source> Throttled(std::shared_ptr<const Source> inner,
                                        std::shared_ptr<Throttle> throttle);

}  // namespace headrace::reader
