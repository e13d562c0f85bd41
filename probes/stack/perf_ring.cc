#include "probes/stack/perf_ring.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace headrace::probes::stack {
namespace {

constexpr uint64_t kMaxChainFrames = 1024;  // of a call chain; kernel.perf_event_max_stack is 127

#if defined(__aarch64__)
constexpr uint64_t kRegisterMask = (1ull << 33) - 1;  // x0-x30, sp, pc: in DWARF's order
constexpr int kPcBit = 32;
constexpr int DwarfNumber(int bit) { return bit; }
#else
// Bits of PERF_REG_X86_*: ax bx cx dx si di bp sp ip, then r8-r15 from bit 16.
constexpr uint64_t kRegisterMask = 0x1ff | 0xffull << 16;
constexpr int kPcBit = 8;
constexpr int DwarfNumber(int bit) {
  constexpr int kDwarf[] = {0, 3, 2, 1, 4, 5, 6, 7};
  return bit >= 16 ? bit - 8 : kDwarf[bit];
}
#endif

class Words {
 public:
  explicit Words(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  template <typename T>
  bool Take(T* value) {
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return true;
  }
  std::span<const uint8_t> rest() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace

std::optional<PerfSample> ParsePerfSample(std::span<const uint8_t> bytes,
                                          const SampleRequest& request) {
  Words in(bytes);
  PerfSample sample;
  int32_t pid, tid;
  uint64_t frames;
  if (!in.Take(&pid) || !in.Take(&tid) || !in.Take(&frames) || frames > kMaxChainFrames) {
    return std::nullopt;
  }
  sample.pid = pid;
  sample.tid = tid;
  std::vector<uint64_t>* part = nullptr;
  for (uint64_t i = 0; i < frames; ++i) {
    uint64_t address;
    if (!in.Take(&address)) return std::nullopt;
    if (address >= PERF_CONTEXT_MAX) {
      part = address == PERF_CONTEXT_USER     ? &sample.user
             : address == PERF_CONTEXT_KERNEL ? &sample.kernel
                                              : nullptr;
    } else if (part) {
      part->push_back(address);
    }
  }
  if (request.stack_bytes == 0) return sample;
  uint64_t abi;
  if (!in.Take(&abi)) return std::nullopt;
  if (abi == PERF_SAMPLE_REGS_ABI_64) {
    Registers registers;
    for (int bit = 0; bit < 64; ++bit) {
      if ((kRegisterMask >> bit & 1) == 0) continue;
      uint64_t value;
      if (!in.Take(&value)) return std::nullopt;
      if (bit == kPcBit)
        registers.pc = value;
      else
        registers.Set(DwarfNumber(bit), value);
    }
    sample.registers = registers;
  } else if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
    return sample;  // a 32-bit program: its call chain is all we take
  }
  uint64_t size, used;
  if (!in.Take(&size)) return std::nullopt;
  if (size == 0) return sample;
  const std::span<const uint8_t> stack = in.rest();
  if (size > stack.size() || stack.size() - size < sizeof used) return std::nullopt;
  std::memcpy(&used, stack.data() + size, sizeof used);
  if (used > size) return std::nullopt;
  sample.stack.assign(stack.begin(), stack.begin() + static_cast<ptrdiff_t>(used));
#if defined(__aarch64__)
  if (sample.registers) sample.stack_address = sample.registers->value[31];
#else
  if (sample.registers) sample.stack_address = sample.registers->value[7];
#endif
  return sample;
}

int OpenCpuClock(const SampleRequest& request, int64_t tid, int cpu) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.freq = 1;
  attr.sample_freq = static_cast<uint64_t>(request.frequency);
  attr.sample_type = request.bare ? 0 : PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN;
  // A sample that hits the kernel still has the user's stack below it; without leave to look into
  // the kernel such samples are not taken at all.
  attr.exclude_kernel = request.with_kernel ? 0 : 1;
  attr.exclude_callchain_kernel = request.with_kernel ? 0 : 1;
  attr.exclude_hv = 1;
  if (request.stack_bytes > 0) {
    attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attr.sample_regs_user = kRegisterMask;
    attr.sample_stack_user = request.stack_bytes;
  }
  const long fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

std::unique_ptr<PerfRing> PerfRing::Open(const SampleRequest& request, int64_t tid, size_t pages) {
  const int fd = OpenCpuClock(request, tid, -1);
  if (fd < 0) {
    errno = -fd;
    return nullptr;
  }
  std::unique_ptr<PerfRing> ring(new PerfRing);
  ring->fd_ = fd;
  ring->request_ = request;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (; pages >= 2; pages /= 2) {
    void* memory = mmap(nullptr, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) continue;
    ring->memory_ = memory;
    ring->size_ = pages * page;
    return ring;
  }
  return nullptr;  // errno is mmap's
}

PerfRing::~PerfRing() {
  const int error = errno;
  if (memory_) munmap(memory_, size_ + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  if (fd_ >= 0) close(fd_);
  errno = error;
}

void PerfRing::Drain(const std::function<void(const PerfSample&)>& take) {
  auto* page = static_cast<perf_event_mmap_page*>(memory_);
  const uint8_t* data = static_cast<const uint8_t*>(memory_) + sysconf(_SC_PAGESIZE);
  const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
  uint64_t tail = page->data_tail;
  std::vector<uint8_t> record;
  const auto copy = [&](uint64_t at, void* out, size_t size) {
    const size_t begin = at % size_, first = std::min(size, size_ - begin);
    std::memcpy(out, data + begin, first);
    std::memcpy(static_cast<uint8_t*>(out) + first, data, size - first);
  };
  while (head - tail >= sizeof(perf_event_header)) {
    perf_event_header header;
    copy(tail, &header, sizeof header);
    if (header.size < sizeof header || header.size > head - tail) {
      ++damaged_;
      tail = head;
      break;
    }
    record.resize(header.size - sizeof header);
    copy(tail + sizeof header, record.data(), record.size());
    tail += header.size;
    if (header.type == PERF_RECORD_SAMPLE) {
      if (const auto sample = ParsePerfSample(record, request_))
        take(*sample);
      else
        ++damaged_;
    } else if (header.type == PERF_RECORD_LOST && record.size() >= 16) {
      uint64_t lost;
      std::memcpy(&lost, record.data() + 8, sizeof lost);
      lost_ += static_cast<int64_t>(std::min<uint64_t>(lost, INT32_MAX));
    }
  }
  __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

bool PerfRing::ended() const {
  pollfd p{fd_, POLLIN, 0};
  return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP) != 0;
}

}  // namespace headrace::probes::stack
