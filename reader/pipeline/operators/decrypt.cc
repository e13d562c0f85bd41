// Decrypts the streams of encrypted columns.
#include "reader/dwrf/crypto/decrypt.h"

#include <utility>

#include "reader/pipeline/operator.h"

namespace headrace::reader {
namespace {

class DecryptOperator final : public Operator {
 public:
  void Process(Element&& element, const Emit& emit) override {
    element.payload = dwrf::Decrypt(Take<FetchedStripe>(&element));
    emit(std::move(element));
  }
};

HR_OPERATOR("decrypt", DecryptOperator,
            {.order = 20,
             .takes = ElementForm::kStored,
             .makes = ElementForm::kStored,
             .presence = "optional"});

}  // namespace
}  // namespace headrace::reader
