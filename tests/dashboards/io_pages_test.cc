// The pages IO layout and Characterization, stacks of two runs, and the course of rates: what they
// say of figures that a store holds, and of those it lacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "dashboards/pages/page_run.h"
#include "dashboards/serve/site.h"
#include "tests/dashboards/stored_run.h"

namespace headrace::dashboards {
namespace {

using collectors::MeasurementBatch;
using nlohmann::json;
using testing::HasSubstr;

analysis::SimulatedPipeline IoPipeline() {
  analysis::SimulatedPipeline pipeline;
  pipeline.cores = 2;
  pipeline.stages = {{"fetch", 1, 4, {{"fetch", 0.0002, 0.008, 0, 0, 0.2, -1}}},
                     {"batch", 1, 8, {{"batch", 0.0005, 0, 0, 0, 0.1, -1}}}};
  pipeline.consumer_s = 0.004;
  return pipeline;
}

// Two stripes of 1000 bytes: row index, a wanted key, one that is read over, one that is skipped.
collectors::LayoutRows SmallLayout() {
  collectors::LayoutRows layout;
  layout.gap_bytes = 128 << 10;
  layout.most_read_bytes = 8 << 20;
  layout.files_count = 1;
  layout.file_bytes = 2300;
  layout.stripes_count = 2;
  layout.features_count = 1;
  layout.detailed_stripes_count = 2;
  layout.stored_features_count = 3;
  layout.used_features_count = 1;
  layout.stored_features_bytes = 1800;
  layout.used_features_bytes = 600;
  for (int64_t stripe = 0; stripe < 2; ++stripe) {
    const int64_t at = 3 + 1000 * stripe;
    layout.stripes.push_back({stripe, "part-0.dwrf", at, 1000, 50, 8, 3, 300, 200, 1});
    layout.streams.push_back({stripe, at, 100, "index", "sparse", "", 2, 0, 0});
    layout.streams.push_back({stripe, at + 100, 300, "data", "sparse", "17", 3, 300, 0});
    layout.streams.push_back({stripe, at + 400, 200, "data", "sparse", "20", 2, 0, 200});
    layout.streams.push_back({stripe, at + 600, 400, "data", "dense", "9", 1, 0, 0});
    layout.reads.push_back({stripe, at + 100, 500, 300});
  }
  return layout;
}

class IoPages : public testing::Test {
 protected:
  void SetUp() override {
    run_ = analysis::Record(IoPipeline(), 8, 3);
    store_.emplace(files_.path());
    id_ = StoreRun(*store_, run_, "io");
  }

  json Ask(const std::string& name, const PageQuery& query = {}, int64_t id = -1) {
    const int64_t asked = id < 0 ? id_ : id;
    collectors::ReadStore store(files_.path());
    const PageRun page(store, asked, [&] {
      return LoadForPages(files_.path(), std::to_string(asked), {.program = "headrace"});
    });
    return json::parse(Registry<PageAnswer>::Global().Find(name)->make(page, query));
  }

  json Trends() {
    Site site(files_.path(), "headrace", "", {.port = 1});
    HttpRequest request;
    request.method = "GET";
    request.target = "/api/trends";
    request.headers = {{"host", "127.0.0.1:1"}};
    return json::parse(site.Answer(request).body);
  }

  json Rows(const std::string& sql) {
    collectors::ReadStore store(files_.path());
    json rows = json::array();
    for (const auto& row : store.Query(sql).rows) {
      json cells = json::array();
      for (const auto& value : row) {
        if (const auto* integer = std::get_if<int64_t>(&value)) {
          cells.push_back(*integer);
        } else if (const auto* text = std::get_if<std::string>(&value)) {
          cells.push_back(*text);
        } else {
          cells.push_back(nullptr);
        }
      }
      rows.push_back(cells);
    }
    return rows;
  }

  // Counters of a histogram with two buckets in one: size, latency, requests.
  void AddRequests(const std::vector<std::array<int64_t, 3>>& cells, const char* cause = "read",
                   std::optional<int64_t> operator_id = 0) {
    MeasurementBatch batch;
    batch.metrics.push_back(
        {"block_size_latency_count", "count", "counter", "ebpf", "CAP_BPF", "help"});
    int64_t next = 100;
    for (const auto& [size_log2, latency_log2, count] : cells) {
      collectors::MeasurementRow row;
      row.id = next++;
      row.metric = "block_size_latency_count";
      row.source = "ebpf";
      row.operator_id = operator_id;
      row.subject = "vda";
      row.cause = cause;
      row.bucket = 64 * size_log2 + latency_log2;
      batch.totals.push_back({row.id, 0, 0, 0, 0, static_cast<double>(count), {}});
      batch.definitions.push_back(std::move(row));
    }
    store_->Append(id_, {}, batch);
  }

