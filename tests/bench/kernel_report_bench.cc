// Every kernel of the reader beside its rival, with the goal: one table, PASS or MISSED.
//
//   kernel_report_bench                                     all rows
//   kernel_report_bench --benchmark_filter='Bucketize'      some
//
// Each row is a pair of Google Benchmarks over the same data, repeated in random order, 9 times
// unless told otherwise. A ratio is the rival's median time over ours; its band is the second
// lowest and second highest of the ratios of equal repetition. Row numbers, rivals and goals are
// those that were set before the kernels were written; "memcpy" is of as many bytes, in the cache
// (2 MiB).
//
// Results are compared before anything is timed.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "reader/batch/array.h"
#include "reader/batch/tensorize.h"
#include "reader/dwrf/chunk.h"
#include "reader/dwrf/crypto/cipher.h"
#include "reader/dwrf/decode/presence_expand.h"
#include "reader/dwrf/decode/rle_simd.h"
#include "reader/dwrf/decode/varint_simd.h"
#include "reader/transforms/id_hash.h"
#include "reader/transforms/lists.h"
#include "reader/transforms/transform.h"

namespace headrace::reader {
namespace {

constexpr size_t kValues = 262144;  // 2 MiB of ids
constexpr uint64_t kRows = 10080;   // of 26 ids on average: about kValues ids

using Body = std::function<void()>;

struct Pair {
  const char* row;
  std::string kernel;
  const char* rival;
  double goal;
  std::vector<double> ours_ns, rival_ns;  // by repetition
};

std::vector<Pair>& Pairs() {
  static std::vector<Pair> pairs;
  return pairs;
}

void RunBody(benchmark::State& state, const Body& body, size_t items) {
  for (auto _ : state) {
    body();
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(items) * state.iterations());
}

// One row: `make` builds data and both bodies when the first of the two runs.
struct Bodies {
  Body ours, rival;
};
void Add(const char* row, const std::string& kernel, const char* rival, double goal, size_t items,
         std::function<Bodies()> make) {
  const auto lazily = std::make_shared<std::pair<bool, Bodies>>();
  const auto bodies = [lazily, make]() -> const Bodies& {
    if (!lazily->first) *lazily = {true, make()};
    return lazily->second;
  };
  Pairs().push_back({row, kernel, rival, goal, {}, {}});
  const std::string name = fmt::format("{:02}/{}/", Pairs().size() - 1, kernel);
  benchmark::RegisterBenchmark((name + "ours").c_str(), [=](benchmark::State& state) {
    RunBody(state, bodies().ours, items);
  })->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark((name + "rival").c_str(), [=](benchmark::State& state) {
    RunBody(state, bodies().rival, items);
  })->Unit(benchmark::kMicrosecond);
}

// Collects the times of both halves of each pair, then prints the table.
class Report final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      const std::string name = run.benchmark_name();
      Pair& pair = Pairs()[std::stoul(name)];
      const bool ours = name.find("/ours") != std::string::npos;
      (ours ? pair.ours_ns : pair.rival_ns).push_back(run.GetAdjustedRealTime());
      if (run.iterations > 0 && items_.count(name) == 0)
        items_[name] = run.counters.count("items_per_second") > 0
                           ? run.counters.at("items_per_second").value
                           : 0;
    }
  }

  void Finalize() override {
    fmt::print("{:<4} {:<34} {:>10} {:>10}  {:<34} {:>6} {:>13} {:>6}\n", "row", "kernel",
               "ours M/s", "rival M/s", "rival", "ratio", "band", "goal");
    int missed = 0;
    for (size_t i = 0; i < Pairs().size(); ++i) {
      const Pair& pair = Pairs()[i];
      if (pair.ours_ns.empty() || pair.rival_ns.size() != pair.ours_ns.size()) continue;
      std::vector<double> ratios;
      for (size_t k = 0; k < pair.ours_ns.size(); ++k)
        ratios.push_back(pair.rival_ns[k] / pair.ours_ns[k]);
      std::sort(ratios.begin(), ratios.end());
      const size_t edge = ratios.size() > 4 ? 1 : 0;
      const double ratio = Median(pair.rival_ns) / Median(pair.ours_ns);
      const bool passes = ratio >= pair.goal;
      missed += !passes;
      const std::string name = fmt::format("{:02}/{}/", i, pair.kernel);
      fmt::print("{:<4} {:<34} {:>10.4g} {:>10.4g}  {:<34} {:>6.3g} {:>13} {:>6.3g} {}\n", pair.row,
                 pair.kernel, items_[name + "ours"] / 1e6, items_[name + "rival"] / 1e6, pair.rival,
                 ratio,
                 fmt::format("{:.3g}..{:.3g}", ratios[edge], ratios[ratios.size() - 1 - edge]),
                 pair.goal, passes ? "PASS" : "MISSED");
    }
    fmt::print("{} missed. {}, {}\n", missed, CpuModelName(),
               InstructionSetName(BestInstructionSet()));
  }

 private:
  static double Median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
  }
  std::map<std::string, double> items_;  // per second, in the first repetition
};

