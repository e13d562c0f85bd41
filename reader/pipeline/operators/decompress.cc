// Unframes and decompresses the streams of a stripe.
#include <utility>

#include "reader/dwrf/feature_stream.h"
#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

class DecompressOperator final : public Operator {
 public:
  void Process(Element&& element, const Emit& emit) override {
    dwrf::UnpackedStripe unpacked = dwrf::Decompress(Take<FetchedStripe>(&element));
    element.bytes = unpacked.unpacked_bytes;
    element.payload = std::move(unpacked);
    emit(std::move(element));
  }
};

HR_OPERATOR("decompress", DecompressOperator,
            {.order = 30, .takes = ElementForm::kStored, .makes = ElementForm::kPlain});

}  // namespace
}  // namespace headrace::reader
