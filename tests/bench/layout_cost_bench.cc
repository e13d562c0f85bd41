// What streams cost a reader on this processor: the figures that reader/dwrf/layout_cost.h is made
// of.
//
//   layout_cost_bench TABLE...   fits, over the projected streams of all tables together:
//     decompress, per codec      ns a chunk, a stored byte, an unpacked byte
//     decode, per encoding       ns a stream, a value, a stored byte (varints) or entry
//     (dictionary) footer                     ns a stream listed in a stripe's footer
//     plan                       ns a projected stream
//
// CPU time of the thread, the least of seven repetitions of each stream: other programs may run
// beside. Give tables of the same rows in several layouts: with one, what is fitted cannot be told
// apart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "base/clock.h"
#include "reader/dwrf/chunk.h"
#include "reader/dwrf/value_decoder.h"
#include "tests/bench/bench_table.h"

namespace headrace::reader::dwrf {
namespace {

constexpr int kRepetitions = 7;

template <class Work>
double LeastNs(const Work& work) {
  double least = INFINITY;
  for (int i = 0; i < kRepetitions; ++i) {
    const int64_t begin = ThreadCpuNs();
    work();
    least = std::min(least, static_cast<double>(ThreadCpuNs() - begin));
  }
  return least;
}

// Least squares of time on three figures, each row weighted by 1 / time: small streams count as
// much as large ones.
class Fit {
 public:
  void Add(std::array<double, 3> x, double ns) {
    ++rows_;
    total_ns_ += ns;
    const double weight = 1 / std::max(ns, 1.0);
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) a_[i][j] += weight * x[i] * x[j];
      b_[i] += weight * x[i] * ns;
      sums_[i] += x[i];
    }
  }
  void Print(const std::string& name, std::array<const char*, 3> of) const {
    if (rows_ == 0) return;
    const std::array<double, 3> c = Solve();
    const double said = c[0] * sums_[0] + c[1] * sums_[1] + c[2] * sums_[2];
    fmt::print(
        "{:<22}{:>7} streams  {:>9.2f} ns a {}, {:.3f} a {}, {:.3f} a {}; sum {:.3f} of "
        "what was measured\n",
        name, rows_, c[0], of[0], c[1], of[1], c[2], of[2], said / total_ns_);
  }

 private:
  std::array<double, 3> Solve() const {
    auto a = a_;
    auto b = b_;
    for (size_t i = 0; i < 3; ++i) a[i][i] += 1e-9;  // a figure that is always 0
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = i + 1; j < 3; ++j) {
        const double factor = a[j][i] / a[i][i];
        for (size_t k = i; k < 3; ++k) a[j][k] -= factor * a[i][k];
        b[j] -= factor * b[i];
      }
    }
    std::array<double, 3> c{};
    for (size_t i = 3; i-- > 0;) {
      double rest = b[i];
      for (size_t k = i + 1; k < 3; ++k) rest -= a[i][k] * c[k];
      c[i] = rest / a[i][i];
    }
    return c;
  }
  size_t rows_ = 0;
  double total_ns_ = 0;
  std::array<std::array<double, 3>, 3> a_{};
  std::array<double, 3> b_{}, sums_{};
};

struct Fits {
  std::map<std::string, Fit> decompress, decode;
  Fit footer, plan;
  double index_plain = 0, index_stored = 0, index_bits = 0;  // bytes, bytes, bits
};

void MeasureChunks(const FetchedStripe& fetched, Fits* fits) {
  const StripePlan& plan = fetched.plan;
  if (plan.compression == CompressionKind::kNone) return;
  Buffer out;
  out.Resize(plan.block_size);
  for (uint32_t i = 0; i < plan.streams.size(); ++i) {
    std::span<const uint8_t> rest = fetched.stored[i];
    while (rest.size() > kChunkHeaderBytes) {
      const ChunkHeader header = ParseChunkHeader(rest.data());
      const auto payload = rest.subspan(kChunkHeaderBytes, header.length);
      rest = rest.subspan(kChunkHeaderBytes + header.length);
      if (header.original) continue;
      size_t plain = 0;
      const double ns = LeastNs([&] {
        plain = Decompress(plan.compression, payload, {out.data(), plan.block_size});
      });
      fits->decompress[CompressionKindName(plan.compression)].Add(
          {1, static_cast<double>(payload.size()), static_cast<double>(plain)}, ns);
    }
  }
}

