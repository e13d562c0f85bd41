// Block requests, reads, io_uring, sockets and faults against the ledgers of threads that switch
// between operators at random.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "base/clock.h"
#include "probes/account/account.h"
#include "probes/bpf/followed.h"
#include "probes/bpf/program.h"
#include "probes/probe.h"
#include "tests/sanitized.h"
#include "tests/seed.h"

namespace headrace::probes::bpf {
namespace {

constexpr int kThreads = 4, kOperators = 6;
constexpr size_t kFileBytes = 32 << 20;

struct CollectedIo final : Sink {
  std::map<std::pair<std::string, Labels>, double> values;
  std::map<std::string, int64_t> lost;
  void Add(const Measurement& m) override {
    EXPECT_NE(FindMetric(m.metric), nullptr) << m.metric;
    values[{std::string(m.metric), m.labels}] += m.value;
  }
  void AddStack(const StackSample&) override {}
  void Lost(std::string_view what, int64_t count, std::optional<int64_t>) override {
    lost[std::string(what)] += count;
  }
  // Sum over this process's; of an operator, or of what is outside all of them.
  int64_t Sum(const std::string& metric, std::optional<uint32_t> operator_index,
              const std::string& cause = "", const std::string& subject = "") const {
    double sum = 0;
    for (const auto& [key, value] : values) {
      const auto& [name, labels] = key;
      if (name != metric || labels.operator_index != operator_index || labels.pid != getpid()) {
        continue;
      }
      if (!cause.empty() && labels.cause != cause) continue;
      if (!subject.empty() && labels.subject != subject) continue;
      sum += value;
    }
    return static_cast<int64_t>(sum);
  }
  // Sum over everything of that name.
  double All(const std::string& metric) const {
    double sum = 0;
    for (const auto& [key, value] : values) {
      if (key.first == metric) sum += value;
    }
    return sum;
  }
  int64_t AllLost() const {
    int64_t sum = 0;
    for (const auto& [what, count] : lost) sum += count;
    return sum;
  }
};

class BpfIo : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(hr_account_open("bpf_io_test"), 0);
    const uint32_t stage = hr_stage("io", kThreads, 0);
    for (int i = 0; i < kOperators; i++) {
      operators_[static_cast<size_t>(i)] =
          hr_operator(("operator " + std::to_string(i)).c_str(), "test", stage);
    }
    stage_ = stage;
  }
  static void TearDownTestSuite() { hr_account_close(); }

  void TearDown() override {
    if (probe_) probe_->Stop();
    if (fd_ >= 0) close(fd_);
    if (!path_.empty()) unlink(path_.c_str());
  }

  // False, with the reason told to GTEST_SKIP's message, where it cannot run.
  bool Start(const std::string& name) {
    const ProbeInfo* info = Registry<ProbeInfo>::Global().Find(name);
    EXPECT_NE(info, nullptr);
    if (!info) return false;
    EXPECT_EQ(info->level, 3);
    probe_ = info->make();
    target_.root_pid = getpid();
    target_.pids = {getpid()};
    target_.accounts = {{getpid(), FindSegmentAddress(host_, getpid())}};
    const Availability available = probe_->Start(host_, target_);
    if (!available.usable()) {
      EXPECT_NE(available.reason, "");
      EXPECT_NE(available.fix, "");
      reason_ = "no BPF here: " + available.reason;
      probe_.reset();
      return false;
    }
    degraded_ = available.state == Availability::State::kDegraded;
    EXPECT_EQ(available.reason.empty(), !degraded_) << available.reason;
    return true;
  }

