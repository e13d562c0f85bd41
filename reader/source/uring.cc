#include "reader/source/uring.h"

#include <fmt/format.h>
#include <liburing.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "reader/source/local_file.h"
#include "reader/source/options.h"
#include "reader/source/pinned_buffers.h"

namespace headrace::reader {
namespace {

constexpr uint64_t kMaxRequestBytes = uint64_t{1} << 30;  // the kernel cuts longer ones at 2 GiB

// The calling thread's ring.
class Ring {
 public:
  Ring() { failure_ = -io_uring_queue_init(kMaxDepth, &ring_, 0); }
  ~Ring() {
    if (failure_ == 0) io_uring_queue_exit(&ring_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  static Ring& OfThread() {
    thread_local Ring ring;
    return ring;
  }

  // Throws Error unless the ring can be used.
  io_uring* Checked(const std::string& path) {
    if (failure_ == 0) return &ring_;
    if (failure_ == ENOMEM || failure_ == EMFILE || failure_ == ENFILE)
      throw ErrnoError(failure_, "make an io_uring to read", path);
    throw Error(ExitCode::kPrivilege, fmt::format("no io_uring here: {}", std::strerror(failure_)),
                path, "set source.io = \"pread\"");
  }

  // The slot of the registered buffer that holds `out`, or -1.
  int Slot(std::span<const uint8_t> out) {
    if (registering_failure_ != 0) return -1;
    const auto region = PinnedBuffers::Get().Find(out);
    if (!region) return -1;
    if (!has_table_) {
      registering_failure_ = -io_uring_register_buffers_sparse(&ring_, PinnedBuffers::kMaxBuffers);
      if (registering_failure_ != 0) return -1;
      has_table_ = true;
    }
    if (!registered_[region->index]) {
      const iovec entry{region->bytes.data(), region->bytes.size()};
      const int done =
          io_uring_register_buffers_update_tag(&ring_, region->index, &entry, nullptr, 1);
      registering_failure_ = done < 0 ? -done : 0;
      if (done < 0) return -1;
      registered_[region->index] = true;
    }
    return static_cast<int>(region->index);
  }
  int registering_failure() const { return registering_failure_; }

 private:
  io_uring ring_ = {};
  int failure_ = 0, registering_failure_ = 0;
  bool has_table_ = false;
  std::bitset<PinnedBuffers::kMaxBuffers> registered_;
};

// The requests of one ReadMany, through the ring of its thread.
class Flight {
 public:
  Flight(Ring* ring, io_uring* queue, int descriptor, std::span<const ReadRequest> requests,
         uint64_t alignment, bool registered)
      : ring_(ring),
        queue_(queue),
        descriptor_(descriptor),
        requests_(requests),
        alignment_(alignment),
        done_(requests.size()),
        registered_(registered) {}

  // Returns the first failure: {errno or -1 at the end of the file, request}. Whatever happens, no
  // request is in flight when it returns.
  struct Outcome {
    int failure = 0;
    size_t request = 0;
    uint64_t done = 0;  // bytes of that request that came before
  };
  Outcome Fly(uint32_t depth, uint64_t* submitted) {
    size_t next = 0;
    uint32_t in_flight = 0;
    while (next < requests_.size() || in_flight > 0) {
      for (; outcome_.failure == 0 && next < requests_.size() && in_flight < depth; ++next) {
        if (requests_[next].out.empty()) continue;
        Prepare(next);
        ++in_flight;
        ++*submitted;
      }
      if (in_flight == 0) break;
      const int waited = io_uring_submit_and_wait(queue_, 1);
      if (waited < 0 && waited != -EINTR && waited != -EAGAIN && waited != -EBUSY)
        Note(-waited, next - 1);
      io_uring_cqe* entry = nullptr;
      while (io_uring_peek_cqe(queue_, &entry) == 0) {
        const auto request = static_cast<size_t>(entry->user_data);
        const int result = entry->res;
        io_uring_cqe_seen(queue_, entry);
        if (Finished(request, result)) {
          --in_flight;
        } else {
          Prepare(request);
          ++*submitted;
        }
      }
    }
    return outcome_;
  }

 private:
  void Prepare(size_t i) {
    const ReadRequest& request = requests_[i];
    uint8_t* const data = request.out.data() + done_[i];
    const uint64_t offset = request.offset + done_[i];
    const uint64_t room = (request.out.size() + alignment_ - 1) / alignment_ * alignment_;
    const auto bytes = static_cast<unsigned>(std::min(room - done_[i], kMaxRequestBytes));
    io_uring_sqe* const entry = io_uring_get_sqe(queue_);  // never null: depth <= kMaxDepth
    const int slot = registered_ ? ring_->Slot({data, bytes}) : -1;
    if (slot >= 0) {
      io_uring_prep_read_fixed(entry, descriptor_, data, bytes, offset, slot);
    } else {
      io_uring_prep_read(entry, descriptor_, data, bytes, offset);
    }
    io_uring_sqe_set_data64(entry, i);
  }

  bool Finished(size_t i, int result) {
    if (outcome_.failure != 0) return true;
    if (result == -EINTR || result == -EAGAIN) return false;
    if (result <= 0) {
      Note(result == 0 ? -1 : -result, i);
      return true;
    }
    done_[i] += static_cast<uint64_t>(result);
    return done_[i] >= requests_[i].out.size();
  }

  void Note(int failure, size_t request) {
    if (outcome_.failure == 0) outcome_ = {failure, request, done_[request]};
  }

  Ring* ring_;
  io_uring* queue_;
  int descriptor_;
  std::span<const ReadRequest> requests_;
  uint64_t alignment_;
  std::vector<uint64_t> done_;
  bool registered_;
  Outcome outcome_;
};

class UringFile final : public LocalFile {
 public:
  UringFile(const std::string& path, bool direct, uint32_t depth, bool registered)
      : LocalFile(path, direct), depth_(std::clamp(depth, 1u, kMaxDepth)), registered_(registered) {
    Ring::OfThread().Checked(path);
  }

  BufferPool* buffers() const override { return registered_ ? &PinnedBuffers::Get() : nullptr; }
  uint32_t depth() const override { return depth_; }

  void ReadMany(std::span<const ReadRequest> requests, ReadFigures* figures) const override {
    Ring& ring = Ring::OfThread();
    Flight flight(&ring, ring.Checked(name()), descriptor(), requests, alignment(), registered_);
    const Flight::Outcome outcome = flight.Fly(depth_, &figures->requests);
    if (registered_ && ring.registering_failure() != 0) refused_ = ring.registering_failure();
    if (outcome.failure != 0) Fail(requests[outcome.request], outcome);
    for (const ReadRequest& request : requests) figures->bytes += request.out.size();
  }

  std::string note() const override {
    const int refused = refused_;
    if (refused == 0) return {};
    return fmt::format("io_uring reads without registered buffers: {}{}", std::strerror(refused),
                       refused == ENOMEM ? " (see ulimit -l)" : "");
  }

 private:
  [[noreturn]] void Fail(const ReadRequest& request, const Flight::Outcome& outcome) const {
    const uint64_t left = request.out.size() - outcome.done, at = request.offset + outcome.done;
    if (outcome.failure < 0) {
      throw Error(ExitCode::kBadData, fmt::format("the file ends {} bytes early", left),
                  fmt::format("{}: byte {}", name(), at));
    }
    throw ErrnoError(outcome.failure, fmt::format("read {} bytes at byte {}", left, at), name());
  }

  uint32_t depth_;
  bool registered_;
  mutable std::atomic<int> refused_{0};
};

}  // namespace

std::shared_ptr<const Source> OpenUringFile(const std::string& path, bool direct, uint32_t depth,
                                            bool registered) {
  return std::make_shared<UringFile>(path, direct, depth, registered);
}

}  // namespace headrace::reader
