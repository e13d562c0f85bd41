// What the processes of a job measure, from the process that measures to the fleet file of its
// dispatcher: a Shipper at the one end, a FleetStore at the other, the service's messages between.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/service/dispatcher.h"
#include "reader/service/measured.h"

namespace headrace::experiments {

// Where a dispatcher keeps it if nobody says.
inline constexpr char kFleetFile[] = "headrace-fleet.db";

// Measures this process: role "worker", or "rank" with its number. Its measurements begin now.
std::shared_ptr<reader::service::MeasuredSource> MeasureMember(const std::string& role,
                                                               std::optional<uint32_t> rank);

// The dispatcher's end. A thread of its own stores: the service waits for no disk, and goes on when
// the file cannot be written. That is said, and what comes then is lost; every half a minute it is
// tried again, and said when it works.
class ServiceFleet {
 public:
  // `mode`: lockstep or independent.
  ServiceFleet(std::string job, std::string mode);
  ~ServiceFleet();
  ServiceFleet(const ServiceFleet&) = delete;
  ServiceFleet& operator=(const ServiceFleet&) = delete;

  // Without it nothing is kept, and members are told that all is. `again_ns`: after a failure,
  // until the next try. Throws as FleetStore.
  void Open(const std::string& file, const reader::service::DispatcherOptions& job,
            std::function<void(const std::string&)> note, int64_t again_ns = 30'000'000'000);

  // These are for the dispatcher's thread, and take no longer than a lock.
  void Take(reader::service::Measured&& measured);
  std::vector<reader::service::Kept> TakeKept();
  // Ten times a second: what the dispatcher counted, and what happened.
  void Watch(reader::service::Dispatcher* dispatcher, std::optional<uint32_t> wanted = {});
  // A decision about the number of workers.
  void Decide(const std::string& limit, const std::string& reason, uint32_t from, uint32_t to,
              std::optional<double> batches_per_second);

  // Stores what is there, and how the job ended. Call once the dispatcher has ended.
  void Finish(bool is_complete);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::experiments
