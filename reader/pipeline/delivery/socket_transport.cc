// Frames over the Unix socket itself: the parts of a frame go to the kernel from where they lie.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "probes/account/scope.h"
#include "reader/pipeline/delivery/frame_hash.h"
#include "reader/pipeline/delivery/frame_layout.h"
#include "reader/pipeline/delivery/tcp_socket.h"
#include "reader/pipeline/delivery/transport_parts.h"

namespace headrace::reader {
namespace {

// In one step: they fit into a near cache, and a smaller one costs more calls and wake-ups than it
// saves.
constexpr uint64_t kHashedBytes = 512 << 10;

class SocketSender final : public Sender {
 public:
  SocketSender(std::unique_ptr<Socket> socket, bool is_hashed, uint32_t codecs)
      : socket_(std::move(socket)), is_hashed_(is_hashed), codecs_(codecs) {}

  void Send(const Frame& frame, uint32_t waiter) override {
    const auto waits = [waiter](bool begins) {
      begins ? hr_wait_begin(waiter, HR_WAIT_OUT) : hr_wait_end();
    };
    FrameHeader header = frame.header;
    header.flags |= is_hashed_ ? kFrameTrailer : kFrameUnhashed;
    std::vector<iovec> parts = {{&header, sizeof header}};
    if (!is_hashed_) {
      for (const std::span<const uint8_t>& part : frame.parts) AddTo(&parts, part);
      return socket_->Write(std::move(parts), waits);
    }
    // What was hashed is in a near cache when the system copies it.
    FrameHasher hasher(ChecksumSeed(header));
    size_t gathered = 0;
    for (std::span<const uint8_t> part : frame.parts) {
      while (!part.empty()) {
        const auto piece = part.first(std::min(part.size(), kHashedBytes - gathered));
        part = part.subspan(piece.size());
        hasher.Add(piece);
        AddTo(&parts, piece);
        gathered += piece.size();
        if (gathered < kHashedBytes) continue;
        socket_->Write(std::exchange(parts, {}), waits);
        gathered = 0;
      }
    }
    uint64_t checksum = hasher.Hash();
    AddTo(&parts, {reinterpret_cast<const uint8_t*>(&checksum), sizeof checksum});
    socket_->Write(std::move(parts), waits);
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

  bool Takes(WireCodec codec) const override {
    return (codecs_ >> static_cast<int>(codec) & 1) != 0;
  }
  std::optional<int64_t> network_ns() const override { return NetworkNs(socket_->fd()); }

 private:
  static void AddTo(std::vector<iovec>* parts, std::span<const uint8_t> bytes) {
    parts->push_back({const_cast<uint8_t*>(bytes.data()), bytes.size()});
  }

  std::unique_ptr<Socket> socket_;
  bool is_hashed_;
  uint32_t codecs_;
  uint8_t bytes_[8];  // of an acknowledgement, as far as it came
  size_t num_bytes_ = 0;
  uint64_t acknowledged_ = 0;
};

class SocketReceiver final : public Receiver {
 public:
  SocketReceiver(std::unique_ptr<Socket> socket, int64_t pid, bool is_hashed)
      : socket_(std::move(socket)), is_hashed_(is_hashed), pid_(pid) {
    if (is_hashed_) socket_->SetGathers();
  }
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
    if (is_hashed_ && !IsHashed(frame.header))
      throw Error(ExitCode::kBadData, "a frame came over TCP without a checksum");
    FrameHasher hasher(ChecksumSeed(frame.header));
    // Memory for what has come, never for what a header claims.
    auto body = std::make_shared<Array<uint8_t>>();
    uint64_t have = 0;
    while (have < frame.header.body_bytes) {
      if (have == body->size())
        body->resize(std::min(frame.header.body_bytes,
                              std::max<uint64_t>({last_bytes_, kFirstBytes, 2 * have})));
      const uint64_t until = IsHashed(frame.header)
                                 ? std::min<uint64_t>(body->size(), have + kHashedBytes)
                                 : body->size();
      if (!socket_->Read({body->data() + have, until - have}, 0, waits)) socket_->Gone();
      if (IsHashed(frame.header)) hasher.Add({body->data() + have, until - have});
      have = until;
    }
    uint64_t checksum = frame.header.checksum;
    if (HasTrailer(frame.header) &&
        !socket_->Read({reinterpret_cast<uint8_t*>(&checksum), sizeof checksum}, 0, waits))
      socket_->Gone();
    if (IsHashed(frame.header) && hasher.Hash() != checksum)
      throw Error(ExitCode::kBadData,
                  fmt::format("the checksum of frame {} differs: it was damaged on its way",
                              frame.header.sequence));
    last_bytes_ = have;
    frame.body = {body->data(), have};
    frame.keep = std::move(body);
    frame.memory = FrameMemory::kChecked;
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
  bool is_hashed_;
  std::mutex mutex_;
  uint64_t acknowledged_ = 0, written_ = 0;
  uint8_t bytes_[8];
  size_t num_bytes_ = 0;  // of bytes_, the last ones: not written yet
  int64_t pid_;
  uint64_t last_bytes_ = 0;  // of a body: the next one is trusted to be as long
};

}  // namespace

std::unique_ptr<Sender> MakeSocketSender(std::unique_ptr<Socket> socket, bool is_hashed,
                                         uint32_t codecs) {
  return std::make_unique<SocketSender>(std::move(socket), is_hashed, codecs);
}
std::unique_ptr<Receiver> MakeSocketReceiver(std::unique_ptr<Socket> socket, int64_t pid,
                                             bool is_hashed) {
  return std::make_unique<SocketReceiver>(std::move(socket), pid, is_hashed);
}

}  // namespace headrace::reader
