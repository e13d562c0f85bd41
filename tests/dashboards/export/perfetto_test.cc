// What the trace formats write, decoded again: Perfetto's packets here, Chrome's JSON below.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "dashboards/export/escape.h"
#include "dashboards/export/proto_writer.h"
#include "tests/dashboards/export/exported_store.h"

namespace headrace::dashboards {
namespace {

using testing::HasSubstr;

struct DecodedTrack {
  std::string name, unit;
  uint64_t parent = 0;
  std::vector<std::pair<int64_t, double>> values;
  struct Slice {
    std::string name;
    int64_t begin = 0, end = -1;
    size_t depth = 0;
    std::map<std::string, std::string> texts;
  };
  std::vector<Slice> slices;
  std::vector<size_t> open;
};

struct DecodedTrace {
  std::map<uint64_t, DecodedTrack> tracks;
  int64_t realtime_ns = -1;

  // The track whose names from the top are "a/b/c", without the run's own.
  const DecodedTrack* Find(const std::string& path) const {
    for (const auto& [id, track] : tracks) {
      std::string names = track.name;
      for (uint64_t parent = track.parent; parent != 0; parent = tracks.at(parent).parent) {
        if (tracks.at(parent).parent != 0) names = tracks.at(parent).name + "/" + names;
      }
      if (names == path) return &track;
    }
    return nullptr;
  }
};

void DecodeTrack(std::string_view bytes, DecodedTrace* trace) {
  DecodedTrack track;
  uint64_t id = 0;
  ProtoReader reader(bytes);
  while (const auto field = reader.Next()) {
    if (field->number == 1) id = field->value;
    if (field->number == 2) track.name = field->bytes;
    if (field->number == 5) track.parent = field->value;
    if (field->number == 8) {
      ProtoReader counter(field->bytes);
      while (const auto part = counter.Next()) {
        if (part->number == 6) track.unit = part->bytes;
      }
    }
  }
  ASSERT_FALSE(reader.damaged());
  ASSERT_FALSE(trace->tracks.contains(id)) << "two tracks share an id";
  ASSERT_TRUE(track.parent == 0 || trace->tracks.contains(track.parent)) << "parents come first";
  trace->tracks[id] = track;
}

void DecodeEvent(int64_t at, std::string_view bytes, DecodedTrace* trace) {
  uint64_t type = 0, id = 0;
  double value = NAN;
  DecodedTrack::Slice slice;
  ProtoReader reader(bytes);
  while (const auto field = reader.Next()) {
    if (field->number == 9) type = field->value;
    if (field->number == 11) id = field->value;
    if (field->number == 23) slice.name = field->bytes;
    if (field->number == 44) value = field->as_double();
    if (field->number != 4) continue;
    std::string key, text;
    ProtoReader annotation(field->bytes);
    while (const auto part = annotation.Next()) {
      if (part->number == 10) key = part->bytes;
      if (part->number == 6) text = part->bytes;
    }
    slice.texts[key] = text;
  }
  ASSERT_FALSE(reader.damaged());
  ASSERT_TRUE(trace->tracks.contains(id)) << "an event on no track";
  DecodedTrack& track = trace->tracks[id];
  if (type == 4) {
    ASSERT_TRUE(std::isfinite(value));
    ASSERT_NE(track.unit, "");
    ASSERT_TRUE(track.values.empty() || track.values.back().first < at) << track.name;
    track.values.emplace_back(at, value);
  } else if (type == 1) {
    slice.begin = at;
    slice.depth = track.open.size();
    if (!track.open.empty()) {
      ASSERT_LE(track.slices[track.open.back()].begin, at);
    }
    track.open.push_back(track.slices.size());
    track.slices.push_back(slice);
  } else {
    ASSERT_EQ(type, 2u);
    ASSERT_FALSE(track.open.empty()) << "an end without a begin";
    DecodedTrack::Slice& ended = track.slices[track.open.back()];
    ASSERT_LE(ended.begin, at);
    ended.end = at;
    track.open.pop_back();
  }
}

DecodedTrace Decode(const std::string& bytes) {
  DecodedTrace trace;
  ProtoReader packets(bytes);
  while (const auto packet = packets.Next()) {
    EXPECT_EQ(packet->number, 1u);
    int64_t at = -1;
    ProtoReader reader(packet->bytes);
    bool on_sequence = false;
    while (const auto field = reader.Next()) {
      if (field->number == 8) at = static_cast<int64_t>(field->value);
      if (field->number == 10) on_sequence = field->value == 1;
      if (field->number == 60) DecodeTrack(field->bytes, &trace);
      if (field->number == 11) DecodeEvent(at, field->bytes, &trace);
      if (field->number != 6) continue;
      ProtoReader clocks(field->bytes);
      while (const auto clock = clocks.Next()) {
        uint64_t id = 0, time = 0;
        ProtoReader parts(clock->bytes);
        while (const auto part = parts.Next()) (part->number == 1 ? id : time) = part->value;
        if (id == 1) trace.realtime_ns = static_cast<int64_t>(time);
      }
    }
    EXPECT_TRUE(on_sequence);
    EXPECT_FALSE(reader.damaged());
  }
  EXPECT_FALSE(packets.damaged());
  for (const auto& [id, track] : trace.tracks) {
    EXPECT_TRUE(track.open.empty()) << track.name << " has a slice without an end";
    EXPECT_TRUE(track.values.empty() || track.slices.empty()) << track.name;
  }
  return trace;
}

class Perfetto : public ExportedStore {};

TEST_F(Perfetto, CountersAreTheColumnsOfTheViews) {
  Record();
  const DecodedTrace trace = Decode(Exported("perfetto"));
  const DecodedTrack* busy = trace.Find("stage decode/operator decompress/busy");
  ASSERT_NE(busy, nullptr);
  EXPECT_EQ(busy->unit, "threads");
  ASSERT_EQ(busy->values.size(), 10u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(busy->values[i].first, i * kWindow);
    EXPECT_DOUBLE_EQ(busy->values[i].second, (100.0 + i) / 200);
  }
  const DecodedTrack* rows = trace.Find("stage decode/operator decompress/rows");
  ASSERT_NE(rows, nullptr);
  EXPECT_DOUBLE_EQ(rows->values[1].second, 641 / 0.2);
  const DecodedTrack* fill = trace.Find("queue ready (4 elements)/fill");
  ASSERT_NE(fill, nullptr);
  EXPECT_DOUBLE_EQ(fill->values[3].second, 0.75);
  const DecodedTrack* wait = trace.Find("trainer/waits for a batch");
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(wait->values, (std::vector<std::pair<int64_t, double>>{{0, 0.3}}))
      << "a value that stays is written once";
  EXPECT_NE(trace.Find("lock table/held"), nullptr);
  const DecodedTrack* most = trace.Find("trainer/99 % of the steps took at most");
  ASSERT_NE(most, nullptr);
  EXPECT_NEAR(most->values.at(0).second, 0.06, 0.006);
  EXPECT_NEAR(trace.Find("trainer/half of the steps took at most")->values.at(0).second, 0.04,
              0.004);
}

TEST_F(Perfetto, AnOperatorThatDidNothingIsAtZeroAndUnknownIsNot) {
  Record();
  const DecodedTrace trace = Decode(Exported("perfetto"));
  const DecodedTrack* busy = trace.Find("stage decode/operator extract/busy");
  ASSERT_NE(busy, nullptr);
  // Windows 2 and 3 have no row: one value for both.
  ASSERT_EQ(busy->values.size(), 9u);
  EXPECT_EQ(busy->values[2], (std::pair<int64_t, double>{2 * kWindow, 0}));
  EXPECT_EQ(busy->values[3].first, 4 * kWindow);
  const DecodedTrack* on_core = trace.Find("stage decode/operator extract/on a core");
  ASSERT_NE(on_core, nullptr);
  for (const auto& [at, value] : on_core->values) EXPECT_NE(at, 5 * kWindow) << "it is not known";
  const DecodedTrack* unknown = trace.Find("stage decode/operator extract/not separated");
  ASSERT_NE(unknown, nullptr);
  ASSERT_EQ(unknown->slices.size(), 1u);
  EXPECT_EQ(unknown->slices[0].begin, 5 * kWindow);
  EXPECT_EQ(unknown->slices[0].end, 6 * kWindow);
  // What nothing separates has one figure and no counters at zero.
  EXPECT_NE(trace.Find("stage pack/operator batch/busy"), nullptr);
  EXPECT_EQ(trace.Find("stage pack/operator batch/on a core"), nullptr);
  EXPECT_EQ(trace.Find("stage pack/operator batch/blocked"), nullptr);
  // A counter of the machine that did not grow has no row.
  const DecodedTrack* disk = trace.Find("machine/disk sda read");
  ASSERT_NE(disk, nullptr);
  EXPECT_EQ(disk->values, (std::vector<std::pair<int64_t, double>>{{0, 5e6 / 0.2}, {kWindow, 0}}));
}

TEST_F(Perfetto, SlicesAreTheRunItsDecisionsRangesAndProcesses) {
  Record();
  const DecodedTrace trace = Decode(Exported("perfetto"));
  EXPECT_EQ(trace.realtime_ns, 1'700'000'000'123'456'789);
  const DecodedTrack* run = trace.Find("run");
  ASSERT_NE(run, nullptr);
  ASSERT_EQ(run->slices.size(), 1u) << "without a database there are no phases";
  EXPECT_EQ(run->slices[0].end, 10 * kWindow);
  EXPECT_THAT(run->slices[0].texts.at("not_in_this_trace"), HasSubstr("single visits"));
  const DecodedTrack *first = trace.Find("decisions"), *second = trace.Find("decisions (2)");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr) << "they overlap, so they need two tracks";
  EXPECT_EQ(first->slices[0].name, "apply: decode.parallelism 1 -> 2");
  EXPECT_EQ(first->slices[0].end, 600 * kMs);
  EXPECT_EQ(trace.Find("full detail kept")->slices[0].name, "stall sda");
  const DecodedTrack* root = trace.Find("process reader (4242)/lifetime");
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root->slices[0].begin, 0) << "it began before the run";
  EXPECT_EQ(trace.Find("process reader (4243)/lifetime")->slices[0].end, 700 * kMs);
}