  // A file on a block device that takes O_DIRECT.
  bool MakeFile() {
    const char* folder = std::getenv("HEADRACE_TEST_FOLDER");
    path_ = std::string(folder ? folder : HEADRACE_BINARY_DIR) + "/bpf_io_test." +
            std::to_string(getpid());
    const int fd = open(path_.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
      reason_ = path_ + ": cannot be written";
      return false;
    }
    std::vector<char> chunk(1 << 20, 'x');
    for (size_t at = 0; at < kFileBytes; at += chunk.size()) {
      if (write(fd, chunk.data(), chunk.size()) != static_cast<ssize_t>(chunk.size())) break;
    }
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    fd_ = open(path_.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    struct stat info = {};
    if (fd_ < 0 || fstat(fd_, &info) != 0) {
      reason_ = "O_DIRECT does not work in the build folder";
      return false;
    }
    const std::string device = "/sys/dev/block/" + std::to_string(major(info.st_dev)) + ":" +
                               std::to_string(minor(info.st_dev));
    if (access(device.c_str(), F_OK) != 0) {
      reason_ = "the build folder is on no block device (tmpfs or overlay)";
      return false;
    }
    return true;
  }

  CollectedIo Read() {
    CollectedIo sink;
    probe_->Read(sink);
    return sink;
  }

  // Threads that enter an operator at random for each of `rounds` calls of `work(operator, random,
  // thread)`; what it returns is added to the operator's ledger.
  template <typename Work>
  std::array<int64_t, kOperators> Run(int rounds, const Work& work) {
    const uint32_t seed = TestSeed();
    std::array<std::atomic<int64_t>, kOperators> ledger{};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; t++) {
      threads.emplace_back([&, t] {
        hr_thread_begin(stage_);
        std::mt19937 random(seed + static_cast<uint32_t>(t));
        for (int i = 0; i < rounds; i++) {
          const size_t op = random() % kOperators;
          hr_enter(operators_[op]);
          ledger[op] += work(op, random, t);
          hr_leave();
        }
        hr_thread_end();
      });
    }
    for (auto& thread : threads) thread.join();
    std::array<int64_t, kOperators> result{};
    for (size_t i = 0; i < kOperators; i++) result[i] = ledger[i];
    return result;
  }

  static char* Buffer() {
    thread_local std::unique_ptr<char, decltype(&std::free)> buffer(
        static_cast<char*>(std::aligned_alloc(4096, 1 << 18)), &std::free);
    return buffer.get();
  }

  static inline std::array<uint32_t, kOperators> operators_{};
  static inline uint32_t stage_ = 0;
  Host host_;
  Target target_;
  std::unique_ptr<Probe> probe_;
  std::string reason_, path_;
  bool degraded_ = false;
  int fd_ = -1;
};

TEST_F(BpfIo, BlockRequestsReachTheOperatorThatReads) {
  if (!MakeFile() || !Start("block IO")) GTEST_SKIP() << reason_;
  std::array<std::atomic<int64_t>, kOperators> bytes{};
  const auto requests = Run(400, [&](size_t op, std::mt19937& random, int) {
    const size_t size = 4096 << (op / 2);
    const auto at = static_cast<off_t>(random() % (kFileBytes / size) * size);
    EXPECT_EQ(pread(fd_, Buffer(), size, at), static_cast<ssize_t>(size));
    bytes[op] += static_cast<int64_t>(size);
    return 1;
  });
  const CollectedIo seen = Read();
  for (size_t i = 0; i < kOperators; i++) {
    // The file system may cut a read at the end of an extent, or read an extent's map.
    const double room = std::max(2.0, 0.001 * static_cast<double>(requests[i]));
    EXPECT_NEAR(static_cast<double>(seen.Sum("block_requests_count", operators_[i], "read")),
                static_cast<double>(requests[i]), room);
    EXPECT_NEAR(static_cast<double>(seen.Sum("block_bytes", operators_[i], "read")),
                static_cast<double>(bytes[i]), room * 16384);
    EXPECT_GT(seen.Sum("block_latency_ns", operators_[i], "read"), 0);
    // Completions may get lost; then their number is said.
    EXPECT_LE(seen.Sum("block_latency_count", operators_[i], "read"),
              seen.Sum("block_requests_count", operators_[i], "read"));
  }
  // Of a completed request the size and the latency are known together, and say what each says
  // alone.
  std::map<int64_t, double> sizes, latencies, joint_sizes, joint_latencies;
  for (const auto& [key, value] : seen.values) {
    const auto& [metric, labels] = key;
    if (!labels.bucket || labels.cause != "read") continue;
    if (metric == "block_size_count") sizes[*labels.bucket] += value;
    if (metric == "block_latency_count") latencies[*labels.bucket] += value;
    if (metric != "block_size_latency_count") continue;
    joint_sizes[int64_t{1} << (*labels.bucket / 64)] += value;
    joint_latencies[int64_t{1} << (*labels.bucket % 64)] += value;
  }
  EXPECT_EQ(joint_sizes, sizes);
  EXPECT_EQ(joint_latencies, latencies);
  EXPECT_LE(seen.All("block_sequential_count"), seen.All("block_requests_count"));
  EXPECT_GT(seen.All("block_gap_count"), 0);
  bool named = false;
  for (const auto& [key, value] : seen.values) named |= !key.second.subject.empty();
  EXPECT_TRUE(named);
  EXPECT_EQ(seen.lost.at("block_io: requests"), 0);
}

