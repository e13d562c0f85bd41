// MapId: replaces ids by fixed new ids from a table. Shape: int64[n] -> int64[n], in place.
// Cost: one hash-table lookup per id: cache- or memory-latency-bound by the table's size; lookups
// are prefetched ahead.
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "reader/transforms/id_hash.h"
#include "reader/transforms/simd.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

constexpr size_t kAhead = 16;            // ids whose buckets are under way while one is looked up
constexpr int64_t kMaxSize = 1LL << 28;  // of a generated table

struct Pair {
  int64_t id, new_id;
};

// One cache line of the table. Four ids are compared without a branch: a probe sequence over single
// slots would be mispredicted about every third time.
struct alignas(64) Bucket {
  static constexpr size_t kSlots = 4;
  int64_t ids[kSlots];
  int64_t new_ids[kSlots];
};

// Lines "id new_id"; empty lines and lines that start with # are skipped.
std::vector<Pair> ReadPairs(const std::string& path, const Params& params) {
  std::ifstream in(path);
  params.Require(in.good(), "file", "name a readable file");
  std::vector<Pair> pairs;
  uint64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    char* end = nullptr;
    Pair pair{};
    const char* begin = line.c_str();
    errno = 0;
    pair.id = std::strtoll(begin, &end, 10);
    const char* middle = end;
    if (middle != begin) pair.new_id = std::strtoll(middle, &end, 10);
    while (*end == ' ' || *end == '\t' || *end == '\r') ++end;
    if (middle == begin || end == middle || *end != '\0' || errno != 0)
      throw Error(ExitCode::kUsage, "map_id: expected two integers, id and new id",
                  path + ":" + std::to_string(number));
    pairs.push_back(pair);
  }
  return pairs;
}

// A fixed permutation of 0 .. size - 1: ids in the order of their hashes.
std::vector<Pair> GeneratedPairs(int64_t size) {
  std::vector<Pair> pairs(static_cast<size_t>(size));
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [](int64_t a, int64_t b) {
    return MixId(static_cast<uint64_t>(a)) < MixId(static_cast<uint64_t>(b));
  });
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = {order[i], static_cast<int64_t>(i)};
  return pairs;
}

struct Table {
  // Throws as params.Require for an id that is there twice.
  Table(std::vector<Pair> some, const Params& params) : pairs(std::move(some)) {
    std::sort(pairs.begin(), pairs.end(), [](Pair a, Pair b) { return a.id < b.id; });
    for (size_t i = 1; i < pairs.size(); ++i)
      params.Require(pairs[i - 1].id != pairs[i].id, params.Has("file") ? "file" : "from",
                     "name each id once");
    Build();
  }

  // Fibonacci hashing: the high bits of the product depend on all bits of the id.
  size_t Home(int64_t id) const {
    return static_cast<size_t>((static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15u) >> shift);
  }

  // At most half full on average.
  void Build() {
    for (const Pair& pair : pairs) empty += pair.id == empty;  // pairs are sorted: first id missing
    int bits = 1;
    while (Bucket::kSlots << bits < 2 * pairs.size()) ++bits;
    shift = 64 - bits;
    mask = (size_t{1} << bits) - 1;
    Bucket vacant{};
    std::fill_n(vacant.ids, Bucket::kSlots, empty);
    buckets.assign(mask + 1, vacant);
    for (const Pair& pair : pairs) Insert(pair);
  }

  void Insert(const Pair& pair) {
    for (size_t place = Home(pair.id);; place = (place + 1) & mask) {
      Bucket& bucket = buckets[place];
      for (size_t slot = 0; slot < Bucket::kSlots; ++slot) {
        if (bucket.ids[slot] != empty) continue;
        bucket.ids[slot] = pair.id;
        bucket.new_ids[slot] = pair.new_id;
        return;
      }
    }
  }

  std::vector<Pair> pairs;  // sorted by id
  std::vector<Bucket> buckets;
  int64_t empty = INT64_MIN;  // an id that the table lacks marks an empty slot
  size_t mask = 0;
  int shift = 0;
};

// Generated tables of one size are one table: a pipeline has many of them, plans them more than
// once, and sorting one takes longer than a batch.
std::shared_ptr<const Table> GeneratedTable(int64_t size, const Params& params) {
  static std::mutex mutex;
  static std::map<int64_t, std::weak_ptr<const Table>> tables;
  std::lock_guard lock(mutex);
  std::weak_ptr<const Table>& known = tables[size];
  std::shared_ptr<const Table> table = known.lock();
  if (!table) known = table = std::make_shared<Table>(GeneratedPairs(size), params);
  return table;
}

