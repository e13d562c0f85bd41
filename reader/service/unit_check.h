// What a rank relies on when it joins units, which come from other processes, to batches: that a
// unit settles the rows that it has, and has the features of the job.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/batch/tensor_batch.h"
#include "reader/transforms/plan.h"

namespace headrace::reader::service {

// Of the columns that a pipeline's batches have, the features by name, kind and order, and whether
// there is a label: as a hash, so that a rank is told them in one word, however many they are.
uint64_t FeaturesOf(const std::vector<AvailableColumn>& columns, const std::string& label);

// Of the units of one connection. Not thread-safe.
class UnitCheck {
 public:
  // The unit's own features, which must be those of its job. Nothing where all rows were dropped:
  // their names are not there either. Throws Error kBadData for a unit whose spans are not those of
  // its rows.
  std::optional<uint64_t> FeaturesOf(const TensorBatch& unit);

 private:
  struct Features {
    bool is_labelled = false;
    std::vector<std::string> dense, sparse, weighted;
  };
  bool AreLast(const TensorBatch& unit) const;

  Features last_;  // as all units of a sound connection have
  std::optional<uint64_t> hash_of_last_;
};

}  // namespace headrace::reader::service
