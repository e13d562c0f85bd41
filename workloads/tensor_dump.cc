#include "workloads/tensor_dump.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"

namespace headrace::workloads {
namespace {

namespace fs = std::filesystem;
using reader::KeyedJaggedTensor;
using reader::TensorBatch;

constexpr size_t kNpyAlignment = 64;

template <typename T>
const char* NpyType() {
  if constexpr (std::is_same_v<T, float>) return "<f4";
  if constexpr (std::is_same_v<T, int32_t>) return "<i4";
  if constexpr (std::is_same_v<T, int64_t>) return "<i8";
  if constexpr (std::is_same_v<T, uint64_t>) return "<u8";
}

void WriteFile(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path.string(), false);
  file.Write(bytes);
  file.Commit();
}

// NumPy's format 1.0: magic, version, the header's length, a Python literal padded by spaces so
// that the data behind it are aligned.
template <typename T>
void WriteNpy(const fs::path& path, const T* data, size_t size, const std::string& shape) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", NpyType<T>(), shape);
  constexpr size_t kBefore = 10;
  const size_t used = kBefore + header.size() + 1;
  header.append((kNpyAlignment - used % kNpyAlignment) % kNpyAlignment, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  if (size > 0) bytes.append(reinterpret_cast<const char*>(data), size * sizeof(T));
  WriteFile(path, bytes);
}

template <typename Values>
void WriteFlat(const fs::path& path, const Values& values) {
  WriteNpy(path, values.data(), values.size(), fmt::format("({},)", values.size()));
}

void WriteTensor(const fs::path& folder, const std::string& name, const KeyedJaggedTensor& tensor,
                 bool weighted) {
  WriteFlat(folder / (name + ".lengths.npy"), tensor.lengths);
  WriteFlat(folder / (name + ".offsets.npy"), tensor.offsets);
  WriteFlat(folder / (name + ".values.npy"), tensor.values);
  if (weighted) WriteFlat(folder / (name + ".weights.npy"), tensor.weights);
}

void WriteBatch(const fs::path& folder, const TensorBatch& batch) {
  nlohmann::ordered_json json = {{"schema", "headrace.tensors/1"},
                                 {"rows_count", batch.rows},
                                 {"dense", batch.dense_names},
                                 {"sparse", batch.sparse.keys},
                                 {"weighted", batch.weighted_sparse.keys},
                                 {"groups", nlohmann::ordered_json::array()}};
  WriteNpy(folder / "dense.npy", batch.dense.data(), batch.dense.size(),
           fmt::format("({}, {})", batch.rows, batch.dense_names.size()));
  WriteFlat(folder / "labels.npy", batch.labels);
  std::vector<uint64_t> row_ids(batch.rows);
  for (uint64_t row = 0; row < batch.rows; ++row) row_ids[row] = batch.RowId(row);
  WriteFlat(folder / "row_ids.npy", row_ids);
  WriteTensor(folder, "sparse", batch.sparse, false);
  WriteTensor(folder, "weighted", batch.weighted_sparse, true);
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const reader::InverseKeyedJaggedTensor& group = batch.groups[g];
    const std::string name = fmt::format("group-{:03}", g);
    WriteTensor(folder, name, group.unique, group.weighted);
    WriteFlat(folder / (name + ".inverse.npy"), group.inverse);
    json["groups"].push_back({{"name", group.name},
                              {"files", name},
                              {"keys", group.unique.keys},
                              {"places", group.places},
                              {"weighted", group.weighted},
                              {"unique_rows_count", group.unique.rows}});
  }
  WriteFile(folder / "batch.json",
            json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

class Dumper final : public reader::Consumer {
 public:
  Dumper(const std::string& folder, std::unique_ptr<reader::Consumer> consumer)
      : folder_(folder), consumer_(std::move(consumer)) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error)
      throw Error(ExitCode::kUsage, "cannot be made: " + error.message(), folder,
                  "name a folder that can be written");
    if (!fs::is_empty(folder_, error))
      throw Error(ExitCode::kUsage, "is not empty", folder, "name a new folder");
  }

  void RegisterAccounts(uint32_t stage) override { consumer_->RegisterAccounts(stage); }
  std::string SaveState() override { return consumer_->SaveState(); }
  void LoadState(const std::string& state) override { consumer_->LoadState(state); }
  uint64_t DeliveredSteps(uint64_t taken) override { return consumer_->DeliveredSteps(taken); }
  bool SavesAfterFailure() const override { return consumer_->SavesAfterFailure(); }
  void Finish(bool complete) override { consumer_->Finish(complete); }
  std::vector<std::string> notes() const override { return consumer_->notes(); }

  void Step(reader::Element&& batch, reader::StopSignal* stop) override {
    const auto* tensors = batch.payload.Get<TensorBatch>();
    if (tensors == nullptr)
      throw Error(ExitCode::kUsage, "there are no tensors to write", "--dump-tensors",
                  "put the operator tensorize at the end of the last stage");
    const fs::path place = folder_ / fmt::format("batch-{:05}", count_++);
    const std::string unfinished = NewFolderBeside(place.string(), 0777);
    try {
      WriteBatch(unfinished, *tensors);
      if (RenameToNew(AT_FDCWD, unfinished.c_str(), place.c_str()) != 0)
        throw ErrnoError(errno, "rename to", place.string());
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(unfinished, ignored);
      throw;
    }
    consumer_->Step(std::move(batch), stop);
  }

 private:
  fs::path folder_;
  std::unique_ptr<reader::Consumer> consumer_;
  uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<reader::Consumer> DumpTensors(const std::string& folder,
                                              std::unique_ptr<reader::Consumer> consumer) {
  return std::make_unique<Dumper>(folder, std::move(consumer));
}

}  // namespace headrace::workloads
