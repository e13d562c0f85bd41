// What deduplication saves, in one process, in turns: decompress + decode + hash of all rows of a
// stripe clustered by session against the same with unique rows decoded once; what finding the
// duplicates costs; and a step of the trainer with and without.
//
//   taskset -c 1 dedup_bench [--pairs N]
//
// The list is the prototype's: 63-bit user lists of mean 26, zstd level 1, K equal rows a session.
// The prototype compares with a stripe that stores unique rows only; here both sides read the same
// clustered stripe, duplicates and all, as a reader has to.
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "base/cpu.h"
#include "reader/batch/dedup_rows.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/decode/unique_lists.h"
#include "reader/dwrf/decode/varint_simd.h"
#include "reader/transforms/transform.h"
#include "workloads/trainer/dlrm.h"

namespace headrace {
namespace {

using reader::SparseColumn;

constexpr size_t kBlock = 256 << 10;
constexpr size_t kPadding = 128;

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(q * static_cast<double>(values.size())))];
}

// Both in turns; which goes first alternates. Ratios of the pairs: a over b.
struct Pairs {
  std::vector<double> a, b, ratios;
};
Pairs Interleave(int pairs, const std::function<void()>& a, const std::function<void()>& b) {
  Pairs result;
  a();
  b();
  for (int i = 0; i < pairs; ++i) {
    double first = 0, second = 0;
    if (i % 2 == 0) first = Seconds(a);
    second = Seconds(b);
    if (i % 2 != 0) first = Seconds(a);
    result.a.push_back(first);
    result.b.push_back(second);
    result.ratios.push_back(first / second);
  }
  return result;
}

// One feature of a clustered stripe.
struct Stripe {
  size_t rows = 0;
  std::vector<uint32_t> lengths;
  std::vector<int64_t> ids;
  std::vector<uint8_t> plain;  // encoded, padded
  size_t plain_bytes = 0;
  std::vector<std::vector<uint8_t>> blocks;  // compressed
};

Stripe MakeStripe(size_t rows, size_t per_session) {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> length(std::log(26.0) - 0.32, 0.8);
  Stripe stripe;
  stripe.rows = rows;
  std::vector<int64_t> list;
  for (size_t row = 0; row < rows; ++row) {
    if (row % per_session == 0) {
      list.resize(std::max<size_t>(1, static_cast<size_t>(length(random))));
      for (int64_t& id : list) id = static_cast<int64_t>(random() >> 1);
    }
    stripe.lengths.push_back(static_cast<uint32_t>(list.size()));
    stripe.ids.insert(stripe.ids.end(), list.begin(), list.end());
  }
  for (const int64_t id : stripe.ids) {
    uint64_t bits = static_cast<uint64_t>(id) << 1 ^ static_cast<uint64_t>(id >> 63);
    for (; bits >= 0x80; bits >>= 7) stripe.plain.push_back(static_cast<uint8_t>(bits | 0x80));
    stripe.plain.push_back(static_cast<uint8_t>(bits));
  }
  stripe.plain_bytes = stripe.plain.size();
  for (size_t at = 0; at < stripe.plain_bytes; at += kBlock) {
    const size_t size = std::min(kBlock, stripe.plain_bytes - at);
    std::vector<uint8_t>& block = stripe.blocks.emplace_back(ZSTD_compressBound(size));
    block.resize(ZSTD_compress(block.data(), block.size(), stripe.plain.data() + at, size, 1));
  }
  stripe.plain.resize(stripe.plain_bytes + kPadding, 0);
  return stripe;
}

struct Work {
  const Stripe& stripe;
  const reader::IdTransform& hash;
  std::vector<uint8_t> raw;
  std::vector<int64_t> values;
  std::vector<uint64_t> starts, changed;

