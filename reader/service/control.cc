#include "reader/service/control.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "reader/service/connection_room.h"

namespace headrace::reader::service {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// Of one connection in a turn: others wait for so long.
constexpr size_t kTurnBytes = 1 << 20;
constexpr size_t kTurnMessages = 16;
constexpr int kTurnPeers = 256;
constexpr size_t kMostKept = 4 << 10;            // bytes of memory for what comes, of one at rest
constexpr uint64_t kLongBytes = 64 << 10;        // of a message that is not whole: it is a long one
constexpr size_t kMostTogether = 16 << 10;       // bytes of short messages that wait as one
constexpr int64_t kAcceptAgainNs = 100'000'000;  // after descriptors ran out
// A peer that does not read so much is not heard: it could ask for ever.
constexpr uint64_t kMostUnheard = 1 << 20, kMostUnheardInNeed = 64 << 10;
// A peer that does not read so much is disconnected: it comes again and is told anew.
constexpr uint64_t kMostUnsent = uint64_t{512} << 20;

}  // namespace

std::unique_ptr<ControlConnection> ControlConnection::Connect(const std::string& path) {
  const sockaddr_un name = SocketName(path);
  auto connection = std::make_unique<ControlConnection>(Channel(NewSocket(path, SOCK_NONBLOCK)));
  if (connect(connection->fd(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0)
    return connection;
  if (errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN) return nullptr;
  throw ErrnoError(errno, "connect to", path);
}

void ControlConnection::Send(const Message& message) {
  std::string bytes = Serialize(message);
  if (out_.empty()) taken_ns_ = MonotonicNs();
  if (!out_.empty() && out_.back().size() + bytes.size() <= kMostTogether) {
    unsent_bytes_ -= out_.back().capacity();
    out_.back() += bytes;
  } else {
    out_.push_back(std::move(bytes));
  }
  unsent_bytes_ += out_.back().capacity();
  Flush();
}

void ControlConnection::Flush() {
  while (!out_.empty()) {
    const std::string& first = out_.front();
    const ptrdiff_t sent = channel_.Write(
        {reinterpret_cast<const uint8_t*>(first.data()) + sent_, first.size() - sent_});
    if (sent <= 0) return;  // no room, or gone: reading tells
    taken_ns_ = MonotonicNs();
    sent_ += static_cast<size_t>(sent);
    if (sent_ < first.size()) continue;
    unsent_bytes_ -= first.capacity();
    out_.pop_front();
    sent_ = 0;
  }
}

// What is there, as far as a turn goes.
void ControlConnection::Fill() {
  std::array<uint8_t, kReadBytes> bytes;  // not filled: most reads are short
  has_unread_ = false;
  for (size_t read = 0; !is_at_end_;) {
    if (read >= kTurnBytes) {
      has_unread_ = true;
      return;
    }
    const ptrdiff_t got = channel_.Read(bytes);
    is_at_end_ = got == 0;
    if (got <= 0) return;
    in_.insert(in_.end(), bytes.begin(), bytes.begin() + got);
    read += static_cast<size_t>(got);
    // What comes now a poll shows, but for the end of TLS.
    if (static_cast<size_t>(got) < bytes.size() && !channel_.is_encrypted()) return;
  }
}

std::vector<Message> ControlConnection::Parse() {
  std::vector<Message> messages;
  size_t at = 0;
  has_unparsed_ = false;
  while (in_.size() - at >= kMessageHeaderBytes) {
    const std::span<const uint8_t> left(in_.data() + at, in_.size() - at);
    const uint64_t bytes = MessageBytes(left);
    if (bytes > left.size()) break;
    if (messages.size() == kTurnMessages) {
      has_unparsed_ = true;
      break;
    }
    messages.push_back(ParseMessage(left.first(bytes)));
    at += bytes;
  }
  in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(at));
  // What one long message took. It grows by doubling: this is seldom.
  if (in_.capacity() > kMostKept && in_.size() < in_.capacity() / 4)
    std::vector<uint8_t>(in_).swap(in_);
  has_spoken_ |= !messages.empty();
  return messages;
}

std::vector<Message> ControlConnection::Receive(int timeout_ms, int wake_fd) {
  Flush();
  std::vector<Message> messages;
  if (has_unparsed_) messages = Parse();  // what is left of the last turn
  if (messages.empty()) {
    Fill();  // also what TLS has read already, which no poll shows
    messages = Parse();
  }
  if (!messages.empty() || is_closed() || has_unread_ || timeout_ms == 0) return messages;
  pollfd both[2] = {{fd(), static_cast<short>(POLLIN | (unsent_bytes() > 0 ? POLLOUT : 0)), 0},
                    {wake_fd, POLLIN, 0}};
  if (poll(both, 2, timeout_ms) <= 0 || both[0].revents == 0) return {};
  Flush();
  Fill();
  return Parse();
}

std::string TextOfLost(const ControlConnection& dispatcher) {
  return dispatcher.has_spoken()
             ? "the dispatcher is gone: waits for it, or for another one"
             : "the dispatcher is gone without a word: waits for it, or for another one";
}

std::string TextOfUnread(int64_t idle_ns, uint64_t bytes, uint64_t bytes_of_all) {
  constexpr int64_t kIdleNs = 1'000'000'000;  // one that reads, but slowly, is idle for less
  const std::string how =
      idle_ns < kIdleNs ? "it reads too slowly"
                        : "it has read nothing for " + FormatDuration(static_cast<double>(idle_ns));
  return fmt::format("{}: {} wait for it and {} for all, as much as may be; it may come again", how,
                     FormatBytes(static_cast<double>(bytes)),
                     FormatBytes(static_cast<double>(bytes_of_all)));
}

ControlServer::ControlServer(const std::string& path, ControlLimits most, const std::string& in_use,
                             const std::string& fix)
    : socket_(path, Error(ExitCode::kUsage, in_use, path, fix)),
      most_(most),
      polled_(epoll_create1(EPOLL_CLOEXEC)) {
  if (polled_ < 0) throw ErrnoError(errno, "wait for connections to", path);
}

ControlServer::~ControlServer() { close(polled_); }

void ControlServer::Accept(std::vector<Event>* events) {
  const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) {
    Add(Channel(fd), events);
  } else if (errno != EAGAIN && errno != EINTR) {
    accept_ns_ = MonotonicNs() + kAcceptAgainNs;  // whoever waits there would wake every poll
  }
}

