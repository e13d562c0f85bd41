// IdListTransform: intersection or union of two id lists of a row.
// Shape: two lists -> one list.  Cost: one hash-table step per id of both lists. Intersections of
// short lists compare all pairs instead, 16 at once.
#include <algorithm>
#include <bit>

#include "reader/transforms/id_hash.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/simd.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

// Counts of ids, emptied in constant time: a slot counts only while it carries the current stamp.
class IdCounts {
 public:
  // Forgets all ids; room for `ids` different ones.
  void Reset(size_t ids) {
    const size_t wanted = std::max(kLeastSlots, std::bit_ceil(2 * ids + 2));
    if (slots_.size() < wanted) {
      slots_.assign(wanted, Slot{});
      stamp_ = 0;
    }
    if (++stamp_ == 0) {
      slots_.assign(slots_.size(), Slot{});
      stamp_ = 1;
    }
    shift_ = 64 - std::countr_zero(slots_.size());
  }

  // The count of `id`, 0 when it is new.
  uint32_t& operator[](int64_t id) {
    const size_t mask = slots_.size() - 1;
    // Fibonacci hashing: ids of one list differ, and the high bits of the product mix all of
    // theirs.
    size_t place = (static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15u) >> shift_;
    while (slots_[place].stamp == stamp_ && slots_[place].id != id) place = (place + 1) & mask;
    Slot& slot = slots_[place];
    if (slot.stamp != stamp_) slot = {id, stamp_, 0};
    return slot.count;
  }

  // Whether `id` is new; from now on it is known. Of this and operator[] only one is called between
  // two Resets.
  bool Add(int64_t id) {
    const size_t mask = slots_.size() - 1;
    size_t place = (static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15u) >> shift_;
    Slot* slot = &slots_[place];
    // Whether an id is new is as good as random, and so is whether its slot had it in another list:
    // only a slot that another id of this list has may cost a branch.
    while (((slot->stamp ^ stamp_) | static_cast<uint32_t>(slot->id == id)) == 0) {
      place = (place + 1) & mask;
      slot = &slots_[place];
    }
    const bool is_new = slot->stamp != stamp_;
    slot->id = id;
    slot->stamp = stamp_;
    return is_new;
  }

 private:
  // So many that ids of usual lists seldom meet, and few enough for the nearest cache.
  static constexpr size_t kLeastSlots = 1024;

  struct Slot {
    int64_t id = 0;
    uint32_t stamp = 0, count = 0;
  };
  std::vector<Slot> slots_;
  uint32_t stamp_ = 0;
  int shift_ = 0;
};

#if defined(HR_X86)

// How often `id` appears in `ids`.
HR_AVX512 HR_INLINE uint32_t CountId(const int64_t* ids, size_t n, int64_t id) {
  const __m512i wanted = _mm512_set1_epi64(id);
  uint32_t count = 0;
  for (size_t i = 0; i < n; i += 8) {
    const __mmask8 lanes = FirstLanes8(n - i);
    const __m512i some = _mm512_maskz_loadu_epi64(lanes, ids + i);
    count += static_cast<uint32_t>(
        __builtin_popcount(_mm512_mask_cmpeq_epi64_mask(lanes, some, wanted)));
  }
  return count;
}

// Which of the up to 32 ids from `ids` on have the lower half of an id of `b`.
HR_AVX512 HR_INLINE uint32_t LowerHalvesIn(const int64_t* ids, size_t n,
                                           std::span<const int64_t> b) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  __m512i half[2];
  for (size_t v = 0; v < 2; ++v) {
    const size_t left = n > 16 * v ? n - 16 * v : 0;
    const __m512i low = _mm512_maskz_loadu_epi64(FirstLanes8(left), ids + 16 * v);
    const __m512i high =
        _mm512_maskz_loadu_epi64(FirstLanes8(left > 8 ? left - 8 : 0), ids + 16 * v + 8);
    half[v] = _mm512_permutex2var_epi32(low, even, high);
  }
  __mmask16 first = 0, second = 0;
  for (const int64_t id : b) {
    const __m512i other = _mm512_set1_epi32(static_cast<int>(id));
    first = _kor_mask16(first, _mm512_cmpeq_epi32_mask(half[0], other));
    second = _kor_mask16(second, _mm512_cmpeq_epi32_mask(half[1], other));
  }
  const uint32_t both = first | static_cast<uint32_t>(second) << 16;
  return n >= 32 ? both : both & ((1u << n) - 1);
}

// Compares all pairs by the lower halves of the ids; the few that agree are looked at in full. An
// id stays if it appears earlier in `a` less often than `wanted` allows, so that nothing is read
// back from the output, whose stores are still on their way.
HR_AVX512 int64_t* IntersectAvx512(std::span<const int64_t> a, std::span<const int64_t> b,
                                   bool multiset, int64_t* place) {
  for (size_t i = 0; i < a.size(); i += 32) {
    const size_t n = std::min<size_t>(32, a.size() - i);
    for (uint32_t found = LowerHalvesIn(a.data() + i, n, b); found != 0; found &= found - 1) {
      const size_t at = i + static_cast<size_t>(__builtin_ctz(found));
      const uint32_t in_b = CountId(b.data(), b.size(), a[at]);
      const uint32_t wanted = multiset ? in_b : in_b > 0;
      *place = a[at];
      place += CountId(a.data(), at, a[at]) < wanted;
    }
  }
  return place;
}

// Above this product of lengths the hash table is faster: it costs some 12 cycles per id, a
// comparison of 16 pairs a good one.
bool ManyPairs(size_t a, size_t b) { return a * b > 128 * (a + b); }

#endif

