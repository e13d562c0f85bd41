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
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
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
  // A machine that says nothing for so long lends nothing until it is heard again.
  int64_t silence_ns = 5'000'000'000;
};

struct PoolJobStatus {
  std::string job, place, machine;
  uint32_t weight = 1, wanted = 0, granted = 0, running = 0;
  double share = 0;           // workers that are fair now; `granted` is that over time
  bool is_connected = false;  // its dispatcher
};
struct PoolMachineStatus {
  std::string machine;
  uint32_t workers = 0, granted = 0, running = 0;
  bool is_leaving = false, is_silent = false;
};
struct PoolStatus {
  uint32_t workers = 0;  // of all machines that lend some now
  std::vector<PoolJobStatus> jobs;
  std::vector<PoolMachineStatus> machines;
};

class Pool {
 public:
  explicit Pool(PoolOptions options = {}) : options_(options) {}

  // What else follows from it is said by the next Tick.
  std::vector<Addressed> Handle(uint64_t peer, const Message& message, int64_t now_ns);
  void Gone(uint64_t peer, int64_t now_ns);
  // Call a few times a second.
  std::vector<Addressed> Tick(int64_t now_ns);

  // From now on machines, also those that come later, let their workers finish: what to tell them.
  std::vector<Addressed> BeginParting();
  bool has_machines() const { return !machines_.empty(); }
  PoolStatus status() const;

 private:
  // A job's place, and the machine where alone it can be reached.
  struct Key {
    std::string machine, place;
    auto operator<=>(const Key&) const = default;
  };
  struct PoolJob {
    Want want;
    uint64_t peer = 0;  // 0: its dispatcher is gone, since `gone_ns`
    int64_t gone_ns = 0;
    uint64_t number = 0;         // in the order in which they came
    double share = 0, owed = 0;  // workers; seconds of a worker that it got less than its share
    uint32_t granted = 0;        // what all machines are told to run for it
    uint32_t running = 0;        // what they say that they run, also while it drains
    std::optional<Grant> said;
  };
  struct Machine {
    Offer offer;
    int64_t heard_ns = 0;
    bool is_leaving = false, is_silent = false;
    std::map<Key, uint32_t> assigned;  // no zeros
    uint32_t granted = 0;              // their sum
    std::optional<std::vector<WorkersAt>> said;
    void Give(const Key& job, uint32_t workers);
    void TakeAway(const Key& job, uint32_t workers);
    uint32_t Has(const Key& job) const;
    uint32_t lent() const { return is_leaving || is_silent ? 0 : offer.workers; }
    bool CanRun(const Key& job) const {
      return job.machine.empty() || job.machine == offer.machine;
    }
  };
  using WholeNumbers = std::map<Key, uint32_t>;

  void On(uint64_t peer, const Offer& offer, int64_t now_ns);
  void On(uint64_t peer, const Want& want);
  PoolJob& JobAt(const Key& key);
  Key KeyAt(const Machine& machine, const std::string& place) const;
  void CountRunning();
  void CountTime(int64_t now_ns);
  void ForgetGone(int64_t now_ns);
  uint32_t Lent() const;
  void FindShares();
  void Share(bool is_turn);
  WholeNumbers MakeWhole() const;
  std::vector<Key> ByWhatIsOwed(double ahead_s) const;
  void TakeBack(const WholeNumbers& wanted);
  void HandOut(const WholeNumbers& wanted);
  bool HandOne(const Key& key);
  uint32_t NumGranted(const Key& key) const;
  void Say(std::vector<Addressed>* out);

  const PoolOptions options_;
  std::map<Key, PoolJob> jobs_;
  std::map<uint64_t, Machine> machines_;  // by their peers
  uint64_t last_number_ = 0;
  int64_t counted_ns_ = 0, turned_ns_ = 0;
  std::map<Key, double> shares_;  // that whole_ was made of
  WholeNumbers whole_;
  bool is_changed_ = false;  // shares are to be computed again
  bool is_parting_ = false;
};

struct Claim {
  double weight = 1, wanted = 0;
};
// Max-min fair shares of `workers` by weight: at most what each wants, and `least` of it at least.
std::vector<double> FairShares(const std::vector<Claim>& claims, double workers, double least);

}  // namespace headrace::reader::service
