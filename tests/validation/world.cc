#include "tests/validation/world.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <queue>
#include <utility>

namespace headrace::validation {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

enum class Doing : uint8_t {
  kGather,
  kCpu,
  kBlocked,
  kAsk,
  kHeldCpu,
  kHeldBlocked,
  kGiveBack,
  kEmit
};

struct Worker {
  size_t station = 0;  // stations.size(): the consumer
  Doing doing = Doing::kGather;
  size_t part = 0;
  double scale = 1;       // this part's draw
  int got = 0;            // elements of this firing
  int to_emit = 0;        // left to put
  uint64_t sequence = 0;  // of the firing
  bool waiting = false;
  double since_s = 0;         // start of the wait or of the work
  double share_at_start = 0;  // the cores' clock then
};

// Elements are their sequence numbers; in an unordered queue only their number counts.
struct Buffer {
  int capacity = 1, size = 0;
  bool ordered = false;
  uint64_t window = 0, due = 0;
  std::map<uint64_t, bool> there;  // ordered only
  double since_s = 0;
  std::deque<size_t> putters;
};

struct Server {
  int free = 1;
  std::deque<size_t> line;
};

class Stage {
 public:
  Stage(const World& world, uint64_t seed) : world_(world), dice_(seed, 77) {
    const size_t n = world.stations.size();
    consumer_of_.assign(n, n);
    hungry_.resize(n + 1);
    turn_.assign(n + 1, 0);
    taken_.assign(n + 1, 0);
    for (size_t s = 0; s < n; ++s) {
      const Station& station = world.stations[s];
      for (size_t input : station.inputs) consumer_of_[input] = s;
      Buffer& buffer = buffers_.emplace_back();
      buffer.capacity = std::max(1, station.queue);
      buffer.ordered = station.ordered;
      buffer.window = static_cast<uint64_t>(std::max(0, station.window));
      for (int i = 0; i < std::max(1, station.threads); ++i) workers_.emplace_back().station = s;
      ledger_.parts.emplace_back(station.parts.size());
    }
    workers_.emplace_back().station = n;
    for (const SharedResource& shared : world.shared) {
      servers_.emplace_back().free = std::max(1, shared.servers);
    }
    ledger_.queues.resize(n);
    ledger_.shared.resize(world.shared.size());
  }

  Ledger Play(int64_t batches, double limit_s, double period_s,
              const std::function<void(const Ledger&)>& look) {
    for (size_t i = 0; i < workers_.size(); ++i) Wake(i);
    RunReady();
    double next_look = period_s > 0 ? period_s : kNever;
    while (ledger_.steps < batches) {
      const double timer = timers_.empty() ? kNever : timers_.top().first;
      const double speed = Speed();
      const double work =
          on_cores_.empty() ? kNever : now_ + (on_cores_.top().first - work_) / speed;
      const double next = std::max(now_, std::min(timer, work));
      while (next_look <= std::min(next, limit_s)) {
        MoveTo(next_look);
        Settle();
        if (look) look(ledger_);
        next_look += period_s;
      }
      if (next >= limit_s || next == kNever) {
        MoveTo(std::min(limit_s, next));
        break;
      }
      MoveTo(next);
      size_t index;
      if (work <= timer) {
        work_ = on_cores_.top().first;
        index = on_cores_.top().second;
        on_cores_.pop();
      } else {
        index = timers_.top().second;
        timers_.pop();
      }
      Done(index);
      Wake(index);
      RunReady();
    }
    Settle();
    return ledger_;
  }

  // When the consumer finished that batch; negative before it did.
  void Mark(int64_t batch) { mark_ = batch; }
  double marked_s() const { return marked_s_; }

 private:
  using Event = std::pair<double, size_t>;
  using Agenda = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

  // Two clocks run beside the wall's: `share_` counts the core time that each runnable thread gets,
  // `work_` the work that it gets done in it.
  double Share() const {
    if (on_cores_.empty()) return 1;
    return std::min(1.0, world_.cores / static_cast<double>(on_cores_.size()));
  }
  double Speed() const {
    const double wanting = static_cast<double>(on_cores_.size());
    const double busy = std::min(world_.cores, wanting);
    const double slow = (1 + world_.contention * std::max(0.0, busy - 1)) *
                        (1 + world_.switching * std::max(0.0, wanting / world_.cores - 1));
    return Share() / slow;
  }
  void MoveTo(double time) {
    const double elapsed = time - now_;
    ledger_.busy_cores_s += elapsed * std::min(world_.cores, static_cast<double>(on_cores_.size()));
    share_ += elapsed * Share();
    work_ += elapsed * Speed();
    now_ = time;
  }

