#include "reader/pipeline/delivery/wire_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace headrace::reader {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// What is measured at a time: so long, and so many batches.
constexpr int64_t kWindowNs = kSecond;
constexpr uint32_t kLeastBatches = 8, kSettling = 2;
// The network holds batches up from so much of the time, and that matters to a sender that is at it
// for so much.
constexpr double kHeldUp = 0.1, kBusy = 0.5;
// A codec is kept if it gets so much more through while sending, and what comes through in all is
// not less by chance: it may cost the pipeline its cores.
constexpr double kWorthMore = 1.1, kAsMuch = 0.97;
// The one before is kept if it gets nearly as much through.
constexpr double kWorthLess = 0.97;
// Between trials; twice as long after each in vain.
constexpr int64_t kFirstPauseNs = 10 * kSecond, kLastPauseNs = 640 * kSecond;

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

void WireChoice::Try(WireCodec codec, const Rates& rates) {
  kept_ = std::exchange(codec_, codec);
  before_ = rates;
  settling_ = kSettling;
}

std::optional<std::string> WireChoice::Sent(int64_t now_ns, const WireCounts& counts) {
  ++batches_;
  if (!has_begun_ || (settling_ > 0 && --settling_ == 0)) {
    has_begun_ = true;
    Begin(now_ns, counts);
    return std::nullopt;
  }
  const int64_t passed_ns = now_ns - begin_ns_;
  const int64_t sending_ns = counts.sending_ns - begin_.sending_ns;
  if (settling_ > 0 || passed_ns < kWindowNs || batches_ < kLeastBatches || sending_ns <= 0)
    return std::nullopt;
  const auto bytes = static_cast<double>(counts.bytes - begin_.bytes);
  const auto passed = static_cast<double>(passed_ns), sending = static_cast<double>(sending_ns);
  const Rates rates = {bytes / sending, bytes / passed,
                       static_cast<double>(counts.network_ns - begin_.network_ns) / passed,
                       sending / passed};
  Begin(now_ns, counts);
  const std::string line = Judge(now_ns, rates);
  if (line.empty()) return std::nullopt;
  return line;
}

std::string WireChoice::Judge(int64_t now_ns, const Rates& rates) {
  if (!kept_) {
    const bool is_held_up = rates.network >= kHeldUp && rates.busy >= kBusy;
    if (is_held_up && codec_ != WireCodec::kZstd && now_ns >= up_at_ns_) {
      Try(After(codec_), rates);
    } else if (codec_ != WireCodec::kRaw && now_ns >= down_at_ns_) {
      Try(Before(codec_), rates);
    }
    return "";
  }
  const WireCodec before = *std::exchange(kept_, std::nullopt);
  const double gain = rates.sending / before_.sending;
  const bool is_more = codec_ > before, passes = rates.passing >= kAsMuch * before_.passing;
  if (passes && gain >= (is_more ? kWorthMore : kWorthLess)) {
    up_pause_ns_ = down_pause_ns_ = 0;
    down_at_ns_ = now_ns + kFirstPauseNs;
    up_at_ns_ = is_more ? now_ns : now_ns + kFirstPauseNs;
    if (!is_more)
      return fmt::format("batches are sent {} again: the network lets as many through",
                         codec_ == WireCodec::kRaw ? "as they are" : NameOf(codec_));
    return fmt::format(
        "batches are compressed with {} from now on: the network was busy for {:.0f} % of the "
        "time, "
        "and {:.2f} times as many bytes a second get through",
        NameOf(codec_), 100 * std::min(before_.network, 1.0), gain);
  }
  codec_ = before;
  settling_ = kSettling;
  (is_more ? up_at_ns_ : down_at_ns_) =
      now_ns + Lengthen(is_more ? &up_pause_ns_ : &down_pause_ns_);
  return "";
}

}  // namespace headrace::reader
