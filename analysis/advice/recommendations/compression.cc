// R28: a codec that is cheaper to decompress. What the table would be with lz4 is sampled when a
// run has ended (experiments/codec_sample.cc): facts lz4_bytes_ratio and lz4_decompress_ratio.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/advice/recommendations.h"
#include "analysis/thresholds.h"

namespace headrace::analysis {
namespace {

Recommendation CheaperCodec(const Evidence& e) {
  const auto decompress = e.FindKind("decompress"), fetch = e.FindKind("fetch");
  if (!decompress) return DoesNotFire("nothing decompresses under an operator of its own");
  const Real bytes = e.run().run.Fact("lz4_bytes_ratio");
  const Real cpu = e.run().run.Fact("lz4_decompress_ratio");
  if (!bytes || !cpu) {
    return CannotSay("how large the table is with lz4 was not sampled",
                     "headrace run on a table of this machine that is compressed with another "
                     "codec and not encrypted");
  }
  // Reading takes as much longer as there are more bytes, or no longer where requests cost more.
  const auto change = [&](double decompressing, double reading) {
    Variant work = e.Now();
    work.scales.push_back({Scaled::kOperator, *decompress, decompressing});
    if (fetch) {
      for (const size_t part : e.WithParts(*fetch)) {
        work.scales.push_back({Scaled::kOperator, part, reading});
      }
    }
    return work;
  };
  const double dearer = std::min(*cpu * (1 + kCodecSampleError), std::max(1.0, *cpu));
  const Variant likely = change(*cpu, *bytes);
  const Outcome outcome =
      e.Predict(change(dearer, *bytes), likely, change(*cpu, std::min(1.0, *bytes)));
  Recommendation result = IfWorthwhile(
      e, outcome,
      fmt::format("with lz4 the columns that are read take {:.2f} times the bytes, and "
                  "decompressing them {:.2f} times the CPU (a sample of the table's first rows)",
                  *bytes, *cpu),
      "write the table with lz4", e.OnTable("rewrite", "--compression lz4 -o NEW"));
  if (*bytes > 1) result.only_if = "the storage has room for the larger table";
  if (e.reads()) {
    SetThen(&result.effects.storage_bytes, e.reads()->bytes_per_row * *bytes, "");
  }
  SetThen(&result.effects.reader_cpu, e.CpuOf(likely), "");
  return result;
}

HR_RECOMMENDATION(28, "a codec that is cheaper to decompress", "", CheaperCodec);

}  // namespace
}  // namespace headrace::analysis
