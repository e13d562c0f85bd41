// Files with every kind of column, written by this program, for tests that change their metadata.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/file_writer.h"
#include "reader/dwrf/verify.h"
#include "tests/fuzz/torn_file.h"
#include "tests/reader/dwrf/test_files.h"

namespace headrace::reader::dwrf {

inline const Schema kSchema = Schema::Parse(
    "struct<id:int,name:string,score:double,flag:boolean,blob:binary,at:timestamp,"
    "items:list<bigint>,inner:struct<a:float,b:smallint>,sparse:map<int,list<bigint>>>");
// Nodes in pre-order: 0 row, 1 id, 2 name, 3 score, 4 flag, 5 blob, 6 at, 7 items, 8 element, 9
// inner, 10 a, 11 b, 12 sparse, 13 key, 14 value, 15 element.
constexpr uint64_t kRows = 2500, kStride = 500, kStripeRows = 1200;

inline void SetRows(Column* column, uint64_t rows) {
  column->rows = rows;
  for (Column& child : column->children)
    if (column->kind == TypeKind::kStruct) SetRows(&child, rows);
}

// Values that differ in every stride, nulls in some.
inline Column Rows() {
  const auto of = [](TypeKind kind) {
    Column column;
    column.kind = kind;
    return column;
  };
  Column id = of(TypeKind::kInt), name = of(TypeKind::kString), score = of(TypeKind::kDouble);
  Column flag = of(TypeKind::kBoolean), blob = of(TypeKind::kBinary), at = of(TypeKind::kTimestamp);
  Column items = of(TypeKind::kList), element = of(TypeKind::kLong), inner = of(TypeKind::kStruct);
  Column a = of(TypeKind::kFloat), b = of(TypeKind::kShort), sparse = of(TypeKind::kMap);
  Column key = of(TypeKind::kInt), value = of(TypeKind::kList), inside = of(TypeKind::kLong);
  for (Column* column : {&name, &blob, &items, &sparse, &value}) column->offsets = {0};
  for (uint64_t row = 0; row < kRows; ++row) {
    const auto n = static_cast<int64_t>(row);
    id.integers.push_back(n * 7 % 1000 - 300);
    name.present.push_back(row % 11 != 0);
    if (row % 11 != 0) name.bytes += "name " + std::to_string(row * 13 % 700);
    name.offsets.push_back(name.bytes.size());
    score.doubles.push_back(static_cast<double>(n) * 0.37 - 200);
    flag.integers.push_back(row % 3 == 0);
    blob.bytes += std::string(row % 5, 'x');
    blob.offsets.push_back(blob.bytes.size());
    at.integers.push_back(1'500'000'000 + n);
    at.nanos.push_back(static_cast<int32_t>(row));
    for (uint64_t i = 0; i < row % 4; ++i)
      element.integers.push_back(n * 10 + static_cast<int64_t>(i));
    items.offsets.push_back(element.integers.size());
    inner.present.push_back(row % 7 != 0);
    a.floats.push_back(row % 7 != 0 ? static_cast<float>(row) : 0);
    b.integers.push_back(row % 7 != 0 ? n % 100 : 0);
    for (const int64_t k : {3, 17}) {
      if (n % k == 1) continue;
      key.integers.push_back(k);
      for (int64_t i = 0; i < n % 3; ++i) inside.integers.push_back(n * k + i);
      value.offsets.push_back(inside.integers.size());
    }
    sparse.offsets.push_back(key.integers.size());
  }
  element.rows = element.integers.size();
  inside.rows = inside.integers.size();
  key.rows = value.rows = key.integers.size();
  a.present = b.present = inner.present;
  items.children = {element};
  value.children = {inside};
  sparse.children = {key, value};
  inner.children = {a, b};
  Column rows = of(TypeKind::kStruct);
  rows.children = {id, name, score, flag, blob, at, items, inner, sparse};
  SetRows(&rows, kRows);
  return rows;
}

inline std::string WrittenAs(const Schema& schema, const WriterOptions& options,
                             const Column& rows) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("headrace-verify-" + std::to_string(getpid()) + ".dwrf"))
                               .string();
  FileWriter writer(path, schema, options, true);
  writer.Write(rows);
  writer.Close();
  std::string bytes = ReadWholeFile(path);
  std::filesystem::remove(path);
  return bytes;
}

inline std::string Written(const WriterOptions& options) {
  return WrittenAs(kSchema, options, Rows());
}

inline WriterOptions Options() {
  WriterOptions options;
  options.stripe_rows = kStripeRows;
  options.row_index_stride = kStride;
  options.flat_maps = {"sparse"};
  return options;
}

inline Verification VerifyBytes(std::string bytes) {
  return Verify(FileReader::Open(MemorySource("t.dwrf", std::move(bytes))));
}

// What a reader complains of in a file; "" where it does not.
inline std::string ComplaintOf(const std::function<void()>& read) {
  try {
    read();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
    return error.what();
  }
}

inline std::string Complaint(const std::string& bytes) {
  return ComplaintOf([&] { VerifyBytes(bytes); });
}

inline std::string Rebuilt(fuzz::TornFile file) {
  std::string said;
  return file.Bytes(&said);
}

}  // namespace headrace::reader::dwrf
