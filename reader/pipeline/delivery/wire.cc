#include "reader/pipeline/delivery/wire.h"

#include <utility>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/account/scope.h"

namespace headrace::reader {

Wire::Wire(const Sender* sender, WireOptions options)
    : sender_(sender), options_(std::move(options)) {
  const auto takes = [this](WireCodec codec) { return sender_->Takes(codec); };
  if (options_.setting) {
    if (takes(*options_.setting)) codec_ = *options_.setting;
  } else {
    chooses_ = takes(WireCodec::kLz4) && takes(WireCodec::kZstd) && sender_->network_ns();
  }
}

void Wire::Begin() {
  if (chooses_) begin_ns_ = MonotonicNs();
}

void Wire::Pack(std::vector<Frame>* frames) {
  Frame& batch = frames->back();
  counts_.bytes += batch.bytes();
  if (!packs()) return;
  if (compress_ == UINT32_MAX)
    compress_ = hr_operator("compress", "compress_frame", options_.stage);
  account::OperatorScope scope(compress_);
  const uint64_t plain = batch.bytes();
  batch = packer_.Pack(batch, codec_);
  scope.Done(batch.header.rows, plain, batch.bytes());
}

void Wire::Sent() {
  if (!chooses_) return;
  const int64_t now = MonotonicNs();
  counts_.sending_ns += now - begin_ns_;
  counts_.network_ns = sender_->network_ns().value_or(counts_.network_ns);
  const auto line = choice_.Sent(now, counts_);
  if (std::exchange(codec_, choice_.codec()) != codec_ && !packs()) packer_.Release();
  if (line && options_.note) options_.note(*line);
}

}  // namespace headrace::reader
