// What FileWriter wrote, read back by PlainDecoder: values, statistics, checksums and every
// row-index position.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "reader/dwrf/file_writer.h"
#include "tests/reader/encode/plain_decoder.h"
#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

using Random = std::mt19937_64;

uint64_t Below(Random& random, uint64_t n) { return random() % n; }

std::string RoundTripPath() {
  return (std::filesystem::temp_directory_path() /
          ("headrace-writer-" + std::to_string(getpid()) + ".dwrf"))
      .string();
}

std::string RandomType(Random& random, int depth) {
  static const char* kLeaves[] = {"boolean", "tinyint", "smallint", "int",    "bigint",
                                  "float",   "double",  "string",   "binary", "timestamp"};
  static const char* kKeys[] = {"int", "bigint", "string", "smallint", "tinyint"};
  const uint64_t pick = Below(random, depth > 0 ? 14 : 10);
  if (pick < 10) return kLeaves[pick];
  if (pick == 10) return "list<" + RandomType(random, depth - 1) + ">";
  if (pick < 13)
    return std::string("map<") + kKeys[Below(random, 5)] + "," + RandomType(random, depth - 1) +
           ">";
  std::string text = "struct<";
  for (uint64_t i = 0, n = 1 + Below(random, 3); i < n; ++i)
    text += (i > 0 ? ",f" : "f") + std::to_string(i) + ":" + RandomType(random, depth - 1);
  return text + ">";
}

int64_t RandomInteger(Random& random, TypeKind kind, uint64_t style, int64_t row) {
  const uint64_t bits = kind == TypeKind::kBoolean ? 1
                        : kind == TypeKind::kByte  ? 8
                        : kind == TypeKind::kShort ? 16
                        : kind == TypeKind::kInt   ? 32
                                                   : 64;
  if (bits == 1) return static_cast<int64_t>(Below(random, style + 1) == 0);
  int64_t value = 0;
  switch (style) {
    case 0:
      value = static_cast<int64_t>(random());
      break;  // anything
    case 1:
      value = static_cast<int64_t>(Below(random, 7)) * 5000 - 9;
      break;  // few values
    case 2:
      value = row * 3 - 50;
      break;  // one run
    default:
      value = Below(random, 8) == 0 ? static_cast<int64_t>(random())
                                    : static_cast<int64_t>(Below(random, 3)) - 1;
  }
  return bits == 64
             ? value
             : static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - bits)) >> (64 - bits);
}

std::string RandomText(Random& random, uint64_t style) {
  if (style == 1) return "word" + std::to_string(Below(random, 9));
  std::string text;
  for (uint64_t n = Below(random, style == 0 ? 90 : 4); n > 0; --n)
    text.push_back(static_cast<char>(random()));
  return text;
}

// `flat`: nodes of flattened maps, whose rows must not have a key twice.
Column RandomColumn(const Schema& schema, uint32_t node, uint64_t rows, Random& random,
                    const std::set<uint32_t>& flat) {
  const SchemaNode& type = schema.node(node);
  Column column;
  column.kind = type.kind;
  column.rows = rows;
  const bool is_key = node > 0 && schema.node(type.parent).kind == TypeKind::kMap &&
                      schema.node(type.parent).children[0] == node;
  const uint64_t null_style = node == 0 || is_key ? 0 : Below(random, 4);  // none, some, many, all
  if (null_style > 0)
    for (uint64_t i = 0; i < rows; ++i)
      column.present.push_back(null_style == 1   ? Below(random, 10) > 0
                               : null_style == 2 ? Below(random, 3) == 0
                                                 : Below(random, 50) == 0);
  const uint64_t style = Below(random, 4);
  if (type.kind <= TypeKind::kLong || type.kind == TypeKind::kTimestamp) {
    for (uint64_t i = 0; i < rows; ++i) {
      int64_t value = RandomInteger(random, type.kind, style, static_cast<int64_t>(i));
      int32_t nanos = 0;
      if (type.kind == TypeKind::kTimestamp) {
        value %= int64_t{1} << 36;
        nanos = static_cast<int32_t>(Below(random, 1000));
        for (uint64_t k = Below(random, 7); k > 0; --k) nanos *= 10;
        if (value == -1) nanos = 0;  // the format cannot hold the second before 1970
        column.nanos.push_back(column.IsNull(i) ? 0 : nanos);
      }
      column.integers.push_back(column.IsNull(i) ? 0 : value);
    }
  } else if (type.kind == TypeKind::kFloat) {
    for (uint64_t i = 0; i < rows; ++i)
      column.floats.push_back(column.IsNull(i) ? 0
                                               : static_cast<float>(Below(random, 1000)) / 8 - 3);
  } else if (type.kind == TypeKind::kDouble) {
    for (uint64_t i = 0; i < rows; ++i)
      column.doubles.push_back(column.IsNull(i) ? 0 : static_cast<double>(random() >> 12) * 1e-7);
  } else if (type.kind == TypeKind::kString || type.kind == TypeKind::kBinary) {
    column.offsets.push_back(0);
    for (uint64_t i = 0; i < rows; ++i) {
      if (!column.IsNull(i)) column.bytes += RandomText(random, style);
      column.offsets.push_back(column.bytes.size());
    }
  } else if (type.kind == TypeKind::kStruct) {
    for (const uint32_t child : type.children)
      column.children.push_back(RandomColumn(schema, child, rows, random, flat));
  } else {
    column.offsets.push_back(0);
    const uint64_t longest = 1 + Below(random, 6);
    for (uint64_t i = 0; i < rows; ++i)
      column.offsets.push_back(column.offsets.back() +
                               (column.IsNull(i) ? 0 : Below(random, longest)));
    for (const uint32_t child : type.children)
      column.children.push_back(RandomColumn(schema, child, column.offsets.back(), random, flat));
    if (flat.count(node) > 0) {
      Column& keys = column.children[0];
      const bool text = !keys.offsets.empty();
      if (text) keys.offsets = {0}, keys.bytes.clear();
      for (uint64_t i = 0; i < rows; ++i) {
        // Ascending from a random start, so that distinct; few enough that keys come and go between
        // stripes.
        auto key = static_cast<int64_t>(Below(random, 3)) - 1;
        for (uint64_t k = column.offsets[i]; k < column.offsets[i + 1];
             ++k, key += 1 + static_cast<int64_t>(Below(random, 2))) {
          if (text) {
            keys.bytes += key == 0 ? "" : "key" + std::to_string(key);
            keys.offsets.push_back(keys.bytes.size());
          } else {
            keys.integers[k] = key;
          }
        }
      }
    }
  }
  return column;
}

