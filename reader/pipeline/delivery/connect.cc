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
                         NameOf(address.kind));
    case kEnough:
      return "the consumer has all the producers it waited for";
    case kFull:
      return "the consumer has as many producers as it takes at a time";
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
    case kFull:
      return "start fewer of them, or raise its --most-workers";
    default:
      return "";
  }
}

// A connection to the Unix socket at which a consumer listens.
Channel ConnectUnix(const DeliveryAddress& address, const DeliveryStopped& stopped) {
  const std::string where = FormatDeliveryAddress(address);
  const sockaddr_un name = SocketName(address.path);
  Channel channel(NewSocket(where));
  while (connect(channel.fd(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    if (errno == EAGAIN || errno == EINTR) {  // its line of callers is full
      if (stopped && stopped())
        throw Error(ExitCode::kInterrupted, fmt::format("stopped while waiting for {}", where));
      poll(nullptr, 0, 10);
      continue;
    }
    if (errno == ENOENT || errno == ECONNREFUSED) {
      throw Error(ExitCode::kFailure, "nobody listens there", where,
                  fmt::format("start 'headrace consume {}' first", where));
    }
    throw ErrnoError(errno, "connect to", where);
  }
  return channel;
}

Channel ConnectNetwork(const DeliveryAddress& address, const SenderOptions& options) {
  std::string why;
  auto channel =
      CallGuarded(address, Purpose::kDelivery, options.credentials, options.stopped, &why);
  if (channel) return std::move(*channel);
  if (options.stopped && options.stopped())
    throw Error(ExitCode::kInterrupted, "stopped while connecting", FormatDeliveryAddress(address));
  throw Error(ExitCode::kFailure, fmt::format("nobody listens there: {}", why),
              FormatDeliveryAddress(address));
}

}  // namespace

std::unique_ptr<Sender> ConnectSender(const DeliveryAddress& address, SenderOptions options) {
  const std::string where = FormatDeliveryAddress(address);
  Channel channel = IsNetwork(address.kind) ? ConnectNetwork(address, options)
                                            : ConnectUnix(address, options.stopped);
  // A batch is a megabyte; the default buffer is a quarter of that. Granted as far as the system
  // allows. TCP finds its own.
  const int buffer = 4 << 20;
  if (!IsNetwork(address.kind))
    setsockopt(channel.fd(), SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  auto socket = std::make_unique<Socket>(
      std::move(channel), fmt::format("the consumer at {}", where), std::move(options.stopped));
  Greeting hello;
  hello.kind = static_cast<uint32_t>(address.kind);
  hello.pid = getpid();
  socket->Write(BytesOf(&hello));
  Greeting answer;
  if (!socket->Read(BytesOf(&answer), kAnswerNs)) socket->Gone();
  const std::string refusal = RefusalText(answer, address);
  if (!refusal.empty())
    throw NotTaken(Error(answer.refusal == kFull ? ExitCode::kResources : ExitCode::kFailure,
                         refusal, where, RefusalFix(answer)),
                   answer.refusal == kFull);
  socket->set_peer(fmt::format("the consumer (process {}) at {}", answer.pid, where));
  if (address.kind == DeliveryKind::kShm)
    return MakeRingSender(std::move(socket), options.ring_bytes);
  return MakeSocketSender(std::move(socket), address.kind == DeliveryKind::kTcp,
                          IsNetwork(address.kind) ? answer.codecs : 0);
}

Listener::Listener(DeliveryAddress address, std::shared_ptr<const Credentials> credentials)
    : address_(std::move(address)) {
  if (IsNetwork(address_.kind)) {
    guarded_ = std::make_unique<GuardedListener>(
        address_, Purpose::kDelivery, std::move(credentials),
        [this](const std::string& text) { refused_.push_back("refused " + text); });
    address_ = guarded_->address();
    return;
  }
  socket_.emplace(address_.path,
                  Error(ExitCode::kUsage, "another consumer listens there",
                        FormatDeliveryAddress(address_), "end it, or choose another path"));
}

// One that may speak; without a channel after a moment in which there was none.
Listener::Caller Listener::NextCaller() {
  constexpr int kLookMs = 100;
  if (!waiting_.empty()) {
    Caller caller = std::move(waiting_.front());
    waiting_.pop_front();
    return caller;
  }
  if (guarded_) {
    std::vector<pollfd> polled;
    guarded_->AddPolled(&polled);
    poll(polled.data(), polled.size(), kLookMs);
    for (GuardedListener::Guest& guest : guarded_->Turn())
      waiting_.push_back({std::move(guest.channel), std::move(guest.name)});
    return {};
  }
  pollfd one = {socket_->fd(), POLLIN, 0};
  if (poll(&one, 1, kLookMs) <= 0) return {};
  const int fd = accept4(socket_->fd(), nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) {
    // Without descriptors whoever waits there would wake every poll.
    if (errno != EAGAIN && errno != EINTR) poll(nullptr, 0, kLookMs);
    return {};
  }
  return {Channel(fd), ""};
}

// Null when it is told why not, or said nothing: it only looked whether somebody listens.
std::unique_ptr<Receiver> Listener::Greet(Caller caller, const DeliveryStopped& stopped,
                                          bool enough,
                                          const std::function<void(const std::string&)>& tell) {
  auto socket = std::make_unique<Socket>(std::move(*caller.channel), "a producer", stopped);
  Greeting hello, answer;
  if (!socket->Read(BytesOf(&hello), kHelloNs)) return nullptr;
  if (std::memcmp(hello.magic, answer.magic, sizeof hello.magic) != 0) {
    tell("something connected that is not a headrace producer");
    return nullptr;
  }
  const std::string who =
      fmt::format("process {}{}{}", hello.pid, caller.name.empty() ? "" : " at ", caller.name);
  answer.kind = static_cast<uint32_t>(address_.kind);
  answer.pid = getpid();
  if (IsNetwork(address_.kind)) answer.codecs = kWireCodecs;
  if (hello.version != answer.version) {
    answer.refusal = kOtherVersion;
    tell(
        fmt::format("refused {}: it speaks version {} of the delivery, this headrace {}; use the "
                    "same on both sides",
                    who, hello.version, answer.version));
  } else if (hello.kind != answer.kind) {
    answer.refusal = kOtherKind;
    tell(fmt::format("refused {}: it does not send to {}", who, FormatDeliveryAddress(address_)));
  } else if (enough) {
    answer.refusal = kEnough;
    tell(fmt::format("refused {}: all producers are there", who));
  } else if (count_ && count_() >= most_) {
    answer.refusal = kFull;
    tell(fmt::format("refused {}: {} are connected, as many as it takes at a time", who, most_));
  }
  socket->Write(BytesOf(&answer));
  if (answer.refusal != kWelcome) return nullptr;
  socket->set_peer(fmt::format("the producer ({})", who));
  if (address_.kind == DeliveryKind::kShm) return MakeRingReceiver(std::move(socket), hello.pid);
  return MakeSocketReceiver(std::move(socket), hello.pid, address_.kind == DeliveryKind::kTcp);
}

std::unique_ptr<Receiver> Listener::Accept(const DeliveryStopped& stopped, bool enough,
                                           const std::function<void(const std::string&)>& refused) {
  const auto tell = [&](const std::string& text) {
    if (refused) refused(text);
  };
  while (!stopped || !stopped()) {
    Caller caller = NextCaller();
    for (; !refused_.empty(); refused_.pop_front()) tell(refused_.front());
    if (!caller.channel) continue;
    try {
      if (auto receiver = Greet(std::move(caller), stopped, enough, tell)) return receiver;
    } catch (const Error& error) {
      if (error.code() == ExitCode::kInterrupted) return nullptr;
      tell(error.what());
    }
  }
  return nullptr;
}

}  // namespace headrace::reader
