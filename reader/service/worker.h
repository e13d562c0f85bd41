// Worker: what a process that makes batches holds of the dispatcher's leases. A pure state machine
// between the dispatcher, the pipeline that reads the leased splits, and the lanes to the clients;
// no socket, no clock, no batch.
//
//   dispatcher --Lease--> Take --> pipeline --> Place --> lane of a client
//
// The pipeline knows leases by numbers of the worker's own, which it carries through as the epoch
// of its rows' spans. So rows of a lease that became void meanwhile are known as such, and a split
// leased twice is not mixed up with itself. Not thread-safe.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reader/service/message.h"

namespace headrace::reader::service {

struct WorkerOptions {
  uint64_t instance = 0;
  int64_t pid = 0;
  std::string host = {};
  uint32_t ahead = 2;  // leases that wait for the pipeline
};

class Worker {
 public:
  explicit Worker(WorkerOptions options) : options_(std::move(options)) {}

  // A connection to a dispatcher stands: what to send on it, at once.
  Register Connected();
  // Anything that a dispatcher says.
  void Handle(const Message& message);
  // Leases wanted, if any: to be sent on the same connection.
  std::optional<Ask> TakeAsk();

  struct Taken {
    uint64_t local = 0;  // the lease's number here, from 1
    Lease lease;
  };
  // The next lease for the pipeline; nothing when none waits.
  std::optional<Taken> Take();

  // When the worker drains, and holds leases of which the pipeline has made no row: those are over,
  // to be said on the same connection. What it makes of them yet is of void leases.
  std::optional<GiveBack> TakeUnmade();

  // Where a unit goes that the pipeline has made, all its wanted rows together.
  struct Route {
    Term term = 0;
    uint64_t epoch = 0;  // of the job
    uint32_t rank = 0;
  };
  // Nothing when the lease is void. `rows` rows of the table are placed with it; the lease is over
  // when all are.
  std::optional<Route> Place(uint64_t local, uint64_t unit, uint64_t rows);
  // Rows of it have come out of the pipeline. The lease, unless it is void.
  const Lease* MarkMade(uint64_t local);

  bool has_leases() const { return !leases_.empty(); }

  // The session, once there is one. It changes with each term.
  const std::optional<Session>& session() const { return session_; }
  Term term() const { return term_; }
  bool is_over() const { return is_over_; }
  const std::optional<Refused>& refusal() const { return refusal_; }
  void ForgetRefusal();  // to try again

 private:
  struct Held {
    Lease lease;
    uint64_t left = 0;     // wanted rows that were not placed
    bool is_made = false;  // some rows
  };

  const WorkerOptions options_;
  std::optional<Session> session_;
  Term term_ = 0;
  std::map<uint64_t, Held> leases_;
  std::deque<uint64_t> waiting_;  // of leases_: not taken
  uint64_t asked_ = 0;            // leases asked for and not come
  uint64_t last_local_ = 0;
  bool is_draining_ = false, is_over_ = false;
  std::optional<Refused> refusal_;
};

}  // namespace headrace::reader::service
