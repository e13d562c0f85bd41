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
#include "reader/pipeline/delivery/wire_block.h"

namespace headrace::reader {
namespace {

// In one step: they fit into a near cache, and a smaller one costs more calls and wake-ups than it
// saves.
constexpr uint64_t kHashedBytes = 512 << 10;

class SocketSender final : public Sender {
 public:
  SocketSender(std::unique_ptr<Socket> socket, bool is_hashed, uint32_t codecs)
      : socket_(std::move(socket)), is_hashed_(is_hashed), codecs_(codecs) {}

  uint64_t Send(const Frame& frame, uint32_t waiter) override {
    const auto waits = [waiter](bool begins) {
      begins ? hr_wait_begin(waiter, HR_WAIT_OUT) : hr_wait_end();
    };
    FrameHeader header = frame.header;
    const bool is_packed =
        codec_ != WireCodec::kRaw && header.kind == static_cast<uint8_t>(FrameKind::kBatch);
    header.flags |= is_hashed_ ? kFrameTrailer : kFrameUnhashed;
    if (is_packed) header.flags |= kFramePacked;
    if (!is_hashed_ && !is_packed) {
      std::vector<iovec> parts = {{&header, sizeof header}};
      for (const std::span<const uint8_t>& part : frame.parts) AddTo(&parts, part);
      socket_->Write(std::move(parts), waits);
      return frame.bytes();
    }
    Pieces pieces(this, waits, header);
    if (is_packed) {
      SendBlocks(frame, &pieces);
    } else {
      for (std::span<const uint8_t> part : frame.parts) {
        while (!part.empty()) {
          const auto piece = part.first(std::min(part.size(), pieces.room()));
          part = part.subspan(piece.size());
          pieces.Add(piece);
          if (pieces.room() == 0) pieces.Flush();
        }
      }
    }
    return pieces.End();
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
    return codec == WireCodec::kRaw || (codecs_ & WireBit(codec)) != 0;
  }
  void SetCodec(WireCodec codec, uint32_t packer) override {
    codec_ = codec;
    packer_account_ = packer;
  }
  std::optional<int64_t> network_ns() const override { return NetworkNs(socket_->fd()); }

 private:
  static void AddTo(std::vector<iovec>* parts, std::span<const uint8_t> bytes) {
    parts->push_back({const_cast<uint8_t*>(bytes.data()), bytes.size()});
  }

  // A frame on its way: what was hashed is in a near cache when the system copies it.
  class Pieces {
   public:
    Pieces(SocketSender* sender, std::function<void(bool)> waits, const FrameHeader& header)
        : sender_(sender),
          waits_(std::move(waits)),
          header_(header),
          hasher_(ChecksumSeed(header)),
          bytes_(sizeof header) {
      AddTo(&parts_, {reinterpret_cast<const uint8_t*>(&header_), sizeof header_});
    }
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;

    size_t room() const { return kHashedBytes - gathered_; }
    // `bytes` stay as they are until Flush.
    void Add(std::span<const uint8_t> bytes) {
      if (sender_->is_hashed_) hasher_.Add(bytes);
      AddTo(&parts_, bytes);
      gathered_ += bytes.size();
    }
    void Flush() {
      sender_->socket_->Write(std::exchange(parts_, {}), waits_);
      bytes_ += std::exchange(gathered_, 0);
    }
    // With the checksum. The bytes of all.
    uint64_t End() {
      uint64_t checksum = 0;
      if (sender_->is_hashed_) {
        checksum = hasher_.Hash();
        AddTo(&parts_, {reinterpret_cast<const uint8_t*>(&checksum), sizeof checksum});
        bytes_ += sizeof checksum;
      }
      Flush();
      return bytes_;
    }

   private:
    SocketSender* const sender_;
    const std::function<void(bool)> waits_;
    const FrameHeader header_;
    FrameHasher hasher_;
    std::vector<iovec> parts_;
    size_t gathered_ = 0;
    uint64_t bytes_;
  };

  void SendBlocks(const Frame& frame, Pieces* pieces) {
    uint64_t stored_bytes = 0;
    const auto send = [&](std::span<const uint8_t> plain) {
      WireBlock block;
      std::span<const uint8_t> stored;
      {
        account::OperatorScope scope(packer_account_);
        block = packer_.Pack(plain, codec_, &stored);
      }
      pieces->Add({reinterpret_cast<const uint8_t*>(&block), sizeof block});
      pieces->Add(stored);
      pieces->Flush();
      stored_bytes += sizeof block + stored.size();
    };
    // Long parts go from where they lie, short ones together. All begin at a multiple of 64 of the
    // body, and so does what is gathered: integers are whole.
    gathered_.clear();
    const auto flush = [&] {
      if (!gathered_.empty()) send({gathered_.data(), gathered_.size()});
      gathered_.clear();
    };
    for (std::span<const uint8_t> part : frame.parts) {
      if (part.size() >= kLongPart) flush();
      while (part.size() >= kLongPart) {
        const size_t whole = part.size() / kFrameAlignment * kFrameAlignment;
        const auto piece = part.first(std::min<size_t>(whole, kWireBlockBytes));
        send(piece);
        part = part.subspan(piece.size());
      }
      if (gathered_.size() + part.size() > kWireBlockBytes) flush();
      gathered_.insert(gathered_.end(), part.begin(), part.end());
    }
    flush();
    hr_done(packer_account_, 1, frame.header.rows, frame.header.body_bytes, stored_bytes);
  }

  static constexpr size_t kLongPart = 32 << 10;
  std::unique_ptr<Socket> socket_;
  bool is_hashed_;
  uint32_t codecs_;  // a bit for each that the consumer takes
  WireCodec codec_ = WireCodec::kRaw;
  uint32_t packer_account_ = UINT32_MAX;
  BlockPacker packer_;
  std::vector<uint8_t> gathered_;
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
    const auto read = [&](std::span<uint8_t> to) {
      if (!socket_->Read(to, 0, waits)) socket_->Gone();
      if (IsHashed(frame.header)) hasher.Add(to);
      frame.wire_bytes += to.size();
    };
    frame.wire_bytes = sizeof bytes;
    // Memory for what has come, never for what a header claims.
    auto body = std::make_shared<Array<uint8_t>>();
    uint64_t have = 0;
    while (have < frame.header.body_bytes) {
      WireBlock block;
      const uint64_t left = frame.header.body_bytes - have;
      if (IsPacked(frame.header)) {
        read({reinterpret_cast<uint8_t*>(&block), sizeof block});
        BlockUnpacker::Check(block, left);
      }
      if (have + std::max<uint64_t>(block.plain, 1) > body->size())
        body->resize(
            std::min(frame.header.body_bytes,
                     std::max<uint64_t>({last_bytes_, kFirstBytes, 2 * have, have + block.plain})));
      const uint64_t most = IsHashed(frame.header) ? kHashedBytes : left;
      const uint64_t step =
          IsPacked(frame.header) ? block.plain : std::min(most, body->size() - have);
      const std::span<uint8_t> plain(body->data() + have, step);
      if (BlockUnpacker::IsPlain(block)) {
        read(plain);
      } else {
        read(unpacker_.Room(block));
        unpacker_.Unpack(block, plain);
      }
      have += step;
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
    if (HasTrailer(frame.header)) frame.wire_bytes += sizeof checksum;
    frame.header.flags &= static_cast<uint8_t>(~kFramePacked);
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
  BlockUnpacker unpacker_;
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