TEST_F(Perfetto, PhasesLieWithinTheRun) {
  Record({}, 60);
  collectors::ReadStore store(path_);
  ExportRequest request{store, 1};
  request.database = path_;
  const DecodedTrace trace = Decode(Written("perfetto", request));
  const DecodedTrack* run = trace.Find("run");
  ASSERT_NE(run, nullptr);
  ASSERT_GE(run->slices.size(), 2u);
  EXPECT_EQ(run->slices[0].depth, 0u);
  const bool steady = std::any_of(run->slices.begin(), run->slices.end(), [](const auto& slice) {
    return slice.name == "steady" && slice.depth == 1;
  });
  EXPECT_TRUE(steady);
}

TEST_F(Perfetto, APartOfTheRunHasTheWindowsThatBeginInIt) {
  Record();
  collectors::ReadStore store(path_);
  ExportRequest request{store, 1};
  request.since_ns = 2 * kWindow;
  request.until_ns = 5 * kWindow;
  const DecodedTrace trace = Decode(Written("perfetto", request));
  for (const auto& [id, track] : trace.tracks) {
    for (const auto& [at, value] : track.values) {
      EXPECT_GE(at, request.since_ns) << track.name;
      EXPECT_LT(at, request.until_ns) << track.name;
    }
    for (const auto& slice : track.slices) {
      EXPECT_GE(slice.begin, request.since_ns) << track.name;
      EXPECT_LE(slice.end, request.until_ns) << track.name;
    }
  }
  EXPECT_EQ(trace.Find("stage decode/operator decompress/busy")->values.size(), 3u);
}

