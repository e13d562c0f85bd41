// RowLog: the reference consumer's own record of what it got: a line "EPOCH ROW HASH" for each
// delivered row, with a hash over the row's whole content in 16 hexadecimal digits. For tests that
// check whether each row came exactly once.
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
  // Syncs all lines to the disk and returns the log's length. Throws Error.
  uint64_t Sync();
  // Continues after the first `bytes` of the file and removes the rest. Throws Error kBadData when
  // the file is shorter.
  void Resume(uint64_t bytes);

 private:
  void Write();

  std::string path_, pending_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace headrace::workloads
