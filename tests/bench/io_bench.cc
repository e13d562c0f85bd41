// Reads through our sources beside what the machine gives (interleaved pairs, medians with the 10th
// and 90th percentile of the pairs' ratios):
//
//   past the page cache   coalesced reads by io_uring beside fio's io_uring engine with the same
//                         longest read and as many in flight; left out where there is no fio
//   in the page cache     coalesced reads by pread beside plain preads of 256 KiB, one behind the
//                         other, into memory as large as a stripe's, and into one block of 256 KiB
//                         that stays in the processor's cache
//
//   io_bench FOLDER [PAIRS] [MIB]    default 7 pairs over a file of 1024 MiB, made in FOLDER and
//                                    removed again
//
// The streams are of 1 to 64 KiB with holes of up to 8 KiB between them, in stripes of 64 MiB: with
// a gap of 128 KiB they become reads of up to the longest. Rates are of bytes read; the bytes of
// streams and holes are printed beside them.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "reader/fetch/fetch.h"
#include "reader/source/open.h"
#include "tests/bench/paired.h"

namespace headrace::reader {
namespace {

using bench::Quantile;

constexpr uint64_t kStripeBytes = 64 << 20;

// GB/s of either side.
void Compare(const std::string& name, int pairs, const std::string& rival_name,
             const std::function<double()>& ours, const std::function<double()>& rival) {
  const bench::Pairs measured = bench::MeasurePairs(pairs, ours, rival);
  std::vector<double> ratios;
  for (size_t i = 0; i < measured.ours.size(); ++i)
    ratios.push_back(measured.ours[i] / measured.rival[i]);
  fmt::print("{:36} {:6.2f} GB/s   {:34} {:6.2f} GB/s   ratio {:.2f} [{:.2f}, {:.2f}]\n", name,
             Quantile(measured.ours, 0.5), rival_name, Quantile(measured.rival, 0.5),
             Quantile(ratios, 0.5), Quantile(ratios, 0.1), Quantile(ratios, 0.9));
  std::fflush(stdout);
}

std::vector<dwrf::StripePlan> MakePlans(uint64_t bytes) {
  std::mt19937_64 random(1);
  std::vector<dwrf::StripePlan> plans;
  for (uint64_t begin = 0; begin + kStripeBytes <= bytes; begin += kStripeBytes) {
    dwrf::StripePlan& plan = plans.emplace_back();
    uint64_t at = begin;
    for (;;) {
      at += random() % 8192;
      const uint64_t length = 1024 + random() % (63 << 10);
      if (at + length > begin + kStripeBytes) break;
      plan.streams.push_back({1, 0, dwrf::StreamKind::kData, at, length, true});
      at += length;
    }
  }
  return plans;
}

struct Pass {
  double seconds = 0;
  uint64_t stream_bytes = 0, read_bytes = 0, requests = 0;
  double rate() const { return static_cast<double>(read_bytes) / seconds / 1e9; }
};

Pass FetchAll(const std::vector<dwrf::StripePlan>& plans, const Source& source,
              const FetchOptions& options) {
  Pass pass;
  const int64_t start = MonotonicNs();
  for (const dwrf::StripePlan& plan : plans) {
    const FetchedStripe fetched = Fetch(plan, source, options);
    pass.stream_bytes += fetched.wanted_bytes;
    pass.read_bytes += fetched.read_bytes;
    pass.requests += fetched.figures.requests;
  }
  pass.seconds = static_cast<double>(MonotonicNs() - start) / 1e9;
  return pass;
}

// What the plans read without alignment: streams and holes.
uint64_t BytesWithHoles(const std::vector<dwrf::StripePlan>& plans, const FetchOptions& options) {
  uint64_t bytes = 0;
  for (const dwrf::StripePlan& plan : plans) {
    std::vector<ByteRange> ranges;
    for (const dwrf::StreamInfo& stream : plan.streams)
      ranges.push_back({stream.offset, stream.length});
    bytes += PlanReads(ranges, {options.max_gap_bytes, options.max_read_bytes}).read_bytes;
  }
  return bytes;
}

// GB/s of `pread` of 256 KiB, each into the next place of `room`.
double PreadRate(const std::string& path, uint64_t bytes, Buffer* room) {
  constexpr uint64_t kBlock = 256 << 10;
  const File file(path);
  uint64_t place = 0;
  const int64_t start = MonotonicNs();
  for (uint64_t at = 0; at < bytes; at += kBlock) {
    file.ReadAt(at, {room->data() + place, kBlock});
    place = (place + kBlock) % room->size();
  }
  return static_cast<double>(bytes) / static_cast<double>(MonotonicNs() - start);
}

// GB/s by fio; nothing where it does not run, having said why.
std::optional<double> FioRate(const std::string& path, uint64_t bytes, uint64_t block,
                              uint32_t depth) {
  const std::string command = fmt::format(
      "fio --minimal --name=read --filename='{}' --readonly --rw=read --ioengine=io_uring "
      "--direct=1 --fixedbufs=1 --bs={} --iodepth={} --size={} 2>&1",
      path, block, depth, bytes);
  FILE* const pipe = popen(command.c_str(), "r");
  std::string text;
  char part[4096];
  for (size_t n; pipe != nullptr && (n = fread(part, 1, sizeof part, pipe)) > 0;)
    text.append(part, n);
  const int status = pipe != nullptr ? pclose(pipe) : -1;
  // 3;fio-3.33;read;0;ERROR;KiB read;KiB/s;...
  std::vector<std::string> fields;
  std::istringstream line(text);
  for (std::string field; fields.size() < 8 && std::getline(line, field, ';');)
    fields.push_back(field);
  if (status == 0 && fields.size() == 8 && fields[4] == "0")
    return std::strtod(fields[6].c_str(), nullptr) * 1024 / 1e9;
  fmt::print("fio does not run: {}\n", Printable(text.substr(0, text.find('\n'))));
  return std::nullopt;
}

void MakeFile(const std::string& path, uint64_t bytes) {
  std::mt19937_64 random(2);
  std::vector<uint8_t> block(4 << 20);
  for (size_t i = 0; i < block.size(); i += 8) {
    const uint64_t word = random();
    std::copy_n(reinterpret_cast<const uint8_t*>(&word), 8, block.data() + i);
  }
  AtomicFile file(path, true);
  for (uint64_t done = 0; done < bytes; done += block.size()) file.Write(block);
  file.Commit();
}

void PastThePageCache(const std::string& path, uint64_t bytes,
                      const std::vector<dwrf::StripePlan>& plans, int pairs) {
  constexpr uint64_t kMiB = 1 << 20;
  for (const auto& [longest, depth] :
       {std::pair{kMiB, 1u}, {kMiB, 4u}, {kMiB, 16u}, {kMiB / 4, 16u}}) {
    SourceOptions options;
    options.io = IoMethod::kUring;
    options.direct = true;
    options.depth = depth;
    const auto source = OpenSource(path, options);
    const FetchOptions fetch{.max_gap_bytes = 128 << 10, .max_read_bytes = longest};
    if (!FioRate(path, bytes, longest, depth)) return;
    const Pass pass = FetchAll(plans, *source, fetch);
    const uint64_t holes = BytesWithHoles(plans, fetch);
    fmt::print(
        "reads of up to {} KiB: {} KiB each; read / (streams + holes) {:.4f}, streams and "
        "holes / streams {:.3f}\n",
        longest >> 10, pass.read_bytes / pass.requests >> 10,
        static_cast<double>(pass.read_bytes) / static_cast<double>(holes),
        static_cast<double>(holes) / static_cast<double>(pass.stream_bytes));
    Compare(
        fmt::format("io_uring, direct, depth {}", depth), pairs,
        fmt::format("fio io_uring, {} KiB, depth {}", longest >> 10, depth),
        [&] { return FetchAll(plans, *source, fetch).rate(); },
        [&] { return FioRate(path, bytes, longest, depth).value_or(0); });
  }
}

void InThePageCache(const std::string& path, uint64_t bytes,
                    const std::vector<dwrf::StripePlan>& plans, int pairs) {
  Buffer stripe(kStripeBytes), block(256 << 10);
  PreadRate(path, bytes, &stripe);  // the file comes in
  for (const IoMethod method : {IoMethod::kPread, IoMethod::kUring}) {
    SourceOptions options;
    options.io = method;
    const auto source = OpenSource(path, options);
    const auto ours = [&] { return FetchAll(plans, *source, {}).rate(); };
    const char* name = method == IoMethod::kPread ? "pread" : "io_uring";
    Compare(fmt::format("{}, page cache", name), pairs, "pread 256 KiB into a stripe's memory",
            ours, [&] { return PreadRate(path, bytes, &stripe); });
    Compare(fmt::format("{}, page cache", name), pairs, "pread 256 KiB into one block", ours,
            [&] { return PreadRate(path, bytes, &block); });
  }
}

int Main(int argc, char** argv) {
  if (argc < 2) throw Error(ExitCode::kUsage, "usage: io_bench FOLDER [PAIRS] [MIB]");
  const int pairs = argc > 2 ? std::max(1, std::atoi(argv[2])) : 7;
  const uint64_t stripes =
      std::max<uint64_t>(1, (argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1024) / 64);
  const uint64_t bytes = stripes * kStripeBytes;
  const std::string path = std::string(argv[1]) + "/io_bench.data";
  struct Remove {
    const std::string& path;
    ~Remove() { unlink(path.c_str()); }
  } remove{path};
  MakeFile(path, bytes);
  const std::vector<dwrf::StripePlan> plans = MakePlans(bytes);
  InThePageCache(path, bytes, plans, pairs);
  PastThePageCache(path, bytes, plans, pairs);
  return 0;
}

}  // namespace
}  // namespace headrace::reader

int main(int argc, char** argv) {
  return headrace::bench::Run("io_bench", headrace::reader::Main, argc, argv);
}
