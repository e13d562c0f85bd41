// StrideStatistics: the statistics of some rows of one stripe, per node, and per key below
// flattened maps. It recomputes from the rows what an entry of the row index contains.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "reader/batch/column.h"
#include "reader/dwrf/encode/statistics_builder.h"
#include "reader/dwrf/stripe.h"
#include "reader/schema.h"

namespace headrace::reader::dwrf {

class StrideStatistics {
 public:
  // For batches that hold the top-level `columns`. The arguments must outlive it. Memory:
  // sizeof(StatisticsBuilder) for each of Size() and each node.
  StrideStatistics(const Schema& schema, const Stripe& stripe, std::span<const uint32_t> columns);

  // The number of (node, sequence) pairs below flattened maps.
  static uint64_t Size(const Schema& schema, const Stripe& stripe);

  // Adds a batch of rows of the stripe.
  void AddRows(const Column& batch);

  // step(node, sequence, statistics of the stride), for all that can have a row index.
  template <class Step>
  void ForEach(Step step) const {
    for (const SchemaNode& node : schema_.nodes()) {
      if (!of_flat_map_[node.id]) step(node.id, 0U, nodes_[node.id]);
    }
    for (const auto& [map, flat] : maps_) {
      const uint32_t value = schema_.node(map).children[1];
      for (size_t k = 0; k < flat.sequences.size(); ++k)
        for (uint32_t i = 0; i < flat.width; ++i)
          step(value + i, flat.sequences[k], flat.below[k * flat.width + i]);
    }
  }
  // Adds the stride to the statistics of the file, per node, and forgets it.
  void MoveTo(std::vector<StatisticsBuilder>* file);

 private:
  struct FlatMap {
    uint32_t width = 0;                    // nodes of the value's subtree
    std::map<MapKey, size_t> key_of;       // -> its place in the two below
    std::vector<uint32_t> sequences;       // per key
    std::vector<StatisticsBuilder> below;  // [key][node - value]
  };
  using Rows = std::span<const uint64_t>;
  // The statistics of nodes from `first` on.
  struct Place {
    std::span<StatisticsBuilder> builders;
    uint32_t first = 0;
    StatisticsBuilder& at(uint32_t node) const { return builders[node - first]; }
  };

  // Adds the slots `rows` of `column`, whose values belong to `node`.
  void Add(const Column& column, uint32_t node, Rows rows, const Place& to);

  // Adds entries by key: each key has statistics of its own, and there are statistics over all
  // keys.
  void AddFlatMap(const Column& map, uint32_t node, Rows entries, FlatMap* flat);

  // Adds a union: the values of each variant are in a column of their own, in order.
  void AddUnion(const Column& column, uint32_t node, Rows values, const Place& to);

  const Schema& schema_;
  std::span<const uint32_t> columns_;
  std::vector<StatisticsBuilder> nodes_;  // without those below the values of flattened maps
  std::vector<bool> of_flat_map_;  // per node: a key or value, which have no index of sequence 0
  std::map<uint32_t, FlatMap> maps_;
  // Per row of a union's column in the batch: the row in its variant's. Each key of a flattened map
  // comes by with a part of the rows.
  std::map<const Column*, std::vector<uint64_t>> union_places_;
};

}  // namespace headrace::reader::dwrf
