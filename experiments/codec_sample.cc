// What another codec would make of the table: its first streams that the pipeline reads,
// compressed again with lz4, and the CPU time of decompressing both.
#include <algorithm>

#include "base/clock.h"
#include "experiments/run_sample.h"
#include "reader/dwrf/encode/chunk_encoder.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/projection.h"

namespace headrace::experiments {
namespace {

using reader::dwrf::CompressionKind;

struct Compared {
  double stored_bytes = 0, lz4_bytes = 0;  // as they lie in the file, with what is not compressed
  double decompress_ns = 0, lz4_decompress_ns = 0;
};

// CPU time of the faster of two turns: the first of all meets cold caches.
int64_t UnframeNs(std::span<const uint8_t> stored, const reader::dwrf::ChunkContext& context,
                  Buffer* plain) {
  int64_t least = INT64_MAX;
  for (int turn = 0; turn < 2; ++turn) {
    const int64_t start = ThreadCpuNs();
    reader::dwrf::Unframe(stored, context, plain);
    least = std::min(least, ThreadCpuNs() - start);
  }
  return least;
}

void AddStream(std::span<const uint8_t> stored, reader::dwrf::ChunkContext context,
               reader::dwrf::ChunkEncoder* encoder, Compared* seen) {
  Buffer plain;
  seen->decompress_ns += static_cast<double>(UnframeNs(stored, context, &plain));
  seen->stored_bytes += static_cast<double>(stored.size());
  reader::dwrf::ByteSink sink;
  encoder->Encode({plain.data(), plain.size()}, true, &sink);
  context.compression = CompressionKind::kLz4;
  seen->lz4_decompress_ns += static_cast<double>(UnframeNs(sink.span(), context, &plain));
  seen->lz4_bytes += static_cast<double>(sink.size());
}

std::vector<collectors::RunFact> Lz4(const SampledTable& of) {
  constexpr int64_t kLongestNs = 300'000'000;
  constexpr double kFewestBytes = 64 << 10, kEnoughBytes = 16 << 20;
  Compared seen;
  const int64_t end = MonotonicNs() + kLongestNs;
  const auto enough = [&] {
    return seen.stored_bytes >= kEnoughBytes || MonotonicNs() >= end || (of.stop && of.stop());
  };
  for (const reader::Split& split : of.table.splits) {
    if (enough()) break;
    const reader::dwrf::FileReader& file = *of.table.files[split.file_index];
    const CompressionKind now = file.tail().compression;
    if (now == CompressionKind::kNone || now == CompressionKind::kLz4) continue;
    reader::dwrf::WriterOptions options;
    options.compression = CompressionKind::kLz4;
    options.block_size = file.tail().block_size;
    reader::dwrf::ChunkEncoder encoder(options);
    const auto stripe = file.ReadStripe(split.stripe);
    const auto plan = reader::dwrf::MakePlan(file, stripe, of.spec.projection);
    for (uint32_t i = 0; i < plan.streams.size() && !enough(); ++i) {
      const Buffer stored = file.ReadStream(*stripe, plan.streams[i]);
      AddStream({stored.data(), stored.size()},
                file.ContextOf(*stripe, plan.streams[i], plan.Where(i)), &encoder, &seen);
    }
  }
  if (seen.stored_bytes < kFewestBytes || seen.decompress_ns <= 0) return {};
  return {{"lz4_bytes_ratio", seen.lz4_bytes / seen.stored_bytes, "ratio"},
          {"lz4_decompress_ratio", seen.lz4_decompress_ns / seen.decompress_ns, "ratio"}};
}

HR_RUN_SAMPLE("lz4", Lz4);

}  // namespace
}  // namespace headrace::experiments