  Work(const Stripe& of, const reader::IdTransform& transform)
      : stripe(of),
        hash(transform),
        raw(of.plain.size()),
        values(of.ids.size() + reader::dwrf::kDecodeSlack),
        starts(of.rows + 1),
        changed((of.rows + 63) / 64) {}

  void Decompress() {
    size_t at = 0;
    for (const auto& block : stripe.blocks)
      at += ZSTD_decompress(raw.data() + at, raw.size() - at, block.data(), block.size());
  }
  void All() {
    Decompress();
    reader::dwrf::DecodeVarints(raw.data(), raw.data() + stripe.plain_bytes, stripe.ids.size(),
                                true, values.data());
    hash.Apply({values.data(), stripe.ids.size()}, BestInstructionSet());
  }
  size_t Unique() {
    Decompress();
    reader::dwrf::FindChangedLists(raw.data(), raw.data() + stripe.plain_bytes, 0, stripe.lengths,
                                   starts.data(), changed.data());
    size_t count = 0;
    for (size_t row = 0; row < stripe.rows; ++row) {
      if ((changed[row >> 6] >> (row & 63) & 1) == 0) continue;
      reader::dwrf::DecodeVarints(raw.data() + starts[row], raw.data() + starts[row + 1],
                                  stripe.lengths[row], true, values.data() + count);
      count += stripe.lengths[row];
    }
    hash.Apply({values.data(), count}, BestInstructionSet());
    return count;
  }
};

void Decode(int pairs) {
  constexpr size_t kRows = 16384;
  const auto transform =
      reader::MakeTransform(reader::Params("sigrid_hash", {{"max", int64_t{1'000'000}}}, 0, {}));
  const auto& hash = dynamic_cast<const reader::IdTransform&>(*transform);
  fmt::print("decompress + decode + hash, ns a row (median of {} pairs, 10 to 90 %)\n", pairs);
  for (const size_t k : {1, 4, 8, 16}) {
    const Stripe stripe = MakeStripe(kRows, k);
    Work a(stripe, hash), b(stripe, hash);
    const Pairs all = Interleave(
        pairs, [&] { a.All(); }, [&] { b.Unique(); });
    const double rows = static_cast<double>(kRows) / 1e9;
    // What the ratio would be if unzipping were free: the part that deduplication can save.
    const Pairs unzip = Interleave(
        pairs, [&] { a.Decompress(); }, [&] { b.Decompress(); });
    const double zstd = Quantile(unzip.a, 0.5);
    fmt::print(
        "  {:2} rows a session: all {:6.1f}, unique {:6.1f}: {:.2f}x ({:.2f} to {:.2f}); of both "
        "zstd {:.1f}, without it {:.2f}x\n",
        k, Quantile(all.a, 0.5) / rows, Quantile(all.b, 0.5) / rows, Quantile(all.ratios, 0.5),
        Quantile(all.ratios, 0.1), Quantile(all.ratios, 0.9), zstd / rows,
        (Quantile(all.a, 0.5) - zstd) / (Quantile(all.b, 0.5) - zstd));

    SparseColumn column;
    column.name = "a";
    column.present.words.assign(kRows / 64, ~uint64_t{0});
    column.present.count = kRows;
    column.offsets.push_back(0);
    for (const uint32_t length : stripe.lengths)
      column.offsets.push_back(column.offsets.back() + length);
    column.values.assign(stripe.ids.begin(), stripe.ids.end());
    const SparseColumn* columns[] = {&column};
    const auto classify = [&](reader::DedupScope scope) {
      if (reader::ClassifyRows(columns, kRows, scope).first_row.empty()) std::abort();
    };
    b.Decompress();
    const Pairs find = Interleave(
        pairs,
        [&] {
          reader::dwrf::FindChangedLists(b.raw.data(), b.raw.data() + stripe.plain_bytes, 0,
                                         stripe.lengths, b.starts.data(), b.changed.data());
        },
        [&] { classify(reader::DedupScope::kNeighbours); });
    const double table = Quantile(Interleave(
                                      pairs, [&] { classify(reader::DedupScope::kBatch); }, [] {})
                                      .a,
                                  0.5);
    fmt::print(
        "      finding duplicates: in encoded bytes {:.1f}, by values {:.1f}, by hash table {:.1f} "
        "ns a row\n",
        Quantile(find.a, 0.5) / rows, Quantile(find.b, 0.5) / rows, table / rows);
  }
}

