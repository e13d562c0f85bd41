// Transforms: each instruction set against its scalar reference, and against what a person would
// write with the standard library (the rival). Items are ids, values or pairs.
//
//   transform_bench --benchmark_repetitions=7 --benchmark_enable_random_interleaving=true
//   --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reader/batch/array.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

constexpr size_t kValues = 65536;
constexpr uint64_t kRows = 2520;  // of 26 ids on average: about kValues ids
constexpr int kReference = -1;    // first benchmark argument: this, or an instruction set

std::vector<int64_t> RandomIds(size_t count, uint64_t below, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> ids(count);
  for (int64_t& id : ids) id = static_cast<int64_t>(random() % below);
  return ids;
}

std::vector<float> RandomValues(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Log-normal lengths of mean 26, as published for production tables.
SparseColumn RandomLists(uint64_t below, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> length(std::log(26.0) - 0.32, 0.8);
  SparseColumn column;
  column.present = AllPresent(kRows);
  column.offsets.push_back(0);
  for (uint64_t row = 0; row < kRows; ++row)
    column.offsets.push_back(column.offsets.back() +
                             std::max<uint32_t>(1, static_cast<uint32_t>(length(random))));
  column.values = RandomIds(column.offsets.back(), below, seed + 1);
  return column;
}

void Count(benchmark::State& state, size_t items, size_t item_bytes) {
  state.SetItemsProcessed(static_cast<int64_t>(items) * state.iterations());
  state.SetBytesProcessed(static_cast<int64_t>(items * item_bytes) * state.iterations());
}

// False, with the reason as the benchmark's error, when the machine lacks the instruction set.
bool Runnable(benchmark::State& state, InstructionSet* set) {
  *set = static_cast<InstructionSet>(std::max<int64_t>(state.range(0), 0));
  if (*set <= BestInstructionSet()) return true;
  state.SkipWithError("this CPU lacks the instruction set");
  return false;
}

void Dense(benchmark::State& state, const char* op, const ParamMap& params) {
  InstructionSet set;
  if (!Runnable(state, &set)) return;
  const auto transform = MakeTransform(Params(op, params));
  const auto& dense = dynamic_cast<const DenseTransform&>(*transform);
  const std::vector<float> input = RandomValues(kValues, 1);
  std::vector<float> values = input;
  for (auto _ : state) {
    std::memcpy(values.data(), input.data(), kValues * sizeof(float));  // in place: fresh values
    state.range(0) == kReference ? dense.Reference(values) : dense.Apply(values, set);
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  Count(state, kValues, sizeof(float));
}

template <typename Function>
void DenseRival(benchmark::State& state, Function function) {
  const std::vector<float> input = RandomValues(kValues, 1);
  std::vector<float> values(kValues);
  for (auto _ : state) {
    for (size_t i = 0; i < kValues; ++i) values[i] = function(input[i]);
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  Count(state, kValues, sizeof(float));
}

void Id(benchmark::State& state, const char* op, const ParamMap& params,
        const std::vector<int64_t>& input) {
  InstructionSet set;
  if (!Runnable(state, &set)) return;
  const auto transform = MakeTransform(Params(op, params));
  const auto& ids = dynamic_cast<const IdTransform&>(*transform);
  std::vector<int64_t> values = input;
  for (auto _ : state) {
    std::memcpy(values.data(), input.data(), kValues * sizeof(int64_t));
    state.range(0) == kReference ? ids.Reference(values) : ids.Apply(values, set);
    benchmark::DoNotOptimize(values.data());
    benchmark::ClobberMemory();
  }
  Count(state, kValues, sizeof(int64_t));
}

void List(benchmark::State& state, const char* op, const ParamMap& params,
          const TransformInputs& in, size_t items) {
  InstructionSet set;
  if (!Runnable(state, &set)) return;
  const auto transform = MakeTransform(Params(op, params));
  const auto& list = dynamic_cast<const ListTransform&>(*transform);
  for (auto _ : state) {
    SparseColumn out;
    state.range(0) == kReference ? list.Reference(in, &out) : list.Apply(in, &out, set);
    benchmark::DoNotOptimize(out.values.data());
  }
  Count(state, items, sizeof(int64_t));
}

TransformInputs Lists(std::vector<const SparseColumn*> columns) {
  return {.rows = kRows, .dense = {}, .sparse = std::move(columns), .scalars = {}};
}

#define SETS ArgName("set")->Arg(kReference)->Arg(0)->Arg(1)->Arg(2)->Unit(benchmark::kMicrosecond)

void Memcpy(benchmark::State& state) {
  const std::vector<int64_t> input = RandomIds(kValues, ~uint64_t{0}, 2);
  std::vector<int64_t> output(kValues);
  for (auto _ : state) {
    std::memcpy(output.data(), input.data(), kValues * sizeof(int64_t));
    benchmark::DoNotOptimize(output.data());
    benchmark::ClobberMemory();
  }
  Count(state, kValues, sizeof(int64_t));
}
BENCHMARK(Memcpy)->Unit(benchmark::kMicrosecond);

void SigridHash(benchmark::State& state) {
  Id(state, "sigrid_hash", {{"salt", 7}, {"max", 10000019}}, RandomIds(kValues, ~uint64_t{0}, 2));
}
BENCHMARK(SigridHash)->SETS;

void PositiveModulus(benchmark::State& state) {
  Id(state, "positive_modulus", {{"divisor", 10000019}}, RandomIds(kValues, ~uint64_t{0}, 2));
}
BENCHMARK(PositiveModulus)->SETS;

// Tables of random ids, all looked up ids in the table.
std::vector<int64_t> Keys(uint64_t count) {
  std::vector<int64_t> keys = RandomIds(count, ~uint64_t{0}, 10);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

std::vector<int64_t> Lookups(const std::vector<int64_t>& keys) {
  std::vector<int64_t> ids = RandomIds(kValues, keys.size(), 2);
  for (int64_t& id : ids) id = keys[static_cast<size_t>(id)];
  return ids;
}

void MapId(benchmark::State& state) {
  const std::vector<int64_t> keys = Keys(static_cast<uint64_t>(state.range(1)));
  Id(state, "map_id", {{"from", keys}, {"to", keys}}, Lookups(keys));
}
BENCHMARK(MapId)
    ->ArgNames({"set", "keys"})
    ->ArgsProduct({{kReference, 0, 1}, {4096, 262144, 4194304}})
    ->Unit(benchmark::kMicrosecond);

void MapIdUnorderedMap(benchmark::State& state) {
  const std::vector<int64_t> keys = Keys(static_cast<uint64_t>(state.range(0)));
  std::unordered_map<int64_t, int64_t> table;
  for (const int64_t key : keys) table[key] = key;
  const std::vector<int64_t> input = Lookups(keys);
  std::vector<int64_t> output(kValues);
  for (auto _ : state) {
    for (size_t i = 0; i < kValues; ++i) {
      const auto it = table.find(input[i]);
      output[i] = it == table.end() ? 0 : it->second;
    }
    benchmark::DoNotOptimize(output.data());
    benchmark::ClobberMemory();
  }
  Count(state, kValues, sizeof(int64_t));
}
BENCHMARK(MapIdUnorderedMap)
    ->ArgName("keys")
    ->Arg(4096)
    ->Arg(262144)
    ->Arg(4194304)
    ->Unit(benchmark::kMicrosecond);

// The reference is std::lower_bound, the rival of this kernel.
void Bucketize(benchmark::State& state) {
  DenseColumn column;
  column.values = RandomValues(kValues, 3);
  column.present = AllPresent(kValues);
  std::vector<double> borders;
  for (int64_t i = 0; i < state.range(1); ++i)
    borders.push_back(-3 + 6.0 * static_cast<double>(i) / static_cast<double>(state.range(1)));
  List(state, "bucketize", {{"borders", borders}},
       {.rows = kValues, .dense = {&column}, .sparse = {}, .scalars = {}}, kValues);
}
BENCHMARK(Bucketize)
    ->ArgNames({"set", "borders"})
    ->ArgsProduct({{kReference, 0, 1, 2}, {8, 64, 256, 1024}})
    ->Unit(benchmark::kMicrosecond);

void Clamp(benchmark::State& state) { Dense(state, "clamp", {{"low", -1}, {"high", 1}}); }
BENCHMARK(Clamp)->SETS;

void Logit(benchmark::State& state) { Dense(state, "logit", {}); }
BENCHMARK(Logit)->SETS;

void LogitLibm(benchmark::State& state) {
  DenseRival(state, [](float x) {
    const float p = std::min(std::max(x, 1e-6f), 1 - 1e-6f);
    return std::log(p / (1 - p));
  });
}
BENCHMARK(LogitLibm)->Unit(benchmark::kMicrosecond);

void BoxCox(benchmark::State& state) { Dense(state, "box_cox", {{"lambda", 0.3}, {"shift", 4.0}}); }
BENCHMARK(BoxCox)->SETS;

void BoxCoxLibm(benchmark::State& state) {
  DenseRival(state, [](float x) { return (std::pow(std::max(x + 4.0f, 1e-6f), 0.3f) - 1) / 0.3f; });
}
BENCHMARK(BoxCoxLibm)->Unit(benchmark::kMicrosecond);

void FirstX(benchmark::State& state) {
  const SparseColumn lists = RandomLists(1 << 27, 4);
  List(state, "first_x", {{"count", 10}}, Lists({&lists}), lists.values.size());
}
BENCHMARK(FirstX)->SETS;

void NGram(benchmark::State& state) {
  const SparseColumn lists = RandomLists(1 << 27, 5);
  List(state, "ngram", {{"n", 2}}, Lists({&lists}), lists.values.size());
}
BENCHMARK(NGram)->SETS;

void Cartesian(benchmark::State& state) {
  const SparseColumn a = RandomLists(1 << 27, 6);
  SparseColumn b;
  b.present = AllPresent(kRows);
  for (uint64_t row = 0; row <= kRows; ++row) b.offsets.push_back(static_cast<uint32_t>(4 * row));
  b.values = RandomIds(4 * kRows, 1 << 20, 7);
  List(state, "cartesian", {}, Lists({&b, &a}), 4 * a.values.size());
}
BENCHMARK(Cartesian)->SETS;

void Intersection(benchmark::State& state) {
  const SparseColumn a = RandomLists(200, 8), b = RandomLists(200, 9);
  List(state, "id_list_transform", {{"mode", "intersection"}}, Lists({&a, &b}),
       a.values.size() + b.values.size());
}
BENCHMARK(Intersection)->ArgName("set")->Arg(kReference)->Arg(0)->Unit(benchmark::kMicrosecond);

void IntersectionUnorderedSet(benchmark::State& state) {
  const SparseColumn a = RandomLists(200, 8), b = RandomLists(200, 9);
  std::vector<int64_t> out;
  std::unordered_set<int64_t> ids;
  for (auto _ : state) {
    out.clear();
    for (uint64_t row = 0; row < kRows; ++row) {
      ids.clear();
      for (const int64_t id : Ids(b, row)) ids.insert(id);
      for (const int64_t id : Ids(a, row))
        if (ids.erase(id) != 0) out.push_back(id);
    }
    benchmark::DoNotOptimize(out.data());
  }
  Count(state, a.values.size() + b.values.size(), sizeof(int64_t));
}
BENCHMARK(IntersectionUnorderedSet)->Unit(benchmark::kMicrosecond);

void Union(benchmark::State& state) {
  const SparseColumn a = RandomLists(200, 8), b = RandomLists(200, 9);
  List(state, "id_list_transform", {{"mode", "union"}}, Lists({&a, &b}),
       a.values.size() + b.values.size());
}
BENCHMARK(Union)->ArgName("set")->Arg(kReference)->Arg(0)->Unit(benchmark::kMicrosecond);

void UnionUnorderedSet(benchmark::State& state) {
  const SparseColumn a = RandomLists(200, 8), b = RandomLists(200, 9);
  std::vector<int64_t> out;
  std::unordered_set<int64_t> ids;
  for (auto _ : state) {
    out.clear();
    for (uint64_t row = 0; row < kRows; ++row) {
      ids.clear();
      for (const SparseColumn* list : {&a, &b})
        for (const int64_t id : Ids(*list, row))
          if (ids.insert(id).second) out.push_back(id);
    }
    benchmark::DoNotOptimize(out.data());
  }
  Count(state, a.values.size() + b.values.size(), sizeof(int64_t));
}
BENCHMARK(UnionUnorderedSet)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace headrace::reader

BENCHMARK_MAIN();
