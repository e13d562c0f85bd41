#include "analysis/fleet/simulate_fleet.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>

namespace headrace::analysis {
namespace {

constexpr size_t kSlices = 50;
constexpr double kWarmUp = 0.2;
constexpr size_t kMostPending = 4'000'000;  // events that wait at once: 48 bytes each
constexpr size_t kMostSamples = 200'000;    // kept of each distribution

// PCG-XSH-RR (O'Neill 2014), and a normal by the polar method.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 2862933555777941757u + 3037000493u) { Draw(); }

  double Uniform() { return (static_cast<double>(Draw()) + 0.5) / 4294967296.0; }
  // Lognormal with mean 1 and that deviation.
  double Around(double cv) {
    if (cv <= 0) return 1;
    const double variance = std::log1p(cv * cv);
    return std::exp(std::sqrt(variance) * Normal() - variance / 2);
  }

 private:
  uint32_t Draw() {
    const uint64_t old = state_;
    state_ = old * 6364136223846793005u + 1442695040888963407u;
    const auto shifted = static_cast<uint32_t>(((old >> 18u) ^ old) >> 27u);
    const auto turn = static_cast<uint32_t>(old >> 59u);
    return (shifted >> turn) | (shifted << ((32 - turn) & 31u));
  }
  double Normal() {
    if (spare_valid_) {
      spare_valid_ = false;
      return spare_;
    }
    double u, v, s;
    do {
      u = 2 * Uniform() - 1;
      v = 2 * Uniform() - 1;
      s = u * u + v * v;
    } while (s >= 1 || s == 0);
    const double scale = std::sqrt(-2 * std::log(s) / s);
    spare_ = v * scale;
    spare_valid_ = true;
    return u * scale;
  }

  uint64_t state_;
  double spare_ = 0;
  bool spare_valid_ = false;
};

// One that does one thing after the other.
struct Server {
  double free_at = 0, busy_s = 0;
  // When what comes at `now` and takes `seconds` is done.
  double Serve(double now, double seconds) {
    free_at = std::max(free_at, now) + seconds;
    busy_s += seconds;
    return free_at;
  }
};

// Every so many of a stream, so that any length fits.
class Samples {
 public:
  void Add(double value) {
    if (++seen_ % stride_ != 0) return;
    values_.push_back(value);
    if (values_.size() < kMostSamples) return;
    for (size_t i = 0; 2 * i < values_.size(); ++i) values_[i] = values_[2 * i];
    values_.resize(values_.size() / 2);
    stride_ *= 2;
  }
  double At(double q) {
    if (values_.empty()) return 0;
    const auto at = static_cast<size_t>(q * static_cast<double>(values_.size() - 1));
    std::nth_element(values_.begin(), values_.begin() + static_cast<long>(at), values_.end());
    return values_[at];
  }

 private:
  std::vector<double> values_;
  int64_t seen_ = 0, stride_ = 1;
};

enum class What : uint8_t {
  kAsk,        // a worker: begins to ask
  kStored,     // a unit has left the storage
  kReady,      // and is in the worker
  kUnblocked,  // a batch wants a core
  kComputed,
  kSent,       // a batch has left the worker
  kDelivered,  // and is at the client
  kStepped,    // the client has finished a step
  kRoom,       // the workers know that a client has room
  kDisturbance
};

struct Event {
  double time = 0;
  uint64_t order = 0;  // of equal times, the first made comes first
  What what = What::kAsk;
  uint32_t who = 0, client = 0;
  double asked = 0, begun = 0;  // of its unit, its batch
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : order > other.order;
  }
};

struct Unit {
  int batches = 0;
  double asked = 0;
};

struct Batch {
  double asked = 0, begun = 0;
};

struct Worker {
  size_t type = 0;
  bool alive = true;
  double slowness = 1;
  int idle_cores = 1, idle_threads = 1, outstanding = 0;
  std::deque<Unit> ready;
  std::deque<Batch> want_core;
  std::deque<Batch> done;  // finished, each still holding its thread
  bool in_line = false;    // of those with something for a client
  Server nic_in, nic_out, disk;
  std::vector<std::pair<uint32_t, uint64_t>> sending;  // client, order of its event
};