// ---- Data, of the shapes of recommendation tables.

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
SparseColumn RandomLists(uint64_t rows, uint64_t below, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> length(std::log(26.0) - 0.32, 0.8);
  SparseColumn column;
  column.present = AllPresent(rows);
  column.offsets.push_back(0);
  for (uint64_t row = 0; row < rows; ++row)
    column.offsets.push_back(column.offsets.back() +
                             std::max<uint32_t>(1, static_cast<uint32_t>(length(random))));
  column.values = RandomIds(column.offsets.back(), below, seed + 1);
  return column;
}

void PutVarint(std::vector<uint8_t>* out, uint64_t value) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<uint8_t>(value | 128));
  out->push_back(static_cast<uint8_t>(value));
}

// Ids of 30 % small, 50 % 27-bit, 20 % 63-bit.
uint64_t MixedId(std::mt19937_64& random) {
  const uint64_t dice = random() % 10;
  return dice < 3 ? random() % 300 : random() >> (dice < 8 ? 37 : 1);
}

Buffer RleOfLiterals(bool lengths) {
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> length(std::log(26.0) - 0.32, 0.8);
  std::vector<uint8_t> bytes;
  for (size_t done = 0; done < kValues;) {
    const size_t count = std::min<size_t>(kValues - done, 1 + random() % 128);
    bytes.push_back(static_cast<uint8_t>(256 - count));
    for (size_t i = 0; i < count; ++i)
      PutVarint(&bytes, lengths ? std::max<uint64_t>(1, static_cast<uint64_t>(length(random)))
                                : MixedId(random) << 1);
    done += count;
  }
  Buffer buffer(bytes.size());
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

// A body that copies `bytes` bytes.
Body Memcpy(size_t bytes) {
  const auto from = std::make_shared<std::vector<uint8_t>>(bytes, 1);
  const auto to = std::make_shared<std::vector<uint8_t>>(bytes);
  return [=] { std::memcpy(to->data(), from->data(), from->size()); };
}

// ---- Row 3: decryption of a section of chunks.

Bodies Decrypt(dwrf::Cipher cipher, size_t chunk_bytes) {
  constexpr size_t kSection = 2 << 20;
  const bool gcm = dwrf::TagBytes(cipher) > 0;
  const std::vector<uint8_t> key_bytes(16, 7), plain(chunk_bytes, 42);
  const dwrf::SecretKey key(key_bytes);
  const auto ours = std::make_shared<dwrf::ChunkCipher>(cipher, key);
  const auto stored = std::make_shared<std::vector<uint8_t>>(chunk_bytes + ours->tag_bytes());
  ours->Encrypt({}, plain, stored->data());
  const auto out = std::make_shared<std::vector<uint8_t>>(chunk_bytes);
  HR_CHECK(ours->Decrypt({}, *stored, out->data()) && *out == plain, "decrypted bytes differ");

  // The rival's own bytes: key schedule kept, only the IV set anew, nothing else authenticated.
  const EVP_CIPHER* algorithm = gcm ? EVP_aes_128_gcm() : EVP_aes_128_ctr();
  const std::shared_ptr<EVP_CIPHER_CTX> context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const std::vector<uint8_t> iv(16);
  const auto theirs = std::make_shared<std::vector<uint8_t>>(chunk_bytes);
  const auto tag = std::make_shared<std::vector<uint8_t>>(16);
  int written = 0, rest = 0;
  EVP_EncryptInit_ex(context.get(), algorithm, nullptr, key_bytes.data(), iv.data());
  EVP_EncryptUpdate(context.get(), theirs->data(), &written, plain.data(),
                    static_cast<int>(chunk_bytes));
  EVP_EncryptFinal_ex(context.get(), theirs->data() + written, &rest);
  if (gcm) EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag->data());
  EVP_DecryptInit_ex(context.get(), algorithm, nullptr, key_bytes.data(), iv.data());
  const auto rival = [=] {
    int length = 0, last = 0;
    EVP_DecryptInit_ex(context.get(), nullptr, nullptr, nullptr, iv.data());
    if (gcm) EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, 16, tag->data());
    EVP_DecryptUpdate(context.get(), out->data(), &length, theirs->data(),
                      static_cast<int>(chunk_bytes));
    return EVP_DecryptFinal_ex(context.get(), out->data() + length, &last) == 1;
  };
  HR_CHECK(rival() && *out == plain, "the rival's decrypted bytes differ");
  const auto repeat = [=](const auto& one) {
    return [=] {
      for (size_t done = 0; done < kSection; done += chunk_bytes) benchmark::DoNotOptimize(one());
    };
  };
  return {repeat([=] { return ours->Decrypt({}, *stored, out->data()); }), repeat(rival)};
}

