// What deduplication saves, in one process, in turns: decompress + decode + hash of all rows of a
// stripe clustered by session against the same with unique rows decoded once; what finding the
// duplicates costs; and a step of the trainer with and without.
//
//   taskset -c 1 dedup_bench [--pairs N]
//
// The list is the prototype's: 63-bit user lists of mean 26, zstd level 1, K equal rows a session.
// The prototype compares with a stripe that stores unique rows only, and does not count the finding
// of duplicates: the first line of each block is that comparison with the reader's kernels. In the
// others both sides read the same clustered stripe, duplicates and all, as a reader has to. Two
// lines say what cannot be gone below: the library's unzipping of the unique rows alone, and
// reading the encoded bytes once.
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <cwchar>
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

void Encode(Stripe* stripe) {
  for (const int64_t id : stripe->ids) {
    uint64_t bits = static_cast<uint64_t>(id) << 1 ^ static_cast<uint64_t>(id >> 63);
    for (; bits >= 0x80; bits >>= 7) stripe->plain.push_back(static_cast<uint8_t>(bits | 0x80));
    stripe->plain.push_back(static_cast<uint8_t>(bits));
  }
  stripe->plain_bytes = stripe->plain.size();
  for (size_t at = 0; at < stripe->plain_bytes; at += kBlock) {
    const size_t size = std::min(kBlock, stripe->plain_bytes - at);
    std::vector<uint8_t>& block = stripe->blocks.emplace_back(ZSTD_compressBound(size));
    block.resize(ZSTD_compress(block.data(), block.size(), stripe->plain.data() + at, size, 1));
  }
  stripe->plain.resize(stripe->plain_bytes + kPadding, 0);
}

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
  Encode(&stripe);
  return stripe;
}

struct Work {
  const Stripe& stripe;
  const reader::IdTransform& hash;
  std::vector<uint8_t> raw;
  std::vector<int64_t> values;
  std::vector<uint64_t> starts, changed;
  std::vector<uint32_t> unique;
  wchar_t missing = 0x12345678;  // a word that raw does not have

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
  void AllBehind() {
    reader::dwrf::DecodeVarints(raw.data(), raw.data() + stripe.plain_bytes, stripe.ids.size(),
                                true, values.data());
    hash.Apply({values.data(), stripe.ids.size()}, BestInstructionSet());
  }
  void All() {
    Decompress();
    AllBehind();
  }
  void Find() {
    reader::dwrf::FindChangedLists(raw.data(), raw.data() + stripe.plain_bytes, 0, stripe.lengths,
                                   starts.data(), changed.data());
  }
  size_t DecodeFound() {
    TakeUnique(stripe.rows);
    size_t count = 0;
    for (const uint32_t list : unique) count += stripe.lengths[list];
    if (!reader::dwrf::DecodeLists(raw.data(), unique, stripe.lengths.data(), starts.data(),
                                   {true, 0}, values.data()))
      std::abort();
    return count;
  }
  // As DecodeSlices does: slice by slice found, then decoded.
  void UniqueBehind() {
    constexpr size_t kSlice = 512;
    const uint8_t* at = raw.data();
    size_t count = 0;
    for (size_t first = 0; first < stripe.rows; first += kSlice) {
      const size_t rows = std::min(kSlice, stripe.rows - first);
      const uint32_t* const lengths = stripe.lengths.data() + first;
      if (!reader::dwrf::FindChangedLists(at, raw.data() + stripe.plain_bytes, 0, {lengths, rows},
                                          starts.data(), changed.data()))
        std::abort();
      TakeUnique(rows);
      if (!reader::dwrf::DecodeLists(at, unique, lengths, starts.data(), {true, 0},
                                     values.data() + count))
        std::abort();
      for (const uint32_t list : unique) count += lengths[list];
      at += starts[rows];
    }
    hash.Apply({values.data(), count}, BestInstructionSet());
  }
  // Each byte of the stripe looked at once, with nothing done about it: what finding cannot do
  // without.
  void ReadOnce() {
    // The C library looks for a word that is not there as fast as it can be loaded.
    static_assert(sizeof(wchar_t) == 4);
    const auto* const words = reinterpret_cast<const wchar_t*>(raw.data());
    while (wmemchr(words, missing, stripe.plain_bytes / 4) != nullptr) ++missing;
  }
  void TakeUnique(size_t rows) {
    unique.clear();
    for (size_t w = 0; w < (rows + 63) / 64; ++w)
      for (uint64_t bits = changed[w]; bits != 0; bits &= bits - 1)
        unique.push_back(
            static_cast<uint32_t>(w * 64 + static_cast<size_t>(std::countr_zero(bits))));
  }
  void Unique() {
    Decompress();
    UniqueBehind();
  }
  void ComparePrevious() {
    const int64_t* before = nullptr;
    const int64_t* at = stripe.ids.data();
    for (size_t row = 0; row < stripe.rows; ++row) {
      const size_t length = stripe.lengths[row];
      const bool same = before != nullptr && stripe.lengths[row - 1] == length &&
                        std::memcmp(at, before, length * sizeof(int64_t)) == 0;
      starts[row] = same ? 1 : 0;
      before = at;
      at += length;
    }
  }
};

