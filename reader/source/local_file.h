// LocalFile: a file of this machine as a Source, through pread, with or without the page cache.
// What other ways of reading a local file start from. Thread-safe.
#pragma once
#include <string>

#include "base/file.h"
#include "reader/source/source.h"

namespace headrace::reader {

class LocalFile : public Source {
 public:
  // Throws Error (base/file.h); kUsage when `direct` and the file system has no O_DIRECT.
  LocalFile(const std::string& path, bool direct);
  ~LocalFile() override;
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;

  const std::string& name() const override { return file_.path(); }
  uint64_t size() const override { return file_.size(); }
  std::string version() const override;
  uint64_t alignment() const override { return direct_ >= 0 ? kBlockBytes : 1; }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override;
  void ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const override;
  void ForgetPages(uint64_t offset, uint64_t length) const override;

  // What O_DIRECT wants of every device in use; no device needs more.
  static constexpr uint64_t kBlockBytes = 4096;

 protected:
  int descriptor() const { return direct_ >= 0 ? direct_ : file_.descriptor(); }

 private:
  // One aligned request (ReadMany) through the O_DIRECT descriptor.
  void ReadBlocks(uint64_t offset, std::span<uint8_t> out) const;

  File file_;
  int direct_ = -1;
};

}  // namespace headrace::reader