// ---- Rows 4 and 5: block codecs.

struct Section {
  std::vector<uint8_t> plain, stored;
  std::vector<std::span<const uint8_t>> blocks;  // compressed, within `stored`
  dwrf::ChunkContext context;
};

constexpr size_t kBlock = 256 << 10;

size_t Compress(dwrf::CompressionKind kind, std::span<const uint8_t> block,
                std::vector<uint8_t>* out) {
  if (kind == dwrf::CompressionKind::kZstd) {
    out->resize(ZSTD_compressBound(block.size()));
    return ZSTD_compress(out->data(), out->size(), block.data(), block.size(), 1);
  }
  z_stream stream = {};
  HR_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflate");
  out->resize(deflateBound(&stream, block.size()));
  stream.next_in = const_cast<uint8_t*>(block.data());
  stream.avail_in = static_cast<uInt>(block.size());
  stream.next_out = out->data();
  stream.avail_out = static_cast<uInt>(out->size());
  HR_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
  const size_t size = stream.total_out;
  deflateEnd(&stream);
  return size;
}

std::shared_ptr<Section> MakeSection(dwrf::CompressionKind kind) {
  auto section = std::make_shared<Section>();
  const Buffer ids = RleOfLiterals(false);
  section->plain.assign(ids.data(), ids.data() + ids.size());
  section->context.compression = kind;
  section->context.block_size = kBlock;
  section->context.where = "kernel_report";
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t first = 0; first < section->plain.size(); first += kBlock) {
    const auto block =
        std::span(section->plain).subspan(first, std::min(kBlock, section->plain.size() - first));
    std::vector<uint8_t> out;
    const size_t size = Compress(kind, block, &out);
    const uint32_t header = static_cast<uint32_t>(size) << 1;
    for (int i = 0; i < 3; ++i) section->stored.push_back(static_cast<uint8_t>(header >> (8 * i)));
    places.emplace_back(section->stored.size(), size);
    section->stored.insert(section->stored.end(), out.begin(),
                           out.begin() + static_cast<ptrdiff_t>(size));
  }
  for (const auto& [first, size] : places)
    section->blocks.push_back(std::span(section->stored).subspan(first, size));
  return section;
}

Body OurUnframe(const std::shared_ptr<Section>& section) {
  const auto out = std::make_shared<Buffer>();
  dwrf::Unframe(section->stored, section->context, out.get());
  HR_CHECK(out->size() == section->plain.size() &&
               std::memcmp(out->data(), section->plain.data(), out->size()) == 0,
           "unframed bytes differ");
  return [=] { dwrf::Unframe(section->stored, section->context, out.get()); };
}