  bool IsConsumer(const Worker& worker) const { return worker.station == world_.stations.size(); }
  const Part& Current(const Worker& worker) const {
    return world_.stations[worker.station].parts[worker.part];
  }
  Ledger::PartTimes& Times(const Worker& worker, size_t part) {
    return ledger_.parts[worker.station][part];
  }
  double Slow(const Part& part) const {
    return part.shared < 0 ? 1 : world_.shared[static_cast<size_t>(part.shared)].slow;
  }

  void Settle() {
    for (size_t q = 0; q < buffers_.size(); ++q) Settle(q);
    ledger_.time_s = now_;
  }
  void Settle(size_t q) {
    Buffer& buffer = buffers_[q];
    const double elapsed = now_ - buffer.since_s;
    ledger_.queues[q].level_s += elapsed * buffer.size;
    if (buffer.size >= buffer.capacity) ledger_.queues[q].full_s += elapsed;
    if (buffer.size == 0) ledger_.queues[q].empty_s += elapsed;
    buffer.since_s = now_;
  }

  void Wake(size_t index) { ready_.push_back(index); }
  void RunReady() {
    while (!ready_.empty()) {
      const size_t index = ready_.front();
      ready_.pop_front();
      while (Move(index)) {
      }
    }
  }

  // Work or a timer of this worker ended.
  void Done(size_t index) {
    Worker& worker = workers_[index];
    const double elapsed = now_ - worker.since_s;
    if (IsConsumer(worker)) {
      ledger_.step_compute_s += elapsed;
      if (++ledger_.steps == mark_) marked_s_ = now_;
      worker.doing = Doing::kGather;
      worker.got = 0;
      return;
    }
    Ledger::PartTimes& times = Times(worker, worker.part);
    if (worker.doing == Doing::kCpu || worker.doing == Doing::kHeldCpu) {
      const double on_core = share_ - worker.share_at_start;
      times.cpu_s += on_core;
      times.runnable_s += std::max(0.0, elapsed - on_core);
    } else {
      times.blocked_s += elapsed;
    }
    if (worker.doing == Doing::kHeldCpu || worker.doing == Doing::kHeldBlocked) {
      ledger_.shared[static_cast<size_t>(Current(worker).shared)].hold_s += elapsed;
    }
    Next(&worker);
  }
  static void Next(Worker* worker) {
    worker->doing = static_cast<Doing>(static_cast<int>(worker->doing) + 1);
  }

  bool Work(size_t index, double seconds) {
    Worker& worker = workers_[index];
    if (seconds <= 0) {
      Next(&worker);
      return true;
    }
    worker.since_s = now_;
    worker.share_at_start = share_;
    on_cores_.push({work_ + seconds, index});
    return false;
  }
  bool Pause(size_t index, double seconds) {
    Worker& worker = workers_[index];
    if (seconds <= 0 && !IsConsumer(worker)) {
      Next(&worker);
      return true;
    }
    worker.since_s = now_;
    timers_.push({now_ + seconds, index});
    return false;
  }

  void Begin(Worker* worker, size_t part) {
    worker->part = part;
    const Part& p = Current(*worker);
    worker->scale = dice_.Draw(p.shape, 1, p.cv);
    worker->doing = Doing::kCpu;
  }

