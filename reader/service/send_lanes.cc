#include "reader/service/send_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "probes/account/account.h"
#include "probes/account/scope.h"
#include "reader/pipeline/delivery/connect.h"
#include "reader/pipeline/delivery/wire.h"

namespace headrace::reader::service {
namespace {

constexpr auto kConnectAgain = std::chrono::milliseconds(50);  // between tries to connect
constexpr auto kIdle = std::chrono::milliseconds(500);  // before a look at an idle connection
constexpr int kLooks = 4;                               // tenths of a second that it takes
// Sent to a client and not admitted by it, at most: so many bytes or two units, and so many units.
// Small units would else fill the connection's buffers by hundreds, and a worker that drains waits
// until its ranks have taken them all.
constexpr uint64_t kMostOnTheWayBytes = 1 << 20;
constexpr size_t kLeastOnTheWay = 2, kMostOnTheWay = 16;

}  // namespace

SendLanes::~SendLanes() { Stop(); }

void SendLanes::RegisterAccounts(uint32_t from_stage) {
  from_stage_ = from_stage;
  deal_ = hr_operator("deal", "deal", from_stage);
  stage_ = hr_stage("send", 1, 0);
  serialize_ = hr_operator("serialize", "serialize", stage_);
  send_ = hr_operator("send", "send", stage_);
}

void SendLanes::Drop() {
  for (const auto& lane : lanes_)
    if (std::erase_if(lane->units, [&](const Element& unit) {
          return unit.payload.As<TensorBatch>().term != term_;
        }) > 0)
      hr_queue_level(lane->queue, 0);  // all were of one term
}

void SendLanes::SetCredentials(std::shared_ptr<const Credentials> credentials) {
  std::lock_guard lock(mutex_);
  credentials_ = std::move(credentials);
}

void SendLanes::SetWire(WireSetting wire) {
  std::lock_guard lock(mutex_);
  wire_ = wire;
}

void SendLanes::SetTerm(Term term, const std::vector<std::string>& addresses) {
  std::lock_guard lock(mutex_);
  term_ = term;
  Drop();
  for (uint32_t rank = 0; rank < addresses.size(); ++rank) {
    if (rank == lanes_.size()) {
      lanes_.push_back(std::make_unique<Lane>());
      Lane* const lane = lanes_.back().get();
      lane->rank = rank;
      lane->address = addresses[rank];
      lane->queue = hr_queue(fmt::format("rank {}", rank).c_str(), from_stage_, stage_,
                             static_cast<uint32_t>(options_.units));
      lane->thread = std::thread([this, lane] { Work(lane); });
    }
    lanes_[rank]->address = addresses[rank];
  }
  changed_.notify_all();
}

bool SendLanes::Put(uint32_t rank, Element&& unit, const StopSignal* stop) {
  const Term term = unit.payload.As<TensorBatch>().term;
  std::unique_lock lock(mutex_);
  const auto is_over = [&] {
    return is_stopped_ || error_ || stop->stopped() || term != term_ || rank >= lanes_.size();
  };
  const auto ready = [&] { return is_over() || lanes_[rank]->units.size() < options_.units; };
  if (!ready()) {
    account::WaitScope wait(deal_, HR_WAIT_OUT);
    const int64_t begin = waits_since_ns_ = MonotonicNs();
    while (!changed_.wait_for(lock, kConnectAgain, ready)) {  // `stop` wakes nobody here
    }
    waits_since_ns_ = 0;
    no_room_ns_ += static_cast<uint64_t>(MonotonicNs() - begin);
  }
  if (error_) std::rethrow_exception(error_);
  if (is_over()) return false;
  lanes_[rank]->units.push_back(std::move(unit));
  hr_queue_level(lanes_[rank]->queue, static_cast<uint32_t>(lanes_[rank]->units.size()));
  changed_.notify_all();
  return true;
}

void SendLanes::Stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  for (const auto& lane : lanes_)
    if (lane->thread.joinable()) lane->thread.join();
}

