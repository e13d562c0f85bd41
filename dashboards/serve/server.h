// Server: HTTP/1.1 on one thread, for a Site. What needs a database is answered on threads of its
// own: two for views, one that makes reports, one for the SQL of people. So neither a long question
// nor a slow reader keeps others waiting; pages and their assets are answered at once.
//
// Limits: 8 KiB of headers, 64 KiB of body, 5 s for a request to arrive, 10 s in which a reader
// takes nothing of an answer, 256 connections (the one idle longest is closed for a new one), 32
// event streams and 4 SQL questions (the next gets 503). A slow reader of a stream is sent fewer
// events, never a backlog.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "dashboards/serve/site.h"

namespace headrace::dashboards {

class Server {
 public:
  // Listens at an address and a port of this machine (0: any free one), and tells the site its
  // port. Throws Error: kUsage for an address that is none, kPrivilege or kFailure where it cannot
  // listen.
  Server(Site& site, const std::string& address, uint16_t port);
  ~Server();

  uint16_t port() const;
  // Answers until Stop is called. Answers that are being made then are not waited for; the
  // destructor waits for them.
  void Run();
  // May be called from any thread and from a signal's handler thread.
  void Stop();

  static constexpr int kMostConnections = 256;
  static constexpr int kMostStreams = 32;
  static constexpr int kMostQuestions = 4;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace headrace::dashboards