  // One move; false when the worker now works or waits.
  bool Move(size_t index) {
    Worker& worker = workers_[index];
    if (IsConsumer(worker)) {
      if (!Gather(index)) return false;
      return Pause(index, dice_.Draw(Shape::kGamma, world_.consumer_s, world_.consumer_cv));
    }
    const Station& station = world_.stations[worker.station];
    switch (worker.doing) {
      case Doing::kGather:
        if (!Gather(index)) return false;
        Begin(&worker, 0);
        return true;
      case Doing::kCpu:
        return Work(index, Current(worker).cpu_s * worker.scale);
      case Doing::kBlocked:
        return Pause(index, Current(worker).blocked_s * worker.scale);
      case Doing::kAsk:
        return Ask(index);
      case Doing::kHeldCpu:
        return Work(index, Current(worker).held_cpu_s * worker.scale * Slow(Current(worker)));
      case Doing::kHeldBlocked:
        return Pause(index, Current(worker).held_blocked_s * worker.scale * Slow(Current(worker)));
      case Doing::kGiveBack:
        GiveBack(worker);
        ++Times(worker, worker.part).completions;
        if (worker.part + 1 < station.parts.size()) {
          Begin(&worker, worker.part + 1);
          return true;
        }
        worker.to_emit = station.emit < 1 ? dice_.Chance(station.emit)
                                          : static_cast<int>(std::lround(station.emit));
        worker.doing = Doing::kEmit;
        return true;
      case Doing::kEmit:
        while (worker.to_emit > 0) {
          if (!Put(index)) return false;
          --worker.to_emit;
        }
        worker.doing = Doing::kGather;
        worker.got = 0;
        return true;
    }
    return false;
  }

  // The inputs of a station; the consumer's is the last station.
  size_t NumInputs(size_t s) const {
    return s == world_.stations.size() ? 1 : world_.stations[s].inputs.size();
  }
  size_t Input(size_t s, size_t i) const {
    return s == world_.stations.size() ? s - 1 : world_.stations[s].inputs[i];
  }

  bool Available(size_t q) const {
    const Buffer& buffer = buffers_[q];
    return buffer.ordered ? buffer.there.contains(buffer.due) : buffer.size > 0;
  }

  // Takes what a firing needs; elements are taken one at a time, in turn from the inputs.
  bool Gather(size_t index) {
    Worker& worker = workers_[index];
    const size_t s = worker.station, inputs = NumInputs(s);
    if (inputs == 0) {
      worker.sequence = taken_[s]++;
      return true;
    }
    const Station* station = IsConsumer(worker) ? nullptr : &world_.stations[s];
    const int take = station == nullptr ? 1 : station->take;
    const int needed = station != nullptr && station->zips ? take * static_cast<int>(inputs) : take;
    while (worker.got < needed) {
      // Zipping, each firing goes through the inputs; interleaving, the station does.
      const size_t from = station != nullptr && station->zips
                              ? static_cast<size_t>(worker.got) % inputs
                              : turn_[s] % inputs;
      const size_t q = Input(s, from);
      if (!Available(q)) {
        if (!worker.waiting) {
          worker.waiting = true;
          worker.since_s = now_;
        }
        hungry_[s].push_back(index);
        return false;
      }
      if (worker.waiting) {
        worker.waiting = false;
        const double waited = now_ - worker.since_s;
        if (station == nullptr) {
          ledger_.step_wait_s += waited;
        } else {
          Times(worker, 0).in_s += waited;
        }
      }
      TakeFrom(q);
      if (station == nullptr || !station->zips) ++turn_[s];
      ++worker.got;
    }
    worker.sequence = taken_[s]++;
    return true;
  }

  void TakeFrom(size_t q) {
    Settle(q);
    Buffer& buffer = buffers_[q];
    if (buffer.ordered) buffer.there.erase(buffer.due++);
    --buffer.size;
    ++ledger_.queues[q].gets;
    // Room, or another element due: those who wait try again, first come first served.
    while (!buffer.putters.empty()) {
      Wake(buffer.putters.front());
      buffer.putters.pop_front();
      if (!buffer.ordered) break;
    }
  }