  void AddStack(int64_t id, const std::string& folded, int64_t seconds) {
    MeasurementBatch batch;
    collectors::StackRow row;
    row.id = stacks_++;
    row.kind = "cpu";
    row.operator_id = 0;
    row.thread = "t";
    row.folded = "t;" + folded;
    row.samples = 99 * seconds;
    row.time_ns = seconds * 1'000'000'000;
    batch.stacks.push_back(row);
    store_->Append(id, {}, batch);
  }

  TemporaryStore files_;
  std::optional<collectors::RunStore> store_;
  analysis::RunView run_;
  int64_t id_ = 0, stacks_ = 1;
};

TEST_F(IoPages, LayoutSaysWhatAPassReadsAndIsWritten) {
  store_->SetLayout(id_, SmallLayout());
  const json answer = Ask("io_layout");
  EXPECT_EQ(
      answer["card"]["answer"],
      "A pass reads 50.0 % of the stripes' bytes in one read a stripe; 40.0 % of what it reads "
      "is not wanted.");
  EXPECT_EQ(answer["columns_card"]["answer"], "100 % of what it reads over lies in sparse.");
  EXPECT_EQ(answer["plan"]["stored_bytes"], 2000);
  EXPECT_EQ(answer["plan"]["wanted_bytes"], 600);
  EXPECT_EQ(answer["stripes"]["first"], json({0, 1}));
  EXPECT_EQ(answer["streams"]["offset"], json({3, 103, 403, 603}));
  EXPECT_EQ(answer["reads"]["bytes"], json({500}));
  EXPECT_EQ(answer["detailed"], json({0, 1}));
  const json second = Ask("io_layout", {{{"stripe", "1"}}, ""});
  EXPECT_EQ(second["stripe"], 1);
  EXPECT_EQ(second["streams"]["offset"][0], 1003);
  EXPECT_EQ(Ask("io_layout", {{{"stripe", "77"}}, ""})["stripe"], 1);
  EXPECT_THROW(Ask("io_layout", {{{"stripe", "x"}}, ""}), Error);
  // What is shown is what the query of the card gives.
  EXPECT_EQ(Rows(answer["card"]["sql"]).size(), 8u);
}

TEST_F(IoPages, BytesOfALayoutAreWantedReadOverOrSkipped) {
  store_->SetLayout(id_, SmallLayout());
  EXPECT_EQ(Rows("SELECT stored_bytes, wanted_bytes, over_read_bytes, skipped_bytes, reads_count, "
                 "known_stripes_count FROM layout_summary"),
            json({{2000, 600, 400, 1000, 2, 2}}));
  EXPECT_EQ(Rows("SELECT SUM(stored_bytes), SUM(wanted_bytes), SUM(over_read_bytes), "
                 "SUM(skipped_bytes) FROM layout_stream"),
            json({{2000, 600, 400, 1000}}));
  // Written again, it replaces what was there.
  collectors::LayoutRows unknown;
  unknown.reason = "The table is in a remote store.";
  store_->SetLayout(id_, unknown);
  EXPECT_EQ(Rows("SELECT reason, stripes_count, wanted_bytes FROM layout_summary"),
            json({{"The table is in a remote store.", nullptr, nullptr}}));
  EXPECT_EQ(Ask("io_layout")["card"]["empty"], "The table is in a remote store.");
  EXPECT_FALSE(Ask("io_layout").contains("streams"));
}

TEST_F(IoPages, ManyStripesAreDrawnTogetherAndNoByteIsLost) {
  collectors::LayoutRows layout = SmallLayout();
  layout.stripes.clear();
  layout.stripes_count = 5000;
  for (int64_t stripe = 0; stripe < 5000; ++stripe)
    layout.stripes.push_back({stripe, "part-0.dwrf", stripe, 10, 1, 1, 1, 4, 3, 1});
  store_->SetLayout(id_, layout);
  const json stripes = Ask("io_layout")["stripes"];
  EXPECT_LE(stripes["first"].size(), 400u);
  int64_t stored = 0, count = 0;
  for (size_t i = 0; i < stripes["first"].size(); ++i) {
    stored += stripes["stored"][i].get<int64_t>();
    count += stripes["count"][i].get<int64_t>();
  }
  EXPECT_EQ(stored, 50000);
  EXPECT_EQ(count, 5000);
}

TEST_F(IoPages, ARunWithoutALayoutSaysSo) {
  const json answer = Ask("io_layout");
  EXPECT_THAT(answer["card"]["empty"].get<std::string>(), HasSubstr("This run has none."));
  EXPECT_FALSE(answer.contains("plan"));
}

TEST_F(IoPages, RequestsAreSaidBySizeAndLatencyTogether) {
  // 300 of 4 KiB within 131 to 262 us, 10 of 1 MiB within 8.39 to 16.8 ms.
  AddRequests({{{12, 17, 300}, {20, 23, 10}}});
  const json answer = Ask("io_latency");
  EXPECT_EQ(answer["card"]["answer"],
            "310 reads of devices: half take less than 262 us; 3.2 % of them take 8.39 ms or "
            "more, most often of 1.00 MiB to 2.00 MiB.");
  const json& only = answer["histograms"][0];
  EXPECT_EQ(only["direction"], "read");
  EXPECT_EQ(only["size"], json({4096, 1048576}));
  EXPECT_EQ(only["count"], json({300, 10}));
  EXPECT_NEAR(only["latency"][1].get<double>(), 8.389e-3, 1e-5);
}

TEST_F(IoPages, FewRequestsHaveNoHundredth) {
  AddRequests({{{12, 17, 3}, {13, 19, 1}}}, "write");
  EXPECT_EQ(Ask("io_latency")["card"]["answer"],
            "4 write requests to devices: half take less than 262 us; the slowest take 524 us or "
            "more, most often of 8.00 KiB to 16.0 KiB.");
}

TEST_F(IoPages, RequestsThatWereNotTimedHaveAReason) {
  store_->SetProbe(id_, "block IO", "unavailable", "bpf() is not permitted", "run it as root");
  const json card = Ask("io_latency")["card"];
  EXPECT_THAT(card["empty"].get<std::string>(), HasSubstr("bpf() is not permitted"));
  EXPECT_FALSE(card.contains("answer"));
}

TEST_F(IoPages, RequestsOfOthersAreNotThoseOfTheRun) {
  AddRequests({{{12, 17, 300}, {20, 23, 10}}}, "read", std::nullopt);
  const json answer = Ask("io_latency");
  EXPECT_EQ(answer["card"]["empty"],
            "No request of an operator was seen at a block device: what was read came from memory "
            "or over a network. Other programs made 310 requests.");
  EXPECT_TRUE(answer["histograms"].empty());
}

TEST_F(IoPages, ASheetOfAFewStripesSaysSo) {
  collectors::LayoutRows layout = SmallLayout();
  layout.stripes_count = 24'000;
  layout.files_count = 100;
  layout.file_bytes = 5'000'000;
  // As where streams of one fate are stored as one row.
  for (auto& piece : layout.streams) piece.feature_key.clear();
  store_->SetLayout(id_, layout);
  const json sheet = Ask("characterization");
  std::map<std::string, json> figures, cards;
  for (const json& part : sheet["parts"]) {
    cards[part["key"]] = part["card"];
    for (const json& each : part["figures"]) figures[each["key"]] = each;
  }
  EXPECT_EQ(figures["all_partitions_bytes"]["here"]["value"], 5'000'000);
  EXPECT_EQ(figures["partitions_count"]["here"]["value"], 100);
  for (const char* key : {"rows_count", "stripe_rows_count"})
    EXPECT_EQ(figures[key]["here"]["reason"], "2 of 24000 stripes are known");
  EXPECT_THAT(cards["dataset"]["answer"].get<std::string>(), HasSubstr("in 100 files."));
  EXPECT_NEAR(figures["features_used_ratio"]["here"]["value"].get<double>(), 1.0 / 3, 1e-9);
  for (const char* key : {"features_used_ratio", "bytes_used_ratio", "coalesced_p50_bytes"}) {
    EXPECT_THAT(figures[key]["told_by"].get<std::string>(),
                HasSubstr("of the first 2 of 24000 stripes"));
  }
  EXPECT_THAT(cards["selectivity"].dump(), HasSubstr("of the first 2 of 24000 stripes"));
  EXPECT_THAT(Ask("io_layout")["card"]["answer"].get<std::string>(),
              HasSubstr("of the bytes of the first 2 of 24000 stripes"));
  layout.stored_features_count = layout.stored_features_bytes = 0;
  store_->SetLayout(id_, layout);
  const json characterization = Ask("characterization");
  for (const json& part : characterization["parts"]) {
    for (const json& each : part["figures"]) {
      if (each["key"] == "features_used_ratio") {
        EXPECT_EQ(each["here"]["reason"], "the table has no flattened map");
      }
    }
  }
}

TEST_F(IoPages, TheSheetKnowsWhatTheRunTellsAndSaysWhatItDoesNot) {
  const json without = Ask("characterization");
  EXPECT_THAT(without["card"]["answer"].get<std::string>(), testing::EndsWith("."));
  store_->SetLayout(id_, SmallLayout());
  const json with = Ask("characterization");
  const auto figure = [](const json& sheet, const std::string& key) {
    for (const json& part : sheet["parts"]) {
      for (const json& each : part["figures"]) {
        if (each["key"] == key) return each;
      }
    }
    return json();
  };
  // Nothing that the run does not tell is a number, 0 least of all.
  for (const char* key : {"all_partitions_bytes", "rows_count", "coalesced_p50_bytes",
                          "features_used_ratio", "stored_sparse_features", "io_p50_bytes"}) {
    SCOPED_TRACE(key);
    const json unknown = figure(without, key);
    ASSERT_TRUE(unknown.is_object());
    EXPECT_FALSE(unknown["here"].contains("value"));
    EXPECT_FALSE(unknown["here"]["reason"].get<std::string>().empty());
  }
  EXPECT_EQ(figure(with, "all_partitions_bytes")["here"]["value"], 2300);
  EXPECT_EQ(figure(with, "rows_count")["here"]["value"], 100);
  EXPECT_EQ(figure(with, "coalesced_p50_bytes")["here"]["value"], 500);
  EXPECT_NEAR(figure(with, "features_used_ratio")["here"]["value"].get<double>(), 1.0 / 3, 1e-9);
  EXPECT_NEAR(figure(with, "bytes_used_ratio")["here"]["value"].get<double>(), 300.0 / 900, 1e-9);
  EXPECT_TRUE(figure(with, "worker_rows_per_s")["here"]["value"].is_number());
  EXPECT_TRUE(figure(with, "worker_rows_per_s")["published"].is_object());
  for (const json& part : with["parts"]) {
    SCOPED_TRACE(part["key"]);
    const json& card = part["card"];
    EXPECT_TRUE(card["question"].get<std::string>().ends_with("?"));
    EXPECT_NE(card.contains("answer"), card.contains("empty"));
    EXPECT_TRUE(card.value(card.contains("answer") ? "answer" : "empty", "").ends_with("."));
  }
}

TEST_F(IoPages, StacksOfTwoRunsAreComparedByTheRow) {
  const int64_t other = StoreRun(*store_, run_, "before");
  AddStack(id_, "main;decode", 4);
  AddStack(id_, "main;same", 2);
  AddStack(other, "main;decode", 2);
  AddStack(other, "main;same", 2);
  AddStack(other, "main;gone", 1);
  const json answer = Ask("stacks_diff", {{{"with", std::to_string(other)}}, ""});
  EXPECT_EQ(answer["of"], "1000 rows");
  const double rows = static_cast<double>(run_.steps.rows_count);
  EXPECT_NEAR(answer["now_seconds"].get<double>(), 6 * 1000 / rows, 6 / rows);
  EXPECT_NEAR(answer["before_seconds"].get<double>(), 5 * 1000 / rows, 5 / rows);
  EXPECT_THAT(answer["card"]["question"].get<std::string>(), HasSubstr("before"));
  EXPECT_THAT(answer["card"]["answer"].get<std::string>(), HasSubstr("more"));
  // stage, operator, main, then its three functions: the longest first, the one that is gone last.
  const json* node = &answer["roots"][0];
  for (int depth = 0; depth < 2; ++depth) node = &(*node)[3][0];
  const json& functions = (*node)[3];
  ASSERT_EQ(functions.size(), 3u);
  const json& frames = answer["frames"];
  EXPECT_EQ(frames[functions[0][0].get<size_t>()], "decode");
  EXPECT_EQ(frames[functions[2][0].get<size_t>()], "gone");
  EXPECT_EQ(functions[2][1], 0);
  EXPECT_GT(functions[2][2].get<double>(), 0);
  // Turned round, what was more is less, and there is no other difference.
  const json back = Ask("stacks_diff", {{{"with", std::to_string(id_)}}, ""}, other);
  EXPECT_EQ(back["now_seconds"], answer["before_seconds"]);
  EXPECT_EQ(back["before_seconds"], answer["now_seconds"]);
}

TEST_F(IoPages, RunsOfOneNameAreToldApart) {
  const int64_t other = StoreRun(*store_, run_, "io");
  AddStack(id_, "main;decode", 4);
  AddStack(other, "main;decode", 2);
  const json card = Ask("stacks_diff", {{{"with", std::to_string(other)}}, ""})["card"];
  const std::string name = "io (run " + std::to_string(other) + ")";
  EXPECT_THAT(card["question"].get<std::string>(), HasSubstr(name));
  EXPECT_THAT(card["answer"].get<std::string>(), HasSubstr(name));
}

TEST_F(IoPages, StacksAreComparedWithARunThatIsThere) {
  EXPECT_THROW(Ask("stacks_diff", {{{"with", "999"}}, ""}), Error);
  EXPECT_THROW(Ask("stacks_diff", {{{"with", "1 OR 1"}}, ""}), Error);
  EXPECT_THROW(Ask("stacks_diff", {{{"with", "1"}, {"kind", "x"}}, ""}), Error);
  EXPECT_THAT(Ask("stacks_diff")["card"]["empty"].get<std::string>(), HasSubstr("No stack"));
}

TEST_F(IoPages, ARateThatFallsAmongFewOrUnlikeRunsCannotBeTold) {
  const auto add = [&](double slower) {
    analysis::SimulatedPipeline pipeline = IoPipeline();
    pipeline.stages[0].operators[0].blocked_s *= slower;
    StoreRun(*store_, analysis::Record(pipeline, 8, 3), "nightly");
  };
  const auto text = [&] {
    Site site(files_.path(), "headrace", "", {.port = 1});
    HttpRequest request;
    request.method = "GET";
    request.target = "/api/trends";
    request.headers = {{"host", "127.0.0.1:1"}};
    return json::parse(site.Answer(request).body)["trends"][0]["text"].get<std::string>();
  };
  add(3);
  add(10);
  EXPECT_THAT(text(), testing::MatchesRegex(
                          ".*less than the median of the 2 before it. Cannot tell whether that is "
                          "a change: it takes 4 runs before it."));
  add(1);
  add(3);
  add(9);
  EXPECT_THAT(text(), testing::MatchesRegex(
                          ".*than the median of the 5 before it. Cannot tell whether that is a "
                          "change: they are .* to .*"));
  add(200);
  EXPECT_THAT(text(), testing::MatchesRegex(
                          ".*in the last run: .* less than the median of the 6 before it."))
      << "far beyond all that was seen";
}

TEST_F(IoPages, WhereThereIsNoTrendItIsSaidWhyAndWhatToDo) {
  const json one = Trends();
  EXPECT_TRUE(one["trends"].empty());
  EXPECT_THAT(one["answer"].get<std::string>(),
              testing::AllOf(HasSubstr("takes 3 finished runs"), HasSubstr("there is 1 run of")));
  EXPECT_THAT(one["command"].get<std::string>(), HasSubstr("headrace run "));
  StoreRun(*store_, analysis::Record(IoPipeline(), 8, 3), "again");
  EXPECT_THAT(Trends()["answer"].get<std::string>(), HasSubstr("there are 2 runs of"));
  StoreRun(*store_, analysis::Record(IoPipeline(), 8, 3), "third");
  const json three = Trends();
  EXPECT_EQ(three["trends"].size(), 1u);
  EXPECT_THAT(three["answer"].get<std::string>(), testing::Not(HasSubstr("takes 3")));
  EXPECT_EQ(three["command"], "");
  for (const int64_t run : {1, 2, 3}) store_->RemoveRun(run);
  const json none = Trends();
  EXPECT_THAT(none["answer"].get<std::string>(), HasSubstr("There is no finished run"));
  EXPECT_EQ(none["command"], "headrace demo");
}

TEST_F(IoPages, ARateThatFallsIsSaid) {
  const auto add = [&](const std::string& name, double slower) {
    analysis::SimulatedPipeline pipeline = IoPipeline();
    pipeline.stages[0].operators[0].blocked_s *= slower;
    StoreRun(*store_, analysis::Record(pipeline, 8, 3), name);
  };
  for (int i = 0; i < 4; ++i) add("nightly", 1);
  const json steady = Trends();
  ASSERT_EQ(steady["trends"].size(), 1u);
  EXPECT_EQ(steady["trends"][0]["runs"].size(), 5u);
  EXPECT_THAT(steady["trends"][0]["text"].get<std::string>(),
              HasSubstr("in the last run, as in the 4 before it."));
  add("nightly", 2);
  EXPECT_THAT(Trends()["trends"][0]["text"].get<std::string>(),
              testing::MatchesRegex(".*in the last run: .* less than the median of the 5 before "
                                    "it\\."));
}

}  // namespace
}  // namespace headrace::dashboards
