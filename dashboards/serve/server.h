// Server: HTTP/1.1 on one thread, for a Site. Questions are answered on two threads of their own,
// so that neither a slow query nor a slow reader keeps others waiting; pages and their assets,
// which need no database, are answered at once.
//
// Limits: 8 KiB of headers, 64 KiB of body, 5 s for a request to arrive, 10 s for a write to be
// taken, 256 connections (the one idle longest is closed for a new one), 32 event streams (the next
// gets 503). A slow reader of a stream is sent fewer events, never a backlog.
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
  // Answers until Stop is called.
  void Run();
  // May be called from any thread and from a signal's handler thread.
  void Stop();

  static constexpr int kMostConnections = 256;
  static constexpr int kMostStreams = 32;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace headrace::dashboards
