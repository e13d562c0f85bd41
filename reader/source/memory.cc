#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "reader/source/source.h"

namespace headrace::reader {
namespace {

class BytesSource final : public Source {
 public:
  BytesSource(std::string name, std::string bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      throw Error(ExitCode::kBadData,
                  fmt::format("ends at byte {}, {} bytes were wanted at byte {}", bytes_.size(),
                              out.size(), offset),
                  name_);
    }
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::string name_, bytes_;
};

}  // namespace

std::shared_ptr<const Source> MemorySource(std::string name, std::string bytes) {
  return std::make_shared<BytesSource>(std::move(name), std::move(bytes));
}

}  // namespace headrace::reader
