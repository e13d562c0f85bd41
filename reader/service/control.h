// Control connections: messages of the service (message.h), without waiting longer than asked for.
// A ControlConnection is one end; a ControlServer listens for many, at a Unix socket of mode 0600,
// so that whoever may connect is the same user, and, where it is told to, at a network address for
// those that have the job's token.
//
// What a turn reads of one connection is bounded, in bytes and in messages, and so is what is kept
// for it: whoever says more than others, or asks and does not read, holds nobody up. So are the
// connections, what all of them have begun to say and not ended, and what waits for all of them.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reader/pipeline/delivery/guarded_listener.h"
#include "reader/pipeline/delivery/unix_socket.h"
#include "reader/service/message.h"

namespace headrace::reader::service {

// One thread.
class ControlConnection {
 public:
  explicit ControlConnection(Channel channel) : channel_(std::move(channel)) {}
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;

  // Null when nobody listens there. Throws Error kUsage when the path is too long, another when the
  // system refuses.
  static std::unique_ptr<ControlConnection> Connect(const std::string& path);

  // What cannot go at once is kept and goes with the next calls. It is no error when the other side
  // is gone. Throws as Serialize.
  void Send(const Message& message);
  // Messages that are whole, 16 at most; waits up to `timeout_ms` for the first, or until `wake_fd`
  // (-1: none) can be read. Throws Error kBadData for bytes that are none.
  std::vector<Message> Receive(int timeout_ms, int wake_fd = -1);
  // The next Receive may have messages that no poll shows.
  bool has_more() const { return has_unread_ || has_unparsed_; }
  // Sends what there was no room for.
  void Flush();
  // The other side is gone, and all that it sent was received.
  bool is_closed() const { return is_at_end_ && !has_unparsed_; }
  bool has_spoken() const { return has_spoken_; }  // a message came
  // Memory of what came of messages that are not whole.
  uint64_t unread_bytes() const { return in_.empty() ? 0 : in_.capacity(); }
  // Memory of what waits for the other side, which takes no more now; 0: nothing waits.
  uint64_t unsent_bytes() const { return unsent_bytes_; }
  // When it last took something of what waits; or, later, when that began to wait.
  int64_t taken_ns() const { return taken_ns_; }
  int fd() const { return channel_.fd(); }

 private:
  void Fill();
  std::vector<Message> Parse();

  Channel channel_;
  bool is_at_end_ = false, has_spoken_ = false;
  bool has_unread_ = false, has_unparsed_ = false;  // perhaps: in channel_, in in_
  std::vector<uint8_t> in_;
  // Messages, short ones together; of the first `sent_` bytes are sent. Each goes as it is sent, so
  // that memory is never more than what waits and one of them.
  std::deque<std::string> out_;
  size_t sent_ = 0;
  uint64_t unsent_bytes_ = 0;
  int64_t taken_ns_ = 0;
};

// The line of a worker or rank whose dispatcher went.
std::string TextOfLost(const ControlConnection& dispatcher);

// Why a peer is disconnected that took nothing for so long while so many bytes wait for it, and for
// all together more than may.
std::string TextOfUnread(int64_t idle_ns, uint64_t bytes, uint64_t bytes_of_all);

// Connections of a dispatcher, if it may have as many descriptors (connection_room.h).
constexpr size_t kMostControlConnections = 100'000;

struct ControlLimits {
  size_t peers = kMostControlConnections;
  // Of messages that have not come whole, of all peers together: four of the longest.
  uint64_t unread_bytes = 4 * kMaxMessageBytes;
  // Of what waits for all peers together. From half of it on those who do not read are heard less.
  uint64_t unsent_bytes = 4 * kMaxMessageBytes;
};

// One thread.
class ControlServer {
 public:
  // Throws Error kUsage, which says `in_use` and `fix`, when another one listens there; otherwise
  // as BoundSocket. A peer too many is told so and disconnected.
  explicit ControlServer(const std::string& path, ControlLimits most = {},
                         const std::string& in_use = "another dispatcher has this job",
                         const std::string& fix = "end it, or give another --job");
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  // Also takes callers from there.
  void Guard(std::unique_ptr<GuardedListener> listener) { guarded_ = std::move(listener); }
  // Null without one.
  const GuardedListener* guarded() const { return guarded_.get(); }

  struct Event {
    uint64_t peer = 0;  // never used again
    // Of what it said the next, in order. A peer whose bytes are no messages is told so and
    // disconnected, like one too many.
    std::vector<Message> messages;
    std::string why = {};  // what is wrong with its bytes or its connection, if that is the reason
    bool is_gone = false;  // after these
  };
  // While there are no descriptors left nobody new is let in, for a moment each time. A peer that
  // does not read what it is sent is not heard until it does. Where there is no memory for what
  // waits, somebody is disconnected, and may come again: of those for whom at least as much waits
  // as for one on average, the one that has taken nothing for longest. Where long messages are
  // begun that there is no memory for, the last that came of those who say one is disconnected: it
  // comes again. So the first is always heard to its end, and who says little is no part of it.
  std::vector<Event> Wait(int timeout_ms);
  // Nothing when it is gone. What all are sent between two Waits is bounded as well: the next Wait
  // tells who was disconnected. Throws as Serialize.
  void Send(uint64_t peer, const Message& message);
  // Memory of what waits for all peers.
  uint64_t unsent_bytes() const { return unsent_bytes_; }

 private:
  struct Peer {
    std::unique_ptr<ControlConnection> connection;
    uint32_t polled = 0;   // for what, by polled_
    std::string why = {};  // it cannot be polled
  };
  void Accept(std::vector<Event>* events);
  void HearGuests(std::vector<Event>* events);
  // Nothing when there are too many: then an event says so.
  std::optional<uint64_t> Add(Channel channel, std::vector<Event>* events);
  Event Hear(uint64_t id, bool has_hung_up);
  void Listen(Peer* peer, Event* event);
  void Shed();
  void ShedUnsent();
  void ShedUnread();
  void Disconnect(std::map<uint64_t, Peer>::iterator peer, std::string why);
  bool IsHeard(const ControlConnection& connection) const;
  void Poll(uint64_t id, Peer* peer);

  BoundSocket socket_;
  const ControlLimits most_;
  uint64_t unread_bytes_ = 0, unsent_bytes_ = 0;  // of all peers
  int polled_ = -1;                               // the peers' connections, by epoll
  std::unique_ptr<GuardedListener> guarded_;
  std::map<uint64_t, Peer> peers_;
  std::vector<Event> shed_;        // to be told by Wait
  std::vector<uint64_t> unheard_;  // peers that have said more than a turn hears; some twice
  uint64_t last_peer_ = 0;
  int64_t accept_ns_ = 0;  // not before
};

}  // namespace headrace::reader::service
