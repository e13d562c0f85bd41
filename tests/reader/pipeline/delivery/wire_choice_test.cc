// Which codec a connection ends with, in worlds of a link, two codecs, a receiver and a pipeline.
#include "reader/pipeline/delivery/wire_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <ostream>
#include <random>
#include <string>

#include "base/error.h"
#include "tests/seed.h"

namespace headrace::reader {
namespace {

constexpr double kMB = 1e6, kNever = 1e15;

struct Codec {
  double ratio = 1;      // plain bytes to bytes on their way
  double rate = kNever;  // plain bytes a second
};

struct World {
  const char* name = "";
  double link = 0;  // bytes a second
  Codec lz4 = {2, 500 * kMB}, zstd = {2.5, 300 * kMB};
  double pipeline = kNever, receiver = kNever;  // plain bytes a second
  bool tells_receiver_apart = true;
  double slows = 0;  // the pipeline, by this share while anything is compressed
  double noise = 0.05;
  double batch = 2 * kMB;
  size_t window = 2;  // batches that are on their way
  WireCodec expected = WireCodec::kNarrow;
  double most_other = 0.1;  // share of the time with another codec than this

  friend void PrintTo(const World& world, std::ostream* out) { *out << world.name; }
};

constexpr double kQueue = 8;  // batches that are made in advance, at most

// Batches through a world: packed one after the other, sent one after the other over the link,
// taken by the receiver one after the other; at most `window` are on their way.
class Simulation {
 public:
  Simulation(const World& world, uint64_t seed) : world_(world), random_(seed) {}

  void RunUntil(double end_s) {
    while (now_s_ < end_s) Step();
  }
  World& world() { return world_; }
  const WireChoice& choice() const { return choice_; }
  double share(WireCodec codec) { return had_s_[codec] / now_s_; }
  const std::string& lines() const { return lines_; }
  long num_lines() const { return std::ranges::count(lines_, '\n'); }

 private:
  void Step() {
    const WireCodec with = choice_.codec();
    const Codec codec = with == WireCodec::kLz4    ? world_.lz4
                        : with == WireCodec::kZstd ? world_.zstd
                                                   : Codec{};
    std::uniform_real_distribution<double> noise(1 - world_.noise, 1 + world_.noise);
    const double began_s = now_s_;
    const double slowed = with == WireCodec::kNarrow ? 1 : 1 - world_.slows;
    const double makes_s = world_.batch / (world_.pipeline * slowed);
    made_s_ = std::max(made_s_ + makes_s * noise(random_), began_s - kQueue * makes_s);
    const double start_s = std::max(now_s_, made_s_);
    now_s_ = start_s + world_.batch / codec.rate;
    while (taken_s_.size() >= world_.window) {  // room
      now_s_ = std::max(now_s_, taken_s_.front());
      taken_s_.pop_front();
      ++counts_.acknowledged;
    }
    const double leaves_s = std::max(now_s_, link_s_);
    link_s_ = leaves_s + world_.batch / codec.ratio / world_.link * noise(random_);
    receiver_s_ = std::max(receiver_s_, link_s_) + world_.batch / world_.receiver;
    taken_s_.push_back(receiver_s_);
    network_s_ += (world_.tells_receiver_apart ? link_s_ : receiver_s_) -
                  std::max(leaves_s, world_.tells_receiver_apart ? 0 : last_receiver_s_);
    last_receiver_s_ = receiver_s_;
    ++counts_.sent;
    had_s_[with] += now_s_ - began_s;
    counts_.bytes += static_cast<uint64_t>(world_.batch);
    counts_.sending_ns += static_cast<int64_t>(1e9 * (now_s_ - start_s));
    counts_.network_ns = static_cast<int64_t>(1e9 * network_s_);
    if (const auto line = choice_.Sent(static_cast<int64_t>(1e9 * now_s_), counts_))
      lines_ += *line + "\n";
  }

