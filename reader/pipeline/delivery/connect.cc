#include "reader/pipeline/delivery/connect.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "reader/pipeline/delivery/socket.h"
#include "reader/pipeline/delivery/transport_parts.h"

namespace headrace::reader {
namespace {

constexpr int64_t kAnswerNs = 10'000'000'000;
// Time that a producer has to greet after it connected. While one says nothing, the others wait.
constexpr int64_t kHelloNs = 1'000'000'000;

template <typename T>
std::span<uint8_t> BytesOf(T* value) {
  return {reinterpret_cast<uint8_t*>(value), sizeof *value};
}

// What an answer says against the producer; empty when it is welcome.
std::string RefusalText(const Greeting& answer, const DeliveryAddress& address) {
  const Greeting ours;
  if (std::memcmp(answer.magic, ours.magic, sizeof ours.magic) != 0)
    return "what listens there is not a headrace consumer";
  switch (answer.refusal) {
    case kWelcome:
      return "";
    case kOtherVersion:
      return fmt::format("the consumer speaks version {} of the delivery, this headrace {}",
                         answer.version, ours.version);
    case kOtherKind:
      return fmt::format("the consumer listens for {}, not {}",
                         answer.kind == static_cast<uint32_t>(DeliveryKind::kShm) ? "shm" : "unix",
                         address.kind == DeliveryKind::kShm ? "shm" : "unix");
    case kEnough:
      return "the consumer has all the producers it waited for";
    default:
      return fmt::format("the consumer refuses for reason {}", answer.refusal);
  }
}

std::string RefusalFix(const Greeting& answer) {
  switch (answer.refusal) {
    case kOtherVersion:
      return "use the same headrace on both sides";
    case kOtherKind:
      return "write the same address on both sides";
    case kEnough:
      return "start it with --producers N";
    default:
      return "";
  }
}

}  // namespace

std::unique_ptr<Sender> ConnectSender(const DeliveryAddress& address, SenderOptions options) {
  const std::string where = FormatDeliveryAddress(address);
  const sockaddr_un name = SocketName(address.path);
  const int fd = NewSocket(where);
  auto socket = std::make_unique<Socket>(fd, fmt::format("the consumer at {}", where),
                                         std::move(options.stopped));
  // A batch is a megabyte; the default buffer is a quarter of that. Granted as far as the system
  // allows.
  const int buffer = 4 << 20;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  while (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    if (errno == EAGAIN || errno == EINTR) {  // its line of callers is full
      socket->CheckStopped();
      poll(nullptr, 0, 10);
      continue;
    }
    if (errno == ENOENT || errno == ECONNREFUSED) {
      throw Error(ExitCode::kFailure, "nobody listens there", where,
                  fmt::format("start 'headrace consume {}' first", where));
    }
    throw ErrnoError(errno, "connect to", where);
  }
  Greeting hello;
  hello.kind = static_cast<uint32_t>(address.kind);
  hello.pid = getpid();
  socket->Write(BytesOf(&hello));
  Greeting answer;
  if (!socket->Read(BytesOf(&answer), kAnswerNs)) socket->Gone();
  const std::string refusal = RefusalText(answer, address);
  if (!refusal.empty()) throw Error(ExitCode::kFailure, refusal, where, RefusalFix(answer));
  socket->set_peer(fmt::format("the consumer (process {}) at {}", answer.pid, where));
  if (address.kind == DeliveryKind::kShm)
    return MakeRingSender(std::move(socket), options.ring_bytes);
  return MakeUnixSender(std::move(socket));
}

Listener::Listener(DeliveryAddress address)
    : address_(std::move(address)),
      socket_(address_.path,
              Error(ExitCode::kUsage, "another consumer listens there",
                    FormatDeliveryAddress(address_), "end it, or choose another path")) {}

std::unique_ptr<Receiver> Listener::Accept(const DeliveryStopped& stopped, bool enough,
                                           const std::function<void(const std::string&)>& refused) {
  const auto tell = [&](const std::string& text) {
    if (refused) refused(text);
  };
  while (!stopped || !stopped()) {
    pollfd one = {socket_.fd(), POLLIN, 0};
    if (poll(&one, 1, 100) <= 0) continue;
    const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    auto socket = std::make_unique<Socket>(fd, "a producer", stopped);
    try {
      Greeting hello, answer;
      // One that says nothing only looked whether somebody listens.
      if (!socket->Read(BytesOf(&hello), kHelloNs)) continue;
      if (std::memcmp(hello.magic, answer.magic, sizeof hello.magic) != 0) {
        tell("something connected that is not a headrace producer");
        continue;
      }
      answer.kind = static_cast<uint32_t>(address_.kind);
      answer.pid = getpid();
      if (hello.version != answer.version) {
        answer.refusal = kOtherVersion;
        tell(
            fmt::format("refused process {}: it speaks version {} of the delivery, this headrace "
                        "{}; use the same on both sides",
                        hello.pid, hello.version, answer.version));
      } else if (hello.kind != answer.kind) {
        answer.refusal = kOtherKind;
        tell(fmt::format("refused process {}: it does not send to {}", hello.pid,
                         FormatDeliveryAddress(address_)));
      } else if (enough) {
        answer.refusal = kEnough;
        tell(fmt::format("refused process {}: all producers are there", hello.pid));
      }
      socket->Write(BytesOf(&answer));
      if (answer.refusal != kWelcome) continue;
      socket->set_peer(fmt::format("the producer (process {})", hello.pid));
      return address_.kind == DeliveryKind::kShm ? MakeRingReceiver(std::move(socket), hello.pid)
                                                 : MakeUnixReceiver(std::move(socket), hello.pid);
    } catch (const Error& error) {
      if (error.code() == ExitCode::kInterrupted) return nullptr;
      tell(error.what());
    }
  }
  return nullptr;
}

}  // namespace headrace::reader
