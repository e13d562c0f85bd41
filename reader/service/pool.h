// Pool: workers of several machines, shared by several jobs. Each job keeps its own dispatcher,
// which says how many workers would be of use to it; each machine says how many it lends. The pool
// says how many workers each machine is to run for each job. A pure state machine: messages and the
// time go in, messages come out; no socket, no clock, no file. What it knows it was told by jobs
// and machines, so another one can take its place at any time.
//
// Shares are max-min fair by weight: no job gets more than it has use for, and what is left over is
// divided among the others by their weights; each gets one worker at least, where there are as many
// workers as jobs. A share that is no whole number is made up over time: who is owed the most gets
// the worker that is left, for a turn.
//
// A peer is a connection, numbered by whoever owns the sockets and never used again. Not
// thread-safe.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reader/service/dispatcher.h"
#include "reader/service/message.h"

namespace headrace::reader::service {

struct PoolOptions {
  // A job whose dispatcher is gone keeps its workers for so long: it may come back. So do workers
  // that a machine runs for a job that this pool has not heard of.
  int64_t patience_ns = 10'000'000'000;
  // Of the worker that is left where shares are no whole numbers.
  int64_t turn_ns = 30'000'000'000;
};

struct PoolJobStatus {
  std::string job, place;
  uint32_t weight = 1, wanted = 0, granted = 0, running = 0;
  double share = 0;           // workers that are fair now; `granted` is that over time
  bool is_connected = false;  // its dispatcher
};
struct PoolMachineStatus {
  std::string machine;
  uint32_t workers = 0, granted = 0, running = 0;
  bool is_leaving = false;
};
struct PoolStatus {
  uint32_t workers = 0;  // of all machines that do not leave
  std::vector<PoolJobStatus> jobs;
  std::vector<PoolMachineStatus> machines;
};

class Pool {
 public:
  explicit Pool(PoolOptions options = {}) : options_(options) {}

  // What follows from it is said by the next Tick.
  std::vector<Addressed> Handle(uint64_t peer, const Message& message, int64_t now_ns);
  void Gone(uint64_t peer, int64_t now_ns);
  // Call a few times a second.
  std::vector<Addressed> Tick(int64_t now_ns);

  // Lets all machines finish what they have: what to tell them and the jobs.
  std::vector<Addressed> Part() const;
  bool has_machines() const { return !machines_.empty(); }
  PoolStatus status() const;

 private:
  struct PoolJob {  // by its place
    Want want;
    uint64_t peer = 0;  // 0: its dispatcher is gone, since `gone_ns`
    int64_t gone_ns = 0;
    uint64_t number = 0;         // in the order in which they came
    double share = 0, owed = 0;  // workers; seconds of a worker that it got less than its share
    uint32_t granted = 0;        // what all machines run for it, as they are told
    Grant said;
    bool was_said = false;
  };
  struct Machine {  // by its peer
    Offer offer;
    bool is_leaving = false;
    std::map<std::string, uint32_t> assigned;  // by place; no zeros
    uint32_t granted = 0;                      // their sum
    std::vector<WorkersAt> said;
    bool was_said = false;
    void Give(const std::string& place, uint32_t workers);
    void TakeAway(const std::string& place, uint32_t workers);
    uint32_t Has(const std::string& place) const;
    uint32_t lent() const { return is_leaving ? 0 : offer.workers; }
  };
  using Jobs = std::map<std::string, PoolJob>;

  void On(uint64_t peer, const Offer& offer, int64_t now_ns);
  void On(uint64_t peer, const Want& want);
  PoolJob& JobAt(const std::string& place);
  void CountTime(int64_t now_ns);
  void ForgetGone(int64_t now_ns);
  bool CanRun(const Machine& machine, const PoolJob& job) const;
  uint32_t Lent() const;
  void Share();
  std::map<std::string, uint32_t> WholeShares() const;
  void TakeBack(const std::map<std::string, uint32_t>& wanted);
  void HandOut(const std::map<std::string, uint32_t>& wanted);
  bool HandOne(const std::string& place);
  uint32_t NumGranted(const std::string& place) const;
  void Say(std::vector<Addressed>* out);

  const PoolOptions options_;
  Jobs jobs_;
  std::map<uint64_t, Machine> machines_;
  uint64_t last_number_ = 0;
  int64_t counted_ns_ = 0, turned_ns_ = 0;
  bool is_changed_ = false;  // shares are to be computed again
};

// Max-min fair shares of `workers` by weight, at most what each wants, and at least `least` of it.
struct Claim {
  double weight = 1, wanted = 0;
};
std::vector<double> FairShares(const std::vector<Claim>& claims, double workers, double least);

}  // namespace headrace::reader::service
