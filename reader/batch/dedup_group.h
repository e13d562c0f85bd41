// DedupGroup: sparse features of a batch that repeat together from row to row (RecD, MLSys 2023,
// arXiv 2211.05239). Their columns hold the unique rows only; `inverse` says for each row of the
// batch which unique row it has.
//
//   rows     a [1,2]  [1,2]  [7]  [1,2]        unique rows 2: a [1,2] [7]   b [5] []
//            b [5]    [5]    []   [5]          inverse 0 0 1 0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::reader {

struct DedupGroup {
  std::string name;
  uint32_t unique_rows = 0;
  std::vector<uint32_t> inverse;  // one per row of the batch, below unique_rows
};

}  // namespace headrace::reader
