#include "base/file.h"
#include "reader/source/source.h"

namespace headrace::reader {
namespace {

class FileSource final : public Source {
 public:
  explicit FileSource(const std::string& path) : file_(path) {}
  const std::string& name() const override { return file_.path(); }
  uint64_t size() const override { return file_.size(); }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override { file_.ReadAt(offset, out); }

 private:
  File file_;
};

}  // namespace

std::shared_ptr<const Source> OpenFileSource(const std::string& path) {
  return std::make_shared<FileSource>(path);
}

}  // namespace headrace::reader
