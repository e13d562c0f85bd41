// Arrow files, read again by a reader of their own: the footer, the headers it points at, the
// columns.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "dashboards/export/escape.h"
#include "dashboards/export/flat_table.h"
#include "dashboards/export/rows.h"
#include "dashboards/sql_values.h"
#include "tests/dashboards/export/exported_store.h"

namespace headrace::dashboards {
namespace {

using collectors::SqlValue;

template <typename T>
T At(std::string_view bytes, size_t at) {
  T value{};
  if (at + sizeof value > bytes.size()) {
    ADD_FAILURE() << "byte " << at << " of " << bytes.size();
    return value;
  }
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// A FlatBuffers table in a buffer.
struct FlatView {
  std::string_view bytes;
  size_t table = 0;

  static FlatView Root(std::string_view bytes) { return {bytes, At<uint32_t>(bytes, 0)}; }
  // Where a slot's value lies; nothing: it has the default.
  std::optional<size_t> Place(size_t slot) const {
    const size_t vtable = table - static_cast<size_t>(At<int32_t>(bytes, table));
    if (4 + 2 * slot >= At<uint16_t>(bytes, vtable)) return std::nullopt;
    const auto place = At<uint16_t>(bytes, vtable + 4 + 2 * slot);
    if (place == 0) return std::nullopt;
    return table + place;
  }
  template <typename T>
  T Scalar(size_t slot) const {
    const auto place = Place(slot);
    if (!place) return T{};
    EXPECT_EQ(*place % sizeof(T), 0u) << "not aligned";
    return At<T>(bytes, *place);
  }
  size_t Target(size_t place) const { return place + At<uint32_t>(bytes, place); }
  FlatView Table(size_t slot) const { return {bytes, Target(*Place(slot))}; }
  std::string Text(size_t slot) const {
    const size_t at = Target(*Place(slot));
    return std::string(bytes.substr(at + 4, At<uint32_t>(bytes, at)));
  }
  // A vector's count and where its elements begin.
  std::pair<uint32_t, size_t> Vector(size_t slot) const {
    const size_t at = Target(*Place(slot));
    return {At<uint32_t>(bytes, at), at + 4};
  }
};

// The values of the file's columns, in order.
std::vector<std::vector<SqlValue>> ReadArrow(const std::string& file,
                                             std::vector<std::string>* names) {
  std::vector<std::vector<SqlValue>> rows;
  EXPECT_EQ(file.substr(0, 8), std::string("ARROW1\0\0", 8));
  EXPECT_EQ(file.substr(file.size() - 6), "ARROW1");
  const auto footer_bytes = At<int32_t>(file, file.size() - 10);
  const FlatView footer = FlatView::Root(std::string_view(file).substr(
      file.size() - 10 - static_cast<size_t>(footer_bytes), static_cast<size_t>(footer_bytes)));
  EXPECT_EQ(footer.Scalar<int16_t>(0), 4);
  std::vector<int> types;
  const auto [num_fields, first_field] = footer.Table(1).Vector(1);
  for (uint32_t f = 0; f < num_fields; ++f) {
    const FlatView field{footer.bytes, footer.Target(first_field + 4 * f)};
    names->push_back(field.Text(0));
    types.push_back(field.Scalar<int8_t>(2));
    if (types.back() == 2) {
      EXPECT_EQ(field.Table(3).Scalar<int32_t>(0), 64);
    }
    if (types.back() == 3) {
      EXPECT_EQ(field.Table(3).Scalar<int16_t>(0), 2);
    }
  }
  const auto [num_blocks, first_block] = footer.Vector(3);
  for (uint32_t b = 0; b < num_blocks; ++b) {
    const auto offset = static_cast<size_t>(At<int64_t>(footer.bytes, first_block + 24 * b));
    const auto header = At<uint32_t>(footer.bytes, first_block + 24 * b + 8);
    EXPECT_EQ(offset % 8, 0u);
    EXPECT_EQ(At<uint32_t>(file, offset), 0xffffffffu);
    EXPECT_EQ(At<uint32_t>(file, offset + 4) + 8, header);
    const FlatView message = FlatView::Root(std::string_view(file).substr(offset + 8, header - 8));
    EXPECT_EQ(message.Scalar<int8_t>(1), 3);
    const std::string_view body = std::string_view(file).substr(
        offset + header, static_cast<size_t>(message.Scalar<int64_t>(3)));
    const FlatView batch = message.Table(2);
    const auto num_rows = static_cast<size_t>(batch.Scalar<int64_t>(0));
    const auto [num_nodes, first_node] = batch.Vector(1);
    const auto [num_buffers, first_buffer] = batch.Vector(2);
    EXPECT_EQ(num_nodes, num_fields);
    size_t next = 0;
    const auto buffer = [&] {
      const size_t at = first_buffer + 16 * next++;
      EXPECT_EQ(At<int64_t>(batch.bytes, at) % 8, 0);
      return body.substr(static_cast<size_t>(At<int64_t>(batch.bytes, at)),
                         static_cast<size_t>(At<int64_t>(batch.bytes, at + 8)));
    };
    const size_t first_row = rows.size();
    rows.resize(first_row + num_rows, std::vector<SqlValue>(num_fields));
    for (uint32_t f = 0; f < num_fields; ++f) {
      const std::string_view validity = buffer(), values = buffer();
      const std::string_view text = types[f] == 5 ? buffer() : std::string_view();
      int64_t nulls = 0;
      for (size_t r = 0; r < num_rows; ++r) {
        if (!validity.empty() && (At<uint8_t>(validity, r / 8) >> (r % 8) & 1) == 0) {
          ++nulls;
          continue;
        }
        SqlValue& value = rows[first_row + r][f];
        if (types[f] == 2) value = At<int64_t>(values, 8 * r);
        if (types[f] == 3) value = At<double>(values, 8 * r);
        if (types[f] != 5) continue;
        const auto begin = static_cast<size_t>(At<int32_t>(values, 4 * r));
        value = std::string(
            text.substr(begin, static_cast<size_t>(At<int32_t>(values, 4 * r + 4)) - begin));
      }
      EXPECT_EQ(At<int64_t>(batch.bytes, first_node + 16 * f + 8), nulls);
    }
    EXPECT_EQ(next, num_buffers);
  }
  return rows;
}

class Arrow : public ExportedStore {};

TEST_F(Arrow, EveryViewIsReadBack) {
  RecordedNames names;
  names.op = names.run = kHostileName;
  Record(names);
  collectors::ReadStore store(path_);
  for (const std::string& view : ExportedViews()) {
    SCOPED_TRACE(view);
    ExportRequest request{store, 1};
    request.view = view;
    std::vector<std::string> columns;
    const auto read = ReadArrow(Written("arrow", request), &columns);
    EXPECT_EQ(columns, ColumnsOfView(request));
    size_t row = 0;
    ForEachRow(request, [&](const std::vector<SqlValue>& stored) {
      ASSERT_LT(row, read.size());
      for (size_t c = 0; c < columns.size(); ++c) {
        const SqlValue& value = read[row][c];
        if (std::holds_alternative<std::monostate>(stored[c])) {
          EXPECT_TRUE(std::holds_alternative<std::monostate>(value)) << columns[c];
        } else if (const auto number = NumberOf(stored[c]); number && NumberOf(value)) {
          EXPECT_EQ(NumberOf(value), number) << columns[c];
        } else {
          EXPECT_EQ(TextOf(value), Utf8(TextOf(stored[c]))) << columns[c];
        }
      }
      ++row;
    });
    EXPECT_EQ(row, read.size());
  }
}

TEST_F(Arrow, ManyRowsAreSeveralBatches) {
  Record({}, 8'000);
  collectors::ReadStore store(path_);
  ExportRequest request{store, 1};
  request.view = "operator_interval";
  std::vector<std::string> columns;
  const auto read = ReadArrow(Written("arrow", request), &columns);
  ASSERT_EQ(read.size(), 3u * 8'000 - 2);
  EXPECT_EQ(std::get<int64_t>(read.back()[1]), 7'999 * kWindow);
}

TEST(FlatTable, HasTheBytesOfTheSpecification) {
  FlatTable table;
  table.Scalar(0, 2, 7).Text(2, "ab");
  // root; vtable: 10 bytes, table of 10, slots at 8, absent, at 4; the table; the text.
  const std::string expected(
      "\x10\0\0\0"
      "\0\0"
      "\x0a\0"
      "\x0a\0"
      "\x08\0"
      "\0\0"
      "\x04\0"
      "\x0a\0\0\0"
      "\x08\0\0\0"
      "\x07\0"
      "\0\0"
      "\x02\0\0\0"
      "ab\0"
      "\0\0\0\0\0",
      40);
  EXPECT_EQ(table.Finish(), expected);
}

}  // namespace
}  // namespace headrace::dashboards
