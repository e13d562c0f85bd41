// How much faster a scan could be that did nothing but the work no reader can leave out: the bound
// on every ratio to another reader. In one process, in turns:
//
//   ours     the projected features of a table, stripe by stripe: directory, plan, fetch,
//            decompress, decode, extract
//   library  ZSTD_decompressDCtx of the same chunks, from memory, and nothing else
//   floor    the same reads from the page cache, that, and the kernel that expands the ids of plain
//            sparse features, always into the same memory: no directory, no plan, no lengths, no
//            presence, no dense features, no columns, no checks
//
//   taskset -c 1 floor_bench TABLE [--pairs N] [--gap BYTES]
//
// A peer that is R times slower than ours is R * ours / floor times slower than the floor: no
// reader of this file reaches more with this library and these kernels. zstd tables only.
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "reader/dwrf/chunk.h"
#include "reader/dwrf/decode/varint_simd.h"
#include "reader/dwrf/value_decoder.h"
#include "tests/bench/bench_table.h"
#include "tests/bench/paired.h"

namespace headrace::reader::dwrf {
namespace {

// A stream of a stripe: its chunks, and how many ids it holds where the kernel is to expand them.
struct StreamWork {
  struct Frame {
    std::span<const uint8_t> payload;
    bool is_original;
  };
  std::vector<Frame> frames;
  uint64_t ids = 0;
};
// What the floor does for one stripe, found out beforehand.
struct StripeWork {
  const Source* source = nullptr;
  std::vector<ByteRange> reads;
  FetchedStripe fetched;  // the stored bytes
  std::vector<StreamWork> streams;
};

std::vector<StreamWork::Frame> FramesOf(std::span<const uint8_t> stored) {
  std::vector<StreamWork::Frame> frames;
  while (stored.size() >= kChunkHeaderBytes) {
    const ChunkHeader header = ParseChunkHeader(stored.data());
    frames.push_back({stored.subspan(kChunkHeaderBytes, header.length), header.original});
    stored = stored.subspan(kChunkHeaderBytes + header.length);
  }
  return frames;
}

class Floor {
 public:
  Floor(const bench::Table& table, const FetchOptions& options) {
    size_t largest = 0;
    for (const auto& file : table.files) {
      if (file->tail().compression != CompressionKind::kZstd)
        throw Error(ExitCode::kUsage, "is not compressed with zstd", file->source().name());
      for (size_t i = 0; i < file->num_stripes(); ++i) {
        const auto stripe = file->ReadStripe(i);
        StripePlan plan = MakePlan(*file, stripe, table.projection);
        StripeWork& work = stripes_.emplace_back();
        work.source = &file->source();
        work.reads =
            PlanReads(plan.ranges(), {options.max_gap_bytes, options.max_read_bytes}).reads;
        work.fetched = Fetch(StripePlan(plan), file->source(), options);
        for (const auto& stored : work.fetched.stored)
          work.streams.push_back({FramesOf(stored), 0});
        const UnpackedStripe unpacked = Decompress(Fetch(std::move(plan), file->source(), options));
        CountIds(unpacked, &work);
        size_t bytes = 0;
        for (const ByteRange& read : work.reads) bytes += read.length;
        largest = std::max<size_t>({largest, bytes, unpacked.unpacked_bytes});
        rows_ += stripe->rows;
      }
    }
    bytes_.resize(largest + (1 << 20));
    room_.resize(largest + (1 << 20));
    ids_.resize(most_ids_ + kDecodeSlack);
  }

  uint64_t rows() const { return rows_; }
  uint64_t frames() const {
    uint64_t count = 0;
    for (const StripeWork& work : stripes_)
      for (const StreamWork& stream : work.streams) count += stream.frames.size();
    return count;
  }

  double Library() {
    const int64_t begin = MonotonicNs();
    for (const StripeWork& work : stripes_) Unzip(work, false);
    return PerRow(begin);
  }
  double All() {
    const int64_t begin = MonotonicNs();
    for (const StripeWork& work : stripes_) {
      size_t at = 0;
      for (const ByteRange& read : work.reads) {
        work.source->ReadAt(read.offset, {bytes_.data() + at, read.length});
        at += read.length;
      }
      Unzip(work, true);
    }
    return PerRow(begin);
  }