  bool Put(size_t index) {
    Worker& worker = workers_[index];
    const size_t q = worker.station;
    Buffer& buffer = buffers_[q];
    bool admitted = buffer.size < buffer.capacity;
    if (buffer.ordered) {
      const uint64_t ahead = worker.sequence - buffer.due;
      admitted = ahead == 0 || (admitted && (buffer.window == 0 || ahead < buffer.window));
    }
    if (!admitted) {
      if (!worker.waiting) {
        worker.waiting = true;
        worker.since_s = now_;
      }
      buffer.putters.push_back(index);
      return false;
    }
    if (worker.waiting) {
      worker.waiting = false;
      Times(worker, world_.stations[q].parts.size() - 1).out_s += now_ - worker.since_s;
    }
    Settle(q);
    ++buffer.size;
    if (buffer.ordered) buffer.there.emplace(worker.sequence, true);
    ++ledger_.queues[q].puts;
    std::deque<size_t>& hungry = hungry_[consumer_of_[q]];
    // One element is enough for one worker, but where an element may be another's turn, or let more
    // than one out, all of them look.
    const bool one = !buffer.ordered && NumInputs(consumer_of_[q]) == 1;
    while (!hungry.empty()) {
      Wake(hungry.front());
      hungry.pop_front();
      if (one) break;
    }
    return true;
  }

  bool Ask(size_t index) {
    Worker& worker = workers_[index];
    const int number = Current(worker).shared;
    if (number < 0) {
      worker.doing = Doing::kGiveBack;
      return true;
    }
    Server& server = servers_[static_cast<size_t>(number)];
    if (server.free == 0) {
      worker.since_s = now_;
      server.line.push_back(index);
      return false;
    }
    --server.free;
    ++ledger_.shared[static_cast<size_t>(number)].uses;
    worker.doing = Doing::kHeldCpu;
    return true;
  }

  void GiveBack(const Worker& worker) {
    const int number = Current(worker).shared;
    if (number < 0) return;
    Server& server = servers_[static_cast<size_t>(number)];
    Ledger::SharedTimes& shared = ledger_.shared[static_cast<size_t>(number)];
    ++server.free;
    if (server.line.empty()) return;
    const size_t index = server.line.front();
    server.line.pop_front();
    Worker& next = workers_[index];
    const double waited = now_ - next.since_s;
    Times(next, next.part).lock_wait_s += waited;
    Times(next, next.part).blocked_s += waited;
    shared.wait_s += waited;
    ++shared.uses;
    --server.free;
    next.doing = Doing::kHeldCpu;
    Wake(index);
  }

  const World& world_;
  Dice dice_;
  double now_ = 0, share_ = 0, work_ = 0;
  int64_t mark_ = 0;
  double marked_s_ = -1;
  Agenda timers_, on_cores_;
  std::vector<Worker> workers_;
  std::vector<Buffer> buffers_;
  std::vector<Server> servers_;
  std::vector<size_t> consumer_of_;
  std::vector<std::deque<size_t>> hungry_;  // workers that wait for input, by station
  std::vector<size_t> turn_;                // the input whose element is next, by station
  std::vector<uint64_t> taken_;             // firings begun, by station
  std::deque<size_t> ready_;
  Ledger ledger_;
};

}  // namespace

std::vector<double> Visits(const World& world) {
  const size_t n = world.stations.size();
  std::vector<double> wanted(n, 0), visits(n, 0);  // wanted: elements of its queue per batch
  if (n > 0) wanted[n - 1] = 1;
  for (size_t s = n; s-- > 0;) {
    const Station& station = world.stations[s];
    visits[s] = wanted[s] / station.emit;
    const double each =
        station.zips || station.inputs.empty()
            ? station.take
            : static_cast<double>(station.take) / static_cast<double>(station.inputs.size());
    for (size_t input : station.inputs) wanted[input] += visits[s] * each;
  }
  return visits;
}

double MemoryOf(const World& world) {
  double bytes = world.base_bytes;
  for (const Station& station : world.stations) {
    bytes += station.element_bytes * (std::max(1, station.queue) + std::max(1, station.threads));
  }
  return bytes;
}

Ledger Play(const World& world, int64_t batches, double limit_s, uint64_t seed, double period_s,
            const std::function<void(const Ledger&)>& look) {
  return Stage(world, seed).Play(batches, limit_s, period_s, look);
}

double RateOf(const World& world, int64_t batches, uint64_t seed) {
  const int64_t warm = std::max<int64_t>(50, batches / 10);
  Stage stage(world, seed);
  stage.Mark(warm);
  const Ledger all = stage.Play(warm + batches, 1e9, 0, {});
  if (stage.marked_s() < 0 || all.time_s <= stage.marked_s()) return 0;
  return static_cast<double>(all.steps - warm) / (all.time_s - stage.marked_s());
}

}  // namespace headrace::validation
