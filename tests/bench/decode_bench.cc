// Decode kernels: each instruction set against the scalar twin, on the id, length and presence
// shapes of recommendation tables; varints also beside the prototype that this reader started from.
// Items are values (bits for booleans).
//
//   decode_bench --benchmark_repetitions=7 --benchmark_enable_random_interleaving=true
//   --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/buffer.h"
#include "reader/dwrf/decode/bool_expand.h"
#include "reader/dwrf/decode/presence_expand.h"
#include "reader/dwrf/decode/rle_simd.h"
#include "reader/dwrf/decode/varint_simd.h"
#include "tests/bench/prototype_pipe.h"

namespace headrace::reader::dwrf {
namespace {

constexpr size_t kValues = 65536;
constexpr size_t kPrototypeSlack = 64;  // values that its kernels write past the last

enum Ids { kSmall, k27Bit, k63Bit, kMixed };

void PutVarint(std::vector<uint8_t>* out, uint64_t value) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<uint8_t>(value | 128));
  out->push_back(static_cast<uint8_t>(value));
}

// Zipf-like by the inverse power of a uniform, exponent 1.1, over 16384 ids.
uint64_t SmallId(std::mt19937_64& random) {
  const double u = std::generate_canonical<double, 53>(random);
  return static_cast<uint64_t>(std::pow(u * (std::pow(16384.0, -0.1) - 1) + 1, -10.0));
}

uint64_t RandomId(std::mt19937_64& random, int shape) {
  if (shape == kMixed) {
    const uint64_t dice = random() % 10;
    shape = dice < 3 ? kSmall : dice < 8 ? k27Bit : k63Bit;
  }
  return shape == kSmall ? SmallId(random) : random() >> (shape == k27Bit ? 37 : 1);
}

Buffer Copy(const std::vector<uint8_t>& bytes) {
  Buffer buffer(bytes.size());
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

// kMixed changes shape from value to value, the worst case for branches.
Buffer Varints(int shape) {
  std::mt19937_64 random(1);
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < kValues; ++i) PutVarint(&bytes, RandomId(random, shape) << 1);
  return Copy(bytes);
}

Buffer Rle(int shape, bool lengths) {
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> length(std::log(26.0) - 0.32, 0.8);
  std::vector<uint8_t> bytes;
  for (size_t done = 0; done < kValues;) {
    const size_t count = std::min<size_t>(kValues - done, 1 + random() % 128);
    if (count >= 3 && random() % 8 == 0) {
      bytes.push_back(static_cast<uint8_t>(count - 3));
      bytes.push_back(0);
      PutVarint(&bytes, 26);
    } else {
      bytes.push_back(static_cast<uint8_t>(256 - count));
      for (size_t i = 0; i < count; ++i)
        PutVarint(&bytes, lengths ? std::max<uint64_t>(1, static_cast<uint64_t>(length(random)))
                                  : RandomId(random, shape) << 1);
    }
    done += count;
  }
  return Copy(bytes);
}

bool Choose(benchmark::State& state, InstructionSet* set) {
  *set = static_cast<InstructionSet>(state.range(0));
  if (*set > BestInstructionSet()) {
    state.SkipWithError("this machine lacks the instruction set");
    return false;
  }
  state.SetLabel(InstructionSetName(*set));
  return true;
}

void BM_Varints(benchmark::State& state) {
  InstructionSet set;
  if (!Choose(state, &set)) return;
  const Buffer in = Varints(static_cast<int>(state.range(1)));
  std::vector<int64_t> out(kValues + kDecodeSlack);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        DecodeVarints(in.data(), in.data() + in.size(), kValues, true, out.data(), set));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kValues));
}

void BM_Rle(benchmark::State& state) {
  InstructionSet set;
  if (!Choose(state, &set)) return;
  const Buffer in = Rle(static_cast<int>(state.range(1)), false);
  std::vector<int64_t> out(kValues + kDecodeSlack);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        DecodeRle(in.data(), in.data() + in.size(), kValues, {true, 0}, out.data(), set));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kValues));
}

// The prototype has one instruction set, and no checks.
bool HasPrototype(benchmark::State& state) {
  if (BestInstructionSet() == InstructionSet::kAvx512) return true;
  state.SkipWithError("the prototype needs AVX-512");
  return false;
}

