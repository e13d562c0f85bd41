#include "reader/source/fault.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/mix_bits.h"
#include "reader/source/forwarding.h"

namespace headrace::reader {
namespace {

constexpr int64_t kStallStepNs = 10'000'000;

class FaultSource final : public ForwardingSource {
 public:
  FaultSource(std::shared_ptr<const Source> inner, const FaultOptions& options,
              std::function<bool()> stopped)
      : ForwardingSource(std::move(inner)), options_(options), stopped_(std::move(stopped)) {}

  // Bytes that were read with faults are not to be kept for a run without. Other faults change
  // none.
  std::string version() const override {
    const std::string version = ForwardingSource::version();
    if (options_.flip_ratio <= 0) return version;
    return fmt::format("{} {} {}", version, options_.seed, options_.flip_ratio);
  }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    Before(offset, out.size());
    inner().ReadAt(offset, out);
    Flip(offset, out);
  }
  void ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const override {
    for (const ReadRequest& request : requests) Before(request.offset, request.out.size());
    inner().ReadMany(requests, figures);
    for (const ReadRequest& request : requests) Flip(request.offset, request.out);
  }

 private:
  uint64_t Draw(uint64_t kind, uint64_t offset, uint64_t bytes) const {
    return MixBits(MixBits(MixBits(MixBits(options_.seed) ^ kind) ^ offset) ^ bytes ^ size() << 20);
  }
  bool Happens(double ratio, uint64_t kind, uint64_t offset, uint64_t bytes) const {
    return ratio > 0 &&
           static_cast<double>(Draw(kind, offset, bytes) >> 11) < std::ldexp(ratio, 53);
  }

  void Before(uint64_t offset, uint64_t bytes) const {
    if (Happens(options_.stall_ratio, 1, offset, bytes)) {
      const int64_t end = MonotonicNs() + options_.stall_ns;
      for (int64_t now; (now = MonotonicNs()) < end && !(stopped_ && stopped_());)
        SleepUntilNs(std::min(end, now + kStallStepNs));
    }
    if (Happens(options_.error_ratio, 2, offset, bytes))
      throw ErrnoError(EIO, fmt::format("read {} bytes at byte {}", bytes, offset), name());
    if (bytes > 0 && Happens(options_.short_ratio, 3, offset, bytes)) {
      const uint64_t got = Draw(4, offset, bytes) % bytes;
      throw Error(ExitCode::kBadData, fmt::format("the file ends {} bytes early", bytes - got),
                  fmt::format("{}: byte {}", name(), offset + got));
    }
  }
  void Flip(uint64_t offset, std::span<uint8_t> out) const {
    if (out.empty() || !Happens(options_.flip_ratio, 5, offset, out.size())) return;
    const uint64_t bit = Draw(6, offset, out.size()) % (8 * uint64_t{out.size()});
    out[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
  }

  FaultOptions options_;
  std::function<bool()> stopped_;
};

}  // namespace

std::shared_ptr<const Source> Faulty(std::shared_ptr<const Source> inner,
                                     const FaultOptions& options, std::function<bool()> stopped) {
  return std::make_shared<FaultSource>(std::move(inner), options, std::move(stopped));
}

}  // namespace headrace::reader
