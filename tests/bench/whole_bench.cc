// Rows per second of the whole reader beside the whole prototype it started from, on the same
// distributions, with the same cipher and codec: from stored bytes to a batch in a buffer to send.
//
//   ours       the real pipeline (reader/pipeline) on a table of its own writing, page cache
//              warm: one stage of fetch, decrypt, decompress, decode, extract, transform, batch,
//              tensorize, and a consumer that copies the tensors into a buffer
//   prototype  prototype_pipe.h: copy from memory, AES-128-CTR, zstd, decode, SigridHash of all
//              ids, clamp and logit of all dense values, transpose, the same copy; stripe at a
//              time
//
//   whole_bench [--shapes rm1,rm2,rm3] [--repeats N] [--batch-rows N] [--stripes N]
//               [--stripe-rows N] [--clock wall|cpu] [--set KEY=VALUE]...
//
// --clock cpu: rates are rows per CPU second of the threads, times their number, for a machine that
// others use too: what two cores cost each other then shows, what waits cost does not.
//
// For each shape, in rounds whose order is drawn anew: both on one core, with compressed streams
// kept from a ratio of 1 (as the prototype has it) and of 1.15 on; both on two cores (the prototype
// as two pipelines of their own, which share nothing but the machine: the most that can be had).
// Ratios are of neighbours in a round: median, 10th and 90th percentile. Ours does more than the
// prototype: chunks with headers, checks of every number, exact logarithms, offsets and row numbers
// of batches.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "probes/account/account_segment.h"
#include "reader/dwrf/crypto/key_ring.h"
#include "reader/pipeline/pipeline.h"
#include "tests/bench/paired.h"
#include "tests/bench/prototype_pipe.h"
#include "tests/bench/prototype_table.h"

namespace headrace::reader {
namespace {

using bench::Quantile;

namespace fs = std::filesystem;

constexpr const char* kKeys = "bench 000102030405060708090a0b0c0d0e0f\n";
constexpr std::array<double, 2> kMinRatios{1.0, 1.15};

struct NamedShape {
  std::string name;
  prototype::Shape shape;
};

// As performance goals name them: projected features, mean length, coverage (ISCA'22).
NamedShape ShapeOf(const std::string& name) {
  prototype::Shape shape;
  shape.whole = true;
  if (name == "rm1") {
    shape.sparse = 298, shape.dense = 1221, shape.mean_length = 26, shape.coverage = 0.45;
  } else if (name == "rm2") {
    shape.sparse = 306, shape.dense = 1113, shape.mean_length = 25.6, shape.coverage = 0.41;
  } else if (name == "rm3") {
    shape.sparse = 42, shape.dense = 504, shape.mean_length = 19.6, shape.coverage = 0.29;
  } else {
    throw Error(ExitCode::kUsage, "no shape " + name, {}, "use rm1, rm2 or rm3");
  }
  return {name, shape};
}

void Pin(const std::set<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw Error(ExitCode::kFailure, "cannot choose the CPU to run on");
}

std::vector<int> Cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

// Copies each batch into one buffer, as a sender would.
class CopyingConsumer final : public Consumer {
 public:
  explicit CopyingConsumer(std::vector<uint8_t>* buffer) : buffer_(buffer) {}
  void Step(Element&& batch, StopSignal* /*stop*/) override {
    const auto& tensors = batch.payload.As<TensorBatch>();
    const KeyedJaggedTensor& sparse = tensors.sparse;
    const size_t bytes =
        8 * sparse.values.size() + 4 * sparse.lengths.size() + 4 * tensors.dense.size();
    if (buffer_->size() < bytes) buffer_->resize(bytes + bytes / 4);
    uint8_t* to = buffer_->data();
    const auto copy = [&to](const void* from, size_t size) {
      std::memcpy(to, from, size);
      to += size;
    };
    copy(sparse.values.data(), 8 * sparse.values.size());
    copy(sparse.lengths.data(), 4 * sparse.lengths.size());
    copy(tensors.dense.data(), 4 * tensors.dense.size());
    asm volatile("" : : "r"(buffer_->data()) : "memory");
  }