std::optional<uint64_t> ControlServer::Add(Channel channel, std::vector<Event>* events) {
  if (peers_.size() >= most_.peers) {
    const std::string fix = FixForMoreConnections(most_.peers, kMostControlConnections);
    const Refused refused = {
        static_cast<uint32_t>(ExitCode::kResources),
        fmt::format("its dispatcher has {} connections, as many as it takes", most_.peers), fix};
    ControlConnection(std::move(channel)).Send(refused);
    Event& event = events->emplace_back();
    event.peer = ++last_peer_;
    event.why = fmt::format("there are {} connections, as many as may be; {}", most_.peers, fix);
    event.is_gone = true;
    return std::nullopt;
  }
  Peer& peer = peers_[++last_peer_];
  peer.connection = std::make_unique<ControlConnection>(std::move(channel));
  Poll(last_peer_, &peer);
  return last_peer_;
}

bool ControlServer::IsHeard(const ControlConnection& connection) const {
  const bool is_in_need = unsent_bytes_ > most_.unsent_bytes / 2;
  return connection.unsent_bytes() <= (is_in_need ? kMostUnheardInNeed : kMostUnheard);
}

// Its end is always seen.
void ControlServer::Poll(uint64_t id, Peer* peer) {
  epoll_event event = {};
  if (IsHeard(*peer->connection)) event.events |= EPOLLIN;
  if (peer->connection->unsent_bytes() > 0) event.events |= EPOLLOUT;
  event.data.u64 = id;
  if (event.events == peer->polled) return;
  const int how = peer->polled == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (epoll_ctl(polled_, how, peer->connection->fd(), &event) == 0) {
    peer->polled = event.events;
    return;
  }
  // It would never be heard: the next turn ends it, and no other connection.
  peer->why = ErrnoError(errno, "wait for", "a connection of the job").what();
  unheard_.push_back(id);
}

ControlServer::Event ControlServer::Hear(uint64_t id, bool has_hung_up) {
  Peer& peer = peers_.at(id);
  ControlConnection& connection = *peer.connection;
  Event event;
  event.peer = id;
  if (!peer.why.empty()) {
    event.why = peer.why;
    event.is_gone = true;
  } else {
    unsent_bytes_ -= connection.unsent_bytes();
    connection.Flush();
    unsent_bytes_ += connection.unsent_bytes();
    if (IsHeard(connection)) {
      Listen(&peer, &event);
    } else {
      event.is_gone = has_hung_up || connection.unsent_bytes() > kMostUnsent;
    }
  }
  if (event.is_gone) {
    unread_bytes_ -= connection.unread_bytes();
    unsent_bytes_ -= connection.unsent_bytes();
    peers_.erase(id);
    return event;
  }
  if (connection.has_more() && IsHeard(connection)) unheard_.push_back(id);
  Poll(id, &peer);
  return event;
}

