// AddTokens: puts fixed ids before or behind each list, as text models want their start and end
// marks. Shape: lists -> lists, longer by the number of tokens.
// Cost: one copy of the list, memory-bound. Source: TorchArrow's add_tokens.
#include <algorithm>

#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

struct AddTokens final : ListTransform {
  explicit AddTokens(const Params& params) : tokens(params.Integers("tokens")) {
    const std::string at = params.Text("at", "begin");
    params.Require(at == "begin" || at == "end", "at", "be begin or end");
    at_begin = at == "begin";
  }

  void Reference(const TransformInputs& in, SparseColumn* out) const override {
    const SparseColumn& from = *in.sparse[0];
    out->present = from.present;
    out->offsets.push_back(0);
    for (uint64_t row = 0; row < in.rows; ++row) {
      const std::span<const int64_t> ids = Ids(from, row);
      if (from.present.Get(row)) {
        if (at_begin) out->values.insert(out->values.end(), tokens.begin(), tokens.end());
        out->values.insert(out->values.end(), ids.begin(), ids.end());
        if (!at_begin) out->values.insert(out->values.end(), tokens.begin(), tokens.end());
      }
      EndRow(out);
    }
  }

  void Apply(const TransformInputs& in, SparseColumn* out, InstructionSet) const override {
    const SparseColumn& from = *in.sparse[0];
    ReserveLists(out, in.rows, from.values.size() + from.present.count * tokens.size());
    out->present = from.present;
    int64_t* place = out->values.data();
    for (uint64_t row = 0; row < in.rows; ++row) {
      if (from.present.Get(row)) {
        const std::span<const int64_t> ids = Ids(from, row);
        if (at_begin) place = std::copy(tokens.begin(), tokens.end(), place);
        place = std::copy(ids.begin(), ids.end(), place);
        if (!at_begin) place = std::copy(tokens.begin(), tokens.end(), place);
      }
      out->offsets[row + 1] = static_cast<uint32_t>(place - out->values.data());
    }
  }

  std::vector<int64_t> tokens;
  bool at_begin;
};

HR_TRANSFORM("add_tokens", AddTokens,
             {.summary = "Puts fixed ids before or behind each list.",
              .semantics = "An empty list gets the tokens too; an absent feature does not.",
              .cost = "per id, one copy, memory-bound",
              .inputs = {InputKind::kSparse},
              .max_inputs = 1,
              .output = OutputKind::kSparse,
              .params = {{"tokens", "integers", "", "the ids to add, in their order"},
                         {"at", "text", "begin", "begin or end"}},
              .examples = {{"tokens=101,102", "7 8 | () | -", "101 102 7 8 | 101 102 | -"},
                           {"tokens=9 at=end", "7 8 | () | -", "7 8 9 | 9 | -"}},
              .make = nullptr});

}  // namespace
}  // namespace headrace::reader
