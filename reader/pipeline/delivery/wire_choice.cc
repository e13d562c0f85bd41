#include "reader/pipeline/delivery/wire_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace headrace::reader {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// What is measured at a time: so long, and so many batches. A trial takes longer: its first batches
// are made already, so that it hides what packing costs the pipeline.
constexpr int64_t kWindowNs = kSecond, kTrialNs = 3 * kSecond;
constexpr uint32_t kLeastBatches = 8;
// The network holds batches up from so much of the time, and that matters to a sender that is at it
// for so much. A loopback device that moves 1 GB/s counts as busy for half of it.
constexpr double kHeldUp = 0.75, kBusy = 0.5;
// A codec is kept if it gets so much more through while sending, and what comes through in all is
// not less by chance: it may cost the pipeline its cores.
constexpr double kWorthMore = 1.1, kAsMuch = 0.97;
// The one before is kept if it gets nearly as much through.
constexpr double kWorthLess = 0.97;
// What comes through in all decides where it is that much more.
constexpr double kClearlyMore = 1.05;
// Between trials; twice as long after each in vain, or where what was won was given up soon.
constexpr int64_t kFirstPauseNs = 10 * kSecond, kLastPauseNs = 640 * kSecond;
constexpr int64_t kSoonNs = 300 * kSecond;

WireCodec After(WireCodec codec) { return static_cast<WireCodec>(static_cast<int>(codec) + 1); }
WireCodec Before(WireCodec codec) { return static_cast<WireCodec>(static_cast<int>(codec) - 1); }

// The pause until the next trial, after one in vain.
int64_t Lengthen(int64_t* pause_ns) {
  const int64_t now = std::max(*pause_ns, kFirstPauseNs);
  *pause_ns = std::min(2 * now, kLastPauseNs);
  return now;
}

}  // namespace

void WireChoice::Begin(int64_t now_ns, const WireCounts& counts) {
  begin_ns_ = now_ns;
  begin_ = counts;
  batches_ = 0;
}

void WireChoice::Use(WireCodec codec, const WireCounts& counts) {
  codec_ = codec;
  is_settling_ = true;
  earlier_ = counts.sent;
}

std::optional<std::string> WireChoice::Sent(int64_t now_ns, const WireCounts& counts) {
  if (is_settling_) {
    is_settling_ = counts.acknowledged < earlier_;
    Begin(now_ns, counts);
    return std::nullopt;
  }
  ++batches_;
  const int64_t passed_ns = now_ns - begin_ns_;
  const int64_t sending_ns = counts.sending_ns - begin_.sending_ns;
  if (passed_ns < (kept_ ? kTrialNs : kWindowNs) || batches_ < kLeastBatches || sending_ns <= 0)
    return std::nullopt;
  const auto bytes = static_cast<double>(counts.bytes - begin_.bytes);
  const auto passed = static_cast<double>(passed_ns), sending = static_cast<double>(sending_ns);
  const Rates rates = {bytes / sending, bytes / passed,
                       static_cast<double>(counts.network_ns - begin_.network_ns) / passed,
                       sending / passed};
  Begin(now_ns, counts);
  const std::string line = Judge(now_ns, counts, rates);
  if (line.empty()) return std::nullopt;
  return line;
}

std::string WireChoice::Judge(int64_t now_ns, const WireCounts& counts, const Rates& rates) {
  if (!kept_) {
    const bool is_held_up = rates.network >= kHeldUp && rates.busy >= kBusy;
    const bool goes_up = is_held_up && codec_ != WireCodec::kZstd && now_ns >= up_at_ns_;
    if (!goes_up && (codec_ == WireCodec::kNarrow || now_ns < down_at_ns_)) return "";
    kept_ = codec_;
    before_ = rates;
    Use(goes_up ? After(codec_) : Before(codec_), counts);
    return "";
  }
  const WireCodec before = *std::exchange(kept_, std::nullopt);
  const double gain = rates.sending / before_.sending;
  const double in_all = rates.passing / before_.passing;
  const bool is_more = codec_ > before;
  if (is_more && gain >= kWorthMore && in_all >= kAsMuch) {
    up_at_ns_ = since_ns_ = now_ns;
    down_pause_ns_ = 0;
    down_at_ns_ = now_ns + kFirstPauseNs;
    return fmt::format(
        "batches are compressed with {} from now on: the network was busy {:.0f} % of the time, "
        "and {:.2f} times as many bytes a second get through",
        NameOf(codec_), 100 * std::min(before_.network, 1.0), gain);
  }
  if (!is_more && (in_all >= kClearlyMore || (gain >= kWorthLess && in_all >= kAsMuch))) {
    if (now_ns - since_ns_ >= kSoonNs) up_pause_ns_ = 0;
    since_ns_ = now_ns;
    up_at_ns_ = now_ns + Lengthen(&up_pause_ns_);
    down_at_ns_ = now_ns + kFirstPauseNs;
    return fmt::format(
        "batches are {}: the network lets as many through",
        codec_ == WireCodec::kNarrow ? "no longer compressed" : "compressed with lz4 again");
  }
  Use(before, counts);
  (is_more ? up_at_ns_ : down_at_ns_) =
      now_ns + Lengthen(is_more ? &up_pause_ns_ : &down_pause_ns_);
  return "";
}

}  // namespace headrace::reader
