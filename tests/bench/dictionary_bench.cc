// Transforms on dictionaries against transforms on ids: from unpacked streams to tensors, the same
// stripes in turns. A table of its own, with so many values for every entry of a feature's
// dictionary.
//
//   dictionary_bench [PAIRS]      21 pairs unless said otherwise; about a minute
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/file_writer.h"
#include "reader/dwrf/slices.h"
#include "reader/transforms/plan.h"
#include "tests/bench/paired.h"

namespace headrace::reader::dwrf {
namespace {

constexpr uint64_t kRows = 8192, kFeatures = 8, kLength = 26, kSliceRows = 512;

struct TestTable {
  std::shared_ptr<const FileReader> file;
  Projection projection;
  double bytes_per_id = 0;
};

// One stripe: each feature's ids are drawn from a pool of its own, of values / factor ids.
TestTable MakeTable(const std::string& folder, double factor, DictionaryUse use) {
  WriterOptions options;
  options.flat_maps = {"sparse"};
  options.stripe_rows = kRows;
  options.compression = CompressionKind::kNone;
  options.columns["sparse.value.element"].dictionary = use;
  std::mt19937_64 random(7);
  std::vector<std::vector<int64_t>> ids(kFeatures);
  const std::vector<uint32_t> lengths(kRows, kLength);
  FlatBatch batch;
  batch.rows = kRows;
  FlatColumn& column = batch.columns.emplace_back();
  column.name = "sparse";
  TestTable table;
  const auto pool = static_cast<uint64_t>(static_cast<double>(kRows * kLength) / factor);
  for (uint64_t f = 0; f < kFeatures; ++f) {
    std::vector<int64_t> entries(pool);
    for (int64_t& entry : entries) entry = static_cast<int64_t>(random() >> 24);
    // Every entry equally often, in random order.
    for (uint64_t i = 0; i < kRows * kLength; ++i) ids[f].push_back(entries[i % pool]);
    std::shuffle(ids[f].begin(), ids[f].end(), random);
    FlatFeature& feature = column.features.emplace_back();
    feature.key = MapKey::Of(static_cast<int64_t>(f));
    feature.lengths = lengths;
    feature.integers = ids[f];
    table.projection.features.push_back({"sparse", feature.key});
  }
  const std::string path = folder + "/t.dwrf";
  FileWriter writer(path, Schema::Parse("struct<sparse:map<int,list<bigint>>>"), options, true);
  writer.WriteFlat(batch);
  writer.Close();
  table.file = FileReader::Open(OpenFileSource(path));
  return table;
}

std::vector<TransformSpec> Chain(const std::string& chain) {
  std::vector<TransformSpec> specs;
  for (uint64_t f = 0; f < kFeatures; ++f) {
    const std::string name = fmt::format("sparse:{}", f);
    const auto add = [&](const char* op, ParamMap params) {
      TransformSpec& spec = specs.emplace_back();
      spec.op = op;
      spec.inputs = {name};
      spec.output = name;
      spec.params = std::move(params);
    };
    const auto salt = static_cast<int64_t>(f);
    if (chain != "map_id") add("sigrid_hash", {{"max", int64_t{1} << 20}, {"salt", salt}});
    if (chain != "hash") add("map_id", {{"size", 65536}});
    if (chain == "hash, map, mod") add("positive_modulus", {{"divisor", 100'003}});
  }
  return specs;
}

// Nanoseconds per id, from unpacked streams to tensors.
double RunOnce(const TestTable& table, const TransformPlan& plan, const DictionaryRequest* request,
               DictionaryFigures* figures) {
  UnpackedStripe unpacked = Decompress(Fetch(
      MakePlan(*table.file, table.file->ReadStripe(0), table.projection), table.file->source()));
  const int64_t begin = MonotonicNs();
  SliceOptions options;
  options.slice_rows = kSliceRows;
  options.dictionaries = request;
  DecodedStripe decoded = DecodeSlices(std::move(unpacked), options);
  for (uint64_t s = 0; s < decoded.slices.size(); ++s) {
    FlatMapBatch batch = ExtractSlice(&decoded, s);
    for (size_t i = 0; i < plan.size(); ++i) plan.Apply(i, batch, BestInstructionSet(), figures);
    plan.Finish(batch);
    TensorizeFigures copied;
    Tensorize(std::move(batch), "", &copied);
  }
  return static_cast<double>(MonotonicNs() - begin) /
         static_cast<double>(kRows * kLength * kFeatures);
}

void Compare(const TestTable& table, const std::string& what, const std::string& chain,
             DictionaryRequest request, int pairs) {
  const TransformPlan plan(Chain(chain), 1);
  request.features = plan.DictionaryInputs();
  for (auto& [name, least] : request.features) least = 1;  // also where it is said not to pay
  DictionaryFigures figures;
  const auto on = [&] { return RunOnce(table, plan, &request, &figures); };
  const auto off = [&] { return RunOnce(table, plan, nullptr, nullptr); };
  on();
  off();
  figures = {};
  const bench::Pairs times = bench::MeasurePairs(pairs, on, off);
  std::vector<double> gain;
  for (size_t i = 0; i < times.ours.size(); ++i) gain.push_back(times.rival[i] / times.ours[i]);
  const auto share =
      figures.ids == 0 ? std::string("looked up at once")
                       : fmt::format("{:.3f} entries an id", static_cast<double>(figures.entries) /
                                                                 static_cast<double>(figures.ids));
  fmt::print("{:<34} {:<15} on {:5.2f}  off {:5.2f} ns/id   gain {:.2f} ({:.2f} to {:.2f})   {}\n",
             what, chain, bench::Quantile(times.ours, 0.5), bench::Quantile(times.rival, 0.5),
             bench::Quantile(gain, 0.5), bench::Quantile(gain, 0.25), bench::Quantile(gain, 0.75),
             share);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 21;
  std::string pattern =
      (std::filesystem::temp_directory_path() / "dictionary_bench.XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  fmt::print(
      "{} features x {} rows x {} ids, slices of {} rows; medians of {} pairs, quartiles of the "
      "gain\n",
      kFeatures, kRows, kLength, kSliceRows, pairs);
  for (const double factor : {1.1, 1.5, 2.0, 4.0, 16.0, 64.0}) {
    const TestTable table = MakeTable(folder, factor, DictionaryUse::kAlways);
    for (const char* chain : {"hash", "map_id", "hash, map, mod"})
      Compare(table, fmt::format("{} values an entry", factor), chain, {}, pairs);
  }
  // One dictionary for all features, each of which uses a part of it.
  for (const double factor : {2.0, 16.0}) {
    const TestTable table = MakeTable(folder, factor, DictionaryUse::kShared);
    for (const bool always : {false, true})
      Compare(table, fmt::format("{} an entry, shared{}", factor, always ? ", always" : ""),
              "hash, map, mod", {{}, always}, pairs);
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace headrace::reader::dwrf

int main(int argc, char** argv) {
  return headrace::bench::Run("dictionary_bench", headrace::reader::dwrf::Main, argc, argv);
}
