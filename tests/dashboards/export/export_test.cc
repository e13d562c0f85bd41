// What holds for every format: it is written whatever the names, its size is known before, and it
// is listed.
#include "dashboards/export/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dashboards/export/exported_store.h"
#include "tests/dashboards/golden.h"

namespace headrace::dashboards {
namespace {

class Exports : public ExportedStore {};

TEST_F(Exports, EveryFormatIsWrittenWhateverTheNames) {
  const RecordedNames hostile = {kHostileName, kHostileName, kHostileName, kHostileName,
                                 kHostileName, kHostileName, kHostileName, kHostileName};
  const int64_t plain = Record(), other = Record(hostile);
  const auto& formats = Registry<ExportFormat>::Global().entries();
  EXPECT_GE(formats.size(), 10u);
  for (const auto& [name, format] : formats) {
    SCOPED_TRACE(name);
    EXPECT_GT(Exported(name, plain).size(), 100u);
    EXPECT_GT(Exported(name, other).size(), 100u);
    EXPECT_EQ(Exported(name, plain), Exported(name, plain)) << "the same run, the same bytes";
    EXPECT_FALSE(format.holds.empty());
    EXPECT_FALSE(format.opens.empty());
    EXPECT_TRUE(format.ending.starts_with("."));
    EXPECT_EQ(format.by_time, format.count_rows != nullptr)
        << "what can be cut by time can be large, and is estimated";
  }
}

// A store that somebody made by hand: numbers where texts are, and the ends of what numbers hold.
TEST_F(Exports, StrangeNumbersEndNoExport) {
  Record();
  {
    collectors::RunStore store(path_);
    collectors::Database& database = store.database();
    database.Execute("UPDATE intervals SET duration_ns = 9223372036854775807 WHERE start_ns = 0");
    database.Execute("UPDATE intervals SET duration_ns = -5 WHERE start_ns = 200000000");
    database.Execute("UPDATE operator_intervals SET busy_ns = -9223372036854775807 - 1");
    database.Execute("UPDATE measurement_intervals SET value = 9e999");
    database.Execute("UPDATE stacks SET time_ns = 9223372036854775807");
    database.Execute("UPDATE processes SET ended_ns = -9223372036854775807, started_ns = 5");
    database.Execute("UPDATE stages SET stage_index = 9223372036854775807");
    database.Execute("UPDATE runs SET started_realtime_ns = -7");
    database.Execute("UPDATE decisions SET observed_ns = -9223372036854775807, now_rate = 9e999");
  }
  for (const auto& [name, format] : Registry<ExportFormat>::Global().entries()) {
    SCOPED_TRACE(name);
    const std::string text = Exported(name);
    EXPECT_GT(text.size(), 100u);
    if (format.binary) continue;
    for (const char* none : {":inf", ":nan", " inf\n", " nan\n", ":-inf", " -inf\n"}) {
      EXPECT_EQ(text.find(none), std::string::npos) << none;
    }
  }
}

TEST_F(Exports, SizesAreKnownWithinAFifth) {
  const int64_t small = Record(), large = Record({}, 9'000);
  collectors::ReadStore store(path_);
  for (const auto& [name, format] : Registry<ExportFormat>::Global().entries()) {
    SCOPED_TRACE(name);
    for (const int64_t run : {small, large}) {
      ExportRequest request{store, run};
      if (format.by_view) request.view = "operator_interval";
      for (const bool part : {false, true}) {
        if (part && (!format.by_time || run == small)) continue;
        if (part) {
          request.since_ns = 1'000 * kWindow;
          request.until_ns = 7'000 * kWindow;
        }
        const auto size = static_cast<double>(Written(name, request).size());
        const auto estimate = static_cast<double>(EstimateExport(name, request));
        EXPECT_NEAR(estimate / size, 1, run == small ? 0 : 0.2) << size << " bytes";
      }
    }
  }
}

TEST_F(Exports, PiecesAreTheFile) {
  Record();
  collectors::ReadStore store(path_);
  const ExportRequest request{store, 1};
  std::string pieces;
  size_t count = 0;
  WriteExport("chrome", request, [&](std::string_view piece) {
    pieces += piece;
    ++count;
  });
  EXPECT_EQ(pieces, Exported("chrome"));
  EXPECT_LE(count, 1 + pieces.size() / (64 << 10));
}

TEST(ExportNames, OfFiles) {
  const struct {
    const char *file, *format;
  } cases[] = {{"run.pftrace", "perfetto"},
               {"a.trace.json", "chrome"},
               {"p.pb.gz", "pprof"},
               {"x/y.folded", "folded"},
               {"s.speedscope.json", "speedscope"},
               {"m.om", "openmetrics"},
               {"m.prom", "prometheus"},
               {"m.otlp", "otlp"},
               {"v.csv", "csv"},
               {"v.ndjson", "ndjson"},
               {"v.arrow", "arrow"},
               {"report.json", ""},
               {"", ""}};
  for (const auto& c : cases) EXPECT_EQ(FormatOfFile(c.file), c.format) << c.file;
}

TEST(ExportNames, AreListed) { ExpectGolden("export_list.txt", ListExports()); }

}  // namespace
}  // namespace headrace::dashboards