TEST_F(BpfIo, BlockRequestsWithoutRoomAreCounted) {
  if (!MakeFile()) GTEST_SKIP() << reason_;
  setenv("HEADRACE_BPF_MAP_ENTRIES", "1", 1);
  const bool started = Start("block IO");
  unsetenv("HEADRACE_BPF_MAP_ENTRIES");
  if (!started) GTEST_SKIP() << reason_;
  Run(10, [&](size_t, std::mt19937& random, int) {
    return pread(fd_, Buffer(), 4096, static_cast<off_t>(random() % 1000 * 4096));
  });
  EXPECT_GT(Read().AllLost(), 0);
}

TEST_F(BpfIo, FiguresOfEndedProcessesStayWhenTheirPlaceIsTaken) {
  if (!Start("sockets")) GTEST_SKIP() << reason_;
  if (degraded_) GTEST_SKIP() << "bytes sent are not known before Linux 6.3";
  const pid_t child = fork();
  if (child == 0) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) _exit(1);
    _exit(send(ends[0], "12345", 5, 0) == 5 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const auto sent = [&] {
    double sum = 0;
    for (const auto& [key, value] : Read().values) {
      if (key.first == "socket_sent_bytes" && key.second.pid == child) sum += value;
    }
    return sum;
  };
  const int64_t begin = MonotonicNs();
  while (MonotonicNs() - begin < 2'200'000'000) {
    ASSERT_EQ(sent(), 5);
    usleep(100'000);
  }
}

TEST_F(BpfIo, ReadCallsAreExactByOperator) {
  if (!MakeFile() || !Start("system calls")) GTEST_SKIP() << reason_;
  const int cached = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(cached, 0);
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  std::array<std::atomic<int64_t>, kOperators> calls{}, piped{};
  const auto bytes = Run(1000, [&](size_t op, std::mt19937& random, int) -> int64_t {
    const size_t size = 512 << op;
    const auto at = static_cast<off_t>(random() % (1 << 20));
    ++calls[op];
    ssize_t n = 0;
    switch (random() % 4) {
      case 0:
        n = pread(cached, Buffer(), size, at);
        break;
      case 1: {
        iovec parts[2] = {{Buffer(), size / 2}, {Buffer() + size / 2, size / 2}};
        n = preadv(cached, parts, 2, at);
        break;
      }
      case 2:
        n = pread(fd_, Buffer(), 4096, static_cast<off_t>(random() % 4096 * 4096));
        break;
      default:
        --calls[op];
        n = write(pipes[1], "x", 1);
        EXPECT_EQ(n, 1);
        char byte;
        EXPECT_EQ(read(pipes[0], &byte, 1), 1);
        ++piped[op];
        return 0;
    }
    EXPECT_GT(n, 0);
    return n;
  });
  const CollectedIo seen = Read();
  int64_t misattributed = 0, device_calls = 0, cache_calls = 0;
  for (size_t i = 0; i < kOperators; i++) {
    misattributed += std::abs(seen.Sum("file_read_bytes", operators_[i]) - bytes[i]);
    EXPECT_EQ(seen.Sum("file_reads_count", operators_[i]), calls[i]);
    EXPECT_EQ(seen.Sum("stream_read_bytes", operators_[i], "pipe"), piped[i]);
    EXPECT_EQ(seen.Sum("stream_write_bytes", operators_[i], "pipe"), piped[i]);
    EXPECT_EQ(seen.Sum("file_read_latency_count", operators_[i]), calls[i]);
    device_calls += seen.Sum("file_reads_count", operators_[i], "device");
    cache_calls += seen.Sum("file_reads_count", operators_[i], "cache");
  }
  EXPECT_EQ(misattributed, 0);
  EXPECT_GT(device_calls, kThreads * 1000 / 8);  // the direct ones
  EXPECT_GT(cache_calls, kThreads * 1000 / 4);
  EXPECT_EQ(seen.AllLost(), 0);
  close(cached);
  close(pipes[0]);
  close(pipes[1]);
}

TEST_F(BpfIo, WhatEntersThePageCacheReachesTheOperator) {
  if (!MakeFile() || !Start("file reads")) GTEST_SKIP() << reason_;
  close(fd_);
  fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM);  // no read-ahead
  std::array<std::array<std::atomic<bool>, 256>, kOperators> touched{};
  // Each operator reads its own megabyte, by pages.
  Run(400, [&](size_t op, std::mt19937& random, int) {
    const size_t page = random() % 256;
    touched[op][page] = true;
    return pread(fd_, Buffer(), 4096, static_cast<off_t>((op << 20) + page * 4096));
  });
  const CollectedIo seen = Read();
  for (size_t i = 0; i < kOperators; i++) {
    int64_t pages = 0;
    for (const auto& page : touched[i]) pages += page;
    // Never less; the file system may have to read blocks of its own to find the page.
    EXPECT_GE(seen.Sum("page_cache_added_bytes", operators_[i]), pages * 4096);
    EXPECT_LE(seen.Sum("page_cache_added_bytes", operators_[i]), (pages + 2) * 4096);
  }
  EXPECT_EQ(seen.AllLost(), 0);
}

