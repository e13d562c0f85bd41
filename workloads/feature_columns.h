// FeatureColumns: makes the values of one feature for any rows of a partition.
//
// A value belongs to (feature, session, version), where the version counts the feature's changes
// since the session began, and is a pure function of those. Presence and list lengths are corrected
// per partition, so that coverage and mean length come out as asked for even in small tables.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "workloads/distributions.h"
#include "workloads/feature_set.h"
#include "workloads/session_rows.h"

namespace headrace::workloads {

// The tables all features draw from. Immutable.
struct DrawTables {
  explicit DrawTables(const WorkloadSpec& spec);
  std::vector<QuantileTable> shapes;  // by QuantileTable::Shape
  std::vector<Zipf> ids;              // by IdClass
  std::vector<double> lengths;        // log-normal, mean 1
  double mean_length = 0;             // of all sparse features
};

// The correction of one feature in one partition.
struct Correction {
  uint32_t present_below = 4096;  // a value is there when its 12-bit draw is below
  double length_scale = 1;
};

// The rounding errors of the features so far: rows that should have had a value, ids that should
// have been in lists. The next features compensate for them, so that sums over features are exact.
struct Owed {
  double rows = 0, ids = 0;
};

// Compact values over the rows of a block, in the form FileWriter::WriteFlat takes.
struct FeatureBlock {
  std::vector<uint64_t> present;
  std::vector<uint32_t> lengths;
  std::vector<int64_t> integers;
  std::vector<float> floats;
};

class FeatureColumns {
 public:
  FeatureColumns(Feature feature, std::shared_ptr<const DrawTables> tables);

  const Feature& feature() const { return feature_; }

  // Sets the correction for `partition`; takes from `owed` and adds its own rounding to it.
  void StartPartition(const SessionRows& partition, Owed* owed);

  // Replaces `block` by the values of partition.rows[first, first + count).
  void Fill(const SessionRows& partition, uint64_t first, uint64_t count,
            FeatureBlock* block) const;

 private:
  // Rows of one session that share a value.
  struct Segment {
    uint64_t value_key;
    uint32_t rows;
  };
  std::vector<Segment> Segments(const SessionRows& partition) const;
  // Scales lengths so that `segments`, the present ones, hold as many ids as wanted.
  void CorrectLengths(const std::vector<Segment>& segments, double present, Owed* owed);
  // One value: its 64-bit key decides presence (bits 52..63), length (40..51) and rounding
  // (20..39).
  uint64_t SessionKey(uint64_t session_key) const;
  uint32_t Version(uint64_t key, uint32_t visit) const;
  static uint64_t ValueKey(uint64_t key, uint32_t version);
  uint32_t Length(uint64_t value_key) const;
  void AppendList(uint64_t session_key, uint64_t value_key, uint32_t version, uint32_t length,
                  FeatureBlock* block) const;
  int64_t Id(uint64_t random) const;
  void MakeDistinct(size_t first, uint64_t value_key, std::vector<int64_t>* ids) const;

  Feature feature_;
  std::shared_ptr<const DrawTables> tables_;
  ChangeTable changes_;
  Correction correction_;
};

}  // namespace headrace::workloads
