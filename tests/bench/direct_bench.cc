// From a stripe to tensors: ids straight into the tensors' memory (layout direct) against a vector
// for each feature that is cut and put together (layout flatmap), in one run. Interleaved pairs,
// ratio of each pair, median and spread; and late materialisation, huge pages, and passing over
// varints against decoding them.
//
//   taskset -c 1 direct_bench PIPELINE.toml [--repeats N] [--batch-rows N] [--dedup]
//
// With --dedup, instead, what deduplication gains in either layout: groups as `[dedup] mode =
// "auto"` chooses them.
//
// The table and projection of PIPELINE.toml; page cache warm. Times are of one thread. A row's time
// is that of all steps from the stored bytes on, and apart from it of those behind `decompress`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>

#include "base/block_pool.h"
#include "base/clock.h"
#include "base/error.h"
#include "reader/batch/keep_rows.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/crypto/decrypt.h"
#include "reader/dwrf/decode/varint_simd.h"
#include "reader/dwrf/decode/varint_skip.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/slices.h"
#include "reader/pipeline/spec.h"
#include "reader/pipeline/split.h"
#include "tests/bench/paired.h"

namespace headrace::reader {
namespace {

using bench::Quantile;

struct Input {
  PipelineSpec spec;
  Table table;
};

struct Times {
  double all_ns = 0, behind_ns = 0;  // behind `decompress`
  uint64_t rows = 0, kept = 0, batches = 0, ids = 0, copied_bytes = 0;
};

// What one batch comes to; also keeps the optimiser honest.
void Count(const TensorBatch& tensors, Times* times) {
  ++times->batches;
  times->kept += tensors.rows;
  times->ids += tensors.sparse.values.size() + tensors.weighted_sparse.values.size();
  for (const InverseKeyedJaggedTensor& group : tensors.groups)
    times->ids += group.unique.values.size();
}

enum class Way { kDirect, kDirectThenDrop, kFlatMap };

// One pass over the table; `share` of the rows are kept, spread at random. With `groups` (of
// `plan`) deduplicated.
Times Run(const Input& input, Way way, double share, const dwrf::GroupRequests* groups = nullptr,
          const DedupPlan* plan = nullptr) {
  Times times;
  std::mt19937_64 random(1);
  std::vector<uint8_t> keep;
  for (const Split& split : input.table.splits) {
    const auto& file = input.table.files[split.file_index];
    keep.assign(split.rows, 1);
    if (share < 1)
      for (uint8_t& k : keep) k = static_cast<double>(random() >> 11) * 0x1p-53 < share;
    const int64_t begin = MonotonicNs();
    dwrf::UnpackedStripe unpacked = dwrf::Decompress(dwrf::Decrypt(
        Fetch(dwrf::MakePlan(*file, file->ReadStripe(split.stripe), input.spec.projection),
              file->source(), input.spec.fetch)));
    const int64_t middle = MonotonicNs();
    TensorizeFigures figures;
    if (way == Way::kFlatMap) {
      FlatMapBatch stripe = dwrf::Extract(dwrf::Decode(std::move(unpacked), groups));
      for (size_t g = 0; plan != nullptr && g < plan->groups.size(); ++g) {
        const auto is_made = [&](const DedupGroup& made) {
          return made.name == plan->groups[g].name;
        };
        if (std::none_of(stripe.groups.begin(), stripe.groups.end(), is_made))
          Deduplicate(*plan, g, &stripe);
      }
      if (share < 1) KeepRows(&stripe, keep);
      for (uint64_t row = 0; row < stripe.rows;) {
        FlatMapBatch batch;
        const uint64_t part = std::min(input.spec.batch_rows, stripe.rows - row);
        AppendRows(&batch, stripe, row, part);
        row += part;
        if (groups != nullptr) {
          Count(Tensorize(std::move(batch), input.spec.label, &figures), &times);
          continue;
        }
        figures.copied_bytes += 2 * batch.copied_bytes;  // and once more into the tensors
        Count(Tensorize(batch, input.spec.label), &times);
      }
    } else {
      dwrf::SliceOptions options;
      options.slice_rows = input.spec.batch_rows;
      options.groups = groups;
      if (share < 1 && way == Way::kDirect) options.wanted = keep;
      dwrf::DecodedStripe decoded = dwrf::DecodeSlices(std::move(unpacked), options);
      for (uint64_t s = 0; s < decoded.slices.size(); ++s) {
        FlatMapBatch batch = dwrf::ExtractSlice(&decoded, s);
        if (batch.rows == 0) continue;
        if (share < 1 && way == Way::kDirectThenDrop) {
          const std::span<const uint8_t> all(keep);
          KeepRows(&batch, all.subspan(s * decoded.slice_rows, batch.rows));
        }
        Count(Tensorize(std::move(batch), input.spec.label, &figures), &times);
      }
    }
    const int64_t end = MonotonicNs();
    times.copied_bytes += figures.copied_bytes;
    times.all_ns += static_cast<double>(end - begin);
    times.behind_ns += static_cast<double>(end - middle);
    times.rows += split.rows;
  }
  return times;
}

// Both in pairs, first and second in turn; prints a's gain over b.
void Compare(const char* what, int repeats, const std::function<Times()>& a,
             const std::function<Times()>& b) {
  std::vector<double> all, behind, ours, theirs;
  Times x, y;
  for (int repeat = -1; repeat < repeats; ++repeat) {
    if (repeat % 2 == 0) y = b();
    x = a();
    if (repeat % 2 != 0) y = b();
    if (repeat < 0) continue;  // warms up
    all.push_back(y.all_ns / x.all_ns);
    behind.push_back(y.behind_ns / x.behind_ns);
    ours.push_back(x.behind_ns / static_cast<double>(x.rows));
    theirs.push_back(y.behind_ns / static_cast<double>(y.rows));
  }
  fmt::print(
      "{:<42} {:6.3f} [{:.3f}, {:.3f}] behind decompress, {:6.3f} [{:.3f}, {:.3f}] in all; "
      "ns/row behind {:.0f} and {:.0f}; copied bytes/batch {:.0f} and {:.0f}\n",
      what, Quantile(behind, 0.5), Quantile(behind, 0.1), Quantile(behind, 0.9), Quantile(all, 0.5),
      Quantile(all, 0.1), Quantile(all, 0.9), Quantile(ours, 0.5), Quantile(theirs, 0.5),
      static_cast<double>(x.copied_bytes) / static_cast<double>(x.batches),
      static_cast<double>(y.copied_bytes) / static_cast<double>(y.batches));
}

void CompareDedup(const Input& input, int repeats) {
  DedupOptions options = input.spec.dedup;
  options.mode = DedupMode::kAuto;
  const DedupPlan plan =
      PlanDedup(input.table, input.spec.projection, options, input.spec.batch_rows);
  dwrf::GroupRequests groups;
  groups.scope = plan.scope;
  size_t features = 0;
  for (const DedupFactor& group : plan.groups) {
    groups.groups.push_back({group.name, group.keys});
    features += group.keys.size();
  }
  const auto run = [&](Way way, bool dedup) {
    return [&, way, dedup] {
      return Run(input, way, 1, dedup ? &groups : nullptr, dedup ? &plan : nullptr);
    };
  };
  const Times all = run(Way::kDirect, false)(), unique = run(Way::kDirect, true)();
  fmt::print(
      "table {} rows, batches of {} rows; {} groups of {} features; ids a row {:.1f}, of unique "
      "rows {:.1f}\ntime of the second over time of the first, median [10th, 90th percentile] of "
      "{} pairs:\n",
      all.rows, input.spec.batch_rows, plan.groups.size(), features,
      static_cast<double>(all.ids) / static_cast<double>(all.rows),
      static_cast<double>(unique.ids) / static_cast<double>(all.rows), repeats);
  Compare("direct with groups, without", repeats, run(Way::kDirect, true),
          run(Way::kDirect, false));
  Compare("flatmap with groups, without", repeats, run(Way::kFlatMap, true),
          run(Way::kFlatMap, false));
  Compare("with groups: direct, flatmap", repeats, run(Way::kDirect, true),
          run(Way::kFlatMap, true));
}

void CompareSkip(int repeats) {
  for (const uint64_t below : {uint64_t{1} << 7, uint64_t{1} << 20, uint64_t{1} << 40}) {
    std::mt19937_64 random(1);
    std::vector<uint8_t> bytes;
    constexpr size_t kCount = 200'000;
    for (size_t i = 0; i < kCount; ++i) {
      uint64_t value = random() % below;
      for (; value >= 128; value >>= 7) bytes.push_back(static_cast<uint8_t>(value | 128));
      bytes.push_back(static_cast<uint8_t>(value));
    }
    const size_t size = bytes.size();
    bytes.resize(size + Buffer::kPadding);
    std::vector<int64_t> out(kCount + dwrf::kDecodeSlack);
    std::vector<double> ratios, skips;
    for (int repeat = 0; repeat < 5 * repeats; ++repeat) {
      const int64_t begin = MonotonicNs();
      const uint8_t* a = dwrf::SkipVarints(bytes.data(), bytes.data() + size, kCount);
      const int64_t middle = MonotonicNs();
      const uint8_t* b =
          dwrf::DecodeVarints(bytes.data(), bytes.data() + size, kCount, true, out.data());
      const int64_t end = MonotonicNs();
      if (a != b) throw Error(ExitCode::kFailure, "skipping and decoding end apart");
      skips.push_back(static_cast<double>(middle - begin) / kCount);
      ratios.push_back(static_cast<double>(end - middle) / static_cast<double>(middle - begin));
    }
    fmt::print(
        "skip against decode, {:.1f} bytes a value: {:.2f}x [{:.2f}, {:.2f}], {:.3f} ns a "
        "value skipped\n",
        static_cast<double>(size) / kCount, Quantile(ratios, 0.5), Quantile(ratios, 0.1),
        Quantile(ratios, 0.9), Quantile(skips, 0.5));
  }
}

int Main(int argc, char** argv) {
  std::string path;
  int repeats = 9;
  bool dedup = false;
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&] {
      if (++i >= argc) throw Error(ExitCode::kUsage, word + " needs a value");
      return std::string(argv[i]);
    };
    if (word == "--repeats") {
      repeats = std::max(1, std::atoi(next().c_str()));
    } else if (word == "--batch-rows") {
      settings.push_back({"pipeline.batch_rows", next()});
    } else if (word == "--dedup") {
      dedup = true;
    } else {
      path = word;
    }
  }
  if (path.empty()) throw Error(ExitCode::kUsage, "give a pipeline file");
  Input input{LoadPipeline(path, settings), {}};
  dwrf::OpenOptions opening;
  if (!input.spec.keys.empty()) opening.keys = dwrf::KeyRing::Load(input.spec.keys);
  input.table = OpenTable(input.spec.table, input.spec.io, {}, opening);
  if (dedup) {
    CompareDedup(input, repeats);
    return 0;
  }
  const auto run = [&](Way way, double share) {
    return [&input, way, share] { return Run(input, way, share); };
  };
  const Times direct = Run(input, Way::kDirect, 1), flatmap = Run(input, Way::kFlatMap, 1);
  if (direct.ids != flatmap.ids || direct.kept != flatmap.kept)
    throw Error(ExitCode::kFailure, "the two layouts differ");
  fmt::print("table {} rows, {:.1f} ids a row, batches of {} rows\n", direct.rows,
             static_cast<double>(direct.ids) / static_cast<double>(direct.rows),
             input.spec.batch_rows);
  fmt::print(
      "time of the second over time of the first, median [10th, 90th percentile] of {} "
      "pairs:\n",
      repeats);
  Compare("direct, flatmap", repeats, run(Way::kDirect, 1), run(Way::kFlatMap, 1));
  for (const double share : {0.01, 0.1, 0.5, 1.0})
    Compare(fmt::format("direct, flatmap and dropped: {:.0f} % of rows", 100 * share).c_str(),
            repeats, run(Way::kDirect, share), run(Way::kFlatMap, share));
  for (const double share : {0.01, 0.1, 0.5})
    Compare(fmt::format("skipped, decoded and dropped: {:.0f} % of rows", 100 * share).c_str(),
            repeats, run(Way::kDirect, share), run(Way::kDirectThenDrop, share));
  const auto pages = [&](bool huge) {
    return [&input, huge] {
      BlockPool::Get().SetHugePages(huge);
      BlockPool::Get().Trim();  // the blocks of the other kind go
      Run(input, Way::kDirect, 1);
      return Run(input, Way::kDirect, 1);
    };
  };
  Compare("huge pages, ordinary (blocks used again)", repeats, pages(true), pages(false));
  const auto fresh = [&](bool huge) {
    return [&input, huge] {
      BlockPool::Get().SetHugePages(huge);
      BlockPool::Get().SetIdleLimit(0);  // every block is fresh
      const Times times = Run(input, Way::kDirect, 1);
      BlockPool::Get().SetIdleLimit(BlockPool::kDefaultIdleBytes);
      return times;
    };
  };
  Compare("huge pages, ordinary (blocks always fresh)", repeats, fresh(true), fresh(false));
  BlockPool::Get().SetHugePages(true);
  Compare("blocks used again, always fresh", repeats, run(Way::kDirect, 1), fresh(true));
  CompareSkip(repeats);
  return 0;
}

}  // namespace
}  // namespace headrace::reader

int main(int argc, char** argv) {
  return headrace::bench::Run("direct_bench", headrace::reader::Main, argc, argv);
}
