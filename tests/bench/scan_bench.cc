// One side of the comparison with other readers (tests/bench/peers.py): scans a table's projected
// features into columns, on the calling thread, whenever it is told to.
//
//   scan_bench TABLE [--keys all|COLUMN[:N] [--keys-of TABLE]]   one line of JSON a command, until
//                                                                end of input: "scan" scans,
//                                                "open" opens the files anew first,
//                                                                "steps" says what each step takes
//                                                                of a row's time, "memcpy" copies
//                                                                64 MiB
//   scan_bench TABLE [--keys ...] --export FOLDER                writes the columns, for others to
//                                                                write files of them
//
// The projection is that of TABLE/pipeline.toml. --keys all: every feature; --keys sparse: those of
// one map; --keys sparse:20: its first 20. An ordinary map does not tell its keys: --keys-of names
// a flattened table that has the same. Weighted features are left out: files of other formats have
// no such type.
//
// --gap BYTES: holes up to this long are read over (default: that of a pipeline). --slices ROWS: as
// layout "direct" decodes, in slices of so many rows (default: whole stripes, as "flatmap" does;
// stripes with ordinary maps always are).
//
// FOLDER/manifest.json lists the stripes (rows) and columns; FOLDER/N.bin holds stripe N: of each
// column its presence (64-bit words, bit r of word r / 64), of a dense one a float a row, of a
// sparse one rows + 1 offsets of 32 bits, then its ids of 64 bits; every array begins at a multiple
// of 64 bytes.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "reader/dwrf/slices.h"
#include "tests/bench/bench_table.h"

namespace headrace::reader::dwrf {
namespace {

constexpr size_t kCopyBytes = 64 << 20;

struct Options {
  FetchOptions fetch;
  uint64_t slice_rows = 0;
};

// The batches of all stripes, one after the other.
template <class Visit>
void ForEachBatch(const bench::Table& table, const Options& options, const Visit& visit) {
  for (const auto& file : table.files) {
    for (size_t i = 0; i < file->num_stripes(); ++i) {
      UnpackedStripe unpacked = Decompress(Fetch(
          MakePlan(*file, file->ReadStripe(i), table.projection), file->source(), options.fetch));
      if (options.slice_rows == 0 || !unpacked.plan.maps.empty()) {
        visit(Extract(Decode(std::move(unpacked))));
        continue;
      }
      SliceOptions slices;
      slices.slice_rows = options.slice_rows;
      DecodedStripe decoded = DecodeSlices(std::move(unpacked), slices);
      for (uint64_t s = 0; s < decoded.slices.size(); ++s) visit(ExtractSlice(&decoded, s));
    }
  }
}

// `reopen`: what opening takes is counted as well.
void Scan(const bench::Table& opened, const Options& options, bool reopen) {
  uint64_t rows = 0, ids = 0, present = 0;
  const int64_t begin = MonotonicNs(), cpu_begin = ThreadCpuNs();
  bench::Table table = opened;
  if (reopen) {
    for (auto& file : table.files) file = FileReader::Open(OpenFileSource(file->source().name()));
  }
  ForEachBatch(table, options, [&](const FlatMapBatch& batch) {
    rows += batch.rows;
    for (const SparseColumn& column : batch.sparse) ids += column.values.size();
    for (const DenseColumn& column : batch.dense) present += column.present.count;
  });
  const double seconds = static_cast<double>(MonotonicNs() - begin) / 1e9;
  const double cpu_seconds = static_cast<double>(ThreadCpuNs() - cpu_begin) / 1e9;
  fmt::print(R"({{"seconds": {:.9f}, "cpu_seconds": {:.9f}, "rows": {}, "ids": {}, "floats": {}}})"
             "\n",
             seconds, cpu_seconds, rows, ids, present);
}

// What each step takes of a row's time, in ns, and the bytes it hands on.
void Steps(const bench::Table& table, const Options& options) {
  constexpr const char* kSteps[] = {"footer", "plan",    "fetch", "decompress",
                                    "decode", "extract", "drop"};
  int64_t times[std::size(kSteps)] = {};
  uint64_t rows = 0, read = 0, wanted = 0, unpacked_bytes = 0, batch_bytes = 0, footers = 0;
  for (const auto& file : table.files) {
    footers += file->tail().file_size - file->tail().footer_offset;
    for (size_t i = 0; i < file->num_stripes(); ++i) {
      footers += file->tail().footer.stripes(static_cast<int>(i)).footer_length();
      int64_t before = MonotonicNs();
      size_t step = 0;
      const auto done = [&] {
        const int64_t now = MonotonicNs();
        times[step++] += now - std::exchange(before, now);
      };
      const auto stripe = file->ReadStripe(i);
      done();
      StripePlan plan = MakePlan(*file, stripe, table.projection);
      done();
      FetchedStripe fetched = Fetch(std::move(plan), file->source(), options.fetch);
      read += fetched.read_bytes;
      wanted += fetched.wanted_bytes;
      done();
      UnpackedStripe unpacked = Decompress(std::move(fetched));
      unpacked_bytes += unpacked.unpacked_bytes;
      done();
      SliceOptions slices;
      slices.slice_rows = options.slice_rows;
      const bool sliced = options.slice_rows > 0 && unpacked.plan.maps.empty();
      DecodedStripe decoded =
          sliced ? DecodeSlices(std::move(unpacked), slices) : Decode(std::move(unpacked));
      done();
      const size_t num_slices = sliced ? decoded.slices.size() : 1;
      for (size_t s = 0; s < num_slices; ++s) {
        step = 5;
        std::optional<FlatMapBatch> batch =
            sliced ? ExtractSlice(&decoded, s) : Extract(std::move(decoded));
        done();
        rows += batch->rows;
        batch_bytes += batch->MemoryBytes();
        before = MonotonicNs();
        batch.reset();
        done();
      }
    }
  }
  fmt::print("{{");
  for (size_t i = 0; i < std::size(kSteps); ++i)
    fmt::print("\"{}\": {}, ", kSteps[i], times[i] / static_cast<int64_t>(rows));
  fmt::print(
      "\"read_bytes\": {}, \"wanted_bytes\": {}, \"footer_bytes\": {}, \"unpacked_bytes\": {}, "
      "\"batch_bytes\": {}}}\n",
      read / rows, wanted / rows, footers / rows, unpacked_bytes / rows, batch_bytes / rows);
}

void Copy() {
  static std::vector<char> from(kCopyBytes, 1), to(kCopyBytes, 2);
  const int64_t begin = MonotonicNs();
  std::memcpy(to.data(), from.data(), kCopyBytes);
  fmt::print(R"({{"seconds": {:.9f}, "bytes": {}}})"
             "\n",
             static_cast<double>(MonotonicNs() - begin) / 1e9, kCopyBytes);
}

void Serve(const bench::Table& table, const Options& options) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "scan" || line == "open") {
      Scan(table, options, line == "open");
    } else if (line == "memcpy") {
      Copy();
    } else if (line == "steps") {
      Steps(table, options);
    } else {
      throw Error(ExitCode::kUsage, "neither scan, open, steps nor memcpy: " + line,
                  "standard input");
    }
    std::fflush(stdout);
  }
}