TEST_F(BpfIo, ReadAheadThatNobodyReadsIsSeenWhenItIsDropped) {
  if (!MakeFile() || !Start("file reads")) GTEST_SKIP() << reason_;
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  std::thread([&] {
    hr_thread_begin(stage_);
    hr_enter(operators_[0]);
    EXPECT_EQ(readahead(fd, 0, 1 << 20), 0);
    EXPECT_EQ(pread(fd, Buffer(), 1 << 18, 0), 1 << 18);
    hr_leave();
    hr_thread_end();
  }).join();
  const CollectedIo before = Read();
  const int64_t added = before.Sum("page_cache_added_bytes", operators_[0]);
  EXPECT_GE(added, 1 << 18);
  EXPECT_EQ(before.values.count({"readahead_unused_bytes", {}}), 0u);  // not known yet: not 0
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
  const CollectedIo seen = Read();
  const int64_t dropped = seen.Sum("page_cache_dropped_bytes", operators_[0]);
  const int64_t unused = seen.Sum("readahead_unused_bytes", operators_[0]);
  EXPECT_GT(dropped, added / 2);  // the kernel may keep pages that are in its hands
  EXPECT_NEAR(static_cast<double>(dropped - unused), 1 << 18, 1 << 17);
}

// A ring of one entry at a time, by system calls: no library is needed.
class Ring {
 public:
  Ring() {
    io_uring_params params = {};
    fd_ = static_cast<int>(syscall(SYS_io_uring_setup, 4, &params));
    if (fd_ < 0) return;
    const size_t size = std::max(params.sq_off.array + params.sq_entries * 4,
                                 params.cq_off.cqes + params.cq_entries * 16);
    ring_ = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, IORING_OFF_SQ_RING));
    entries_ =
        static_cast<io_uring_sqe*>(mmap(nullptr, params.sq_entries * sizeof(io_uring_sqe),
                                        PROT_READ | PROT_WRITE, MAP_SHARED, fd_, IORING_OFF_SQES));
    params_ = params;
  }
  ~Ring() {
    if (fd_ >= 0) close(fd_);
  }
  bool ok() const { return fd_ >= 0 && ring_ != MAP_FAILED && entries_ != MAP_FAILED; }
  int Read(int fd, char* buffer, uint32_t size, uint64_t at) {
    auto* tail = reinterpret_cast<uint32_t*>(ring_ + params_.sq_off.tail);
    const uint32_t mask = *reinterpret_cast<uint32_t*>(ring_ + params_.sq_off.ring_mask);
    const uint32_t slot = *tail & mask;
    entries_[slot] = {};
    entries_[slot].opcode = IORING_OP_READ;
    entries_[slot].fd = fd;
    entries_[slot].addr = reinterpret_cast<uint64_t>(buffer);
    entries_[slot].len = size;
    entries_[slot].off = at;
    reinterpret_cast<uint32_t*>(ring_ + params_.sq_off.array)[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    while (syscall(SYS_io_uring_enter, fd_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0) {
      if (errno != EINTR) return -errno;
    }
    auto* head = reinterpret_cast<uint32_t*>(ring_ + params_.cq_off.head);
    auto* end = reinterpret_cast<uint32_t*>(ring_ + params_.cq_off.tail);
    while (__atomic_load_n(end, __ATOMIC_ACQUIRE) == *head) {
    }
    const auto* completions = reinterpret_cast<io_uring_cqe*>(ring_ + params_.cq_off.cqes);
    const uint32_t completion_mask = *reinterpret_cast<uint32_t*>(ring_ + params_.cq_off.ring_mask);
    const int result = completions[*head & completion_mask].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
  }

 private:
  int fd_ = -1;
  io_uring_params params_ = {};
  char* ring_ = nullptr;
  io_uring_sqe* entries_ = nullptr;
};

TEST_F(BpfIo, IoUringReadsReachTheOperatorThatSubmits) {
  if (!MakeFile() || !Start("io_uring")) GTEST_SKIP() << reason_;
  std::array<Ring, kThreads> rings;
  for (const Ring& ring : rings) {
    if (!ring.ok()) GTEST_SKIP() << "io_uring_setup: " << std::strerror(errno);
  }
  std::array<std::atomic<int64_t>, kOperators> count{};
  const auto bytes = Run(200, [&](size_t op, std::mt19937& random, int thread) -> int64_t {
    const uint32_t size = 4096u << (op / 2);
    const int n =
        rings[static_cast<size_t>(thread)].Read(fd_, Buffer(), size, random() % 1000 * 16384);
    EXPECT_EQ(n, static_cast<int>(size));
    ++count[op];
    return n;
  });
  const CollectedIo seen = Read();
  for (size_t i = 0; i < kOperators; i++) {
    EXPECT_EQ(seen.Sum("io_uring_submitted_count", operators_[i], "read"), count[i]);
    EXPECT_EQ(seen.Sum("io_uring_completed_count", operators_[i], "read"), count[i]);
    EXPECT_EQ(seen.Sum("io_uring_latency_count", operators_[i], "read"), count[i]);
    EXPECT_EQ(seen.Sum("io_uring_bytes", operators_[i], "read"), bytes[i]);
    EXPECT_GT(seen.Sum("io_uring_latency_ns", operators_[i], "read"), 0);
  }
  EXPECT_EQ(seen.AllLost(), 0);
}

// A connection to ourselves; {reading end, writing end}.
std::array<int, 2> Connection(int family) {
  const int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int writer = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage address = {};
  socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (family == AF_INET) {
    auto& in = reinterpret_cast<sockaddr_in&>(address);
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else {
    auto& in = reinterpret_cast<sockaddr_in6&>(address);
    in.sin6_family = AF_INET6;
    in.sin6_addr = in6addr_loopback;
  }
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  int reader = -1;
  if (listener >= 0 && bind(listener, generic, size) == 0 && listen(listener, 1) == 0 &&
      getsockname(listener, generic, &size) == 0 && connect(writer, generic, size) == 0) {
    reader = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  }
  close(listener);
  return {reader, writer};
}

std::string NameOf(int fd) {
  sockaddr_storage own = {}, other = {};
  socklen_t size = sizeof own;
  getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size);
  size = sizeof other;
  getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size);
  const auto text = [](const sockaddr_storage& address) {
    char name[INET6_ADDRSTRLEN] = "";
    if (address.ss_family == AF_INET) {
      const auto& in = reinterpret_cast<const sockaddr_in&>(address);
      inet_ntop(AF_INET, &in.sin_addr, name, sizeof name);
      return std::string(name) + ":" + std::to_string(ntohs(in.sin_port));
    }
    const auto& in = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &in.sin6_addr, name, sizeof name);
    return "[" + std::string(name) + "]:" + std::to_string(ntohs(in.sin6_port));
  };
  return text(own) + ">" + text(other);
}

