// Mistakes in a pipeline file are reported with file, line, column and the nearest valid name.
#include "reader/pipeline/spec.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "reader/pipeline/gap.h"

namespace headrace::reader {
namespace {

constexpr const char* kSmall = R"(pipeline = { name = "small" }
source = { synthetic = { elements = 10 } }
consumer = { step = "1ms" }
[[stage]]
name = "parse"
operators = [{ spin = "2ms" }]
)";

std::string ErrorOf(const std::string& text, const Settings& settings = {}) {
  try {
    ParsePipeline(text, "p.toml", "/", settings);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "accepted";
}

std::string With(const std::string& from, const std::string& to) {
  std::string text = kSmall;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(PipelineSpec, MistakesNamePlaceAndNearestName) {
  const struct {
    const char *name, *from, *to, *expected;
  } cases[] = {
      {"syntax", "name = \"parse\"", "name = ", "p.toml:5:"},
      {"unknown operator", "spin", "spinn", "unknown operator 'spinn', did you mean 'spin'?"},
      {"unknown plain operator", "{ spin = \"2ms\" }", "\"fecth\"",
       "p.toml:6:14: unknown operator 'fecth', did you mean 'fetch'?"},
      {"cost missing", "{ spin = \"2ms\" }", "\"spin\"", "needs a cost"},
      {"bad duration", "\"2ms\"", "\"2 parsecs\"", "p.toml:6:"},
      {"number for duration", "\"2ms\"", "2", "expected a duration"},
      {"unknown section",
       "consumer =", "consumr =", "unknown key 'consumr' in the file, did you mean 'consumer'?"},
      {"unknown stage key", "name = \"parse\"", "name = \"parse\"\nparalelism = 2",
       "did you mean 'parallelism'?"},
      {"zero threads", "name = \"parse\"", "name = \"parse\"\nparallelism = 0",
       "must be from 1 to 256"},
      {"text for number", "name = \"parse\"", "name = \"parse\"\nqueue = \"four\"",
       "expected a whole number for queue"},
      {"duplicate stage", "[[stage]]",
       "[[stage]]\nname = \"parse\"\noperators = [{ spin = \"1ms\" }]\n[[stage]]",
       "the name 'parse' is taken"},
      {"table operator on synthetic", "{ spin = \"2ms\" }", "\"fetch\"",
       "a synthetic source has no data"},
      {"no source", "source = { synthetic = { elements = 10 } }", "", "needs [source]"},
      {"bad order", "name = \"small\"", "name = \"small\", order = \"random\"",
       "order is \"any\" or \"file\""},
      {"bad layout", "name = \"small\"", "name = \"small\", layout = \"drect\"",
       "layout is \"direct\" or \"flatmap\", got \"drect\", did you mean 'direct'?"},
      {"rowmap as layout", "name = \"small\"", "name = \"small\", layout = \"rowmap\"",
       "rowmap is an operator of a stage"},
      {"bad dictionary", "name = \"small\"", "name = \"small\", dictionary = \"alway\"",
       "dictionary is \"auto\", \"off\" or \"always\", got \"alway\", did you mean 'always'?"},
      {"number for dictionary", "name = \"small\"", "name = \"small\", dictionary = 1",
       "dictionary"},
      {"bad memory", "name = \"small\"", "name = \"small\", memory = \"much\"", "memory: "},
      {"bad key for memory", "name = \"small\"", "name = \"small\", memroy = \"1GiB\"",
       "did you mean 'memory'?"},
      {"bad huge pages", "name = \"small\"", "name = \"small\", huge_pages = 2",
       "expected true or false for huge_pages"},
      {"rate missing", "spin = \"2ms\"", "read = \"1MiB\"", "read needs a rate"},
      {"two costs", "spin = \"2ms\"", "spin = \"2ms\", sleep = \"1ms\"", "an operator has one of"},
      {"parallelism above its limit", "name = \"parse\"",
       "name = \"parse\"\nparallelism = 3\nmax_parallelism = 2", "exceeds max_parallelism"},
  };
  EXPECT_EQ(ErrorOf(kSmall), "accepted");
  for (const auto& c : cases) {
    const std::string got = ErrorOf(With(c.from, c.to));
    EXPECT_NE(got.find(c.expected), std::string::npos) << c.name << ": " << got;
    EXPECT_EQ(got.find('\n'), std::string::npos) << c.name << " is more than one line";
  }
}

// The parser of TOML would end the process.
TEST(PipelineSpec, KeysOfManyPartsAreRefused) {
  std::string deep;
  for (int i = 0; i < 200000; ++i) deep += "a.";
  const std::string got = ErrorOf(kSmall + deep + "b = 1\n");
  EXPECT_NE(got.find("p.toml:7: a key of more than 33 parts"), std::string::npos) << got;
  ErrorOf(kSmall, {{"consumer.step", "{" + deep + "b = 1}"}});  // taken as a text, or refused
}

TEST(PipelineSpec, BatchingKeysAndOperatorsNeedEachOther) {
  const std::string before = "[source]\ntable = \"t\"\n[[stage]]\nname = \"all\"\noperators = [",
                    read = "\"fetch\", \"decompress\", \"decode\", \"extract\"";
  const struct {
    const char *name, *keys, *operators, *expected;
  } cases[] = {
      {"all", "worker_rows = 8, shuffle_rows = 100, prefetch = 3",
       ", \"shuffle\", \"batch\", \"tensorize\", \"rebatch\"", "accepted"},
      {"no rebatch", "worker_rows = 8", ", \"batch\", \"tensorize\"",
       "worker_rows is for the operator rebatch"},
      {"no batch", "worker_rows = 8", ", \"tensorize\", \"rebatch\"",
       "worker_rows is what the operator batch makes"},
      {"larger workers", "worker_rows = 9, batch_rows = 8",
       ", \"batch\", \"tensorize\", \"rebatch\"", "worker_rows 9 exceeds batch_rows 8"},
      {"no shuffle", "shuffle_rows = 8", ", \"batch\"", "shuffle_rows is for the operator shuffle"},
      {"no window", "", ", \"shuffle\"", "needs pipeline.shuffle_rows"},
      {"window", "reorder_window = 2", "", "reorder_window is for order = \"file\""},
      {"rebatch first", "", ", \"batch\", \"rebatch\"", "rebatch cannot follow batch"},
      {"shuffle last", "shuffle_rows = 8", ", \"batch\", \"shuffle\"",
       "shuffle cannot follow batch"},
      {"mistyped key", "shufle_rows = 8", "", "did you mean 'shuffle_rows'?"},
      {"mistyped operator", "", ", \"rebach\"", "did you mean 'rebatch'?"},
  };
  for (const auto& c : cases) {
    const std::string got = ErrorOf(std::string("pipeline = { ") + c.keys + " }\n" + before + read +
                                    c.operators + "]\n");
    EXPECT_NE(got.find(c.expected), std::string::npos) << c.name << ": " << got;
  }
  const std::string rebatching = "pipeline = { order = \"file\" }\n" + before + read +
                                 ", \"batch\", \"tensorize\", \"rebatch\"]\nparallelism = 2\n";
  EXPECT_NE(ErrorOf(rebatching).find("has parallelism 1"), std::string::npos);
  const PipelineSpec spec =
      ParsePipeline(before + read + "]\n", "p.toml", "/",
                    {{"pipeline.prefetch", "9"}, {"source.fault.errors", "0.5"}});
  EXPECT_EQ(spec.stages.back().queue, 9u);
  EXPECT_EQ(spec.io.fault.error_ratio, 0.5);
}

TEST(PipelineSpec, OperatorsOfATableHaveOneOrder) {
  const auto with_operators = [](const std::string& operators) {
    return "source = { table = \"t\" }\n[[stage]]\nname = \"s\"\noperators = [" + operators + "]\n";
  };
  EXPECT_EQ(ErrorOf(with_operators(
                R"("fetch", "decompress", "decode", "extract", "batch", "tensorize")")),
            "accepted");
  EXPECT_EQ(ErrorOf(with_operators(
                R"("fetch", { sleep = "1ms" }, "decompress", "decode", "extract", "transform")")),
            "accepted");
  EXPECT_NE(ErrorOf(with_operators(R"("decode")")).find("the first operator of a table is fetch"),
            std::string::npos);
  EXPECT_NE(ErrorOf(with_operators(R"("fetch", "decode")")).find("decode cannot follow fetch"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf(with_operators(R"("fetch", "decompress", "decode", "extract", "tensorize", "batch")"))
          .find("batch cannot follow tensorize"),
      std::string::npos);
}

TEST(PipelineSpec, FiltersAreOnCheapColumnsOfTheProjection) {
  const auto with_filter = [](const std::string& filter) {
    return "source = { table = \"t\" }\n[projection]\nlabel = \"label\"\n"
           "maps = { dense = [3], sparse = [17] }\n[[filter]]\n" +
           filter +
           "\n[[stage]]\nname = \"s\"\noperators = [\"fetch\", \"decompress\", \"decode\", "
           "\"extract\"]\n";
  };
  const std::pair<const char*, const char*> cases[] = {
      {"feature = \"dense:3\"\nmin = 0.5\nabsent = \"keep\"", "accepted"},
      {"column = \"label\"\nin = [1]", "accepted"},
      {"column = \"lable\"\nin = [1]",
       "p.toml:6:10: the projection has no column 'lable', did you mean 'label'?"},
      {"feature = \"dense:4\"\nmax = 1", "the projection has no feature 'dense:4'"},
      {"feature = \"dense:3\"", "a filter has min, max or in"},
      {"feature = \"dense:3\"\ncolumn = \"label\"\nmin = 1", "either feature or column"},
      {"min = 1", "either feature or column"},
      {"feature = \"dense:3\"\nmin = 2\nmax = 1", "no value is at least min and at most max"},
      {"feature = \"dense:3\"\nmini = 2", "unknown key 'mini' in [[filter]], did you mean 'min'?"},
      {"feature = \"dense:3\"\nin = [\"a\"]", "expected a number for in"},
      {"feature = \"dense:3\"\nin = []", "in is empty"},
      {"feature = \"dense:3\"\nmin = nan", "min is nan"},
      {"feature = \"dense:3\"\nmin = 1\nabsent = \"no\"", "absent is \"drop\" or \"keep\""},
      {"column = \"label\"\nmin = 1\nabsent = \"keep\"", "absent is for features"},
  };
  for (const auto& [filter, expected] : cases) {
    const std::string got = ErrorOf(with_filter(filter));
    EXPECT_NE(got.find(expected), std::string::npos) << filter << ": " << got;
  }
  const PipelineSpec spec =
      ParsePipeline(with_filter("column = \"label\"\nin = [1, 2]"), "p.toml", "/");
  ASSERT_EQ(spec.filters.size(), 1u);
  EXPECT_TRUE(spec.filters[0].Passes(int64_t{2}));
  EXPECT_FALSE(spec.filters[0].Passes(1.5f));
}

TEST(PipelineSpec, NamesAreSetAsTexts) {
  EXPECT_EQ(ParsePipeline(kSmall, "p.toml", "/", {{"pipeline.name", "2024"}}).name, "2024");
  const std::string table =
      "source = { table = \"t\" }\nprojection = { columns = [\"a\"] }\nstage = [{ name = \"s\", "
      "operators = [\"fetch\", \"decompress\", \"decode\", \"extract\"] }]\n";
  EXPECT_EQ(ParsePipeline(table, "p.toml", "/", {{"source.table", "7"}}).table, "/7");
  const PipelineSpec spec = ParsePipeline(table, "p.toml", "/", {{"projection.label", "a"}});
  EXPECT_EQ(spec.label, "a");
  EXPECT_EQ(spec.projection.columns, std::vector<std::string>{"a"});
  EXPECT_NE(ErrorOf(table, {{"projection.lable", "a"}}).find("did you mean 'label'?"),
            std::string::npos);
  EXPECT_NE(ErrorOf(table, {{"projection.columns", "a"}}).find("columns is a list of names"),
            std::string::npos);
}

TEST(PipelineSpec, TheSettingThatIsWrongIsNamedNotOneThatIsNeeded) {
  const std::string text =
      "source = { table = \"t\" }\nprojection = { columns = [\"a\"] }\nstage = [{ name = \"s\", "
      "operators = [\"fetch\", \"decompress\", \"decode\", \"extract\", \"shuffle\", \"batch\"] "
      "}]\n";
  const std::string got = ErrorOf(
      text,
      {{"pipeline.seed", "3"}, {"pipeline.reorder_window", "5"}, {"pipeline.shuffle_rows", "10"}});
  EXPECT_NE(got.find("setting 'pipeline.reorder_window=5'"), std::string::npos) << got;
  EXPECT_NE(got.find("reorder_window is for order"), std::string::npos) << got;
  EXPECT_NE(ErrorOf(kSmall, {{"pipeline.seed", "-1"}, {"source.epochs", "x"}}).find("setting '"),
            std::string::npos);
}

TEST(PipelineSpec, WhatWouldDoNothingIsRefused) {
  const std::string table =
      "source = { table = \"t\" }\nprojection = { columns = [\"a\"] }\nstage = [{ name = \"s\", "
      "operators = [\"fetch\", \"decompress\", \"decode\"] }]\n";
  EXPECT_NE(ErrorOf(table + "[[filter]]\ncolumn = \"a\"\nmin = 1\n")
                .find("there are filters, but no stage has the operator extract"),
            std::string::npos);
  EXPECT_NE(ErrorOf(table, {{"source.tier.popularity", "log"}}).find("without a budget"),
            std::string::npos);
}

TEST(PipelineSpec, NumbersAreFinite) {
  for (const char* value : {"nan", "inf", "-inf"}) {
    const std::string text =
        std::string(
            "source = { synthetic = {} }\nstage = [{ name = \"s\", operators = [{ spin = "
            "\"1ms\", cv = ") +
        value + " }] }]\n";
    EXPECT_NE(ErrorOf(text).find("cv must be finite, got " + std::string(value)), std::string::npos)
        << ErrorOf(text);
  }
}

TEST(PipelineSpec, AnAutomaticGapKnowsHowManyReadsAreUnderWay) {
  const auto gap_of = [](const std::string& table, const std::string& more) {
    PipelineSpec spec = ParsePipeline(
        "source = { table = \"" + table + "\", coalesce_gap = \"auto\"" + more +
            ", throttle = { latency = \"10ms\", bandwidth = \"100MB/s\" } }\n"
            "stage = [{ name = \"s\", operators = [\"fetch\", \"decompress\", \"decode\", "
            "\"extract\"] }]\n",
        "p.toml", "/");
    ChooseGap(&spec);
    return spec.fetch.max_gap_bytes;
  };
  const uint64_t one = gap_of("/t", "");
  EXPECT_EQ(gap_of("/t", ", io = \"uring\", depth = 8"), gap_of("http://h/t/", ""));
  EXPECT_EQ(gap_of("http://h/t/", ", remote = { connections = 1 }"), one);
  EXPECT_LT(gap_of("http://h/t/", ""), one);
}

TEST(PipelineSpec, OutputsNeedTransformsToChooseFrom) {
  const std::string table =
      "source = { table = \"t\" }\nstage = [{ name = \"s\", operators = [\"fetch\", "
      "\"decompress\", \"decode\", \"extract\", \"transform\"] }]\n"
      "projection = { maps = { sparse = [17] }, outputs = [\"sparse:17\"] }\n";
  EXPECT_NE(ErrorOf(table).find("there is no [[transform]]"), std::string::npos) << ErrorOf(table);
  const std::string transform =
      "[[transform]]\nop = \"first_x\"\ninputs = [\"sparse:17\"]\ncount = 1\n";
  EXPECT_EQ(ErrorOf(table + transform), "accepted");
  EXPECT_EQ(ParsePipeline(table + transform, "p.toml", "/").outputs,
            std::vector<std::string>{"sparse:17"});
}

TEST(PipelineSpec, SettingsReplaceValues) {
  const PipelineSpec spec = ParsePipeline(kSmall, "p.toml", "/",
                                          {{"parse.parallelism", "3"},
                                           {"parse.queue", "9"},
                                           {"consumer.step", "7ms"},
                                           {"source.epochs", "0"}});
  EXPECT_EQ(spec.stages[0].parallelism, 3u);
  EXPECT_EQ(spec.stages[0].queue, 9u);
  EXPECT_EQ(spec.consumer.step.mean, 7e6);
  EXPECT_EQ(spec.epochs, 0u);
  EXPECT_NE(ErrorOf(kSmall, {{"prase.parallelism", "3"}}).find("did you mean 'parse'?"),
            std::string::npos);
  EXPECT_NE(ErrorOf(kSmall, {{"parse.paralelism", "3"}}).find("did you mean 'parallelism'?"),
            std::string::npos);
  EXPECT_NE(ErrorOf(kSmall, {{"parse.parallelism", "many"}}).find("expected a whole number"),
            std::string::npos);
  EXPECT_EQ(ParsePipeline(kSmall, "p.toml", "/", {{"source.synthetic.elements", "3"}})
                .synthetic->elements,
            3u);
  EXPECT_NE(ErrorOf(kSmall, {{"source.sinthetic.elements", "3"}}).find("no 'sinthetic'"),
            std::string::npos);
  EXPECT_NE(ErrorOf(kSmall, {{"source.epoch", "3"}}).find("did you mean 'epochs'?"),
            std::string::npos);
  EXPECT_THROW(ParseSetting("parse.parallelism"), Error);
}

TEST(PipelineSpec, KnowsEachSettingInForce) {
  const std::string text =
      "[pipeline]\nname = \"x\"\n"
      "[source]\ntable = \"t\"\nthrottle = { preset = \"disk\", latency = \"2ms\" }\n"
      "[projection]\nmaps = { sparse = [1] }\n"
      "[[transform]]\nop = \"clamp\"\noutput = \"o\"\ninputs = [\"sparse:1\"]\n"
      "[[cache]]\nafter = \"extract\"\n"
      "[[stage]]\nname = \"read\"\nparallelism = 2\noperators = [\"fetch\", \"decompress\", "
      "\"decode\", \"extract\", \"transform\"]\n";
  const std::map<std::string, std::string> in_force =
      ParsePipeline(text, "p.toml", "/", {{"source.epochs", "3"}, {"read.queue", "9"}}).in_force;
  const std::pair<const char*, const char*> expected[] = {
      {"source.epochs", "3"},                         // set
      {"source.table", "t"},                          // in the file, as written
      {"source.throttle.latency", "2ms"},             //
      {"source.throttle.bandwidth", "150000000B/s"},  // by the preset
      {"source.throttle.seek", "8000000ns"},          //
      {"source.throttle.iops", "0"},                  //
      {"source.io", "pread"},                         // defaults
      {"source.direct", "false"},
      {"source.depth", "16"},
      {"source.coalesce_gap", "131072"},
      {"source.coalesce_max", "8388608"},
      {"pipeline.order", "any"},
      {"pipeline.batch_rows", "512"},
      {"dedup.mode", "off"},  // ... of sections that are not there
      {"delivery.to", "inline"},
      {"consumer.step", "0"},
      {"read.parallelism", "2"},  // stages by name
      {"read.queue", "9"},
      {"cache.after", "extract"},
      {"cache.tier", "memory"},
      {"transform[0].op", "clamp"},
  };
  for (const auto& [key, value] : expected) {
    ASSERT_TRUE(in_force.contains(key)) << key;
    EXPECT_EQ(in_force.at(key), value) << key;
  }
  // What is in force can be set: the same pipeline comes of it.
  for (const auto& [key, value] : in_force) {
    if (key.find("[") != std::string::npos || key.ends_with(".name") || value.empty()) continue;
    EXPECT_EQ(ParsePipeline(text, "p.toml", "/", {{key, value}}).in_force.at(key), value) << key;
  }
}

TEST(PipelineSpec, StorageIsChosenByKeysAndSettings) {
  const std::string table =
      "source = { table = \"t\" }\n[[stage]]\nname = \"s\"\noperators = "
      "[\"fetch\", \"decompress\", \"decode\", \"extract\"]\n";
  const PipelineSpec plain = ParsePipeline(table, "p.toml", "/");
  EXPECT_EQ(plain.fetch.max_gap_bytes, FetchOptions().max_gap_bytes);
  EXPECT_FALSE(plain.throttle.enabled());
  EXPECT_FALSE(plain.gap_is_auto);
  const PipelineSpec set = ParsePipeline(table, "p.toml", "/",
                                         {{"source.io", "uring"},
                                          {"source.direct", "true"},
                                          {"source.depth", "4"},
                                          {"source.coalesce_gap", "auto"},
                                          {"source.throttle.preset", "disk"},
                                          {"source.throttle.latency", "2ms"}});
  EXPECT_EQ(set.io.io, IoMethod::kUring);
  EXPECT_TRUE(set.io.direct);
  EXPECT_EQ(set.io.depth, 4u);
  EXPECT_TRUE(set.gap_is_auto);
  EXPECT_EQ(set.throttle.bytes_per_second, 150e6);
  EXPECT_EQ(set.throttle.seek_ns, 8'000'000);
  EXPECT_EQ(set.throttle.latency_ns, 2'000'000);
  const struct {
    const char *knob, *value, *expected;
  } mistakes[] = {
      {"source.io", "mmap", "io is \"pread\" or \"uring\", got \"mmap\""},
      {"source.depth", "0", "depth must be from 1 to 256"},
      {"source.direct", "2", "expected true or false for direct"},
      {"source.throttle.preset", "dist", "unknown preset 'dist', did you mean 'disk'?"},
      {"source.throttle.bandwith", "1", "did you mean 'bandwidth'?"},
      {"source.throttle.bandwidth", "fast", "expected a rate"},
      {"source.throttle.iops", "-1", "iops must not be below 0"},
      {"source.device.ns_per_request", "5", "[source.device] has ns_per_request and ns_per_byte"},
      {"source.coalesce_gap", "wide", "coalesce_gap"},
      {"source.tier.policy", "lfu", "policy is \"lru\" or \"pinned\""},
      {"source.tier.folder", "fast", "a tier in a folder needs budget"},
      {"source.remote.stall", "0", "stall must be at least 1ms"},
      {"source.remote.endpoint", "127.0.0.1:9000", "an endpoint is http://HOST:PORT"},
      {"source.remote.conections", "1", "did you mean 'connections'?"},
  };
  for (const auto& c : mistakes) {
    const std::string got = ErrorOf(table, {{c.knob, c.value}});
    EXPECT_NE(got.find(c.expected), std::string::npos) << c.knob << ": " << got;
  }
}

TEST(PipelineSpec, TheAutomaticGapComesFromTheDevice) {
  const std::string table =
      "[source]\ntable = \"t\"\ncoalesce_gap = \"auto\"\n[[stage]]\nname = \"s\"\noperators = "
      "[\"fetch\", \"decompress\", \"decode\", \"extract\"]\n";
  const auto gap = [&](const Settings& settings) {
    PipelineSpec spec = ParsePipeline(table, "p.toml", "/", settings);
    ChooseGap(&spec);
    return spec.fetch.max_gap_bytes;
  };
  EXPECT_EQ(gap({{"source.throttle.preset", "disk"}}), 1'200'000u);
  const Settings remote = {{"source.throttle.preset", "remote"}};
  EXPECT_EQ(gap(remote), 20'200'000u);
  Settings deep = remote;
  deep.emplace_back("source.io", "uring");
  deep.emplace_back("source.depth", "10");
  EXPECT_EQ(gap(deep), 2'200'000u) << "ten reads share the latency";
  deep.emplace_back("source.device.ns_per_request", "500");
  deep.emplace_back("source.device.ns_per_byte", "0.5");
  EXPECT_EQ(gap(deep), 1000u) << "what is given goes before what is modelled";
  try {
    gap({});
    FAIL() << "a gap from nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("doctor --calibrate"), std::string::npos);
  }
}

TEST(PipelineSpec, ShippedPipelinesParseAndNameTheirBottleneck) {
  size_t seen = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(HEADRACE_SOURCE_DIR "/workloads/pipelines")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().string());
    const PipelineSpec spec = LoadPipeline(entry.path().string());
    EXPECT_GE(spec.stages.size(), 3u);
    EXPECT_LE(spec.stages.size(), 8u);
    EXPECT_EQ(spec.text.rfind("# bottleneck: ", 0), 0u);
    ++seen;
  }
  EXPECT_EQ(seen, 20u);
}

}  // namespace
}  // namespace headrace::reader
