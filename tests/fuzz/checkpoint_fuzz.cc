// Fuzzes the checkpoint's parser: any bytes are refused by an Error or read as a state that a
// ledger takes or refuses. Inputs get a valid checksum first, so that they come past it.
//
// fuzz run: share=2 length=4096
// fuzz sources: reader/pipeline/delivery/checkpoint.cc reader/pipeline/delivery/ledger.cc
// fuzz sources: reader/pipeline/delivery/row_set.cc
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "reader/pipeline/delivery/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  using namespace headrace::reader;
  std::string text(reinterpret_cast<const char*>(data), size);
  for (const bool summed : {false, true}) {
    if (summed && size >= 8) {
      const uint64_t sum = XXH64(text.data(), size - 8, 0);
      std::memcpy(text.data() + size - 8, &sum, 8);
    }
    try {
      const Checkpoint checkpoint = ParseCheckpoint(text, "fuzz");
      const std::string written = SerializeCheckpoint(checkpoint);
      HR_CHECK(text.starts_with("headrace.checkpoint/2") || written == text,
               "a checkpoint has one form");
      HR_CHECK(ParseCheckpoint(written, "fuzz").delivered == checkpoint.delivered,
               "what is written is what was read");
      if (checkpoint.splits > 256) continue;
      std::vector<RowRange> splits;
      for (uint64_t s = 0; s < checkpoint.splits; ++s) splits.push_back({100 * s, 100});
      DeliveryLedger ledger(splits, checkpoint.delivered), merged(splits);
      merged.Merge(ledger);
      HR_CHECK(merged.Settled(ledger.first_epoch()) == ledger.Settled(ledger.first_epoch()),
               "a merged state has the same rows");
      for (const auto& [epoch, state] : checkpoint.delivered.epochs)
        for (uint64_t s = 0; s < splits.size(); ++s)
          if (!ledger.IsDone(epoch, s)) ledger.Settle(ledger.Remaining(epoch, s));
    } catch (const Error& error) {
      HR_CHECK(error.code() == ExitCode::kBadData, error.what());
    }
  }
  return 0;
}
