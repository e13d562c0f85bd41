// RowLog: the reference consumer's own record of what it got: a line "EPOCH ROW HASH" for each row
// delivered, the hash in 16 hexadecimal digits over everything the row holds. For tests that ask
// whether each row came exactly once.
#pragma once
#include <cstdint>
#include <string>

namespace headrace::workloads {

class RowLog {
 public:
  // Creates `path`, or empties it at the first line; Resume keeps what is there. Throws Error.
  explicit RowLog(std::string path);
  ~RowLog();
  RowLog(const RowLog&) = delete;
  RowLog& operator=(const RowLog&) = delete;

  void Add(uint64_t epoch, uint64_t row, uint64_t hash);
  // Puts all lines on the disk and returns the log's length. Throws Error.
  uint64_t Sync();
  // Goes on behind the first `bytes` of what is there; the rest goes. Throws Error kBadData when
  // there is less.
  void Resume(uint64_t bytes);

 private:
  void Write();

  std::string path_, pending_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace headrace::workloads