  World world_;
  std::mt19937_64 random_;
  WireChoice choice_;
  WireCounts counts_;
  double now_s_ = 0, made_s_ = 0, link_s_ = 0, receiver_s_ = 0, last_receiver_s_ = 0;
  double network_s_ = 0;
  std::deque<double> taken_s_;  // when those on their way are
  std::map<WireCodec, double> had_s_;
  std::string lines_;
};

class WireChoiceEnds : public testing::TestWithParam<World> {};

TEST_P(WireChoiceEnds, WithTheCodecThatGetsMostThrough) {
  Simulation simulation(GetParam(), TestSeed());
  simulation.RunUntil(1200);
  EXPECT_LE(1 - simulation.share(GetParam().expected), GetParam().most_other) << simulation.lines();
  // Pauses double: chance cannot make it say more.
  EXPECT_LE(simulation.num_lines(), 16) << simulation.lines();
}

constexpr WireCodec kLz4 = WireCodec::kLz4, kZstd = WireCodec::kZstd;
INSTANTIATE_TEST_SUITE_P(
    Worlds, WireChoiceEnds,
    testing::Values(
        World{.name = "FastLink", .link = 5000 * kMB, .pipeline = 400 * kMB, .most_other = 0},
        World{.name = "FastLinkThatIsFull", .link = 1200 * kMB},
        World{.name = "SlowLink", .link = 120 * kMB, .expected = kZstd},
        World{.name = "SlowLinkAndASlowZstd",
              .link = 120 * kMB,
              .zstd = {2.5, 200 * kMB},
              .expected = kLz4},
        World{.name = "VerySlowLinkAndManyOnTheirWay",
              .link = 1 * kMB,
              .lz4 = {1.5, 500 * kMB},
              .zstd = {1.55, 300 * kMB},
              .batch = 0.25 * kMB,
              .window = 8,
              .expected = kLz4},
        World{.name = "SmallBatchesOfALane",
              .link = 0.5 * kMB,
              .lz4 = {1.47, 500 * kMB},
              .zstd = {1.7, 300 * kMB},
              .batch = 0.064 * kMB,
              .window = 16,
              .expected = kZstd},
        World{.name = "RandomBytes",
              .link = 120 * kMB,
              .lz4 = {1, 2000 * kMB},
              .zstd = {1, 900 * kMB}},
        World{.name = "SlowReceiver", .link = 1000 * kMB, .receiver = 50 * kMB, .most_other = 0},
        World{.name = "SlowReceiverThatIsNotToldApart",
              .link = 1000 * kMB,
              .receiver = 50 * kMB,
              .tells_receiver_apart = false},
        World{.name = "SlowPipeline", .link = 120 * kMB, .pipeline = 40 * kMB, .most_other = 0},
        World{.name = "NoCoresToSpare", .link = 120 * kMB, .pipeline = 125 * kMB, .slows = 0.4},
        World{.name = "HardlyAnyCoresToSpare",
              .link = 120 * kMB,
              .pipeline = 121 * kMB,
              .slows = 0.08,
              .most_other = 0.2},
        World{.name = "CodecsOfNoUseOnALinkThatVaries",
              .link = 120 * kMB,
              .lz4 = {1, 500 * kMB},
              .zstd = {1, 400 * kMB},
              .noise = 0.4,
              .most_other = 0.3}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(WireChoice, GoesBackWhereTheLinkIsFastAgain) {
  Simulation simulation({.link = 120 * kMB}, TestSeed());
  simulation.RunUntil(60);
  EXPECT_EQ(simulation.choice().codec(), WireCodec::kZstd);
  EXPECT_NE(simulation.lines().find("batches are compressed with lz4 from now on: the network was "
                                    "busy "),
            std::string::npos)
      << simulation.lines();
  simulation.world().link = 5000 * kMB;
  simulation.RunUntil(400);
  EXPECT_EQ(simulation.choice().codec(), WireCodec::kNarrow);
  EXPECT_NE(simulation.lines().find("batches are no longer compressed"), std::string::npos)
      << simulation.lines();
}

TEST(WireCodec, NamesAreReadAndOthersRefused) {
  EXPECT_EQ(ParseWire("auto"), std::nullopt);
  for (const WireCodec codec :
       {WireCodec::kRaw, WireCodec::kNarrow, WireCodec::kLz4, WireCodec::kZstd})
    EXPECT_EQ(ParseWire(NameOf(codec)), codec);
  EXPECT_THROW(ParseWire("snappy"), Error);
}

}  // namespace
}  // namespace headrace::reader