Bodies Zstd() {
  const auto section = MakeSection(dwrf::CompressionKind::kZstd);
  const auto out = std::make_shared<std::vector<uint8_t>>(section->plain.size());
  const std::shared_ptr<ZSTD_DCtx> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  return {OurUnframe(section), [=] {
            size_t place = 0;
            for (const auto block : section->blocks)
              place += ZSTD_decompressDCtx(context.get(), out->data() + place, out->size() - place,
                                           block.data(), block.size());
          }};
}

Bodies Zlib() {
  const auto section = MakeSection(dwrf::CompressionKind::kZlib);
  const auto out = std::make_shared<std::vector<uint8_t>>(section->plain.size());
  return {OurUnframe(section), [=] {
            size_t place = 0;
            for (const auto block : section->blocks) {
              z_stream stream = {};
              inflateInit2(&stream, -15);
              stream.next_in = const_cast<uint8_t*>(block.data());
              stream.avail_in = static_cast<uInt>(block.size());
              stream.next_out = out->data() + place;
              stream.avail_out = static_cast<uInt>(out->size() - place);
              inflate(&stream, Z_FINISH);
              place += stream.total_out;
              inflateEnd(&stream);
            }
          }};
}

// ---- Rows 6 to 8: decoding.

// The loop that scalar readers unroll by hand: one comparison per byte, no bounds within.
inline const uint8_t* UnrolledVarint(const uint8_t* p, uint64_t* value) {
  uint64_t x = *p & 127;
#pragma GCC unroll 10
  for (int i = 1; i < 10; ++i) {
    if ((p[i - 1] & 128) == 0) {
      *value = x;
      return p + i;
    }
    x |= static_cast<uint64_t>(p[i] & 127) << (7 * i);
  }
  *value = x;
  return p + 10;
}

void UnrolledRle(const uint8_t* p, size_t count, int64_t* out) {
  for (size_t done = 0; done < count;) {
    const auto control = static_cast<int8_t>(*p++);
    HR_CHECK(control < 0, "the data has literals only");
    for (int i = 0; i < -control; ++i) {
      uint64_t value;
      p = UnrolledVarint(p, &value);
      out[done++] = static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
    }
  }
}

Bodies MixedIds(bool against_memcpy) {
  const auto in = std::make_shared<Buffer>(RleOfLiterals(false));
  const auto out = std::make_shared<std::vector<int64_t>>(kValues + dwrf::kDecodeSlack);
  const Body ours = [=] {
    dwrf::DecodeRle(in->data(), in->data() + in->size(), kValues, {true, 0}, out->data());
  };
  if (against_memcpy) return {ours, Memcpy(kValues * sizeof(int64_t))};
  const auto theirs = std::make_shared<std::vector<int64_t>>(kValues);
  const Body rival = [=] { UnrolledRle(in->data(), kValues, theirs->data()); };
  ours(), rival();
  HR_CHECK(std::equal(theirs->begin(), theirs->end(), out->begin()), "decoded ids differ");
  return {ours, rival};
}

Bodies Lengths() {
  const auto in = std::make_shared<Buffer>(RleOfLiterals(true));
  const auto out = std::make_shared<std::vector<uint32_t>>(kValues + dwrf::kDecodeSlack);
  const auto decode = [=](InstructionSet set) {
    uint64_t total = 0;
    dwrf::DecodeLengths(in->data(), in->data() + in->size(), kValues, {}, out->data(), &total, set);
    benchmark::DoNotOptimize(total);
  };
  return {[=] { decode(BestInstructionSet()); }, [=] { decode(InstructionSet::kScalar); }};
}

Bodies Expand() {
  std::mt19937_64 random(3);
  const auto present = std::make_shared<std::vector<uint64_t>>(2 * kValues / 64);
  for (size_t row = 0; row < 2 * kValues; ++row)
    (*present)[row / 64] |= uint64_t{random() % 100 < 45} << (row % 64);
  const auto packed = std::make_shared<Buffer>(2 * kValues * sizeof(float));
  const auto out = std::make_shared<std::vector<float>>(2 * kValues);
  return {[=] {
            dwrf::ExpandFloats(packed->data(), present->data(), out->size(), out->data(),
                               BestInstructionSet());
          },
          Memcpy(out->size() * sizeof(float))};
}

