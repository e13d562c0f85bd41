// Random tensor batches, for tests and benchmarks of the delivery.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "reader/batch/tensor_batch.h"
#include "tests/seed.h"

namespace headrace::reader {

struct BatchShape {
  uint64_t rows = 0;
  size_t dense = 0, sparse = 0, weighted = 0;  // columns
  uint32_t longest = 8;                        // list
  bool labels = true, row_ids = true;
  size_t groups = 0;  // deduplicated, of one to three keys, every third one weighted
};

inline KeyedJaggedTensor RandomJagged(const std::string& name, size_t keys, const BatchShape& shape,
                                      bool weights, std::mt19937_64& random) {
  KeyedJaggedTensor tensor;
  tensor.rows = shape.rows;
  for (size_t k = 0; k < keys; ++k) tensor.keys.push_back(name + ":" + std::to_string(k));
  tensor.lengths.resize(keys * shape.rows);
  tensor.offsets.resize(keys * shape.rows + 1);
  int64_t total = 0;
  for (size_t i = 0; i < tensor.lengths.size(); ++i) {
    tensor.offsets[i] = total;
    tensor.lengths[i] = static_cast<int32_t>(random() % (shape.longest + 1));
    total += tensor.lengths[i];
  }
  tensor.offsets[tensor.lengths.size()] = total;
  tensor.values.resize(static_cast<size_t>(total));
  for (size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = static_cast<int64_t>(random());
  if (weights) {
    tensor.weights.resize(tensor.values.size());
    for (size_t i = 0; i < tensor.weights.size(); ++i)
      tensor.weights[i] = static_cast<float>(random() % 1000) / 8;
  }
  return tensor;
}

// Groups that repeat rows; their keys lie between the other keys.
inline std::vector<InverseKeyedJaggedTensor> RandomGroups(const BatchShape& shape,
                                                          std::mt19937_64& random) {
  std::vector<InverseKeyedJaggedTensor> groups(shape.groups);
  size_t keys[2] = {shape.sparse, shape.weighted};
  for (size_t g = 0; g < groups.size(); ++g) {
    BatchShape unique = shape;
    unique.rows = shape.rows == 0 ? 0 : 1 + random() % shape.rows;
    groups[g].name = "group" + std::to_string(g);
    groups[g].weighted = g % 3 == 2;
    groups[g].unique = RandomJagged(groups[g].name, 1 + g % 3, unique, groups[g].weighted, random);
    keys[groups[g].weighted] += groups[g].unique.keys.size();
    groups[g].inverse.resize(shape.rows);
    for (int32_t& row : groups[g].inverse) row = static_cast<int32_t>(random() % unique.rows);
  }
  for (InverseKeyedJaggedTensor& group : groups)  // the last places, from the end on
    for (size_t key = 0; key < group.unique.keys.size(); ++key)
      group.places.push_back(static_cast<uint32_t>(--keys[group.weighted]));
  return groups;
}

inline TensorBatch RandomBatch(const BatchShape& shape, std::mt19937_64& random) {
  TensorBatch batch;
  batch.rows = shape.rows;
  batch.first_row = random();
  for (size_t i = 0; i < shape.dense; ++i)
    batch.dense_names.push_back("dense:" + std::to_string(i));
  batch.dense.resize(shape.rows * shape.dense);
  for (size_t i = 0; i < batch.dense.size(); ++i)
    batch.dense[i] = static_cast<float>(random() % 100000) / 16;
  batch.sparse = RandomJagged("sparse", shape.sparse, shape, false, random);
  batch.weighted_sparse = RandomJagged("weighted", shape.weighted, shape, true, random);
  if (shape.labels) {
    batch.labels.resize(shape.rows);
    for (size_t i = 0; i < shape.rows; ++i) batch.labels[i] = static_cast<float>(random() % 2);
  }
  if (shape.row_ids) {
    batch.row_ids.resize(shape.rows);
    for (size_t i = 0; i < shape.rows; ++i) batch.row_ids[i] = random();
  }
  batch.groups = RandomGroups(shape, random);
  for (uint64_t i = random() % 4; i > 0; --i)
    batch.spans.push_back({random(), random(), random(), random(), random()});
  return batch;
}

inline BatchShape RandomShape(std::mt19937_64& random) {
  BatchShape shape;
  shape.rows = random() % 5 == 0 ? 0 : random() % 200;
  shape.dense = random() % 3 == 0 ? 0 : random() % 20;
  shape.sparse = random() % 3 == 0 ? 0 : random() % 20;
  shape.weighted = random() % 2 == 0 ? 0 : random() % 5;
  shape.longest = static_cast<uint32_t>(random() % 3 == 0 ? 0 : random() % 30);
  shape.labels = random() % 2 == 0;
  shape.row_ids = random() % 4 != 0;
  shape.groups = random() % 2 == 0 ? 0 : random() % 6;
  return shape;
}

}  // namespace headrace::reader
