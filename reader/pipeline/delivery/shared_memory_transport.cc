// Frames through a ring in shared memory: one copy in, and none out: whoever decodes them takes
// what lies there, and the producer has the room back once nobody holds it. Frames have no checksum
// here. The socket passes the memory and shows when the other side dies.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "probes/account/scope.h"
#include "reader/pipeline/delivery/ring.h"
#include "reader/pipeline/delivery/transport_parts.h"

namespace headrace::reader {
namespace {

// On the socket, with the descriptors of control and data (the first time) or of data.
struct RingMessage {
  uint64_t magic = kMagic;
  uint64_t data_bytes = 0;
  static constexpr uint64_t kMagic = 0x474e4952'4d485248;  // "HRHMRING"
};

class RingSender final : public Sender {
 public:
  RingSender(std::unique_ptr<Socket> socket, uint64_t ring_bytes)
      : socket_(std::move(socket)),
        least_bytes_(ring_bytes),
        control_memory_(SharedMapping::Create(kRingControlBytes, 1)),
        control_(reinterpret_cast<RingControl*>(control_memory_->data())) {}

  uint64_t Send(const Frame& frame, uint32_t waiter) override {
    MakeRoomFor(frame.bytes(), waiter);
    const uint64_t written = control_->written.load(std::memory_order_relaxed);
    CopyFrame(frame, data_->data() + written % data_->bytes(), false);
    control_->written.store(written + frame.bytes(), std::memory_order_release);
    NotifyRing(&control_->producer_events, &control_->consumer_waits);
    return frame.bytes();
  }

  uint64_t Acknowledged() override { return control_->acknowledged.load(); }

  void AwaitAcknowledged(uint64_t batches) override {
    Await([&] { return Acknowledged() >= batches; });
  }

 private:
  void Await(const std::function<bool()>& ready) {
    wait_.Await(&control_->consumer_events, &control_->producer_waits, ready, [&] {
      socket_->CheckStopped();
      if (socket_->PeerClosed() && !ready()) socket_->Gone();
    });
  }

  // Bytes in the ring that the consumer has not given back.
  uint64_t Held() const {
    const uint64_t held = control_->written.load(std::memory_order_relaxed) -
                          control_->read.load(std::memory_order_acquire);
    if (held > data_->bytes())
      throw Error(ExitCode::kFailure, fmt::format("{} broke the ring", socket_->peer()));
    return held;
  }

  void MakeRoomFor(uint64_t bytes, uint32_t waiter) {
    if (!data_ || bytes > data_->bytes()) Replace(bytes, waiter);
    const auto ready = [&] { return data_->bytes() - Held() >= bytes; };
    if (ready()) return;
    account::WaitScope wait(waiter, HR_WAIT_OUT);
    Await(ready);
  }

  // A larger ring, once the old one is empty.
  void Replace(uint64_t bytes, uint32_t waiter) {
    // Four frames: one being written, one being read, two to even out.
    auto data = SharedMapping::Create(
        std::min(std::bit_ceil(std::max(least_bytes_, 4 * bytes)), kMaxRingBytes), 2);
    const RingMessage message{.data_bytes = data->bytes()};
    const std::span<const uint8_t> text{reinterpret_cast<const uint8_t*>(&message), sizeof message};
    if (!data_) {
      const int fds[] = {control_memory_->fd(), data->fd()};
      socket_->WriteWithDescriptors(text, fds);
    } else {
      {
        account::WaitScope wait(waiter, HR_WAIT_OUT);
        Await([&] { return Held() == 0; });
      }
      const int fds[] = {data->fd()};
      socket_->WriteWithDescriptors(text, fds);
      control_->replaced.fetch_add(1);
      NotifyRing(&control_->producer_events, &control_->consumer_waits);
    }
    data_ = std::move(data);
  }

  std::unique_ptr<Socket> socket_;
  uint64_t least_bytes_;
  std::shared_ptr<SharedMapping> control_memory_, data_;
  RingControl* control_;
  RingWait wait_;
};

// What was received and is still held. The producer has the room of a frame back once it and all
// before it are let go. Thread-safe.
class HeldFrames {
 public:
  explicit HeldFrames(std::shared_ptr<SharedMapping> control_memory)
      : control_memory_(std::move(control_memory)),
        control_(reinterpret_cast<RingControl*>(control_memory_->data())) {}

  RingControl* control() const { return control_; }
  // Of the frame behind the last one; `until`: where the next one begins.
  void Hold(uint64_t until) {
    std::lock_guard lock(mutex_);
    frames_.push_back({until, true});
  }
  void Release(uint64_t until) {
    {
      std::lock_guard lock(mutex_);
      for (Frame& frame : frames_) {
        if (frame.until != until) continue;
        frame.is_held = false;
        break;
      }
      if (frames_.front().is_held) return;
      uint64_t read = 0;
      for (; !frames_.empty() && !frames_.front().is_held; frames_.pop_front())
        read = frames_.front().until;
      control_->read.store(read, std::memory_order_release);
    }
    NotifyRing(&control_->consumer_events, &control_->producer_waits);
  }