class BpfSockets : public BpfIo, public testing::WithParamInterface<int> {};

TEST_P(BpfSockets, BytesAreExactBySocketAndOperator) {
  if (!Start("sockets")) GTEST_SKIP() << reason_;
  // Before Linux 6.3 there are the bytes received by TCP, and nothing else is claimed.
  if (degraded_ && GetParam() == AF_UNIX) GTEST_SKIP() << "sockets other than TCP are not seen";
  std::array<std::array<int, 2>, kThreads> ends;
  for (auto& pair : ends) {
    if (GetParam() == AF_UNIX) {
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
      continue;
    }
    pair = Connection(GetParam());
    if (pair[0] < 0) GTEST_SKIP() << "no such network here";
  }
  std::array<std::atomic<int64_t>, kThreads> by_socket{};
  const auto bytes = Run(300, [&](size_t op, std::mt19937& random, int thread) -> int64_t {
    const auto& [reader, writer] = ends[static_cast<size_t>(thread)];
    const size_t size = 1 + random() % (1000 << op);
    for (size_t sent = 0; sent < size;) {
      // All ways to send and to receive.
      const ssize_t n = random() % 2
                            ? send(writer, Buffer(), std::min<size_t>(size - sent, 4096), 0)
                            : write(writer, Buffer(), std::min<size_t>(size - sent, 4096));
      if (n <= 0) return 0;
      sent += static_cast<size_t>(n);
      for (ssize_t got = 0; got < n;) {
        char peeked;
        recv(reader, &peeked, 1, MSG_PEEK);  // takes nothing
        const ssize_t m =
            random() % 2 ? recv(reader, Buffer(), 4096, 0) : read(reader, Buffer(), 4096);
        if (m <= 0) return 0;
        got += m;
      }
    }
    by_socket[static_cast<size_t>(thread)] += static_cast<int64_t>(size);
    return static_cast<int64_t>(size);
  });
  const CollectedIo seen = Read();
  for (size_t i = 0; i < kOperators; i++) {
    EXPECT_EQ(seen.Sum("socket_received_bytes", operators_[i]), bytes[i]);
    EXPECT_EQ(seen.Sum("socket_sent_bytes", operators_[i]), degraded_ ? 0 : bytes[i]);
  }
  for (size_t t = 0; t < kThreads; t++) {
    if (GetParam() == AF_UNIX) {  // those have no names
      for (const int end : ends[t]) close(end);
      continue;
    }
    std::array<std::string, 2> names;
    for (size_t end = 0; end < 2; end++) {
      names[end] = NameOf(ends[t][end]);
      close(ends[t][end]);
    }
    int64_t received = 0, sent = 0;
    for (const uint32_t op : operators_) {
      received += seen.Sum("socket_received_bytes", op, "", names[0]);
      sent += seen.Sum("socket_sent_bytes", op, "", names[1]);
    }
    EXPECT_EQ(received, by_socket[t]) << names[0];
    EXPECT_EQ(sent, degraded_ ? 0 : by_socket[t].load()) << names[1];
  }
  if (GetParam() == AF_INET) {
    EXPECT_GT(seen.All("softirq_ns"), 0);
    EXPECT_GT(seen.All("tcp_round_trip_ns"), 0);
  }
  EXPECT_EQ(seen.AllLost(), 0);
}
INSTANTIATE_TEST_SUITE_P(Families, BpfSockets, testing::Values(AF_INET, AF_INET6, AF_UNIX),
                         [](const auto& family) {
                           return family.param == AF_INET    ? "Ip4"
                                  : family.param == AF_INET6 ? "Ip6"
                                                             : "Unix";
                         });

