// Frames over the Unix socket itself: the parts of a frame go to the kernel from where they lie.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "probes/account/scope.h"
#include "reader/pipeline/delivery/transport_parts.h"

namespace headrace::reader {
namespace {

class SocketSender final : public Sender {
 public:
  explicit SocketSender(std::unique_ptr<Socket> socket) : socket_(std::move(socket)) {}

  void Send(const Frame& frame, uint32_t waiter) override {
    FrameHeader header = SealedHeader(frame);
    std::vector<iovec> parts = {{&header, sizeof header}};
    for (const std::span<const uint8_t>& part : frame.parts)
      parts.push_back({const_cast<uint8_t*>(part.data()), part.size()});
    socket_->Write(std::move(parts), [waiter](bool waits) {
      waits ? hr_wait_begin(waiter, HR_WAIT_OUT) : hr_wait_end();
    });
  }

  uint64_t Acknowledged() override {
    for (;;) {
      const size_t got = socket_->ReadSome({bytes_ + num_bytes_, sizeof bytes_ - num_bytes_});
      if (got == 0) return acknowledged_;
      num_bytes_ += got;
      if (num_bytes_ < sizeof bytes_) continue;
      std::memcpy(&acknowledged_, bytes_, sizeof bytes_);
      num_bytes_ = 0;
    }
  }

  void AwaitAcknowledged(uint64_t batches) override {
    while (Acknowledged() < batches) {
      if (!socket_->Read({bytes_ + num_bytes_, 1})) socket_->Gone();
      ++num_bytes_;
      if (num_bytes_ < sizeof bytes_) continue;
      std::memcpy(&acknowledged_, bytes_, sizeof bytes_);
      num_bytes_ = 0;
    }
  }

 private:
  std::unique_ptr<Socket> socket_;
  uint8_t bytes_[8];  // of an acknowledgement, as far as it came
  size_t num_bytes_ = 0;
  uint64_t acknowledged_ = 0;
};

class SocketReceiver final : public Receiver {
 public:
  SocketReceiver(std::unique_ptr<Socket> socket, int64_t pid)
      : socket_(std::move(socket)), pid_(pid) {}
  ~SocketReceiver() override {
    // The last word is owed to a producer that waits for it, for a moment.
    for (int i = 0; i < kLastTries && !FlushAcknowledged() && !socket_->PeerClosed(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  ReceivedFrame Receive(uint32_t waiter) override {
    const auto waits = [this, waiter](bool begins) {
      begins ? hr_wait_begin(waiter, HR_WAIT_IN) : hr_wait_end();
      if (!begins) FlushAcknowledged();
    };
    uint8_t bytes[sizeof(FrameHeader)];
    if (!socket_->Read(bytes, 0, waits)) socket_->Gone();
    ReceivedFrame frame;
    frame.header = ParseFrameHeader(bytes);
    // Memory for what has come, never for what a header claims.
    auto body = std::make_shared<Array<uint8_t>>();
    uint64_t have = 0;
    while (have < frame.header.body_bytes) {
      const uint64_t room = std::max<uint64_t>({last_bytes_, kFirstBytes, 2 * have});
      const uint64_t until = std::min(frame.header.body_bytes, room);
      body->resize(until);
      if (!socket_->Read({body->data() + have, until - have}, 0, waits)) socket_->Gone();
      have = until;
    }
    last_bytes_ = have;
    frame.body = {body->data(), have};
    frame.keep = std::move(body);
    return frame;
  }

  // Never waits: a producer that does not read them holds nobody up. Later ones stand for those
  // that there was no room for.
  void Acknowledge(uint64_t batches) override {
    {
      std::lock_guard lock(mutex_);
      acknowledged_ = batches;
    }
    FlushAcknowledged();
  }

  int64_t producer_pid() const override { return pid_; }
  bool has_hung_up() const override { return socket_->PeerClosed(); }

 private:
  // Whether all has been written, as far as there is room.
  bool FlushAcknowledged() {
    std::lock_guard lock(mutex_);
    for (;;) {
      if (num_bytes_ == 0) {
        if (written_ == acknowledged_) return true;
        written_ = acknowledged_;
        std::memcpy(bytes_, &written_, sizeof bytes_);
        num_bytes_ = sizeof bytes_;
      }
      const size_t sent = socket_->WriteSome({bytes_ + sizeof bytes_ - num_bytes_, num_bytes_});
      if (sent == 0) return false;
      num_bytes_ -= sent;
    }
  }

  static constexpr uint64_t kFirstBytes = 1 << 20;
  static constexpr int kLastTries = 50;
  std::unique_ptr<Socket> socket_;
  std::mutex mutex_;
  uint64_t acknowledged_ = 0, written_ = 0;
  uint8_t bytes_[8];
  size_t num_bytes_ = 0;  // of bytes_, the last ones: not written yet
  int64_t pid_;
  uint64_t last_bytes_ = 0;  // of a body: the next one is trusted to be as long
};

}  // namespace

std::unique_ptr<Sender> MakeSocketSender(std::unique_ptr<Socket> socket) {
  return std::make_unique<SocketSender>(std::move(socket));
}
std::unique_ptr<Receiver> MakeSocketReceiver(std::unique_ptr<Socket> socket, int64_t pid) {
  return std::make_unique<SocketReceiver>(std::move(socket), pid);
}

}  // namespace headrace::reader
