// Which rows of a split go on, and what they settle.
#include "reader/pipeline/element.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace headrace::reader {
namespace {

// Split 7 of epoch 2: rows 100 to 109 of the table.
Element TenRows() {
  Element element;
  element.rows = 10;
  element.origin = {2, 7, 100, 10, 10};
  return element;
}

FlatMapBatch BatchOf(const Element& element) {
  FlatMapBatch batch;
  batch.rows = element.origin.count;
  batch.first_row = element.origin.first;
  MarkOrigin(element, &batch);
  return batch;
}

std::vector<uint64_t> RowIds(const FlatMapBatch& batch) {
  std::vector<uint64_t> ids;
  for (uint64_t row = 0; row < batch.rows; ++row) ids.push_back(batch.RowId(row));
  return ids;
}

TEST(Element, AllRowsGoOnUnlessSomethingIsSaid) {
  const Element element = TenRows();
  EXPECT_TRUE(WantedRows(element, 100, 10).empty());
  const FlatMapBatch batch = BatchOf(element);
  EXPECT_EQ(batch.rows, 10u);
  EXPECT_EQ(batch.spans, (std::vector<RowSpan>{{2, 7, 100, 10, 10}}));
}

TEST(Element, RowsThatAreNotKeptAreSettledWithThoseThatAre) {
  Element element = TenRows();
  element.kept = std::make_shared<const std::vector<uint8_t>>(
      std::vector<uint8_t>{0, 0, 1, 0, 0, 1, 1, 0, 0, 0});
  EXPECT_EQ(WantedRows(element, 100, 10), *element.kept);
  EXPECT_EQ(WantedRows(element, 104, 3), (std::vector<uint8_t>{0, 1, 1}));
  const FlatMapBatch batch = BatchOf(element);
  EXPECT_EQ(RowIds(batch), (std::vector<uint64_t>{102, 105, 106}));
  EXPECT_EQ(batch.spans, (std::vector<RowSpan>{{2, 7, 100, 10, 3}}));
}

TEST(Element, OfRowsThatAreStillWantedTheKeptOnesGoOn) {
  Element element = TenRows();
  element.wanted = std::make_shared<const std::vector<RowSpan>>(
      std::vector<RowSpan>{{2, 7, 101, 2, 2}, {2, 7, 106, 3, 3}});
  element.kept = std::make_shared<const std::vector<uint8_t>>(
      std::vector<uint8_t>{1, 0, 1, 1, 1, 1, 1, 0, 1, 1});
  EXPECT_EQ(WantedRows(element, 100, 10), (std::vector<uint8_t>{0, 0, 1, 0, 0, 0, 1, 0, 1, 0}));
  const FlatMapBatch batch = BatchOf(element);
  EXPECT_EQ(RowIds(batch), (std::vector<uint64_t>{102, 106, 108}));
  EXPECT_EQ(batch.spans, (std::vector<RowSpan>{{2, 7, 101, 2, 1}, {2, 7, 106, 3, 2}}));
}

TEST(Element, WhereNoRowIsKeptAllAreSettled) {
  Element element = TenRows();
  element.kept = std::make_shared<const std::vector<uint8_t>>(10, 0);
  const FlatMapBatch batch = BatchOf(element);
  EXPECT_EQ(batch.rows, 0u);
  EXPECT_EQ(batch.spans, (std::vector<RowSpan>{{2, 7, 100, 10, 0}}));
}

}  // namespace
}  // namespace headrace::reader
