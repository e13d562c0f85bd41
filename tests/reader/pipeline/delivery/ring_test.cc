// The ring of shared memory: frames are read from the ring that they were written to, and stay
// there as long as somebody has a batch of them.
#include "reader/pipeline/delivery/ring.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "reader/pipeline/delivery/frame.h"
#include "reader/pipeline/delivery/socket.h"
#include "reader/pipeline/delivery/transport_parts.h"
#include "tests/reader/pipeline/delivery/random_batch.h"
#include "tests/reader/pipeline/delivery/transport_fixture.h"

namespace headrace::reader {
namespace {

// What the consumer sees when the producer, with all of the ring given back, replaced it and wrote
// into the next before the consumer looked again.
TEST(Ring, AFrameWrittenAfterAReplacementIsReadFromTheNextRing) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  Socket producer(Channel(fds[0]), "the consumer", {});
  auto receiver =
      MakeRingReceiver(std::make_unique<Socket>(Channel(fds[1]), "the producer", nullptr), 1);
  const auto control_memory = SharedMapping::Create(kRingControlBytes, 1);
  auto* control = reinterpret_cast<RingControl*>(control_memory->data());
  const auto first = SharedMapping::Create(65536, 2), next = SharedMapping::Create(131072, 2);
  const auto announce = [&](const SharedMapping& data, std::span<const int> descriptors) {
    const uint64_t message[] = {0x474e4952'4d485248, data.bytes()};
    producer.WriteWithDescriptors({reinterpret_cast<const uint8_t*>(message), sizeof message},
                                  descriptors);
  };
  const auto write = [&](const SharedMapping& data, uint64_t number) {
    FrameHeader header;
    header.kind = static_cast<uint8_t>(FrameKind::kEnd);
    header.sequence = number;
    const uint64_t written = control->written;
    std::memcpy(data.data() + written % data.bytes(), &header, sizeof header);
    control->written = written + sizeof header;
  };
  const int both[] = {control_memory->fd(), first->fd()};
  announce(*first, both);
  write(*first, 11);
  EXPECT_EQ(receiver->Receive(UINT32_MAX).header.sequence, 11u);
  const int one[] = {next->fd()};
  announce(*next, one);
  ++control->replaced;
  write(*next, 22);
  EXPECT_EQ(receiver->Receive(UINT32_MAX).header.sequence, 22u);
  write(*next, 33);
  EXPECT_EQ(receiver->Receive(UINT32_MAX).header.sequence, 33u);
}

// A batch borrows from the ring: its frame is not written over while somebody has it, and the room
// of those before it comes back, in whatever order they are let go.
TEST(Ring, ABatchStaysAsItIsUntilItIsLetGo) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  std::mt19937_64 random(TestSeed());
  constexpr uint64_t kBatches = 400;
  std::vector<TensorBatch> sent;
  for (uint64_t i = 0; i < kBatches; ++i)
    sent.push_back(
        RandomBatch({.rows = 100 + random() % 100, .dense = 3, .sparse = 2, .longest = 4}, random));
  std::thread producer([&] {
    const auto sender =
        MakeRingSender(std::make_unique<Socket>(Channel(fds[0]), "the consumer", nullptr), 65536);
    FrameEncoder encoder;
    for (const TensorBatch& batch : sent)
      for (const Frame& frame : encoder.Encode(batch)) sender->Send(frame, UINT32_MAX);
    sender->Send(encoder.End(true), UINT32_MAX);
    sender->AwaitAcknowledged(1);
  });
  auto receiver =
      MakeRingReceiver(std::make_unique<Socket>(Channel(fds[1]), "the producer", nullptr), 1);
  FrameDecoder decoder;
  struct Held {
    size_t number;
    TensorBatch batch;
  };
  std::vector<Held> held;
  size_t number = 0, lent = 0;
  const auto let_go = [&] {
    // The oldest stands in the way of all others' room.
    const size_t at = held.front().number + 3 < number ? 0 : random() % held.size();
    const TensorBatch& batch = held[at].batch;
    const TensorBatch& original = sent[held[at].number];
    EXPECT_TRUE(std::equal(batch.sparse.values.begin(), batch.sparse.values.end(),
                           original.sparse.values.begin(), original.sparse.values.end()));
    EXPECT_TRUE(std::equal(batch.dense.begin(), batch.dense.end(), original.dense.begin(),
                           original.dense.end()));
    held.erase(held.begin() + static_cast<ptrdiff_t>(at));
  };
  while (!decoder.ended()) {
    const ReceivedFrame frame = receiver->Receive(UINT32_MAX);
    EXPECT_FALSE(IsHashed(frame.header));
    auto batch = decoder.Decode(frame.header, frame.body, frame.keep, frame.memory);
    if (!batch) continue;
    lent += batch->is_lent;
    if (random() % 4 == 0) OwnMemory(&*batch);  // for ever, then
    held.push_back({number++, std::move(*batch)});
    while (!held.empty() && (held.front().number + 3 < number || held.size() > random() % 3))
      let_go();
  }
  while (!held.empty()) let_go();
  receiver->Acknowledge(1);
  producer.join();
  EXPECT_EQ(number, kBatches);
  EXPECT_EQ(lent, kBatches);
  receiver.reset();  // what it gave out may live longer
}

// Who keeps a batch until others come has to copy it: what it left in the ring would stop them.
TEST(Ring, OwnedBatchesHoldNoRoom) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  std::mt19937_64 random(TestSeed());
  const TensorBatch batch = RandomBatch({.rows = 500, .dense = 8, .sparse = 2}, random);
  constexpr int kBatches = 100;  // many rings full
  std::thread producer([&] {
    const auto sender =
        MakeRingSender(std::make_unique<Socket>(Channel(fds[0]), "the consumer", nullptr), 65536);
    FrameEncoder encoder;
    for (int i = 0; i < kBatches; ++i)
      for (const Frame& frame : encoder.Encode(batch)) sender->Send(frame, UINT32_MAX);
    sender->AwaitAcknowledged(1);
  });
  auto receiver =
      MakeRingReceiver(std::make_unique<Socket>(Channel(fds[1]), "the producer", nullptr), 1);
  FrameDecoder decoder;
  std::vector<TensorBatch> kept;
  while (kept.size() < kBatches) {
    const ReceivedFrame frame = receiver->Receive(UINT32_MAX);
    auto got = decoder.Decode(frame.header, frame.body, frame.keep, frame.memory);
    if (!got) continue;
    OwnMemory(&*got);
    kept.push_back(std::move(*got));
  }
  for (const TensorBatch& one : kept)
    EXPECT_TRUE(std::equal(one.dense.begin(), one.dense.end(), batch.dense.begin()));
  receiver->Acknowledge(1);
  producer.join();
}

}  // namespace
}  // namespace headrace::reader