 private:
  struct Frame {
    uint64_t until;
    bool is_held;
  };
  const std::shared_ptr<SharedMapping> control_memory_;
  RingControl* const control_;
  std::mutex mutex_;
  std::deque<Frame> frames_;
};

// One of them; keeps the memory it lies in, too.
class HeldFrame {
 public:
  HeldFrame(std::shared_ptr<HeldFrames> frames, std::shared_ptr<SharedMapping> data, uint64_t until)
      : frames_(std::move(frames)), data_(std::move(data)), until_(until) {
    frames_->Hold(until_);
  }
  ~HeldFrame() { frames_->Release(until_); }
  HeldFrame(const HeldFrame&) = delete;
  HeldFrame& operator=(const HeldFrame&) = delete;

 private:
  const std::shared_ptr<HeldFrames> frames_;
  const std::shared_ptr<SharedMapping> data_;
  const uint64_t until_;
};

class RingReceiver final : public Receiver {
 public:
  RingReceiver(std::unique_ptr<Socket> socket, int64_t pid)
      : socket_(std::move(socket)), pid_(pid) {}

  ReceivedFrame Receive(uint32_t waiter) override {
    if (!data_) OpenFirst(waiter);
    for (;;) {
      uint64_t there = 0;
      const auto ready = [&] {
        there = control_->written.load(std::memory_order_acquire) - read_;
        return there > 0 || control_->replaced.load() != replaced_;
      };
      if (!ready()) {
        account::WaitScope wait(waiter, HR_WAIT_IN);
        Await(ready);
      }
      // Looked at after `written`: bytes that it counts may lie in the next ring. A ring is
      // replaced once all of it was read.
      if (control_->replaced.load() != replaced_) {
        OpenNext();
        continue;
      }
      if (there > data_->bytes() || there < sizeof(FrameHeader)) Broken();
      const uint8_t* from = data_->data() + read_ % data_->bytes();
      ReceivedFrame frame;
      frame.header = ParseFrameHeader({from, sizeof(FrameHeader)});
      if (frame.header.body_bytes > there - sizeof(FrameHeader)) Broken();
      frame.body = {from + sizeof(FrameHeader), frame.header.body_bytes};
      read_ += sizeof(FrameHeader) + frame.header.body_bytes;
      frame.keep = std::make_shared<HeldFrame>(held_, data_, read_);
      frame.wire_bytes = sizeof frame.header + frame.header.body_bytes;
      frame.memory = FrameMemory::kShared;
      return frame;
    }
  }

  void Acknowledge(uint64_t batches) override {
    control_->acknowledged.store(batches);
    NotifyRing(&control_->consumer_events, &control_->producer_waits);
  }

  int64_t producer_pid() const override { return pid_; }
  bool has_hung_up() const override { return socket_->PeerClosed(); }

 private:
  [[noreturn]] void Broken() const {
    throw Error(ExitCode::kBadData, fmt::format("{} broke the ring", socket_->peer()));
  }

  void Await(const std::function<bool()>& ready) {
    wait_.Await(&control_->producer_events, &control_->consumer_waits, ready, [&] {
      socket_->CheckStopped();
      // What it wrote before it died still counts.
      if (socket_->PeerClosed() && !ready()) socket_->Gone();
    });
  }

  RingMessage ReadMessage(std::span<int> fds) {
    RingMessage message;
    if (!socket_->ReadWithDescriptors({reinterpret_cast<uint8_t*>(&message), sizeof message}, fds))
      socket_->Gone();
    return message;
  }

  void OpenFirst(uint32_t waiter) {
    int fds[2];
    RingMessage message;
    {
      account::WaitScope wait(waiter, HR_WAIT_IN);
      message = ReadMessage(fds);
    }
    try {
      held_ = std::make_shared<HeldFrames>(SharedMapping::Open(fds[0], kRingControlBytes, 1));
    } catch (const Error&) {
      if (fds[1] >= 0) close(fds[1]);
      throw;
    }
    data_ = SharedMapping::Open(fds[1], message.data_bytes, 2);
    if (message.magic != RingMessage::kMagic) Broken();
    control_ = held_->control();
  }

  void OpenNext() {
    ++replaced_;
    int fds[1];
    const RingMessage message = ReadMessage(fds);
    auto data = SharedMapping::Open(fds[0], message.data_bytes, 2);
    if (message.magic != RingMessage::kMagic) Broken();
    data_ = std::move(data);
  }

  std::unique_ptr<Socket> socket_;
  int64_t pid_;
  RingWait wait_;
  std::shared_ptr<SharedMapping> data_;
  RingControl* control_ = nullptr;
  std::shared_ptr<HeldFrames> held_;
  uint64_t read_ = 0;  // up to the next frame
  uint32_t replaced_ = 0;
};

}  // namespace

std::unique_ptr<Sender> MakeRingSender(std::unique_ptr<Socket> socket, uint64_t ring_bytes) {
  return std::make_unique<RingSender>(std::move(socket), ring_bytes);
}
std::unique_ptr<Receiver> MakeRingReceiver(std::unique_ptr<Socket> socket, int64_t pid) {
  return std::make_unique<RingReceiver>(std::move(socket), pid);
}

}  // namespace headrace::reader
