// Fuzzes the checkpoint's parser: any bytes are refused by an Error or read as a state that a
// ledger takes or refuses. Inputs get a valid checksum first, so that they come past it. And a
// ledger's list of splits: it is refused, or the sums of two ledgers that divide the rows add up.
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

namespace {

using namespace headrace;
using namespace headrace::reader;

// Of each two bytes, the first says how far a split begins from the end of the one before (128: not
// at all), and the second how many rows it has.
std::vector<RowRange> SplitsOf(const uint8_t* data, size_t size, bool* has_gap) {
  std::vector<RowRange> splits;
  uint64_t end = 0;
  *has_gap = false;
  for (size_t at = 0; at + 1 < size && splits.size() < 64; at += 2) {
    const uint64_t first = end + data[at] - 128;
    *has_gap |= !splits.empty() && first != end;
    splits.push_back({first, data[at + 1]});
    end = first + data[at + 1];
  }
  return splits;
}

void DivideRows(const uint8_t* data, size_t size) {
  bool has_gap = false;
  const std::vector<RowRange> splits = SplitsOf(data, size, &has_gap);
  if (splits.empty()) return;
  try {
    DeliveryLedger one(splits), other(splits), both(splits);
    HR_CHECK(!has_gap, "splits that do not lie one behind the other are refused");
    for (uint64_t split = 0; split < splits.size(); ++split) {
      const RowRange& rows = splits[split];
      if (rows.count == 0) continue;
      const uint64_t cut = (data[split] * rows.count) >> 8;
      const RowSpan low = {0, split, rows.first, cut, cut};
      const RowSpan high = {0, split, rows.first + cut, rows.count - cut, rows.count - cut};
      if (cut > 0) one.Settle({&low, 1});
      other.Settle({&high, 1});
      const RowSpan whole = {0, split, rows.first, rows.count, rows.count};
      both.Settle({&whole, 1});
    }
    HR_CHECK(one.TotalBefore(1) + other.TotalBefore(1) == both.TotalBefore(1), "sums add up");
    one.Close(1);
    other.Close(1);
    one.Merge(other);
    HR_CHECK(one.missing_rows() == 0, "nothing is missing");
  } catch (const Error& error) {
    HR_CHECK(error.code() == ExitCode::kBadData, error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  DivideRows(data, size);
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
