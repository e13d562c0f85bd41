// Waiting: rows that `shuffle` and `rebatch` hold back until there are enough of them.
#pragma once
#include <cstdint>
#include <memory>

#include "reader/pipeline/memory_ledger.h"

namespace headrace::reader {

// Under a memory budget, the charge for rows that wait in an operator.
class Waiting {
 public:
  explicit Waiting(MemoryLedger* ledger) : ledger_(ledger) {}
  ~Waiting() {
    if (charge_) charge_->Set(0);
  }
  bool is_counted() const { return ledger_ != nullptr; }
  void Set(uint64_t bytes) {
    if (ledger_ == nullptr) return;
    if (!charge_) charge_ = ledger_->Hold();
    charge_->Set(bytes);
  }
  // A charge for a batch that was made of waiting rows and no longer waits.
  std::shared_ptr<MemoryCharge> Leave(uint64_t bytes) const {
    if (ledger_ == nullptr) return nullptr;
    auto charge = ledger_->Hold();
    charge->Set(bytes);
    charge->Leave();
    return charge;
  }

 private:
  MemoryLedger* const ledger_;
  std::shared_ptr<MemoryCharge> charge_;
};

}  // namespace headrace::reader
