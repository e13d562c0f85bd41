// RecordedMark: a shared lock on the file of a process's accounts, which tells others that the
// accounts are being recorded. They check it before they begin a recording (`collect --discover`)
// or remove the file.
#pragma once
#include <string>

namespace headrace::collectors {

class RecordedMark {
 public:
  RecordedMark() = default;
  // Marks the accounts at `path` until destroyed; marks nothing if there is no regular file.
  explicit RecordedMark(const std::string& path);
  RecordedMark(RecordedMark&& other) noexcept;
  RecordedMark& operator=(RecordedMark&& other) noexcept;
  ~RecordedMark();

 private:
  int fd_ = -1;
};

// True while a mark of any process is on the accounts at `path`.
bool IsBeingRecorded(const std::string& path);

}  // namespace headrace::collectors