struct IdListTransform final : ListTransform {
  explicit IdListTransform(const Params& params) : multiset(params.Flag("multiset", false)) {
    const std::string mode = params.Text("mode");
    params.Require(mode == "intersection" || mode == "union", "mode",
                   "be \"intersection\" or \"union\"");
    intersection = mode == "intersection";
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    out->present = Presence(in);
    out->offsets.push_back(0);
    for (uint64_t row = 0; row < in.rows; ++row) {
      const std::span<const int64_t> a = Ids(*in.sparse[0], row), b = Ids(*in.sparse[1], row);
      std::vector<int64_t> pool(b.begin(), b.end()), list;
      for (const int64_t id : a) {
        auto match = std::find(pool.begin(), pool.end(), id);
        if (!intersection || match != pool.end()) list.push_back(id);
        if (match != pool.end() && (multiset || !intersection)) pool.erase(match);
      }
      if (!intersection) list.insert(list.end(), pool.begin(), pool.end());
      std::vector<int64_t> kept;
      for (const int64_t id : list)
        if (multiset || std::find(kept.begin(), kept.end(), id) == kept.end()) kept.push_back(id);
      out->values.insert(out->values.end(), kept.begin(), kept.end());
      EndRow(out);
    }
  }

  void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet set) const override {
    thread_local IdCounts counts;
    const SparseColumn &first = *in.sparse[0], &second = *in.sparse[1];
    const uint64_t most = first.values.size() + (intersection ? 0 : second.values.size());
    ReserveLists(out, in.rows, most);
    out->present = Presence(in);
    int64_t* place = out->values.data();
    for (uint64_t row = 0; row < in.rows; ++row) {
      const std::span<const int64_t> a = Ids(first, row), b = Ids(second, row);
#if defined(HR_X86)
      if (set == InstructionSet::kAvx512 && intersection && !ManyPairs(a.size(), b.size())) {
        place = IntersectAvx512(a, b, multiset, place);
        out->offsets[row + 1] = static_cast<uint32_t>(place - out->values.data());
        continue;
      }
#endif
      if (!a.empty() || !b.empty()) {
        counts.Reset(a.size() + b.size());
        place = intersection ? Intersect(a, b, &counts, place) : Unite(a, b, &counts, place);
      }
      out->offsets[row + 1] = static_cast<uint32_t>(place - out->values.data());
    }
    out->values.resize(static_cast<size_t>(place - out->values.data()));
    (void)set;
  }

  PresenceBits Presence(const TransformInputs& in) const {
    return intersection ? PresentInAll(in.sparse, in.rows) : PresentInAny(in.sparse, in.rows);
  }

  int64_t* Intersect(std::span<const int64_t> a, std::span<const int64_t> b, IdCounts* counts,
                     int64_t* place) const {
    if (a.empty() || b.empty()) return place;
    for (const int64_t id : b) ++(*counts)[id];
    for (const int64_t id : a) {
      uint32_t& count = (*counts)[id];
      *place = id;
      place += count > 0;
      count = multiset ? count - (count > 0) : 0;
    }
    return place;
  }

  int64_t* Unite(std::span<const int64_t> a, std::span<const int64_t> b, IdCounts* counts,
                 int64_t* place) const {
    if (!multiset) return AppendNew(b, counts, AppendNew(a, counts, place));
    for (const int64_t id : a) {
      ++(*counts)[id];
      *place++ = id;
    }
    for (const int64_t id : b) {
      uint32_t& count = (*counts)[id];
      *place = id;
      place += count == 0;
      count -= count > 0;  // it meets one of `a`
    }
    return place;
  }

  // Appends the ids that `known` does not have yet. Where one goes hangs on all before it, and the
  // look-ups would wait for that; so they come first.
  static int64_t* AppendNew(std::span<const int64_t> ids, IdCounts* known, int64_t* place) {
    while (!ids.empty()) {
      const auto some = ids.first(std::min<size_t>(64, ids.size()));
      uint64_t is_new = 0;
      for (size_t i = 0; i < some.size(); ++i)
        is_new |= static_cast<uint64_t>(known->Add(some[i])) << i;
      for (const int64_t id : some) {
        *place = id;
        place += is_new & 1;
        is_new >>= 1;
      }
      ids = ids.subspan(some.size());
    }
    return place;
  }

  bool intersection, multiset;
};

HR_TRANSFORM(
    "id_list_transform", IdListTransform,
    {.summary = "Gives the intersection or the union of two id lists.",
     .semantics =
         "Sets by default: each id once, in the order of the first list, then of the "
         "second. With `multiset` an id appears as often as the lesser (intersection) or "
         "the greater (union) of its two counts. The intersection needs both features, the "
         "union one of them.",
     .cost = "per id of both lists, one hash-table step; short intersections per pair, 16 at once",
     .inputs = {InputKind::kSparse, InputKind::kSparse},
     .max_inputs = 2,
     .output = OutputKind::kSparse,
     .params = {{"mode", "text", "", "intersection or union"},
                {"multiset", "flag", "false", "count repeated ids"}},
     .examples = {{"mode=intersection", "3 1 1 2 | 1 | () | - ; 1 1 2 4 | - | 5 | -",
                   "1 2 | - | () | -"},
                  {"mode=intersection multiset=true", "3 1 1 1 2 ; 1 1 2 4", "1 1 2"},
                  {"mode=union", "3 1 1 | 1 | () | - ; 4 1 4 | - | 5 | -", "3 1 4 | 1 | 5 | -"},
                  {"mode=union multiset=true", "1 1 2 3 ; 1 4 4 1 1", "1 1 2 3 4 4 1"}},
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
