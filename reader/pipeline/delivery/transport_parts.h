// The two ways of carrying frames once both sides have greeted each other; for connect.cc.
#pragma once
#include <cstdint>
#include <memory>

#include "reader/pipeline/delivery/socket.h"
#include "reader/pipeline/delivery/transport.h"

namespace headrace::reader {

// `is_hashed`: the socket may damage bytes, so that frames have checksums; one without is refused.
// `codecs`: a bit for each that the consumer can unpack.
std::unique_ptr<Sender> MakeSocketSender(std::unique_ptr<Socket> socket, bool is_hashed,
                                         uint32_t codecs = 0);
std::unique_ptr<Receiver> MakeSocketReceiver(std::unique_ptr<Socket> socket, int64_t pid,
                                             bool is_hashed);
std::unique_ptr<Sender> MakeRingSender(std::unique_ptr<Socket> socket, uint64_t ring_bytes);
std::unique_ptr<Receiver> MakeRingReceiver(std::unique_ptr<Socket> socket, int64_t pid);

}  // namespace headrace::reader