 private:
  void CountIds(const UnpackedStripe& unpacked, StripeWork* work) {
    const StripePlan& plan = unpacked.plan;
    for (const FeaturePlan& feature : plan.features) {
      if (!feature.in_stripe || feature.kind != FeatureKind::kSparse ||
          feature.map != NodePlan::kNone || !ValueDecoder::IsPlain(feature.item) ||
          feature.item.data == NodePlan::kNone || !plan.streams[feature.item.data].use_vints)
        continue;
      const std::span<const uint8_t> bytes = unpacked.streams[feature.item.data];
      // A value ends with a byte below 128.
      const auto count = static_cast<uint64_t>(
          std::count_if(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte < 128; }));
      work->streams[feature.item.data].ids = count;
      most_ids_ = std::max(most_ids_, count);
    }
  }
  // Streams one behind the other, as the reader puts them; their ids while they are in the caches.
  void Unzip(const StripeWork& work, bool expands) {
    uint8_t* to = room_.data();
    for (const StreamWork& stream : work.streams) {
      const uint8_t* const begin = to;
      for (const StreamWork::Frame& frame : stream.frames) {
        if (frame.is_original) {
          if (!expands) continue;
          std::memcpy(to, frame.payload.data(), frame.payload.size());
          to += frame.payload.size();
          continue;
        }
        const size_t size = ZSTD_decompressDCtx(
            context_.get(), to, static_cast<size_t>(room_.data() + room_.size() - to),
            frame.payload.data(), frame.payload.size());
        if (ZSTD_isError(size) != 0) throw Error(ExitCode::kFailure, ZSTD_getErrorName(size));
        to += size;
      }
      if (expands && stream.ids > 0 &&
          DecodeVarints(begin, to, stream.ids, true, ids_.data()) == nullptr)
        throw Error(ExitCode::kFailure, "the ids of a stripe do not decode");
    }
  }
  double PerRow(int64_t begin) const {
    return static_cast<double>(MonotonicNs() - begin) / static_cast<double>(rows_);
  }

  std::vector<StripeWork> stripes_;
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_{ZSTD_createDCtx(), ZSTD_freeDCtx};
  std::vector<uint8_t> bytes_, room_;
  std::vector<int64_t> ids_;
  uint64_t rows_ = 0, most_ids_ = 0;
};

double Ours(const bench::Table& table, const FetchOptions& options) {
  uint64_t rows = 0;
  const int64_t begin = MonotonicNs();
  for (const auto& file : table.files) {
    for (size_t i = 0; i < file->num_stripes(); ++i)
      rows +=
          Extract(Decode(Decompress(Fetch(MakePlan(*file, file->ReadStripe(i), table.projection),
                                          file->source(), options))))
              .rows;
  }
  return static_cast<double>(MonotonicNs() - begin) / static_cast<double>(rows);
}

void Print(const char* what, const headrace::bench::Pairs& pairs) {
  std::vector<double> ratios;
  for (size_t i = 0; i < pairs.ours.size(); ++i) ratios.push_back(pairs.ours[i] / pairs.rival[i]);
  using headrace::bench::Quantile;
  fmt::print("  {:<44} ours {:6.0f}, it {:6.0f} ns a row; ours / it {:.2f} [{:.2f}, {:.2f}]\n",
             what, Quantile(pairs.ours, 0.5), Quantile(pairs.rival, 0.5), Quantile(ratios, 0.5),
             Quantile(ratios, 0.1), Quantile(ratios, 0.9));
}

int Main(int argc, char** argv) {
  std::string folder;
  int pairs = 15;
  FetchOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--") && i + 1 == argc)
      throw Error(ExitCode::kUsage, word + " needs a value");
    if (word == "--pairs") {
      pairs = std::max(1, std::atoi(argv[++i]));
    } else if (word == "--gap") {
      options.max_gap_bytes = std::strtoull(argv[++i], nullptr, 10);
    } else {
      folder = word;
    }
  }
  if (folder.empty()) throw Error(ExitCode::kUsage, "floor_bench TABLE [--pairs N] [--gap BYTES]");
  bench::Table table = bench::OpenTable(folder, false);
  std::erase_if(table.projection.features,
                [](const FeatureRequest& feature) { return feature.column == "weighted"; });
  Floor floor(table, options);
  const auto ours = [&] { return Ours(table, options); };
  ours();
  floor.All();
  fmt::print("{} rows, {} features, {} zstd frames; {} pairs\n", floor.rows(),
             table.projection.features.size(), floor.frames(), pairs);
  Print("zstd alone", headrace::bench::MeasurePairs(pairs, ours, [&] { return floor.Library(); }));
  Print("reads, zstd and the ids' kernel alone",
        headrace::bench::MeasurePairs(pairs, ours, [&] { return floor.All(); }));
  return 0;
}

}  // namespace
}  // namespace headrace::reader::dwrf

int main(int argc, char** argv) {
  return headrace::bench::Run("floor_bench", headrace::reader::dwrf::Main, argc, argv);
}