// A row as text, to compare by. `compact`: struct children have slots for present rows only.
// Entries of flattened maps are sorted by key, their order not being stored.
std::string Show(const Schema& schema, uint32_t node, const Column& column, uint64_t row,
                 bool compact, const std::set<uint32_t>& flat) {
  if (column.IsNull(row)) return "null";
  const SchemaNode& type = schema.node(node);
  if (type.kind <= TypeKind::kLong) return std::to_string(column.integers[row]);
  if (type.kind == TypeKind::kTimestamp)
    return std::to_string(column.integers[row]) + "s" + std::to_string(column.nanos[row]);
  if (type.kind == TypeKind::kFloat)
    return std::to_string(std::bit_cast<uint32_t>(column.floats[row]));
  if (type.kind == TypeKind::kDouble)
    return std::to_string(std::bit_cast<uint64_t>(column.doubles[row]));
  if (type.kind == TypeKind::kString || type.kind == TypeKind::kBinary)
    return "'" +
           column.bytes.substr(column.offsets[row], column.offsets[row + 1] - column.offsets[row]) +
           "'";
  std::string text = "(";
  if (type.kind == TypeKind::kStruct) {
    uint64_t slot = row;
    if (compact && !column.present.empty())
      slot = static_cast<uint64_t>(std::count(
          column.present.begin(), column.present.begin() + static_cast<int64_t>(row), 1));
    for (size_t c = 0; c < type.children.size(); ++c)
      text += Show(schema, type.children[c], column.children[c], slot, compact, flat) + ",";
    return text + ")";
  }
  std::vector<std::string> items;
  for (uint64_t k = column.offsets[row]; k < column.offsets[row + 1]; ++k) {
    items.emplace_back();
    for (size_t c = 0; c < type.children.size(); ++c)
      items.back() += Show(schema, type.children[c], column.children[c], k, compact, flat) +
                      (c == 0 ? ":" : "");
  }
  if (flat.count(node) > 0) std::sort(items.begin(), items.end());
  for (const std::string& item : items) text += item + ",";
  return text + ")";
}

// The footer's statistics, computed again from the rows. Reaching null parents' slots is left to
// `used`.
struct Expected {
  uint64_t values = 0, raw = 0, trues = 0, bytes = 0;
  bool has_null = false, any = false;
  int64_t low = 0, high = 0;
  __int128 sum = 0;
  double low_double = 0, high_double = 0;
  std::string low_text, high_text;
};

