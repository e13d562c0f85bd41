// ReceiveBatch: one frame from a producer, decoded, in the accounts of who receives it.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "reader/batch/tensor_batch.h"
#include "reader/pipeline/delivery/transport.h"

namespace headrace::reader {

// Operator accounts of one receiver: the wait for a frame and its bytes; the decoding of it.
struct ReceiveAccounts {
  uint32_t receive = 0, deserialize = 0;
};

// Waits for the next frame of `from` and decodes it: a batch, or nothing for a frame of another
// kind. Adds the frame's bytes to `*bytes`. The batch may borrow memory of the frame and keeps it.
// Throws what Receiver::Receive and FrameDecoder::Decode throw.
std::optional<TensorBatch> ReceiveBatch(Receiver* from, FrameDecoder* decoder,
                                        const ReceiveAccounts& accounts,
                                        std::atomic<uint64_t>* bytes);

}  // namespace headrace::reader