TEST_F(BpfIo, ASlowReaderClosesItsWindow) {
  if (!Start("sockets")) GTEST_SKIP() << reason_;
  const auto [reader, writer] = Connection(AF_INET);
  ASSERT_GE(reader, 0);
  ASSERT_EQ(fcntl(writer, F_SETFL, O_NONBLOCK), 0);
  const std::vector<char> data(1 << 20);
  int64_t sent = 0;
  // Until the receiver's buffer and the sender's are full, twice over.
  for (int64_t last = MonotonicNs(); MonotonicNs() - last < 100'000'000;) {
    const ssize_t n = send(writer, data.data(), data.size(), 0);
    if (n > 0) {
      sent += n;
      last = MonotonicNs();
    } else {
      usleep(1000);
    }
  }
  ASSERT_GT(sent, 0);
  std::thread([reader = reader, sent] {
    hr_thread_begin(stage_);
    hr_enter(operators_[3]);
    std::vector<char> buffer(1 << 16);
    for (int64_t got = 0; got < sent;) {
      const ssize_t n = recv(reader, buffer.data(), buffer.size(), 0);
      if (n <= 0) break;
      got += n;
    }
    hr_leave();
    hr_thread_end();
  }).join();
  close(reader);
  close(writer);
  const CollectedIo seen = Read();
  EXPECT_EQ(seen.Sum("socket_received_bytes", operators_[3]), sent);
  EXPECT_GT(seen.Sum("tcp_receive_window_stalls_count", operators_[3]), 0);
}