uint64_t Collect(const Schema& schema, uint32_t node, const Column& column, uint64_t row,
                 std::vector<Expected>* all) {
  Expected& e = (*all)[node];
  if (column.IsNull(row)) {
    e.has_null = true;
    ++e.raw;
    return 1;
  }
  ++e.values;
  const SchemaNode& type = schema.node(node);
  uint64_t raw = 0;
  const auto range = [&](auto value, auto* low, auto* high) {
    *low = e.any ? std::min(*low, value) : value;
    *high = e.any ? std::max(*high, value) : value;
    e.any = true;
  };
  switch (type.kind) {
    case TypeKind::kBoolean:
      raw = 1;
      e.trues += column.integers[row] != 0;
      break;
    case TypeKind::kByte:
      raw = 1;
      break;
    case TypeKind::kShort:
      raw = 2;
      break;
    case TypeKind::kInt:
      raw = 4;
      break;
    case TypeKind::kLong:
      raw = 8;
      break;
    case TypeKind::kFloat:
      raw = 4;
      range(static_cast<double>(column.floats[row]), &e.low_double, &e.high_double);
      break;
    case TypeKind::kDouble:
      raw = 8;
      range(column.doubles[row], &e.low_double, &e.high_double);
      break;
    case TypeKind::kTimestamp:
      raw = 12;
      break;
    case TypeKind::kString:
    case TypeKind::kBinary: {
      const std::string text =
          column.bytes.substr(column.offsets[row], column.offsets[row + 1] - column.offsets[row]);
      raw = text.size();
      e.bytes += raw;
      range(text, &e.low_text, &e.high_text);
      break;
    }
    case TypeKind::kStruct:
      for (size_t c = 0; c < type.children.size(); ++c)
        raw += Collect(schema, type.children[c], column.children[c], row, all);
      break;
    default:
      for (uint64_t k = column.offsets[row]; k < column.offsets[row + 1]; ++k)
        for (size_t c = 0; c < type.children.size(); ++c)
          raw += Collect(schema, type.children[c], column.children[c], k, all);
  }
  if (IsInteger(type.kind)) {
    range(column.integers[row], &e.low, &e.high);
    e.sum += column.integers[row];
  }
  (*all)[node].raw += raw;
  return raw;
}

void ExpectStatistics(const Schema& schema, const plain::PlainDecoder& file,
                      const std::vector<Expected>& expected) {
  ASSERT_EQ(file.footer.statistics_size(), static_cast<int>(schema.size()));
  for (uint32_t node = 0; node < schema.size(); ++node) {
    const auto& s = file.footer.statistics(static_cast<int>(node));
    const Expected& e = expected[node];
    SCOPED_TRACE(schema.Path(node));
    EXPECT_EQ(s.number_of_values(), e.values);
    EXPECT_EQ(s.has_null(), e.has_null);
    EXPECT_EQ(s.raw_size(), e.raw);
    const TypeKind kind = schema.node(node).kind;
    EXPECT_EQ(s.has_int_statistics(), IsInteger(kind) && e.values > 0);
    if (s.has_int_statistics()) {
      EXPECT_EQ(s.int_statistics().minimum(), e.low);
      EXPECT_EQ(s.int_statistics().maximum(), e.high);
      EXPECT_EQ(s.int_statistics().has_sum(), e.sum == static_cast<int64_t>(e.sum));
      if (s.int_statistics().has_sum()) {
        EXPECT_EQ(s.int_statistics().sum(), static_cast<int64_t>(e.sum));
      }
    }
    EXPECT_EQ(s.has_double_statistics(),
              (kind == TypeKind::kFloat || kind == TypeKind::kDouble) && e.values > 0);
    if (s.has_double_statistics()) {
      EXPECT_EQ(s.double_statistics().minimum(), e.low_double);
      EXPECT_EQ(s.double_statistics().maximum(), e.high_double);
    }
    EXPECT_EQ(s.has_string_statistics(), kind == TypeKind::kString && e.values > 0);
    if (s.has_string_statistics()) {
      EXPECT_EQ(s.string_statistics().has_minimum(), e.low_text.size() <= 64);
      EXPECT_EQ(s.string_statistics().has_maximum(), e.high_text.size() <= 64);
      if (s.string_statistics().has_minimum()) {
        EXPECT_EQ(s.string_statistics().minimum(), e.low_text);
      }
      if (s.string_statistics().has_maximum()) {
        EXPECT_EQ(s.string_statistics().maximum(), e.high_text);
      }
      EXPECT_EQ(s.string_statistics().sum(), static_cast<int64_t>(e.bytes));
    }
    if (kind == TypeKind::kBinary && e.values > 0) {
      EXPECT_EQ(s.binary_statistics().sum(), static_cast<int64_t>(e.bytes));
    }
    if (kind == TypeKind::kBoolean && e.values > 0) {
      EXPECT_EQ(s.bucket_statistics().count(0), e.trues);
    }
  }
}

