// Arrow's file format (Feather version 2): messages with a FlatBuffers header and a body of column
// buffers, then a footer that says where they lie. Numbers of slots, types and versions are those
// of format/Message.fbs, Schema.fbs and File.fbs of github.com/apache/arrow.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "dashboards/export/escape.h"
#include "dashboards/export/flat_table.h"
#include "dashboards/export/rows.h"
#include "dashboards/sql_values.h"

namespace headrace::dashboards {
namespace {

using collectors::SqlValue;

enum class ArrowType : int8_t { kInt = 2, kFloatingPoint = 3, kUtf8 = 5 };
constexpr int64_t kMetadataVersion5 = 4, kSchemaHeader = 1, kRecordBatchHeader = 3;
constexpr size_t kBatchRows = 16'384;

struct ArrowColumn {
  std::string name;
  ArrowType type = ArrowType::kUtf8;
};

template <typename T>
void AppendRaw(T value, std::string* out) {
  const auto bits = std::bit_cast<std::array<char, sizeof(T)>>(value);
  out->append(bits.data(), bits.size());
}

void PadTo8(std::string* out) { out->append((8 - out->size() % 8) % 8, '\0'); }

// A view's column has the type of its values: whole numbers, numbers, else texts. Where there are
// none, its name says which.
std::vector<ArrowColumn> ArrowColumns(const ExportRequest& request) {
  const std::vector<std::string> names = ColumnsOfView(request);
  std::string sql;
  for (const std::string& name : names) {
    sql += fmt::format(
        "{}MAX(CASE typeof(\"{}\") WHEN 'integer' THEN 1 WHEN 'real' THEN 2 WHEN 'null' THEN 0 "
        "ELSE 3 "
        "END)",
        sql.empty() ? "SELECT " : ", ", name);
  }
  sql += " FROM " + request.view;
  const auto holds = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<SqlValue> parameters;
  if (holds("run_id")) {
    sql += " WHERE run_id = ?1";
    parameters.emplace_back(request.run_id);
  }
  if (holds("run_id") && holds("start_ns")) {
    sql += " AND start_ns >= ?2 AND start_ns < ?3";
    parameters.emplace_back(request.since_ns);
    parameters.emplace_back(request.until_ns);
  }
  const auto kinds = request.store.Query(sql, parameters).rows.at(0);
  std::vector<ArrowColumn> columns;
  for (size_t c = 0; c < names.size(); ++c) {
    int64_t kind = WholeOf(kinds[c]).value_or(0);
    if (kind == 0) {
      const std::string& name = names[c];
      const bool number = name.ends_with("_ratio") || name.ends_with("value") ||
                          name.ends_with("_per_s") || name.ends_with("_rate");
      const bool whole = name.ends_with("_ns") || name.ends_with("bytes") ||
                         name.ends_with("_count") || name.ends_with("_id") || name == "pid";
      kind = number ? 2 : whole ? 1 : 3;
    }
    columns.push_back({names[c], kind == 1   ? ArrowType::kInt
                                 : kind == 2 ? ArrowType::kFloatingPoint
                                             : ArrowType::kUtf8});
  }
  return columns;
}

FlatTable SchemaTable(const std::vector<ArrowColumn>& columns) {
  std::vector<FlatTable> fields;
  for (const ArrowColumn& column : columns) {
    FlatTable type;
    if (column.type == ArrowType::kInt) type.Scalar(0, 4, 64).Scalar(1, 1, 1);  // signed, 64 bits
    if (column.type == ArrowType::kFloatingPoint) type.Scalar(0, 2, 2);         // double
    FlatTable field;
    field.Text(0, column.name)
        .Scalar(1, 1, 1)  // may be NULL
        .Scalar(2, 1, static_cast<int64_t>(column.type))
        .Table(3, std::move(type))
        .Tables(5, {});
    fields.push_back(std::move(field));
  }
  FlatTable schema;
  schema.Tables(1, std::move(fields));
  return schema;
}

// A message's header as it lies in a stream: a mark, its length, the table, to a multiple of 8.
std::string MessageHeader(int64_t header_type, FlatTable header, int64_t body_bytes) {
  FlatTable message;
  message.Scalar(0, 2, kMetadataVersion5)
      .Scalar(1, 1, header_type)
      .Table(2, std::move(header))
      .Scalar(3, 8, body_bytes);
  const std::string table = message.Finish();
  std::string out;
  AppendRaw(uint32_t{0xffffffff}, &out);
  AppendRaw(static_cast<uint32_t>(table.size()), &out);
  return out + table;
}

// The rows of one batch, by column.
class ArrowBatch {
 public:
  explicit ArrowBatch(const std::vector<ArrowColumn>& columns) : columns_(columns) {
    parts_.resize(columns.size());
  }

  size_t num_rows() const { return num_rows_; }