struct MapId final : IdTransform {
  explicit MapId(const Params& params)
      : fallback(params.Integer("default", 0)), keep_unknown(params.Flag("keep_unknown", false)) {
    params.Require(params.Has("from") + params.Has("file") + params.Has("size") == 1, "from",
                   "be given, or 'file', or 'size': exactly one of them");
    if (params.Has("file")) {
      table = std::make_shared<Table>(ReadPairs(params.Text("file"), params), params);
    } else if (params.Has("size")) {
      const int64_t size = params.Integer("size");
      params.Require(size >= 1 && size <= kMaxSize, "size", "be between 1 and 2^28");
      table = GeneratedTable(size, params);
    } else {
      const std::vector<int64_t> from = params.Integers("from"), to = params.Integers("to");
      params.Require(from.size() == to.size(), "to", "have as many entries as 'from'");
      std::vector<Pair> pairs;
      for (size_t i = 0; i < from.size(); ++i) pairs.push_back({from[i], to[i]});
      table = std::make_shared<Table>(std::move(pairs), params);
    }
    buckets = table->buckets.data();
    empty = table->empty;
    mask = table->mask;
  }

  void Reference(std::span<int64_t> ids) const override {
    for (int64_t& id : ids) {
      const std::vector<Pair>& pairs = table->pairs;
      auto it = std::lower_bound(pairs.begin(), pairs.end(), id,
                                 [](const Pair& pair, int64_t x) { return pair.id < x; });
      if (it != pairs.end() && it->id == id) {
        id = it->new_id;
      } else if (!keep_unknown) {
        id = fallback;
      }
    }
  }

  void Apply(std::span<int64_t> ids, InstructionSet set) const override {
#if defined(HR_X86)
    if (set >= InstructionSet::kAvx2) return Avx2(ids);
#endif
    (void)set;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i + kAhead < ids.size()) __builtin_prefetch(&buckets[Home(ids[i + kAhead])]);
      ids[i] = FindFrom(Home(ids[i]), ids[i]);
    }
  }

  // Buckets fill from their first slot, and an id is never behind a bucket with an empty slot. The
  // empty marker is no id of the table, so an id equal to it is found unknown as well.
  int64_t FindFrom(size_t place, int64_t id) const {
    for (;; place = (place + 1) & mask) {
      const Bucket& bucket = buckets[place];
      for (size_t slot = 0; slot < Bucket::kSlots; ++slot) {
        if (bucket.ids[slot] == empty) return keep_unknown ? id : fallback;
        if (bucket.ids[slot] == id) return bucket.new_ids[slot];
      }
    }
  }

#if defined(HR_X86)
  HR_AVX2 void Avx2(std::span<int64_t> ids) const {
    const __m256i empties = _mm256_set1_epi64x(empty);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i + kAhead < ids.size()) __builtin_prefetch(&buckets[Home(ids[i + kAhead])]);
      const int64_t id = ids[i];
      const size_t home = Home(id);
      const Bucket& bucket = buckets[home];
      const __m256i slots = _mm256_load_si256(reinterpret_cast<const __m256i*>(bucket.ids));
      const auto hit = static_cast<uint32_t>(_mm256_movemask_pd(
          _mm256_castsi256_pd(_mm256_cmpeq_epi64(slots, _mm256_set1_epi64x(id)))));
      const auto free = static_cast<uint32_t>(
          _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(slots, empties))));
      if ((hit | free) == 0) [[unlikely]] {
        ids[i] = FindFrom((home + 1) & mask, id);
        continue;
      }
      const int64_t unknown = keep_unknown ? id : fallback;
      const int64_t known = bucket.new_ids[_tzcnt_u32(hit | 8u)];
      ids[i] = (hit & ~free) != 0 ? known : unknown;
    }
  }
#endif

  size_t Home(int64_t id) const { return table->Home(id); }

  std::shared_ptr<const Table> table;
  const Bucket* buckets;
  int64_t empty;
  size_t mask;
  int64_t fallback;
  bool keep_unknown;
};

HR_TRANSFORM(
    "map_id", MapId,
    {.summary = "Replaces ids by fixed new ids from a table.",
     .semantics =
         "The table is given as `from` and `to`, as a `file` of lines \"id new_id\", or as "
         "`size`: a fixed permutation of 0 .. size - 1. An id that is not in the table "
         "becomes `default`, or stays with `keep_unknown`. Weights stay.",
     .cost = "per id, one table lookup: latency-bound once the table leaves the cache",
     .inputs = {InputKind::kAnyIds},
     .max_inputs = 1,
     .output = OutputKind::kAsFirstInput,
     .params = {{"from", "integers", "none", "ids of the table"},
                {"to", "integers", "none", "their new ids"},
                {"file", "text", "none", "a file with the table"},
                {"size", "integer", "none", "entries of a generated table"},
                {"default", "integer", "0", "new id of unknown ids"},
                {"keep_unknown", "flag", "false", "leave unknown ids as they are"}},
     .examples = {{"from=5,7 to=50,70", "5 6 7 | - | ()", "50 0 70 | - | ()"},
                  {"from=5,7 to=50,70 default=-1", "5:0.5 6:1", "50:0.5 -1:1"},
                  {"from=5,7 to=50,70 keep_unknown=true", "5 6 7", "50 6 70"},
                  {"size=3", "0 1 2 3 -1", "1 0 2 0 0"}},
     .dictionary_values = 3,
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