struct Client {
  int buffered = 0;
  bool stepping = false;
  double idle_since = 0, waited = 0, computed = 0;
  Server nic;
};

class Run {
 public:
  Run(const SimulatedFleet& fleet, double duration_s, uint64_t seed,
      const std::vector<Disturbance>& disturbances)
      : fleet_(fleet), duration_(duration_s), dice_(seed), disturbances_(disturbances) {
    for (size_t t = 0; t < fleet.nodes.size(); ++t) {
      const SimulatedNodes& nodes = fleet.nodes[t];
      for (int n = 0; n < nodes.count; ++n) {
        Worker worker;
        worker.type = t;
        worker.slowness = dice_.Around(nodes.spread);
        worker.idle_cores = std::max(1, nodes.cores);
        worker.idle_threads = std::max(1, nodes.threads);
        cores_ += worker.idle_cores;
        workers_.push_back(std::move(worker));
      }
    }
    clients_.resize(static_cast<size_t>(std::max(1, fleet.clients)));
    slices_.resize(kSlices);
    warm_ = kWarmUp * duration_;
  }

  FleetOutcome Go(int64_t max_events) {
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      // Not all in the same instant: a fleet that starts in step stays in step for a while.
      Push({dice_.Uniform() * StartSpan(workers_[w]), 0, What::kAsk, w, 0, 0, 0});
    }
    first_rooms_ = static_cast<int64_t>(clients_.size()) * std::max(0, fleet_.client_buffer);
    for (uint32_t d = 0; d < disturbances_.size(); ++d) {
      Push({disturbances_[d].at_s, 0, What::kDisturbance, d, 0, 0, 0});
    }
    while (!events_.empty() && events_.top().time <= duration_) {
      if (outcome_.events >= max_events || events_.size() > kMostPending) {
        outcome_.cut_short = true;
        break;
      }
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      ++outcome_.events;
      Handle(event);
    }
    if (!outcome_.cut_short) now_ = duration_;
    return Finish();
  }

 private:
  void Push(Event event) {
    event.order = next_order_++;
    events_.push(event);
  }

  double StartSpan(const Worker& worker) const {
    const SimulatedNodes& nodes = fleet_.nodes[worker.type];
    return nodes.batch_cpu_s + nodes.batch_blocked_s;
  }

  void Handle(const Event& event) {
    switch (event.what) {
      case What::kAsk:
        Ask(event.who);
        break;
      case What::kStored:
        Receive(event);
        break;
      case What::kReady:
        Arrive(event);
        break;
      case What::kUnblocked:
        Compute(event.who, {event.asked, event.begun});
        break;
      case What::kComputed:
        Computed(event);
        break;
      case What::kSent:
        Sent(event);
        break;
      case What::kDelivered:
        Delivered(event);
        break;
      case What::kStepped:
        Stepped(event);
        break;
      case What::kRoom:
        rooms_.push_back(event.client);
        Match();
        break;
      case What::kDisturbance:
        Disturb(disturbances_[event.who]);
        break;
    }
  }

  // Asks for units while fewer than it may are on their way or not begun; a run that is about to be
  // cut short for what is on its way asks for no more.
  void Ask(uint32_t w) {
    Worker& worker = workers_[w];
    while (worker.alive && events_.size() <= kMostPending &&
           worker.outstanding + static_cast<int>(worker.ready.size()) < fleet_.in_flight) {
      ++worker.outstanding;
      const double half = fleet_.dispatcher_latency_s / 2;
      const double work = fleet_.dispatcher_requests_per_s > 0
                              ? fleet_.unit_requests / fleet_.dispatcher_requests_per_s
                              : 0;
      const double told = dispatcher_.Serve(now_ + half, work) + half;
      double stored = told;
      const double bytes = fleet_.stored_bytes * fleet_.unit_batches;
      if (!fleet_.local_storage) {
        double seconds = 0;
        if (fleet_.storage_bytes_per_s > 0)
          seconds = bytes / (fleet_.storage_bytes_per_s * storage_factor_);
        if (fleet_.storage_requests_per_s > 0) {
          seconds = std::max(seconds, fleet_.stored_requests * fleet_.unit_batches /
                                          (fleet_.storage_requests_per_s * storage_factor_));
        }
        stored = storage_.Serve(told, seconds);
      }
      if (fleet_.storage_latency_s > 0)
        stored += fleet_.storage_latency_s * dice_.Around(fleet_.storage_latency_cv);
      Push({stored, 0, What::kStored, w, 0, now_, 0});
    }
  }

  void Receive(const Event& event) {
    Worker& worker = workers_[event.who];
    if (!worker.alive) return;
    const SimulatedNodes& nodes = fleet_.nodes[worker.type];
    const double bytes = fleet_.stored_bytes * fleet_.unit_batches;
    const double rate = fleet_.local_storage ? nodes.disk_bytes_per_s : nodes.nic_bytes_per_s;
    Server& way = fleet_.local_storage ? worker.disk : worker.nic_in;
    Event ready = event;
    ready.what = What::kReady;
    ready.time = rate > 0 ? way.Serve(now_, bytes / rate) : now_;
    Push(ready);
  }

  void Arrive(const Event& event) {
    Worker& worker = workers_[event.who];
    if (!worker.alive) return;
    --worker.outstanding;
    worker.ready.push_back({fleet_.unit_batches, event.asked});
    Work(event.who);
  }

  // Threads begin what is there.
  void Work(uint32_t w) {
    Worker& worker = workers_[w];
    const SimulatedNodes& nodes = fleet_.nodes[worker.type];
    while (worker.idle_threads > 0 && !worker.ready.empty()) {
      --worker.idle_threads;
      Unit& unit = worker.ready.front();
      const Batch batch{unit.asked, now_};
      if (--unit.batches == 0) worker.ready.pop_front();
      if (nodes.batch_blocked_s > 0) {
        const double blocked = nodes.batch_blocked_s * dice_.Around(nodes.batch_cv);
        Push({now_ + blocked, 0, What::kUnblocked, w, 0, batch.asked, batch.begun});
      } else {
        Compute(w, batch);
      }
    }
    Ask(w);
  }

  void Compute(uint32_t w, const Batch& batch) {
    Worker& worker = workers_[w];
    if (!worker.alive) return;
    if (worker.idle_cores == 0) {
      worker.want_core.push_back(batch);
      return;
    }
    --worker.idle_cores;
    const SimulatedNodes& nodes = fleet_.nodes[worker.type];
    const double seconds = nodes.batch_cpu_s * worker.slowness * dice_.Around(nodes.batch_cv);
    if (now_ >= warm_) core_busy_ += std::min(seconds, duration_ - now_);
    Push({now_ + seconds, 0, What::kComputed, w, 0, batch.asked, batch.begun});
  }

  void Computed(const Event& event) {
    Worker& worker = workers_[event.who];
    if (!worker.alive) return;
    ++worker.idle_cores;
    if (!worker.want_core.empty()) {
      const Batch next = worker.want_core.front();
      worker.want_core.pop_front();
      Compute(event.who, next);
    }
    if (now_ >= warm_) work_.Add(now_ - event.begun);
    worker.done.push_back({event.asked, event.begun});
    if (!worker.in_line) {
      worker.in_line = true;
      offers_.push_back(event.who);
    }
    Match();
  }

  // Whoever has had room longest. At the start all rooms of all clients, in turn, are counted and
  // not kept: there may be 1e9 of them.
  bool HasRoom() const { return first_taken_ < first_rooms_ || !rooms_.empty(); }
  uint32_t TakeRoom() {
    if (first_taken_ < first_rooms_)
      return static_cast<uint32_t>(first_taken_++ % static_cast<int64_t>(clients_.size()));
    const uint32_t client = rooms_.front();
    rooms_.pop_front();
    return client;
  }

  // Whoever has had a batch longest, to whoever has had room longest.
  void Match() {
    while (!offers_.empty() && HasRoom()) {
      const uint32_t w = offers_.front();
      Worker& worker = workers_[w];
      offers_.pop_front();
      worker.in_line = false;
      if (!worker.alive || worker.done.empty()) continue;
      const uint32_t client = TakeRoom();
      const Batch batch = worker.done.front();
      worker.done.pop_front();
      const SimulatedNodes& nodes = fleet_.nodes[worker.type];
      const double gone =
          nodes.nic_bytes_per_s > 0
              ? worker.nic_out.Serve(now_, fleet_.sent_bytes / nodes.nic_bytes_per_s)
              : now_;
      worker.sending.push_back({client, next_order_});
      Push({gone, 0, What::kSent, w, client, batch.asked, batch.begun});
      if (!worker.done.empty()) {
        worker.in_line = true;
        offers_.push_back(w);
      }
    }
  }

  void Sent(const Event& event) {
    Worker& worker = workers_[event.who];
    if (!worker.alive) return;  // the client learns of it later
    std::erase_if(worker.sending, [&](const auto& s) { return s.second == event.order; });
    ++worker.idle_threads;
    Client& client = clients_[event.client];
    Event there = event;
    there.what = What::kDelivered;
    there.time = fleet_.client_nic_bytes_per_s > 0
                     ? client.nic.Serve(now_, fleet_.sent_bytes / fleet_.client_nic_bytes_per_s)
                     : now_;
    Push(there);
    Work(event.who);
  }

  void Delivered(const Event& event) {
    Client& client = clients_[event.client];
    ++client.buffered;
    if (now_ >= warm_) latency_.Add(now_ - event.asked);
    if (!client.stepping) Take(event.client);
  }

  void Take(uint32_t c) {
    Client& client = clients_[c];
    while (client.buffered > 0 && !client.stepping) {
      --client.buffered;
      const double waited = now_ - client.idle_since;
      Waited(&client, client.idle_since, now_);
      if (now_ >= warm_) {
        wait_.Add(waited);
        ++outcome_.batches;
      }
      FleetSlice& slice = slices_[SliceOf(now_)];
      slice.batches_per_s += 1;
      Push({now_ + fleet_.dispatcher_latency_s / 2, 0, What::kRoom, 0, c, 0, 0});
      if (fleet_.client_step_s > 0) {
        client.stepping = true;
        Push({now_ + fleet_.client_step_s, 0, What::kStepped, 0, c, now_, 0});
      } else {
        client.idle_since = now_;
      }
    }
  }

  void Stepped(const Event& event) {
    Client& client = clients_[event.client];
    client.stepping = false;
    client.idle_since = now_;
    client.computed += std::max(0.0, now_ - std::max(event.asked, warm_));
    Take(event.client);
  }

  // Wait of a client, in the slices it falls into and after the warm-up.
  void Waited(Client* client, double from, double to) {
    client->waited += std::max(0.0, to - std::max(from, warm_));
    const double width = duration_ / static_cast<double>(kSlices);
    for (size_t s = SliceOf(from); s <= SliceOf(to); ++s) {
      const double low = std::max(from, static_cast<double>(s) * width);
      const double high = std::min(to, static_cast<double>(s + 1) * width);
      slices_[s].stall_ratio += std::max(0.0, high - low);
    }
  }

  size_t SliceOf(double time) const {
    const auto s = static_cast<size_t>(time / duration_ * static_cast<double>(kSlices));
    return std::min(s, kSlices - 1);
  }

  void Disturb(const Disturbance& disturbance) {
    if (disturbance.dispatcher_pause_s > 0) {
      dispatcher_.free_at = std::max(dispatcher_.free_at, now_ + disturbance.dispatcher_pause_s);
    }
    storage_factor_ = std::max(1e-9, disturbance.storage_factor);
    std::vector<int> left = disturbance.lost;
    left.resize(fleet_.nodes.size(), 0);
    for (Worker& worker : workers_) {
      if (!worker.alive || left[worker.type] <= 0) continue;
      --left[worker.type];
      worker.alive = false;
      const SimulatedNodes& nodes = fleet_.nodes[worker.type];
      // All its threads held a batch, done or not, and so did what it was sending.
      outcome_.lost_batches += std::max(1, nodes.threads) - worker.idle_threads;
      for (const Unit& unit : worker.ready) outcome_.lost_batches += unit.batches;
      for (const auto& [client, order] : worker.sending)
        Push({now_ + fleet_.detect_s, 0, What::kRoom, 0, client, 0, 0});
    }
  }

  FleetOutcome Finish() {
    outcome_.pushed_events = static_cast<int64_t>(next_order_);
    const double measured = now_ - warm_;
    outcome_.measured_s = std::max(0.0, measured);
    double waited = 0, computed = 0;
    for (Client& client : clients_) {
      if (!client.stepping) Waited(&client, client.idle_since, now_);
      waited += client.waited;
      computed += client.computed;
      const double all = client.waited + client.computed;
      if (fleet_.client_step_s > 0 && all > 0)
        outcome_.worst_stall_ratio = std::max(outcome_.worst_stall_ratio, client.waited / all);
      if (now_ > 0)
        outcome_.client_nic_ratio = std::max(outcome_.client_nic_ratio, client.nic.busy_s / now_);
    }
    if (fleet_.client_step_s > 0 && waited + computed > 0)
      outcome_.stall_ratio = waited / (waited + computed);
    if (measured > 0) {
      outcome_.batches_per_s = static_cast<double>(outcome_.batches) / measured;
      outcome_.cores_ratio = cores_ > 0 ? core_busy_ / (measured * cores_) : 0;
    }
    if (now_ > 0) {
      outcome_.storage_ratio = std::min(1.0, storage_.busy_s / now_);
      outcome_.dispatcher_ratio = std::min(1.0, dispatcher_.busy_s / now_);
      outcome_.client_nic_ratio = std::min(1.0, outcome_.client_nic_ratio);
    }
    outcome_.latency_p50_s = latency_.At(0.5);
    outcome_.latency_p99_s = latency_.At(0.99);
    outcome_.work_p50_s = work_.At(0.5);
    outcome_.work_p99_s = work_.At(0.99);
    outcome_.wait_p99_s = wait_.At(0.99);
    const double width = duration_ / static_cast<double>(kSlices);
    for (size_t s = 0; s < kSlices; ++s) {
      slices_[s].start_s = static_cast<double>(s) * width;
      slices_[s].batches_per_s /= width;
      slices_[s].stall_ratio =
          fleet_.client_step_s > 0
              ? std::min(1.0,
                         slices_[s].stall_ratio / (width * static_cast<double>(clients_.size())))
              : 0;
    }
    outcome_.slices = std::move(slices_);
    return std::move(outcome_);
  }

  const SimulatedFleet& fleet_;
  double duration_, warm_ = 0, now_ = 0, core_busy_ = 0, cores_ = 0, storage_factor_ = 1;
  Dice dice_;
  const std::vector<Disturbance>& disturbances_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t next_order_ = 0;
  std::vector<Worker> workers_;
  std::vector<Client> clients_;
  std::deque<uint32_t> offers_, rooms_;
  int64_t first_rooms_ = 0, first_taken_ = 0;
  Server dispatcher_, storage_;
  Samples latency_, work_, wait_;
  std::vector<FleetSlice> slices_;
  FleetOutcome outcome_;
};

}  // namespace

FleetOutcome SimulateFleet(const SimulatedFleet& fleet, double duration_s, uint64_t seed,
                           const std::vector<Disturbance>& disturbances, int64_t max_events) {
  if (!(duration_s > 0)) return {};
  return Run(fleet, duration_s, seed, disturbances).Go(max_events);
}

}  // namespace headrace::analysis
