// What the IO probes cost the calls they watch: each probe on and off in turn, in one process whose
// thread is inside an operator; medians over the rounds.
//   io_probe_bench [ROUNDS]        (root; a file of 32 MiB is made in the working folder)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/bpf/followed.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"

namespace headrace::probes {
namespace {

constexpr int64_t kFileBytes = 32 << 20;

struct Call {
  const char* name;
  int count;
  std::function<void(int i)> run;
};

double MeasureNs(const Call& call) {
  const int64_t begin = MonotonicNs();
  for (int i = 0; i < call.count; i++) call.run(i);
  return static_cast<double>(MonotonicNs() - begin) / call.count;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Require(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::exit(1);
}

int Main(int rounds) {
  const char* path = "io_probe_bench.data";
  char* buffer = static_cast<char*>(std::aligned_alloc(4096, 65536));
  std::memset(buffer, 1, 65536);
  const int cached = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  Require(cached >= 0, path);
  for (int64_t at = 0; at < kFileBytes; at += 65536) {
    Require(pwrite(cached, buffer, 65536, at) == 65536, "pwrite");
  }
  fsync(cached);
  const int direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
  Require(direct >= 0, "O_DIRECT");
  unlink(path);
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const std::vector<Call> calls = {
      {"pread 4 KiB cached", 50000,
       [&](int i) {
         Require(pread(cached, buffer, 4096, i * 37 % 8000 * int64_t{4096}) == 4096, "pread");
       }},
      {"pread 16 KiB direct", 800,
       [&](int i) {
         Require(pread(direct, buffer, 16384, i * 37 % 2000 * int64_t{16384}) == 16384, "pread");
       }},
      {"send + recv 64 B", 20000,
       [&](int) {
         Require(send(ends[0], buffer, 64, 0) == 64 && recv(ends[1], buffer, 64, 0) == 64, "send");
       }},
      {"page fault", 20000,
       [&](int i) {
         static char* memory = nullptr;
         const size_t page = static_cast<size_t>(i) % 1000;
         if (page == 0) {
           if (memory) munmap(memory, 4096000);
           memory = static_cast<char*>(
               mmap(nullptr, 4096000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
           Require(memory != MAP_FAILED, "mmap");
           madvise(memory, 4096000, MADV_NOHUGEPAGE);
         }
         memory[page * 4096] = 1;
       }},
      {"another call (getppid)", 50000, [](int) { syscall(SYS_getppid); }}};

  hr_account_open("io_probe_bench");
  hr_enter(hr_operator("op", "bench", hr_stage("bench", 1, 0)));
  const Host host;
  Target target;
  target.root_pid = getpid();
  target.pids = {getpid()};
  target.accounts = {{getpid(), bpf::FindSegmentAddress(host, getpid())}};
  const std::vector<std::string> probes = {
      "",        "block IO",    "file reads",     "io_uring",
      "sockets", "page faults", "memory reclaim", "system calls"};
  std::vector<std::vector<std::vector<double>>> figures(
      probes.size(), std::vector<std::vector<double>>(calls.size()));
  for (const Call& call : calls) MeasureNs(call);
  for (int round = 0; round < rounds; round++) {
    for (size_t p = 0; p < probes.size(); p++) {
      std::unique_ptr<Probe> probe;
      if (!probes[p].empty()) {
        probe = Registry<ProbeInfo>::Global().Find(probes[p])->make();
        const Availability available = probe->Start(host, target);
        if (!available.usable()) {
          std::printf("%s: %s\n", probes[p].c_str(), available.reason.c_str());
          return 77;
        }
      }
      for (size_t c = 0; c < calls.size(); c++) figures[p][c].push_back(MeasureNs(calls[c]));
      if (probe) probe->Stop();
    }
  }
  std::printf("| probe |");
  for (const Call& call : calls) std::printf(" %s |", call.name);
  std::printf("\n|---|");
  for (size_t c = 0; c < calls.size(); c++) std::printf("---|");
  std::printf("\n");
  for (size_t p = 0; p < probes.size(); p++) {
    std::printf("| %s |", probes[p].empty() ? "none" : probes[p].c_str());
    for (size_t c = 0; c < calls.size(); c++) {
      if (p == 0) {
        std::printf(" %.0f ns |", Median(figures[0][c]));
        continue;
      }
      std::vector<double> differences;
      for (int r = 0; r < rounds; r++) {
        differences.push_back(figures[p][c][static_cast<size_t>(r)] -
                              figures[0][c][static_cast<size_t>(r)]);
      }
      std::printf(" %+.0f ns |", Median(differences));
    }
    std::printf("\n");
  }
  hr_account_close();
  return 0;
}

}  // namespace
}  // namespace headrace::probes

int main(int argc, char** argv) {
  return headrace::probes::Main(argc > 1 ? std::max(1, std::atoi(argv[1])) : 15);
}