void BM_PrototypeVarints(benchmark::State& state) {
  if (!HasPrototype(state)) return;
  const Buffer in = Varints(static_cast<int>(state.range(0)));
  std::vector<uint64_t> out(kValues + kPrototypeSlack);
  for (auto _ : state) {
    benchmark::DoNotOptimize(prototype::DecodeAvx512<true>(in.data(), kValues, out.data()));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kValues));
}

void BM_PrototypeRle(benchmark::State& state) {
  if (!HasPrototype(state)) return;
  const Buffer in = Rle(static_cast<int>(state.range(0)), false);
  std::vector<int64_t> out(kValues + kPrototypeSlack);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        prototype::DecodeRle<true>(in.data(), in.data() + in.size(), out.data()));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kValues));
}

void BM_Lengths(benchmark::State& state) {
  InstructionSet set;
  if (!Choose(state, &set)) return;
  const Buffer in = Rle(kSmall, true);
  std::vector<uint32_t> out(kValues + kDecodeSlack);
  uint64_t total = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        DecodeLengths(in.data(), in.data() + in.size(), kValues, {}, out.data(), &total, set));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kValues));
}

// Presence of 45 % of the rows.
std::vector<uint64_t> Presence() {
  std::mt19937_64 random(3);
  std::vector<uint64_t> words(kValues / 64);
  for (size_t row = 0; row < kValues; ++row)
    words[row / 64] |= uint64_t{random() % 100 < 45} << (row % 64);
  return words;
}

void BM_Bits(benchmark::State& state) {
  InstructionSet set;
  if (!Choose(state, &set)) return;
  std::mt19937_64 random(4);
  std::vector<uint8_t> bytes;
  for (size_t done = 0; done < kValues / 8; done += 128) {
    bytes.push_back(128);
    for (int i = 0; i < 128; ++i) bytes.push_back(static_cast<uint8_t>(random()));
  }
  std::vector<uint64_t> words(kValues / 64);
  for (auto _ : state) {
    benchmark::DoNotOptimize(DecodeBits(bytes, kValues, words.data(), set));
    benchmark::DoNotOptimize(CountBits(words.data(), words.size(), set));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kValues));
}

void BM_DepositBits(benchmark::State& state) {
  InstructionSet set;
  if (!Choose(state, &set)) return;
  const std::vector<uint64_t> mask = Presence(), packed = Presence();
  std::vector<uint64_t> out(mask.size());
  for (auto _ : state) {
    DepositBits(packed.data(), packed.size(), mask.data(), mask.size(), out.data(), set);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kValues));
}

void BM_ExpandFloats(benchmark::State& state) {
  InstructionSet set;
  if (!Choose(state, &set)) return;
  const std::vector<uint64_t> present = Presence();
  const Buffer packed(kValues * sizeof(float));
  std::vector<float> out(kValues);
  for (auto _ : state) {
    ExpandFloats(packed.data(), present.data(), kValues, out.data(), set);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kValues));
}

void BM_ExpandLengths(benchmark::State& state) {
  InstructionSet set;
  if (!Choose(state, &set)) return;
  const std::vector<uint64_t> present = Presence();
  const std::vector<uint32_t> packed(kValues + kDecodeSlack, 26);
  std::vector<uint32_t> out(kValues + 1);
  for (auto _ : state) {
    ExpandLengths(packed.data(), present.data(), kValues, out.data(), set);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kValues));
}

BENCHMARK(BM_Varints)
    ->ArgNames({"set", "ids"})
    ->ArgsProduct({{0, 1, 2}, {kSmall, k27Bit, k63Bit, kMixed}});
BENCHMARK(BM_Rle)
    ->ArgNames({"set", "ids"})
    ->ArgsProduct({{0, 1, 2}, {kSmall, k27Bit, k63Bit, kMixed}});
BENCHMARK(BM_PrototypeVarints)->ArgName("ids")->DenseRange(kSmall, kMixed);
BENCHMARK(BM_PrototypeRle)->ArgName("ids")->DenseRange(kSmall, kMixed);
BENCHMARK(BM_Lengths)->ArgName("set")->DenseRange(0, 2);
BENCHMARK(BM_Bits)->ArgName("set")->DenseRange(0, 2);
BENCHMARK(BM_DepositBits)->ArgName("set")->DenseRange(0, 2);
BENCHMARK(BM_ExpandFloats)->ArgName("set")->DenseRange(0, 2);
BENCHMARK(BM_ExpandLengths)->ArgName("set")->DenseRange(0, 2);

}  // namespace
}  // namespace headrace::reader::dwrf

BENCHMARK_MAIN();
