// A world for the service's protocol: the real dispatcher, workers and clients behind a fake
// network that delivers, delays, cuts and loses in an order drawn from a seed, with a trainer that
// goes back to its checkpoint. After research/service.md, sections 3.2 and 3.5.
//
// What is faked is the outside: connections (FIFO each, but none waits for another; messages of a
// connection that was closed may still arrive), processes, the pipeline that makes units, and the
// trainer. A mutation changes messages on their way as if a rule did not exist.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "reader/service/client.h"
#include "reader/service/dispatcher.h"
#include "reader/service/worker.h"

namespace headrace::reader::service {

enum class Mutation {
  kNone,
  kAnyTerm,    // frames of any term are admitted
  kNoBarrier,  // a term starts without the rows that some rank has
  kNoLedger,   // clients do not look into their ledger
  kNewDeal,    // a split leased again gets a new deal
  kForgets     // epochs are closed before the ranks' checkpoints have them
};

struct WorldOptions {
  uint64_t seed = 1;
  Mutation mutation = Mutation::kNone;
  Mode mode = Mode::kLockstep;
  int faults = 14;
  uint64_t most_steps = 120'000;
};

struct WorldResult {
  std::string what;  // "" when each row came exactly once and all ended
  uint64_t steps = 0;
  int faults = 0;
  // How often what the rules are for happened.
  uint64_t have = 0, stale = 0, waits = 0, voided = 0, superseded = 0, generations = 0, closed = 0,
           given_back = 0, drained = 0;
  // Ranks that waited in vain for one that had left: it ended the job together with a process of
  // the incarnation before, which the launcher had not replaced yet.
  uint64_t timeouts = 0;
};

class ServiceWorld {
 public:
  explicit ServiceWorld(WorldOptions options) : options_(options), random_(options.seed) {
    const uint64_t splits = 3 + Below(3);
    uint64_t row = 0;
    for (uint64_t s = 0; s < splits; ++s) {
      const uint64_t rows = Below(8) == 0 ? 0 : 1 + Below(9);
      splits_.push_back({row, rows});
      row += rows;
    }
    num_ranks_ = 1 + static_cast<uint32_t>(Below(3));
    epochs_ = 1 + Below(3);
    saves_apart_ = Below(2) == 0;
    for (uint64_t epoch = 0; epoch < epochs_; ++epoch)
      for (uint64_t r = 0; r < row; ++r) all_.insert({epoch, r});
    faults_ = options_.faults;
    StartDispatcher();
    for (int k = 0; k < 3; ++k) workers_.push_back(NewWorker());
    saved_.resize(num_ranks_);
    history_.resize(num_ranks_);
    for (uint32_t rank = 0; rank < num_ranks_; ++rank) ranks_.push_back(NewRank(rank));
  }

  WorldResult Run() {
    WorldResult result;
    try {
      while (what_.empty() && !IsOver() && steps_ < options_.most_steps) Step();
      if (what_.empty() && !IsOver()) what_ = "never ended";
    } catch (const Error& error) {
      what_ = error.what();
    }
    result = counts_;
    result.what = what_;
    result.generations = dispatcher_->status().generation;
    result.steps = steps_;
    result.faults = options_.faults - faults_;
    return result;
  }

 private:
  using Row = std::pair<uint64_t, uint64_t>;  // epoch, row
  struct Link {
    uint64_t id = 0, dispatcher = 0;
    bool is_open = true;  // at the other end than the dispatcher's
    std::deque<Message> up, down;
  };
  struct Frame {
    Term term = 0;
    RowSpan rows;
  };
  struct WorkerProcess {
    uint64_t id = 0;
    std::unique_ptr<Worker> worker;
    std::shared_ptr<Link> link;
    struct Working {
      Worker::Taken taken;
      std::vector<RowRange> units;  // wanted rows of units that are not made yet
    };
    std::vector<Working> working;
  };
  struct RankProcess {
    uint64_t id = 0, incarnation = 0;
    uint32_t rank = 0;
    bool is_dead = false, has_left = false;
    uint64_t hellos = 0;  // since it was not joining
    std::unique_ptr<Client> client;
    std::shared_ptr<Link> link;
    std::deque<RowSpan> buffer;  // admitted, not delivered
  };
  static constexpr uint64_t kUnitRows = 2;