TEST_F(BpfIo, TooManySocketsAreCounted) {
  setenv("HEADRACE_BPF_MAP_ENTRIES", "2", 1);
  const bool started = Start("sockets");
  unsetenv("HEADRACE_BPF_MAP_ENTRIES");
  if (!started) GTEST_SKIP() << reason_;
  for (int i = 0; i < 8; i++) {
    const std::array<int, 2> ends = Connection(AF_INET);
    if (ends[0] < 0) GTEST_SKIP() << "no such network here";
    char got;
    ASSERT_EQ(send(ends[0], "x", 1, 0), 1);
    ASSERT_EQ(recv(ends[1], &got, 1, 0), 1);
    close(ends[0]);
    close(ends[1]);
  }
  EXPECT_GE(Read().lost.at("socket: sockets"), 6);
}

TEST_F(BpfIo, ASocketPerMessageIsNotARowPerMessage) {
  if (!Start("sockets")) GTEST_SKIP() << reason_;
  if (degraded_) GTEST_SKIP() << "bytes sent are not known before Linux 6.3";
  for (int i = 0; i < 200; i++) {
    const std::array<int, 2> tcp = Connection(AF_INET);
    if (tcp[0] < 0) GTEST_SKIP() << "no such network here";
    std::array<int, 2> unix;
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, unix.data()), 0);
    for (const int fd : {tcp[0], unix[0]}) ASSERT_EQ(send(fd, "xyz", 3, 0), 3);
    for (const int fd : {tcp[0], tcp[1], unix[0], unix[1]}) close(fd);
  }
  const CollectedIo seen = Read();
  std::set<std::string> subjects;
  double sent = 0;
  for (const auto& [key, value] : seen.values) {
    if (key.first != "socket_sent_bytes") continue;
    subjects.insert(key.second.subject);
    sent += value;
  }
  EXPECT_EQ(sent, 200 * 2 * 3);
  EXPECT_LT(subjects.size(), 140u);
  EXPECT_EQ(seen.AllLost(), 0);
}

// What there was no room for and what was counted are together what happened.
TEST_F(BpfIo, EveryFaultIsCountedOrCountedAsLost) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer takes page faults of its own";
  setenv("HEADRACE_BPF_MAP_ENTRIES", "3", 1);
  const bool started = Start("page faults");
  unsetenv("HEADRACE_BPF_MAP_ENTRIES");
  if (!started) GTEST_SKIP() << reason_;
  const auto pages = Run(40, [&](size_t, std::mt19937&, int) -> int64_t {
    const size_t size = 4096 * 64;
    char* memory = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) return 0;
    madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
    munmap(memory, size);
    return static_cast<int64_t>(size / 4096);
  });
  const CollectedIo seen = Read();
  int64_t happened = 0;
  for (const int64_t count : pages) happened += count;
  const int64_t lost = seen.lost.at("fault: faults") + seen.lost.at("fault: threads");
  EXPECT_GT(lost, 0);
  EXPECT_NEAR(seen.All("page_faults_count") + static_cast<double>(lost),
              static_cast<double>(happened), 400);  // the test's own code faults too
}

TEST_F(BpfIo, PageFaultsReachTheOperatorThatTouches) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer takes page faults of its own";
  if (!Start("page faults")) GTEST_SKIP() << reason_;
  const auto pages = Run(40, [&](size_t op, std::mt19937&, int) -> int64_t {
    const size_t size = 4096 * (128 + 32 * op);
    char* memory = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) return 0;
    madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
    munmap(memory, size);
    return static_cast<int64_t>(size / 4096);
  });
  const CollectedIo seen = Read();
  // The test's own code and stacks fault a little too. Of faults that come this close together one
  // in 32 is asked: what each operator has is an estimate, what they have together is not.
  double sum = 0, happened = 0;
  for (size_t i = 0; i < kOperators; i++) {
    const auto all = static_cast<double>(seen.Sum("page_faults_count", operators_[i]));
    const auto touched = static_cast<double>(pages[i]);
    sum += all;
    happened += touched;
    EXPECT_NEAR(all, touched, 60 + 5 * std::sqrt(32 * touched)) << i;
  }
  EXPECT_NEAR(sum, happened, 60 * kOperators + 32 * sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_EQ(seen.AllLost(), 0);
}