// ---- Rows 11 and 12: tensors.

Bodies Assemble() {
  const auto columns = std::make_shared<std::vector<SparseColumn>>();
  for (uint64_t i = 0; i < 20; ++i) columns->push_back(RandomLists(512, 1 << 27, i));
  const auto pointers = std::make_shared<std::vector<const SparseColumn*>>();
  size_t ids = 0;
  for (const SparseColumn& column : *columns) {
    pointers->push_back(&column);
    ids += column.values.size();
  }
  return {[=, keep = columns] {
            const KeyedJaggedTensor tensor = AssembleKjt(*pointers, 512, false);
            benchmark::DoNotOptimize(tensor.values.data());
          },
          Memcpy(ids * sizeof(int64_t))};
}

Bodies Transpose() {
  constexpr size_t kColumns = 1200, kTall = 512;
  const auto from = std::make_shared<std::vector<float>>(RandomValues(kColumns * kTall, 1));
  const auto ours = std::make_shared<std::vector<float>>(kColumns * kTall);
  const auto theirs = std::make_shared<std::vector<float>>(kColumns * kTall);
  const auto columns = std::make_shared<std::vector<const float*>>();
  for (size_t i = 0; i < kColumns; ++i) columns->push_back(from->data() + i * kTall);
  const Bodies bodies = {[=] { TransposeColumns(*columns, kTall, ours->data()); },
                         [=] {
                           for (size_t row = 0; row < kTall; ++row)
                             for (size_t i = 0; i < kColumns; ++i)
                               (*theirs)[row * kColumns + i] = (*from)[i * kTall + row];
                         }};
  bodies.ours(), bodies.rival();
  HR_CHECK(*ours == *theirs, "transposed values differ");
  return bodies;
}

// ---- Rows 13 to 18: transforms.

Body IdBody(const char* op, const ParamMap& params, const std::vector<int64_t>& ids,
            InstructionSet set, std::shared_ptr<std::vector<int64_t>>* out = nullptr) {
  const std::shared_ptr<Transform> transform = MakeTransform(Params(op, params));
  const auto values = std::make_shared<std::vector<int64_t>>(ids);
  if (out != nullptr) *out = values;
  const auto* kernel = &dynamic_cast<const IdTransform&>(*transform);
  // In place again and again: a hash takes as long over its own results.
  return [=, keep = transform] { kernel->Apply(*values, set); };
}

Bodies SigridHash() {
  const ParamMap params = {{"salt", 7}, {"max", 10000019}};
  const std::vector<int64_t> ids = RandomIds(kValues, ~uint64_t{0}, 2);
  return {IdBody("sigrid_hash", params, ids, BestInstructionSet()),
          IdBody("sigrid_hash", params, ids, InstructionSet::kScalar)};
}

Body ListBody(const char* op, const ParamMap& params, TransformInputs in,
              std::shared_ptr<void> keep, std::vector<int64_t>* first = nullptr) {
  const std::shared_ptr<Transform> transform = MakeTransform(Params(op, params));
  const auto* kernel = &dynamic_cast<const ListTransform&>(*transform);
  if (first != nullptr) {
    SparseColumn out;
    kernel->Apply(in, &out, BestInstructionSet());
    first->assign(out.values.begin(), out.values.end());
  }
  return [=, keep_data = std::move(keep), keep_transform = transform] {
    SparseColumn out;
    kernel->Apply(in, &out, BestInstructionSet());
    benchmark::DoNotOptimize(out.values.data());
  };
}

TransformInputs Inputs(std::vector<const SparseColumn*> sparse,
                       std::vector<const DenseColumn*> dense, uint64_t rows) {
  TransformInputs in;
  in.rows = rows;
  in.sparse = std::move(sparse);
  in.dense = std::move(dense);
  return in;
}

