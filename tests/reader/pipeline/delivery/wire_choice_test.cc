// Which codec a connection ends with, in worlds of a link, two codecs, a receiver and a pipeline.
#include "reader/pipeline/delivery/wire_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
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
  const char* name;
  double link;  // bytes a second
  Codec lz4 = {2, 500 * kMB}, zstd = {2.5, 300 * kMB};
  double pipeline = kNever, receiver = kNever;  // plain bytes a second
  bool tells_receiver_apart = true;
  double slows = 0;  // the pipeline, by this share while anything is compressed
  WireCodec expected = WireCodec::kRaw;
  double most_tried = 0.1;  // share of the time with another codec than at the end

  friend void PrintTo(const World& world, std::ostream* out) { *out << world.name; }
};

// Batches of 2 MB through a world; `link` may change with time. Notes how long each codec had.
class Simulation {
 public:
  Simulation(World world, uint64_t seed) : world_(world), random_(seed) {}

  void RunUntil(double end_s) {
    while (now_s_ < end_s) Step();
  }
  World& world() { return world_; }
  const WireChoice& choice() const { return choice_; }
  double share(WireCodec codec) { return had_s_[codec] / now_s_; }
  const std::string& lines() const { return lines_; }

 private:
  void Step() {
    const double bytes = 2 * kMB;
    const WireCodec with = choice_.codec();
    const Codec codec = with == WireCodec::kLz4    ? world_.lz4
                        : with == WireCodec::kZstd ? world_.zstd
                                                   : Codec{};
    std::uniform_real_distribution<double> noise(0.95, 1.05);
    const double network_s = bytes / codec.ratio / world_.link * noise(random_);
    const double received_s = bytes / world_.receiver * noise(random_);
    const double sending_s = std::max({bytes / codec.rate, network_s, received_s});
    const double slowed = with == WireCodec::kRaw ? 1 : 1 - world_.slows;
    const double made_s = bytes / (world_.pipeline * slowed) * noise(random_);
    const double passed_s = std::max(sending_s, made_s);
    now_s_ += passed_s;
    had_s_[with] += passed_s;
    counts_.bytes += static_cast<uint64_t>(bytes);
    counts_.sending_ns += static_cast<int64_t>(1e9 * sending_s);
    counts_.network_ns += static_cast<int64_t>(
        1e9 * (world_.tells_receiver_apart ? network_s : std::max(network_s, received_s)));
    if (const auto line = choice_.Sent(static_cast<int64_t>(1e9 * now_s_), counts_))
      lines_ += *line + "\n";
  }

  World world_;
  std::mt19937_64 random_;
  WireChoice choice_;
  WireCounts counts_;
  double now_s_ = 0;
  std::map<WireCodec, double> had_s_;
  std::string lines_;
};

class WireChoiceEnds : public testing::TestWithParam<World> {};

TEST_P(WireChoiceEnds, WithTheCodecThatGetsMostThrough) {
  Simulation simulation(GetParam(), TestSeed());
  simulation.RunUntil(600);
  // A trial may be under way.
  EXPECT_GE(simulation.share(GetParam().expected), 1 - GetParam().most_tried) << simulation.lines();
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, WireChoiceEnds,
    testing::Values(
        World{.name = "FastLink", .link = 5000 * kMB, .pipeline = 400 * kMB, .most_tried = 0},
        World{.name = "FastLinkThatIsFull", .link = 1200 * kMB},
        World{.name = "SlowLink", .link = 120 * kMB, .expected = WireCodec::kZstd},
        World{.name = "SlowLinkAndASlowZstd",
              .link = 120 * kMB,
              .zstd = {2.5, 200 * kMB},
              .expected = WireCodec::kLz4},
        World{.name = "RandomBytes",
              .link = 120 * kMB,
              .lz4 = {1, 2000 * kMB},
              .zstd = {1, 900 * kMB}},
        World{.name = "SlowReceiver", .link = 1000 * kMB, .receiver = 50 * kMB, .most_tried = 0},
        World{.name = "SlowReceiverThatIsNotToldApart",
              .link = 1000 * kMB,
              .receiver = 50 * kMB,
              .tells_receiver_apart = false},
        World{.name = "SlowPipeline", .link = 120 * kMB, .pipeline = 40 * kMB, .most_tried = 0},
        World{.name = "NoCoresToSpare", .link = 120 * kMB, .pipeline = 125 * kMB, .slows = 0.4}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(WireChoice, GoesBackWhereTheLinkIsFastAgain) {
  Simulation simulation({.name = "", .link = 120 * kMB}, TestSeed());
  simulation.RunUntil(60);
  EXPECT_EQ(simulation.choice().codec(), WireCodec::kZstd);
  EXPECT_NE(simulation.lines().find("batches are compressed with lz4 from now on: the network was "
                                    "busy for "),
            std::string::npos)
      << simulation.lines();
  simulation.world().link = 5000 * kMB;
  simulation.RunUntil(400);
  EXPECT_EQ(simulation.choice().codec(), WireCodec::kRaw);
  EXPECT_NE(simulation.lines().find("sent as they are again"), std::string::npos)
      << simulation.lines();
}

TEST(WireCodec, NamesAreReadAndOthersRefused) {
  EXPECT_EQ(ParseWire("auto"), std::nullopt);
  for (const WireCodec codec : {WireCodec::kRaw, WireCodec::kLz4, WireCodec::kZstd})
    EXPECT_EQ(ParseWire(NameOf(codec)), codec);
  EXPECT_THROW(ParseWire("snappy"), Error);
}

}  // namespace
}  // namespace headrace::reader