// A stripe that stores unique rows only: what the prototype takes for the other side.
Stripe UniqueOnly(const Stripe& clustered, size_t per_session) {
  Stripe unique;
  size_t at = 0;
  for (size_t row = 0; row < clustered.rows; at += clustered.lengths[row++]) {
    if (row % per_session != 0) continue;
    unique.lengths.push_back(clustered.lengths[row]);
    unique.ids.insert(unique.ids.end(), clustered.ids.begin() + static_cast<ptrdiff_t>(at),
                      clustered.ids.begin() + static_cast<ptrdiff_t>(at + clustered.lengths[row]));
  }
  unique.rows = unique.lengths.size();
  Encode(&unique);
  return unique;
}

void Decode(int pairs, size_t num_rows) {
  const auto transform =
      reader::MakeTransform(reader::Params("sigrid_hash", {{"max", int64_t{1'000'000}}}, 0, {}));
  const auto& hash = dynamic_cast<const reader::IdTransform&>(*transform);
  const auto rows = static_cast<double>(num_rows) / 1e9;
  const auto median = [&](const std::vector<double>& seconds) {
    return Quantile(seconds, 0.5) / rows;
  };
  for (const size_t k : {1, 4, 8, 16}) {
    const Stripe stripe = MakeStripe(num_rows, k), stored = UniqueOnly(stripe, k);
    Work a(stripe, hash), b(stripe, hash), c(stored, hash);
    fmt::print("{} rows of {:.2f} MB, {} equal ones a session; ns a row\n", num_rows,
               static_cast<double>(stripe.plain_bytes) / 1e6, k);
    const auto print = [&](const char* what, const Pairs& both) {
      fmt::print("  {:<58} {:6.1f} {:6.1f}  {:5.2f}x ({:.2f} to {:.2f})\n", what, median(both.a),
                 median(both.b), Quantile(both.ratios, 0.5), Quantile(both.ratios, 0.1),
                 Quantile(both.ratios, 0.9));
    };
    print("unzip + decode + hash: all, a stripe of unique rows only",
          Interleave(
              pairs, [&] { a.All(); }, [&] { c.All(); }));
    print("unzip + decode + hash: all, unique of the same stripe",
          Interleave(
              pairs, [&] { a.All(); }, [&] { b.Unique(); }));
    print("decode + hash: all, unique of the same stripe",
          Interleave(
              pairs, [&] { a.AllBehind(); }, [&] { b.UniqueBehind(); }));
    b.Find();
    const Pairs parts = Interleave(
        pairs, [&] { a.Decompress(); }, [&] { b.DecodeFound(); });
    fmt::print("  {:<58} {:6.1f} {:6.1f}\n", "unzip alone; decode of the unique lists alone",
               median(parts.a), median(parts.b));
    const Pairs floor = Interleave(
        pairs, [&] { a.All(); }, [&] { c.Decompress(); });
    print("all; unzip alone of the stripe of unique rows: the ceiling", floor);
    const Pairs touch = Interleave(
        pairs, [&] { b.Find(); }, [&] { a.ReadOnce(); });
    print("finding in encoded bytes; reading those bytes once", touch);
    SparseColumn column;
    column.name = "a";
    column.present.words.assign(num_rows / 64, ~uint64_t{0});
    column.present.count = num_rows;
    column.offsets.push_back(0);
    for (const uint32_t length : stripe.lengths)
      column.offsets.push_back(column.offsets.back() + length);
    column.values.assign(stripe.ids.begin(), stripe.ids.end());
    const SparseColumn* columns[] = {&column};
    const auto classify = [&](reader::DedupScope scope) {
      if (reader::ClassifyRows(columns, num_rows, scope).first_row.empty()) std::abort();
    };
    const Pairs find = Interleave(
        pairs, [&] { b.Find(); }, [&] { classify(reader::DedupScope::kNeighbours); });
    const Pairs table = Interleave(
        pairs, [&] { classify(reader::DedupScope::kBatch); }, [&] { b.ComparePrevious(); });
    fmt::print(
        "  finding duplicates: in encoded bytes {:.1f}, by values {:.1f}, by hash table "
        "{:.1f}; the prototype's memcmp of values {:.1f}\n",
        median(find.a), median(find.b), median(table.a), median(table.b));
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
  for (const size_t rows : {2048, 16384}) headrace::Decode(pairs, rows);
  headrace::Train(pairs);
  return 0;
}