Bodies Bucketize(size_t count) {
  const auto column = std::make_shared<DenseColumn>();
  column->values = RandomValues(kValues, 3);
  column->present = AllPresent(kValues);
  const auto borders = std::make_shared<std::vector<float>>();
  std::vector<double> reals;
  for (size_t i = 0; i < count; ++i) {
    borders->push_back(-3 + 6.0f * static_cast<float>(i) / static_cast<float>(count));
    reals.push_back(borders->back());
  }
  const auto theirs = std::make_shared<std::vector<int64_t>>(kValues);
  const Body rival = [=] {
    for (size_t i = 0; i < kValues; ++i)
      (*theirs)[i] =
          std::lower_bound(borders->begin(), borders->end(), column->values[i]) - borders->begin();
  };
  std::vector<int64_t> first;
  const Body ours = ListBody("bucketize", {{"borders", reals}}, Inputs({}, {column.get()}, kValues),
                             column, &first);
  rival();
  HR_CHECK(first == *theirs, "buckets differ");
  return {ours, rival};
}

Bodies DenseKernel(const char* op, const ParamMap& params, float (*rival)(float)) {
  const std::shared_ptr<Transform> transform = MakeTransform(Params(op, params));
  const auto* kernel = &dynamic_cast<const DenseTransform&>(*transform);
  const size_t count = rival == nullptr ? 2 * kValues : kValues;  // 2 MiB beside memcpy
  const auto input = std::make_shared<std::vector<float>>(RandomValues(count, 1));
  const auto values = std::make_shared<std::vector<float>>(*input);
  if (rival == nullptr)
    return {[=, keep = transform] { kernel->Apply(*values, BestInstructionSet()); },
            Memcpy(count * sizeof(float))};
  // Results would leave the function's domain: fresh values each time.
  return {[=, keep = transform] {
            std::memcpy(values->data(), input->data(), count * sizeof(float));
            kernel->Apply(*values, BestInstructionSet());
          },
          [=] {
            for (size_t i = 0; i < count; ++i) (*values)[i] = rival((*input)[i]);
          }};
}

float LogitLibm(float x) {
  const float p = std::min(std::max(x, 1e-6f), 1 - 1e-6f);
  return std::log(p / (1 - p));
}

float BoxCoxLibm(float x) { return (std::pow(std::max(x + 4.0f, 1e-6f), 0.3f) - 1) / 0.3f; }

// The measure of row 17: limiting as many ids as the kernel makes, with the same instructions.
#if defined(HR_X86)
HR_AVX512 void ClampIdsAvx512(const int64_t* from, size_t count, int64_t* to) {
  const __m512i low = _mm512_setzero_si512(), high = _mm512_set1_epi64(1'000'000);
  for (size_t i = 0; i < count; i += 8) {
    const __mmask8 lanes = FirstLanes8(count - i);
    const __m512i x = _mm512_maskz_loadu_epi64(lanes, from + i);
    _mm512_mask_storeu_epi64(to + i, lanes, _mm512_min_epi64(_mm512_max_epi64(x, low), high));
  }
}
#endif

Body ClampIds(size_t count) {
  const auto from = std::make_shared<std::vector<int64_t>>(RandomIds(count, 1 << 27, 11));
  const auto to = std::make_shared<std::vector<int64_t>>(count);
  return [=] {
#if defined(HR_X86)
    if (BestInstructionSet() == InstructionSet::kAvx512)
      return ClampIdsAvx512(from->data(), count, to->data());
#endif
    for (size_t i = 0; i < count; ++i)
      (*to)[i] = std::min<int64_t>(std::max<int64_t>((*from)[i], 0), 1'000'000);
  };
}

std::shared_ptr<SparseColumn> Lists(uint64_t rows, uint64_t below, uint64_t seed) {
  return std::make_shared<SparseColumn>(RandomLists(rows, below, seed));
}

Bodies FirstX() {
  const auto lists = Lists(kRows, 1 << 27, 4);
  return {ListBody("first_x", {{"count", 10}}, Inputs({lists.get()}, {}, kRows), lists),
          Memcpy(lists->values.size() * sizeof(int64_t))};
}

