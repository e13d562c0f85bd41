// The two ways of carrying frames once both sides have greeted each other; for connect.cc.
#pragma once
#include <cstdint>
#include <memory>

#include "reader/pipeline/delivery/socket.h"
#include "reader/pipeline/delivery/transport.h"

namespace headrace::reader {

std::unique_ptr<Sender> MakeSocketSender(std::unique_ptr<Socket> socket);
std::unique_ptr<Receiver> MakeSocketReceiver(std::unique_ptr<Socket> socket, int64_t pid);
std::unique_ptr<Sender> MakeRingSender(std::unique_ptr<Socket> socket, uint64_t ring_bytes);
std::unique_ptr<Receiver> MakeRingReceiver(std::unique_ptr<Socket> socket, int64_t pid);

}  // namespace headrace::reader
