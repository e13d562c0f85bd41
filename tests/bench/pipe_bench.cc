// Rows per second of fetch + decompress + decode + extract on one core with a warm page cache,
// against the prototype's read + zstd + decode of a stripe of the same shape, in one run:
// interleaved repeats, ratio of each pair, median and spread.
//
//   taskset -c 1 pipe_bench [TABLE] [--repeats N] [--level N] [--keys all]
//
// TABLE is a folder of part-*.dwrf with its pipeline.toml (its [projection.maps] is read; with
// --keys all every feature of the first stripe). Without TABLE a temporary one of the prototype's
// own distributions is written. The rival's shape: as many sparse features as projected ones with
// lists (weighted ones count as sparse: their weights are extra work for ours), dense likewise,
// mean coverage, mean list length and rows per stripe as measured here; --level is its zstd level.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/cpu.h"
#include "base/error.h"
#include "tests/bench/bench_table.h"
#include "tests/bench/prototype_pipe.h"
#include "tests/bench/prototype_table.h"

namespace headrace::reader::dwrf {
namespace {

namespace fs = std::filesystem;
using bench::OpenTable;
using bench::Table;

struct OurTimes {
  std::array<double, 5> steps{};  // plan, fetch, decompress, decode, extract
  uint64_t rows = 0, wanted_bytes = 0, read_bytes = 0, unpacked_bytes = 0;
  uint64_t ids = 0, lists = 0, present = 0, dense = 0, sparse = 0, stripes = 0;
  double total() const {
    double sum = 0;
    for (const double step : steps) sum += step;
    return sum;
  }
};

void Count(const FlatMapBatch& batch, OurTimes* times) {
  times->sparse = batch.sparse.size();
  times->dense = batch.dense.size();
  for (const SparseColumn& column : batch.sparse) {
    times->ids += column.values.size();
    times->lists += column.present.count;
    times->present += column.present.count;
  }
  for (const DenseColumn& column : batch.dense) times->present += column.present.count;
}

OurTimes RunOurs(const Table& table) {
  OurTimes times;
  for (const auto& file : table.files) {
    for (size_t i = 0; i < file->num_stripes(); ++i) {
      const std::shared_ptr<const Stripe> stripe = file->ReadStripe(i);
      std::array<double, 6> at{};
      at[0] = prototype::Now();
      StripePlan plan = MakePlan(*file, stripe, table.projection);
      at[1] = prototype::Now();
      FetchedStripe fetched = Fetch(std::move(plan), file->source());
      at[2] = prototype::Now();
      times.wanted_bytes += fetched.wanted_bytes;
      times.read_bytes += fetched.read_bytes;
      UnpackedStripe unpacked = Decompress(std::move(fetched));
      at[3] = prototype::Now();
      times.unpacked_bytes += unpacked.unpacked_bytes;
      DecodedStripe decoded = Decode(std::move(unpacked));
      at[4] = prototype::Now();
      const FlatMapBatch batch = Extract(std::move(decoded));
      at[5] = prototype::Now();
      for (size_t k = 0; k < 5; ++k) times.steps[k] += at[k + 1] - at[k];
      times.rows += batch.rows;
      ++times.stripes;
      Count(batch, &times);
    }
  }
  return times;
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

struct Arguments {
  std::string table;
  int repeats = 9, level = 1;
  bool every_key = false;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&] {
      if (++i >= argc) throw Error(ExitCode::kUsage, word + " needs a value");
      return std::string(argv[i]);
    };
    if (word == "--repeats") {
      arguments.repeats = std::max(1, std::atoi(next().c_str()));
    } else if (word == "--level") {
      arguments.level = std::atoi(next().c_str());
    } else if (word == "--keys") {
      arguments.every_key = next() == "all";
    } else {
      arguments.table = word;
    }
  }
  return arguments;
}

prototype::Shape ShapeOf(const OurTimes& ours, int level) {
  prototype::Shape shape;
  shape.sparse = static_cast<int>(ours.sparse);
  shape.dense = static_cast<int>(ours.dense);
  shape.mean_length =
      ours.lists == 0 ? 1 : static_cast<double>(ours.ids) / static_cast<double>(ours.lists);
  shape.coverage = static_cast<double>(ours.present) /
                   static_cast<double>(ours.rows * (ours.sparse + ours.dense));
  shape.rows = std::max<size_t>(16, ours.rows / ours.stripes / 16 * 16);
  shape.level = level;
  return shape;
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  if (BestInstructionSet() != InstructionSet::kAvx512) {
    std::fprintf(stderr,
                 "pipe_bench: skipped: the prototype needs AVX-512 VBMI2, which this machine lacks "
                 "or HEADRACE_ISA forbids\n");
    return 0;
  }
  fs::path folder = arguments.table, own;
  if (folder.empty()) {
    own = fs::temp_directory_path() / fmt::format("pipe_bench.{}", getpid());
    fs::create_directory(own);
    bench::WritePrototypeTable(prototype::Shape(), 8, {own / "part-00000.dwrf"}, {{}});
    folder = own;
  }
  const Table table = OpenTable(folder, arguments.every_key);
  const OurTimes shape_of = RunOurs(table);  // also warms the page cache
  prototype::Pipe rival(ShapeOf(shape_of, arguments.level));
  const prototype::Shape& shape = rival.shape();
  const auto rows = static_cast<double>(shape_of.rows),
             rival_rows = static_cast<double>(shape.rows);
  fmt::print(
      "table       {} rows, {} stripes of {}; {} sparse and {} dense features projected, coverage "
      "{:.3f}, mean length {:.2f}\n",
      shape_of.rows, shape_of.stripes, shape.rows, shape.sparse, shape.dense, shape.coverage,
      shape.mean_length);
  fmt::print(
      "ours        {:.0f} stored bytes/row ({:.2f}x read), {:.0f} unpacked, {:.1f} ids/row\n",
      static_cast<double>(shape_of.wanted_bytes) / rows,
      static_cast<double>(shape_of.read_bytes) / static_cast<double>(shape_of.wanted_bytes),
      static_cast<double>(shape_of.unpacked_bytes) / rows,
      static_cast<double>(shape_of.ids) / rows);
  fmt::print(
      "prototype   {:.0f} stored bytes/row, {:.0f} unpacked, {:.1f} ids/row, zstd level {}\n",
      static_cast<double>(rival.stored_bytes()) / rival_rows,
      static_cast<double>(rival.raw_bytes()) / rival_rows,
      static_cast<double>(rival.ids()) / rival_rows, shape.level);
  prototype::Times warm;
  if (!rival.Run(&warm))
    throw Error(ExitCode::kFailure, "the prototype decoded a wrong number of ids");

  std::vector<double> ratios, our_rates, rival_rates;
  std::array<std::vector<double>, 5> our_steps;
  std::array<std::vector<double>, 3> rival_steps;
  const int passes = static_cast<int>(std::max<uint64_t>(1, shape_of.stripes));
  for (int repeat = 0; repeat < arguments.repeats; ++repeat) {
    OurTimes ours;
    prototype::Times theirs;
    const auto run_rival = [&] {
      for (int pass = 0; pass < passes; ++pass) rival.Run(&theirs);
    };
    // Which goes first alternates, so that drift falls on both.
    if (repeat % 2 == 0) run_rival();
    ours = RunOurs(table);
    if (repeat % 2 != 0) run_rival();
    our_rates.push_back(rows / ours.total());
    rival_rates.push_back(rival_rows * passes / theirs.total());
    ratios.push_back(our_rates.back() / rival_rates.back());
    for (size_t k = 0; k < 5; ++k) our_steps[k].push_back(ours.steps[k] / rows * 1e9);
    for (size_t k = 0; k < 3; ++k)
      rival_steps[k].push_back((k == 0   ? theirs.read
                                : k == 1 ? theirs.zstd
                                         : theirs.decode) /
                               (rival_rows * passes) * 1e9);
  }
  fmt::print(
      "ours        {:.0f} rows/s; ns/row: plan {:.0f}, fetch {:.0f}, decompress {:.0f}, decode "
      "{:.0f}, extract {:.0f}\n",
      Quantile(our_rates, 0.5), Quantile(our_steps[0], 0.5), Quantile(our_steps[1], 0.5),
      Quantile(our_steps[2], 0.5), Quantile(our_steps[3], 0.5), Quantile(our_steps[4], 0.5));
  fmt::print("prototype   {:.0f} rows/s; ns/row: read {:.0f}, zstd {:.0f}, decode {:.0f}\n",
             Quantile(rival_rates, 0.5), Quantile(rival_steps[0], 0.5),
             Quantile(rival_steps[1], 0.5), Quantile(rival_steps[2], 0.5));
  fmt::print("ratio       {:.3f} median of {} pairs, {:.3f} to {:.3f} (10th to 90th percentile)\n",
             Quantile(ratios, 0.5), ratios.size(), Quantile(ratios, 0.1), Quantile(ratios, 0.9));
  if (!own.empty()) fs::remove_all(own);
  return 0;
}

}  // namespace
}  // namespace headrace::reader::dwrf

int main(int argc, char** argv) {
  try {
    return headrace::reader::dwrf::Main(argc, argv);
  } catch (const headrace::Error& error) {
    std::fprintf(stderr, "pipe_bench: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