  uint64_t Below(uint64_t n) { return random_() % n; }

  void StartDispatcher() {
    DispatcherOptions options;
    options.job.ranks = num_ranks_;
    options.job.epochs = epochs_;
    options.job.splits = splits_;
    // A clock that went back must not matter.
    options.job.first_term = Below(4) == 0 ? 1 : 1000 * (dispatcher_id_ + 1);
    options.board.mode = options_.mode;
    options.board.ranks = num_ranks_;
    options.board.epochs = epochs_;
    options.board.unit_rows = kUnitRows;
    options.board.seed = options_.seed;
    options.board.backup_ns = 300;
    options.silence_ns = 1500;
    options.most_split_runs = 1 + Below(2);  // most tables take several messages
    options.batch_rows = 3;
    dispatcher_ = std::make_unique<Dispatcher>(std::move(options));
    finished_.clear();
    ++dispatcher_id_;
  }

  WorkerProcess NewWorker() {
    WorkerProcess process;
    process.id = ++last_id_;
    process.worker = std::make_unique<Worker>(WorkerOptions{process.id, 0, "", 2});
    return process;
  }

  RankProcess NewRank(uint32_t rank) {
    RankProcess process;
    process.id = ++last_id_;
    process.incarnation = incarnation_;
    process.rank = rank;
    std::vector<Checkpoint> saved;
    if (saved_[rank].state) saved.push_back(*saved_[rank].state);
    process.client = std::make_unique<Client>(
        ClientOptions{rank, num_ranks_, process.id, moment_,
                      options_.mutation != Mutation::kForgets, std::to_string(process.id), ""},
        std::move(saved));
    return process;
  }

  // The launcher: all ranks begin again from their checkpoints, one by one in any order. The old
  // processes live on until they are replaced.
  void RestartRanks() {
    ++incarnation_;
    seen_.clear();
    for (uint32_t rank = 0; rank < num_ranks_; ++rank) {
      history_[rank] = saved_[rank].history;
      seen_.insert(history_[rank].begin(), history_[rank].end());
    }
    pending_.clear();
    for (uint32_t rank = 0; rank < num_ranks_; ++rank) pending_.push_back(rank);
    std::shuffle(pending_.begin(), pending_.end(), random_);
  }

  std::shared_ptr<Link> Connect() {
    auto link = std::make_shared<Link>();
    link->id = ++last_id_;
    link->dispatcher = dispatcher_id_;
    links_.push_back(link);
    return link;
  }
  bool IsConnected(const std::shared_ptr<Link>& link) const {
    return link && link->is_open && link->dispatcher == dispatcher_id_;
  }
  static void Hang(std::shared_ptr<Link>* link) {
    if (*link) (*link)->is_open = false;
    link->reset();
  }

  void Deliver(std::vector<Addressed> messages) {
    for (Addressed& addressed : messages) {
      for (const auto& link : links_) {
        if (link->id != addressed.peer) continue;
        if (auto* lease = std::get_if<Lease>(&addressed.message);
            lease != nullptr && options_.mutation == Mutation::kNewDeal)
          lease->deal.first = static_cast<uint32_t>(Below(num_ranks_));
        link->down.push_back(std::move(addressed.message));
      }
    }
  }

  // One message of one connection reaches the dispatcher.
  void ToDispatcher() {
    std::erase_if(links_, [&](const auto& link) {
      return link->dispatcher != dispatcher_id_ && !link->is_open;
    });
    std::vector<std::shared_ptr<Link>> ready;
    for (const auto& link : links_)
      if (link->dispatcher == dispatcher_id_ && (!link->up.empty() || !link->is_open))
        ready.push_back(link);
    if (ready.empty()) return;
    const auto link = ready[Below(ready.size())];
    if (link->up.empty()) {
      std::erase(links_, link);
      Deliver(dispatcher_->Gone(link->id, now_));
      if (dispatcher_->is_over() && finished_[dispatcher_->status().generation].size() < num_ranks_)
        what_ = "over while a rank has rows to deliver";
      return;
    }
    // As bytes: what the wire carries is what the dispatcher gets.
    Message message = ThroughWire(link->up.front());
    link->up.pop_front();
    if (auto* join = std::get_if<Join>(&message)) {
      if (options_.mutation == Mutation::kNoBarrier && Below(3) == 0) join->states.clear();
    }
    Deliver(dispatcher_->Handle(link->id, message, now_));
  }

