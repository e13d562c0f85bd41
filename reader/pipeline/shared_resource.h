// Resources that operators of different threads share: named locks and rate-limited devices, each
// with an account.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "reader/pipeline/stop_signal.h"

namespace headrace::reader {

// A critical section; holders pass one at a time.
struct SharedLock {
  std::mutex mutex;
  uint32_t account = 0;
};

// A device that moves `bytes_per_second`, one request after the other in order of arrival: a
// request waits for its turn and is then served for bytes / rate.
class SharedDevice {
 public:
  SharedDevice(double bytes_per_second, uint32_t account)
      : bytes_per_second_(bytes_per_second), account_(account) {}
  // Blocks for the request's turn and its service. Returns false when stopped.
  bool Serve(uint64_t bytes, StopSignal* stop);

 private:
  double bytes_per_second_;
  uint32_t account_;
  std::mutex turn_;
  int64_t free_at_ns_ = 0;  // under turn_: when the last request's service ends
};

class SharedResources {
 public:
  SharedLock* Lock(const std::string& name);
  SharedDevice* Device(const std::string& name, double bytes_per_second);

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<SharedLock>> locks_;
  std::map<std::string, std::unique_ptr<SharedDevice>> devices_;
};

}  // namespace headrace::reader
