// Fetch against sources that count what they are asked for.
#include "reader/fetch/fetch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

namespace headrace::reader {
namespace {

// Checks what an aligned source may rely on, and fills whole blocks as O_DIRECT does.
class AlignedSource final : public Source {
 public:
  AlignedSource(std::string bytes, uint64_t alignment) : bytes_(bytes), alignment_(alignment) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  uint64_t alignment() const override { return alignment_; }
  void ReadAt(uint64_t offset, std::span<uint8_t> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  void ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const override {
    for (const ReadRequest& request : requests) {
      const uint64_t end = request.offset + request.out.size();
      EXPECT_EQ(request.offset % alignment_, 0u);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(request.out.data()) % alignment_, 0u);
      EXPECT_TRUE(end % alignment_ == 0 || end == size());
      ReadAt(request.offset, request.out);
      std::memset(request.out.data() + request.out.size(), 0xee,
                  (alignment_ - request.out.size() % alignment_) % alignment_);
      ++figures->requests;
      figures->bytes += request.out.size();
    }
  }

 private:
  std::string name_ = "aligned", bytes_;
  uint64_t alignment_;
};

TEST(Fetch, GivesEachStreamItsBytesAtEveryAlignmentAndGap) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string bytes(1000 + random() % 100000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    dwrf::StripePlan plan;
    uint64_t stream_bytes = 0;
    for (size_t n = random() % 20; plan.streams.size() < n;) {
      const uint64_t offset = random() % bytes.size();
      const uint64_t length = 1 + random() % std::min<uint64_t>(bytes.size() - offset, 5000);
      plan.streams.push_back({1, 0, dwrf::StreamKind::kData, offset, length, true});
      stream_bytes += length;
    }
    const AlignedSource source(bytes, seed % 3 == 0 ? 1 : uint64_t{512} << random() % 4);
    const FetchedStripe fetched = Fetch(plan, source, {random() % 10000, 1 + random() % 50000});
    ASSERT_EQ(fetched.stored.size(), plan.streams.size());
    for (size_t i = 0; i < plan.streams.size(); ++i) {
      const auto& stream = plan.streams[i];
      ASSERT_EQ(fetched.stored[i].size(), stream.length);
      EXPECT_EQ(std::memcmp(fetched.stored[i].data(), bytes.data() + stream.offset, stream.length),
                0);
    }
    EXPECT_EQ(fetched.stream_bytes, stream_bytes);
    EXPECT_EQ(fetched.figures.bytes, fetched.read_bytes);
    EXPECT_LE(fetched.wanted_bytes, fetched.read_bytes);
  }
}

// A checksum wants all bytes of a stripe: they are asked for in parts, as a source can work on many
// at a time, and lie together.
TEST(Fetch, ReadsAWholeStripeInPartsThatAreAdjacent) {
  std::string bytes(50'000, '\0');
  std::mt19937_64 random(3);
  for (char& byte : bytes) byte = static_cast<char>(random());
  dwrf::StripePlan plan;
  for (const uint64_t offset : {3000, 9000, 30'000})
    plan.streams.push_back({1, 0, dwrf::StreamKind::kData, offset, 6000, true});
  for (const uint64_t alignment : {1, 512, 4096}) {
    SCOPED_TRACE(alignment);
    const AlignedSource source(bytes, alignment);
    FetchOptions options = {.max_gap_bytes = 0, .max_read_bytes = 9000};
    options.whole = {1000, 40'000};
    const FetchedStripe fetched = Fetch(plan, source, options);
    // Each request reads 9000 bytes, or the whole blocks that fit into these.
    EXPECT_EQ(fetched.figures.requests, alignment == 4096 ? 6u : 5u);
    EXPECT_EQ(std::string(fetched.whole.begin(), fetched.whole.end()), bytes.substr(1000, 40'000));
    for (size_t i = 0; i < plan.streams.size(); ++i) {
      EXPECT_EQ(std::string(fetched.stored[i].begin(), fetched.stored[i].end()),
                bytes.substr(plan.streams[i].offset, 6000));
    }
  }
}

}  // namespace
}  // namespace headrace::reader