  void Add(const std::vector<SqlValue>& row) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      Part& part = parts_[c];
      const bool null = std::holds_alternative<std::monostate>(row[c]);
      if (num_rows_ % 8 == 0) part.validity += '\0';
      if (null) {
        ++part.num_nulls;
      } else {
        part.validity.back() = static_cast<char>(part.validity.back() | 1 << (num_rows_ % 8));
      }
      if (columns_[c].type == ArrowType::kInt) {
        AppendRaw(WholeOf(row[c]).value_or(0), &part.values);
      } else if (columns_[c].type == ArrowType::kFloatingPoint) {
        AppendRaw(NumberOf(row[c]).value_or(0), &part.values);
      } else {
        if (num_rows_ == 0) AppendRaw(int32_t{0}, &part.values);
        part.text += Utf8(TextOf(row[c]));
        AppendRaw(static_cast<int32_t>(part.text.size()), &part.values);
      }
    }
    ++num_rows_;
  }

  void Clear() {
    parts_.assign(columns_.size(), {});
    num_rows_ = 0;
  }

  // Texts of a batch are kept below what their offsets can hold.
  bool full() const {
    size_t text_bytes = 0;
    for (const Part& part : parts_) text_bytes = std::max(text_bytes, part.text.size());
    return num_rows_ >= kBatchRows || text_bytes > (size_t{256} << 20);
  }

  // The header's table and the body.
  std::pair<FlatTable, std::string> Finish() const {
    std::string nodes, buffers, body;
    uint32_t num_buffers = 0;
    const auto put = [&](const std::string& bytes) {
      AppendRaw(static_cast<int64_t>(body.size()), &buffers);
      AppendRaw(static_cast<int64_t>(bytes.size()), &buffers);
      body += bytes;
      PadTo8(&body);
      ++num_buffers;
    };
    for (size_t c = 0; c < columns_.size(); ++c) {
      AppendRaw(static_cast<int64_t>(num_rows_), &nodes);
      AppendRaw(parts_[c].num_nulls, &nodes);
      put(parts_[c].num_nulls == 0 ? "" : parts_[c].validity);
      put(parts_[c].values);
      if (columns_[c].type == ArrowType::kUtf8) put(parts_[c].text);
    }
    FlatTable batch;
    batch.Scalar(0, 8, static_cast<int64_t>(num_rows_))
        .Structs(1, static_cast<uint32_t>(columns_.size()), nodes)
        .Structs(2, num_buffers, buffers);
    return {std::move(batch), std::move(body)};
  }

 private:
  struct Part {
    std::string validity, values, text;
    int64_t num_nulls = 0;
  };
  const std::vector<ArrowColumn>& columns_;
  std::vector<Part> parts_;
  size_t num_rows_ = 0;
};

void WriteArrow(const ExportRequest& request, const ExportSink& sink) {
  const std::vector<ArrowColumn> columns = ArrowColumns(request);
  const bool fixed = request.part != ExportPart::kCourses;
  int64_t position = 0;
  const auto put = [&](const std::string& bytes) {
    position += static_cast<int64_t>(bytes.size());
    sink(bytes);
  };
  if (fixed) {
    put(std::string("ARROW1\0\0", 8));
    put(MessageHeader(kSchemaHeader, SchemaTable(columns), 0));
  }
  std::string blocks;
  uint32_t num_blocks = 0;
  const auto write = [&](const ArrowBatch& batch) {
    auto [table, body] = batch.Finish();
    const std::string header =
        MessageHeader(kRecordBatchHeader, std::move(table), static_cast<int64_t>(body.size()));
    AppendRaw(position, &blocks);
    AppendRaw(static_cast<int64_t>(header.size()), &blocks);  // 4 bytes and 4 of padding
    AppendRaw(static_cast<int64_t>(body.size()), &blocks);
    ++num_blocks;
    put(header);
    put(body);
  };
  ArrowBatch batch(columns);
  ForEachRow(request, [&](const std::vector<SqlValue>& row) {
    batch.Add(row);
    if (!batch.full()) return;
    write(batch);
    batch.Clear();
  });
  if (batch.num_rows() > 0) write(batch);
  if (!fixed) return;
  std::string end;
  AppendRaw(uint32_t{0xffffffff}, &end);
  AppendRaw(uint32_t{0}, &end);
  FlatTable footer;
  footer.Scalar(0, 2, kMetadataVersion5)
      .Table(1, SchemaTable(columns))
      .Structs(2, 0, "")
      .Structs(3, num_blocks, blocks);
  const std::string table = footer.Finish();
  end += table;
  AppendRaw(static_cast<int32_t>(table.size()), &end);
  put(end + "ARROW1");
}

HR_EXPORT("arrow",
          {.ending = ".arrow",
           .holds = "the rows of one view of docs/store.md, named by --view, as columns with "
                    "types",
           .opens = "pyarrow.feather, polars.read_ipc, pandas.read_feather, R's "
                    "arrow::read_feather",
           .binary = true,
           .by_time = true,
           .by_view = true,
           .write = WriteArrow,
           .count_rows = CountViewRows});

}  // namespace
}  // namespace headrace::dashboards
