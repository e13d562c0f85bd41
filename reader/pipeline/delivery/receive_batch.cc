#include "reader/pipeline/delivery/receive_batch.h"

#include "probes/account/account.h"
#include "probes/account/scope.h"

namespace headrace::reader {

std::optional<TensorBatch> ReceiveBatch(Receiver* from, FrameDecoder* decoder,
                                        const ReceiveAccounts& accounts,
                                        std::atomic<uint64_t>* bytes) {
  account::OperatorScope scope(accounts.receive);
  const ReceivedFrame frame = from->Receive(accounts.receive);
  const uint64_t frame_bytes = sizeof frame.header + frame.body.size();
  *bytes += frame.wire_bytes;
  const bool is_batch = frame.header.kind == static_cast<uint8_t>(FrameKind::kBatch);
  scope.Done(is_batch, frame.header.rows, frame.wire_bytes, frame_bytes);
  account::OperatorScope decoding(accounts.deserialize);
  std::optional<TensorBatch> batch =
      decoder->Decode(frame.header, frame.body, frame.keep, frame.memory);
  if (batch) decoding.Done(batch->rows, frame_bytes, batch->MemoryBytes());
  return batch;
}

}  // namespace headrace::reader
