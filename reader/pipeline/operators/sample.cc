// Keeps each row with probability `rate`, chosen before decode, so that a direct layout need not
// decode the ids of the others; elsewhere extract drops them. The draw is a hash of the row's
// number in the table, so that the same rows stay in every epoch and run, whatever the threads, the
// batches or the order.
//
//   operators = ["decompress", { sample = 0.1 }, "decode", "extract"]
#include <algorithm>
#include <any>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mix_bits.h"
#include "reader/pipeline/fingerprint.h"
#include "reader/pipeline/operator.h"
#include "reader/pipeline/spec/value.h"

namespace headrace::reader {
namespace {

struct SampleKeys {
  double rate = 1;
  uint64_t seed = 0;  // with the pipeline's
};

std::any ParseSample(const SpecValue& table, const std::string& kind) {
  SampleKeys keys;
  keys.rate = table.Number(kind, keys.rate);
  if (!(keys.rate >= 0 && keys.rate <= 1))
    table[kind].Fail("sample is the share of rows that stay, from 0 to 1");
  keys.seed = table.Count("seed", keys.seed, 0, UINT64_MAX >> 1);
  return keys;
}

class SampleOperator final : public Operator {
 public:
  SampleOperator(const OperatorPlan& plan, const OperatorContext& context)
      : SampleOperator(std::any_cast<const SampleKeys&>(plan.spec.keys), context.spec->seed) {}

  // Bytes stay as they are: the rows of a stripe are in its streams together. Layout "direct"
  // passes over the others in the encoded streams; otherwise `extract` drops them.
  void Process(Element&& element, const Emit& emit) override {
    const RowSpan& split = element.origin;
    std::vector<uint8_t> kept(split.count);
    for (uint64_t row = 0; row < split.count; ++row) kept[row] = Keeps(split.first + row);
    element.kept = std::make_shared<const std::vector<uint8_t>>(std::move(kept));
    const std::vector<uint8_t> left = WantedRows(element, split.first, split.count);
    element.rows = static_cast<uint64_t>(std::count(left.begin(), left.end(), 1));
    emit(std::move(element));
  }

 private:
  SampleOperator(const SampleKeys& keys, uint64_t pipeline_seed)
      : seed_(MixBits(MixBits(pipeline_seed ^ 0x73616d706c65) ^ keys.seed)),
        keeps_all_(keys.rate == 1),
        threshold_(keeps_all_ ? 0 : static_cast<uint64_t>(std::ldexp(keys.rate, 64))) {}

  bool Keeps(uint64_t row) const {
    return keeps_all_ || MixBits(seed_ ^ MixBits(row)) < threshold_;
  }

  const uint64_t seed_;
  const bool keeps_all_;
  const uint64_t threshold_;
};

HR_OPERATOR("sample", SampleOperator,
            {.order = 35,
             .takes = ElementForm::kPlain,
             .makes = ElementForm::kPlain,
             .presence = "optional",
             .drops_rows = true,
             .keys = {"seed"},
             .needs = "a rate: write { sample = 0.1 }",
             .parse = ParseSample,
             .describe = [](const OperatorSpec& op, Description* text) {
               const auto& keys = std::any_cast<const SampleKeys&>(op.keys);
               text->Add("sample");
               text->Add(keys.rate);
               text->Add(keys.seed);
             }});

}  // namespace
}  // namespace headrace::reader
