// The formats of stacks, read again: pprof, folded, speedscope.
#include "dashboards/export/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "dashboards/export/escape.h"
#include "dashboards/export/proto_writer.h"
#include "tests/dashboards/export/exported_store.h"

namespace headrace::dashboards {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Gunzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(16 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

std::vector<uint64_t> Unpacked(std::string_view bytes) {
  std::vector<uint64_t> values;
  uint64_t value = 0;
  int shift = 0;
  for (const char c : bytes) {
    value |= uint64_t{static_cast<uint8_t>(c) & 0x7fu} << shift;
    shift += 7;
    if ((static_cast<uint8_t>(c) & 0x80) != 0) continue;
    values.push_back(value);
    value = 0;
    shift = 0;
  }
  return values;
}

struct DecodedProfile {
  std::vector<std::string> texts;
  std::vector<std::string> types;                       // "cpu nanoseconds"
  std::map<std::string, std::vector<int64_t>> samples;  // frames from the root, by ';' -> values
  std::map<std::string, std::map<std::string, std::string>> labels;
  std::vector<std::string> comments;
};

DecodedProfile DecodeProfile(const std::string& bytes) {
  DecodedProfile profile;
  std::map<uint64_t, uint64_t> function_names, location_functions;
  std::vector<std::string_view> types, samples;
  std::vector<uint64_t> comments;
  ProtoReader reader(bytes);
  while (const auto field = reader.Next()) {
    ProtoReader inner(field->bytes);
    if (field->number == 1) types.push_back(field->bytes);
    if (field->number == 2) samples.push_back(field->bytes);
    if (field->number == 6) profile.texts.emplace_back(field->bytes);
    if (field->number == 13) comments.push_back(field->value);
    if (field->number == 5) {
      uint64_t id = 0, name = 0;
      while (const auto part = inner.Next()) (part->number == 1 ? id : name) = part->value;
      function_names[id] = name;
    }
    if (field->number == 4) {
      uint64_t id = 0, function = 0;
      while (const auto part = inner.Next()) {
        if (part->number == 1) id = part->value;
        if (part->number == 4) function = ProtoReader(part->bytes).Next()->value;
      }
      location_functions[id] = function;
    }
  }
  EXPECT_FALSE(reader.damaged());
  for (const uint64_t comment : comments) profile.comments.push_back(profile.texts.at(comment));
  for (const std::string_view type : types) {
    ProtoReader inner(type);
    const auto name = inner.Next(), unit = inner.Next();
    profile.types.push_back(profile.texts.at(name->value) + " " + profile.texts.at(unit->value));
  }
  for (const std::string_view sample : samples) {
    ProtoReader inner(sample);
    std::string stack;
    std::vector<int64_t> values;
    std::map<std::string, std::string> labels;
    while (const auto part = inner.Next()) {
      if (part->number == 1) {
        for (const uint64_t location : Unpacked(part->bytes)) {  // leaf first
          const std::string& name =
              profile.texts.at(function_names.at(location_functions.at(location)));
          stack = stack.empty() ? name : name + ";" + stack;
        }
      }
      if (part->number == 2) {
        for (const uint64_t v : Unpacked(part->bytes)) values.push_back(static_cast<int64_t>(v));
      }
      if (part->number != 3) continue;
      ProtoReader label(part->bytes);
      const auto key = label.Next(), value = label.Next();
      labels[profile.texts.at(key->value)] =
          value->number == 2 ? profile.texts.at(value->value) : std::to_string(value->value);
    }
    auto& sum = profile.samples[stack];
    sum.resize(std::max(sum.size(), values.size()));
    for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
    profile.labels[stack] = labels;
  }
  return profile;
}

class Stacks : public ExportedStore {};

TEST_F(Stacks, PprofHasTimesAndBytesByStageOperatorAndFunction) {
  Record();
  const DecodedProfile profile = DecodeProfile(Gunzip(Exported("pprof")));
  ASSERT_FALSE(profile.texts.empty());
  EXPECT_EQ(profile.texts[0], "");
  EXPECT_THAT(profile.types,
              ElementsAre("cpu nanoseconds", "off_cpu nanoseconds", "waiting nanoseconds",
                          "python nanoseconds", "bytes_in bytes", "bytes_out bytes"));
  const std::string decompress = "stage decode;operator decompress";
  EXPECT_THAT(profile.samples.at(decompress + ";main;Work;ZSTD_decompress"),
              ElementsAre(60 * kMs, 0, 0, 0, 0, 0));
  EXPECT_THAT(profile.samples.at(decompress + ";[storage];main;Work;pread"),
              ElementsAre(0, 80 * kMs, 0, 0, 0, 0));
  EXPECT_THAT(profile.samples.at("process reader;[sleep];main;Idle"),
              ElementsAre(0, 0, 90 * kMs, 0, 0, 0));
  EXPECT_THAT(profile.samples.at("process reader;MainThread;main (t.py:4)"),
              ElementsAre(0, 0, 0, 70 * kMs, 0, 0));
  EXPECT_THAT(profile.samples.at(decompress), ElementsAre(0, 0, 0, 0, 10'000, 20'000));
  const auto& labels = profile.labels.at(decompress + ";main;Work;ZSTD_decompress");
  EXPECT_EQ(labels.at("stage"), "decode");
  EXPECT_EQ(labels.at("operator"), "decompress");
  EXPECT_EQ(labels.at("pid"), "4242");
}

TEST_F(Stacks, WithoutStacksOperatorsHaveTheirTotals) {
  Record({}, 10, false);
  const DecodedProfile profile = DecodeProfile(Gunzip(Exported("pprof")));
  const std::string total = std::string(";") + kOperatorTotal;
  EXPECT_EQ(profile.samples.at("stage decode;operator decompress" + total)[0], 600 * kMs);
  // What is not separated is not there, which a comment says.
  const auto batch = profile.samples.find("stage pack;operator batch" + total);
  ASSERT_NE(batch, profile.samples.end());
  EXPECT_EQ(batch->second[0], 0);
  EXPECT_EQ(batch->second[1], 0);
  EXPECT_EQ(batch->second[2], 500 * kMs) << "its waits are known";
  EXPECT_THAT(profile.comments.back(), HasSubstr("not in operators' totals: batch"));
}

TEST_F(Stacks, FoldedLinesAddUpByKind) {
  Record();
  collectors::ReadStore store(path_);
  for (const auto& [kind, lines, total] : {std::tuple{"cpu", 3, 120 * kMs},
                                           {"off_cpu", 1, 80 * kMs},
                                           {"waiting", 1, 90 * kMs},
                                           {"python", 1, 70 * kMs}}) {
    SCOPED_TRACE(kind);
    ExportRequest request{store, 1};
    request.kind = kind;
    std::istringstream text(Written("folded", request));
    int count = 0;
    int64_t sum = 0;
    for (std::string line; std::getline(text, line); ++count) {
      sum += std::stoll(line.substr(line.rfind(' ') + 1));
    }
    EXPECT_EQ(count, lines);
    EXPECT_EQ(sum, total);
  }
  EXPECT_THAT(Exported("folded"),
              HasSubstr("stage decode;operator decompress;main;Work;ZSTD_decompress 60000000\n"));
}

TEST_F(Stacks, FoldedLinesKeepTheirFramesWhateverTheNames) {
  RecordedNames names;
  names.stage = names.op = "a;b\nc 1";
  Record(names);
  EXPECT_THAT(Exported("folded"),
              HasSubstr("stage a:b\\x0ac 1;operator a:b\\x0ac 1;main;Work;ZSTD_decompress 6"));
}

TEST_F(Stacks, SpeedscopeProfilesPointAtTheirFrames) {
  for (const bool hostile : {false, true}) {
    RecordedNames names;
    if (hostile) names.stage = names.op = names.run = kHostileName;
    const int64_t run = Record(names);
    const auto json = nlohmann::json::parse(Exported("speedscope", run));
    EXPECT_EQ(json["$schema"], "https://www.speedscope.app/file-format-schema.json");
    const auto& frames = json["shared"]["frames"];
    ASSERT_EQ(json["profiles"].size(), 4u);
    int64_t total = 0;
    for (const auto& profile : json["profiles"]) {
      EXPECT_EQ(profile["type"], "sampled");
      ASSERT_EQ(profile["samples"].size(), profile["weights"].size());
      int64_t sum = 0;
      for (size_t i = 0; i < profile["samples"].size(); ++i) {
        sum += profile["weights"][i].get<int64_t>();
        for (const auto& frame : profile["samples"][i]) {
          ASSERT_LT(frame.get<size_t>(), frames.size());
        }
      }
      EXPECT_EQ(profile["endValue"], sum);
      total += sum;
    }
    EXPECT_EQ(total, (60 + 40 + 20 + 80 + 90 + 70) * kMs);
  }
}

TEST_F(Stacks, ARunWithoutAnyTimeSaysSo) {
  collectors::RunStore store(path_);
  collectors::RunInfo info;
  info.name = "empty";
  info.hostname = "elsewhere";
  store.BeginRun(info);
  for (const char* format : {"folded", "speedscope"}) {
    try {
      Exported(format);
      ADD_FAILURE() << format;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_THAT(error.what(), HasSubstr("level 3"));
    }
  }
}

}  // namespace
}  // namespace headrace::dashboards
