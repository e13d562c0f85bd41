#include "reader/pipeline/delivery/wire.h"

#include <utility>

#include "base/clock.h"
#include "probes/account/account.h"

namespace headrace::reader {

Wire::Wire(Sender* sender, WireOptions options) : sender_(sender), options_(std::move(options)) {
  const WireCodec first = options_.setting.value_or(choice_.codec());
  if (!sender_->Takes(first)) return;
  Use(first);
  chooses_ = !options_.setting && sender_->Takes(WireCodec::kLz4) &&
             sender_->Takes(WireCodec::kZstd) && sender_->network_ns();
}

void Wire::Use(WireCodec codec) {
  if (codec == WireCodec::kRaw) return;
  sender_->SetCodec(codec, hr_operator("send.compress", "compress_frame", options_.stage));
}

void Wire::Begin() {
  if (chooses_) begin_ns_ = MonotonicNs();
}

void Wire::Sent(uint64_t bytes) {
  if (!chooses_) return;
  const int64_t now = MonotonicNs();
  counts_.bytes += bytes;
  ++counts_.sent;
  counts_.acknowledged = sender_->Acknowledged();
  counts_.sending_ns += now - begin_ns_;
  counts_.network_ns = sender_->network_ns().value_or(counts_.network_ns);
  const WireCodec before = choice_.codec();
  const auto line = choice_.Sent(now, counts_);
  if (choice_.codec() != before) Use(choice_.codec());
  if (line && options_.note) options_.note(*line);
}

}  // namespace headrace::reader