void MeasureValues(const UnpackedStripe& unpacked, Fits* fits) {
  const StripePlan& plan = unpacked.plan;
  for (const FeaturePlan& feature : plan.features) {
    if (feature.kind != FeatureKind::kSparse || !feature.in_stripe) continue;
    DecodedFeature values;
    const double ns = LeastNs([&] {
      ValueDecoder decoder(plan, unpacked.streams);
      values = {};
      decoder.Feature(feature, nullptr, &values);
    });
    const double lists = LeastNs([&] {
      ValueDecoder decoder(plan, unpacked.streams);
      values.lengths = {};
      DecodedFeature rows;
      if (const auto count = decoder.Rows(feature, nullptr, &rows))
        decoder.Lengths(feature.value, *count, &rows.lengths);
    });
    if (values.values.size() < 64) continue;
    const auto count = static_cast<double>(values.values.size());
    const NodePlan& item = feature.item;
    if (item.encoding == EncodingKind::kDictionary) {
      double literals = 0;
      uint64_t longest = 0;  // of the literal values, in bits
      if (item.in_dictionary != NodePlan::kNone) {
        PresenceBits inside;
        ValueDecoder(plan, unpacked.streams)
            .Bits(item.in_dictionary, values.values.size(), &inside);
        literals = count - static_cast<double>(inside.count);
        for (size_t v = 0; v < values.values.size(); ++v)
          if (!inside.Get(v)) longest |= static_cast<uint64_t>(values.values[v]);
      }
      fits->index_plain += static_cast<double>(unpacked.streams[item.data].size());
      fits->index_stored += static_cast<double>(plan.streams[item.data].length);
      fits->index_bits += literals * std::bit_width(longest) +
                          (count - literals) * std::bit_width(item.dictionary_size);
      fits->decode[item.in_dictionary == NodePlan::kNone ? "dictionary" : "dictionary, literals"]
          .Add({1, count, static_cast<double>(item.dictionary_size)}, ns - lists);
    } else {
      const bool varints = plan.streams[item.data].use_vints;
      fits->decode[varints ? "varints" : "fixed width"].Add(
          {1, count, varints ? static_cast<double>(unpacked.streams[item.data].size()) : 0},
          ns - lists);
    }
  }
}

int Main(int argc, char** argv) {
  Fits fits;
  for (int i = 1; i < argc; ++i) {
    const bench::Table table = bench::OpenTable(argv[i], false);
    for (const auto& file : table.files) {
      for (size_t s = 0; s < file->num_stripes(); ++s) {
        std::shared_ptr<const Stripe> stripe;
        const double ns = LeastNs([&] { stripe = file->ReadStripe(s); });
        fits.footer.Add({1, static_cast<double>(stripe->streams.size()), 0}, ns);
        StripePlan plan;
        const double plan_ns = LeastNs([&] { plan = MakePlan(*file, stripe, table.projection); });
        fits.plan.Add({0, static_cast<double>(plan.streams.size()), 0}, plan_ns);
        FetchedStripe fetched = Fetch(std::move(plan), file->source(), {});
        MeasureChunks(fetched, &fits);
        MeasureValues(Decompress(std::move(fetched)), &fits);
      }
    }
  }
  for (const auto& [name, fit] : fits.decompress)
    fit.Print("decompress " + name, {"chunk", "stored byte", "unpacked byte"});
  for (const auto& [name, fit] : fits.decode)
    fit.Print("decode " + name, {"stream", "value", name == "varints" ? "byte" : "entry"});
  if (fits.index_plain > 0)
    fmt::print("dictionary indices      {:.0f} bytes as varints, {:.0f} stored, {:.0f} if packed\n",
               fits.index_plain, fits.index_stored, fits.index_bits / 8);
  fits.footer.Print("footer", {"stripe", "stream", "nothing"});
  fits.plan.Print("plan", {"stripe", "projected stream", "nothing"});
  return 0;
}

}  // namespace
}  // namespace headrace::reader::dwrf

int main(int argc, char** argv) {
  try {
    return headrace::reader::dwrf::Main(argc, argv);
  } catch (const headrace::Error& error) {
    std::fprintf(stderr, "layout_cost_bench: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