Bodies Onehot() {
  constexpr size_t kTall = 4096;
  const auto column = std::make_shared<DenseColumn>();
  for (size_t i = 0; i < kTall; ++i) column->values.push_back(static_cast<float>(i * 7 % 64));
  column->present = AllPresent(kTall);
  return {ListBody("onehot", {{"size", 64}}, Inputs({}, {column.get()}, kTall), column),
          Memcpy(kTall * 64 * sizeof(int64_t))};
}

Bodies NGram() {
  const auto lists = Lists(kRows, 1 << 27, 5);
  return {ListBody("ngram", {{"n", 2}}, Inputs({lists.get()}, {}, kRows), lists),
          ClampIds(lists->values.size())};
}

Bodies Cartesian() {
  constexpr uint64_t kPairRows = kRows / 4;
  const auto a = Lists(kPairRows, 1 << 27, 6), b = std::make_shared<SparseColumn>();
  b->present = AllPresent(kPairRows);
  for (uint64_t row = 0; row <= kPairRows; ++row)
    b->offsets.push_back(static_cast<uint32_t>(4 * row));
  b->values = RandomIds(4 * kPairRows, 1 << 20, 7);
  const auto both = std::make_shared<std::pair<decltype(a), decltype(a)>>(a, b);
  return {ListBody("cartesian", {}, Inputs({b.get(), a.get()}, {}, kPairRows), both),
          ClampIds(4 * a->values.size())};
}

Bodies Intersection() {
  const auto a = Lists(kRows, 200, 8), b = Lists(kRows, 200, 9);
  const auto both = std::make_shared<std::pair<decltype(a), decltype(a)>>(a, b);
  const auto theirs = std::make_shared<std::vector<int64_t>>();
  const Body rival = [=] {
    std::unordered_set<int64_t> ids;
    theirs->clear();
    for (uint64_t row = 0; row < kRows; ++row) {
      ids.clear();
      for (const int64_t id : Ids(*b, row)) ids.insert(id);
      for (const int64_t id : Ids(*a, row))
        if (ids.erase(id) != 0) theirs->push_back(id);
    }
  };
  std::vector<int64_t> first;
  const Body ours = ListBody("id_list_transform", {{"mode", "intersection"}},
                             Inputs({a.get(), b.get()}, {}, kRows), both, &first);
  rival();
  HR_CHECK(first == *theirs, "intersections differ");
  return {ours, rival};
}

Bodies SortByScore() {
  const auto lists = Lists(kRows, 1 << 27, 12);
  lists->weighted = true;
  lists->weights = RandomValues(lists->values.size(), 13);
  const auto rival = [=] {
    std::vector<std::pair<float, int64_t>> pairs;
    std::vector<int64_t> out(lists->values.size());
    for (uint64_t row = 0; row < kRows; ++row) {
      pairs.clear();
      for (uint32_t i = lists->offsets[row]; i < lists->offsets[row + 1]; ++i)
        pairs.emplace_back(lists->weights[i], lists->values[i]);
      std::stable_sort(pairs.begin(), pairs.end(),
                       [](const auto& a, const auto& b) { return a.first > b.first; });
      for (size_t i = 0; i < pairs.size(); ++i) out[lists->offsets[row] + i] = pairs[i].second;
    }
    benchmark::DoNotOptimize(out.data());
  };
  return {ListBody("sort_by_score", {}, Inputs({lists.get()}, {}, kRows), lists), rival};
}

Bodies MapId(uint64_t count) {
  std::vector<int64_t> keys = RandomIds(count, ~uint64_t{0}, 10);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const auto ids = std::make_shared<std::vector<int64_t>>(RandomIds(kValues, keys.size(), 2));
  for (int64_t& id : *ids) id = keys[static_cast<size_t>(id)];
  const auto table = std::make_shared<std::unordered_map<int64_t, int64_t>>();
  for (const int64_t key : keys) (*table)[key] = key;
  const auto out = std::make_shared<std::vector<int64_t>>(kValues);
  return {IdBody("map_id", {{"from", keys}, {"to", keys}}, *ids, BestInstructionSet()), [=] {
            for (size_t i = 0; i < kValues; ++i) {
              const auto it = table->find((*ids)[i]);
              (*out)[i] = it == table->end() ? 0 : it->second;
            }
          }};
}

