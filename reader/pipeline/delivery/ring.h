// Ring: bytes from one process to another through shared memory. Two memfds: a control page with
// the two positions, and the data, mapped twice in a row so that every frame is contiguous whatever
// place it begins at.
//
//   control  |written|   |read|            data |....####====....|....####====....|
//                                                    ^read   ^written  (the same pages again)
//
// A side that must wait spins for a bounded time, as the other is usually about to be done, and
// then sleeps on a futex: two processes on as many cores as are free lose nothing, and a busy
// neighbour costs a wake-up and not a time slice. Positions of the other side are checked before
// use. The memory is the user's own: mode 0600, passed by descriptor, never named in a file system.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace headrace::reader {

// In the first memfd. Written by the side named; both map it.
struct RingControl {
  alignas(64) std::atomic<uint64_t> written;  // bytes, by the producer
  std::atomic<uint32_t> producer_events;      // counts changes of the producer's fields
  std::atomic<uint32_t> consumer_waits;       // 1: the consumer sleeps on producer_events
  std::atomic<uint32_t> replaced;             // a new data memfd is on its way on the socket
  alignas(64) std::atomic<uint64_t> read;     // bytes, by the consumer
  std::atomic<uint64_t> acknowledged;         // batches, by the consumer
  std::atomic<uint32_t> consumer_events;
  std::atomic<uint32_t> producer_waits;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(RingControl) == 128);

// A mapping of a memfd, `times` in a row.
class SharedMapping {
 public:
  // A new memfd of `bytes` (a multiple of the page) whose size can no longer change. Throws Error
  // kResources.
  static std::shared_ptr<SharedMapping> Create(uint64_t bytes, int times);
  // Takes the descriptor. Throws Error kBadData unless it is a memfd of `bytes` whose size cannot
  // change.
  static std::shared_ptr<SharedMapping> Open(int fd, uint64_t bytes, int times);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  uint8_t* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }  // of the memfd
  int fd() const { return fd_; }

 private:
  SharedMapping(int fd, uint64_t bytes, int times);
  int fd_;
  uint64_t bytes_;
  int times_;
  uint8_t* data_ = nullptr;
};

constexpr uint64_t kRingControlBytes = 65536;  // whole pages, whatever their size
constexpr uint64_t kMinRingBytes = 65536;
constexpr uint64_t kMaxRingBytes = uint64_t{4} << 30;

// Returns once `ready` gives true: after a bounded spin, by sleeping while `events` stands still.
// `idle` is called about every 100 ms of sleep, and ends the wait by throwing.
void AwaitRing(std::atomic<uint32_t>* events, std::atomic<uint32_t>* waits,
               const std::function<bool()>& ready, const std::function<void()>& idle);
// Says that a field changed, to a side that may sleep.
void NotifyRing(std::atomic<uint32_t>* events, std::atomic<uint32_t>* waits);

}  // namespace headrace::reader
