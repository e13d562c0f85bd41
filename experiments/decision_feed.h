// Decision feed: publishes a tuner's decisions as they are made and judged, one JSON object a line
// (schema headrace.decision/1), on standard output or on a Unix socket with any number of readers.
//
// A line is written again, with the same "decision", when the decision has been applied and judged.
// Readers never delay the tuner: lines that a reader has not taken wait in memory, at most 256 KiB
// for each reader; a reader with more waiting is dropped. A new reader first gets the last line.
#pragma once
#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "analysis/tuning/tuned_target.h"

namespace headrace::experiments {

class DecisionFeed : public analysis::DecisionSink {
 public:
  static constexpr size_t kMostWaiting = 256 << 10;  // bytes for one reader

  // `where`: "-" is standard output. "unix:PATH" is a socket that is created there for this user
  // alone, and removed at the end; a socket that nobody serves any more is replaced. Throws Error
  // kUsage for other words and for a path that is in use, kFailure or kPrivilege where the socket
  // cannot be created.
  explicit DecisionFeed(const std::string& where);
  // Gives readers up to a second to take their waiting lines.
  ~DecisionFeed() override;
  DecisionFeed(const DecisionFeed&) = delete;

  void Take(const analysis::Decision& decision) override;

  bool on_stdout() const { return path_.empty(); }
  uint64_t dropped_readers() const;
  // Lines that could not be written to standard output.
  uint64_t lost_lines() const;

 private:
  struct Reader {
    int fd = -1;
    std::string waiting;
    bool silent = false;  // has closed its side for writing
  };

  void Listen();
  void Send(const std::string& line);
  void Serve();
  void Write();
  bool WriteLine(const std::string& line);
  // Accepts waiting connections; false: there is no file descriptor left for one.
  bool Accept();
  // Sends what the reader takes and reads what it sends; false: it is gone.
  static bool Drain(Reader* reader);
  void Wake();

  std::string path_;  // of the socket
  int listen_ = -1, wake_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::string> lines_;  // not yet handed on
  std::string last_;
  uint64_t dropped_ = 0, lost_ = 0;
  bool stopping_ = false, closed_ = false;
  std::list<Reader> readers_;  // used by the thread alone
  std::thread thread_;
};

}  // namespace headrace::experiments