void AddRows() {
  for (const size_t kib : {1, 16, 256}) {
    Add("3", fmt::format("AES-128-GCM, {} KiB chunks", kib), "EVP, key schedule kept", 0.9, 2 << 20,
        [=] { return Decrypt(dwrf::Cipher::kAes128Gcm, kib << 10); });
    Add("3", fmt::format("AES-128-CTR, {} KiB chunks", kib), "EVP, key schedule kept", 0.9, 2 << 20,
        [=] { return Decrypt(dwrf::Cipher::kAes128Ctr, kib << 10); });
  }
  Add("4", "zstd, 256 KiB blocks", "ZSTD_decompressDCtx", 0.97, kValues, Zstd);
  Add("5", "zlib, 256 KiB blocks", "zlib inflate", 1.6, kValues, Zlib);
  Add("6", "RLEv1 signed, mixed ids", "unrolled scalar loop", 4, kValues,
      [] { return MixedIds(false); });
  Add("6", "RLEv1 signed, mixed ids", "memcpy of the ids", 0.15, kValues,
      [] { return MixedIds(true); });
  Add("7", "RLEv1 lengths", "scalar twin", 2, kValues, Lengths);
  Add("8", "presence and dense expand", "memcpy of the floats", 0.7, 2 * kValues, Expand);
  Add("11", "jagged assemble, 20 x 512 rows", "memcpy of the ids", 0.5, kValues, Assemble);
  Add("12", "dense transpose, 1200 x 512", "naive loop", 6, 1200 * 512, Transpose);
  Add("13", "SigridHash", "TorchArrow's scalar formula", 4, kValues, SigridHash);
  for (const size_t borders : {8, 64, 256, 1024})
    Add("14", fmt::format("Bucketize, {} borders", borders), "std::lower_bound",
        borders <= 64 ? 20 : 8, kValues, [=] { return Bucketize(borders); });
  Add("15", "Clamp", "memcpy", 0.8, 2 * kValues, [] {
    return DenseKernel("clamp", {{"low", -1}, {"high", 1}}, nullptr);
  });
  Add("15", "FirstX, 10 of 26", "memcpy of its input", 0.8, kValues, FirstX);
  Add("15", "Onehot, 64 classes", "memcpy of its output", 0.8, 4096 * 64, Onehot);
  Add("16", "Logit", "libm", 8, kValues, [] { return DenseKernel("logit", {}, LogitLibm); });
  Add("16", "BoxCox", "libm", 5, kValues, [] {
    return DenseKernel("box_cox", {{"lambda", 0.3}, {"shift", 4.0}}, BoxCoxLibm);
  });
  Add("17", "NGram, n = 2", "clamp of as many ids", 0.3, kValues, NGram);
  Add("17", "Cartesian, 26 x 4", "clamp of as many ids", 0.3, kValues, Cartesian);
  Add("17", "Intersection, 26 and 26", "std::unordered_set", 4, 2 * kValues, Intersection);
  for (const uint64_t keys : {4096, 262144, 4194304})
    Add("18", fmt::format("MapId, {} keys", keys), "std::unordered_map", keys > 262144 ? 4 : 1.6,
        kValues, [=] { return MapId(keys); });
  Add("-", "SortByScore, 26 ids", "std::stable_sort of pairs", 1, kValues, SortByScore);
}

}  // namespace
}  // namespace headrace::reader

int main(int argc, char** argv) {
  char repetitions[] = "--benchmark_repetitions=9";
  char order[] = "--benchmark_enable_random_interleaving=true";
  char time[] = "--benchmark_min_time=0.05";
  std::vector<char*> arguments = {argv[0], repetitions, order, time};
  for (int i = 1; i < argc; ++i) arguments.push_back(argv[i]);  // the last word counts
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  headrace::reader::AddRows();
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  headrace::reader::Report report;
  benchmark::RunSpecifiedBenchmarks(&report);
  benchmark::Shutdown();
  return 0;
}
