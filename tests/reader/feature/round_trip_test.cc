// Random tables through the writer and the fast path: every value type, nulls everywhere,
// dictionaries, codecs, key types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "base/error.h"
#include "reader/dwrf/column_gather.h"
#include "reader/dwrf/feature_stream.h"
#include "reader/dwrf/file_reader.h"
#include "reader/dwrf/file_writer.h"
#include "tests/reader/feature/expected_features.h"
#include "tests/reader/feature/slices_check.h"
#include "tests/seed.h"

namespace headrace::reader::dwrf {
namespace {

using Random = std::mt19937_64;

template <typename T>
const T& Pick(Random& random, const std::vector<T>& of) {
  return of[random() % of.size()];
}

// Mostly small, some of every size, within the type.
int64_t RandomInteger(Random& random, TypeKind kind) {
  const int bits = kind == TypeKind::kBoolean ? 1
                   : kind == TypeKind::kByte  ? 8
                   : kind == TypeKind::kShort ? 16
                   : kind == TypeKind::kInt   ? 32
                                              : 64;
  if (bits == 1) return static_cast<int64_t>(random() & 1);
  const int used = random() % 2 == 0 ? std::min(bits, 7)
                                     : static_cast<int>(1 + random() % static_cast<uint64_t>(bits));
  return static_cast<int64_t>(random() << (64 - used)) >> (64 - used);
}

std::vector<uint8_t> RandomNulls(Random& random, uint64_t rows) {
  std::vector<uint8_t> present;
  if (random() % 2 == 0) return present;
  const uint64_t percent = random() % 101;
  for (uint64_t i = 0; i < rows; ++i) present.push_back(random() % 100 >= percent);
  return present;
}

Column RandomNumbers(Random& random, TypeKind kind, uint64_t rows, bool nulls) {
  Column column;
  column.kind = kind;
  column.rows = rows;
  if (nulls) column.present = RandomNulls(random, rows);
  const bool runs = random() % 3 == 0;
  for (uint64_t i = 0; i < rows; ++i) {
    const bool repeat = runs && i > 0 && random() % 8 != 0;
    const auto put = [&](auto* values, auto value) {
      values->push_back(column.IsNull(i) ? 0 : repeat ? values->back() : value);
    };
    if (kind == TypeKind::kFloat) {
      put(&column.floats, static_cast<float>(random() % 1000) / 8.0f);
    } else if (kind == TypeKind::kDouble) {
      put(&column.doubles, static_cast<double>(random() % 1000) / 8.0);
    } else {
      put(&column.integers, RandomInteger(random, kind));
    }
  }
  return column;
}

Column RandomValues(Random& random, const Schema& schema, uint32_t node, uint64_t rows) {
  const SchemaNode& type = schema.node(node);
  if (type.children.empty()) return RandomNumbers(random, type.kind, rows, true);
  Column column;
  column.kind = type.kind;
  column.rows = rows;
  column.present = RandomNulls(random, rows);
  column.offsets.push_back(0);
  const uint64_t longest = random() % 3 == 0 ? 200 : 6;
  for (uint64_t i = 0; i < rows; ++i)
    column.offsets.push_back(column.offsets.back() + (column.IsNull(i) ? 0 : random() % longest));
  const uint64_t elements = column.offsets.back();
  column.children.push_back(RandomNumbers(random, schema.node(type.children[0]).kind, elements,
                                          type.kind == TypeKind::kList));
  if (type.kind == TypeKind::kMap)
    column.children.push_back(
        RandomNumbers(random, schema.node(type.children[1]).kind, elements, true));
  return column;
}

Column RandomFlatMap(Random& random, const Schema& schema, uint32_t node, uint64_t rows,
                     const std::vector<MapKey>& keys) {
  Column map;
  map.kind = TypeKind::kMap;
  map.rows = rows;
  map.present = RandomNulls(random, rows);
  map.offsets.push_back(0);
  Column names;
  names.kind = schema.node(schema.node(node).children[0]).kind;
  if (names.kind == TypeKind::kString) names.offsets.push_back(0);
  for (uint64_t row = 0; row < rows; ++row) {
    for (size_t k = 0; k < keys.size() && !map.IsNull(row); ++k) {
      if (random() % keys.size() < k) continue;  // from always present to rare
      ++names.rows;
      if (keys[k].is_text) {
        names.bytes += keys[k].text;
        names.offsets.push_back(names.bytes.size());
      } else {
        names.integers.push_back(keys[k].integer);
      }
    }
    map.offsets.push_back(names.rows);
  }
  const uint64_t entries = names.rows;
  map.children.push_back(std::move(names));
  map.children.push_back(RandomValues(random, schema, schema.node(node).children[1], entries));
  return map;
}

struct TestTable {
  Schema schema;
  Column rows;
  WriterOptions options;
  Projection projection;
};

std::vector<MapKey> RandomKeys(Random& random, TypeKind kind) {
  std::set<MapKey> keys;
  for (uint64_t i = random() % 8; i > 0; --i) {
    keys.insert(kind == TypeKind::kString ? MapKey{true, 0, "key-" + std::to_string(random() % 20)}
                                          : MapKey{false, RandomInteger(random, kind), {}});
  }
  return {keys.begin(), keys.end()};
}

TestTable RandomTable(Random& random) {
  const std::vector<std::string> integers = {"tinyint", "smallint", "int", "bigint"},
                                 key_types = {"tinyint", "int", "bigint", "string"};
  const std::vector<std::string> numbers = {"tinyint", "smallint", "int",    "bigint",
                                            "float",   "float",    "double", "boolean"};
  TestTable table;
  std::string text = "struct<label:float,id:bigint";
  for (const char* name : {"flag:boolean", "small:smallint", "real:double"}) {
    if (random() % 2 == 0) text += std::string(",") + name;
  }
  const auto add_map = [&](const std::string& name, const std::string& value) {
    text += "," + name + ":map<" + Pick(random, key_types) + "," + value + ">";
    table.options.flat_maps.push_back(name);
  };
  add_map("dense", Pick(random, numbers));
  add_map("sparse", "list<" + Pick(random, integers) + ">");
  add_map("weighted", "map<" + Pick(random, integers) + "," +
                          Pick(random, std::vector<std::string>{"float", "double"}) + ">");
  table.schema = Schema::Parse(text + ">");

  const uint64_t num_rows = random() % 4 == 0 ? random() % 10 : 1 + random() % 3000;
  table.rows.kind = TypeKind::kStruct;
  table.rows.rows = num_rows;
  const SchemaNode& root = table.schema.root();
  for (size_t i = 0; i < root.children.size(); ++i) {
    const SchemaNode& node = table.schema.node(root.children[i]);
    const std::string& name = root.field_names[i];
    if (node.kind != TypeKind::kMap) {
      table.rows.children.push_back(RandomNumbers(random, node.kind, num_rows, true));
      table.projection.columns.push_back(name);
      continue;
    }
    const TypeKind key_kind = table.schema.node(node.children[0]).kind;
    const std::vector<MapKey> keys = RandomKeys(random, key_kind);
    table.rows.children.push_back(RandomFlatMap(random, table.schema, node.id, num_rows, keys));
    for (const MapKey& key : keys) {
      if (random() % 4 != 0) table.projection.features.push_back({name, key});
    }
    if (!std::count(keys.begin(), keys.end(), MapKey{key_kind == TypeKind::kString, 100, {}})) {
      table.projection.features.push_back(
          {name,
           MapKey{key_kind == TypeKind::kString, key_kind == TypeKind::kString ? 0 : 100, {}}});
    }
  }
  using Kind = CompressionKind;
  table.options.compression =
      Pick(random, std::vector<Kind>{Kind::kNone, Kind::kZlib, Kind::kSnappy, Kind::kZstd,
                                     Kind::kZstd, Kind::kLz4});
  table.options.level = 1;
  table.options.min_ratio = random() % 2 == 0 ? 1.0 : 1.15;
  table.options.block_size = random() % 2 == 0 ? 1024 : 256 << 10;
  table.options.stripe_rows = 1 + random() % 2000;
  table.options.use_vints = random() % 4 != 0;
  table.options.goal = static_cast<LayoutGoal>(random() % 4);
  table.options.choose_codec = random() % 2 == 0;
  const std::vector<DictionaryUse> uses = {DictionaryUse::kAuto, DictionaryUse::kNever,
                                           DictionaryUse::kAlways, DictionaryUse::kShared};
  const auto dictionary = [&](const std::string& path) {
    for (const SchemaNode& node : table.schema.nodes()) {
      if (table.schema.Path(node.id) == path && IsInteger(node.kind) &&
          node.kind != TypeKind::kByte)
        table.options.columns[path].dictionary = Pick(random, uses);
    }
  };
  dictionary("dense.value");
  dictionary("sparse.value.element");
  dictionary("weighted.value.key");
  return table;
}

// Rows of sessions that repeat one or two rows of the table, some clustered, some not.
Column RepeatRows(Random& random, const Column& rows, const Schema& schema) {
  std::vector<uint64_t> order;
  const uint64_t longest = 1 + random() % 20;
  for (uint64_t row = 0; row < rows.rows && order.size() < 3000; ++row) {
    for (uint64_t left = 1 + random() % longest; left > 0; --left)
      order.push_back(row > 0 && random() % 8 == 0 ? row - 1 : row);
  }
  if (random() % 4 == 0) std::shuffle(order.begin(), order.end(), random);
  Column repeated = EmptyColumn(schema, 0);
  Gather(rows, order, &repeated);
  return repeated;
}

TEST(RoundTrip, RandomTablesReadAsWritten) {
  Random random(TestSeed(4711));
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                     ("feature_round_trip." + std::to_string(random()) + ".dwrf");
  uint64_t kept_dictionaries = 0, grouped_dictionaries = 0;
  for (int trial = 0; trial < 60; ++trial) {
    SCOPED_TRACE(trial);
    TestTable table = RandomTable(random);
    if (trial % 2 == 0) table.rows = RepeatRows(random, table.rows, table.schema);
    SCOPED_TRACE(table.schema.ToString());
    {
      FileWriter writer(path.string(), table.schema, table.options, true);
      writer.Write(table.rows);
      writer.Close();
    }
    const std::shared_ptr<const FileReader> reader =
        FileReader::Open(OpenFileSource(path.string()));
    ASSERT_EQ(reader->num_rows(), table.rows.rows);
    for (size_t i = 0; i < reader->num_stripes(); ++i) {
      const std::shared_ptr<const Stripe> stripe = reader->ReadStripe(i);
      const FetchOptions fetch{random() % 2 * 1000, 1 + random() % 10000};
      const FlatMapBatch batch = Extract(Decode(
          Decompress(Fetch(MakePlan(*reader, stripe, table.projection), reader->source(), fetch))));
      CheckSlices(
          [&] {
            return Decompress(
                Fetch(MakePlan(*reader, stripe, table.projection), reader->source(), fetch));
          },
          &random, &kept_dictionaries, &grouped_dictionaries);
      if (HasFatalFailure()) return;
      ASSERT_EQ(batch.rows, stripe->rows);
      ASSERT_EQ(batch.first_row, stripe->first_row);
      ExpectBatch(table.schema, table.rows, table.projection, stripe->first_row, batch);
      if (HasFatalFailure()) return;
    }
    std::filesystem::remove(path);
  }
  EXPECT_GT(kept_dictionaries, 0u);
  EXPECT_GT(grouped_dictionaries, 0u);
}

}  // namespace
}  // namespace headrace::reader::dwrf