  Message ThroughWire(const Message& message) {
    if (Below(4) != 0) return message;
    const std::string bytes = Serialize(message);
    return ParseMessage({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  }

  void ToWorker(WorkerProcess* process) {
    if (!process->link || process->link->down.empty()) return;
    process->worker->Handle(ThroughWire(process->link->down.front()));
    process->link->down.pop_front();
    if (!process->worker->is_over()) return;
    ++counts_.drained;
    Hang(&process->link);
    // All that anybody waits for is admitted: the lanes end with what they hold.
    for (auto& [key, frames] : frames_)
      if (key.first == process->id) frames.clear();
    *process = NewWorker();
  }

  void ToRank(RankProcess* process) {
    if (process->is_dead || !process->link || process->link->down.empty()) return;
    const Message message = ThroughWire(process->link->down.front());
    process->link->down.pop_front();
    if (const auto answer = process->client->Handle(message)) process->link->up.push_back(*answer);
    if (process->client->state() != Client::State::kOver) return;
    process->is_dead = true;
    ++counts_.superseded;
    Hang(&process->link);
    if (process->client->end().code != static_cast<uint32_t>(ExitCode::kFailure))
      what_ = "refused: " + process->client->end().reason;
    if (process->incarnation == incarnation_) RestartRanks();
  }

  // The worker talks to its dispatcher, or to the next one.
  void Ask(WorkerProcess* process) {
    if (!IsConnected(process->link)) {
      process->link = Connect();
      process->link->up.push_back(process->worker->Connected());
    }
    if (const auto back = process->worker->TakeUnmade()) {
      counts_.given_back += back->splits.size();
      process->link->up.push_back(*back);
    }
    if (const auto ask = process->worker->TakeAsk()) process->link->up.push_back(*ask);
    if (Below(4) == 0) process->link->up.push_back(Alive{});
  }

  // The pipeline makes one unit of one lease, with all its wanted rows.
  void Work(WorkerProcess* process) {
    while (auto taken = process->worker->Take()) {
      WorkerProcess::Working working{*taken, {}};
      const RowRange& split = splits_[taken->lease.split];
      for (uint64_t unit = 0; unit < NumUnits(split.count, kUnitRows); ++unit)
        working.units.push_back(RowsOfUnit(split, unit, kUnitRows));
      process->working.push_back(std::move(working));
    }
    if (process->working.empty()) return;
    auto& working = process->working[Below(process->working.size())];
    if (Below(8) == 0) {  // a part of a unit, of which the rest is to come
      process->worker->MarkMade(working.taken.local);
      return;
    }
    const size_t at = Below(working.units.size());
    const RowRange unit = working.units[at];
    working.units.erase(working.units.begin() + static_cast<ptrdiff_t>(at));
    const Lease lease = working.taken.lease;
    const uint64_t local = working.taken.local;
    if (working.units.empty())
      process->working.erase(process->working.begin() + (&working - process->working.data()));
    uint64_t first = 0, count = 0;  // one range, as what is wanted of a unit is
    for (const RowRange& wanted : lease.wanted) {
      const uint64_t low = std::max(unit.first, wanted.first);
      const uint64_t high = std::min(unit.first + unit.count, wanted.first + wanted.count);
      if (low >= high) continue;
      if (count == 0) first = low;
      count = high - first;
    }
    if (count == 0) return;
    const RowRange& split = splits_[lease.split];
    process->worker->MarkMade(local);
    const auto route = process->worker->Place(local, UnitOf(split, unit.first, kUnitRows), count);
    if (!route) {
      counts_.voided += lease.term != process->worker->term();  // and not given back
      return;
    }
    const std::string& address = process->worker->session()->clients.at(route->rank);
    frames_[{process->id, std::stoull(address)}].push_back(
        {route->term, {route->epoch, lease.split, first, count, count}});
  }

  // A frame reaches a client, unless it waits for its Started.
  void Receive() {
    std::vector<std::pair<uint64_t, uint64_t>> ready;
    for (const auto& [key, frames] : frames_)
      if (!frames.empty()) ready.push_back(key);
    if (ready.empty()) return;
    const auto key = ready[Below(ready.size())];
    std::deque<Frame>& frames = frames_[key];
    RankProcess* const process = FindRank(key.second);
    if (process == nullptr || process->is_dead) return frames.clear();
    Frame frame = frames.front();
    if (options_.mutation == Mutation::kAnyTerm) frame.term = process->client->term();
    const auto admission = process->client->Admit(frame.term, {&frame.rows, 1});
    counts_.waits += admission == Client::Admission::kWait;
    counts_.have += admission == Client::Admission::kHave;
    counts_.stale += admission == Client::Admission::kStale;
    if (admission == Client::Admission::kWait) return;
    frames.pop_front();
    if (admission == Client::Admission::kNew) {
      process->buffer.push_back(frame.rows);
    } else if (admission == Client::Admission::kHave && options_.mutation == Mutation::kNoLedger) {
      Consume(process, frame.rows);
    }
  }

  RankProcess* FindRank(uint64_t id) {
    for (RankProcess& process : ranks_)
      if (process.id == id) return &process;
    return nullptr;
  }

  void Consume(const RankProcess* process, const RowSpan& rows) {
    if (process->incarnation != incarnation_) return;  // its trainer is history
    for (uint64_t row = rows.first; row < rows.first + rows.count; ++row) {
      history_[process->rank].push_back({rows.epoch, row});
      if (seen_.contains({rows.epoch, row})) what_ = "a row twice";
      seen_.insert({rows.epoch, row});
    }
  }

  // The consumer's step: some of the rows that wait.
  void Take(RankProcess* process) {
    if (process->is_dead || process->buffer.empty()) return;
    RowSpan& front = process->buffer.front();
    RowSpan rows = front;
    rows.count = rows.rows = 1 + Below(front.count);
    front.first += rows.count;
    front.count -= rows.count;
    front.rows = front.count;
    if (front.count == 0) process->buffer.pop_front();
    process->client->Delivered({&rows, 1}, rows.count);
    Consume(process, rows);
  }

  void Hello(RankProcess* process) {
    if (process->is_dead || process->has_left) return;
    if (process->client->may_leave() && process->buffer.empty()) {
      process->has_left = true;
      process->client->Finish();
      if (auto report = process->client->TakeReport(); report && IsConnected(process->link)) {
        process->link->up.push_back(*report);
        finished_[process->client->generation()].insert(process->rank);
      }
      return Hang(&process->link);
    }
    process->hellos = process->client->state() == Client::State::kJoining ? process->hellos + 1 : 0;
    const bool is_left_alone = std::any_of(ranks_.begin(), ranks_.end(),
                                           [](const RankProcess& other) { return other.has_left; });
    if (process->hellos > 200 && is_left_alone && process->incarnation == incarnation_) {
      process->is_dead = true;  // --join-timeout
      ++counts_.timeouts;
      Hang(&process->link);
      return RestartRanks();
    }
    if (IsConnected(process->link)) {
      // Now and then it connects anew, for no reason but its own.
      if (Below(60) != 0) return;
      Hang(&process->link);
    }
    process->link = Connect();
    process->link->up.push_back(process->client->Connected());
  }

  // That its trainer may go back to.
  bool HasState(const RankProcess& process) const {
    const auto state = process.client->state();
    return !process.is_dead && process.incarnation == incarnation_ &&
           (state == Client::State::kActive || state == Client::State::kComplete);
  }

  void SaveOne(RankProcess* process) {
    if (!HasState(*process)) return;
    Saved& saved = saved_[process->rank];
    saved = {process->client->Save(""), history_[process->rank]};
    counts_.closed += saved.state->delivered.closed.has_value();
    process->client->SaveIsDurable();
  }

  void SaveAll() {
    if (!pending_.empty()) return;
    for (const RankProcess& process : ranks_)
      if (!HasState(process) || process.client->generation() != ranks_[0].client->generation())
        return;
    ++moment_;
    for (RankProcess& process : ranks_) SaveOne(&process);
  }

  void Fault() {
    --faults_;
    WorkerProcess& worker = workers_[Below(workers_.size())];
    RankProcess& rank = ranks_[Below(ranks_.size())];
    switch (Below(8)) {
      case 0:  // a worker is killed; what is on its connections may still arrive
        Hang(&worker.link);
        for (auto& [key, frames] : frames_)
          if (key.first == worker.id && Below(2) == 0) frames.clear();
        worker = NewWorker();
        return;
      case 1:  // a worker is taken for dead, and is not
        Hang(&worker.link);
        return;
      case 2:
        StartDispatcher();
        return;
      case 3:
      case 4:
        return RestartRanks();
      case 5:  // a connection of a worker and a client ends, with what is on it
        frames_[{worker.id, rank.id}].clear();
        if (IsConnected(worker.link))
          worker.link->up.push_back(Cut{worker.worker->term(), rank.rank});
        return;
      case 6: {  // it, or somebody who decides on workers, has it drained
        if (!IsConnected(worker.link)) return;
        std::vector<Addressed> out;
        dispatcher_->Drain(worker.link->id, &out);
        return Deliver(std::move(out));
      }
      default:  // a rank loses its dispatcher
        Hang(&rank.link);
        return;
    }
  }

  void Step() {
    ++steps_;
    ++now_;
    if (!pending_.empty() && Below(30) == 0) {
      const uint32_t rank = pending_.back();
      pending_.pop_back();
      Hang(&ranks_[rank].link);
      ranks_[rank] = NewRank(rank);
      return;
    }
    if (now_ % 50 == 0) Deliver(dispatcher_->Tick(now_));
    WorkerProcess* const worker = &workers_[Below(workers_.size())];
    RankProcess* const rank = &ranks_[Below(ranks_.size())];
    switch (Below(faults_ > 0 ? 33 : 32)) {
      default:
        return ToDispatcher();
      case 8:
      case 9:
      case 10:
      case 11:
        return ToWorker(worker);
      case 12:
      case 13:
      case 14:
        return ToRank(rank);
      case 15:
      case 16:
        return Ask(worker);
      case 17:
      case 18:
      case 19:
      case 20:
        return Work(worker);
      case 21:
      case 22:
      case 23:
      case 24:
        return Receive();
      case 25:
      case 26:
      case 27:
        return Take(rank);
      case 28:
      case 29:
        if (!rank->is_dead && IsConnected(rank->link))
          if (auto report = rank->client->TakeReport()) rank->link->up.push_back(*report);
        return;
      case 30:
        return Hello(rank);
      case 31:
        return saves_apart_ ? SaveOne(rank) : SaveAll();
      case 32:
        if (Below(8) == 0) Fault();
    }
  }

  bool IsOver() const {
    if (faults_ > 0 || !pending_.empty()) return false;
    for (const RankProcess& process : ranks_)
      if (process.is_dead || process.incarnation != incarnation_ || !process.buffer.empty() ||
          !process.client->has_ended())
        return false;
    return std::set<Row>(seen_.begin(), seen_.end()) == all_;
  }

  const WorldOptions options_;
  std::mt19937_64 random_;
  uint32_t num_ranks_ = 1;
  uint64_t epochs_ = 1;
  std::vector<RowRange> splits_;
  std::set<Row> all_;
  int faults_ = 0;
  uint64_t steps_ = 0, last_id_ = 0, dispatcher_id_ = 0, incarnation_ = 0;
  int64_t now_ = 0;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<WorkerProcess> workers_;
  std::vector<RankProcess> ranks_;
  std::vector<uint32_t> pending_;
  std::vector<std::shared_ptr<Link>> links_;
  std::map<std::pair<uint64_t, uint64_t>, std::deque<Frame>> frames_;
  std::map<uint64_t, std::set<uint32_t>> finished_;  // ranks that said so to this dispatcher
  struct Saved {
    std::optional<Checkpoint> state;
    std::vector<Row> history;
  };
  std::vector<std::vector<Row>> history_;  // of ranks: what their trainers had
  std::multiset<Row> seen_;                // of all
  std::vector<Saved> saved_;               // of ranks
  bool saves_apart_ = false;               // each rank at moments of its own
  uint64_t moment_ = 0;                    // of what all saved together
  std::string what_;
  WorldResult counts_;
};

}  // namespace headrace::reader::service