void SendLanes::Check() const {
  std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void SendLanes::Fail(bool is_full) {
  std::lock_guard lock(mutex_);
  if (!error_) {
    error_ = std::current_exception();
    is_one_too_many_ = is_full;
  }
  changed_.notify_all();
}

uint64_t SendLanes::sent() const {
  std::lock_guard lock(mutex_);
  return sent_;
}

uint64_t SendLanes::no_room_ns() const {
  std::lock_guard lock(mutex_);
  const int64_t now = waits_since_ns_ == 0 ? 0 : MonotonicNs() - waits_since_ns_;
  return no_room_ns_ + static_cast<uint64_t>(now);
}

// Of a lane to its client, as far as there is one.
struct SendLanes::Connection {
  std::string address;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<FrameEncoder> encoder;
  std::optional<Wire> wire;         // of the sender
  Term term = 0;                    // of the last unit sent
  uint64_t acknowledged = 0;        // units, by the client
  std::deque<uint64_t> on_the_way;  // bytes of those behind them
  uint64_t on_the_way_bytes = 0;
  int64_t unreached_ns = 0;    // since when it cannot be made; 0: it stands, or nobody tried
  int64_t full_ns = 0;         // since when the client has too many workers; 0: it has not
  std::set<std::string> said;  // why it cannot
  bool was_said = false;
};

// Waits until the client has taken enough of what was sent to it.
void SendLanes::AwaitRoom(Connection* connection) {
  const auto take = [connection] {
    for (const uint64_t now = connection->sender->Acknowledged(); connection->acknowledged < now;
         ++connection->acknowledged) {
      if (connection->on_the_way.empty())
        throw Error(ExitCode::kFailure, "acknowledges units that were not sent",
                    connection->address);
      connection->on_the_way_bytes -= connection->on_the_way.front();
      connection->on_the_way.pop_front();
    }
    const size_t units = connection->on_the_way.size();
    return units < kLeastOnTheWay ||
           (units < kMostOnTheWay && connection->on_the_way_bytes < kMostOnTheWayBytes);
  };
  if (take()) return;
  account::WaitScope wait(send_, HR_WAIT_OUT);
  do {
    connection->sender->AwaitAcknowledged(connection->acknowledged + 1);
  } while (!take());
}

void SendLanes::SayUnreached(const Lane& lane, Connection* connection, const Error& error) {
  if (!options_.warn || error.code() == ExitCode::kInterrupted) return;
  const int64_t now = MonotonicNs();
  if (connection->unreached_ns == 0) connection->unreached_ns = now;
  const int64_t passed_ns = now - connection->unreached_ns;
  // Others do not mend by themselves: another token or version, a certificate, an address that is
  // not allowed.
  const bool may_come_back =
      error.code() == ExitCode::kFailure && dynamic_cast<const NotTaken*>(&error) == nullptr;
  if (may_come_back && passed_ns < options_.patience_ns) return;
  if (!connection->said.insert(error.fact()).second) return;
  connection->was_said = true;
  if (!may_come_back)
    return options_.warn(fmt::format("cannot reach rank {}: {}", lane.rank, error.what()));
  const bool is_network = IsNetwork(ParseDeliveryAddress(connection->address, "/").kind);
  options_.warn(
      fmt::format("has not reached rank {} for {} s: {}: {}; its batches wait. If the rank ended, "
                  "start all ranks again, each from its checkpoint{}",
                  lane.rank, passed_ns / 1'000'000'000, connection->address, error.fact(),
                  is_network ? "; if not, let this machine connect to it" : ""));
}

void SendLanes::SayReached(const Lane& lane, Connection* connection) {
  connection->unreached_ns = connection->full_ns = 0;
  connection->said.clear();
  if (std::exchange(connection->was_said, false) && options_.warn)
    options_.warn(fmt::format("reaches rank {} again", lane.rank));
}

// Waits for a unit; looks meanwhile whether the client is still there, for what lies in the
// connection is lost with it. False when stopped.
bool SendLanes::Await(Lane* lane, Connection* connection) {
  std::unique_lock lock(mutex_);
  lane->is_sending = false;
  changed_.notify_all();
  const auto ready = [&] { return is_stopped_ || !lane->units.empty(); };
  while (!changed_.wait_for(lock, kIdle, ready)) {
    if (!connection->sender) continue;
    lock.unlock();
    try {
      connection->sender->AwaitAcknowledged(UINT64_MAX);  // until a unit comes, or for a moment
    } catch (const Error& error) {
      if (error.code() != ExitCode::kInterrupted) {
        connection->sender.reset();
        if (options_.cut) options_.cut(connection->term, lane->rank);
      }
    }
    lock.lock();
  }
  if (lane->address != connection->address) {
    connection->sender.reset();
    connection->address = lane->address;
    connection->unreached_ns = connection->full_ns = 0;
    connection->said.clear();
  }
  return !is_stopped_;
}

// While nobody listens the units wait: the rank comes back, or the term ends.
bool SendLanes::Connect(Lane* lane, Connection* connection) {
  if (connection->sender) return true;
  const auto stopped = [this, lane, idle = 0]() mutable {
    std::lock_guard lock(mutex_);
    if (is_stopped_) return true;
    if (lane->is_sending || !lane->units.empty()) {
      idle = 0;
      return !lane->is_sending;  // a look at an idle connection ends when a unit comes
    }
    return ++idle % kLooks == 0;
  };
  try {
    connection->encoder = std::make_unique<FrameEncoder>();
    connection->acknowledged = connection->on_the_way_bytes = 0;
    connection->on_the_way.clear();
    std::shared_ptr<const Credentials> credentials;
    WireOptions wire;
    wire.stage = stage_;
    {
      std::lock_guard lock(mutex_);
      lane->is_sending = true;
      credentials = credentials_;
      wire.setting = wire_;
    }
    const DeliveryAddress to = ParseDeliveryAddress(connection->address, "/");
    if (options_.check_address) options_.check_address(to);
    connection->sender = ConnectSender(to, {.ring_bytes = options_.ring_bytes,
                                            .stopped = stopped,
                                            .credentials = std::move(credentials)});
    if (options_.note)
      wire.note = [this, lane](const std::string& text) {
        options_.note(fmt::format("rank {}: {}", lane->rank, text));
      };
    connection->wire.emplace(connection->sender.get(), std::move(wire));
    SayReached(*lane, connection);
    return true;
  } catch (const Error& error) {
    const auto* const refusal = dynamic_cast<const NotTaken*>(&error);
    const bool is_full = refusal != nullptr && refusal->is_full();
    if (!is_full) connection->full_ns = 0;
    if (is_full && connection->full_ns == 0) connection->full_ns = MonotonicNs();
    if (!is_full && error.code() != ExitCode::kResources) {
      SayUnreached(*lane, connection, error);
    } else if (!is_full || MonotonicNs() - connection->full_ns >= options_.full_patience_ns) {
      Fail(is_full);
    }
    std::unique_lock lock(mutex_);
    lane->is_sending = false;
    changed_.wait_for(lock, kConnectAgain,
                      [&] { return is_stopped_ || lane->address != connection->address; });
    return false;
  }
}

void SendLanes::Send(Lane* lane, Connection* connection, Element&& unit) {
  const TensorBatch& batch = unit.payload.As<TensorBatch>();
  connection->term = batch.term;
  try {
    connection->wire->Begin();
    std::vector<Frame> frames;
    {
      account::OperatorScope scope(serialize_);
      frames = connection->encoder->Encode(batch);
      scope.Done(batch.rows, unit.bytes, frames.back().bytes());
    }
    account::OperatorScope scope(send_);
    AwaitRoom(connection);
    uint64_t bytes = 0, wire_bytes = 0;
    for (const Frame& frame : frames) {
      wire_bytes += connection->sender->Send(frame, send_);
      bytes += frame.bytes();
    }
    connection->on_the_way.push_back(bytes);
    connection->on_the_way_bytes += bytes;
    scope.Done(batch.rows, bytes, wire_bytes);
    connection->wire->Sent(bytes);
    std::lock_guard lock(mutex_);
    ++sent_;
  } catch (const Error& error) {
    connection->sender.reset();
    if (error.code() == ExitCode::kFailure) {
      if (options_.cut) options_.cut(batch.term, lane->rank);
      return;
    }
    if (error.code() != ExitCode::kInterrupted) Fail();
  }
}

void SendLanes::Work(Lane* lane) {
  account::ThreadScope thread(stage_);
  Connection connection;
  while (Await(lane, &connection)) {
    if (!Connect(lane, &connection)) continue;
    Element unit;
    {
      std::lock_guard lock(mutex_);
      if (lane->units.empty()) continue;  // dropped meanwhile
      unit = std::move(lane->units.front());
      lane->units.pop_front();
      hr_queue_level(lane->queue, static_cast<uint32_t>(lane->units.size()));
      lane->is_sending = true;
    }
    changed_.notify_all();
    Send(lane, &connection, std::move(unit));
  }
}

}  // namespace headrace::reader::service