TEST_F(Perfetto, HostileNamesStayTexts) {
  const RecordedNames hostile = {kHostileName, kHostileName, kHostileName, kHostileName,
                                 kHostileName, kHostileName, kHostileName, kHostileName};
  Record(hostile);
  const DecodedTrace trace = Decode(Exported("perfetto"));
  const std::string name = Utf8(kHostileName);
  EXPECT_NE(trace.Find("stage " + name + "/operator " + name + "/busy"), nullptr);
  for (const auto& [id, track] : trace.tracks) EXPECT_EQ(track.name, Utf8(track.name));
}

TEST_F(Perfetto, ChromeHasTheSameEvents) {
  for (const bool hostile : {false, true}) {
    RecordedNames names;
    if (hostile) names.op = names.stage = names.run = names.process = kHostileName;
    const int64_t run = Record(names);
    const DecodedTrace trace = Decode(Exported("perfetto", run));
    size_t counters = 0, begins = 0;
    for (const auto& [id, track] : trace.tracks) {
      counters += track.values.size();
      begins += track.slices.size();
    }
    const auto json = nlohmann::json::parse(Exported("chrome", run));
    std::map<std::pair<int64_t, int64_t>, int64_t> open;
    size_t seen_counters = 0, seen_begins = 0;
    for (const auto& event : json["traceEvents"]) {
      const std::string phase = event["ph"];
      if (phase == "C") {
        ++seen_counters;
        ASSERT_EQ(event["args"].size(), 1u);
        ASSERT_TRUE(event["args"].begin()->is_number());
      } else if (phase == "B" || phase == "E") {
        seen_begins += phase == "B" ? 1 : 0;
        int64_t& depth = open[{event["pid"], event["tid"]}];
        depth += phase == "B" ? 1 : -1;
        ASSERT_GE(depth, 0);
      } else {
        ASSERT_EQ(phase, "M");
      }
    }
    for (const auto& [track, depth] : open) EXPECT_EQ(depth, 0);
    EXPECT_EQ(seen_counters, counters);
    EXPECT_EQ(seen_begins, begins);
    EXPECT_EQ(json["otherData"]["name"], Utf8(names.run));
    EXPECT_THAT(json["otherData"]["not_in_this_trace"], HasSubstr("single visits"));
  }
}

}  // namespace
}  // namespace headrace::dashboards
