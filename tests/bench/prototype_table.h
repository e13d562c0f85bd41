// Tables of the prototype's distributions (prototype_pipe.h): features 0 to sparse - 1 in the map
// "sparse", those behind in "dense".
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "reader/dwrf/file_writer.h"
#include "tests/bench/prototype_pipe.h"

namespace headrace::reader::dwrf::bench {

// The same rows, `stripes` times shape.rows of them, into each of `paths` with the options of the
// same place (stripe length and flattened maps are set here).
inline void WritePrototypeTable(const prototype::Shape& shape, uint64_t stripes,
                                const std::vector<std::filesystem::path>& paths,
                                std::vector<WriterOptions> options) {
  std::vector<std::unique_ptr<FileWriter>> writers;
  for (size_t i = 0; i < paths.size(); ++i) {
    options[i].stripe_rows = shape.rows;
    options[i].flat_maps = {"dense", "sparse"};
    writers.push_back(std::make_unique<FileWriter>(
        paths[i].string(),
        Schema::Parse("struct<dense:map<int,float>,sparse:map<int,list<bigint>>>"), options[i]));
  }
  for (uint64_t stripe = 0; stripe < stripes; ++stripe) {
    const int features = shape.sparse + shape.dense;
    std::vector<std::vector<uint64_t>> present(static_cast<size_t>(features));
    std::vector<std::vector<uint32_t>> lengths(present.size());
    std::vector<std::vector<int64_t>> ids(present.size());
    std::vector<std::vector<float>> floats(present.size());
    FlatBatch batch;
    batch.rows = shape.rows;
    batch.columns.resize(2);
    batch.columns[0].name = "dense";
    batch.columns[1].name = "sparse";
    for (int f = 0; f < features; ++f) {
      const auto i = static_cast<size_t>(f);
      const uint64_t seed = stripe * 100'000 + i;
      std::mt19937_64 random(seed);
      size_t count = 0;
      present[i].resize((shape.rows + 63) / 64);
      for (size_t row = 0; row < shape.rows; ++row) {
        const bool has = static_cast<double>(random() % 1000) < shape.coverage * 1000;
        present[i][row / 64] |= uint64_t{has} << (row % 64);
        count += has;
      }
      FlatFeature feature;
      feature.key = MapKey{false, f, {}};
      feature.present = present[i];
      if (f < shape.sparse) {
        uint64_t total = 0;
        for (const int64_t length : prototype::MakeLengths(count, shape.mean_length, seed)) {
          lengths[i].push_back(static_cast<uint32_t>(length));
          total += static_cast<uint64_t>(length);
        }
        ids[i] = prototype::MakeIds(f % 10 < 3 ? 0 : f % 10 < 8 ? 1 : 2, total, seed);
        feature.lengths = lengths[i];
        feature.integers = ids[i];
      } else {
        floats[i] = prototype::MakeDense(count, seed);
        feature.floats = floats[i];
      }
      batch.columns[f < shape.sparse ? 1 : 0].features.push_back(feature);
    }
    for (const auto& writer : writers) writer->WriteFlat(batch);
  }
  for (const auto& writer : writers) writer->Close();
}

}  // namespace headrace::reader::dwrf::bench