// Batches of 20 sparse features that repeat K times, 64 dense ones.
reader::FlatMapBatch TrainingBatch(size_t rows, size_t per_session) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> length(std::log(26.0) - 0.32, 0.8);
  reader::FlatMapBatch batch;
  batch.rows = rows;
  for (int f = 0; f < 20; ++f) {
    SparseColumn& column = batch.sparse.emplace_back();
    column.name = "sparse:" + std::to_string(f);
    column.present.words.assign((rows + 63) / 64, ~uint64_t{0});
    column.present.count = rows;
    column.offsets.push_back(0);
    std::vector<int64_t> list;
    for (size_t row = 0; row < rows; ++row) {
      if (row % per_session == 0) {
        list.resize(std::max<size_t>(1, static_cast<size_t>(length(random))));
        for (int64_t& id : list) id = static_cast<int64_t>(random() >> 1);
      }
      column.values.insert(column.values.end(), list.begin(), list.end());
      column.offsets.push_back(static_cast<uint32_t>(column.values.size()));
    }
  }
  for (int f = 0; f < 64; ++f) {
    reader::DenseColumn& column = batch.dense.emplace_back();
    column.name = "dense:" + std::to_string(f);
    column.present.words.assign((rows + 63) / 64, ~uint64_t{0});
    column.present.count = rows;
    for (size_t row = 0; row < rows; ++row)
      column.values.push_back(static_cast<float>(random() % 1000) / 500 - 1);
  }
  reader::ScalarColumn& label = batch.scalars.emplace_back();
  label.name = "label";
  label.is_float = true;
  for (size_t row = 0; row < rows; ++row) label.floats.push_back(static_cast<float>(random() % 2));
  return batch;
}

void Train(int pairs) {
  constexpr size_t kRows = 512;
  fmt::print("\na step of the trainer, 512 rows, 20 sparse and 64 dense features, default model\n");
  for (const size_t k : {1, 4, 8, 16}) {
    reader::FlatMapBatch batch = TrainingBatch(kRows, k);
    const reader::TensorBatch plain = reader::Tensorize(batch, "label");
    std::vector<size_t> columns(20);
    for (size_t i = 0; i < columns.size(); ++i) columns[i] = i;
    reader::Deduplicate(&batch, "all", columns, reader::DedupScope::kNeighbours);
    const reader::TensorBatch grouped = reader::Tensorize(batch, "label");
    workloads::Dlrm a({}, 1, plain), b({}, 1, grouped);
    const Pairs steps = Interleave(
        pairs, [&] { a.Step(plain); }, [&] { b.Step(grouped); });
    fmt::print(
        "  {:2} rows a session: KJT {:6.2f} ms, IKJT {:6.2f} ms: {:.2f}x ({:.2f} to {:.2f}); "
        "{:.2f} "
        "MB and {:.2f} MB of tensors\n",
        k, Quantile(steps.a, 0.5) * 1e3, Quantile(steps.b, 0.5) * 1e3, Quantile(steps.ratios, 0.5),
        Quantile(steps.ratios, 0.1), Quantile(steps.ratios, 0.9),
        static_cast<double>(plain.MemoryBytes()) / 1e6,
        static_cast<double>(grouped.MemoryBytes()) / 1e6);
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  int pairs = 21;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--pairs") == 0) pairs = std::max(1, std::atoi(argv[i + 1]));
  headrace::Decode(pairs);
  headrace::Train(pairs);
  return 0;
}