WriterOptions RandomOptions(const Schema& schema, Random& random, std::set<uint32_t>* flat) {
  static const CompressionKind kCodecs[] = {CompressionKind::kNone, CompressionKind::kZlib,
                                            CompressionKind::kZstd, CompressionKind::kLz4,
                                            CompressionKind::kSnappy};
  WriterOptions options;
  options.compression = kCodecs[Below(random, 5)];
  options.level = 1 + static_cast<int>(Below(random, 9));
  options.min_ratio = Below(random, 2) == 0 ? 1.15 : 1.0;
  options.min_compress_bytes = Below(random, 100);
  options.block_size = 1024 << Below(random, 9);
  options.stripe_rows = Below(random, 2) == 0 ? 1 + Below(random, 300) : 0;
  options.stripe_bytes = 100 + Below(random, 20'000);
  options.row_index_stride =
      Below(random, 6) == 0 ? 0 : 1 + static_cast<uint32_t>(Below(random, 120));
  options.stripe_cache = Below(random, 3) > 0;
  if (Below(random, 4) == 0) options.stripe_cache_bytes = 500;
  options.checksum = Below(random, 4) > 0;
  options.use_vints = Below(random, 5) > 0;
  options.goal = static_cast<LayoutGoal>(Below(random, 4));
  options.choose_codec = Below(random, 2) == 0;
  options.ratio_by_goal = Below(random, 4) > 0;
  for (size_t c = 0; c < schema.root().children.size(); ++c) {
    const SchemaNode& map = schema.node(schema.root().children[c]);
    if (map.kind != TypeKind::kMap || Below(random, 5) == 0) continue;
    options.flat_maps.push_back(schema.root().field_names[c]);
    flat->insert(map.id);
    for (uint32_t node = map.children[1]; node <= schema.node(map.children[1]).last; ++node) {
      const TypeKind kind = schema.node(node).kind;
      if (IsInteger(kind) && kind != TypeKind::kByte && Below(random, 3) == 0)
        options.columns[schema.Path(node)].dictionary = DictionaryUse::kShared;
    }
  }
  for (uint32_t node = 1; node < schema.size(); ++node) {
    ColumnOptions& column = options.columns[schema.Path(node)];
    if (column.dictionary != DictionaryUse::kShared)
      column.dictionary = static_cast<DictionaryUse>(Below(random, 3));
    column.compress = Below(random, 8) > 0;
  }
  return options;
}

class RoundTrip : public testing::TestWithParam<int> {};

TEST_P(RoundTrip, RowsStatisticsAndPositionsAgree) {
  const uint64_t seed = TestSeed(20240601) + static_cast<uint64_t>(GetParam());
  SCOPED_TRACE("HEADRACE_SEED=" + std::to_string(seed));
  Random random(seed);
  std::string text = "struct<";
  for (uint64_t i = 0, n = 1 + Below(random, 5); i < n; ++i) {
    text += (i > 0 ? ",c" : "c") + std::to_string(i) + ":";
    text += Below(random, 3) == 0 ? "map<" + std::string(Below(random, 2) == 0 ? "int" : "string") +
                                        "," + RandomType(random, 2) + ">"
                                  : RandomType(random, 3);
  }
  const Schema schema = Schema::Parse(text + ">");
  std::set<uint32_t> flat;
  const WriterOptions options = RandomOptions(schema, random, &flat);
  const std::string path = RoundTripPath();
  std::vector<std::string> written;
  std::vector<Expected> expected(schema.size());
  {
    FileWriter writer(path, schema, options, true);
    for (uint64_t batch = 0, n = Below(random, 4); batch < n; ++batch) {
      const Column rows = RandomColumn(schema, 0, Below(random, 500), random, flat);
      writer.Write(rows);
      for (uint64_t row = 0; row < rows.rows; ++row) {
        written.push_back(Show(schema, 0, rows, row, false, flat));
        Collect(schema, 0, rows, row, &expected);
      }
    }
    writer.Close();
  }
  plain::PlainDecoder file(ReadWholeFile(path));
  std::filesystem::remove(path);
  EXPECT_EQ(file.schema.ToString(), schema.ToString());
  EXPECT_EQ(file.footer.number_of_rows(), written.size());
  std::vector<std::string> read;
  for (int i = 0; i < file.footer.stripes_size(); ++i) {
    const Column rows = file.Stripe(i);
    for (uint64_t row = 0; row < rows.rows; ++row)
      read.push_back(Show(schema, 0, rows, row, true, flat));
  }
  ASSERT_EQ(read.size(), written.size());
  for (size_t i = 0; i < read.size(); ++i)
    ASSERT_EQ(read[i], written[i]) << "row " << i << " of " << schema.ToString();
  ExpectStatistics(schema, file, expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RoundTrip, testing::Range(0, 300));

}  // namespace
}  // namespace headrace::reader::dwrf