void ControlServer::Listen(Peer* peer, Event* event) {
  ControlConnection& connection = *peer->connection;
  unread_bytes_ -= connection.unread_bytes();
  unsent_bytes_ -= connection.unsent_bytes();
  try {
    event->messages = connection.Receive(0);
    event->is_gone = connection.is_closed();
  } catch (const Error& error) {
    event->why = error.what();
    event->is_gone = true;
    // In a message of our version: one that knows another one says both.
    connection.Send(Refused{static_cast<uint32_t>(error.code()), error.fact(), error.fix()});
  }
  unread_bytes_ += connection.unread_bytes();
  unsent_bytes_ += connection.unsent_bytes();
}

// It is not refused: that would end a rank, which may come again.
void ControlServer::Disconnect(std::map<uint64_t, Peer>::iterator peer, std::string why) {
  Event& event = shed_.emplace_back();
  event.peer = peer->first;
  event.why = std::move(why);
  event.is_gone = true;
  unread_bytes_ -= peer->second.connection->unread_bytes();
  unsent_bytes_ -= peer->second.connection->unsent_bytes();
  peers_.erase(peer);
}

// One that reads slowly is not the one that holds the memory for longest; and what frees little
// would end many.
void ControlServer::ShedUnsent() {
  while (unsent_bytes_ > most_.unsent_bytes) {
    uint64_t waiting = 0;
    for (const auto& [id, peer] : peers_) waiting += peer.connection->unsent_bytes() > 0;
    const uint64_t average = unsent_bytes_ / waiting;
    auto chosen = peers_.end();
    for (auto one = peers_.begin(); one != peers_.end(); ++one) {
      const ControlConnection& connection = *one->second.connection;
      if (connection.unsent_bytes() == 0 || connection.unsent_bytes() < average) continue;
      if (chosen == peers_.end() || connection.taken_ns() < chosen->second.connection->taken_ns())
        chosen = one;
    }
    const ControlConnection& connection = *chosen->second.connection;
    Disconnect(chosen, TextOfUnread(MonotonicNs() - connection.taken_ns(),
                                    connection.unsent_bytes(), unsent_bytes_));
  }
}

void ControlServer::ShedUnread() {
  while (unread_bytes_ > most_.unread_bytes) {
    auto chosen = peers_.begin();
    for (auto one = peers_.begin(); one != peers_.end(); ++one) {
      const uint64_t bytes = one->second.connection->unread_bytes();
      if (bytes >= std::min<uint64_t>(kLongBytes, chosen->second.connection->unread_bytes()))
        chosen = one;
    }
    Disconnect(chosen, "too many long messages come at the same time; it may come again");
  }
}

void ControlServer::Shed() {
  ShedUnsent();
  ShedUnread();
}

std::vector<ControlServer::Event> ControlServer::Wait(int timeout_ms) {
  std::vector<pollfd> polled = {{MonotonicNs() < accept_ns_ ? -1 : socket_.fd(), POLLIN, 0},
                                {polled_, POLLIN, 0}};
  if (guarded_) guarded_->AddPolled(&polled);
  std::vector<Event> events = std::exchange(shed_, {});  // for what was sent since the last turn
  const bool waits = unheard_.empty() && events.empty();
  if (poll(polled.data(), polled.size(), waits ? timeout_ms : 0) < 0) return events;
  std::map<uint64_t, bool> due;  // peers; whether they have hung up
  for (const uint64_t id : std::exchange(unheard_, {})) due[id] = false;
  std::array<epoll_event, kTurnPeers> ready;
  const int num_ready = epoll_wait(polled_, ready.data(), kTurnPeers, 0);
  for (int i = 0; i < num_ready; ++i)
    due[ready[static_cast<size_t>(i)].data.u64] |=
        (ready[static_cast<size_t>(i)].events & (EPOLLHUP | EPOLLERR)) != 0;
  for (const auto& [id, has_hung_up] : due) {
    if (!peers_.contains(id)) continue;
    events.push_back(Hear(id, has_hung_up));
    Shed();
  }
  if (polled[0].revents != 0) Accept(&events);
  if (guarded_) HearGuests(&events);
  // Whoever was disconnected may have spoken before in this turn.
  std::move(shed_.begin(), shed_.end(), std::back_inserter(events));
  shed_.clear();
  return events;
}

void ControlServer::HearGuests(std::vector<Event>* events) {
  // A guest may have spoken already: what TLS has read no poll shows.
  for (GuardedListener::Guest& guest : guarded_->Turn())
    if (const auto id = Add(std::move(guest.channel), events)) {
      events->push_back(Hear(*id, false));
      Shed();
    }
}

void ControlServer::Send(uint64_t peer, const Message& message) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  ControlConnection& connection = *found->second.connection;
  unsent_bytes_ -= connection.unsent_bytes();
  connection.Send(message);
  unsent_bytes_ += connection.unsent_bytes();
  // What it had said when it read nothing no poll shows.
  if (connection.has_more() && IsHeard(connection)) unheard_.push_back(peer);
  Poll(peer, &found->second);
  ShedUnsent();
}

}  // namespace headrace::reader::service