// Seldom ones are all asked.
TEST_F(BpfIo, FaultsFarApartAreCountedExactly) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer takes page faults of its own";
  if (!Start("page faults")) GTEST_SKIP() << reason_;
  constexpr int kFaults = 40;
  const size_t size = 4096 * kFaults;
  std::thread([&] {
    hr_thread_begin(stage_);
    char* memory = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    madvise(memory, size, MADV_NOHUGEPAGE);
    for (int i = 0; i < kFaults; i++) {
      usleep(5000);
      hr_enter(operators_[1]);
      memory[4096 * i] = 1;
      hr_leave();
    }
    munmap(memory, size);
    hr_thread_end();
  }).join();
  EXPECT_NEAR(static_cast<double>(Read().Sum("page_faults_count", operators_[1])), kFaults, 2);
}

TEST_F(BpfIo, FaultsThatReadADeviceAreMajor) {
  if (!MakeFile() || !Start("page faults")) GTEST_SKIP() << reason_;
  if (Read().Sum("page_faults_count", std::nullopt, "any") > 0) {
    GTEST_SKIP() << "major faults are not told apart here";
  }
  rusage before = {}, after = {};
  std::thread([&] {
    hr_thread_begin(stage_);
    char* map = static_cast<char*>(mmap(nullptr, 4 << 20, PROT_READ, MAP_SHARED, fd_, 0));
    ASSERT_NE(map, MAP_FAILED);
    madvise(map, 4 << 20, MADV_RANDOM);
    getrusage(RUSAGE_THREAD, &before);
    hr_enter(operators_[2]);
    volatile char sum = 0;
    for (size_t at = 0; at < 4 << 20; at += 1 << 16) sum = static_cast<char>(sum + map[at]);
    hr_leave();
    getrusage(RUSAGE_THREAD, &after);
    munmap(map, 4 << 20);
    hr_thread_end();
  }).join();
  EXPECT_GT(after.ru_majflt, before.ru_majflt);
  EXPECT_EQ(Read().Sum("page_faults_count", operators_[2], "major"),
            after.ru_majflt - before.ru_majflt);
}

TEST_F(BpfIo, ConnectionsBelongToTheOperatorThatOpensThem) {
  if (!Start("connections")) GTEST_SKIP() << reason_;
  // A listener; and a port that nobody listens on, since this socket holds it and does not listen.
  const auto bound = [](int* fd) {
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(*fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(*fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return address;
  };
  int listener = -1, holder = -1;
  const sockaddr_in open_port = bound(&listener), closed_port = bound(&holder);
  ASSERT_EQ(listen(listener, 64), 0);
  constexpr int kOpened = 23, kRefused = 7;
  const auto connect_to = [](const sockaddr_in& address) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int rc = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    close(fd);
    return rc;
  };
  const int64_t begin = MonotonicNs();
  std::thread([&] {
    hr_thread_begin(stage_);
    hr_enter(operators_[1]);
    for (int i = 0; i < kOpened; i++) EXPECT_EQ(connect_to(open_port), 0);
    hr_leave();
    hr_enter(operators_[2]);
    for (int i = 0; i < kRefused; i++) EXPECT_EQ(connect_to(closed_port), -1);
    hr_leave();
    hr_thread_end();
  }).join();
  const int64_t took = MonotonicNs() - begin;
  close(listener);
  close(holder);
  const CollectedIo seen = Read();
  EXPECT_EQ(seen.Sum("tcp_connects_count", operators_[1], "established"), kOpened);
  EXPECT_EQ(seen.Sum("tcp_connects_count", operators_[1], "failed"), 0);
  EXPECT_EQ(seen.Sum("tcp_connects_count", operators_[2], "failed"), kRefused);
  EXPECT_EQ(seen.Sum("tcp_connects_count", operators_[2], "established"), 0);
  EXPECT_GT(seen.Sum("tcp_connect_ns", operators_[1], "established"), 0);
  EXPECT_LT(seen.Sum("tcp_connect_ns", operators_[1], "established"), took);
  EXPECT_EQ(seen.AllLost(), 0);
}

TEST_F(BpfIo, ReclaimLoadsAndIsQuietWithoutPressure) {
  if (!Start("memory reclaim")) GTEST_SKIP() << reason_;
  EXPECT_EQ(Read().lost.at("throttle: stops"), 0);
}

}  // namespace
}  // namespace headrace::probes::bpf
