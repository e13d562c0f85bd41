// ForwardingSource: another source as it is. What changes some of what a source does starts from it
// and overrides that.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "reader/source/source.h"

namespace headrace::reader {

class ForwardingSource : public Source {
 public:
  explicit ForwardingSource(std::shared_ptr<const Source> inner) : inner_(std::move(inner)) {}

  const std::string& name() const override { return inner_->name(); }
  uint64_t size() const override { return inner_->size(); }
  std::string version() const override { return inner_->version(); }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    inner_->ReadAt(offset, out);
  }
  void ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const override {
    inner_->ReadMany(requests, figures);
  }
  uint64_t alignment() const override { return inner_->alignment(); }
  uint32_t depth() const override { return inner_->depth(); }
  BufferPool* buffers() const override { return inner_->buffers(); }
  void ForgetPages(uint64_t offset, uint64_t length) const override {
    inner_->ForgetPages(offset, length);
  }
  std::string note() const override { return inner_->note(); }

 protected:
  const Source& inner() const { return *inner_; }

 private:
  std::shared_ptr<const Source> inner_;
};

}  // namespace headrace::reader
