// ByteFlow: how many bytes crossed each border of a pipeline, from what is stored to what is sent:
// stored, selected, read, over-read, decompressed, decoded, transformed, sent. The counts are
// exact, from the operators' accounts; a border that no account counts says why.
#pragma once
#include <string>
#include <vector>

#include "analysis/run/plausibility.h"
#include "analysis/run/run_view.h"
#include "base/quantity.h"

namespace headrace::analysis {

struct ByteBorder {
  std::string key;      // "stored", "selected", "read", "over_read", "decompress", ...
  std::string name;     // for people: "read (with over-read)"
  std::string told_by;  // "account fetch, out"; empty where nothing tells
  Quantity bytes;       // over the run
  Quantity per_row;     // per row that its operator handled, else per row of the consumer
  Quantity per_second;  // mean over the run
  Quantity ratio;       // to the border `against`
  std::string against;  // key of the border before; empty for the first
};

// The borders in the order in which bytes pass them; empty when no operator counted bytes. Where an
// operator's figures are doubted, its borders are unavailable, with the doubt as reason.
std::vector<ByteBorder> ByteFlow(const RunView& run, const Doubts& doubts);

// The border with that key, or null.
const ByteBorder* FindBorder(const std::vector<ByteBorder>& borders, const std::string& key);

// Bytes of one feature group's lists before and after deduplication, from accounts of kind "dedup":
// bytes in are the original lists, bytes out the unique ones and their inverse.
struct Duplication {
  std::string group;
  Quantity factor;  // bytes in / bytes out
  Quantity bytes_in, bytes_out;
};
// Empty where the run deduplicated nothing.
std::vector<Duplication> DuplicationOf(const RunView& run, const Doubts& doubts);

}  // namespace headrace::analysis