 private:
  std::vector<uint8_t>* buffer_;
};

struct Options {
  std::vector<std::string> shapes{"rm1", "rm2", "rm3"};
  int repeats = 9;
  uint64_t batch_rows = 512, stripes = 4, stripe_rows = 2048;
  bool cpu_clock = false;
  Settings settings;
};

std::string PipelineText(const NamedShape& shape, const Options& options, const fs::path& table) {
  std::string text = fmt::format(
      "[pipeline]\nname = \"{}\"\nbatch_rows = {}\n[source]\ntable = \"{}\"\nkeys = "
      "\"env:HEADRACE_BENCH_KEYS\"\n[projection.maps]\n",
      shape.name, options.batch_rows, table.string());
  std::string dense, sparse, transforms;
  for (int f = 0; f < shape.shape.sparse + shape.shape.dense; ++f) {
    const bool list = f < shape.shape.sparse;
    (list ? sparse : dense) += fmt::format("{}, ", f);
    const std::string name = fmt::format("{}:{}", list ? "sparse" : "dense", f);
    transforms += fmt::format("[[transform]]\noutput = \"{0}\"\ninputs = [\"{0}\"]\n{1}\n", name,
                              list ? fmt::format("op = \"sigrid_hash\"\nsalt = {}\nmax = {}",
                                                 prototype::kHashSalt, prototype::kHashMax)
                                   : "op = \"logit\"\nepsilon = 1e-6");
  }
  text += "dense = [" + dense + "]\nsparse = [" + sparse + "]\n";
  text +=
      "[[stage]]\nname = \"all\"\noperators = [\"fetch\", \"decrypt\", \"decompress\", \"decode\", "
      "\"extract\", \"transform\", \"batch\", \"tensorize\"]\nparallelism = 1\nqueue = 2\n";
  return text + transforms + "[consumer]\nstep = \"0\"\n";
}

using Steps = std::map<std::string, double>;  // operator -> seconds

Steps BusyTimes() {
  Steps busy;
  auto segment = account::AccountSegment::Attach(getpid());
  if (!segment) return busy;
  for (const auto& op : segment->Read(true, {}).operators)
    busy[op.kind == "transform" ? "transform"
         : op.kind == "io"      ? "fetch"
                                : op.name] += static_cast<double>(op.busy_ns) * 1e-9;
  return busy;
}

// One side of the comparison in one round.
struct Measured {
  double rows_per_second = 0;
  Steps steps;  // seconds a row
};

Measured RunOurs(const PipelineSpec& of, uint32_t threads, uint64_t epochs, bool cpu_clock,
                 std::vector<uint8_t>* buffer) {
  PipelineSpec spec = of;
  spec.epochs = epochs;
  spec.stages[0].parallelism = threads;
  Pipeline pipeline(std::move(spec), std::make_unique<CopyingConsumer>(buffer));
  const Steps before = BusyTimes();
  const double begin = prototype::Now();
  const int64_t cpu_begin = ProcessCpuNs();
  pipeline.Run();
  const double seconds = cpu_clock
                             ? static_cast<double>(ProcessCpuNs() - cpu_begin) * 1e-9 / threads
                             : prototype::Now() - begin;
  Measured measured;
  const auto rows = static_cast<double>(pipeline.progress().rows);
  measured.rows_per_second = rows / seconds;
  for (const auto& [name, busy] : BusyTimes()) {
    const auto was = before.find(name);
    measured.steps[name] = (busy - (was == before.end() ? 0 : was->second)) / rows;
  }
  return measured;
}

Measured RunPrototype(prototype::Pipe* pipe, uint64_t passes, bool cpu_clock) {
  prototype::Times times;
  const double begin = prototype::Now();
  const int64_t cpu_begin = ThreadCpuNs();
  for (uint64_t pass = 0; pass < passes; ++pass) {
    if (!pipe->Run(&times)) throw Error(ExitCode::kFailure, "the prototype decoded wrong ids");
  }
  // Its steps are timed by the wall's clock; the thread ran in so much of that.
  const double share =
      cpu_clock ? static_cast<double>(ThreadCpuNs() - cpu_begin) * 1e-9 / (prototype::Now() - begin)
                : 1;
  const auto rows = static_cast<double>(pipe->shape().rows * passes);
  Measured measured;
  measured.rows_per_second = rows / (times.total() * share);
  measured.steps = {{"read", times.read},           {"decrypt", times.aes}, {"zstd", times.zstd},
                    {"decode", times.decode},       {"hash", times.hash},   {"dense", times.dense},
                    {"transpose", times.transpose}, {"send", times.send}};
  for (auto& [name, seconds] : measured.steps) seconds /= rows;
  return measured;
}

// Two pipelines at once, each on its CPU: rows of both over the time of the slower.
Measured RunTwoPrototypes(const std::array<prototype::Pipe*, 2>& pipes, uint64_t passes,
                          const std::vector<int>& cpus, bool cpu_clock) {
  std::array<double, 2> rates{};
  std::array<std::thread, 2> threads;
  for (size_t i = 0; i < 2; ++i) {
    threads[i] = std::thread([&, i] {
      Pin({cpus[i]});
      rates[i] = RunPrototype(pipes[i], passes, cpu_clock).rows_per_second;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {rates[0] + rates[1], {}};
}

std::string Spread(const std::vector<double>& values) {
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", Quantile(values, 0.5), Quantile(values, 0.1),
                     Quantile(values, 0.9));
}

// What is measured in every round.
enum Side { kOurs, kTheirs, kOursRatio, kTheirsRatio, kOursTwo, kTheirsTwo, kSides };

class Comparison {
 public:
  void Add(const std::array<Measured, kSides>& round) { rounds_.push_back(round); }
  std::vector<double> Ratios(Side above, Side below) const {
    std::vector<double> ratios;
    for (const auto& round : rounds_)
      if (round[below].rows_per_second > 0)
        ratios.push_back(round[above].rows_per_second / round[below].rows_per_second);
    return ratios;
  }
  double Rate(Side side) const {
    std::vector<double> rates;
    for (const auto& round : rounds_) rates.push_back(round[side].rows_per_second);
    return Quantile(rates, 0.5);
  }
  std::string StepText(Side side) const {
    std::map<std::string, std::vector<double>> steps;
    for (const auto& round : rounds_)
      for (const auto& [name, seconds] : round[side].steps) steps[name].push_back(seconds * 1e9);
    std::vector<std::pair<double, std::string>> sorted;
    for (const auto& [name, values] : steps) sorted.emplace_back(Quantile(values, 0.5), name);
    std::sort(sorted.rbegin(), sorted.rend());
    std::string text;
    for (const auto& [ns, name] : sorted)
      if (ns >= 0.5) text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", name, ns);
    return text;
  }
  // ns a row that `after` takes less than `before`, in all and in its decompression; medians of the
  // rounds' differences.
  struct Saved {
    double all, unzip, before;
  };
  Saved SavedNs(Side before, Side after, const std::string& unzip) const {
    std::vector<double> all, step, whole;
    for (const auto& round : rounds_) {
      whole.push_back(1e9 / round[before].rows_per_second);
      all.push_back(whole.back() - 1e9 / round[after].rows_per_second);
      step.push_back(1e9 * (round[before].steps.at(unzip) - round[after].steps.at(unzip)));
    }
    return {Quantile(all, 0.5), Quantile(step, 0.5), Quantile(whole, 0.5)};
  }

 private:
  std::vector<std::array<Measured, kSides>> rounds_;
};

void Compare(const NamedShape& named, const Options& options, const fs::path& folder,
             const std::vector<int>& cpus) {
  const prototype::Shape& shape = named.shape;
  std::vector<fs::path> tables, files;
  std::vector<dwrf::WriterOptions> writers;
  for (const double min_ratio : kMinRatios) {
    tables.push_back(folder / fmt::format("{}-{}", named.name, min_ratio));
    fs::create_directory(tables.back());
    files.push_back(tables.back() / "part-00000.dwrf");
    dwrf::WriterOptions writer;
    writer.level = shape.level;
    writer.min_ratio = min_ratio;
    writer.encryption = {dwrf::EncryptionGroupSpec::Parse("all=dense,sparse:bench:aes128-ctr")};
    writer.keys = dwrf::KeyRing::Parse(kKeys, "bench");
    writers.push_back(std::move(writer));
  }
  dwrf::bench::WritePrototypeTable(shape, options.stripes, files, std::move(writers));
  std::vector<PipelineSpec> specs;
  for (const fs::path& table : tables)
    specs.push_back(ParsePipeline(PipelineText(named, options, table),
                                  (table / "pipeline.toml").string(), table.string(),
                                  options.settings));
  std::vector<std::unique_ptr<prototype::Pipe>> pipes;
  for (const double min_ratio : {kMinRatios[0], kMinRatios[1], kMinRatios[0]}) {
    prototype::Shape one = shape;
    one.min_ratio = min_ratio;
    pipes.push_back(std::make_unique<prototype::Pipe>(one));
  }
  const bool two = cpus.size() > 1;
  const int cpu = cpus.back();
  std::vector<uint8_t> buffer;
  // Warms up, and says how long a run must be.
  Pin({cpu});
  RunPrototype(pipes[0].get(), 1, false);
  const double rate = RunOurs(specs[0], 1, 1, false, &buffer).rows_per_second;
  const auto epochs = static_cast<uint64_t>(
      std::max(2.0, 1.2 * rate / static_cast<double>(shape.rows * options.stripes) + 0.5));
  const uint64_t passes = epochs * options.stripes;

  Comparison comparison;
  std::mt19937 random(1);
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    // Neighbours in a round are those that are compared; which comes first is drawn.
    std::vector<std::array<Side, 2>> pairs{{kOurs, kTheirs}, {kOursRatio, kTheirsRatio}};
    if (two) pairs.push_back({kOursTwo, kTheirsTwo});
    std::shuffle(pairs.begin(), pairs.end(), random);
    std::array<Measured, kSides> round;
    for (auto& pair : pairs) {
      if (random() % 2 == 0) std::swap(pair[0], pair[1]);
      for (const Side side : pair) {
        const bool both = side == kOursTwo || side == kTheirsTwo;
        Pin(both ? std::set<int>(cpus.begin(), cpus.end()) : std::set<int>{cpu});
        switch (side) {
          case kOurs:
          case kOursRatio:
            round[side] =
                RunOurs(specs[side == kOurs ? 0 : 1], 1, epochs, options.cpu_clock, &buffer);
            break;
          case kOursTwo:
            round[side] = RunOurs(specs[0], 2, 2 * epochs, options.cpu_clock, &buffer);
            break;
          case kTheirs:
          case kTheirsRatio:
            round[side] =
                RunPrototype(pipes[side == kTheirs ? 0 : 1].get(), passes, options.cpu_clock);
            break;
          default:
            round[side] =
                RunTwoPrototypes({pipes[0].get(), pipes[2].get()}, passes, cpus, options.cpu_clock);
        }
      }
    }
    comparison.Add(round);
  }
  const auto rows = static_cast<double>(shape.rows);
  fmt::print(
      "{}: {} sparse and {} dense features, coverage {}, mean length {}, stripes of {} rows, "
      "batches "
      "of {}; zstd level {}, AES-128-CTR; {} rounds\n",
      named.name, shape.sparse, shape.dense, shape.coverage, shape.mean_length, shape.rows,
      options.batch_rows, shape.level, options.repeats);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Side ours = i == 0 ? kOurs : kOursRatio, theirs = i == 0 ? kTheirs : kTheirsRatio;
    fmt::print(
        "  minimum ratio {}: stored bytes a row {:.0f} and {:.0f}\n", kMinRatios[i],
        static_cast<double>(fs::file_size(files[i])) / rows / static_cast<double>(options.stripes),
        static_cast<double>(pipes[i]->stored_bytes()) / rows);
    fmt::print("    ours       {:8.0f} rows/s; ns a row: {}\n", comparison.Rate(ours),
               comparison.StepText(ours));
    fmt::print("    prototype  {:8.0f} rows/s; ns a row: {}\n", comparison.Rate(theirs),
               comparison.StepText(theirs));
    fmt::print("    ratio      {}\n", Spread(comparison.Ratios(ours, theirs)));
  }
  fmt::print("  gain of minimum ratio 1.15: ours {}, prototype {}\n",
             Spread(comparison.Ratios(kOursRatio, kOurs)),
             Spread(comparison.Ratios(kTheirsRatio, kTheirs)));
  // The same time saved is a smaller gain of a longer whole.
  const auto ours = comparison.SavedNs(kOurs, kOursRatio, "decompress");
  const auto theirs = comparison.SavedNs(kTheirs, kTheirsRatio, "zstd");
  fmt::print(
      "    saved, ns a row: ours {:.0f} of {:.0f}, {:.0f} of them in decompress; prototype {:.0f} "
      "of "
      "{:.0f}, {:.0f} of them in zstd\n"
      "    the most that each can gain by what it saves in zstd: ours {:.3f}, prototype {:.3f}\n",
      ours.all, ours.before, ours.unzip, theirs.all, theirs.before, theirs.unzip,
      ours.before / (ours.before - ours.unzip), theirs.before / (theirs.before - theirs.unzip));
  if (two)
    fmt::print(
        "  two cores: ours {:.0f} rows/s, {} of one; two prototypes {:.0f} rows/s, {} of one; ours "
        "to "
        "theirs {}\n",
        comparison.Rate(kOursTwo), Spread(comparison.Ratios(kOursTwo, kOurs)),
        comparison.Rate(kTheirsTwo), Spread(comparison.Ratios(kTheirsTwo, kTheirs)),
        Spread(comparison.Ratios(kOursTwo, kTheirsTwo)));
  std::fflush(stdout);
  for (const fs::path& table : tables) fs::remove_all(table);
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (++i >= argc) throw Error(ExitCode::kUsage, word + " needs a value");
    const std::string value = argv[i];
    if (word == "--repeats") {
      options.repeats = std::max(1, std::atoi(value.c_str()));
    } else if (word == "--batch-rows") {
      options.batch_rows = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word == "--stripe-rows") {
      options.stripe_rows = std::max(16ull, std::strtoull(value.c_str(), nullptr, 10) / 16 * 16);
    } else if (word == "--stripes") {
      options.stripes = std::max(1ull, std::strtoull(value.c_str(), nullptr, 10));
    } else if (word == "--clock") {
      options.cpu_clock = value == "cpu";
      if (!options.cpu_clock && value != "wall")
        throw Error(ExitCode::kUsage, "--clock is wall or cpu, not " + value);
    } else if (word == "--set") {
      options.settings.push_back(ParseSetting(value));
    } else if (word == "--shapes") {
      options.shapes.clear();
      for (size_t at = 0; at <= value.size();) {
        const size_t end = std::min(value.find(',', at), value.size());
        options.shapes.push_back(value.substr(at, end - at));
        at = end + 1;
      }
    } else {
      throw Error(ExitCode::kUsage, "unknown option " + word);
    }
  }
  return options;
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  if (BestInstructionSet() != InstructionSet::kAvx512) {
    std::fprintf(
        stderr,
        "whole_bench: skipped: the prototype needs AVX-512 VBMI2, which this machine lacks "
        "or HEADRACE_ISA forbids\n");
    return 0;
  }
  setenv("HEADRACE_BENCH_KEYS", kKeys, 1);
  const std::vector<int> cpus = Cpus();
  const fs::path folder = fs::temp_directory_path() / fmt::format("whole_bench.{}", getpid());
  fs::create_directory(folder);
  try {
    for (const std::string& name : options.shapes) {
      NamedShape shape = ShapeOf(name);
      shape.shape.rows = options.stripe_rows;
      Compare(shape, options, folder, cpus);
    }
  } catch (...) {
    fs::remove_all(folder);
    throw;
  }
  fs::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace headrace::reader

int main(int argc, char** argv) {
  return headrace::bench::Run("whole_bench", headrace::reader::Main, argc, argv);
}
