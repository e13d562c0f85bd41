#include "reader/pipeline/cache/batch_bytes.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "reader/batch/tensorize.h"

namespace headrace::reader {
namespace {

class Writer {
 public:
  explicit Writer(Array<uint8_t>* bytes) : bytes_(bytes) {}
  void Number(uint64_t value) { Raw(&value, sizeof value); }
  template <typename T>
  void Values(const T& values) {
    Number(values.size());
    if (!values.empty()) Raw(values.data(), values.size() * sizeof(values[0]));
  }
  void Presence(const PresenceBits& present) {
    Number(present.count);
    Values(present.words);
  }

 private:
  void Raw(const void* from, size_t size) {
    const auto* first = static_cast<const uint8_t*>(from);
    bytes_->insert(bytes_->end(), first, first + size);
  }
  Array<uint8_t>* bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t>* bytes) : bytes_(bytes) {}
  uint64_t Number() {
    uint64_t value = 0;
    Raw(&value, sizeof value);
    return value;
  }
  uint32_t Below(uint64_t bound) {
    const uint64_t value = Number();
    if (value >= bound) throw Error(ExitCode::kBadData, "a number in a kept batch is too large");
    return static_cast<uint32_t>(value);
  }
  template <typename T>
  void Values(T* values) {
    using Value = typename T::value_type;
    const uint64_t count = Number();
    if (count > bytes_->size() / sizeof(Value)) Short();
    values->resize(count);
    if (count > 0) Raw(values->data(), count * sizeof(Value));
  }
  void Presence(PresenceBits* present) {
    present->count = Number();
    Values(&present->words);
  }
  // How many things of at least `least` bytes each follow.
  uint64_t Count(uint64_t least) {
    const uint64_t count = Number();
    if (count > bytes_->size() / least) Short();
    return count;
  }

 private:
  [[noreturn]] static void Short() {
    throw Error(ExitCode::kBadData, "a kept batch ends before its values do");
  }
  void Raw(void* to, size_t size) {
    if (size > bytes_->size()) Short();
    std::memcpy(to, bytes_->data(), size);
    *bytes_ = bytes_->subspan(size);
  }
  std::span<const uint8_t>* bytes_;
};

bool HasColumns(const FlatMapBatch& batch, size_t group) {
  return std::any_of(batch.sparse.begin(), batch.sparse.end(), [&](const SparseColumn& column) {
    return column.group == static_cast<int32_t>(group);
  });
}

// Unique rows are bounded by the columns that hold them; nobody reads them of a group whose columns
// are all gone, but later batches are joined with it by its place.
void CheckGroups(const FlatMapBatch& batch) {
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const DedupGroup& group = batch.groups[g];
    if (group.unique_rows > group.inverse.size() && !HasColumns(batch, g))
      throw Error(ExitCode::kBadData, "a kept group has more unique rows than rows and no columns");
  }
}

}  // namespace

void AppendBatch(const FlatMapBatch& batch, Array<uint8_t>* bytes) {
  Writer out(bytes);
  out.Number(batch.rows);
  out.Number(batch.split_id);
  out.Number(batch.first_row);
  out.Values(batch.row_ids);
  out.Values(batch.spans);
  out.Number(batch.dense.size());
  for (const DenseColumn& column : batch.dense) {
    out.Values(column.name);
    out.Presence(column.present);
    out.Values(column.values);
  }
  out.Number(batch.groups.size());
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const DedupGroup& group = batch.groups[g];
    const bool is_used = HasColumns(batch, g);
    out.Values(group.name);
    out.Number(is_used ? group.unique_rows : group.inverse.empty() ? 0 : 1);
    is_used ? out.Values(group.inverse)
            : out.Values(std::vector<uint32_t>(group.inverse.size(), 0));
  }
  out.Number(batch.sparse.size());
  for (const SparseColumn& column : batch.sparse) {
    HR_CHECK(column.dictionary == nullptr, "ids are looked up before they are kept");
    out.Values(column.name);
    out.Number(static_cast<uint64_t>(column.group + 1));
    out.Presence(column.present);
    out.Values(column.offsets);
    out.Values(column.values);
    out.Values(column.weights);
    out.Number(column.weighted);
  }
  out.Number(batch.scalars.size());
  for (const ScalarColumn& column : batch.scalars) {
    out.Values(column.name);
    out.Number(column.is_float);
    out.Values(column.integers);
    out.Values(column.floats);
  }
}

FlatMapBatch TakeBatch(std::span<const uint8_t>* bytes) {
  constexpr uint64_t kLeastColumn = 24;  // three counts
  Reader in(bytes);
  FlatMapBatch batch;
  batch.rows = in.Number();
  batch.split_id = in.Number();
  batch.first_row = in.Number();
  in.Values(&batch.row_ids);
  in.Values(&batch.spans);
  batch.dense.resize(in.Count(kLeastColumn));
  for (DenseColumn& column : batch.dense) {
    in.Values(&column.name);
    in.Presence(&column.present);
    in.Values(&column.values);
  }
  batch.groups.resize(in.Count(kLeastColumn));
  for (DedupGroup& group : batch.groups) {
    in.Values(&group.name);
    group.unique_rows = in.Below(uint64_t{1} << 32);
    in.Values(&group.inverse);
  }
  batch.sparse.resize(in.Count(kLeastColumn));
  for (SparseColumn& column : batch.sparse) {
    in.Values(&column.name);
    column.group = static_cast<int32_t>(in.Below(batch.groups.size() + 1)) - 1;
    in.Presence(&column.present);
    in.Values(&column.offsets);
    in.Values(&column.values);
    in.Values(&column.weights);
    column.weighted = in.Number() != 0;
  }
  batch.scalars.resize(in.Count(kLeastColumn));
  for (ScalarColumn& column : batch.scalars) {
    in.Values(&column.name);
    column.is_float = in.Number() != 0;
    in.Values(&column.integers);
    in.Values(&column.floats);
  }
  Validate(batch);
  CheckGroups(batch);
  return batch;
}

}  // namespace headrace::reader