class ArrayFile {
 public:
  explicit ArrayFile(const std::filesystem::path& path) : path_(path), file_(path) {}
  template <class Values>
  void Write(const Values& values) {
    const auto bytes = static_cast<std::streamsize>(values.size() * sizeof(values[0]));
    file_.write(reinterpret_cast<const char*>(values.data()), bytes);
    static constexpr char kZeros[64] = {};
    file_.write(kZeros, (64 - bytes % 64) % 64);
  }
  void Close() {
    file_.close();
    if (!file_) throw Error(ExitCode::kFailure, "cannot be written", path_.string());
  }

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

void Export(const bench::Table& table, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::string stripes, columns;
  int number = 0;
  ForEachBatch(table, {}, [&](const FlatMapBatch& batch) {
    ArrayFile file(folder / fmt::format("{}.bin", number));
    const auto describe = [&](const std::string& name, const char* kind) {
      if (number == 0)
        columns += fmt::format(R"({}{{"name": "{}", "kind": "{}"}})", columns.empty() ? "" : ",\n",
                               name, kind);
    };
    std::string ids;
    for (const DenseColumn& column : batch.dense) {
      describe(column.name, "dense");
      file.Write(column.present.words);
      file.Write(column.values);
    }
    for (const SparseColumn& column : batch.sparse) {
      describe(column.name, "sparse");
      ids += fmt::format("{}{}", ids.empty() ? "" : ", ", column.values.size());
      file.Write(column.present.words);
      file.Write(column.offsets);
      file.Write(column.values);
    }
    file.Close();
    stripes += fmt::format(R"({}{{"rows": {}, "ids": [{}]}})", stripes.empty() ? "" : ",\n",
                           batch.rows, ids);
    ++number;
  });
  std::ofstream manifest(folder / "manifest.json");
  manifest << "{\"columns\": [" << columns << "],\n\"stripes\": [" << stripes << "]}\n";
  manifest.close();
  if (!manifest)
    throw Error(ExitCode::kFailure, "cannot be written", (folder / "manifest.json").string());
}

void Select(const std::string& keys, bench::Table* table) {
  std::vector<FeatureRequest>& features = table->projection.features;
  std::erase_if(features, [](const FeatureRequest& f) { return f.column == "weighted"; });
  if (keys.empty() || keys == "all") return;
  const size_t colon = keys.find(':');
  std::erase_if(features,
                [&](const FeatureRequest& f) { return f.column != keys.substr(0, colon); });
  std::sort(features.begin(), features.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  if (colon != std::string::npos)
    features.resize(
        std::min(features.size(), static_cast<size_t>(std::atoi(keys.c_str() + colon + 1))));
  if (features.empty()) throw Error(ExitCode::kUsage, "no such features", "--keys " + keys);
}

void Main(int argc, char** argv) {
  std::string folder, keys, keys_of, output, gap, slice_rows;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--") && i + 1 < argc) {
      (word == "--keys"      ? keys
       : word == "--keys-of" ? keys_of
       : word == "--gap"     ? gap
       : word == "--slices"  ? slice_rows
                             : output) = argv[++i];
    } else {
      folder = word;
    }
  }
  bench::Table table = bench::OpenTable(folder, !keys.empty());
  if (!keys_of.empty()) table.projection = bench::OpenTable(keys_of, true).projection;
  Select(keys, &table);
  Options options;
  if (!gap.empty()) options.fetch.max_gap_bytes = std::stoull(gap);
  if (!slice_rows.empty()) options.slice_rows = std::stoull(slice_rows);
  if (output.empty()) {
    Serve(table, options);
  } else {
    Export(table, output);
  }
}

}  // namespace
}  // namespace headrace::reader::dwrf

int main(int argc, char** argv) {
  try {
    headrace::reader::dwrf::Main(argc, argv);
    return 0;
  } catch (const headrace::Error& error) {
    std::fprintf(stderr, "scan_bench: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
