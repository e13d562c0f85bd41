// SendLanes: a queue, a thread and a connection to each client of a worker. Units are sent in the
// order in which they were put. A connection that breaks loses what was on it; that is said, and
// the lane connects again.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "reader/pipeline/delivery/credentials.h"
#include "reader/pipeline/delivery/wire_codec.h"
#include "reader/pipeline/element.h"
#include "reader/service/lease.h"

namespace headrace::reader::service {

struct LaneOptions {
  size_t units = 8;                          // that wait in a lane; more wait in the pipeline
  uint64_t ring_bytes = uint64_t{16} << 20;  // of clients that take batches through shared memory
  // A connection broke in this term; called by any thread.
  std::function<void(Term, uint32_t rank)> cut = {};
  // Throws for an address to which no batch may go; called by any thread.
  std::function<void(const DeliveryAddress&)> check_address = {};
  // A line about a client that cannot be reached, once for each cause, and one when it is reached
  // after that; called by any thread.
  std::function<void(const std::string&)> warn = {};
  // A line about how batches are sent to a client from now on; called by any thread.
  std::function<void(const std::string&)> note = {};
  // A client that is not there is none for so long: it may be about to start again.
  int64_t patience_ns = 60'000'000'000;
  // A client that has as many workers as it takes is full for so long: it may not know yet that one
  // of them died.
  int64_t full_patience_ns = 3'000'000'000;
};

// Thread-safe.
class SendLanes {
 public:
  explicit SendLanes(LaneOptions options) : options_(std::move(options)) {}
  ~SendLanes();  // stops

  void RegisterAccounts(uint32_t from_stage);  // of whoever puts
  // For clients that take batches over a network.
  void SetCredentials(std::shared_ptr<const Credentials> credentials);
  void SetWire(WireSetting wire);  // before the first term
  // Clients by rank. Units of earlier terms are dropped.
  void SetTerm(Term term, const std::vector<std::string>& addresses);
  // Waits for room. The element holds a TensorBatch with its term. False: the term is over, Stop
  // was called or `stop` given, and the unit is dropped. Throws as Check.
  bool Put(uint32_t rank, Element&& unit, const StopSignal* stop);
  void Stop();
  // Throws Error kResources when an earlier unit was too large for a frame, there was no memory for
  // a ring, or a client has as many workers as it takes; then is_one_too_many().
  void Check() const;
  bool is_one_too_many() const { return is_one_too_many_; }
  uint64_t sent() const;        // units
  uint64_t no_room_ns() const;  // that Put waited for room

 private:
  struct Lane {
    uint32_t rank = 0;
    std::string address;
    std::deque<Element> units;
    bool is_sending = false;
    std::thread thread;
    uint32_t queue = UINT32_MAX;  // account
  };
  struct Connection;
  void Work(Lane* lane);
  bool Await(Lane* lane, Connection* connection);
  bool Connect(Lane* lane, Connection* connection);
  void AwaitRoom(Connection* connection);
  void Send(Lane* lane, Connection* connection, Element&& unit);
  void SayUnreached(const Lane& lane, Connection* connection, const Error& error);
  void SayReached(const Lane& lane, Connection* connection);
  void Fail(bool is_full = false);  // of the exception at hand, the first alone
  void Drop();                      // units of other terms; under the mutex

  const LaneOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Term term_ = 0;
  bool is_stopped_ = false;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::shared_ptr<const Credentials> credentials_;
  WireSetting wire_;
  uint64_t sent_ = 0, no_room_ns_ = 0;
  int64_t waits_since_ns_ = 0;  // a Put waits for room; 0: none does
  std::exception_ptr error_;
  std::atomic<bool> is_one_too_many_{false};
  // Accounts.
  uint32_t from_stage_ = UINT32_MAX, deal_ = UINT32_MAX;
  uint32_t stage_ = UINT32_MAX, serialize_ = UINT32_MAX, send_ = UINT32_MAX;
};

}  // namespace headrace::reader::service
