// ComputeScore: a number that says how alike two id lists of a row are.
// Shape: two lists (with or without weights) -> float[rows].  Cost: the product of the lengths,
// compute-bound. Source: the cross-feature operators of TorchArrow (compute_score), which count
// repeated ids.
#include <algorithm>
#include <cmath>

#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

// One distinct id of a list: how often it appears, and its weights (1 each without weights).
struct Entry {
  int64_t id;
  float count, sum, least, greatest;
};

// Distinct ids in the order of their first appearance.
std::vector<Entry> Entries(const SparseColumn& column, uint64_t row) {
  std::vector<Entry> entries;
  for (uint32_t i = column.offsets[row]; i < column.offsets[row + 1]; ++i) {
    const int64_t id = column.values[i];
    const float weight = column.weights.empty() ? 1.0f : column.weights[i];
    auto entry =
        std::find_if(entries.begin(), entries.end(), [id](const Entry& e) { return e.id == id; });
    if (entry == entries.end()) {
      entries.push_back({id, 1, weight, weight, weight});
    } else {
      *entry = {id, entry->count + 1, entry->sum + weight, std::min(entry->least, weight),
                std::max(entry->greatest, weight)};
    }
  }
  return entries;
}

struct Matched {
  const Entry *a, *b;
};
struct RowLists {
  std::vector<Entry> a, b;
  std::vector<Matched> both;  // ids in both lists, in the order of the first
  float a_ids, b_ids;         // list lengths
};

float Overlap(const RowLists& row) {
  float count = 0;
  for (const Matched& m : row.both) count += std::min(m.a->count, m.b->count);
  return count;
}

float HasOverlap(const RowLists& row) { return row.both.empty() ? 0.0f : 1.0f; }

float MaxCount(const RowLists& row) {
  float count = 0;
  for (const Matched& m : row.both) count += std::max(m.a->count, m.b->count);
  return count;
}

float Jaccard(const RowLists& row) {
  const float overlap = Overlap(row), all = row.a_ids + row.b_ids - overlap;
  return all == 0 ? 0 : overlap / all;
}

float Norm(const std::vector<Entry>& entries) {
  float sum = 0;
  for (const Entry& entry : entries) sum += entry.sum * entry.sum;
  return std::sqrt(sum);
}

float Cosine(const RowLists& row) {
  const float a = Norm(row.a), b = Norm(row.b);
  float sum = 0;
  for (const Matched& m : row.both) sum += m.a->sum * m.b->sum;
  return a == 0 || b == 0 ? 0 : sum / a / b;
}

float ScoreSum(const RowLists& row) {
  float sum = 0;
  for (const Matched& m : row.both) sum += m.b->sum;
  return sum;
}

float ScoreMin(const RowLists& row) {
  if (row.both.empty()) return 0;
  float least = row.both[0].b->least;
  for (const Matched& m : row.both) least = std::min(least, m.b->least);
  return least;
}

float ScoreMax(const RowLists& row) {
  if (row.both.empty()) return 0;
  float greatest = row.both[0].b->greatest;
  for (const Matched& m : row.both) greatest = std::max(greatest, m.b->greatest);
  return greatest;
}

constexpr struct {
  const char* name;
  float (*score)(const RowLists&);
} kModes[] = {{"overlap", Overlap},    {"has_overlap", HasOverlap}, {"max_count", MaxCount},
              {"jaccard", Jaccard},    {"cosine", Cosine},          {"score_sum", ScoreSum},
              {"score_min", ScoreMin}, {"score_max", ScoreMax}};

struct ComputeScore final : ScoreTransform {
  explicit ComputeScore(const Params& params) {
    const std::string mode = params.Text("mode");
    for (const auto& candidate : kModes)
      if (mode == candidate.name) score = candidate.score;
    params.Require(score != nullptr, "mode",
                   "be overlap, has_overlap, max_count, jaccard, cosine, score_sum, score_min or "
                   "score_max");
  }

  void Reference(const TransformInputs& in, DenseColumn* out) const override {
    out->present = PresentInAll(in.sparse, in.rows);
    out->values.assign(in.rows, 0);
    for (uint64_t row = 0; row < in.rows; ++row) {
      if (!out->present.Get(row)) continue;
      RowLists lists{Entries(*in.sparse[0], row),
                     Entries(*in.sparse[1], row),
                     {},
                     static_cast<float>(Ids(*in.sparse[0], row).size()),
                     static_cast<float>(Ids(*in.sparse[1], row).size())};
      for (const Entry& a : lists.a)
        for (const Entry& b : lists.b)
          if (a.id == b.id) lists.both.push_back({&a, &b});
      out->values[row] = score(lists);
    }
  }

  float (*score)(const RowLists&) = nullptr;
};

HR_TRANSFORM(
    "compute_score", ComputeScore,
    {.summary = "Gives a score of how alike two id lists are.",
     .semantics =
         "Repeated ids count (multisets): `overlap` is the sum of the lesser counts, "
         "`max_count` of the greater ones over common ids, `jaccard` is overlap / (l + m - "
         "overlap). `cosine` uses weights, 1 each where there are none; `score_sum`, "
         "`score_min` and `score_max` are over the second feature's weights of common ids. "
         "Nothing in common gives 0. A row needs both features.",
     .cost = "product of the list lengths, compute-bound",
     .inputs = {InputKind::kAnyIds, InputKind::kAnyIds},
     .max_inputs = 2,
     .output = OutputKind::kDense,
     .params = {{"mode", "text", "",
                 "overlap, has_overlap, max_count, jaccard, cosine, score_sum, score_min, "
                 "score_max"}},
     .examples = {{"mode=jaccard", "1 1 2 3 | () | - ; 1 2 3 | () | 1", "0.75 0 -"},
                  {"mode=overlap", "1 1 2 ; 1 1 3", "2"},
                  {"mode=max_count", "1 1 2 ; 1 2 2 2", "5"},
                  {"mode=cosine", "1:3 2:4 ; 1:3 2:4", "1"},
                  {"mode=score_max", "1 2 ; 1:0.5 2:0.75 3:9", "0.75"}},
     .make = nullptr});

}  // namespace
}  // namespace headrace::reader
