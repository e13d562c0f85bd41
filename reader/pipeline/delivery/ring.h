// Ring: bytes from one process to another through shared memory. Two memfds: a control page with
// the two positions, and the data, mapped twice in a row so that every frame is contiguous whatever
// place it begins at.
//
//   control  |written|   |read|            data |....####====....|....####====....|
//                                                    ^read   ^written  (the same pages again)
//
// A side that must wait spins for a bounded time, because the other side is usually about to
// finish, and then sleeps on a futex. So two processes lose nothing while cores are free, and on
// busy cores a wait costs a wake-up instead of a time slice. Positions of the other side are
// checked before use. The memory is the user's own: mode 0600, passed by descriptor, never named in
// a file system.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace headrace::reader {

// The control page, in the first memfd. Both sides map it; each field is written by the side named.
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

// How one side of a ring waits for the other. It spins, then sleeps. It spins for long where frames
// come so fast that a sleep and a wake-up would cost more, and hardly at all after a spin that was
// in vain. Of one thread at a time.
class RingWait {
 public:
  // Returns once `ready` returns true; sleeps while `events` does not change. `idle` is called
  // about every 100 ms of sleep, and ends the wait by throwing.
  void Await(std::atomic<uint32_t>* events, std::atomic<uint32_t>* waits,
             const std::function<bool()>& ready, const std::function<void()>& idle);

 private:
  void Sleep(std::atomic<uint32_t>* events, std::atomic<uint32_t>* waits,
             const std::function<bool()>& ready, const std::function<void()>& idle);

  bool was_short_ = true;
};
// Tells the other side, which may be asleep, that a field changed.
void NotifyRing(std::atomic<uint32_t>* events, std::atomic<uint32_t>* waits);

}  // namespace headrace::reader
